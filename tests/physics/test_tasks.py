"""Tasks: J by differences of x, J̇v by second differences, and everything against Pinocchio's frames."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import sarrus as sr
from oracles.cases import FORCE_CASES
from oracles.forces import State

from .support import closure_case, derivative, force_case, largest, random_case, second_derivative

ALL_JOINTS = "joint_options-0"  # every joint kind, some reversed
SECOND = 1e-8


def machines():
    return [force_case(ALL_JOINTS), closure_case("joint:prismatic", 0), random_case(9), random_case(14)]


def states(case, count=2):
    rng = np.random.default_rng(len(case.model.bodies))
    for _ in range(count):
        q, v = case.tree.random_configuration(rng), 0.3 * rng.normal(size=case.tree.nv)
        yield q, v, 0.3 * rng.normal(size=case.tree.nv), rng.uniform(-0.4, 0.4, 3)


def bodies(case):
    names = [b.name for b in case.model.bodies]
    return [*names[:: max(1, len(names) // 4)], names[-1]]


def rotation_rate(R, rate):
    """World angular velocity of a rotation matrix that changes at this rate."""
    W = rate @ R.T
    np.testing.assert_allclose(W, -W.T, atol=1e-8 * (1 + largest(W)))
    return np.array([W[2, 1], W[0, 2], W[1, 0]])


@pytest.mark.parametrize("index", range(4))
def test_point(index):
    case, system = machines()[index]
    for name in bodies(case):
        for q, v, vdot, at in states(case):
            point = sr.point_on(name, at)
            task = system.task("point", point)
            x, J, bias = task.evaluate(system.state(q, v))
            oracle = State(case.tree, q, v, 0.0).point(point)
            np.testing.assert_allclose(x, oracle.x, atol=1e-12)
            np.testing.assert_allclose(J, oracle.J, atol=1e-12 * (1 + largest(oracle.J)))
            np.testing.assert_allclose(bias, oracle.second, atol=1e-11 * (1 + largest(oracle.second)))

            def place(s, q=q, v=v, vdot=vdot, task=task):
                Q = case.tree.integrate(q, v + 0.5 * s * vdot, s)
                return task.evaluate(system.state(Q, v))[0]

            columns = [
                derivative(lambda s, e=e, q=q, task=task: task.evaluate(system.state(case.tree.integrate(q, e, s)))[0])
                for e in np.eye(case.tree.nv)
            ]
            np.testing.assert_allclose(np.array(columns).T, J, atol=1e-10 * (1 + largest(J)))
            size = 1 + largest(bias) + largest(J)
            np.testing.assert_allclose(second_derivative(place), J @ vdot + bias, atol=SECOND * size)


@pytest.mark.parametrize("index", range(4))
def test_orientation(index):
    """x is the rotation matrix; J v the angular velocity and J v̇ + J̇v the angular acceleration, in world axes."""
    case, system = machines()[index]
    for name in bodies(case):
        task = system.task("orientation", name)
        for q, v, vdot, _ in states(case):
            R, J, bias = task.evaluate(system.state(q, v))
            oracle = case.tree.motion(q, v, name)
            np.testing.assert_allclose(R, oracle.R, atol=1e-12)
            np.testing.assert_allclose(J, oracle.J_omega, atol=1e-12)
            np.testing.assert_allclose(J @ v, oracle.omega, atol=1e-12)
            np.testing.assert_allclose(bias, oracle.alpha, atol=1e-11 * (1 + largest(oracle.alpha)))
            for e in np.eye(case.tree.nv):

                def turned(s, e=e, q=q, task=task):
                    return task.evaluate(system.state(case.tree.integrate(q, e, s)))[0]

                np.testing.assert_allclose(rotation_rate(R, derivative(turned)), J @ e, atol=1e-10)

            def spin(s, q=q, v=v, vdot=vdot, task=task):
                Q, V = case.tree.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot
                _, now, _ = task.evaluate(system.state(Q, V))
                return now @ V

            np.testing.assert_allclose(derivative(spin), J @ vdot + bias, atol=1e-9 * (1 + largest(bias)))


@pytest.mark.parametrize("index", range(4))
def test_coordinate(index):
    """All scalar coordinates, the components of quaternions too; x is the coordinate itself."""
    case, system = machines()[index]
    for k, name in enumerate(case.tree.names_q):
        task = system.task("coordinate", name)
        for q, v, vdot, _ in states(case, 1):
            x, J, bias = task.evaluate(system.state(q, v))
            assert np.shape(J) == (1, case.tree.nv) and float(x[0]) == q[k]

            def value(s, q=q, v=v, vdot=vdot, k=k):
                return case.tree.integrate(q, v + 0.5 * s * vdot, s)[k]

            np.testing.assert_allclose(derivative(value), J[0] @ v, atol=1e-10 * (1 + largest(v)))
            np.testing.assert_allclose(second_derivative(value), J[0] @ vdot + bias[0], atol=SECOND)


def test_coordinate_of_a_joint_that_was_cut():
    """Measured between its bodies: rate and second rate by differences, along the loop's own motion or not."""
    for name in ("joint:prismatic", "joint:revolute"):
        case, system = closure_case(name, 0)
        (cut,) = case.tree.tree.cuts
        task = system.task("coordinate", cut.name)
        rng = np.random.default_rng(4)
        v, vdot = 0.3 * rng.normal(size=(2, case.tree.nv))
        _, J, bias = task.evaluate(system.state(case.q, v))

        def value(s, case=case, system=system, v=v, vdot=vdot, task=task):
            Q = case.tree.integrate(case.q, v + 0.5 * s * vdot, s)
            return task.evaluate(system.state(Q, v))[0][0]

        assert derivative(value) == pytest.approx(J[0] @ v, rel=1e-9, abs=1e-10)
        assert second_derivative(value) == pytest.approx(J[0] @ vdot + bias[0], abs=SECOND * (1 + largest(J)))


def test_frames_stand_where_pinocchio_puts_them():
    """Bodies and named frames, single and in arrays of states."""
    case = next(c for c in FORCE_CASES if c.name == ALL_JOINTS)
    mech, feature = deepcopy(case.mechanism), sr.weld_on("B5", (0.1, -0.2, 0.3), sr.rotation_about((1, 2, 3), 0.7))
    mech.frame("tool", feature)
    system = sr.compile(mech)
    rng = np.random.default_rng(5)
    q = np.stack([case.tree.random_configuration(rng) for _ in range(3)])
    frames = system.frames(system.state(q))
    assert set(frames) == {"tool", *(b.name for b in case.model.bodies)}
    for i in range(3):
        for body in case.model.bodies:
            R, p = case.tree.body_pose(q[i], body.name)
            np.testing.assert_allclose(frames[body.name][0][i], p, atol=1e-12)
            np.testing.assert_allclose(frames[body.name][1][i], R, atol=1e-12)
        R, p = case.tree.body_pose(q[i], "B5")
        place, turned = system.frame(system.state(q[i]), "tool")
        np.testing.assert_allclose(place, p + R @ feature.at, atol=1e-12)
        np.testing.assert_allclose(turned, R @ feature.frame, atol=1e-12)
