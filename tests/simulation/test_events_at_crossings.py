"""Events at and shortly before singular positions: the motion and what is reported of it stay true."""

import numpy as np
import pytest

import sarrus as sr

CASES = {
    # three cranks of which two would do: rows depend on each other everywhere, and fewer carry where all bars line up
    "parallelogram": ({"A0": 1.0}, lambda t, x: x["A0"], 3.0),
    "slider_crank": ({"A": 2.0}, lambda t, q, v: q[0] - np.pi / 2, 3.0),
}


@pytest.mark.parametrize("name", CASES)
def test_event_at_a_singular_position(name):
    velocities, guard, t_end = CASES[name]
    system = sr.compile(sr.library.build(name))
    start = system.assemble(velocities=velocities)
    plain = sr.simulate(system, start, t_end)
    watched = sr.simulate(system, start, t_end, events=sr.Event("in line", guard))
    assert watched.status.code == "finished", watched.status
    times = [crossing.t for crossing in plain.crossings]
    assert min(abs(watched.events[0].t - t) for t in times) < 1e-9
    np.testing.assert_allclose([crossing.t for crossing in watched.crossings], times, atol=1e-6)
    np.testing.assert_allclose(watched.final.q, plain.final.q, atol=1e-5)  # 1000 rtol
    assert watched.audit().loop.relative < 1e-12


def test_event_shortly_before_a_singular_position():
    """The step that found the crossing is cut short by the event; the crossing is then found again, once."""
    system = sr.compile(sr.library.build("slider_crank"))
    start = system.assemble(velocities={"A": 2.0})
    first = sr.simulate(system, start, 1.0).crossings[0].t
    events = [sr.Event(f"before {k}", lambda t, k=k: t - (first - 0.004 * k)) for k in range(1, 6)]
    traj = sr.simulate(system, start, 1.0, events=events)
    assert len(traj.events) == 5
    np.testing.assert_allclose([crossing.t for crossing in traj.crossings], [first], atol=1e-6)


def test_no_crossing_is_reported_that_an_event_prevents():
    """A slider-crank whose slider lets go shortly before its upright position: it never gets there as a closed loop."""
    system = sr.compile(sr.library.build("slider_crank"))
    start = system.assemble(velocities={"A": 2.0})
    for angle in np.pi / 2 - np.array([0.02, 0.05, 0.1]):
        release = sr.Event("let go", lambda t, x, c=angle: x["A"] - c, action=sr.Change(active={"slider": False}))
        traj = sr.simulate(system, start, 1.0, events=release)
        assert traj.status.code == "finished" and traj.events[0].t < 0.58
        assert traj.crossings == ()
