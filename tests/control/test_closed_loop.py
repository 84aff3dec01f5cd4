"""What closed loops must do: decay at the designed rates, keep motion and force apart, pass singular positions and
contacts with bounded inputs."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .support import machine


@pytest.mark.parametrize(
    ("name", "task", "offset"),
    [
        ("four_bar", ("A",), {"A": 1.05}),
        ("stewart", tuple(f"leg{i}" for i in range(6)), {}),
        ("planar_platform", ("platform.x", "platform.z", "platform.angle"), {"platform.x": 0.05}),
    ],
)
def test_errors_decay_with_the_designed_eigenvalues(name, task, offset):
    """kp = 12, kd = 7: roots -3 and -4; both rates are read off the error of the simulated motion."""
    system = machine(name)
    goal = system.assemble()
    start = system.assemble(offset)
    if not offset:
        start = system.assemble({"platform.position": start["platform.position"] + [0.05, 0.02, -0.08]})
    where = [system.layout.q_names.index(n) for n in task]
    control = sr.control.ProjectedInverseDynamics(system, task, goal.q[where], kp=12.0, kd=7.0)
    times = np.linspace(0, 2, 41)
    traj = sr.simulate(system, start, 2.0, control=control, output=times, rtol=1e-11, atol=1e-13)
    e = traj.q[:, where] - goal.q[where]
    k = int(np.argmax(np.abs(e[0])))
    # e(t + h) as a combination of e and its rate: the transition matrix has the eigenvalues exp(-3h), exp(-4h)
    column = np.stack([e[:, k], traj.v[:, [system.layout.v_names.index(n) for n in task][k]]])
    step = column[:, 1:] @ np.linalg.pinv(column[:, :-1])
    rates = np.sort(np.log(np.linalg.eigvals(step).real) / 0.05)
    np.testing.assert_allclose(rates, [-4, -3], rtol=0.01)


HYBRID = (  # machine, further motors, task, constraint whose force is controlled
    ("slider_crank", (), ("A",), "slider"),
    ("cartesian_on_circle", (), ("x",), "circle"),
    ("geared_chain", (), ("q1", "q4", "q5", "q6"), "gear3"),
    ("two_arms", (), ("object.x", "object.z", "object.angle"), "left grip"),
)


@pytest.mark.parametrize(
    ("name", "motors", "task", "force"),
    HYBRID,
)
def test_motion_and_force_do_not_notice_each_other(name, motors, task, force):
    """Change the wanted force: the motion is the same; change the wanted motion: the force is."""
    system = machine(name, motors)
    start = system.assemble()
    where = [system.layout.q_names.index(n) for n in task]
    kept = [k for k in range(system.layout.m) if system.layout.rows[k].group == force and k in system.kept]

    def run(shift, push):
        goal = start.q[where]
        path = lambda t: [float(g) + shift * ca.sin(3 * t) for g in goal]  # noqa: E731
        wanted = {force: lambda t: [push * (1 + ca.sin(5 * t))] * len(kept)}
        control = sr.control.HybridMotionForce(system, task, path, wanted)
        traj = sr.simulate(system, start, 0.5, control=control, output=np.linspace(0, 0.5, 11), rtol=1e-12, atol=1e-13)
        lam = system.solve(system.state(traj.q, traj.v, traj.t), traj.u).lam[:, kept]
        return traj, lam

    (base, lam), (pushed, _), (moved, other) = run(0.02, 1.0), run(0.02, 30.0), run(0.1, 1.0)
    assert np.abs(pushed.u - base.u).max() > 0.1  # the inputs do
    np.testing.assert_allclose(pushed.q[:, where], base.q[:, where], atol=1e-9)
    assert np.abs(moved.q[:, where] - base.q[:, where]).max() > 0.01
    np.testing.assert_allclose(other, lam, atol=1e-9 * (1 + np.abs(moved.u).max()))
    np.testing.assert_allclose(
        lam, (1 + np.sin(5 * base.t))[:, None] * np.ones(len(kept)), atol=1e-9 * (1 + np.abs(base.u).max())
    )


@pytest.mark.parametrize(
    ("name", "motors", "task", "force"),
    [
        *HYBRID,
        ("four_bar", ("B", "C"), ("A",), "D"),
        ("planar_platform", ("hip1", "hip2", "hip3"), ("platform.x", "platform.z", "platform.angle"), "leg1"),
    ],
)
def test_errors_of_motion_and_force_do_not_feed_each_other(name, motors, task, force):
    """Cross-sensitivities below 1e-9: a hundred times the force, or twice the start's error of the motion."""
    system = machine(name, motors)
    home = system.assemble()
    where = [system.layout.q_names.index(n) for n in task]
    kept = [k for k in system.kept if system.layout.rows[k].group == force]
    offset = np.linspace(0.03, 0.06, len(task))

    def run(part, push):
        """Errors of motion and of force, from a start off the set point."""
        start = system.assemble(dict(zip(task, home.q[where] + part * offset, strict=True)))
        wanted = {force: lambda t: [push * (1 + ca.sin(5 * t))] * len(kept)}
        control = sr.control.HybridMotionForce(system, task, home.q[where], wanted)
        traj = sr.simulate(system, start, 0.5, control=control, output=np.linspace(0, 0.5, 26), rtol=1e-12, atol=1e-14)
        lam = system.solve(system.state(traj.q, traj.v, traj.t), traj.u).lam[:, kept]
        return traj.q[:, where] - home.q[where], lam - (push * (1 + np.sin(5 * traj.t)))[:, None], traj.u

    (motion, loads, u), (pushed, _, strong), (_, moved, _) = run(1, 1.0), run(1, 101.0), run(2, 1.0)
    assert np.abs(strong - u).max() > 50  # it takes other inputs indeed
    assert np.abs(motion[0]).max() == pytest.approx(offset.max())
    assert np.abs(pushed - motion).max() / 100 < 1e-9  # [rad or m for each N]
    assert np.abs(moved - loads).max() / offset.max() < 1e-9  # [N for each rad or m]
    assert np.abs(loads).max() < 1e-9


def test_no_law_runs_away_from_a_singular_position():
    """Slider-crank exactly where it may fold, at rest and turning: all laws, with bounded torques."""
    system = machine("slider_crank")
    goal = system.assemble({"A": 1.2})
    laws = [
        sr.control.ProjectedInverseDynamics(system, "A", 1.2, 25, 10),
        sr.control.TaskSpace(system, "A", 1.2, 25, 10),
        sr.control.TaskSpace(system, "A", 1.2, 25, 10, formulation="partitioned"),
        sr.control.HybridMotionForce(system, "A", 1.2, {"slider": 2.0}, 25, 10),
        sr.control.QuasiVelocityRegulation(system, goal, kp=20, kd=10),
        sr.control.QuasiVelocityTracking(system, goal.q, kp=3, kd=10),
        sr.control.DependentCoordinates(system, goal.q, kp=25, kd=10),
    ]
    for v in ([0.0, 0.0], [1.0, -2.0]):
        start = system.state([np.pi / 2, np.pi], v)
        assert system.rank(start).mobility == 2
        for law in laws:
            traj = sr.simulate(system, start, 4.0, control=law)
            assert traj.status.ok, str(traj.status)
            assert traj["A"][-1] == pytest.approx(1.2, abs=2e-3)
            # inertia at most 5 kg m², commanded at most 25 * 0.4 + 10 * 1 + what the second joint turns faster
            assert np.abs(traj.u).max() < 5 * 25
            assert np.abs(system.terms(traj.final).phi).max() < 1e-10


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
def test_where_the_motors_lose_a_direction(formulation):
    """Sheet 12.5: level, the platform's legs meet in a point and the elbows cannot turn it; they drive it through."""
    system = machine("planar_platform")
    pose = ["platform.x", "platform.z", "platform.angle"]
    path = sr.control.MinimumJerk([0, 0, 0.6], [0, 0, -0.6], 1.5)
    control = sr.control.TaskSpace(system, pose, path, formulation=formulation)
    traj = sr.simulate(system, system.assemble(), 2.5, control=control)
    assert traj.status.ok
    assert np.abs(traj.u).max() < 40  # 8 kg: about 20 N m hold it
    np.testing.assert_allclose([traj[name][-1] for name in pose], [0, 0, -0.6], atol=1e-3)
    # started there at rest, it is left where it is as far as the turn goes, and all is bounded
    level = system.assemble(dict.fromkeys(pose, 0.0))
    held = sr.simulate(system, level, 0.5, control=control, max_steps=20_000)
    assert np.abs(control(0.0, level.q, level.v)).max() < 40
    assert held.status.ok
    assert np.abs(held.u).max() < 100


@pytest.mark.parametrize("sample", [None, 1e-3])
def test_through_a_singular_position_under_control(sample):
    """The slider-crank turns through its singular positions: one controller, bounded torques, no loss of accuracy."""
    system = machine("slider_crank")
    start = system.assemble({"A": np.pi / 4}, {"A": 1.5})
    control = sr.control.ProjectedInverseDynamics(system, "A", lambda t: np.pi / 4 + 1.5 * t)
    options = {} if sample is None else {"method": "rk4", "dt": 1e-3}
    traj = sr.simulate(system, start, 5.0, control=control, sample=sample, **options)
    assert traj.status.ok, str(traj.status)
    assert traj["A"][-1] > 1.5 * np.pi + 1  # past pi/2 and 3 pi/2
    error = np.abs(traj["A"] - np.pi / 4 - 1.5 * traj.t)
    assert error.max() < (1e-6 if sample is None else 5e-4)
    # crank at constant speed: the torque is that of gravity and of 1 + 4 sin² of the angle
    angle = traj["A"]
    reduced = 4 * np.sin(angle) * np.cos(angle) * 1.5**2 + 9.81 * np.cos(angle)
    direction = np.array([1, -2])  # least torques: along the motion, p = direction . u
    bound = np.abs(reduced).max() / np.linalg.norm(direction) * 1.05 + (0 if sample is None else 1)
    assert np.linalg.norm(traj.u, axis=1).max() < bound


def latch(one_sided: bool = False) -> sr.System:
    """A driven arm of two links whose tip can be latched to a vertical line, or touches it; both joints have motors."""
    mech = sr.Mechanism("arm and wall", planar=True)
    upper = mech.body("upper", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
    lower = mech.body("lower", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
    mech.revolute("A", mech.ground, upper, initial=0.3)
    mech.revolute("B", upper, lower, at=(1, 0), initial=1.2)
    tip = sr.point_on(lower, (1, 0))
    mech.close("wall", sr.plane_on(mech.ground, (1.2, 0), "x"), tip)
    if one_sided:
        mech.one_sided("wall", "below")
    mech.frame("tip", tip)
    mech.motor("A")
    mech.motor("B")
    return sr.compile(mech)


def test_a_contact_is_made_under_control():
    """The tip runs into the wall, is held there and slides on along it; the same controller all the time."""
    system = latch()
    start = system.assemble({"A": 0.9, "B": 1.6}, active={"wall": False})

    def tip(t, x):
        return [x["tip.position"][2], x["tip.position"][0]]

    control = sr.control.TaskSpace(system, tip, [1.0, 1.3], kp=40.0, kd=12.0)
    # a hair before the wall, so that the tip on the wall is past it for good
    meet = sr.Event(
        "touch",
        lambda t, x: x["tip.position"][0] - (1.2 - 1e-7),
        direction=1,
        action=lambda t, x: sr.Change(active={"wall": True}),
    )
    traj = sr.simulate(system, start, 4.0, control=control, active={"wall": False}, events=[meet])
    assert traj.status.ok, str(traj.status)
    assert traj.events[0].action == "wall switched on"
    place = system.frame(traj.final, "tip")[0]
    assert place[0] == pytest.approx(1.2, abs=1e-9)  # projected onto the wall
    assert place[2] == pytest.approx(1.0, abs=1e-4)
    assert np.abs(traj.u).max() < 100
    # without being told of the contact the controller would still count on the free arm
    at = traj.final
    told = control.numbers_with({"wall": True})
    untold = control.numbers_with({"wall": False})
    assert not np.array_equal(told, untold)
    J = system.task("point", next(iter(system.description.frames.values()))).evaluate(at)[1]
    a = system.acceleration(at, traj.u[-1], active={"wall": True})
    assert abs((J @ a)[0]) < 1e-9


@pytest.mark.parametrize("sample", [None, 1e-3])
def test_a_controller_is_told_of_contacts_that_close_and_open_by_themselves(sample):
    """An arm runs into a one-sided wall and presses on it by a falling force: it leaves when that comes to zero."""
    system = latch(one_sided=True)
    start = system.assemble({"A": 0.9, "B": 1.6})
    goal = sr.control.Samples([0.0, 1.4, 2.0, 3.0], [[0.4, 1.0], [0.4, 1.0], [0.9, 1.6], [0.9, 1.6]])
    control = sr.control.HybridMotionForce(system, ["A", "B"], goal, {"wall": lambda t: -10 * (1.5 - t)})
    traj = sr.simulate(system, start, 5.0, control=control, sample=sample)
    assert traj.status.ok, str(traj.status)
    states = [segment.active["wall"] for segment in traj.segments]
    assert states[-2:] == [True, False]
    assert not states[0]
    closed, opened = (traj.segments[k].start for k in (-2, -1))
    # sampled: a force of nothing is held for a period
    assert traj.t[opened] == pytest.approx(1.5, abs=1e-7 if sample is None else 1e-3 + 1e-9)
    assert opened - closed > 10
    rows = range(closed + (1 if sample is None else 2), opened)  # told at the first tick after it closed
    force = [system.constraint_forces(traj.state(k), traj.u[k], active={"wall": True})["wall"][0] for k in rows]
    # held inputs: what the force changes by in a period, soon after the impact
    np.testing.assert_allclose(force, -10 * (1.5 - traj.t[list(rows)]), atol=1e-7 if sample is None else 0.2)
    np.testing.assert_allclose(traj.final.q, [0.9, 1.6], atol=1e-6)
    for row, on in ((1, False), (closed + 5, True), (opened + 5, False)) if sample is None else ():
        control.numbers[:] = control.numbers_with({"wall": on})  # the code called by itself, told by hand
        u = control(traj.t[row], traj.q[row], traj.v[row])
        np.testing.assert_allclose(traj.u[row], u, rtol=1e-9)


def test_what_inputs_can_do_is_told():
    arms = machine("two_arms")
    home = arms.assemble()
    found = sr.control.controllability(arms, home, ["object.x", "object.z"], forces=["left grip", "right grip"])
    assert (found.mobility, found.reached) == (3, 3)
    assert len(found.internal) == 3
    assert found.task == (2, 2)
    assert found.forces == (6, 3)
    assert "forces: 3 of 6 can be set" in str(found)
    bar = sr.compile(sr.library.build("five_bar", motors=("A",)))
    found = sr.control.controllability(bar, bar.assemble(), ["A", "E"])
    assert (found.mobility, found.reached, found.task) == (2, 1, (2, 1))
    assert "not reached: (" in str(found)
    # sheet 8: the selector test "S~ A' of full rank" says nothing for a tree, the task can still be controlled
    chain = machine("underactuated_chain")
    found = sr.control.controllability(chain, chain.assemble(), lambda t, x: x["tip.position"][[0, 2]])
    assert (found.mobility, found.reached, found.task) == (3, 2, (2, 2))
    # sheet 12.5: at platform angle 0 the legs meet in a point and the elbows lose the platform's turn
    platform = machine("planar_platform")
    level = platform.assemble({"platform.x": 0, "platform.z": 0, "platform.angle": 0})
    assert sr.control.controllability(platform, level).reached == 2
    assert sr.control.controllability(platform, platform.assemble()).reached == 3
