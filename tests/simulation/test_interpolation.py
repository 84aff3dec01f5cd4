"""Between the rows of a record: orders of accuracy, constraints that hold, events that are not smoothed over."""

import dataclasses

import numpy as np
import pytest

import sarrus as sr
from sarrus.dynamics.manifold import difference, quat_exp, quat_multiply, retract
from sarrus.errors import StateError
from sarrus.simulation import interpolate
from sarrus.simulation.status import Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory


@pytest.fixture(scope="module")
def circle() -> sr.System:
    return sr.compile(sr.library.build("particle_on_circle"))


@pytest.fixture(scope="module")
def driven() -> sr.System:
    """A crank whose angle follows a given law, and a coupler closed by a slider: the motion is known."""
    mech = sr.library.build("slider_crank", L2=2.0)
    mech.prescribe("drive", "A", lambda t: 0.4 + t + 0.5 * t * t)
    return sr.compile(mech)


def record(system, t, q, v, a, u=None, **fields) -> Trajectory:
    u = np.zeros((len(t), system.layout.nu)) if u is None else u
    fields.setdefault("segments", (Segment(0, {}, system.p),))
    return Trajectory(system, t, q, v, a, u, Status("finished", "", t[-1]), Stats("exact"), **fields)


def uniform(t, rate=1.3):
    """Uniform motion on the unit circle."""
    q = np.stack([np.cos(rate * t), np.sin(rate * t)], axis=1)
    return q, rate * q[:, ::-1] * [-1, 1], -(rate**2) * q


# --- polynomials -----------------------------------------------------------------------------------------------------
def test_plain_numbers_of_degree_five_are_exact(rng):
    layout = sr.compile(sr.library.build("underactuated_chain")).layout
    c = rng.normal(size=(6, layout.nv))
    t = np.array([0.0, 0.3, 1.0, 1.1])

    def exact(t):
        powers = [np.polynomial.polynomial.polyder(c, k) for k in range(3)]
        return [np.polynomial.polynomial.polyval(t, p).T for p in powers]

    when = np.array([0.1, 0.29, 0.7, 1.04])
    found = interpolate.hermite(layout, t, *exact(t), np.array([0, 0, 1, 2]), when)
    for x, y in zip(found, exact(when), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


def tumbling(t):
    """A quaternion with a closed form and its body-axes velocity and acceleration, derived by hand."""
    first, second = np.array([0.7, -0.4, 0.2]), np.array([0.1, 0.9, -0.5])
    s = np.sin(t)[:, None]
    q = quat_multiply(quat_exp(t[:, None] * first), quat_exp(s * second))
    R = rotation(quat_exp(s * second))
    turned = np.einsum("nji,j->ni", R, first)  # ω = exp(sin t b)ᵀ a + cos t b
    w = turned + np.cos(t)[:, None] * second
    a = np.cos(t)[:, None] * np.cross(turned, second) - s * second
    return q, w, a


def rotation(quat):
    w, xyz = quat[:, 0], quat[:, 1:]
    X = interpolate.skew(xyz)
    return np.eye(3) + 2 * w[:, None, None] * X + 2 * X @ X


def test_quaternions_converge_with_the_stated_orders():
    mech = sr.Mechanism("top")
    mech.spherical("S", mech.ground, mech.body("top", 1.0, (0, 0, 0.1), np.diag([1.0, 1.2, 1.4])))
    layout = sr.compile(mech).layout
    errors = []
    for count in (11, 21, 41):
        t = np.linspace(0, 2, count)
        index = np.arange(count - 1)
        when = t[:-1] + 0.37 * np.diff(t)
        found = interpolate.hermite(layout, t, *tumbling(t), index, when)
        exact = tumbling(when)
        gaps = (difference(layout, exact[0], found[0]), found[1] - exact[1], found[2] - exact[2])
        errors.append([np.abs(gap).max() for gap in gaps])
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders[-1] > [5.7, 4.7, 3.7]), orders
    np.testing.assert_allclose(np.linalg.norm(found[0], axis=1), 1.0, atol=1e-14)


def test_the_tumbling_motion_is_right():
    mech = sr.Mechanism("top")
    mech.spherical("S", mech.ground, mech.body("top", 1.0, (0, 0, 0.1), np.diag([1.0, 1.2, 1.4])))
    layout = sr.compile(mech).layout
    t, e = np.array([0.4, 1.9]), 1e-5
    before, now, after = (tumbling(t + k * e) for k in (-1, 0, 1))
    np.testing.assert_allclose(difference(layout, before[0], after[0]) / (2 * e), now[1], atol=1e-8)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * e), now[2], atol=1e-8)
    np.testing.assert_allclose(
        retract(layout, before[0], difference(layout, before[0], after[0])), after[0], atol=1e-14
    )


def test_other_accelerations_on_setting_out_belong_to_the_start_of_each_interval():
    layout = sr.compile(sr.library.build("pendulum")).layout
    t = np.array([0.0, 1.0, 2.0])  # acceleration 2 until t = 1, then -4; rows know the one they were reached with
    q, v, a = np.array([[0.0], [1.0], [1.0]]), np.array([[0.0], [2.0], [-2.0]]), np.array([[2.0], [2.0], [-4.0]])
    start = np.array([[2.0], [-4.0], [-4.0]])
    when, index = np.array([0.5, 1.5]), np.array([0, 1])
    found = interpolate.hermite(layout, t, q, v, a, index, when, start)
    np.testing.assert_allclose(found[0][:, 0], [0.25, 1.5], atol=1e-14)
    np.testing.assert_allclose(found[1][:, 0], [1.0, 0.0], atol=1e-14)
    assert abs(interpolate.hermite(layout, t, q, v, a, index, when)[0][1, 0] - 1.5) > 0.05


def test_values_between_rows_are_exact_up_to_degree_five_within_each_stretch():
    t = np.array([0.0, 0.2, 0.5, 0.6, 1.0, 1.3, 1.4, 1.4, 1.5, 1.9])
    first, second = np.array([1.0, -2.0, 0.5, 0.3, -0.2, 1.1]), np.array([-3.0, 1.0, 2.0])

    def exact(t, early):
        return np.where(early, np.polyval(first, t), np.polyval(second, t))[:, None]

    values = exact(t, np.arange(10) < 7)
    when = np.array([0.1, 0.55, 1.39, 1.45, 1.8])
    found = interpolate.between(values, t, np.array([6]), np.array([0, 2, 5, 7, 8]), when)
    np.testing.assert_allclose(found, exact(when, when < 1.4), atol=1e-12)


def test_two_rows_are_joined_by_a_straight_line():
    found = interpolate.between(
        np.array([[1.0], [3.0]]), np.array([0.0, 2.0]), np.zeros(0, int), np.zeros(1, int), [0.5]
    )
    assert found[0, 0] == pytest.approx(1.5, abs=1e-15)


# --- at and sample ---------------------------------------------------------------------------------------------------
def test_at_follows_the_motion_and_keeps_the_constraint(circle):
    t = np.linspace(0, 3, 31)
    traj = record(circle, t, *uniform(t))
    when = np.linspace(0, 3, 200)
    states = traj.at(when)
    q, v, _ = uniform(when)
    np.testing.assert_allclose(states.q, q, atol=2e-10)
    np.testing.assert_allclose(states.v, v, atol=2e-8)
    terms = circle.terms(states)
    assert np.abs(terms.phi).max() < 2e-15
    assert np.abs(np.einsum("nmk,nk->nm", terms.A, states.v)).max() < 5e-15
    single = traj.at(1.234)
    assert single.count is None and single.t == 1.234
    np.testing.assert_allclose(single.q, [np.cos(1.3 * 1.234), np.sin(1.3 * 1.234)], atol=2e-10)


def test_at_the_time_of_a_row_is_that_row_exactly(circle):
    t = np.linspace(0, 3, 8)
    traj = record(circle, t, *uniform(t))
    for array, found in ((traj.q, traj.at(t).q), (traj.v, traj.at(t).v), (traj.q[3], traj.at(t[3]).q)):
        np.testing.assert_array_equal(found, array)


def test_moving_constraints_are_kept_at_the_time_asked_for(driven):
    times = np.linspace(0, 1, 41)
    rows = [driven.assemble(near=driven.assemble(), t=x) for x in times]
    q, v = np.stack([s.q for s in rows]), np.stack([s.v for s in rows])
    a = driven.acceleration(driven.state(q, v, times))
    traj = record(driven, times, q, v, a)
    for when in (0.0371, 0.512, 0.99):
        state = traj.at(when)
        assert state["A"] == pytest.approx(0.4 + when + 0.5 * when**2, abs=1e-13)
        assert state["A.v"] == pytest.approx(1 + when, abs=1e-12)
        truth = driven.assemble(near=state, t=when)
        np.testing.assert_allclose(state.q, truth.q, atol=1e-12)
        np.testing.assert_allclose(state.v, truth.v, atol=1e-11)


def test_outside_the_record_is_refused_with_its_span(circle):
    t = np.linspace(0, 3, 8)
    traj = record(circle, t, *uniform(t))
    for when in (-0.001, 3.001, [1.0, 4.0]):
        with pytest.raises(
            StateError, match=r"lies outside the record, which spans 0 s to 3 s; nothing is extrapolated"
        ):
            traj.at(when)
    with pytest.raises(StateError, match=r"expected finite times"):
        traj.at(float("nan"))
    with pytest.raises(StateError, match=r"each later than the one before"):
        traj.sample([1.0, 0.5])
    with pytest.raises(StateError, match=r"at least one time"):
        traj.sample([])


def test_sample_is_a_trajectory_at_the_times_asked_for(circle):
    t = np.linspace(0, 3, 61)
    traj = record(circle, t, *uniform(t), settings={"method": "exact"})
    other = traj.sample(np.linspace(0.5, 2.5, 17))
    assert (len(other), len(traj)) == (17, 61)
    q, v, a = uniform(other.t)
    np.testing.assert_allclose(other.q, q, atol=1e-11)
    np.testing.assert_allclose(other.v, v, atol=1e-9)
    np.testing.assert_allclose(other.a, a, atol=1e-6)
    assert other.settings == traj.settings
    np.testing.assert_array_equal(traj.sample(t).a, traj.a)


# --- events ----------------------------------------------------------------------------------------------------------
def released(circle, doubled=True):
    """Uniformly on the circle until t = 1, then along its tangent: no motion of this machine, but smooth."""
    t = np.linspace(0, 1, 21)
    q, v, a = uniform(t)
    s = np.linspace(0 if doubled else 0.05, 1, 21 if doubled else 20)[:, None]
    q2, v2 = q[-1] + s * v[-1], np.repeat(v[-1:], len(s), axis=0)
    segments = (Segment(0, {"circle": True}, circle.p), Segment(21, {"circle": False}, circle.p))
    arrays = [np.concatenate(pair) for pair in ((t, 1 + s[:, 0]), (q, q2), (v, v2), (a, 0 * v2))]
    return record(circle, *arrays, segments=segments)


def test_nothing_is_interpolated_across_an_event(circle):
    traj = released(circle)
    before, after = traj.at(1 - 1e-3), traj.at(1 + 1e-3)
    np.testing.assert_allclose(before.q, uniform(np.array([1 - 1e-3]))[0][0], atol=1e-12)
    np.testing.assert_allclose(after.q, traj.q[21] + 1e-3 * traj.v[21], atol=1e-14)
    np.testing.assert_array_equal(traj.sample([1.0]).a[0], traj.a[21])  # at the event: the row after it
    np.testing.assert_allclose(traj.sample([1.0 - 1e-9]).a[0], traj.a[20], atol=1e-6)


def test_sample_keeps_the_segments(circle):
    traj = released(circle)
    other = traj.sample([0.2, 0.7, 1.0, 1.5])
    assert [(s.start, s.active["circle"]) for s in other.segments] == [(0, True), (2, False)]
    assert np.all(other.lam[2:] == 0) and np.all(other.lam[:2] != 0)
    assert [(s.start, s.active["circle"]) for s in traj.sample([1.2, 1.3]).segments] == [(0, False)]


def test_an_event_without_rows_of_its_own_is_not_guessed_over(circle):
    traj = released(circle, doubled=False)
    with pytest.raises(StateError, match=r"an event changed the machine between the rows t = 1 s and 1.05 s"):
        traj.at(1.02)
    assert traj.at(1.0).q[0] == traj.q[20, 0]
    assert traj.at(1.07).t == 1.07


def test_inputs_that_are_held_stay_held():
    system = sr.compile(sr.library.build("pendulum", uniform=True))
    inertia, length = 1 / 3, 0.5
    t, u = np.linspace(0, 1, 11), np.array([0.0, *np.repeat([3.0, -2.0, 1.0, 4.0, -1.0], 2)])[:, None]
    q, v, a = np.zeros((11, 1)), np.zeros((11, 1)), np.zeros((11, 1))
    u[0] = 3.0
    rows = [system.state([0.1], [0.0])]
    for k in range(10):  # small Runge-Kutta steps between the samples
        rows.append(small_steps(system, rows[-1], u[k + 1], t[k + 1]))
    q, v = np.stack([s.q for s in rows]), np.stack([s.v for s in rows])
    a = system.acceleration(system.state(q, v, t), u)
    np.testing.assert_allclose(a[:, 0], (u[:, 0] - 9.81 * length * np.cos(q[:, 0])) / inertia, rtol=1e-12)
    held = record(system, t, q, v, a, u, segments=(Segment(0, {}, system.p, held=True),))
    other = held.sample(t[:-1] + 0.05)
    np.testing.assert_array_equal(other.u, u[1:])
    for k in range(10):
        truth = small_steps(system, rows[k], u[k + 1], t[k] + 0.05)
        assert other.q[k, 0] == pytest.approx(truth.q[0], abs=2e-6)
    free = dataclasses.replace(held, segments=(Segment(0, {}, system.p),)).sample(t[:-1] + 0.05)
    assert np.abs(free.q - other.q).max() > 1e-4


def small_steps(system, state, u, t_end, count=20):
    """Classical Runge-Kutta."""
    h = (t_end - state.t) / count
    q, v, t = state.q, state.v, state.t
    for _ in range(count):
        k = [(v, system.acceleration(system.state(q, v), u))]
        for c in (0.5, 0.5, 1.0):
            dq, dv = k[-1]
            speed = v + c * h * dv
            k.append((speed, system.acceleration(system.state(q + c * h * dq, speed), u)))
        q = q + h / 6 * (k[0][0] + 2 * k[1][0] + 2 * k[2][0] + k[3][0])
        v = v + h / 6 * (k[0][1] + 2 * k[1][1] + 2 * k[2][1] + k[3][1])
        t += h
    return system.state(q, v, t_end)
