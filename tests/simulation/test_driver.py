"""The driver: outputs, continuation, settings, odd machines, scales, threads."""

import io
import logging
import pickle
import threading

import casadi as ca
import numpy as np
import pytest
from driving import ball, carts, driven_crank, flywheels, library, oscillator, truss
from rich.progress import Progress as RichProgress
from scipy.integrate import simpson

import sarrus as sr
from sarrus.errors import SarrusError, StateError, UnknownNameError
from sarrus.simulation import progress
from sarrus.simulation.trajectory import Trajectory

FIXED = {"rk4": 0.01, "euler": 0.01, "variational": 0.01}
METHODS = ["dop853", "dopri5", "radau", *FIXED]


def steps_of(method):
    return {"method": method, "dt": FIXED.get(method)}


@pytest.fixture(scope="module")
def four_bar():
    system = library("four_bar")
    return system, system.assemble({"A": 1.0}, velocities={"A": 1.0})


# --- outputs ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_outputs_at_times_are_points_of_the_same_motion(four_bar, method):
    system, start = four_bar
    times = np.array([0.0, 0.013, 0.5, 0.77, 1.0])
    options = steps_of(method) | {"rtol": 1e-10}
    every, chosen = (sr.simulate(system, start, 1.0, output=o, **options) for o in ("steps", times))
    np.testing.assert_array_equal(chosen.t, times)
    assert every.stats.steps == chosen.stats.steps  # looking does not change the motion
    np.testing.assert_array_equal(chosen.q[-1], every.q[-1])
    inside = every.at(times)
    np.testing.assert_allclose(chosen.q, inside.q, rtol=0, atol=1e-5 if method in FIXED else 1e-7)
    assert chosen.audit().loop.relative < 1e-12


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_every_nth_step(four_bar, n):
    system, start = four_bar
    every, thinned = (sr.simulate(system, start, 1.0, output=o) for o in ("steps", n))
    kept = np.unique([*range(0, len(every), n), len(every) - 1])
    np.testing.assert_array_equal(thinned.t, every.t[kept])
    np.testing.assert_array_equal(thinned.q, every.q[kept])


def test_many_outputs_within_one_step(four_bar):
    """More rows than the kernel's buffer holds, all within one step."""
    system = carts()
    times = np.linspace(0, 1, 10_001)
    traj = sr.simulate(system, system.assemble({}), 1.0, inputs=[2.0, 0.0], output=times, method="rk4", dt=1.0)
    np.testing.assert_array_equal(traj.t, times)
    np.testing.assert_allclose(traj["x"], times**2 / 2, rtol=0, atol=1e-14)
    assert traj.stats.steps == 1


def test_a_long_run_keeps_every_row():
    system = flywheels()
    traj = sr.simulate(
        system, system.state([0.0, 0.0], [1.0, 2.0]), 100.0, method="rk4", dt=1e-3, active={"clutch": False}
    )
    assert len(traj) == 100_001
    np.testing.assert_allclose(traj.t, np.arange(100_001) * 1e-3, rtol=1e-11)
    np.testing.assert_allclose(traj.q, np.outer(traj.t, [1, 2]), rtol=1e-9)


# --- time ------------------------------------------------------------------------------------------------------------
def test_a_run_that_starts_at_another_time():
    system = driven_crank()
    for t0 in (-3.0, 2.5):
        start = system.assemble({}, t=t0)
        traj = sr.simulate(system, start, t0 + 1.0, rtol=1e-10)
        assert traj.t[0] == t0 and traj.t[-1] == t0 + 1
        np.testing.assert_allclose(traj["A"], 1 + 2 * traj.t + 0.3 * np.sin(3 * traj.t), rtol=0, atol=1e-11)
        assert traj.audit().ok(), traj.audit()


@pytest.mark.parametrize("t_end", [1, np.int64(1), np.float32(1), np.array(1.0), np.array(1)])
def test_the_end_may_be_any_kind_of_number(t_end):
    assert sr.simulate(carts(), carts().assemble({}), t_end).t[-1] == 1.0


@pytest.mark.parametrize("t_end", [0.0, -1, np.nan, np.inf, None, "1", True, [1.0], 1j])
def test_the_end_comes_after_the_start(t_end):
    with pytest.raises(StateError, match=r"t_end: expected a finite time after the start( at t = 0 s)?, got"):
        sr.simulate(carts(), carts().assemble({}), t_end)
    with pytest.raises(StateError, match="after the start at t = 3 s"):
        sr.simulate(carts(), carts().state([0, 0], t=3.0), 3.0)


@pytest.mark.parametrize("t_end", [1e3, 1e9, 1e15, 1e100, 1e300])
def test_an_end_far_away_does_not_matter_where_an_event_comes_first(t_end):
    system = library("pendulum")
    low = sr.Event("low", lambda t, x: x["A"] + 1.5, terminal=True)
    near, far = (sr.simulate(system, system.assemble({"A": 0.0}), end, events=low) for end in (5.0, t_end))
    assert far.status.code == "event"
    np.testing.assert_array_equal(far.q, near.q)


def test_a_very_short_run():
    system = library("pendulum")
    traj = sr.simulate(system, system.assemble({"A": 0.0}), 1e-12)
    assert traj.t[-1] == 1e-12 and traj.audit().ok()


# --- continuation ----------------------------------------------------------------------------------------------------
def same_motion(both, whole, limit):
    np.testing.assert_allclose(both.q[-1], whole.q[-1], rtol=0, atol=limit)
    assert np.all(np.diff(both.t) > 0) and both.t[0] == whole.t[0] and both.t[-1] == whole.t[-1]
    assert len(both.segments) == 1 and both.audit().ok({"loop": 1e-12, "motion": 1e-10}), both.audit()


@pytest.mark.parametrize("method", METHODS)
def test_two_runs_are_one(four_bar, method):
    system, start = four_bar
    options = steps_of(method) | {"rtol": 1e-10}
    whole = sr.simulate(system, start, 1.0, **options)
    part = sr.simulate(system, start, 0.4, **options)
    both = sr.simulate(system, part, 1.0, **options)
    same_motion(both, whole, 1e-12 if method in ("rk4", "euler") else 1e-7)
    np.testing.assert_array_equal(both.q[: len(part)], part.q)
    assert both.stats.steps > part.stats.steps and "before" not in both.settings
    assert both.settings["t_end"] == 1.0


@pytest.mark.parametrize("ending", ["nc", "csv"])
def test_a_loaded_trajectory_goes_on_as_if_it_had_never_been_away(four_bar, ending, tmp_path):
    system, start = four_bar
    part = sr.simulate(system, start, 0.4)
    part.save(tmp_path / f"part.{ending}")
    loaded = Trajectory.load(tmp_path / f"part.{ending}", system)
    for key in "tqvau":
        direct, revived = (getattr(sr.simulate(system, x, 1.0), key) for x in (part, loaded))
        np.testing.assert_array_equal(direct, revived)


def test_outputs_at_times_can_be_continued(four_bar):
    system, start = four_bar
    part = sr.simulate(system, start, 0.5, output=[0.1, 0.3], rtol=1e-11)
    both = sr.simulate(system, part, 1.0, output=[0.7, 1.0], rtol=1e-11)
    np.testing.assert_array_equal(both.t, [0.1, 0.3, 0.7, 1.0])
    exact = sr.simulate(system, start, 1.0, output=both.t, rtol=1e-11)
    np.testing.assert_allclose(both.q, exact.q, rtol=0, atol=1e-8)
    both.at([0.5, 0.8])  # there is no gap


def test_a_change_of_inputs_at_the_joint_stands_in_two_rows():
    part = sr.simulate(carts(), carts().assemble({}), 1.0, inputs={"x": 2.0})
    both = sr.simulate(carts(), part, 2.0, inputs={"x": -4.0})
    np.testing.assert_array_equal(both.t[np.flatnonzero(np.diff(both.t) == 0)], [1.0])
    np.testing.assert_allclose(both["x.v"][-1], 1 - 2, rtol=1e-13)
    assert both.audit().ok(1e-12)
    # and a held series after constants
    both = sr.simulate(carts(), both, 3.0, inputs={"x": sr.Series([2.0, 2.5], [0.0, 8.0], "hold")})
    np.testing.assert_allclose(both["x.v"][-1], -1 + 2, rtol=1e-12)
    assert both.audit().ok(1e-11), both.audit()


def test_a_continued_run_keeps_constraints_and_parameters():
    system = flywheels()
    grip = sr.Event(
        "grip", lambda t, x: x["a"] - x["b"] - 0.5, action=sr.Change(active={"clutch": True}), terminal=True
    )
    part = sr.simulate(system, system.state([0, 0], [5, 1]), 1.0, events=grip, active={"clutch": False})
    both = sr.simulate(system, part, 1.0)
    np.testing.assert_allclose(both.v[-1], 2.2, rtol=1e-12)
    assert both.segments[-1].active == {"clutch": True}
    apart = sr.simulate(system, part, 1.0, active={"clutch": False})
    assert apart.segments[-1].active == {"clutch": False}

    heavier = sr.Event("load", lambda t: t - 0.5, action=sr.Change(parameters={"m": 8.0}))
    part = sr.simulate(carts(), carts().assemble({}), 1.0, inputs={"x": 4.0}, events=heavier)
    both = sr.simulate(carts(), part, 2.0, inputs={"x": 4.0})
    np.testing.assert_allclose(both["x.v"][-1], 1.0 + 0.5 * 1.5, rtol=1e-12)
    lighter = sr.simulate(carts().with_parameters(m=1.0), part, 2.0, inputs={"x": 4.0})  # asked for: done
    np.testing.assert_allclose(lighter["x.v"][-1], 1.25 + 4.0, rtol=1e-12)
    assert lighter.segments[-1].p.tolist() == [1.0] and lighter.audit().ok(1e-11)


def test_many_short_runs_in_a_row(tmp_path):
    """As a receding-horizon controller would do it, with settings that change."""
    traj = sr.simulate(carts(), carts().assemble({}), 0.01, inputs={"x": 1.0})
    for k in range(2, 160):
        traj = sr.simulate(carts(), traj, 0.01 * k, inputs={"x": 1.0}, max_step=0.1 * (1 + k % 2))
    np.testing.assert_allclose(traj["x"][-1], 1.59**2 / 4, rtol=1e-12)
    assert len(traj.segments) == 1 and len(traj.settings["before"]) >= 100
    assert all("before" not in settings for settings in traj.settings["before"])  # a list, not a tower
    traj.save(tmp_path / "many.csv")
    assert len(Trajectory.load(tmp_path / "many.csv", carts())) == len(traj)


@pytest.mark.parametrize("drift", ["free", "baumgarte"])
def test_a_loose_run_is_put_right_when_it_is_continued(four_bar, drift):
    system, start = four_bar
    part = sr.simulate(system, start, 1.0, drift=drift, rtol=1e-7)
    assert 1e-12 < part.audit().loop.relative < 1e-6
    both = sr.simulate(system, part, 1.5)
    assert both.residuals.loop[len(part) :].max() < 1e-12


def test_only_the_same_machine_can_go_on(four_bar):
    system, start = four_bar
    part = sr.simulate(system, start, 0.1)
    with pytest.raises(StateError, match="the trajectory belongs to 'four-bar', not to 'pendulum'"):
        sr.simulate(library("pendulum"), part, 1.0)
    mech = sr.library.build("four_bar")
    mech.lock("brake", "A", 1.0)
    other = sr.compile(mech)
    with pytest.raises(StateError, match=r"\(constraints \('D',\) instead of \('D', 'brake'\)\); expected one machine"):
        sr.simulate(other, part, 1.0)


# --- starts ----------------------------------------------------------------------------------------------------------
def test_a_start_that_nearly_holds_is_put_right(four_bar):
    system, start = four_bar
    traj = sr.simulate(system, system.state(start.q + 1e-8, start.v), 0.2)
    assert traj.audit().loop.relative < 1e-12
    np.testing.assert_allclose(traj.q[0], start.q, rtol=0, atol=1e-7)
    exact = sr.simulate(system, start, 0.2)
    np.testing.assert_array_equal(exact.q[0], start.q)  # nothing to put right


def test_starts_that_make_no_sense(four_bar):
    system, start = four_bar
    with pytest.raises(StateError, match=r"the start breaks constraint 'D' by .* use system.assemble"):
        sr.simulate(system, system.state(start.q + 0.01, start.v), 1.0)
    with pytest.raises(StateError, match=r"the velocities at the start break constraint 'D' .* expected velocities"):
        sr.simulate(system, system.state(start.q, start.v + 0.01), 1.0)
    with pytest.raises(StateError, match="this state belongs to 'four-bar', not to 'two carts'"):
        sr.simulate(carts(), start, 1.0)
    with pytest.raises(StateError, match=r"give one state \(states.row\(i\) picks one"):
        sr.simulate(carts(), carts().state(np.zeros((3, 2))), 1.0)
    with pytest.raises(StateError, match="expected a state of two carts, got dict"):
        sr.simulate(carts(), {"x": 1.0}, 1.0)
    with pytest.raises(StateError, match=r"expected a compiled machine, got Mechanism; use sr.compile\(machine\)"):
        sr.simulate(sr.library.build("pendulum"), start, 1.0)
    with pytest.raises(UnknownNameError, match=r"unknown constraint 'E'. Known: 'D'"):
        sr.simulate(system, start, 1.0, active={"E": False})
    with pytest.raises(StateError, match="positions q: the value of 'x' is nan"):
        sr.simulate(carts(), carts().state([np.nan, 0.0]), 1.0)


# --- settings --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options, text",
    [
        ({"method": "ode45"}, "method: unknown choice 'ode45'; use 'dop853', 'dopri5', 'radau', 'rk4'"),
        ({"method": "rk4"}, "method 'rk4' takes fixed steps: give their length, dt="),
        ({"dt": 0.1}, "method 'dop853' chooses its own steps: limit them with max_step"),
        ({"method": "rk4", "dt": 0.0}, "dt: expected a positive number of seconds, got 0.0"),
        ({"rtol": 0}, "rtol: expected a positive number, got 0"),
        ({"rtol": -1e-6}, "rtol: expected a positive number"),
        ({"rtol": "small"}, "rtol: expected a positive number, got 'small'"),
        ({"rtol": 1e-17}, "rtol: expected 1e-15 or more, got 1e-17; numbers have 16 digits"),
        ({"atol": 0.0}, "atol: expected a positive number"),
        ({"atol": {"A": -1}}, "atol of 'A': expected a positive number"),
        ({"max_step": 0}, "max_step: expected a positive number of seconds"),
        ({"max_steps": 0}, "max_steps: expected a positive whole number, got 0"),
        ({"max_steps": 1.5}, "max_steps: expected a positive whole number"),
        ({"output": "all"}, "output: unknown choice 'all'; use 'steps'"),
        ({"output": 0}, "output=0: expected every how many steps a row is kept"),
        ({"output": []}, "output: expected 'steps', a whole number, or an array of times"),
        ({"output": [[0.1]]}, "output: expected 'steps', a whole number, or an array of times"),
        ({"output": [0.2, 0.1]}, "output: the times must rise"),
        ({"output": [0.5, 2.0]}, "output: times from 0.5 to 2 s reach beyond the run from 0 to 1 s"),
        ({"output": [-0.1, 0.5]}, "reach beyond the run"),
        ({"crossing": "jump"}, "crossing: unknown choice 'jump'; use 'continue', 'stop', 'release'"),
        ({"window": 0}, "window: expected a positive number"),
        ({"drift": "none"}, "drift: unknown choice 'none'; use 'project', 'baumgarte', 'free'"),
        ({"loop_error": 0}, "loop_error: expected a positive number"),
        ({"baumgarte": 5}, r"baumgarte: expected two gains \(alpha, beta\) in 1/s, got 5"),
        ({"baumgarte": (-1, 2)}, "baumgarte: gains must not be negative"),
        ({"sample": 0}, "sample: expected a positive number of seconds"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense(four_bar, options, text):
    system, start = four_bar
    with pytest.raises(StateError, match=text):
        sr.simulate(system, start, 1.0, **options)
    with pytest.raises(UnknownNameError, match="unknown velocity 'Z'"):
        sr.simulate(system, start, 1.0, atol={"Z": 1e-6})


def test_the_record_tells_how_it_was_computed(four_bar):
    system, start = four_bar
    s = sr.simulate(system, start, 0.1, rtol=1e-7, atol={"B": 1e-5}, max_step=0.05, drift="baumgarte").settings
    assert s["version"] == sr.__version__ and s["method"] == "dop853" and s["t_end"] == 0.1
    assert s["rtol"] == 1e-7 and s["atol"] == [1e-7, 1e-5, 1e-7] and s["max_step"] == 0.05
    assert s["drift"] == "baumgarte" and s["baumgarte"] == [10.0, 10.0] and s["crossing"] == "continue"
    s = sr.simulate(system, start, 0.1, method="rk4", dt=0.01, crossing="release").settings
    assert s["dt"] == 0.01 and "rtol" not in s and s["window"] == 1e-3


def test_a_tolerance_of_one_coordinate_is_kept(four_bar):
    system = oscillator()
    start = system.assemble({"x": 1.0})
    loose, tight = (sr.simulate(system, start, 3.0, rtol=1e-4, atol=atol) for atol in (None, {"x": 1e-9}))
    assert tight.stats.steps > 2 * loose.stats.steps


def test_a_longest_step(four_bar):
    system, start = four_bar
    assert np.diff(sr.simulate(system, start, 1.0, max_step=0.01).t).max() <= 0.01 * (1 + 1e-9)


# --- log and progress ------------------------------------------------------------------------------------------------
def test_only_a_run_that_failed_is_logged(four_bar, caplog):
    system, start = four_bar
    with caplog.at_level(logging.INFO, logger="sarrus"):
        sr.simulate(system, start, 0.1)
        assert not caplog.records
        traj = sr.simulate(system, start, 10.0, max_steps=3)
    (entry,) = caplog.records
    assert entry.levelname == "WARNING" and str(traj.status) in entry.message and "four-bar" in entry.message


class Screen(io.StringIO):
    """A terminal, or a file."""

    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def slowly(seconds=0.12):
    """A run that takes so long on the clock."""
    import time

    def law(t):
        time.sleep(seconds / 20)
        return 0.0 if t < 1e9 else 1.0

    return sr.simulate(carts(), carts().assemble({}), 1.0, inputs={"x": law}, method="euler", dt=0.05)


@pytest.mark.parametrize(
    "terminal, wanted, patience, shown",
    [
        (True, None, 0.0, True),
        (False, None, 0.0, False),
        (True, None, 60.0, False),
        (False, True, 60.0, True),
        (True, False, 0.0, False),
    ],
)
def test_the_progress_bar_comes_when_it_is_of_use(monkeypatch, terminal, wanted, patience, shown):
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    with progress.Progress("lathe", 0.0, 4.0, wanted) as bar:
        bar.show(1.0)
        bar.show(3.0)
    assert bool(screen.getvalue()) == shown
    if shown:
        text = screen.getvalue()
        assert "lathe" in text and "75%" in text and "t = 3 s" in text and "left" in text


def test_two_seconds_pass_before_anything_is_shown():
    assert progress.PATIENCE == 2.0


def test_a_bar_beside_another_display_does_not_end_the_run(monkeypatch):
    monkeypatch.setattr("sys.stderr", Screen(True))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with RichProgress():
        assert slowly().status.ok
    assert slowly().status.ok
    monkeypatch.setattr("sys.stderr", None)  # as in a program without a console
    assert slowly().status.ok


# --- odd machines ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_a_structure_stands_still(method):
    system = truss()
    traj = sr.simulate(system, system.assemble(), 1.0, **steps_of(method))
    assert traj.status.code == "finished"
    np.testing.assert_allclose(traj.q, np.tile(traj.q[0], (len(traj), 1)), rtol=0, atol=1e-12)
    audit = traj.audit()
    assert audit.ok(), audit
    # the two bars carry their own weight: moments about A and B give the force at C
    lam = traj.lam[-1]
    a, b = traj.q[-1]
    arm = np.array([[np.cos(a), np.sin(a)], [np.cos(b), np.sin(b)]])
    weight = 9.81 / 2 * arm[:, 0]
    force = np.linalg.solve(np.stack([-arm[:, 1], arm[:, 0]], axis=1) * [[1], [-1]], weight)
    np.testing.assert_allclose(np.abs(lam[[0, 2]]), np.abs(force), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_machine_moved_by_time_alone(method):
    system = driven_crank()
    traj = sr.simulate(system, system.assemble(), 1.0, **steps_of(method))
    assert traj.status.code == "finished"
    np.testing.assert_allclose(traj["A"], 1 + 2 * traj.t + 0.3 * np.sin(3 * traj.t), rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj["A.v"], 2 + 0.9 * np.cos(3 * traj.t), rtol=1e-9)
    audit = traj.audit()
    assert audit.loop.relative < 1e-12 and audit.motion.relative < 1e-10
    work = np.trapezoid(traj["drive.force"][:, 0] * traj["A.v"], traj.t)
    change = traj["energy.total"][-1] - traj["energy.total"][0]
    lost = np.trapezoid(traj["energy.dissipated"], traj.t)
    assert lost > 0
    if method in FIXED:  # enough rows for the trapezoidal rule
        np.testing.assert_allclose(work - lost, change, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_do(method):
    system = carts()
    traj = sr.simulate(system, system.assemble({"x": 1.0}), 100.0, **(steps_of(method) | {"max_steps": 20_000}))
    np.testing.assert_array_equal(traj.q, np.tile([1.0, 0.0], (len(traj), 1)))
    assert traj.audit().ok()


def test_a_machine_without_inputs_or_constraints():
    mech = sr.Mechanism("stone")
    mech.prismatic("z", mech.ground, mech.body("stone", 1.0), "z")
    system = sr.compile(mech)
    for inputs in (None, {}, [], 0.0, lambda t: []):
        traj = sr.simulate(system, system.state([0.0], [3.0]), 1.0, inputs=inputs, active={})
        np.testing.assert_allclose(traj["z"], 3 * traj.t - 9.81 / 2 * traj.t**2, rtol=0, atol=1e-13)
        assert traj.u.shape == (len(traj), 0) and traj.lam.shape == (len(traj), 0)
    with pytest.raises(StateError, match=r"inputs: expected 0 value\(s\), got shape \(1,\)"):
        sr.simulate(system, system.state([0.0]), 1.0, inputs=[1.0])


def test_a_disc_rolls_without_slipping():
    system = library("rolling_disc")
    start = system.assemble(velocities={"disc.omega.y": 3.0})
    traj = sr.simulate(system, start, 3.0, rtol=1e-10)
    audit = traj.audit()
    assert audit.ok(1e-8), audit
    np.testing.assert_allclose(traj["energy.total"], traj["energy.total"][0], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(traj["disc.quat_wxyz"], axis=1), 1, rtol=0, atol=1e-15)
    assert audit.velocity.relative < 1e-12


def test_a_free_body_spins_as_euler_says():
    """Quaternions: the angular momentum in the world stays, over many turns."""
    mech = sr.Mechanism("wing nut", gravity=(0, 0, 0))
    inertia = np.diag([1.0, 2.0, 3.0])
    mech.free("f", mech.body("b", 1.0, inertia=inertia))
    system = sr.compile(mech)
    start = system.assemble(velocities={"f.omega": (0.01, 3.0, 0.01), "f.velocity": (1, 2, 3)})
    traj = sr.simulate(system, start, 20.0, rtol=1e-10)
    spin = np.einsum("nij,nj->ni", traj["b.rotation"], traj["f.omega"] @ inertia)
    np.testing.assert_allclose(spin, np.tile(spin[0], (len(traj), 1)), rtol=0, atol=2e-8)
    np.testing.assert_allclose(traj["b.position"], np.outer(traj.t, [1, 2, 3]), rtol=0, atol=1e-11)
    assert np.ptp(traj["f.omega"][:, 1]) > 5  # it tumbled


def test_a_lagrangian_with_time_in_its_energy():
    """A pendulum whose pivot shakes, from the Lagrangian; against the same machine with a moving joint."""
    q, v, t = ca.SX.sym("q"), ca.SX.sym("vq"), ca.SX.sym("t")
    z = 0.1 * ca.sin(5 * t)
    x, y = ca.sin(q), z - ca.cos(q)
    vx, vy = (ca.jtimes(p, q, v) + ca.jacobian(p, t) for p in (x, y))
    shaken = sr.compile(
        sr.Lagrangian("shaken", time=t, coordinates=[q], velocities=[v], kinetic=(vx**2 + vy**2) / 2,
                      potential=9.81 * y)
    )  # fmt: skip
    mech = sr.Mechanism("shaken too", planar=True)
    hanger, bob = mech.body("hanger", 1.0), mech.body("bob", 1.0, com=(0, -1))
    mech.prismatic("lift", mech.ground, hanger, "z")
    mech.revolute("q", hanger, bob)
    mech.prescribe("shake", "lift", lambda t: 0.1 * ca.sin(5 * t))
    moved = sr.compile(mech)
    one = sr.simulate(shaken, shaken.state([0.5]), 3.0, rtol=1e-11)
    two = sr.simulate(moved, moved.assemble({"q": 0.5}, velocities={"q": 0.0}), 3.0, rtol=1e-11, output=one.t)
    np.testing.assert_allclose(one["q"], two["q"], rtol=0, atol=1e-9)
    assert one.audit().ok() and two.audit().ok()


# --- energy ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, scale", [("four_bar", 3.0), ("five_bar", 1.0), ("planar_platform", 2.0), ("stewart", 60.0)]
)
def test_the_work_of_motors_is_the_change_of_energy(name, scale):
    """By Simpson's rule over a fine record, beside the audit's own integral."""
    system = library(name)
    nu = system.layout.nu
    phase = np.linspace(0, 2, nu)
    times = np.linspace(0, 0.5, 801)
    traj = sr.simulate(
        system, system.assemble(), 0.5, inputs=lambda t: [scale * np.sin(5 * t + x) for x in phase], rtol=1e-11,
        output=times,
    )  # fmt: skip
    B = system.terms(traj.state(0)).B  # constant: each motor acts on its own joint
    power = np.einsum("nv,vu,nu->n", traj.v, B, traj.u)
    np.testing.assert_allclose(traj.u, scale * np.sin(5 * times[:, None] + phase), rtol=0, atol=1e-12 * scale)
    work = simpson(power, x=times)
    change = traj["energy.total"][-1] - traj["energy.total"][0]
    assert abs(change) > 1e-3
    np.testing.assert_allclose(change, work, rtol=1e-8)
    audit = traj.audit()
    assert audit.ok(1e-8), audit
    np.testing.assert_allclose(audit.work, work, rtol=1e-8)
    assert audit.loop.relative < 1e-12 and audit.motion.relative < 1e-10


# --- scales ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
def test_units_do_not_matter(method):
    """The same linkage a million times smaller, larger, lighter or heavier moves in the same steps."""

    def motion(length, mass):
        sizes = {f"L{k}": x * length for k, x in enumerate((0.4, 1.1, 0.9, 1.2), 1)}
        system = sr.compile(sr.library.build("four_bar", **sizes, **{f"m{k}": k * mass for k in (1, 2, 3)}))
        second = np.sqrt(length)  # gravity stays
        start = system.assemble({"A": 1.0}, velocities={"A": 3.0 / second})
        return sr.simulate(system, start, 2.0 * second, method=method), second

    normal, _ = motion(1.0, 1.0)
    for length, mass in ((1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e-6, 1e-6), (1e6, 1e6)):
        traj, second = motion(length, mass)
        assert traj.stats.steps == normal.stats.steps, (length, mass)
        np.testing.assert_allclose(traj.t / second, normal.t, rtol=1e-5)  # rounding is part of small error estimates
        np.testing.assert_allclose(traj.q[-1], normal.q[-1], rtol=0, atol=1e-9)
        audit = traj.audit()
        assert audit.ok() and audit.loop.relative < 1e-12, audit


def test_events_at_small_and_large_scales():
    for scale in (1e-9, 1e9):
        system = ball()
        traj = sr.simulate(
            system, system.state([scale]), 3 * np.sqrt(2 * scale / 9.81), active={"floor": False}, rtol=1e-10,
            events=sr.Event("hit", lambda t, x: x["z"], action=lambda t, x: sr.Change(velocities={"z": -x["z.v"]})),
        )  # fmt: skip
        np.testing.assert_allclose([e.t for e in traj.events][:1], np.sqrt(2 * scale / 9.81), rtol=1e-9)
        assert len(traj.events) in (1, 2)  # the second lies at the very end, to rounding


# --- arrays of any make ----------------------------------------------------------------------------------------------
def test_arrays_need_not_be_contiguous_or_of_floats():
    system = carts()
    wide = np.zeros((2, 6), dtype=int)
    wide[0, ::3] = [1, 2]
    start = system.state(wide[0, ::3], np.asfortranarray(np.ones((2, 2), dtype=np.float32))[0])
    times = np.linspace(0, 4, 9)[::2]
    traj = sr.simulate(system, start, 4, inputs=np.arange(4)[::2], output=times)
    np.testing.assert_allclose(traj["x"], 1 + traj.t, rtol=1e-13)
    np.testing.assert_allclose(traj["y"], 2 + traj.t + 2 * traj.t**2, rtol=1e-13)
    assert all(getattr(traj, key).flags.c_contiguous for key in "tqvau")


def test_what_the_user_keeps_is_not_touched(four_bar):
    system, start = four_bar
    times, u = np.linspace(0, 1, 5), np.array([1.0])
    q, v = start.q.copy(), start.v.copy()
    sr.simulate(system, start, 1.0, inputs=u, output=times)
    np.testing.assert_array_equal(start.q, q)
    np.testing.assert_array_equal(start.v, v)
    assert u.tolist() == [1.0] and times.tolist() == [0, 0.25, 0.5, 0.75, 1]


# --- threads and processes -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", [lambda t: np.sin(3 * t), lambda t: float(np.sin(3 * t))], ids=["compiled", "python"])
def test_threads_compute_the_same(four_bar, law):
    system, start = four_bar
    alone = sr.simulate(system, start, 3.0, inputs=law, events=sr.Event("e", lambda t, x: x["B"] + 1.5))
    found = {}

    def work(k):
        found[k] = sr.simulate(system, start, 3.0, inputs=law, events=sr.Event("e", lambda t, x: x["B"] + 1.5))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for traj in found.values():
        np.testing.assert_array_equal(traj.q, alone.q)
        assert [e.t for e in traj.events] == [e.t for e in alone.events]


def test_a_run_within_a_run(four_bar):
    """A function of the user's may itself simulate: a controller that looks ahead."""
    system, start = four_bar
    seen = []

    def look_ahead(t, q, v):
        ahead = sr.simulate(system, system.state(q, v, t), t + 0.1, rtol=1e-6)
        seen.append(ahead["A"][-1])
        return -0.5 * ahead["A.v"][-1]

    traj = sr.simulate(system, start, 0.5, inputs=look_ahead, sample=0.1)
    assert traj.status.ok and len(seen) == 5


def test_a_machine_says_why_it_cannot_be_pickled(four_bar):
    system, start = four_bar
    for thing in (system, sr.simulate(system, start, 0.1)):
        with pytest.raises(SarrusError, match=r"four-bar: a compiled machine cannot be pickled .* from the cache"):
            pickle.dumps(thing)
    revived = pickle.loads(pickle.dumps(start))
    np.testing.assert_array_equal(revived.q, start.q)
    assert sr.simulate(system, revived, 0.1).status.ok
