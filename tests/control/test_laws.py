"""Compiled controllers against the laws written from the sheet with dense NumPy, at random states of many machines."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from . import laws
from .laws import Plant
from .support import machine, moving

KP, KD = 30.0, 7.0


def path(amplitude, phase):
    """A smooth path, as a function that CasADi traces and as numbers with both derivatives."""

    def symbolic(t):
        return [a + 0.3 * ca.sin(2 * t + p) for a, p in zip(amplitude, phase, strict=True)]

    def numbers(t):
        a, p = np.asarray(amplitude), np.asarray(phase)
        return a + 0.3 * np.sin(2 * t + p), 0.6 * np.cos(2 * t + p), -1.2 * np.sin(2 * t + p)

    return symbolic, numbers


def coordinate_rows(system, names):
    J = np.zeros((len(names), system.layout.nv))
    for k, name in enumerate(names):
        J[k, system.layout.find(name, "v").start] = 1.0
    return J


def command(system, state, names, numbers, kp=KP, kd=KD):
    x, rate, bend = numbers(state.t)
    J = coordinate_rows(system, names)
    value = np.array([state[f"{name}.q"] for name in names])
    return J, np.zeros(len(names)), bend + kd * (rate - J @ state.v) + kp * (x - value)


CHARTS = [
    ("slider_crank", (), ("A",)),
    ("four_bar", ("B", "C"), ("A",)),
    ("parallelogram", ("A1", "A2"), ("A0",)),
    ("planar_platform", (), ("platform.x", "platform.z", "platform.angle")),
    ("two_arms", (), ("object.x", "object.z", "object.angle")),
    ("stewart", (), tuple(f"leg{i}" for i in range(6))),
    ("geared_chain", (), ("q1", "q4", "q5", "q6")),
]
ids = [case[0] for case in CHARTS]


@pytest.mark.parametrize(("name", "motors", "task"), CHARTS, ids=ids)
def test_projected_inverse_dynamics(name, motors, task, rng):
    system = machine(name, motors)
    home = system.assemble()
    start = [home[f"{n}.q"] for n in task]
    symbolic, numbers = path(start, np.arange(len(task)))
    weights = rng.uniform(0.5, 2, system.layout.nu)
    control = sr.control.ProjectedInverseDynamics(system, task, symbolic, KP, KD, weights=weights)
    for _ in range(4):
        state = moving(system, rng)
        u = control(state.t, state.q, state.v)
        J, bias, wanted = command(system, state, task, numbers)
        x = Plant(system, state)
        expected = laws.projected(x, J, bias, wanted, weights)
        np.testing.assert_allclose(u, expected, atol=1e-8 * (1 + np.abs(expected).max()))
        # and the machine does what was commanded
        np.testing.assert_allclose(J @ system.acceleration(state, u), wanted, atol=1e-8 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
@pytest.mark.parametrize(("name", "motors", "task"), CHARTS, ids=ids)
def test_task_control(name, motors, task, formulation, rng):
    system = machine(name, motors)
    home = system.assemble()
    if name in ("two_arms", "geared_chain", "planar_platform"):
        task = task[:2]  # redundant
    symbolic, numbers = path([home[f"{n}.q"] for n in task], np.arange(len(task)))
    control = sr.control.TaskSpace(system, task, symbolic, KP, KD, formulation=formulation)
    for _ in range(3):
        state = moving(system, rng)
        u = control(state.t, state.q, state.v)
        J, bias, wanted = command(system, state, task, numbers)
        x = Plant(system, state)
        expected = (laws.partitioned if formulation == "partitioned" else laws.master)(x, J, bias, wanted)
        np.testing.assert_allclose(u, expected, atol=1e-7 * (1 + np.abs(expected).max()))
        np.testing.assert_allclose(J @ system.acceleration(state, u), wanted, atol=1e-8 * (1 + np.abs(wanted).max()))


def test_underactuated_task_uses_the_motors_alone(rng):
    system = machine("underactuated_chain")
    home = system.assemble()
    goal = system.frame(home, "tip")[0][[0, 2]] + 0.1
    results = {}
    for formulation in ("direct", "minimal", "partitioned"):
        control = sr.control.TaskSpace(system, tip, goal, KP, KD, formulation=formulation)
        state = system.state(home.q + 0.05, [0.3, -0.2, 0.5])
        results[formulation] = u = control(0.0, state.q, state.v)
        task = system.task("point", frame_feature(system))
        at, J, bias = task.evaluate(state)
        J, bias = J[[0, 2]], bias[[0, 2]]
        wanted = KP * (goal - at[[0, 2]]) - KD * J @ state.v
        np.testing.assert_allclose(J @ system.acceleration(state, u) + bias, wanted, atol=1e-9)
        np.testing.assert_allclose(u, laws.master(Plant(system, state), J, bias, wanted), rtol=1e-9)


def frame_feature(system):
    return next(iter(system.description.frames.values()))


def tip(t, x):
    return [x["tip.position"][0], x["tip.position"][2]]


def test_function_tasks_have_the_derivatives_of_point_tasks(rng):
    """A task by a function and the same task by system.task give the same inputs: J and its rate are right."""
    system = machine("geared_chain")
    feature = frame_feature(system)
    both = [
        sr.control.TaskSpace(system, task, goal, KP, KD)
        for task, goal in ((tip, [0.5, 0.3]), (lambda t, x: x["tip.position"][[0, 2]], [0.5, 0.3]))
    ]
    for _ in range(3):
        state = moving(system, rng)
        u = [c(state.t, state.q, state.v) for c in both]
        np.testing.assert_allclose(u[0], u[1], rtol=1e-12)
        at, J, bias = (a[[0, 2]] for a in system.task("point", feature).evaluate(state))
        wanted = KP * ([0.5, 0.3] - at) - KD * J @ state.v
        np.testing.assert_allclose(u[0], laws.master(Plant(system, state), J, bias, wanted), rtol=1e-8, atol=1e-8)


def test_priorities_are_strict_and_the_rest_follows_the_posture(rng):
    system = machine("geared_chain")
    posture = sr.control.Posture(lambda t, x: x["q4"] ** 2 + 0.5 * x["q5"] ** 2, gain=3.0, damping=2.0)
    for formulation in ("direct", "partitioned"):
        control = sr.control.TaskSpace(
            system, lambda t, x: x["tip.position"][0], 0.5, KP, KD, formulation,
            then=[(tip, [0.2, 0.6]), ("q4", 1.0)], posture=posture,
        )  # fmt: skip
        for _ in range(3):
            state = moving(system, rng)
            x = Plant(system, state)
            at, J, bias = (a[[0, 2]] for a in system.task("point", frame_feature(system)).evaluate(state))
            e4 = coordinate_rows(system, ["q4"])
            tasks = [
                (J[:1], bias[:1], KP * (0.5 - at[:1]) - KD * J[:1] @ state.v),
                (J, bias, KP * ([0.2, 0.6] - at) - KD * J @ state.v),
                (e4, np.zeros(1), KP * (1.0 - state["q4"]) - KD * e4 @ state.v),
            ]
            slope = np.zeros(6)
            slope[3], slope[4] = 2 * state["q4"], state["q5"]
            p = laws.prioritised(x, tasks, x.G - 3.0 * slope - 2.0 * x.M @ state.v)
            vdot = x.Z @ p + x.Phibar @ x.gamma
            u = control(state.t, state.q, state.v)
            np.testing.assert_allclose(system.acceleration(state, u), vdot, atol=1e-7 * np.abs(vdot).max())
            # the first task is served whatever the others want
            np.testing.assert_allclose(tasks[0][0] @ vdot + tasks[0][1], tasks[0][2], atol=1e-9 * np.abs(vdot).max())


@pytest.mark.parametrize(
    ("name", "motors", "task", "group"),
    [
        ("slider_crank", (), ("A",), "slider"),
        ("four_bar", ("B", "C"), ("A",), "D"),
        ("geared_chain", (), ("q1", "q4", "q5", "q6"), "gear2"),
        ("two_arms", (), ("object.x", "object.z", "object.angle"), "left grip"),
        ("cartesian_on_circle", (), ("x",), "circle"),
    ],
)
def test_hybrid_gives_motion_and_forces(name, motors, task, group, rng):
    system = machine(name, motors)
    home = system.assemble()
    symbolic, numbers = path([home[f"{n}.q"] for n in task], np.arange(len(task)))
    kept = [k for k in range(*system.layout.group_rows(group).indices(system.layout.m)) if k in system.kept]
    goal = rng.uniform(-5, 5, len(kept))
    control = sr.control.HybridMotionForce(
        system, task, symbolic, {group: lambda t: [float(g) + ca.sin(t) for g in goal]}, KP, KD
    )
    assert len(control.forces) == len(kept)
    for _ in range(3):
        state = moving(system, rng)
        u = control(state.t, state.q, state.v)
        J, bias, wanted = command(system, state, task, numbers)
        solution = system.solve(state, u)
        np.testing.assert_allclose(J @ solution.vdot, wanted, atol=1e-8 * (1 + np.abs(wanted).max()))
        target = goal + np.sin(state.t)
        np.testing.assert_allclose(solution.lam[kept], target, atol=1e-7 * (1 + np.abs(u).max()))
        if system.layout.nu == system.layout.nv and len(kept) == len(system.kept):
            full = np.zeros(system.layout.m)
            full[kept] = target
            force = laws.hybrid(Plant(system, state), J, bias, wanted, full)
            np.testing.assert_allclose(system.terms(state).B @ u, force, atol=1e-8 * (1 + np.abs(force).max()))


@pytest.mark.parametrize(
    ("name", "motors"),
    [
        ("slider_crank", ()),
        ("geared_chain", ()),
        ("cartesian_on_circle", ()),
        ("four_bar", ("B",)),
        ("parallelogram", ("A1",)),  # redundant rows
    ],
)
def test_quasi_velocity_laws(name, motors, rng):
    system = machine(name, motors)
    layout = system.layout
    goal = system.assemble().q
    reference = lambda t: [float(g) + 0.2 * ca.sin(t + k) for k, g in enumerate(goal)]  # noqa: E731

    def numbers(t):
        k = np.arange(layout.nq)
        return goal + 0.2 * np.sin(t + k), 0.2 * np.cos(t + k), -0.2 * np.sin(t + k)

    follow = sr.control.QuasiVelocityTracking(system, reference, kp=3.0, kd=4.0)
    hold = sr.control.QuasiVelocityRegulation(system, goal, kp=20.0, kd=5.0)
    for _ in range(3):
        state = moving(system, rng, 0.2)
        x = Plant(system, state)
        Z, wrench = laws.tracking(x, numbers, 3.0, 4.0)
        expected = pinv_times(Z.T @ x.B, wrench)
        # differences of M and of the projector: 1e-5 squared, and rounding over 1e-5
        np.testing.assert_allclose(
            follow(state.t, state.q, state.v), expected, atol=2e-7 * (1 + np.abs(expected).max())
        )
        Z, wrench = laws.regulation(x, goal, 20.0, 5.0)
        expected = pinv_times(Z.T @ x.B, wrench)
        np.testing.assert_allclose(hold(state.t, state.q, state.v), expected, atol=1e-8 * (1 + np.abs(expected).max()))


def pinv_times(K, b):
    return np.linalg.pinv(K, rcond=1e-9) @ b


@pytest.mark.parametrize(
    ("name", "motors"), [("slider_crank", ()), ("four_bar", ("C",)), ("planar_platform", ()), ("parallelogram", ())]
)
def test_dependent_coordinates_use_the_oblique_projection(name, motors, rng):
    system = machine(name, motors)
    goal = system.assemble().q
    for sigma in (0.0, 1.5):
        control = sr.control.DependentCoordinates(system, goal, kp=11.0, kd=3.0, sigma=sigma, smoothing=1e-2)
        for _ in range(3):
            state = moving(system, rng)
            x = Plant(system, state)
            e, v = state.q - goal, state.v
            w = x.G - 11.0 * e - 3.0 * v
            w = w - sigma * 11.0 * np.linalg.norm(e) * v / (np.linalg.norm(v) + 1e-2)
            R = x.B @ np.linalg.pinv(x.P @ x.B, rcond=1e-9)
            np.testing.assert_allclose(R @ R, R, atol=1e-9)
            u = control(state.t, state.q, state.v)
            np.testing.assert_allclose(x.B @ u, R @ w, atol=1e-8 * (1 + np.abs(R @ w).max()))


def test_orientation_task_on_the_stewart_platform(rng):
    """Pose of the platform: quaternion reference; commanded accelerations by an independent formula."""
    system = machine("stewart")
    home = system.assemble()
    task = [system.task("point", sr.point_on("platform", (0.1, 0.2, 0.05))), system.task("orientation", "platform")]
    half = 0.15
    goal = np.array([0.1, 0.2, 2.3, np.cos(half), np.sin(half), 0, 0])
    control = sr.control.ProjectedInverseDynamics(system, task, goal, KP, KD)
    del home
    for _ in range(3):
        state = moving(system, rng)
        u = control(state.t, state.q, state.v)
        a = system.acceleration(state, u)
        at, J, bias = task[0].evaluate(state)
        np.testing.assert_allclose(J @ a + bias, KP * (goal[:3] - at) - KD * J @ state.v, atol=1e-8)
        R, J, bias = task[1].evaluate(state)
        Rd = np.array([[1, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]])
        error = Rd @ R.T
        axis = np.array([error[2, 1] - error[1, 2], error[0, 2] - error[2, 0], error[1, 0] - error[0, 1]]) / 2
        np.testing.assert_allclose(J @ a + bias, KP * axis - KD * J @ state.v, atol=1e-8)


@pytest.mark.parametrize("formulation", ["direct", "minimal", "partitioned"])
def test_units_of_a_task_do_not_matter(formulation, rng):
    """A tip in kilometres along one axis and in micrometres along the other; and heavy beside light."""
    system = machine("geared_chain")
    state = moving(system, rng)

    def control(a, b):
        def scaled(t, x):
            return [a * x["tip.position"][0], b * x["tip.position"][2]]

        return sr.control.TaskSpace(system, scaled, [0.5 * a, 0.4 * b], KP, KD, formulation)

    u = control(1.0, 1.0)(state.t, state.q, state.v)
    np.testing.assert_allclose(control(1e-6, 1e6)(state.t, state.q, state.v), u, atol=1e-8 * np.abs(u).max())
    mech = sr.Mechanism("crane and needle", planar=True)
    crane, needle = mech.body("crane", 1e6, com=(0.5, 0)), mech.body("needle", 1e-6, com=(0.5, 0))
    mech.revolute("A", mech.ground, crane, initial=0.3)
    mech.revolute("B", crane, needle, at=(1, 0), initial=0.4)
    mech.motor("A")
    mech.motor("B")
    pair = sr.compile(mech)
    place = pair.assemble()
    u = sr.control.TaskSpace(pair, ["A", "B"], [0.31, 0.42], KP, KD, formulation)(0.0, place.q, place.v)
    np.testing.assert_allclose(pair.acceleration(place, u), [KP * 0.01, KP * 0.02], rtol=1e-6)
    assert sr.control.controllability(pair, place, ["A", "B"]).task == (2, 2)


@pytest.mark.parametrize("length", [1.0, 3.0])
def test_orientation_follows_a_path_whose_quaternion_is_of_any_length(length):
    """Straight from one quaternion to another, through shorter ones: the platform follows its direction exactly."""
    system = machine("stewart")
    home = system.assemble()
    at = system.task("point", sr.point_on("platform", (0, 0, 0)))
    task = [at, system.task("orientation", "platform")]
    goal = length * np.array([np.cos(0.3), 0.0, np.sin(0.3), 0.0])
    path = sr.control.MinimumJerk([1, 0, 0, 0], goal, 0.8)
    place = [float(x) for x in at.evaluate(home)[0]]
    control = sr.control.ProjectedInverseDynamics(system, task, lambda t: [*place, *path(t)], KP, KD)
    traj = sr.simulate(system, home, 0.8, control=control, output=np.linspace(0, 0.8, 9), rtol=1e-10)
    wanted = np.array([path(t) for t in traj.t])
    wanted /= np.linalg.norm(wanted, axis=1)[:, None]
    np.testing.assert_allclose(traj["platform"][:, 3:7], wanted, atol=1e-7)
    with pytest.raises(sr.StateError, match="the inputs are not finite"):  # no direction at all
        sr.control.TaskSpace(system, task[1], [0, 0, 0, 0])(0.0, home.q, home.v)


def test_coriolis_matrix_is_skew_against_the_rate_of_the_mass_matrix(rng):
    """x' (Mdot - 2 C) x = 0 and C v = h - (what acts at rest), also with quaternions."""
    from sarrus.control.terms import MachineTerms

    for name in ("stewart", "geared_chain"):
        system = machine(name)
        m = MachineTerms(system)
        n = system.layout.nv
        x = ca.SX.sym("x", n)
        s = m.s
        f = ca.Function(
            "f",
            [s["t"], s["q"], s["v"], s["p"], x],
            [m.coriolis(s["v"], x), m.coriolis(s["v"], s["v"]), m.at_rest(), m.along(s["M"], s["v"])],
        )
        state = moving(system, rng)
        terms = system.terms(state)
        for _ in range(3):
            y = rng.uniform(-1, 1, n)
            Cx, Cv, G, Md = (np.array(e) for e in f(state.t, state.q, state.v, system.p, y))
            size = np.abs(Md).max() + np.abs(Cx).max()
            assert abs(y @ Md.reshape(n, n) @ y - 2 * y @ Cx.ravel()) < 1e-10 * size * n
            np.testing.assert_allclose(Cv.ravel() + G.ravel(), terms.h, atol=1e-10 * (1 + np.abs(terms.h).max()))
