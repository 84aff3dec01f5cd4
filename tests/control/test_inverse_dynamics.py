"""Torque resolution against plain dense formulas of the sheet and against quadratic programs of another formulation."""

from __future__ import annotations

import numpy as np
import pytest
from qpsolvers import solve_qp

import sarrus as sr

from .support import machine


def moving(system: sr.System, rng: np.random.Generator) -> sr.State:
    """A consistent state near home, in motion."""
    home = system.assemble()
    q = system.retract(home.q, 0.1 * np.array(system.layout.scales) * rng.uniform(-1, 1, system.layout.nv))
    place = system.assemble(near=system.state(q))
    v = system.projector(place) @ rng.uniform(-1, 1, system.layout.nv)
    return system.state(place.q, v)


def reachable(system: sr.System, state: sr.State, rng: np.random.Generator) -> np.ndarray:
    """A random acceleration that the constraints allow."""
    x = system.terms(state)
    normal = np.linalg.pinv(x.A, rcond=1e-9) @ x.gamma
    P = np.eye(system.layout.nv) - np.linalg.pinv(x.A, rcond=1e-9) @ x.A
    return normal + P @ rng.uniform(-1, 1, system.layout.nv)


def dense(system: sr.System, state: sr.State, vdot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sheet 5 with the plain projector: rows E, e of E u = e, that is V₂ᵀ B u = V₂ᵀ (M v̇ + h)."""
    x = system.terms(state)
    _, s, Vt = np.linalg.svd(x.A)
    r = int(np.sum(s > 1e-8 * s[0]))
    V2 = Vt[r:]
    return V2 @ x.B, V2 @ (x.M @ vdot + x.h)


CASES = [
    ("stewart", (), {}),
    ("two_arms", (), {}),
    ("parallelogram", ("A1", "A2"), {}),
    ("planar_platform", ("hip1", "hip2"), {}),
    ("slider_crank", (), {}),
    ("geared_chain", (), {}),
    ("delta", (), {}),
    ("five_bar", ("B",), {}),
    ("four_bar", ("B", "C"), {}),
    ("spherical_four_bar", (), {}),
]


@pytest.mark.parametrize(("name", "motors", "options"), CASES, ids=[c[0] for c in CASES])
def test_least_torques_agree_with_a_quadratic_program(name, motors, options, rng):
    """Ten random states, accelerations and weights on each of ten machines."""
    system = machine(name, motors, **options)
    nu = system.layout.nu
    for _ in range(10):
        state = moving(system, rng)
        vdot = reachable(system, state, rng)
        weights = rng.uniform(0.5, 2.0, nu)
        found = sr.inverse_dynamics(system, state, vdot, weights=weights)
        assert found.feasible, found
        E, e = dense(system, state, vdot)
        size = np.abs(found.u).max()
        # quadprog's accuracy: about 1e-12 of the size of the numbers, times the conditioning of E
        expected = solve_qp(np.diag(weights), np.zeros(nu), A=E, b=e, solver="quadprog")
        np.testing.assert_allclose(found.u, expected, rtol=0, atol=1e-8 * size)
        gamma = np.linalg.pinv(E / np.sqrt(weights)) @ e / np.sqrt(weights)  # sheet 5: u = Γ w in the weight
        np.testing.assert_allclose(found.u, gamma, rtol=0, atol=1e-9 * size)
        np.testing.assert_allclose(system.acceleration(state, found.u), vdot, atol=1e-7 * (1 + np.abs(vdot).max()))
        np.testing.assert_allclose(found.accelerations, vdot, atol=1e-7 * (1 + np.abs(vdot).max()))
        assert found.unique == (np.linalg.matrix_rank(E) == nu)


@pytest.mark.parametrize(("name", "motors"), [("two_arms", ()), ("parallelogram", ("A1", "A2")), ("slider_crank", ())])
def test_limits_are_kept_and_the_optimum_is_that_of_the_program(name, motors, rng):
    system = machine(name, motors)
    nu = system.layout.nu
    tight = 0
    for _ in range(10):
        state = moving(system, rng)
        vdot = reachable(system, state, rng)
        free = sr.inverse_dynamics(system, state, vdot)
        E, e = dense(system, state, vdot)
        # a feasible box that cuts the free optimum: around another solution
        other = free.u + 0.3 * np.abs(free.u).max() * np.sum(free.internal.basis, axis=0)
        low, high = np.minimum(other, 0) - 1e-3, np.maximum(other, 0) + 1e-3
        limits = dict(zip(system.inputs, zip(low, high, strict=True), strict=True))
        found = sr.inverse_dynamics(system, state, vdot, limits=limits)
        assert found.feasible
        size = np.abs(other).max()
        assert np.all(found.u >= low - 1e-9 * size)
        assert np.all(found.u <= high + 1e-9 * size)
        expected = solve_qp(np.eye(nu), np.zeros(nu), A=E, b=e, lb=low, ub=high, solver="quadprog")
        assert expected is not None
        np.testing.assert_allclose(found.u, expected, atol=1e-7 * size)
        tight += not np.allclose(found.u, free.u)
    assert tight >= 5


def test_limits_that_do_not_suffice_give_the_nearest_acceleration(rng):
    system = machine("two_arms")
    state = moving(system, rng)
    vdot = reachable(system, state, rng)
    bound = 0.3 * np.abs(sr.inverse_dynamics(system, state, vdot).u).max()
    found = sr.inverse_dynamics(system, state, vdot, limits=bound)
    assert not found.feasible
    assert found.reason == "the limits do not allow it"
    assert np.abs(found.u).max() <= bound * (1 + 1e-9)
    miss = system.acceleration(state, found.u) - vdot
    M = system.terms(state).M
    np.testing.assert_allclose(found.residual, np.sqrt(miss @ M @ miss), rtol=1e-8)
    # no inputs in the box do better: the gradient of the residual points out of it wherever an input can still move
    for _ in range(200):
        u = rng.uniform(-bound, bound, system.layout.nu)
        for part in (1.0, 1e-2, 1e-4):
            near = found.u + part * (u - found.u)
            other = system.acceleration(state, near) - vdot
            assert other @ M @ other >= found.residual**2 * (1 - 1e-9)


def test_five_bar_with_one_passive_joint_too_many_says_what_no_motor_reaches():
    system = sr.compile(sr.library.build("five_bar", motors=("A",)))
    state = system.assemble()
    found = sr.inverse_dynamics(system, state, np.zeros(4))
    assert not found.feasible
    assert found.unique
    assert len(found.internal) == 0
    assert len(found.unreachable) == 1
    assert "no input reaches (" in found.reason
    # the direction is one that the constraints allow and on which the motor does no work
    x = system.terms(state)
    direction = found.unreachable.basis[0]
    np.testing.assert_allclose(x.A @ direction, 0, atol=1e-12)
    np.testing.assert_allclose(x.B.T @ direction, 0, atol=1e-12)
    assert all(name in str(found) for name in ("E", "B", "D"))
    # the best possible: the residual agrees with a search over the one motor
    tried = [system.acceleration(state, found.u + part * np.abs(found.u)) for part in np.linspace(-1, 1, 21)]
    scan = [np.sqrt(a @ x.M @ a) for a in tried]
    assert min(scan) == pytest.approx(found.residual, rel=1e-9)
    assert int(np.argmin(scan)) == 10
    # along the direction that the motor does reach there is nothing left to win
    reached = sr.inverse_dynamics(system, state, found.accelerations)
    assert reached.feasible
    np.testing.assert_allclose(reached.u, found.u, rtol=1e-9)


def test_accelerations_that_break_the_constraints_are_told_apart(rng):
    system = machine("stewart")
    state = moving(system, rng)
    found = sr.inverse_dynamics(system, state, reachable(system, state, rng) + 1.0)
    assert not found.feasible
    assert "the constraints do not allow these accelerations" in found.reason


def test_partial_accelerations_complete_themselves(rng):
    system = machine("planar_platform")
    state = moving(system, rng)
    found = sr.inverse_dynamics(system, state, {"platform.x": 0.3, "platform.z": -0.2, "platform.angle": 1.1})
    assert found.feasible
    a = system.acceleration(state, found.u)
    where = [system.layout.v_names.index(f"platform.{c}") for c in ("x", "z", "angle")]
    np.testing.assert_allclose(a[where], [0.3, -0.2, 1.1], atol=1e-10)
    with pytest.raises(sr.StateError, match="leave 2 of the machine's 3 directions open; give more"):
        sr.inverse_dynamics(system, state, {"platform.x": 0.3})
    slider = machine("slider_crank")
    with pytest.raises(sr.StateError, match="contradict each other through the constraints"):
        sr.inverse_dynamics(slider, slider.assemble(), {"A": 1.0, "B": 3.0})


def test_two_arms_hold_an_object_with_a_wanted_internal_force():
    system = machine("two_arms")
    state = system.assemble()
    rows = [row.name for row in system.layout.rows]
    squeeze = np.full(6, np.nan)
    left = system.layout.group_rows("left grip")
    names = [row.label for row in system.layout.rows[left]]
    plain = sr.gravity_compensation(system, state)
    free = plain.lam[left]
    wanted = squeeze.copy()
    for k in range(6):  # the three rows in the plane: 20 more than without squeezing
        if np.abs(system.terms(state).A[left][k]).max() > 0:
            wanted[k] = free[k] + 20.0
    found = sr.gravity_compensation(system, state, forces={"left grip": wanted})
    assert found.feasible, (rows, names)
    asked = ~np.isnan(wanted)
    assert asked.sum() == 3
    np.testing.assert_allclose(found.lam[left][asked], wanted[asked], rtol=1e-9)
    assert np.nanmax(np.abs(found.force_error)) < 1e-8
    np.testing.assert_allclose(system.acceleration(state, found.u), 0, atol=1e-10)
    forces = system.constraint_forces(state, found.u)
    np.testing.assert_allclose(forces["left grip"][asked], wanted[asked], rtol=1e-9)
    assert len(found.internal) == 3
    for pattern in found.internal.basis:  # they move nothing
        np.testing.assert_allclose(system.acceleration(state, found.u + pattern), 0, atol=1e-10)


def test_redundant_parallelogram_shares_the_load_by_strength(rng):
    system = machine("parallelogram", ("A1", "A2"))
    state = moving(system, rng)
    vdot = reachable(system, state, rng)
    even = sr.inverse_dynamics(system, state, vdot)
    assert even.feasible
    assert not even.unique
    assert len(even.internal) == 2
    np.testing.assert_allclose(even.u, even.u[0], rtol=1e-9)  # equal cranks: equal shares
    strong = sr.inverse_dynamics(system, state, vdot, weights={"A0": 4.0, "A1": 1.0, "A2": 2.0})
    np.testing.assert_allclose(strong.u * [4, 1, 2], strong.u[1], rtol=1e-9)
    np.testing.assert_allclose(strong.u.sum(), even.u.sum(), rtol=1e-9)


def clamp() -> sr.System:
    """A box of 2 kg between two driven jaws of 1 kg, which can push it and not pull."""
    mech = sr.Mechanism("clamp", gravity=(0, 0, 0))
    for name, mass in (("box", 2.0), ("left", 1.0), ("right", 1.0)):
        mech.prismatic(name, mech.ground, mech.body(name, mass), "x")
    mech.motor("left")
    mech.motor("right")
    mech.couple("left pad", {"box": 1.0, "left": -1.0})  # positive multipliers push the box to the right
    mech.couple("right pad", {"right": 1.0, "box": -1.0})
    return sr.compile(mech)


def test_one_sided_forces_stay_on_their_side():
    """To accelerate 4 kg by a: u1 + u2 = 4 a, pads λ1 = u1 - a, λ2 = a - u2; the least u pulls on the right pad."""
    system = clamp()
    state = system.assemble()
    pads = ["left pad", "right pad"]
    free = sr.inverse_dynamics(system, state, {"box": 3.0})
    np.testing.assert_allclose(free.u, [6, 6], rtol=1e-12)
    np.testing.assert_allclose(free.lam, [3, -3], rtol=1e-12)
    found = sr.inverse_dynamics(system, state, {"box": 3.0}, unilateral=pads)
    assert found.feasible
    np.testing.assert_allclose(found.u, [9, 3], rtol=1e-9)
    np.testing.assert_allclose(found.lam, [6, 0], atol=1e-9)
    # with at most 8 N on the left: u2 = a at best, so 8 + a = 4 a
    weak = sr.inverse_dynamics(system, state, {"box": 3.0}, unilateral=pads, limits={"left": 8.0})
    assert not weak.feasible
    np.testing.assert_allclose(weak.u, [8, 8 / 3], rtol=1e-6)
    assert weak.residual == pytest.approx(2 * (3 - 8 / 3), rel=1e-6)
    assert weak.reason == "the limits do not allow it"
    # jaws that can only draw apart
    apart = {"left": (-5.0, -1.0), "right": (1.0, 5.0)}
    never = sr.inverse_dynamics(system, state, {"box": 0.0}, unilateral=pads, limits=apart)
    assert not never.feasible
    assert never.reason == "no inputs within the limits keep the one-sided constraints pressing"
    # a wanted grip on top, as far as it can be had
    firm = sr.inverse_dynamics(system, state, {"box": 3.0}, unilateral=pads, forces={"right pad": 5.0})
    assert firm.feasible
    np.testing.assert_allclose(firm.lam, [11, 5], rtol=1e-9)
    np.testing.assert_allclose(firm.force_error, [np.nan, 0], atol=1e-9)
    with pytest.raises(sr.UnknownNameError, match=r"unknown constraint or row 'left pat'\. Did you mean 'left pad'"):
        sr.inverse_dynamics(system, state, unilateral=["left pat"])


def test_along_a_trajectory_the_inputs_come_back(rng):
    system = machine("planar_platform")
    start = system.assemble()
    u = np.array([1.0, -2.0, 0.5])
    traj = sr.simulate(
        system, start, 0.2, inputs=lambda t: [u[0] * np.cos(9 * t), u[1] * np.sin(5 * t), u[2]], rtol=1e-10
    )
    found = sr.inverse_dynamics(system, traj)
    assert found.feasible.all()
    np.testing.assert_allclose(found.u, traj.u, atol=1e-6)
    assert "feasible" in str(found)


def test_what_makes_no_sense_is_refused():
    system = machine("two_arms")
    state = system.assemble()
    cases = [
        (dict(weights={"left1": -1.0}), "one positive number for each"),
        (dict(weights="limits"), "all of whose inputs have limits"),
        (dict(limits={"left1": (2, 1)}), "expected a positive number or \\(low, high\\)"),
        (dict(forces={"left grip": [1.0]}), "expected one number for each of its rows"),
        (dict(forces={"left grip": np.inf}), "expected one number for each of its rows"),
        (dict(forces={"left grip": "tight"}), "forces of 'left grip': expected numbers, got 'tight'"),
        (dict(active=["left grip"]), "active: expected a mapping from constraint names to True or False"),
        (dict(forces=["left grip"]), "forces: expected a mapping from names of constraints to wanted multipliers"),
        (dict(forces={"left grip.y": 1.0}), "this row carries no force"),
        (dict(accelerations=np.zeros(4)), "accelerations: expected 9 values"),
        (dict(accelerations={"object": [0.0, np.nan, 0.0]}), "accelerations: expected finite numbers for object"),
        (dict(accelerations={"object": "still"}), "accelerations of 'object': expected numbers, got 'still'"),
        (dict(weights={"left1": np.inf}), "one positive number for each"),
        (dict(weights={"left1": "small"}), "weights of 'left1': expected numbers, got 'small'"),
        (dict(weights={"left1": [1.0, 2.0]}), "one positive number for each"),
    ]
    for options, text in cases:
        with pytest.raises(sr.StateError, match=text):
            sr.inverse_dynamics(system, state, **options)
    with pytest.raises(sr.StateError, match="expected at least one state, got an array of none"):
        sr.inverse_dynamics(system, system.state(np.zeros((0, 9))))
    with pytest.raises(sr.StateError, match="expected a compiled machine, got Mechanism; use sr"):
        sr.inverse_dynamics(sr.library.build("four_bar"), state)


def test_inputs_without_a_choice():
    """Limits that leave an input one value, or all of them: a bound, not a contradiction."""
    system = machine("two_arms")
    state = system.assemble()
    free = sr.inverse_dynamics(system, state)
    for value in (0.0, 3.0):
        found = sr.inverse_dynamics(system, state, limits={"left1": (value, value), "right2": (-100.0, 100.0)})
        assert found.feasible
        assert found.u[0] == pytest.approx(value, abs=1e-12)
        E, e = dense(system, state, np.zeros(system.layout.nv))
        expected = solve_qp(
            np.eye(6), np.zeros(6), A=np.vstack([E, np.eye(6)[:1]]), b=np.array([*e, value]), solver="quadprog"
        )
        np.testing.assert_allclose(found.u, expected, atol=1e-8 * np.abs(free.u).max())
        stuck = sr.inverse_dynamics(system, state, limits=(value, value))
        np.testing.assert_allclose(stuck.u, value, atol=1e-12)
        assert not stuck.feasible
        assert stuck.reason == "the limits do not allow it"
        miss = system.acceleration(state, np.full(6, value))
        assert stuck.residual == pytest.approx(np.sqrt(miss @ system.terms(state).M @ miss), rel=1e-9)


def test_limits_are_kept_to_the_last_digit(rng):
    """Weights over twelve decades, wanted forces and one-sided grips against limits of all sizes: never above them."""
    system = machine("two_arms")
    state = system.assemble()
    cut = 0
    for k in range(60):
        bound = 10 ** rng.uniform(-3, 3)
        found = sr.inverse_dynamics(
            system, state,
            {"object.x": rng.normal() * 10 ** rng.uniform(-2, 3), "object.z": rng.normal(), "object.angle": 0.0},
            weights=10 ** rng.uniform(-6, 6, 6), limits=bound, unilateral=["left grip", "right grip"][: k % 3],
            forces={"left grip": rng.normal(size=3) * 10 ** rng.uniform(-2, 3)} if k % 2 else None,
        )  # fmt: skip
        assert np.abs(found.u).max() <= bound
        cut += not found.feasible
    assert 20 < cut < 60


def test_a_force_is_named_by_its_row_too():
    system = machine("two_arms")
    state = system.assemble()
    rows = [system.layout.rows[k].name for k in range(3)]
    found = sr.gravity_compensation(system, state, forces={rows[0]: -15.0, rows[2]: 4.0})
    np.testing.assert_allclose(found.lam[[0, 2]], [-15, 4], rtol=1e-9)
    whole = sr.gravity_compensation(system, state, forces={"left grip": [-15.0, 4.0, np.nan]})  # those with a force
    np.testing.assert_allclose(whole.u, found.u, rtol=1e-9)


def test_along_a_trajectory_contacts_and_parameters_are_those_of_the_moment():
    """An arm leans on a one-sided wall for a while, and its load changes meanwhile: the inputs come back everywhere."""
    mech = sr.Mechanism("arm and wall", planar=True)
    upper = mech.body("upper", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
    lower = mech.body("lower", sr.parameter("load", 1.0), com=(0.5, 0))
    mech.revolute("A", mech.ground, upper, initial=0.3)
    mech.revolute("B", upper, lower, at=(1, 0), initial=1.2)
    mech.close("wall", sr.plane_on(mech.ground, (1.2, 0), "x"), sr.point_on(lower, (1, 0)))
    mech.one_sided("wall", "below")
    mech.motor("A")
    mech.motor("B")
    system = sr.compile(mech)
    path = sr.control.Samples([0.0, 1.4, 2.0, 3.0], [[0.4, 1.0], [0.4, 1.0], [0.9, 1.6], [0.9, 1.6]])
    control = sr.control.HybridMotionForce(system, ["A", "B"], path, {"wall": lambda t: -10 * (1.5 - t)})
    heavier = sr.Event("more", lambda t: t - 1.2, direction=1, action=sr.Change(parameters={"load": 1.3}))
    start = system.assemble({"A": 0.9, "B": 1.6})
    traj = sr.simulate(system, start, 3.0, control=control, events=[heavier], rtol=1e-10)
    assert traj.status.ok
    assert {(segment.active["wall"], segment.p[0]) for segment in traj.segments} >= {
        (False, 1.0), (True, 1.0), (True, 1.3), (False, 1.3),
    }  # fmt: skip
    found = sr.inverse_dynamics(system, traj)
    assert found.feasible.all()
    np.testing.assert_allclose(found.accelerations, traj.a, atol=1e-7 * np.abs(traj.a).max())
    leaning = np.zeros(len(traj.t), dtype=bool)
    for where, segment, machine_then in traj.pieces():
        leaning[where] = segment.active["wall"]
        for k in range(where.start, where.stop):
            a = machine_then.acceleration(traj.state(k), found.u[k], active=segment.active)
            np.testing.assert_allclose(a, traj.a[k], atol=1e-7 * np.abs(traj.a).max())
    # two motors for one free direction: the inputs of the run pressed on the wall besides
    np.testing.assert_array_equal(found.unique, ~leaning)
    np.testing.assert_allclose(found.u[~leaning], traj.u[~leaning], atol=1e-6)
    # told otherwise, it takes the wall for gone: the motors alone would have to give these accelerations
    gone = sr.inverse_dynamics(system, traj, active={"wall": False})
    assert np.abs(gone.u - traj.u)[leaning].max() > 1
