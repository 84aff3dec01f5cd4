"""Inputs: constants, series, functions of the motion compiled or called in Python, digital controllers."""

import functools
import inspect
import math

import casadi as ca
import numpy as np
import pytest
from driving import carts, library, oscillator

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError
from sarrus.simulation.callbacks import numeric_moment


def at_rest(system, **positions):
    return system.assemble(positions)


def run(inputs, t_end=2.0, system=None, start=None, **options):
    system = system or carts()
    options.setdefault("rtol", 1e-12)
    return sr.simulate(system, start or at_rest(system), t_end, inputs=inputs, **options)


# --- constants -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "inputs, expected",
    [
        (3.0, (3.0, 3.0)),
        (3, (3.0, 3.0)),
        (np.array(3), (3.0, 3.0)),
        ([1.0, -2.0], (1.0, -2.0)),
        (np.array([1, 9, -2, 9])[::2], (1.0, -2.0)),
        ({"y": 4.0}, (0.0, 4.0)),
        ({"x.u": [1], "y": np.float32(0.5)}, (1.0, 0.5)),
        ({}, (0.0, 0.0)),
        (None, (0.0, 0.0)),
    ],
    ids=repr,
)
def test_constants_move_the_carts_as_newton_says(inputs, expected):
    traj = run(inputs)
    np.testing.assert_allclose(traj.u, np.tile(expected, (len(traj), 1)), rtol=0, atol=0)
    np.testing.assert_allclose(traj.q[-1], [expected[0] / 2.0 * 2.0, expected[1] / 0.5 * 2.0], rtol=1e-13, atol=1e-15)
    assert traj.settings["compiled inputs"]


# --- series ----------------------------------------------------------------------------------------------------------
def test_a_held_series_is_constant_between_its_samples():
    series = sr.Series([0.0, 0.7, 1.5], [[2.0, 0.0], [-1.0, 0.5], [4.0, 0.0]], "hold")
    traj = run(series)
    speed = (2.0 * 0.7 - 1.0 * 0.8 + 4.0 * 0.5) / 2.0  # the momentum is the sum of the impulses
    np.testing.assert_allclose(traj["x.v"][-1], speed, rtol=1e-14)
    place = 1.0 * 0.7**2 / 2 + (0.7 * 0.8 - 0.5 * 0.8**2 / 2) + (0.3 * 0.5 + 2.0 * 0.5**2 / 2)
    np.testing.assert_allclose(traj["x"][-1], place, rtol=1e-14)
    for t in (0.7, 1.5):  # the jump of the acceleration stands in two rows
        assert list(traj.t).count(t) == 2
    assert traj.audit().ok(1e-12), traj.audit()
    assert traj.audit().jumps == ()  # no energy is added by a jump of a force


def test_straight_lines_between_samples():
    traj = run({"y": sr.Series([0.5, 1.5], [0.0, 3.0])}, output=[0.25, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(traj["y"][:2], 0.0, atol=1e-15)  # the first value holds before it
    np.testing.assert_allclose(traj["y"][2:4], np.array([0.5, 1.0]) ** 3, rtol=1e-13)  # 0.5 kg: y'' = 6 (t - 0.5)
    np.testing.assert_allclose(traj["y"][4], 1 + 3 * 0.5 + 6 * 0.25 / 2, rtol=1e-13)  # the last value holds after it
    np.testing.assert_allclose(traj["y.u"], [0, 0, 1.5, 3, 3], atol=1e-15)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
def test_a_pulse_much_shorter_than_a_step_is_not_missed(method):
    pulse = sr.Series([0.0, 3.3, 3.3001, 10.0], [0.0, 500.0, 0.0, 0.0], "hold")
    traj = run({"x": pulse}, 10.0, method=method, rtol=1e-6)
    np.testing.assert_allclose(traj["x.v"][-1], 500.0 * 1e-4 / 2.0, rtol=1e-9)
    assert traj.stats.steps < 200


def test_samples_end_fixed_steps_too():
    traj = run({"x": sr.Series([0.0, 0.33], [1.0, 3.0], "hold")}, 1.0, method="rk4", dt=0.1)
    np.testing.assert_allclose(traj["x.v"][-1], (0.33 + 3 * 0.67) / 2.0, rtol=1e-13)
    assert 0.33 in traj.t


def test_a_series_of_one_sample_is_a_constant():
    for between in ("linear", "hold"):
        traj = run({"x": sr.Series([0.4], [1.5], between)})
        np.testing.assert_allclose(traj["x"], 1.5 / 4 * traj.t**2, rtol=1e-13)
        np.testing.assert_array_equal(traj["x.u"], 1.5)


def test_a_jump_at_the_very_end_does_not_reach_into_the_run():
    traj = run({"x": sr.Series([0.0, 2.0], [1.0, 100.0], "hold")})
    np.testing.assert_allclose(traj["x.v"][-1], 1.0, rtol=1e-14)
    assert traj["x.u"][-1] == 1.0
    traj = sr.simulate(carts(), traj, 3.0, inputs={"x": sr.Series([0.0, 2.0], [1.0, 100.0], "hold")})
    np.testing.assert_allclose(traj["x.v"][-1], 51.0, rtol=1e-14)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (([0, 1, 1], [1, 2, 3]), "times must be finite and rising"),
        (([], []), "there must be at least one"),
        (([0, np.nan], [1, 2]), "times must be finite"),
        (([0, 1], [1, 2, 3]), r"expected 2 finite values \(or rows\), got shape \(3,\)"),
        (([0, 1], [1, np.inf]), "expected 2 finite values"),
        (([0, 1], [1, 2], "cubic"), "between='cubic'; use 'linear' or 'hold'"),
    ],
)
def test_bad_series_are_refused(arguments, text):
    with pytest.raises(StateError, match=text):
        sr.Series(*arguments)


# --- functions -------------------------------------------------------------------------------------------------------
def spring(t, x):
    return -8.0 * x["x"]


@pytest.mark.parametrize(
    "law",
    [lambda t, x: -8.0 * x["x"], lambda t, q, v: -8.0 * q[0], spring, lambda t, x, k=8.0: [-k * x["x"]]],
    ids=["f(t, x)", "f(t, q, v)", "named", "default"],
)
def test_a_function_of_the_motion_is_compiled(law):
    start = carts().assemble({"x": 0.3})
    traj = run({"x": law}, start=start)
    assert traj.settings["compiled inputs"]
    np.testing.assert_allclose(traj["x"], 0.3 * np.cos(2 * traj.t), rtol=0, atol=2e-11)  # 2 kg: omega = 2
    np.testing.assert_allclose(traj["x.u"], -8 * traj["x"], rtol=1e-14)


def test_a_compiled_function_is_not_called_during_the_run():
    for t_end in (1.0, 50.0):
        count = 0

        def law(t, x):
            nonlocal count
            count += 1
            return np.sin(3 * t) - x["x"]

        traj = run({"x": law}, t_end, rtol=1e-8)
        assert traj.settings["compiled inputs"] and traj.stats.evaluations > 50
        assert count <= 10  # for symbols, and for the comparison of both


@pytest.mark.parametrize("name", ["abs", "min", "if", "search", "table"])
def test_what_cannot_be_traced_is_called_in_python_and_does_the_same(name):
    branching = {
        "abs": lambda t: float(abs(t - 9)),
        "min": lambda t: min(t, 9.0) - 9,
        "if": lambda t, x: 1 - t if x["x.v"] < 1e9 else 7.0,
        "search": lambda t: np.array([5.0, 7.0])[np.searchsorted([0, 10], t, side="right") - 1] + 2 * t,
        "table": lambda t: {0: 2 * t}[int(t // 100)],
    }
    smooth = {
        "abs": lambda t: 9 - t,
        "min": lambda t: t - 9,
        "if": lambda t: 1 - t,
        "search": lambda t: 5 + 2 * t,
        "table": lambda t: 2 * t,
    }
    slow, fast = run({"x": branching[name]}), run({"x": smooth[name]})
    assert not slow.settings["compiled inputs"] and fast.settings["compiled inputs"]
    assert len(slow) == len(fast)
    np.testing.assert_allclose(slow.q, fast.q, rtol=1e-13, atol=1e-14)


def test_constants_series_and_functions_side_by_side():
    traj = run({"x": lambda t: 6 * t, "y": sr.Series([0, 2], [0, 3])})
    np.testing.assert_allclose(traj.q[-1], [8 / 2, 1.5 / 0.5 * 8 / 6], rtol=1e-12)
    assert not traj.settings["compiled inputs"]  # the series is not, so nothing is
    traj = run({"x": lambda t: 6 * t, "y": 1.0})
    np.testing.assert_allclose(traj.q[-1], [8 / 2, 2 / 0.5], rtol=1e-12)
    assert traj.settings["compiled inputs"]


def test_one_function_for_all_inputs():
    for law in (lambda t: [6 * t, 1.0], lambda t: np.array([6 * t, 1.0]), lambda t: ca.vertcat(6 * t, 1)):
        np.testing.assert_allclose(run(law).q[-1], [4, 4], rtol=1e-12)


@pytest.mark.parametrize("name", ["four_bar", "stewart"])
def test_a_moment_knows_all_by_name(name):
    system = library(name)
    state = system.assemble()
    rng = np.random.default_rng(3)
    v, u, lam = (rng.normal(size=n) for n in (system.layout.nv, system.layout.nu, system.layout.m))
    state = system.state(state.q, v, 1.5)
    x = numeric_moment(system, 1.5, state.q, v, u, lam)
    for k, q_name in enumerate(system.layout.q_names):
        assert x[q_name] == state.q[k] == x[f"{q_name}.q"]
    for k, v_name in enumerate(system.layout.v_names):
        assert x[f"{v_name}.v"] == v[k]
    for k, u_name in enumerate(system.layout.u_names):
        assert x[f"{u_name}.u"] == u[k]
    for group in system.groups:
        np.testing.assert_array_equal(np.atleast_1d(x[f"{group}.force"]), lam[system.layout.group_rows(group)])
    for frame, (place, turn) in system.frames(state).items():
        np.testing.assert_array_equal(x[f"{frame}.position"], place)
        np.testing.assert_array_equal(x[f"{frame}.rotation"], turn)
    for key, value in system.parameters.items():
        assert x[key] == value
    for known in x.names():
        assert np.all(np.isfinite(np.asarray(x[known], dtype=float)))


def test_frames_and_parameters_in_compiled_inputs():
    system = library("pendulum")
    start = system.assemble({"A": 0.3})
    compiled = run({"A": lambda t, x: x["m"] * 9.81 * x["tip.position"][0]}, 3.0, system, start)  # carries the weight
    assert compiled.settings["compiled inputs"]
    np.testing.assert_allclose(compiled["A"], 0.3, atol=1e-14)
    python = run({"A": lambda t, x: float(x["m"] * 9.81 * x["tip.position"][0])}, 3.0, system, start)
    assert not python.settings["compiled inputs"]
    np.testing.assert_allclose(python["A"], 0.3, atol=1e-14)


# --- digital controllers ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "t_end, period, count",
    [(1.0, 0.1, 10), (2.0, 0.3, 7), (10.0, 0.1, 100), (3.0, 1e-3, 3000), (0.05, 0.1, 1), (0.3, 0.1, 3), (1.0, 1.0, 1)],
)
@pytest.mark.parametrize("t_start", [0.0, 7.3])
def test_a_sampled_function_is_called_once_for_each_period(t_end, period, count, t_start):
    calls = []

    def law(t):
        calls.append(t)
        return 0.0

    start = carts().state([0.0, 0.0], t=t_start)
    traj = run({"x": law}, t_start + t_end, start=start, sample=period, method="rk4", dt=0.7 * period)
    assert len(calls) == count
    np.testing.assert_allclose(calls, t_start + period * np.arange(count), rtol=0, atol=1e-12)
    assert np.diff(traj.t).min() > 0.04 * period  # no crumbs of steps at the end


@pytest.mark.parametrize(
    "options", [{"max_step": 0.1}, {"method": "rk4", "dt": 0.037}, {"output": np.linspace(0, 2, 33)}], ids=str
)
def test_a_sampled_input_is_held(options):
    """x'' = u/m with u held: the exact discrete-time recursion."""
    period, start = 0.25, carts().assemble({"x": 1.0})
    traj = run({"x": lambda t, x: -6.0 * x["x"] - 3.0 * x["x.v"]}, start=start, sample=period, **options)
    assert not traj.settings["compiled inputs"]
    x, v = 1.0, 0.0
    for k in range(8):
        u = -6 * x - 3 * v
        inside = (traj.t > k * period + 1e-9) & (traj.t < (k + 1) * period - 1e-9)
        assert np.any(inside)
        np.testing.assert_allclose(traj["x.u"][inside], u, rtol=1e-10)
        since = traj.t[inside] - k * period
        np.testing.assert_allclose(traj["x"][inside], x + v * since + u / 4 * since**2, rtol=0, atol=1e-12)
        x, v = x + v * period + u / 4 * period**2, v + u / 2 * period
    np.testing.assert_allclose(traj.q[-1, 0], x, rtol=1e-11)
    assert traj.audit().ok(1e-11), traj.audit()


class Integrating:
    """A controller with a memory."""

    def __init__(self):
        self.total, self.times = 0.0, []

    def __call__(self, t, x):
        self.times.append(t)
        self.total += x["x"]
        return -4.0 * x["x"] - 2.0 * x["x.v"] - 0.5 * self.total


def test_a_controller_goes_on_with_its_clock_when_a_run_is_continued():
    start = carts().assemble({"x": 1.0})
    one, two = Integrating(), Integrating()
    whole = run({"x": one}, 2.0, start=start, sample=0.07)
    for first in (0.5, 0.49):  # between samples, and at one
        two = Integrating()
        part = run({"x": two}, first, start=start, sample=0.07)
        both = run({"x": two}, 2.0, start=part, sample=0.07)
        np.testing.assert_allclose(two.times, one.times, rtol=0, atol=1e-13)
        np.testing.assert_allclose(both.q[-1], whole.q[-1], rtol=1e-12)
        assert both.audit().ok(1e-11), both.audit()


def test_a_loaded_trajectory_keeps_the_clock(tmp_path):
    start = carts().assemble({"x": 1.0})
    control = Integrating()
    part = run({"x": control}, 0.5, start=start, sample=0.07)
    part.save(tmp_path / "part.csv")
    loaded = sr.Trajectory.load(tmp_path / "part.csv", carts())
    run({"x": control}, 1.0, start=loaded, sample=0.07)
    np.testing.assert_allclose(np.diff(control.times), 0.07, rtol=1e-12)


def test_runs_with_and_without_samples_can_be_joined():
    """Each part is judged by its own rule: the work of inputs that change smoothly, and of those that are held."""
    start = carts().assemble({"x": 1.0})
    parts = [{"inputs": {"x": lambda t: np.sin(9 * t)}}]
    parts += [{"inputs": {"x": lambda t, x: -4 * x["x"] - x["x.v"]}, "sample": 0.1}]
    parts += [{"inputs": {"x": lambda t: np.cos(9 * t)}}, {"inputs": {"x": sr.Series([3.1, 3.5], [1, -2], "hold")}}]
    traj = start
    for k, options in enumerate(parts, 1):
        traj = sr.simulate(carts(), traj, float(k), rtol=1e-10, max_step=0.03, **options)
        assert traj.audit().ok(1e-9), (k, str(traj.audit()))
    assert [segment.held for segment in traj.segments] == [False, True, False, False]


def test_functions_of_every_make():
    def plain(t):
        return np.sin(t)

    class Law:
        def __call__(self, t):
            return np.sin(t)

        def method(self, t):
            return np.sin(t)

    t = ca.SX.sym("t")
    made_by_casadi = ca.Function("f", [t], [ca.sin(t)])
    expected = run({"x": plain}).q
    assert expected[-1, 0] > 0.1
    for law in (Law(), Law().method, functools.partial(lambda k, t: k * np.sin(t), 1.0), np.sin, made_by_casadi):
        np.testing.assert_allclose(run({"x": law}).q, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(run({"x": math.sin}).q[-1], expected[-1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(run({"x": lambda *a: 1.0, "y": lambda t, **k: True}).q[-1], [1.0, 4.0], rtol=1e-12)


def test_constants_need_no_samples():
    assert len(run({"x": 1.0}, sample=0.01)) == len(run({"x": 1.0}))


# --- what goes wrong -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "inputs, error, text",
    [
        ([1.0, 2.0, 3.0], StateError, r"inputs: expected 2 value\(s\), got shape \(3,\); for samples use sr.Series"),
        ({"x": [1.0, 2.0]}, StateError, r"input 'x': expected 1 value\(s\), got shape \(2,\)"),
        ({"x": [[1.0]]}, StateError, r"input 'x': expected 1 value\(s\), got shape \(1, 1\)"),
        ("full", StateError, "expected numbers, a Series or a function, got 'full'"),
        ({"x": ca.SX.sym("t")}, StateError, r"input 'x': expected numbers.* write an expression of time as lambda t"),
        (lambda t: None, StateError, r"expected 2 number\(s\) from the function, got None"),
        ({"x": None}, StateError, "input 'x': expected finite numbers, got None"),
        (np.nan, StateError, "inputs: expected finite numbers, got nan"),
        ({"x": np.inf}, StateError, "input 'x': expected finite numbers, got inf"),
        ({"z": 1.0}, UnknownNameError, "unknown input 'z'. Known: 'x', 'y'"),
        ({3: 1.0}, UnknownNameError, "unknown input '3'"),
        (sr.Series([0, 1], [1, 2]), StateError, r"inputs: the series has 1 column\(s\), expected 2"),
        (lambda: 1.0, StateError, r"must take \(t\), \(t, x\) or \(t, q, v\), this one takes 0 arguments"),
        (lambda t, x, y, z: 1.0, StateError, "this one takes 4 arguments"),
        ({"x": lambda t: [t, t]}, StateError, r"input 'x' \(.*test_inputs.py, line \d+\): expected 1 number"),
        (lambda t: t, StateError, r"input 'x', 'y' \(.*\): expected 2 number\(s\) from the function, got 1"),
        (lambda t: "fast", StateError, "expected 2 number.* from the function, got 'fast'"),
        (lambda t, x: x["z"], UnknownNameError, "unknown value 'z'.*Known: 'x', 'y', 'x.v', 'y.v'"),
        (lambda t, x: x["x.u"], UnknownNameError, "inputs are what this function is asked for"),
        (lambda t, x: x.lam, UnknownNameError, "constraint forces depend on the inputs"),
    ],
)
def test_bad_inputs_are_refused_before_the_first_step(inputs, error, text):
    with pytest.raises(error, match=text):
        run(inputs)


def test_a_sample_period_is_positive():
    for period in (0.0, -1.0, np.nan, np.inf, "fast"):
        with pytest.raises(StateError, match="sample: expected a positive number of seconds"):
            run({"x": lambda t: 1.0}, sample=period)


def test_an_error_at_the_start_is_the_users_own():
    def law(t):
        return [1.0, 2.0][int(t) + 7]

    with pytest.raises(IndexError) as caught:
        run({"x": law})
    assert any("at the start of the simulation; nothing was computed" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("sample", [None, 0.01])
def test_an_error_later_names_the_line_and_keeps_the_motion(sample, caplog):
    def law(t):
        if t > 0.5:
            raise ValueError("out of petrol")
        return 1.0

    line = inspect.getsourcelines(law)[1] + 2
    traj = run({"x": law}, sample=sample, max_step=0.02)
    assert traj.status.code == "callback failed" and not traj.status.ok
    text = str(traj.status)
    assert "input 'x'" in text and "raised ValueError: out of petrol" in text
    assert f"test_inputs.py, line {line})" in text and "Mend that function" in text
    assert text in caplog.text
    assert 0.45 < traj.t[-1] <= 0.51
    np.testing.assert_allclose(traj["x"], traj.t**2 / 4, rtol=1e-12, atol=1e-15)
    assert traj.audit().ok(1e-12)


def test_an_error_inside_a_library_is_traced_to_the_users_line():
    def law(t):
        return np.linalg.inv(np.zeros((2, 2)))[0, 0] if t > 0.5 else 1.0

    traj = run({"x": law})
    assert "LinAlgError" in traj.status.text and "test_inputs.py" in traj.status.text
    assert "site-packages" not in traj.status.text


# --- functions that change what they do ------------------------------------------------------------------------------
def test_an_input_follows_a_variable_that_an_action_changes():
    thrust = {"now": 2.0}

    def cut(t, x):
        thrust["now"] = -4.0

    traj = run({"x": lambda t: thrust["now"]}, events=sr.Event("cut", lambda t: t - 1, action=cut))
    assert not traj.settings["compiled inputs"]  # it was, until its meaning changed
    np.testing.assert_allclose(traj["x.v"][-1], (2.0 - 4.0) / 2.0, rtol=1e-12)
    np.testing.assert_allclose(traj["x"][-1], 0.5 + 1.0 - 1.0, rtol=1e-12)
    assert traj.audit().ok(1e-11), traj.audit()


@pytest.mark.parametrize("convert", [lambda x: x, float], ids=["compiled", "python"])
def test_inputs_see_parameters_that_an_event_changes(convert):
    heavier = sr.Event("load", lambda t: t - 1, action=sr.Change(parameters={"m": 5.0}))
    traj = run({"x": lambda t, x: convert(3.0 * x["m"])}, events=heavier)
    assert traj.settings["compiled inputs"] == (convert is not float)
    np.testing.assert_allclose(traj["x"][-1], 3.0 * 2.0**2 / 2, rtol=1e-12)  # u/m stays 3
    assert traj["x.u"][-1] == 15.0


def test_the_work_of_inputs_springs_and_dampers_adds_up():
    m, k, c = 2.0, 50.0, 3.0
    traj = run({"x": lambda t: 10 * np.sin(4 * t)}, 5.0, oscillator(), oscillator().assemble({"x": 0.2}), rtol=1e-11)
    audit = traj.audit()
    assert audit.ok(1e-9), audit
    amplitude = 10 / (k - m * 16 + 1j * c * 4)  # complex amplitude of the steady state
    decay, omega = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    offset = 0.2 - amplitude.imag
    slope = (-4 * amplitude.real + decay * offset) / omega
    exact = np.imag(amplitude * np.exp(4j * traj.t))
    exact += np.exp(-decay * traj.t) * (offset * np.cos(omega * traj.t) + slope * np.sin(omega * traj.t))
    np.testing.assert_allclose(traj["x"], exact, rtol=0, atol=1e-9)
