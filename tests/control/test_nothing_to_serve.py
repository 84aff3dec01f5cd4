"""What cannot be served is left alone: rounding is not taken for a way to move things, and nan not for zero."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .support import LAWS, laws, machine


def triangle() -> sr.System:
    """Two bars pinned to the ground and to each other: nothing can move, and a motor at one of the pins."""
    mech = sr.Mechanism("triangle", planar=True)
    bars = {name: mech.body(name, 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0)) for name in ("a", "b")}
    mech.revolute("A", mech.ground, bars["a"], initial=1.0)
    mech.revolute("B", mech.ground, bars["b"], at=(1, 0), initial=2.0)
    mech.close("C", sr.point_on(bars["a"], (1, 0)), sr.point_on(bars["b"], (1, 0)))
    mech.motor("A")
    return sr.compile(mech)


def held_four_bar() -> sr.System:
    """A four-bar of irregular lengths whose crank can be locked, beside a pendulum with a motor of its own."""
    mech = sr.library.build("four_bar")
    free = mech.body("free", 0.7, com=(0.3, 0.1))
    mech.revolute("F", mech.ground, free, at=(3, 1), initial=0.4)
    mech.motor("F")
    mech.lock("brake", "A", 1.0)
    return sr.compile(mech)


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
def test_a_task_that_the_constraints_hold_asks_for_nothing(formulation):
    for system, task in ((triangle(), "A"), (triangle(), "B"), (held_four_bar(), "C")):
        state = system.assemble()
        control = sr.control.TaskSpace(system, task, 0.0, formulation=formulation)
        u = control(0.0, state.q, state.v)
        assert np.abs(u).max() < 100, (system.name, task)  # weights of about 30 N m
        traj = sr.simulate(system, state, 0.05, control=control, max_steps=1000)
        assert traj.status.ok
        np.testing.assert_allclose(traj.final.q[0], state.q[0], atol=1e-9)


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
def test_a_brake_that_comes_and_goes_leaves_the_torque_bounded(formulation):
    """The crank is held for a while: the controller goes on by itself when it is let go."""
    system = held_four_bar()
    control = sr.control.TaskSpace(system, "A", 1.5, kp=25.0, kd=10.0, formulation=formulation)
    release = sr.Event("go", lambda t: t - 0.3, direction=1, action=sr.Change(active={"brake": False}))
    traj = sr.simulate(system, system.assemble({"A": 1.0}), 4.0, control=control, events=[release])
    assert traj.status.ok
    np.testing.assert_allclose(traj["A"][traj.t < 0.3], 1.0, atol=1e-9)
    assert traj["A"][-1] == pytest.approx(1.5, abs=1e-5)
    assert np.abs(traj.u[:, 0]).max() < 200


def test_a_motor_that_moves_nothing_is_told_and_left_alone():
    for system, moves in ((triangle(), 0), (held_four_bar(), 1)):
        state = system.assemble()
        found = sr.gravity_compensation(system, state)
        assert found.feasible
        assert [next(iter(pattern)) for pattern in found.internal] == ["A"]
        assert np.abs(found.u).max() < 10
        told = sr.control.controllability(system, state, "A")
        assert (told.mobility, told.reached, told.task) == (moves, moves, (1, 0))


def test_a_motor_at_right_angles_to_the_task_is_not_used():
    """A cart on an inclined rail (0.6, 0.8) pulled across it: products that vanish, but not in floating point."""
    mech = sr.Mechanism("cart", planar=True, gravity=(0, 0, 0))
    cart = mech.body("cart", 3.0, inertia=0.1)
    mech.planar_joint("cart", mech.ground, cart)
    mech.couple("rail", {"cart.x": 0.8, "cart.z": -0.6})
    mech.actuator("across", {"cart.x": 0.8 / 7, "cart.z": -0.6 / 7})
    system = sr.compile(mech)
    state = system.assemble()
    for formulation in ("direct", "minimal"):
        control = sr.control.TaskSpace(system, ["cart.x"], 0.7, formulation=formulation)
        np.testing.assert_allclose(control(0.0, state.q, state.v), 0.0, atol=1e-6)
    found = sr.inverse_dynamics(system, state, {"cart.x": 0.3, "cart.angle": 0.0})
    assert not found.feasible
    np.testing.assert_allclose(found.u, 0.0, atol=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_nan_is_never_answered(name):
    """A sensor that fails must not become a zero torque, or the torque of another state."""
    control = laws()[name]
    state = control.system.assemble()
    control(0.3, state.q, state.v)
    for k in range(2):
        for bad in (np.nan, np.inf):
            q, v = state.q.copy(), state.v.copy()
            (q, v)[k][-1] = bad
            with pytest.raises(
                sr.StateError, match=r"the inputs are not finite at t = 0\.3 s; expected finite positions"
            ):
                control(0.3, q, v)
    with pytest.raises(sr.StateError, match="the inputs are not finite at t = nan s"):
        control(np.nan, state.q, state.v)


def test_a_constraint_that_is_no_number_is_not_taken_for_a_dependent_one():
    """Φ = √(x - 1) + z has no value for x < 1: the run or call must say so, not go on without the constraint."""
    mech = sr.Mechanism("on a root", planar=True, gravity=(0, 0, 0))
    for name in ("x", "z"):
        mech.prismatic(name, mech.ground, mech.body(name, 1.0), name, initial=2.0 if name == "x" else -1.0)
        mech.motor(name)
    mech.constrain("root", lambda k: ca.sqrt(k.coordinate("x") - 1) + k.coordinate("z"))
    system = sr.compile(mech)
    for control in (
        sr.control.ProjectedInverseDynamics(system, "x", 1.5),
        sr.control.TaskSpace(system, "x", 1.5, formulation="minimal"),
    ):
        assert np.isfinite(control(0.0, [2.0, -1.0], [0.0, 0.0])).all()
        with pytest.raises(sr.StateError, match="the inputs are not finite"):
            control(0.0, [0.5, -1.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("q", "v"),
    [([1.0], [0, 0, 0]), (1.0, 0.0), (np.zeros(4), np.zeros(3)), (np.zeros((2, 3)), np.zeros(3)), (None, None)],
)
def test_numbers_of_another_shape_are_refused(q, v):
    control = sr.control.ProjectedInverseDynamics(machine("four_bar"), "A", 1.0)
    text = (
        r"ProjectedInverseDynamics of four-bar: expected a time, 3 positions \(A, B, C\) and 3 velocities, got t = 0.0"
    )
    with pytest.raises(sr.StateError, match=text):
        control(0.0, q, v)
