"""Differential-algebraic forms with each solver that takes them: accuracy that follows the tolerance, without tuning.

A solver controls its local error; what adds up over a motion with hundreds of steps is taken to be at most LIMIT times
the tolerance, and to fall with it. References: sheet 12.7, closed forms, one-coordinate models, published digits.
"""

from __future__ import annotations

import signal
import time
from functools import cache

import casadi as ca
import numpy as np
import pytest

import sarrus as sr
from oracles import motion
from oracles import motion_data as data
from sarrus.kernel.dae import Dae
from sarrus.simulation.dae.forms import PARTS
from sarrus.simulation.plan import ACCEPTS, fits

from .machines import COURSES, library, place, started

LIMIT = {"radau": 10, "ida": 2000}  # IDA's formulas of varying order keep their error less well
FORMS = tuple(PARTS)
PAIRS = [(form, method) for form in FORMS for method in ("radau", "ida")]
ANDREWS = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
MACHINES = ("pendulum", "arm on x=1", "arm on circle", "andrews", "arm on x=0", "slider-crank")


@cache
def case(name: str):
    """Machine, start, times and configurations then."""
    if name.startswith("arm"):
        curve = name.removeprefix("arm on ")
        system, times = library("arm_on_curve", curve=curve), [t for t in COURSES[curve] if t <= 2.0]
        return system, system.assemble(), times, np.array([COURSES[curve][t] for t in times])
    if name == "andrews":
        system = library("andrews")
        times = list(data.ANDREWS)
        order = [system.layout.q_names.index(n) for n in ANDREWS]
        q = np.zeros((len(times), 7))
        q[:, order] = [data.ANDREWS[t][0] for t in times]
        return system, system.assemble({"Theta": 0.0}), times, q
    if name == "pendulum":
        system, times = library("particle_on_circle"), [0.5, 2.0]
        angle, _ = motion.pendulum(np.pi / 2, np.sqrt(motion.G), np.array(times))
        return system, system.assemble(), times, np.c_[np.sin(angle), -np.cos(angle)]
    system, times, wanted = library("slider_crank"), [1.0, 2.0, 5.0], motion.slider_crank().run(np.pi / 4, 0.0, 5.0)
    return system, system.assemble(), times, np.array([wanted.q(t) for t in times])


def errors(name: str, form: str, method: str, rtol: float) -> tuple[float, sr.Trajectory]:
    system, start, times, wanted = case(name)
    traj = sr.simulate(system, start, times[-1], formulation=form, method=method, rtol=rtol)
    assert traj.status.ok, str(traj.status)
    return float(np.max(np.abs(traj.at(times).q - wanted) / np.maximum(1.0, np.abs(wanted)))), traj


@pytest.mark.parametrize(("form", "method"), PAIRS)
@pytest.mark.parametrize("name", MACHINES)
def test_error_follows_the_tolerance(name, form, method):
    """On the last two through singular positions, where multipliers grow without bound (sheet 10, 12.1, 12.7)."""
    coarse, traj = errors(name, form, method, 1e-6)
    fine, finer = errors(name, form, method, 1e-8)
    limit = LIMIT[method]
    assert coarse <= limit * 1e-6 and fine <= limit * 1e-8, f"{coarse:.1e}, {fine:.1e}"
    # measured: at most 5100 and 11600 evaluations (slider-crank by radau; index-3 by ida 2300 and 6600)
    assert traj.stats.evaluations < 7000 and finer.stats.evaluations < 15000
    assert finer.audit().ok({"loop": 1e-6, "energy": 1e-4})
    assert len(finer.crossings) == {"arm on x=0": 2, "slider-crank": 2}.get(name, 0)


@cache
def bead() -> sr.System:
    """A unit mass on (y - x²)(y + x) = 0 (sheet 2.6): the parabola is crossed by a line at x = 0 and x = -1."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    wire = (q[1] - q[0] ** 2) * (q[1] + q[0])
    return sr.compile(
        sr.Lagrangian(
            "bead", time=t, coordinates=q, velocities=v, kinetic=ca.dot(v, v) / 2, potential=motion.G * q[1],
            holonomic={"wire": wire},
        )
    )  # fmt: skip


@pytest.mark.parametrize(("form", "method"), [*PAIRS, ("index-3", "generalized-alpha")])
def test_curved_branches_are_followed_through_their_crossing(form, method):
    """To and fro on the parabola from several starts; with coarse and with fine steps."""
    system = bead()
    for x in (-0.8, -0.45, 0.7):
        reference = motion.Minimal(lambda s: 1 + 4 * s**2, lambda s: motion.G * s**2).run(x, 0.0, 3.0)
        wanted = np.ravel(reference.s(3.0))[0]
        for rtol in (1e-5, 1e-8) if method != "generalized-alpha" else (None,):
            options = {"dt": 5e-4} if rtol is None else {"rtol": rtol}
            limit, start = 1e-4 if rtol is None else LIMIT[method] * rtol, system.state((x, x * x), (0, 0))
            traj = sr.simulate(system, start, 3.0, formulation=form, method=method, **options)
            assert traj.status.ok, traj.status
            np.testing.assert_allclose(
                [c.t for c in traj.crossings], reference.roots(lambda y: y[0]), rtol=0, atol=limit
            )
            np.testing.assert_allclose(traj.q[-1], [wanted, wanted**2], rtol=0, atol=limit)


@pytest.mark.parametrize("name", MACHINES)
def test_generalized_alpha_is_of_second_order(name):
    system, start, times, wanted = case(name)
    found = []
    for steps in (1500, 3000):
        dt = times[-1] / steps
        traj = sr.simulate(system, start, times[-1], method="generalized-alpha", dt=dt, output=times)
        assert traj.status.ok and traj.settings["formulation"] == "index-3"
        found.append(float(np.max(np.abs(traj.q - wanted))))
        assert np.max(np.abs(traj.residuals.loop)) < 1e-9
        assert traj.stats.evaluations < 8 * steps
    assert 3.0 < found[0] / found[1] < 5.5, found


@pytest.mark.parametrize("form", [x for x in FORMS if x != "coordinate-split"])
def test_derivatives_are_exact(form, rng):
    """Against central differences, on a machine with quaternions and redundant rows of which some are switched off."""
    _, system, state, u, _ = place("rolling", rng)
    on = np.ones(len(system.kept))
    on[0] = 0.0
    dae = started(system, form, state, u, on)
    y, yp, size = dae.y.copy(), dae.yp.copy(), len(dae.y)
    out, matrix = np.zeros(size), np.zeros((size, size))
    assert dae.residual(float(state.t), y, yp, out) == 0
    scale = 1 + np.max(np.abs(y)) + np.max(np.abs(yp))
    assert np.max(np.abs(out)) < 1e-10 * scale, "the start is consistent"
    y, yp, c = y + 0.1 * rng.normal(size=len(y)), yp + 0.1 * rng.normal(size=len(y)), 1.7
    dae.jacobian(float(state.t), y, yp, c, matrix)
    step, wanted = 1e-6, np.zeros_like(matrix)
    for k in range(size):
        e = step * np.eye(size)[k]
        ahead, behind = np.zeros(size), np.zeros(size)
        dae.residual(float(state.t), y + e, yp + c * e, ahead)
        dae.residual(float(state.t), y - e, yp - c * e, behind)
        wanted[:, k] = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(matrix, wanted, rtol=0, atol=1e-7 * (1 + np.max(np.abs(wanted))))


@pytest.mark.parametrize(
    ("form", "method"), [("ggl", "radau"), ("ggl", "ida"), ("index-2", "radau"), ("index-3", "radau")]
)
def test_quaternions_and_compiled_inputs(form, method):
    system = library("stewart")
    start = system.assemble()

    def forces(t):
        return [3000.0 + 200 * np.sin(20 * t + i) for i in range(6)]

    wanted = sr.simulate(system, start, 0.2, rtol=1e-11, inputs=forces, output=[0.1, 0.2])
    traj = sr.simulate(system, start, 0.2, formulation=form, method=method, rtol=1e-7, inputs=forces, output=[0.1, 0.2])
    np.testing.assert_array_equal(traj.t, [0.1, 0.2])
    np.testing.assert_allclose(traj.q, wanted.q, rtol=0, atol=LIMIT[method] * 1e-7)
    np.testing.assert_allclose(traj.u, wanted.u, rtol=1e-5)  # interpolated between steps


@pytest.mark.parametrize("method", ["radau", "ida"])
def test_redundant_and_nonholonomic_rows(method):
    """Redundant rows are left out by themselves; a disc that rolls has rows without positions."""
    system = library("parallelogram")
    start = system.assemble({system.layout.q_names[0]: -0.3})
    wanted = sr.simulate(system, start, 1.0, rtol=1e-11, output=[1.0]).q
    for form in ("ggl", "index-3"):
        traj = sr.simulate(system, start, 1.0, formulation=form, method=method, rtol=1e-7)
        np.testing.assert_allclose(traj.q[-1], wanted[-1], rtol=0, atol=LIMIT[method] * 1e-7)
    system = library("rolling_disc")
    start = system.assemble()
    wanted = sr.simulate(system, start, 0.5, rtol=1e-11, output=[0.5]).q
    traj = sr.simulate(system, start, 0.5, formulation="ggl", method=method, rtol=1e-7, output=5)
    np.testing.assert_allclose(traj.q[-1], wanted[-1], rtol=0, atol=LIMIT[method] * 1e-7)
    assert len(traj) < traj.stats.steps / 3


# --- what is refused, and how runs end -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"formulation": "ggl"}, "formulation 'ggl' makes a DAE of index 2, which method 'dop853' does not take.\n"
         "  methods that do: 'radau', 'ida'"),
        ({"formulation": "index-2", "method": "generalized-alpha", "dt": 0.1}, "formulations that 'generalized-alpha' "
         "takes: index-3"),
        ({"formulation": "projection", "method": "ida"}, "formulations that 'ida' takes: index-1, index-2, ggl, "
         "ggl-implicit, index-3, coordinate-split"),
        ({"method": "generalized-alpha"}, "method 'generalized-alpha' takes fixed steps: give their length"),
        ({"method": "ida", "events": [sr.Event("low", lambda t, x: x["A"])]}, "events: not with method 'ida'"),
        ({"method": "ida", "sample": 0.1}, "sample: not with method 'ida'"),
        ({"method": "ida", "control": sr.control.Loop(lambda t: [0.0, 0.0], period=0.1)}, "sample: not with method"),
        ({"method": "ida", "crossing": "stop"}, "crossing='stop': not with"),
        ({"method": "ida", "drift": "free"}, "drift='free' with 'ggl', which keeps the constraints itself: not with"),
        ({"method": "ida", "drift": "baumgarte"}, "drift='baumgarte': not with a differential-algebraic form"),
        ({"formulation": "ggl", "method": "radau", "crossing": "release"}, "crossing='release': not with a differ"),
        ({"formulation": "index-1", "method": "radau", "crossing": "stop", "drift": "free"}, "left to itself does not "
         "look for singular positions; use drift='project', or a formulation"),
        ({"method": "generalized-alpha", "dt": 1e-3, "crossing": "stop", "drift": "free"}, "crossing='stop' with"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_the_first_step(options, text):
    system = library("slider_crank")
    with pytest.raises(sr.SarrusError) as caught:
        sr.simulate(system, system.assemble(), 1.0, **options)
    assert text in str(caught.value)


def test_a_singular_start_is_refused():
    system = library("slider_crank")
    state = system.state((np.pi / 2, np.pi), (0.0, 0.0))
    with pytest.raises(sr.StateError, match=r"the start is a singular position \(rank 0 instead of 1\)"):
        sr.simulate(system, state, 1.0, method="ida")


@pytest.mark.parametrize("method", ["radau", "ida"])
def test_runs_that_end_early_say_why_and_keep_what_they_have(method):
    system = library("slider_crank")
    start = system.assemble()
    short = sr.simulate(system, start, 1.0, formulation="ggl", method=method, max_steps=7)
    assert short.status.code == "too many steps" and len(short) >= 2

    def torque(t, q, v):
        if float(t) > 0.3:
            raise ValueError("no torque left")
        return [0.0, 0.0]

    broken = sr.simulate(system, start, 1.0, formulation="ggl", method=method, inputs=torque)
    assert broken.status.code == "callback failed" and "no torque left" in broken.status.text


@pytest.mark.parametrize("method", ["radau", "ida"])
def test_ctrl_c_keeps_what_was_computed_and_the_run_goes_on_from_there(method):
    system = library("four_bar")
    start = system.assemble(velocities={"A": 1.0})
    pressed = []

    def torque(t, q, v):
        if t > 0.4 and not pressed:  # which no symbol can answer, so Python is asked
            pressed.append(t)
            signal.raise_signal(signal.SIGINT)
        return 0.1

    first = sr.simulate(system, start, 1.0, method=method, formulation="ggl", inputs=torque, rtol=1e-8)
    assert first.status.code == "interrupted" and 0.3 < first.t[-1] < 0.6 and first.t[0] == 0.0
    whole = sr.simulate(system, first, 1.0, method=method, formulation="ggl", inputs=torque, rtol=1e-8)
    assert whole.status.ok and whole.t[0] == 0.0 and np.all(np.diff(whole.t) > 0)
    wanted = sr.simulate(system, start, 1.0, inputs=0.1, rtol=1e-12).q[-1]
    np.testing.assert_allclose(whole.q[-1], wanted, rtol=0, atol=2 * LIMIT[method] * 1e-8)


@pytest.mark.parametrize(
    "options", [{"method": "radau"}, {"method": "ida"}, {"method": "generalized-alpha", "dt": 0.01}]
)
def test_ctrl_c_twice_breaks_into_a_function_that_hangs(options):
    system = library("four_bar")

    def torque(t, q, v):
        if t > 0.4:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            time.sleep(60)
        return 0.1

    form = "index-3" if "dt" in options else "ggl"
    before, start = signal.getsignal(signal.SIGINT), system.assemble(velocities={"A": 1.0})
    traj = sr.simulate(system, start, 1.0, formulation=form, inputs=torque, **options)
    assert traj.status.code == "interrupted" and "What was computed is kept" in str(traj.status)
    assert 0.2 < traj.t[-1] < 0.5 and traj.residuals.loop.max() < 1e-6 and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("what", ["residual", "jacobian", "open"])
def test_ctrl_c_twice_while_ida_is_at_work(what, monkeypatch):
    """Pressed where SUNDIALS calls what this package gave it, or between its steps."""
    system, calls, original = library("four_bar"), [], getattr(Dae, what)

    def pressed(self, *arguments):
        calls.append(what)
        if len(calls) == 20:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(Dae, what, pressed)
    traj = sr.simulate(system, system.assemble(velocities={"A": 1.0}), 50.0, method="ida")
    assert traj.status.code == "interrupted" and 0 <= traj.t[-1] < 5.0 and np.all(np.diff(traj.t) > 0)


# --- drift ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["radau", "ida"])
def test_a_form_left_to_itself_drifts_by_its_index(method):
    """Index 2 in proportion to time, index 1 faster, neither where the drift is projected out."""
    system = library("particle_on_circle")

    def drift(form: str, t_end: float, **options) -> float:
        traj = sr.simulate(system, system.assemble(), t_end, formulation=form, method=method, rtol=1e-6, **options)
        assert traj.status.ok
        return float(np.max(np.abs(traj.residuals.loop)))

    kept = {"radau": 1e-12, "ida": 1.5e-5}[method]  # ida: closed again when it has drifted by ten tolerances
    free = {form: [drift(form, t_end, drift="free") for t_end in (4.0, 16.0)] for form in ("index-1", "index-2")}
    for form, (early, late) in free.items():
        assert late > 3 * early and drift(form, 16.0) <= kept
    assert free["index-1"][1] > 4 * free["index-2"][1]


SINGULAR = ("arm on x=0", "slider-crank")


@pytest.mark.parametrize(("form", "method"), [*PAIRS, ("baumgarte", "dop853"), (None, "dop853"), (None, "radau")])
@pytest.mark.parametrize("name", SINGULAR)
def test_without_projection_a_singular_position_is_passed_rightly_or_not_at_all(name, form, method):
    """A machine that has drifted is beside its branch; near a singular position the other branch is no further away."""
    if method == "ida" and form not in ("index-1", "index-2"):
        return
    system, start, times, wanted = case(name)
    for rtol in (1e-5, 1e-7, 1e-9):
        options = {} if form == "baumgarte" else {"drift": "free"}
        traj = sr.simulate(
            system, start, times[-1], formulation=form, method=method, rtol=rtol, max_steps=50_000, **options
        )
        if traj.status.ok:
            assert np.max(np.abs(traj.at(times).q - wanted)) <= {"ida": 2000}.get(method, 100) * rtol
        else:
            assert traj.status.code in ("assembly lost", "step too small"), traj.status
            assert traj.t[-1] > 0.4


@pytest.mark.parametrize(("form", "method"), [("index-1", "radau"), ("index-2", "ida"), ("baumgarte", "dop853")])
def test_a_lost_branch_is_named_with_place_and_cure(form, method):
    system = library("arm_on_curve", curve="x=0")
    options = {} if form == "baumgarte" else {"drift": "free"}
    traj = sr.simulate(system, system.assemble(), 5.0, formulation=form, method=method, rtol=1e-6, **options)
    text = str(traj.status)
    assert traj.status.code == "assembly lost", text
    for part in ("of the machine's size", "of what they can", "at A = ", "keep drift='project'"):
        assert part in text, text


# --- what runs by radau and generalized-alpha share with all others ------------------------------------------------
RADAU, ALPHA = {"method": "radau", "rtol": 1e-8}, {"method": "generalized-alpha", "dt": 1e-3}
OWN = [("ggl", RADAU), ("index-1", RADAU), ("coordinate-split", RADAU), ("index-3", ALPHA)]


def near(options) -> float:
    return 1e-6 if "rtol" in options else 2e-4


@pytest.mark.parametrize(("form", "options"), OWN)
def test_sampled_inputs_controllers_and_series(form, options):
    system = library("four_bar")
    start = system.assemble(velocities={"A": 2.0})
    wave = sr.Series([0.0, 0.1, 0.33, 0.7], [0.0, 0.5, -0.3, 0.2], between="hold")
    brake = sr.control.Loop(lambda t, q, v: [0.4 - 0.5 * v[0] + 0.3 * np.cos(5 * t)], period=0.05, effort=0.45)
    laws = [{"inputs": lambda t: 0.3 * np.sin(7 * t), "sample": 0.07}, {"inputs": wave}, {"control": brake}]
    for law in laws:
        wanted = sr.simulate(system, start, 0.8, rtol=1e-11, output=[0.4, 0.8], **law)
        traj = sr.simulate(system, start, 0.8, formulation=form, output=[0.4, 0.8], **options, **law)
        assert traj.status.ok, traj.status
        np.testing.assert_allclose(traj.q, wanted.q, rtol=0, atol=near(options))
        np.testing.assert_allclose(traj.u, wanted.u, rtol=0, atol=10 * near(options))


@pytest.mark.parametrize("form", ["ggl", "index-1"])
def test_ida_takes_series_and_continuous_controllers(form):
    system = library("four_bar")
    start = system.assemble(velocities={"A": 2.0})
    wave = sr.Series([0.0, 0.1, 0.33, 0.7], [0.0, 0.5, -0.3, 0.2], between="hold")
    brake = sr.control.Loop(lambda t, q, v: [0.4 - 0.5 * v[0] + 0.3 * np.cos(5 * t)], effort=0.45)
    for law in ({"inputs": wave}, {"control": brake}):
        wanted = sr.simulate(system, start, 0.8, rtol=1e-11, output=[0.4, 0.8], **law)
        traj = sr.simulate(system, start, 0.8, formulation=form, method="ida", rtol=1e-9, output=[0.4, 0.8], **law)
        np.testing.assert_allclose(traj.q, wanted.q, rtol=0, atol=LIMIT["ida"] * 1e-9)
        assert "control" in law or {0.1, 0.33, 0.7} <= set(
            sr.simulate(system, start, 0.8, formulation=form, method="ida", **law).t
        )


def test_a_prepared_simulation_remembers_nothing():
    system = library("four_bar")
    starts = [system.assemble(velocities={"A": x}) for x in (2.0, -1.0, 2.0)]
    for form, options in OWN:
        run = sr.Simulation(system, 0.5, formulation=form, **options)
        first, _, third = (run(start) for start in starts)
        np.testing.assert_array_equal(first.q, third.q)
        np.testing.assert_array_equal(first.q, sr.simulate(system, starts[0], 0.5, formulation=form, **options).q)


@pytest.mark.parametrize(("form", "options"), OWN)
def test_events_changes_and_impacts(form, options):
    system = library("four_bar")
    start = system.assemble(velocities={"A": 2.0})

    def kick(t, x):
        return sr.Change(velocities={"A": 1.3 * x["A.v"]})

    events = [
        sr.Event("level", lambda t, x: x["B"] + 1.0), sr.Event("kick", lambda t: t - 0.31, action=kick),
        sr.Event("end", lambda t, x: x["A"] + 1.5, terminal=True),
    ]  # fmt: skip
    wanted = sr.simulate(system, start, 3.0, rtol=1e-11, events=events)
    traj = sr.simulate(system, start, 3.0, formulation=form, events=events, **options)
    assert traj.status.code == wanted.status.code == "event"
    assert [e.name for e in traj.events] == [e.name for e in wanted.events] and len(traj.events) > 2
    np.testing.assert_allclose([e.t for e in traj.events], [e.t for e in wanted.events], rtol=0, atol=near(options))
    np.testing.assert_allclose(traj.q[-1], wanted.q[-1], rtol=0, atol=10 * near(options))
    system = hopper()
    start = system.assemble({"z": 1.0, "x": 0.2})
    wanted = sr.simulate(system, start, 1.5, rtol=1e-11)
    traj = sr.simulate(system, start, 1.5, formulation=form, **options)
    assert [e.name for e in traj.events] == [e.name for e in wanted.events] and len(traj.events) > 1
    np.testing.assert_allclose(traj.q[-1], wanted.q[-1], rtol=0, atol=10 * near(options))


@pytest.mark.parametrize(("form", "options"), OWN)
def test_crossings_stop_and_singular_starts(form, options):
    system = library("slider_crank")
    start = system.assemble()
    stopped = sr.simulate(system, start, 5.0, formulation=form, crossing="stop", **options)
    assert stopped.status.code == "crossing"
    np.testing.assert_allclose(stopped.q[-1], [-np.pi / 2, 3 * np.pi], rtol=0, atol=near(options))
    on = sr.simulate(system, stopped, 2.0, formulation=form, **options)
    wanted = sr.simulate(system, start, 2.0, rtol=1e-11, output=[2.0]).q[-1]
    np.testing.assert_allclose(on.q[-1], wanted, rtol=0, atol=10 * near(options))


def hopper() -> sr.System:
    """A ball over a floor, and a slider that a spring pulls."""
    mech = sr.Mechanism("hopper")
    bodies = [mech.body(name, mass) for name, mass in (("ball", 0.7), ("slider", 1.1))]
    mech.prismatic("z", mech.ground, bodies[0], "z", initial=1.0)
    mech.prismatic("x", mech.ground, bodies[1], "x", initial=0.2, stiffness=30.0)
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0, 0), "z"), sr.point_on(bodies[0]), restitution=0.5)
    return sr.compile(mech)


def test_one_sided_constraints_are_refused_unless_left_out():
    system = hopper()
    start = system.assemble({"z": 1.0, "x": 0.2})
    with pytest.raises(sr.StateError, match="one-sided constraints: not with method 'ida'"):
        sr.simulate(system, start, 1.0, method="ida")
    traj = sr.simulate(system, start, 1.0, method="ida", rtol=1e-8, active={"floor": False})
    z, x = 1.0 - 9.81 / 2, 0.2 * np.cos(np.sqrt(30.0 / 1.1))
    np.testing.assert_allclose([traj["z"][-1], traj["x"][-1]], [z, x], rtol=0, atol=LIMIT["ida"] * 1e-8)


def test_splitting_needs_coordinates_that_can_be_split():
    for name in ("stewart", "rolling_disc"):
        system = library(name)
        with pytest.raises(
            sr.StateError, match="needs a machine without quaternions and nonholonomic rows; take 'ggl'"
        ):
            sr.simulate(system, system.assemble(), 0.1, formulation="coordinate-split", method="radau")


def test_every_form_has_a_solver():
    for form in sr.formulations():
        assert any(fits(form, method) for method in ACCEPTS), form.name


@pytest.mark.parametrize("name", ["andrews", "sarrus"])
def test_derivatives_of_the_splitting_form_are_exact_on_the_motion(name, rng):
    system = library(name)
    start = system.assemble()
    state = system.state(start.q, 0.1 * system.projector(start) @ rng.normal(size=system.layout.nv))
    on = np.zeros(system.layout.m)
    rank = system.rank(state).rank
    for i in system.kept:  # the first rows that are independent
        on[i] = 1.0
        rows = system.terms(state).A[on > 0]
        on[i] = float(np.linalg.matrix_rank(rows, tol=1e-9) == len(rows))
    assert on.sum() == rank
    on = on[list(system.kept)]
    dae = started(system, "coordinate-split", state, np.zeros(system.layout.nu), on)
    y, yp, size = dae.y.copy(), dae.yp.copy(), len(dae.y)
    out, matrix, c = np.zeros(size), np.zeros((size, size)), 2.3
    dae.jacobian(0.0, y, yp, c, matrix)
    assert dae.residual(0.0, y, yp, out) == 0
    assert np.max(np.abs(out)) < 1e-10 * (1 + np.max(np.abs(yp)))
    wanted = np.zeros_like(matrix)
    for k in range(size):
        step = 1e-6 * (1 + abs(y[k]))
        e, ends = step * np.eye(size)[k], [np.zeros(size), np.zeros(size)]
        for sign, end in zip((1, -1), ends, strict=True):
            dae.residual(0.0, y + sign * e, yp + sign * c * e, end)
        wanted[:, k] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(matrix, wanted, rtol=0, atol=1e-7 * (1 + np.max(np.abs(wanted))))
