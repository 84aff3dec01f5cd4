"""Every closure type: Φ → A → γ by finite differences, on and off the constraint manifold, and against the oracle.

Finite differences are central and of sixth order. First derivatives with h = 1e-3: error h⁶ f⁽⁷⁾/140 + 3 eps |f| / h,
that is about 1e-12 |f| for rates up to 10/s. Second ones with h = 1e-2: h⁶ f⁽⁸⁾/560 + 6 eps |f| / h², about 1e-10 |f|
at a third of that speed. The tolerances leave a factor of 100.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pinocchio as pin
import pytest

import sarrus as sr
from oracles.cases import CLOSURE_CASES
from oracles.constraints import oracle_acceleration, project_velocity, row_scale, stacked
from oracles.dense import constrained_solve

from .support import (
    closure_case,
    consistent,
    derivative,
    elsewhere,
    largest,
    path,
    row_space,
    second_derivative,
)

FIRST, SECOND = 1e-10, 1e-8
SEEDS = (0, 1)
MOVING = {"prescribe", "constrain", "constrain_velocity"}
NONHOLONOMIC = {"rolling": 2, "knife_edge": 1, "constrain_velocity": 1}  # rows of that kind
EVERY_CASE = pytest.mark.parametrize("name", CLOSURE_CASES)
EVERY_SEED = pytest.mark.parametrize("seed", SEEDS)
ON_AND_OFF = pytest.mark.parametrize("where", ["on", "off"])


def place(case, where, rng):
    return case.q if where == "on" else elsewhere(case, rng)


def terms(system, q, v, t):
    return system.terms(system.state(q, v, t))


def holonomic(system):
    return np.array([row.holonomic for row in system.layout.rows], dtype=bool)


# --- the derivative ladder ---------------------------------------------------------------------------------
@EVERY_SEED
@EVERY_CASE
def test_retract_is_the_flow_of_constant_velocity(name, seed):
    case, system = closure_case(name, seed)
    rng = np.random.default_rng(seed)
    for v in rng.normal(size=(3, case.tree.nv)):
        np.testing.assert_allclose(system.retract(case.q, v), case.tree.integrate(case.q, v), atol=1e-14)
        rate = derivative(lambda s, v=v: system.retract(case.q, s * v))
        N = terms(system, case.q, v, case.t).N
        np.testing.assert_allclose(rate, N @ v, atol=FIRST * (1 + largest(v)))


@ON_AND_OFF
@EVERY_SEED
@EVERY_CASE
def test_jacobian_is_the_derivative_of_phi(name, seed, where):
    """Column by column, also where the loop is open: A = (∂Φ/∂q) N is not only true on the manifold."""
    case, system = closure_case(name, seed)
    q, none = place(case, where, np.random.default_rng([seed, 1])), np.zeros(case.tree.nv)
    here, rows = terms(system, q, none, case.t), holonomic(system)
    assert (largest(here.phi) < 1e-12) or where == "off"
    columns = [
        derivative(lambda s, e=e: terms(system, system.retract(q, s * e), none, case.t).phi)
        for e in np.eye(case.tree.nv)
    ]
    np.testing.assert_allclose(np.array(columns).T[rows], here.A[rows], atol=FIRST * (1 + largest(here.A)))


@ON_AND_OFF
@EVERY_SEED
@EVERY_CASE
def test_rate_of_phi_is_A_v_minus_a(name, seed, where):
    """At velocities that need not satisfy anything, with time running."""
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 2])
    q, v, rows = place(case, where, rng), rng.normal(size=case.tree.nv), holonomic(system)
    rate = derivative(lambda s: terms(system, system.retract(q, s * v), v, case.t + s).phi)
    here = terms(system, q, v, case.t)
    size = 1 + largest(here.A) * largest(v)
    np.testing.assert_allclose(rate[rows], (here.A @ v - here.a)[rows], atol=FIRST * size)
    assert largest(rate[~rows]) == 0, "rows without Φ report one"
    if name in MOVING:
        assert largest(here.a) > 1e-3
    else:
        assert largest(here.a) == 0, "a steady constraint has no a"


@ON_AND_OFF
@EVERY_SEED
@EVERY_CASE
def test_gamma_is_the_rest_of_the_rate_of_A_v_minus_a(name, seed, where):
    """d/dt (A v - a) = A v̇ - γ along any motion: holonomic and nonholonomic rows, steady and moving."""
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 3])
    q, (v, vdot) = place(case, where, rng), rng.normal(size=(2, case.tree.nv))

    def velocity_rows(s):
        Q, V = path(case, q, v, vdot, s)
        x = terms(system, Q, V, case.t + s)
        return x.A @ V - x.a

    here = terms(system, q, v, case.t)
    size = 1 + largest(here.gamma) + largest(here.A) * largest(vdot)
    np.testing.assert_allclose(derivative(velocity_rows), here.A @ vdot - here.gamma, atol=FIRST * size)


@ON_AND_OFF
@EVERY_SEED
@EVERY_CASE
def test_second_rate_of_phi(name, seed, where):
    """d²Φ/dt² = A v̇ - γ from Φ alone, so that an error shared by A and γ has nowhere to hide."""
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 4])
    q, (v, vdot) = place(case, where, rng), 0.3 * rng.normal(size=(2, case.tree.nv))
    rows = holonomic(system)

    def phi(s):
        Q, V = path(case, q, v, vdot, s)
        return terms(system, Q, V, case.t + s).phi

    here = terms(system, q, v, case.t)
    size = 1 + largest(here.gamma) + largest(here.A) * largest(vdot)
    np.testing.assert_allclose(second_derivative(phi)[rows], (here.A @ vdot - here.gamma)[rows], atol=SECOND * size)


# --- against the oracle ------------------------------------------------------------------------------------
@EVERY_SEED
@EVERY_CASE
def test_rows_allow_the_same_velocities_as_the_oracle(name, seed):
    """The same row space; the same velocities satisfy A v = a(t); the same accelerations A v̇ = γ."""
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 5])
    w = rng.normal(size=case.tree.nv)
    v = consistent(case, rng)
    here = terms(system, case.q, v, case.t)
    _, A, _, _ = stacked(case.tree, case.q, v, case.t)
    np.testing.assert_allclose(row_space(here.A), row_space(A), atol=1e-10)
    assert largest(here.A @ v - here.a) < 1e-11 * (1 + largest(here.A) * largest(v))
    M, none = case.tree.mass_matrix(case.q), np.zeros(case.tree.nv)
    ours = constrained_solve(M, none, M @ w, here.A, here.a, row_scale(here.A)).vdot
    np.testing.assert_allclose(ours, project_velocity(case.tree, case.q, w, case.t), atol=1e-10 * largest(w))


@EVERY_SEED
@EVERY_CASE
def test_acceleration_force_and_rank_of_the_oracle(name, seed):
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 6])
    v, tau = consistent(case, rng), rng.normal(size=case.tree.nv)
    state = system.state(case.q, v, case.t)
    found, expected = system.solve(state, f=tau), oracle_acceleration(case.tree, case.q, v, tau, case.t)
    forces = system.constraint_forces(state, f=tau)
    _, A, _, _ = stacked(case.tree, case.q, v, case.t)
    pushed = A.T @ expected.lam
    assert found.rank == case.rank and system.rank(state).mobility == case.freedom
    np.testing.assert_allclose(found.vdot, expected.vdot, rtol=0, atol=1e-9 * largest(expected.vdot))
    np.testing.assert_allclose(forces.generalised, pushed, rtol=0, atol=1e-9 * largest(pushed))
    np.testing.assert_allclose(system.terms(state).A.T @ found.lam, pushed, rtol=0, atol=1e-9 * largest(pushed))


# --- names and groups --------------------------------------------------------------------------------------
@EVERY_CASE
def test_names_and_groups(name):
    """Each constraint is a block of rows under the user's name; shares add up to the whole."""
    case, system = closure_case(name, 0)
    layout = system.layout
    written = [loop for loop, _ in case.loops if loop in case.model.groups]
    cuts = [joint.name for joint in case.tree.tree.cuts if joint.kind != "free"]
    wanted = (*written, *cuts)  # which joint of a loop is cut is the package's choice, but one is
    assert system.groups == wanted and len(wanted) == sum(kind != "joint:free" for _, kind in case.loops)
    assert layout.m == case.rows, "as many rows as the oracle writes"
    assert [row.group for row in layout.rows] == sorted((row.group for row in layout.rows), key=wanted.index)
    assert len({row.name for row in layout.rows}) == layout.m, "row names are unique"
    assert all(row.name == row.group or row.name.startswith(f"{row.group}.") for row in layout.rows)
    assert sum(not row.holonomic for row in layout.rows) == NONHOLONOMIC.get(name, 0)
    blocks = [np.arange(layout.m)[layout.group_rows(g)] for g in wanted]
    np.testing.assert_array_equal(np.concatenate([[], *blocks]), np.arange(layout.m))
    rng = np.random.default_rng(7)
    state = system.state(case.q, consistent(case, rng), case.t)
    tau = rng.normal(size=case.tree.nv)
    forces, lam = system.constraint_forces(state, f=tau), system.solve(state, f=tau).lam
    assert set(forces.lam) == set(forces.by_group) == set(forces.determinate) == set(wanted)
    np.testing.assert_array_equal(np.concatenate([np.zeros(0), *(forces[g] for g in wanted)]), lam)
    total = sum(forces.by_group.values(), np.zeros(case.tree.nv))
    np.testing.assert_allclose(total, forces.generalised, atol=1e-12 * (1 + largest(forces.generalised)))


@pytest.mark.parametrize("name", ["parallelogram", "weld", "constrain"])
def test_a_constraint_that_is_off_is_not_there(name):
    """active={name: False} gives what a machine without that constraint would do."""
    case, system = closure_case(name, 0)
    rng = np.random.default_rng(8)
    tau, v = rng.normal(size=(2, case.tree.nv))
    state, off = system.state(case.q, v, case.t), system.groups[-1]
    found = system.solve(state, f=tau, active={off: False})
    x = system.terms(state)
    keep = [k for k, row in enumerate(system.layout.rows) if row.group != off]
    expected = constrained_solve(x.M, x.h, tau, x.A[keep], x.gamma[keep], row_scale(x.A[keep]))
    np.testing.assert_allclose(found.vdot, expected.vdot, rtol=0, atol=1e-10 * largest(expected.vdot))
    assert found.rank == expected.rank and found.rows == len(keep)
    assert largest(found.lam[system.layout.group_rows(off)]) == 0


# --- guards ------------------------------------------------------------------------------------------------
SIDES = {
    "weld": lambda body: sr.weld_on(body, (0.1, 0.2, 0.3)),
    "prismatic": lambda body: sr.prismatic_on(body, (0.1, 0.2, 0.3), "z"),
    "revolute": lambda body: sr.revolute_on(body, (0.1, 0.2, 0.3), "z"),
    "cylindrical": lambda body: sr.cylindrical_on(body, (0.1, 0.2, 0.3), "z"),
    "planar": lambda body: sr.planar_on(body, (0.1, 0.2, 0.3), "z"),
    "universal": lambda body: sr.universal_on(body, (0.1, 0.2, 0.3), (1.0, 0.0, 1.0)),
    "point": lambda body: sr.point_on(body, (0.1, 0.2, 0.3)),
}


def cube_turns():
    """The 24 rotations that map the axes onto each other, as quaternions (w, x, y, z) with their matrices."""
    signed = [np.diag(s) @ np.eye(3)[list(p)] for p in permutations(range(3)) for s in product((1.0, -1.0), repeat=3)]
    turns = [R for R in signed if np.linalg.det(R) > 0]
    return [(np.roll(pin.Quaternion(R).coeffs(), 1), R) for R in turns]


@pytest.mark.parametrize("kind", SIDES)
def test_guards_tell_true_assemblies_from_flipped_ones(kind):
    """Of all 24 turns of a body, Φ = 0 with positive guards exactly where the joint would let it be."""
    mech = sr.Mechanism(kind)
    mech.body("A", 1.0, inertia=np.eye(3))
    mech.free("float", "A")
    mech.close("loop", SIDES[kind](mech.ground), SIDES[kind]("A"))
    system, at = sr.compile(mech), np.array([0.1, 0.2, 0.3])
    axis = np.array([1.0, 0.0, 1.0]) / np.sqrt(2) if kind == "universal" else np.array([0.0, 0.0, 1.0])
    turns = cube_turns()
    assert len(turns) == 24
    for quat, R in turns:
        state = system.state(np.r_[at - R @ at, quat])
        closed = largest(system.terms(state).phi) < 1e-12
        positive = bool(np.all(system.functions("guards", 0.0, state.q, system.p)[0] > 0))
        allowed = {
            "weld": np.trace(R) > 2.5, "prismatic": np.trace(R) > 2.5,
            "point": True, "universal": abs(axis @ R @ axis) < 1e-9,
        }.get(kind, R[2, 2] > 0.5)  # fmt: skip
        assert (closed and positive) == allowed, (kind, np.round(R).astype(int).tolist())


@pytest.mark.parametrize("kind", ["weld", "prismatic", "revolute", "cylindrical", "planar"])
def test_assembly_does_not_stop_at_a_flipped_configuration(kind):
    """Started turned over by almost half a turn, the axes must end up parallel, not opposite."""
    mech = sr.Mechanism(kind)
    mech.body("A", 1.0, inertia=np.eye(3))
    mech.free("float", "A")
    mech.close("loop", SIDES[kind](mech.ground), SIDES[kind]("A"))
    system = sr.compile(mech)
    quat = np.array([0.05, 1.0, 0.03, 0.02])
    start = system.state(np.r_[0.0, 0.0, 0.0, quat / np.linalg.norm(quat)])
    state = system.assemble(near=start)
    _, R = system.frame(state, "A")
    assert largest(system.terms(state).phi) < 1e-11
    assert R[2, 2] > 1 - 1e-9
    assert np.all(system.functions("guards", 0.0, state.q, system.p)[0] > 0)
