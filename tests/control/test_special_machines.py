"""Controllers on machines with duplicated, moving and nonholonomic constraints, and exact decay in quasi-velocities."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .laws import Plant
from .support import machine


def duplicated() -> sr.System:
    """The planar platform with two of its loops closed twice."""
    mech = sr.library.build("planar_platform")
    for k, degrees in ((1, 210), (2, 330)):
        corner = 0.2 * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        mech.close(
            f"leg{k} again", sr.point_on(f"shank{k}", (0.5, 0)), sr.point_on("platform", tuple(corner.round(15)))
        )
    return sr.compile(mech)


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
def test_duplicated_loops_change_nothing(formulation):
    """Sheet 12.5: two duplicated loop rows, the same motion, deviation 6e-11."""
    task = ["platform.x", "platform.z", "platform.angle"]
    goal = np.array([0.0, 0.0, 0.6 + np.radians(30)])
    ends = []
    for system in (machine("planar_platform"), duplicated()):
        control = sr.control.TaskSpace(system, task, goal, formulation=formulation)
        traj = sr.simulate(system, system.assemble(), 0.5, control=control, method="rk4", dt=1e-3)
        where = [system.layout.q_names.index(n) for n in task]
        e = goal - traj.q[:, where]
        expected = e[0] * ((1 + 10 * traj.t) * np.exp(-10 * traj.t))[:, None]
        assert np.abs(e - expected).max() < 1e-10
        ends.append((traj.q[-1], traj.u[100]))
    assert system.redundant
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-10)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=1e-7)


def test_moving_constraint_is_made_up_for():
    """An arm of three links whose first joint is driven in time: the tip does not notice."""
    mech = sr.Mechanism("arm on a wave", planar=True)
    before, at = mech.ground, (0, 0)
    for i, start in enumerate((0.4, 0.7, 0.5), start=1):
        link = mech.body(f"link{i}", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
        mech.revolute(f"q{i}", before, link, at=at, initial=start)
        before, at = link, (1, 0)
    mech.prescribe("drive", "q1", lambda t: 0.4 + 0.2 * ca.sin(3 * t))
    mech.motor("q2")
    mech.motor("q3")
    mech.frame("tip", sr.point_on(before, at))
    system = sr.compile(mech)
    start = system.assemble()
    tip = lambda t, x: x["tip.position"][[0, 2]]  # noqa: E731
    home = system.frame(start, "tip")[0][[0, 2]]
    for formulation in ("direct", "minimal", "partitioned"):
        control = sr.control.TaskSpace(system, tip, home, formulation=formulation)
        traj = sr.simulate(system, start, 2.0, control=control, rtol=1e-10)
        # at the start the tip moves with the drive; the error then obeys its own equation
        task = system.task("point", sr.point_on("link3", (1, 0)))
        rate = (task.evaluate(start)[1] @ start.v)[[0, 2]]
        t = traj.t[-1]
        place = system.frame(traj.final, "tip")[0][[0, 2]]
        np.testing.assert_allclose(place - home, rate * t * np.exp(-10 * t), atol=1e-8)


def test_nonholonomic_constraint_is_kept_under_control():
    """A sledge on a blade with a drive along it and one that turns it: the turn and the pace are controlled."""
    mech = sr.Mechanism("sledge")
    body = mech.body("sledge", mass=2.0, inertia=sr.box(2.0, (0.6, 0.3, 0.2)))
    mech.planar_joint("sledge", mech.ground, body, axis="z")
    mech.knife_edge("runner", sr.point_on(body, (-0.2, 0, 0)), direction="y")
    mech.thruster("pull", sr.point_on(body), "x")
    mech.motor("sledge.angle")
    system = sr.compile(mech)
    control = sr.control.TaskSpace(system, ["sledge.angle", "sledge.x"], lambda t: [0.5 * ca.sin(t), 0.3 * t**2])
    traj = sr.simulate(system, system.assemble(), 2.0, control=control, rtol=1e-10)
    start = np.array([0, -0.5])  # error of the turn's rate at the start; x starts without one
    e = traj["sledge.angle"] - 0.5 * np.sin(traj.t)
    np.testing.assert_allclose(e, start[1] * traj.t * np.exp(-10 * traj.t), atol=1e-7)
    np.testing.assert_allclose(traj["sledge.x"], 0.3 * traj.t**2, atol=1e-7)
    for k in range(0, len(traj.t), 5):
        terms = system.terms(system.state(traj.q[k], traj.v[k]))
        assert np.abs(terms.A @ traj.v[k]).max() < 1e-10


@pytest.mark.parametrize("kd", [0.3, 5.0])
def test_quasi_velocity_error_decays_exactly(kd):
    """Sheet 9.3: with a skew Γ_r, |eps| = |eps0| exp(-K_d t) from errors that are not small."""
    system = machine("geared_chain")
    home = system.assemble().q
    N = np.zeros((6, 4))  # q1 carries q2 and q3
    N[[0, 1, 2], 0], N[3, 1], N[4, 2], N[5, 3] = (1, 1 / 3, 2 / 3), 1, 1, 1

    def reference(t):
        free = [0.3 * ca.sin(2 * t), 0.4 * ca.cos(2.5 * t), -0.3 * ca.sin(3 * t), 0.2 * ca.sin(t)]
        return [float(home[k]) + sum(float(N[k, j]) * free[j] for j in range(4)) for k in range(6)]

    control = sr.control.QuasiVelocityTracking(system, reference, kp=4.0, kd=kd)
    start = system.state(home + N @ [0.5, -0.4, 0.6, 0.3], N @ [-2.0, 3.0, 4.0, 1.0])
    traj = sr.simulate(system, start, 2.0, control=control, rtol=1e-11, atol=1e-12)
    symbol = ca.SX.sym("t")
    qd = ca.vertcat(*reference(symbol))
    desired = ca.Function("desired", [symbol], [qd, ca.jacobian(qd, symbol)])
    sizes = []
    for k in range(len(traj.t)):
        x = Plant(system, system.state(traj.q[k], traj.v[k]))
        q, v = (np.array(part).ravel() for part in desired(traj.t[k]))
        eps = x.Z.T @ x.M @ (traj.v[k] - v + 4.0 * (traj.q[k] - q))
        sizes.append(np.linalg.norm(eps))
    np.testing.assert_allclose(sizes, sizes[0] * np.exp(-kd * traj.t), rtol=1e-6, atol=1e-9)
    assert sizes[0] > 1
    if kd == 5.0:
        q = np.array(desired(2.0)[0]).ravel()
        assert np.linalg.norm(traj.q[-1] - q) < 0.01 * np.linalg.norm(start.q - home)


def test_a_model_without_one_of_the_constraints():
    """The controller of a free cart drives one that a stop holds for a while: a constraint that it never heard of."""
    mech = sr.Mechanism("held cart", gravity=(0, 0, 0))
    for name in ("x", "y"):
        mech.prismatic(name, mech.ground, mech.body(name, 1.0), name)
        mech.motor(name)
    free = sr.compile(mech)
    other = sr.Mechanism("held cart", gravity=(0, 0, 0))
    for name in ("x", "y"):
        other.prismatic(name, other.ground, other.body(name, 1.0), name)
        other.motor(name)
    other.lock("stop", "x", 0.0)
    held = sr.compile(other)
    control = sr.control.ProjectedInverseDynamics(free, ["x", "y"], [1.0, 1.0], 100, 20)
    release = sr.Event("release", lambda t: t - 0.5, direction=1, action=sr.Change(active={"stop": False}))
    traj = sr.simulate(held, held.assemble(), 3.0, control=control, events=[release])
    assert traj.status.ok
    before = traj.t < 0.5
    np.testing.assert_allclose(traj["x"][before], 0, atol=1e-12)
    np.testing.assert_allclose(traj.q[-1], 1.0, atol=1e-6)
