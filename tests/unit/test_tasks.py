"""Task maps: values, J and J̇v against differences along the motion, and wrong names."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.dynamics.manifold import quat_log
from sarrus.errors import SarrusError, UnknownNameError

H = 1e-5


def chain() -> sr.System:
    """One of each: a free body, a ball, a hinge and a slider, so that every axis turns."""
    mech = sr.Mechanism("chain of all sorts")
    before = mech.body("raft", 1.0, (0.1, 0, 0), np.diag([1.0, 2.0, 1.5]))
    mech.free("F", before)
    for kind, name, axis in (("spherical", "S", None), ("revolute", "R", (1, 2, 2)), ("prismatic", "P", (0, 3, 4))):
        body = mech.body(f"after {name}", 1.0, (0.1, 0.2, 0.3), np.diag([1.0, 2.0, 1.5]))
        mech.joint(kind, name, before, body, axis, at=(0.5, 0.1, -0.2), rotation=sr.rotation_about((1, 0, 1), 0.7))
        before = body
    return sr.compile(mech)


@pytest.fixture(scope="module")
def moving() -> tuple[sr.System, sr.State]:
    system = chain()
    rng = np.random.default_rng(11)
    q = system.retract(np.array(system.layout.initial), rng.normal(size=system.layout.nv))
    return system, system.state(q, rng.normal(size=system.layout.nv))


def along(system: sr.System, state: sr.State, h: float) -> sr.State:
    """The state a time h later at constant velocity coordinates."""
    return system.state(system.retract(state.q, h * state.v), state.v)


def matrix_log(R: np.ndarray) -> np.ndarray:
    w = np.sqrt(max(0.0, 1 + np.trace(R))) / 2
    v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)
    return quat_log(np.array([w, *v]))


# central differences: error h² / 6 times a third derivative of order 100, and rounding eps / h
ATOL = 100 * H**2 + 20 * np.finfo(float).eps / H


@pytest.mark.parametrize("body", ["raft", "after S", "after R", "after P"])
def test_point_task(body, moving):
    system, state = moving
    task = system.task("point", sr.point_on(body, (0.3, -0.4, 0.5)))
    x, J, bias = task.evaluate(state)
    (xp, Jp, _), (xm, Jm, _) = (task.evaluate(along(system, state, h)) for h in (H, -H))
    position, R = system.frame(state, body)
    np.testing.assert_allclose(x, position + R @ (0.3, -0.4, 0.5), atol=1e-14)
    np.testing.assert_allclose(J @ state.v, (xp - xm) / (2 * H), atol=ATOL)
    np.testing.assert_allclose(bias, (Jp - Jm) @ state.v / (2 * H), atol=ATOL)
    assert np.max(np.abs(bias)) > 0.1


@pytest.mark.parametrize("body", ["raft", "after S", "after R", "after P"])
def test_orientation_task(body, moving):
    system, state = moving
    task = system.task("orientation", body)
    R, J, bias = task.evaluate(state)
    (Rp, Jp, _), (Rm, Jm, _) = (task.evaluate(along(system, state, h)) for h in (H, -H))
    np.testing.assert_allclose(R, system.frame(state, body)[1], atol=1e-14)
    np.testing.assert_allclose(J @ state.v, matrix_log(Rp @ Rm.T) / (2 * H), atol=ATOL)
    np.testing.assert_allclose(bias, (Jp - Jm) @ state.v / (2 * H), atol=ATOL)
    if body != "raft":
        assert np.max(np.abs(bias)) > 0.1


def test_coordinate_task(moving):
    system, state = moving
    x, J, bias = system.task("coordinate", "R").evaluate(state)
    assert x == pytest.approx([state["R"]])
    np.testing.assert_array_equal(J @ state.v, [state["R.v"]])
    np.testing.assert_array_equal(bias, [0.0])


def test_coordinate_of_a_joint_that_was_cut():
    """The Sarrus linkage: hinge C2 is cut and its angle measured; the chain turns it by the lean, like C1."""
    system = sr.compile(sr.library.build("sarrus"))
    assert "C2" not in system.layout.q_names
    state = system.assemble({"A1": 0.5}, velocities={"A1": 0.8})
    task = system.task("coordinate", "C2")
    x, J, bias = task.evaluate(state)
    np.testing.assert_allclose(x, [state["C1"]], atol=1e-12)
    np.testing.assert_allclose(J @ state.v, [state["C1.v"]], atol=1e-12)
    (_, Jp, _), (_, Jm, _) = (task.evaluate(along(system, state, h)) for h in (H, -H))
    np.testing.assert_allclose(bias, (Jp - Jm) @ state.v / (2 * H), atol=ATOL)


def test_tasks_follow_parameters():
    system = sr.compile(sr.library.build("pendulum")).with_parameters(L=2.5)
    state = system.assemble({"A": 0.3})
    x, _, _ = system.task("point", system.description.frames["tip"]).evaluate(state)
    np.testing.assert_allclose(x, [2.5 * np.cos(0.3), 0, 2.5 * np.sin(0.3)], atol=1e-15)


@pytest.mark.parametrize("name", sr.library.names())
def test_poses_of_all_bodies_and_frames(name):
    """By name, against the task of the same feature."""
    system = sr.compile(sr.library.build(name))
    state = system.assemble()
    poses = system.frames(state)
    model = system.description
    assert set(poses) == {b.name for b in model.bodies} | set(model.frames)
    places = {b.name: sr.point_on(b.name) for b in model.bodies} | dict(model.frames)
    for label, feature in places.items():
        p, R = poses[label]
        np.testing.assert_allclose(p, system.task("point", feature).evaluate(state)[0], atol=1e-14)
        turned = system.task("orientation", feature.body).evaluate(state)[0] @ feature.frame
        np.testing.assert_allclose(R, turned, atol=1e-14)
        np.testing.assert_array_equal(system.frame(state, label)[0], p)


def test_wrong_tasks(moving):
    system, _ = moving
    with pytest.raises(SarrusError, match="unknown task 'angle'; kinds: 'point', 'orientation', 'coordinate'"):
        system.task("angle", "R")
    with pytest.raises(SarrusError, match="task 'point': give a feature"):
        system.task("point", "raft")
    with pytest.raises(UnknownNameError, match=r"unknown body 'boat'.*'raft'"):
        system.task("orientation", "boat")
    with pytest.raises(UnknownNameError, match="unknown body 'boat'"):
        system.task("point", sr.point_on("boat"))
    with pytest.raises(UnknownNameError, match="unknown coordinate 'Q'"):
        system.task("coordinate", "Q")
    with pytest.raises(UnknownNameError, match=r"unknown frame 'boat'.*'raft'"):
        system.frame(moving[1], "boat")
