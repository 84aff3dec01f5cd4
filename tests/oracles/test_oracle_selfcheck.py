"""The oracles check themselves, without the symbolic layer."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sarrus.model.mechanism import Mechanism

from .cases import CLOSURE_CASES, FORCE_CASES
from .constraints import constraint_rows, oracle_acceleration, project_velocity, row_scale, stacked
from .dense import constrained_solve, kkt_lstsq
from .forces import actuation, applied_force, spring_energy
from .pinocchio_tree import PinocchioTree, joint_transform, quaternion_product, quaternion_rotation, value
from .random_machines import (
    KINDS,
    LOOP_ROWS,
    add_body,
    random_machine,
    random_rotation,
    random_tree,
    random_unit,
)

SEEDS = range(12)


def some_tree(seed, bodies=5):
    rng = np.random.default_rng([seed, 99])
    tree = PinocchioTree(random_tree(rng, bodies).finalize())
    return tree, tree.random_configuration(rng), rng.normal(size=tree.nv), rng


def derivative(f, h=1e-3):
    """Sixth-order central difference at 0."""
    c = {1: 45.0, 2: -9.0, 3: 1.0}
    return sum(w * (f(k * h) - f(-k * h)) for k, w in c.items()) / (60.0 * h)


def along(tree, q, v, vdot, f, h=1e-3):
    """d/ds f(q(s), v(s)) for the motion with this velocity and acceleration."""
    return derivative(lambda s: f(tree.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot), h)


# --- tree --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
def test_poses_follow_the_definition_of_each_joint(seed):
    tree, q, _, _ = some_tree(seed, 8)
    poses = {"ground": np.eye(4)}

    def frame(R, p):
        return np.block([[R, np.reshape(p, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])

    for edge in tree.tree.edges:
        j = edge.joint
        X = frame(value(j.rotation), value(j.at)) @ frame(*joint_transform(j, q[tree.q_slices[j.name]]))
        X = X @ np.linalg.inv(frame(value(j.child_rotation), value(j.child_at)))
        poses[edge.outer] = poses[edge.inner] @ (np.linalg.inv(X) if edge.reversed else X)
    for body in tree.model.bodies:
        R, p = tree.body_pose(q, body.name)
        np.testing.assert_allclose(frame(R, p), poses[body.name], atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_twists_and_accelerations_are_rates_of_poses(seed):
    tree, q, v, rng = some_tree(seed)
    vdot = rng.normal(size=tree.nv)
    for body in tree.model.bodies:
        omega, velocity = tree.body_twist(q, v, body.name)
        R = tree.body_pose(q, body.name)[0]
        spin = along(tree, q, v, vdot, lambda q, v, name=body.name: tree.body_pose(q, name)[0]) @ R.T
        np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], omega, atol=1e-8)
        np.testing.assert_allclose(
            along(tree, q, v, vdot, lambda q, v, name=body.name: tree.body_pose(q, name)[1]),
            velocity,
            atol=1e-8,
        )
        m = tree.motion(q, v, body.name)
        np.testing.assert_allclose(np.r_[m.J_omega @ v, m.J_velocity @ v], np.r_[omega, velocity], atol=1e-11)
        expected = np.concatenate(tree.body_acceleration(q, v, vdot, body.name))
        got = along(tree, q, v, vdot, lambda q, v, name=body.name: np.concatenate(tree.body_twist(q, v, name)))
        np.testing.assert_allclose(got, expected, atol=1e-6 * (1 + np.abs(expected).max()))


def test_quaternion_rates_are_those_of_the_convention():
    """q' = N(q) v: quaternion rate 0.5 q * (0, omega), position rate = linear velocity."""
    mech = Mechanism("one")
    mech.body("A", 1.0, inertia=np.eye(3))
    mech.free("f", "A")
    tree, rng = PinocchioTree(mech.finalize()), np.random.default_rng(3)
    q, v = tree.random_configuration(rng), rng.normal(size=6)
    rate = derivative(lambda s: tree.integrate(q, v, s))
    np.testing.assert_allclose(rate, np.r_[v[:3], 0.5 * quaternion_product(q[3:], np.r_[0.0, v[3:]])], atol=1e-10)
    np.testing.assert_allclose(tree.body_twist(q, v, "A")[0], quaternion_rotation(q[3:]) @ v[3:], atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_is_the_hessian_of_the_kinetic_energy(seed):
    tree, q, _, _ = some_tree(seed, 7)
    M, e = tree.mass_matrix(q), np.eye(tree.nv)
    T = np.array([[tree.energy(q, a + b)[0] for b in e] for a in e])
    single = np.array([tree.energy(q, a)[0] for a in e])
    np.testing.assert_allclose(M, T - single[:, None] - single, atol=1e-10 * np.abs(M).max())
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_aba_agrees_with_mass_matrix_and_bias(seed):
    tree, q, v, rng = some_tree(seed, 7)
    tau = rng.normal(size=tree.nv)
    expected = np.linalg.solve(tree.mass_matrix(q), tau - tree.bias(q, v))
    np.testing.assert_allclose(tree.aba(q, v, tau), expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_changes_by_the_power_of_the_forces(seed):
    """dE/dt = (tau - joint springs and dampers) · v at an instant, with vdot from M and h alone."""
    tree, q, v, rng = some_tree(seed)
    tau = rng.normal(size=tree.nv)
    vdot = np.linalg.solve(tree.mass_matrix(q), tau - tree.bias(q, v))
    scale = 1.0 / max(1.0, np.abs(vdot).max(), np.abs(v).max())
    rate = along(tree, q, v, vdot, lambda q, v: sum(tree.energy(q, v)), 1e-2 * scale)
    power = (tau - tree.joint_forces(q, v)) @ v
    assert abs(rate - power) < 1e-6 * (1 + abs(power) + tree.energy(q, v)[0])


@pytest.mark.parametrize("seed", range(4))
def test_energy_along_a_trajectory(seed):
    tree, q, v, _ = some_tree(seed, 3)
    v = 0.3 * v

    def rate(t, y):
        q, v = y[: tree.nq], y[tree.nq : -1]
        vdot = tree.aba(q, v, np.zeros(tree.nv))
        qdot = derivative(lambda s: tree.integrate(q, v, s))
        return np.r_[qdot, vdot, -tree.joint_forces(q, v) @ v]

    run = solve_ivp(rate, (0.0, 0.2), np.r_[q, v, 0.0], method="DOP853", rtol=1e-9, atol=1e-10)
    end = run.y[:, -1]
    before, after = sum(tree.energy(q, v)), sum(tree.energy(end[: tree.nq], end[tree.nq : -1]))
    assert abs(after - before - end[-1]) < 1e-5 * (1 + abs(before) + abs(end[-1]))


# --- reversed edges ----------------------------------------------------------------------------------------
def turned(kind, axis, axis2, q, v):
    """The same motion written from the other body: (axis, axis2, q, v) of the inverse joint."""
    if kind in ("revolute", "prismatic", "helical", "cylindrical"):
        return -axis, axis2, q, v
    if kind == "universal":
        return -axis2, -axis, q[::-1], v[::-1]
    if kind == "planar":
        c, d = np.cos(q[2]), np.sin(q[2])
        R, E = np.array([[c, d], [-d, c]]), np.array([[0.0, -1.0], [1.0, 0.0]])
        return axis, axis2, np.r_[-R @ q[:2], -q[2]], np.r_[-R @ v[:2] + v[2] * E @ R @ q[:2], -v[2]]
    shift, quat, rate, omega = (q[:-4], q[-4:], v[:-3], v[-3:])
    R = quaternion_rotation(quat)
    back, spin = quat * [1, -1, -1, -1], -R @ omega
    if kind == "spherical":
        return axis, axis2, back, spin
    moved = -R.T @ shift
    return axis, axis2, np.r_[moved, back], np.r_[-R.T @ rate - np.cross(omega, moved), spin]


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "fixed"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_reversed_joint_is_the_same_machine_written_the_other_way(kind, place):
    """Same body twists and, without forces on the joints, the same accelerations of all bodies."""
    rng = np.random.default_rng([place, KINDS.index(kind)])
    axis, axis2 = random_unit(rng), random_unit(rng) + np.array([0.1, 0.2, 0.3])
    sides = [(rng.uniform(-1, 1, 3), random_rotation(rng)) for _ in range(2)]
    mechs = [Mechanism(name) for name in ("forward", "backward")]
    for mech in mechs:
        bodies = np.random.default_rng(5)
        for name in "ABC":
            add_body(mech, name, bodies)
    ends = ["ground", "A", "B", "C"]
    options = {"pitch": 0.4} if kind == "helical" else {}
    others = [("universal", 0), ("spherical", 1), ("revolute", 2)]
    q0, v0 = joint_state(kind, rng)
    axis, axis2 = axis / np.linalg.norm(axis), axis2 / np.linalg.norm(axis2)
    axis_, axis2_, q1, v1 = turned(kind, axis, axis2, q0, v0)
    values, rates = {}, {}
    for other, i in others:
        if i == place:
            continue
        for mech in mechs:
            mech.joint(other, f"J{i}", ends[i], ends[i + 1], "z", (0.2, -0.3, 0.1), child_at=(0.1, 0.2, -0.2))
    for mech, (a, a2), (P, C), (F, G) in (
        (mechs[0], (axis, axis2), (ends[place], ends[place + 1]), sides),
        (mechs[1], (axis_, axis2_), (ends[place + 1], ends[place]), sides[::-1]),
    ):
        mech.joint(
            kind, "X", P, C, a, F[0], axis2=a2, rotation=F[1], child_at=G[0], child_rotation=G[1], **options
        )  # fmt: skip
    trees = [PinocchioTree(m.finalize()) for m in mechs]
    assert [any(e.reversed for e in t.tree.edges) for t in trees] == [False, True]
    q, v = trees[0].random_configuration(rng), rng.normal(size=trees[0].nv)
    values, rates = dict(zip(trees[0].names_q, q, strict=True)), dict(zip(trees[0].names_v, v, strict=True))
    states = []
    for tree, qx, vx in ((trees[0], q0, v0), (trees[1], q1, v1)):
        q = np.array([values[n] for n in tree.names_q])
        v = np.array([rates[n] for n in tree.names_v])
        q[tree.q_slices["X"]], v[tree.v_slices["X"]] = qx, vx
        states.append((q, v))
    for name in "ABC":
        a, b = (tree.motion(q, v, name) for tree, (q, v) in zip(trees, states, strict=True))
        np.testing.assert_allclose(
            np.c_[a.R, a.p, a.omega, a.velocity], np.c_[b.R, b.p, b.omega, b.velocity], atol=1e-12
        )
        x, y = (
            np.concatenate(t.body_acceleration(q, v, t.aba(q, v, np.zeros(t.nv)), name))
            for t, (q, v) in zip(trees, states, strict=True)
        )
        np.testing.assert_allclose(x, y, atol=1e-9 * (1 + np.abs(x).max()))


def joint_state(kind, rng):
    """A random state of a single joint of this kind."""
    mech = Mechanism("one")
    mech.body("A", 1.0, inertia=np.eye(3))
    mech.joint(kind, "X", "ground", "A", "z", **({"pitch": 1.0} if kind == "helical" else {}))
    tree = PinocchioTree(mech.finalize())
    return tree.random_configuration(rng), rng.normal(size=tree.nv)


# --- machines ----------------------------------------------------------------------------------------------
def check_rows(case, seed):
    """Φ = 0 at q*, and A, a, γ are the rates of Φ and of A v - a(t)."""
    tree, q, rng = case.tree, case.q, np.random.default_rng(seed)
    v, vdot = rng.normal(size=(2, tree.nv)) * 0.5
    phi, A, _, _ = stacked(tree, q, v, case.t)
    if case.assembled:
        assert np.abs(phi).max(initial=0.0) < 1e-12
    for i, row in enumerate(constraint_rows(tree, q, v, case.t)):

        def velocity_rows(s, i=i):
            Q, V = tree.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot
            r = constraint_rows(tree, Q, V, case.t + s)[i]
            return r.A @ V - r.a

        tol = 2e-8 * (1 + np.abs(row.gamma).max(initial=0.0))
        if row.phi is not None:
            rate = derivative(lambda s, i=i: constraint_rows(tree, tree.integrate(q, v, s), v, case.t + s)[i].phi)
            np.testing.assert_allclose(rate, row.A @ v - row.a, atol=tol)
        np.testing.assert_allclose(derivative(velocity_rows), row.A @ vdot - row.gamma, atol=tol)
    assert case.rank == case.tree.nv - case.freedom <= len(A)


def check_dynamics(case, seed):
    """Two routes to the constrained acceleration agree, and it satisfies the constraints."""
    tree, q, rng = case.tree, case.q, np.random.default_rng(seed)
    v = project_velocity(tree, q, rng.normal(size=tree.nv), case.t)
    _, A, a, gamma = stacked(tree, q, v, case.t)
    assert np.abs(A @ v - a).max(initial=0.0) < 1e-9
    tau = rng.normal(size=tree.nv)
    found = oracle_acceleration(tree, q, v, tau, case.t)
    size = 1 + np.abs(found.vdot).max()
    assert np.abs(A @ found.vdot - gamma).max(initial=0.0) < 1e-8 * size
    M, h, force = tree.mass_matrix(q), tree.bias(q, v), tau + applied_force(tree, q, v, case.t)
    np.testing.assert_allclose(
        M @ found.vdot + h,
        force + A.T @ found.lam,
        atol=1e-9 * (1 + np.abs(h).max() + np.abs(found.lam).max(initial=0.0)),
    )
    other, lam = kkt_lstsq(M, h, force, A, gamma)
    np.testing.assert_allclose(other, found.vdot, atol=1e-6 * size)
    np.testing.assert_allclose(A.T @ lam, A.T @ found.lam, atol=1e-6 * (1 + np.abs(A.T @ lam).max()))


@pytest.mark.parametrize("seed", range(20))
def test_random_machines_close_and_move(seed):
    case = random_machine(seed)
    check_rows(case, seed)
    check_dynamics(case, seed)


@pytest.mark.parametrize("name", CLOSURE_CASES)
def test_closure_cases(name):
    for seed in range(3):
        case = CLOSURE_CASES[name](seed)
        check_rows(case, seed)
        check_dynamics(case, seed)


def test_ranks_of_machines_that_are_known():
    expected = {
        "fourbar_joint": 2,
        "fourbar_closure": 2,
        "parallelogram": 3,
        "sarrus": 4,
        "planar_point": 2,
        "weld": 6,
    }
    for name, rank in expected.items():
        assert [CLOSURE_CASES[name](seed).rank for seed in range(4)] == [rank] * 4, name
    for name in ("fixed", *(k.removeprefix("joint:") for k in LOOP_ROWS if k.startswith("joint:")), "free"):
        case = CLOSURE_CASES[f"joint:{name}"](0)
        assert [j.kind for j in case.tree.tree.cuts] == [name]


@pytest.mark.parametrize("case", FORCE_CASES, ids=lambda c: c.name)
def test_force_cases(case):
    tree, q, rng = case.tree, case.q, np.random.default_rng(1)
    check_dynamics(case, 1)
    if case.model.loads or case.tree.tree.cuts:
        return
    force = applied_force(tree, q, np.zeros(tree.nv), case.t) - tree.joint_forces(q, np.zeros(tree.nv))
    for v in rng.normal(size=(3, tree.nv)):
        change = derivative(lambda s, v=v: spring_energy(tree, tree.integrate(q, v, s)))
        assert abs(force @ v + change) < 1e-8 * (1 + abs(change))
        friction = applied_force(tree, q, v, case.t) - tree.joint_forces(q, v) - force
        assert friction @ v <= 1e-12
    assert actuation(tree, q).shape == (tree.nv, len(case.model.actuators))


def test_power_of_loads():
    """A force does its value · velocity of its point, a torque its value · angular velocity."""
    cases = {c.name: c for c in FORCE_CASES}
    for name in ("force", "force_local", "torque", "torque_local"):
        case, rng = cases[name], np.random.default_rng(2)
        load, v = case.model.loads[0], rng.normal(size=case.tree.nv)
        m = case.tree.motion(case.q, v, load.at.body)
        f = m.R @ load.value if load.local else load.value
        speed = m.omega if load.kind == "torque" else m.velocity + np.cross(m.omega, m.R @ load.at.at)
        assert np.isclose(applied_force(case.tree, case.q, v, 0.0) @ v, f @ speed, rtol=1e-12)


def test_dense_solution_does_not_depend_on_units_or_copies():
    rng = np.random.default_rng(4)
    B = rng.normal(size=(6, 6))
    M, A, h, tau, gamma = (
        B @ B.T + np.eye(6),
        rng.normal(size=(3, 6)),
        *rng.normal(size=(2, 6)),
        rng.normal(size=3),
    )
    first = constrained_solve(M, h, tau, A, gamma)
    again = constrained_solve(M, h, tau, np.r_[A, A[:1], 2 * A[1:2]], np.r_[gamma, gamma[:1], 2 * gamma[1:2]])
    assert (first.rank, again.rank) == (3, 3)
    np.testing.assert_allclose(again.vdot, first.vdot, atol=1e-11)
    U = np.diag([1, 1000.0, 1e-3, 1, 10, 0.1])  # other units for the coordinates
    scaled = constrained_solve(U @ M @ U, U @ h, U @ tau, A @ U, gamma)
    np.testing.assert_allclose(U @ scaled.vdot, first.vdot, atol=1e-9)
    np.testing.assert_allclose(scaled.lam, first.lam, atol=1e-9)
    np.testing.assert_allclose(again.lam[0], again.lam[3], atol=1e-11)  # the smallest: shared equally


def test_all_kinds_occur_and_every_case_is_well_posed():
    cases = [random_machine(seed) for seed in range(60)]
    assert set().union(*(c.kinds for c in cases)) == set(KINDS)
    assert {kind for c in cases for _, kind in c.loops} >= set(LOOP_ROWS)
    assert all(c.redundant for c in cases[1::2])
    assert all(len({j.kind for j in c.model.joints if j.nv}) >= 2 and c.freedom > 0 for c in cases)
    assert all(row_scale(stacked(c.tree, c.q, np.zeros(c.tree.nv))[1]).min() > 0 for c in cases)
    twice = random_machine(7)
    np.testing.assert_array_equal(twice.q, cases[7].q)
    assert dataclasses.is_dataclass(twice)
