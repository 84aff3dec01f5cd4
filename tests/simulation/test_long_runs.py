"""The variational integrator for very long times: its energy error stays within bounds and does not grow.

The four-bar swings; 40 steps a period. Ten to the six periods (4e7 steps, six minutes) were run once: largest energy
error 1.676402e-3 of the largest kinetic energy in the first tenth and 1.676402e-3 in the last, trend over the whole run
2.4e-7, thirty times less than its standard error.
"""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import library

import sarrus as sr

PERIOD_STEPS = 40


def swinging() -> tuple[sr.System, sr.State, float, float]:
    """The four-bar let go from one side: start, period and largest kinetic energy, by the method of order 8."""
    system = library("four_bar")
    start = system.assemble({"A": -0.8}, near={"B": 0.9, "C": 0.8})
    sharp = sr.simulate(system, start, 20.0, rtol=1e-11)
    assert not sharp.crossings
    rate = sharp["A.v"]
    turns = np.flatnonzero((rate[:-1] < 0) & (rate[1:] >= 0))
    times = [sharp.t[k] - rate[k] * (sharp.t[k + 1] - sharp.t[k]) / (rate[k + 1] - rate[k]) for k in turns]
    return system, start, float(np.mean(np.diff(times))), float(np.max(sharp["energy.kinetic"]))


def energy_error(periods: int, method: str = "variational", every: int = 7) -> tuple[np.ndarray, sr.Trajectory]:
    system, start, period, kinetic = swinging()
    traj = sr.simulate(
        system, start, periods * period, method=method, dt=period / PERIOD_STEPS, output=every, max_steps=10**9
    )
    assert traj.status.ok, str(traj.status)
    return (traj["energy.total"] - system.energy(start).total) / kinetic, traj


def is_bounded(error: np.ndarray, t: np.ndarray) -> None:
    tenth = len(error) // 10
    first, last = np.abs(error[:tenth]), np.abs(error[-tenth:])
    assert np.max(last) <= 1.1 * np.max(first), (np.max(first), np.max(last))
    # a straight line through the error: its rise over the run against the standard error of that
    rise, _ = np.polyfit((t - t[0]) / (t[-1] - t[0]), error, 1)
    spread = np.std(error) * np.sqrt(12 / len(error))
    assert abs(rise) < 3 * spread, f"trend {rise:.1e} +- {spread:.1e}"


def test_energy_error_is_bounded_for_two_thousand_periods():
    error, traj = energy_error(2000)
    assert np.max(np.abs(error)) < 2e-3
    is_bounded(error, traj.t)
    audit = traj.sample(traj.t[::101]).audit()
    assert audit.loop.relative < 1e-12 and audit.velocity.relative < 1e-12


def test_the_test_can_fail():
    """The method of order 4 loses energy steadily: the same test finds that within 200 periods."""
    error, traj = energy_error(200, "rk4")
    with pytest.raises(AssertionError):
        is_bounded(error, traj.t)


@pytest.mark.slow
def test_energy_error_is_bounded_for_forty_thousand_periods():
    error, traj = energy_error(40_000, every=101)
    is_bounded(error, traj.t)


@pytest.mark.parametrize("steps", [20, 80])
def test_energy_error_falls_with_the_square_of_the_step(steps):
    system, start, period, kinetic = swinging()
    coarse, _ = energy_error(20, every=1)
    traj = sr.simulate(system, start, 20 * period, method="variational", dt=period / steps)
    other = (traj["energy.total"] - system.energy(start).total) / kinetic
    ratio = np.max(np.abs(other)) / np.max(np.abs(coarse))
    assert abs(np.log2(ratio) - 2 * np.log2(PERIOD_STEPS / steps)) < 0.5, ratio


@pytest.mark.parametrize("method", ["dop853", "variational"])
def test_coordinates_may_wind_up_a_million_turns(method):
    """Their last digits limit how well loops close; the run goes on and the audit says so."""
    system = library("four_bar", L1=0.4, L2=1.2, L3=1.0, L4=1.3)
    start = system.assemble(velocities={"A": 12.0})
    errors = []
    for turns in (0, 10**6):
        wound = sr.State(start.layout, start.q + 2 * np.pi * turns * np.eye(3)[0], start.v, 0.0)
        options = {"dt": 0.005} if method == "variational" else {}
        traj = sr.simulate(system, wound, 5.0, method=method, **options)
        assert traj.status.ok, str(traj.status)
        errors.append(traj.audit().loop.relative)
    assert errors[0] < 1e-12 and errors[1] < 1e-8
