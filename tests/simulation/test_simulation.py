"""`Simulation`: set up once, run from many starts; the same as `simulate`, bit by bit."""

import threading

import numpy as np
import pytest
from driving import library

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError
from sarrus.kernel.motion import Motion

CASES = {
    "pendulum": ({"A": 0.3}, {}, {"rtol": 1e-7, "output": np.linspace(0, 2, 11)}),
    "four_bar": ({"A": 1.0}, {"A": 2.0}, {"method": "dopri5"}),
    "slider_crank": ({"A": 0.8}, {}, {"rtol": 1e-10}),  # through a singular position
    "parallelogram": ({"A0": 1.2}, {"A0": 1.0}, {"rtol": 1e-6, "output": 3}),  # redundant rows
    "stewart": ({}, {}, {"inputs": [100.0] * 6}),  # a quaternion
    "geared_chain": ({}, {}, {"method": "rk4", "dt": 1e-3, "output": 100}),
}


def same(a, b):
    for name in ("t", "q", "v", "a", "u"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.status == b.status and a.settings == b.settings
    assert [str(x) for x in (*a.crossings, *a.events)] == [str(x) for x in (*b.crossings, *b.events)]
    for name in ("steps", "rejected", "evaluations", "projections", "bridges", "smallest_step"):
        assert getattr(a.stats, name) == getattr(b.stats, name), name


@pytest.mark.parametrize("name", CASES)
def test_it_does_what_simulate_does(name):
    system = library(name)
    positions, velocities, options = CASES[name]
    start = system.assemble(positions, velocities=velocities)
    other = system.assemble(near=start, velocities={system.layout.v_names[0]: -0.7})
    run = sr.Simulation(system, 2.0, **options)
    for state in (start, other, start, other):
        same(run(state), sr.simulate(system, state, 2.0, **options))


def test_what_was_returned_stays_as_it_is():
    system = library("four_bar")
    run, start = sr.Simulation(system, 1.0), system.assemble({"A": 1.0}, velocities={"A": 1.0})
    first = run(start)
    kept = first.q.copy()
    run(system.assemble({"A": 1.5}))
    np.testing.assert_array_equal(first.q, kept)
    assert first.segments[0].active is not run(start).segments[0].active


def test_the_integrator_is_set_up_once(monkeypatch):
    system, made = library("pendulum"), []
    original = Motion.__init__
    monkeypatch.setattr(Motion, "__init__", lambda self, *args: (made.append(1), original(self, *args))[1])
    run = sr.Simulation(system, 0.5)
    for angle in (0.1, 0.2, 0.3):
        run(system.assemble({"A": angle}))
    assert len(made) == 1


def test_events_contacts_functions_and_samples_start_afresh():
    mech = sr.Mechanism("ball")
    body = mech.body("ball", mass=0.7)
    mech.prismatic("z", mech.ground, body, axis="z")
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0, 0), "z"), sr.point_on(body), restitution=0.5)
    system = sr.compile(mech)
    start = system.assemble({"z": 1.0})
    options = {"events": [sr.Event("half", lambda t, x: x["z"] - 0.5)]}
    run = sr.Simulation(system, 2.0, **options)
    for _ in range(2):
        same(run(start), sr.simulate(system, start, 2.0, **options))
    crank = library("four_bar")
    begin = crank.assemble({"A": 1.0})
    laws = (
        {"inputs": lambda t: [0.1 * t] * crank.layout.nu},
        {"inputs": lambda t: [t] * crank.layout.nu, "sample": 0.1},
    )
    for more in laws:
        run = sr.Simulation(crank, 1.0, **more)
        for _ in range(2):
            same(run(begin), sr.simulate(crank, begin, 1.0, **more))


def test_it_continues_trajectories():
    system = library("slider_crank")
    start = system.assemble({"A": 0.8})
    early, run = sr.simulate(system, start, 1.0), sr.Simulation(system, 2.0)
    for state in (early, start, early, start):
        same(run(state), sr.simulate(system, state, 2.0))


def test_it_keeps_its_own_parameters():
    """Also after a trajectory that ended with others."""
    system = sr.compile(sr.library.build("pendulum"))
    name, value = next(iter(system.parameters.items()))
    start = system.assemble({"A": 0.8})
    heavier = sr.Event("now", lambda t: t - 0.5, action=sr.Change(parameters={name: 1.5 * value}))
    changed, run = sr.simulate(system, start, 1.0, events=heavier), sr.Simulation(system, 2.0)
    for state in (changed, start):
        same(run(state), sr.simulate(system, state, 2.0))


def test_starts_at_other_times():
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    run = sr.Simulation(system, 2.0, output=[1.0, 2.0])
    for t in (0.0, 0.5, 1.0, 0.0):
        state = system.state(start.q, start.v, t)
        same(run(state), sr.simulate(system, state, 2.0, output=[1.0, 2.0]))
    for t, text in (
        (2.0, "t_end: expected a finite time after the start at t = 2 s, got 2.0"),
        (1.5, "reach beyond the run"),
    ):
        with pytest.raises(StateError, match=text):
            run(system.state(start.q, start.v, t))


def test_threads_share_one():
    system = library("four_bar")
    starts = [system.assemble({"A": 1.0}, velocities={"A": w}) for w in np.linspace(1, 3, 8)]
    run, found = sr.Simulation(system, 5.0), {}

    def work(k):
        for _ in range(5):
            found[k] = run(starts[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, start in enumerate(starts):
        np.testing.assert_array_equal(found[k].q, sr.simulate(system, start, 5.0).q)


def test_a_start_that_breaks_constraints_is_refused_each_time():
    system = library("four_bar")
    start = system.assemble({"A": 1.0})
    run = sr.Simulation(system, 1.0)
    for _ in range(2):
        run(start)
        with pytest.raises(StateError, match="the start breaks constraint"):
            run(system.state(start.q + 0.01))


def test_bad_options_are_refused_at_once():
    system = library("pendulum")
    with pytest.raises(UnknownNameError, match=r"unknown option of a simulation 'rtoll'. Did you mean 'rtol'"):
        sr.Simulation(system, 1.0, rtoll=1e-6)
    with pytest.raises(StateError, match="rtol: expected a positive number"):
        sr.Simulation(system, 1.0, rtol=-1)
    with pytest.raises(StateError, match="t_end: expected a finite time"):
        sr.Simulation(system, float("nan"))
    with pytest.raises(StateError, match="expected a compiled machine, got Mechanism"):
        sr.Simulation(sr.library.build("pendulum"), 1.0)
    with pytest.raises(UnknownNameError, match="nonsense"):
        sr.Simulation(library("four_bar"), 1.0, active={"nonsense": False})
