"""Observed orders of convergence against the nominal ones, on machines with closed loops.

Fixed steps are halved; adaptive methods get the same steps by `max_step`, with a tolerance that never binds (on the
Stewart platform the implicit one, whose iteration ends by the tolerance, is driven by that). Judged are positions,
velocities and λ at the end, against a run at rtol 1e-13 that is itself compared with a motion not computed by this
package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from accuracy import library, relative, rrr, rrr_coordinates, stewart_start

import sarrus as sr
from oracles import motion
from oracles import motion_data as data

LEGS = [3000.0 + 100.0 * i for i in range(6)]
SHARP = {"rtol": 1e-13, "max_step": 0.004}


def four_bar() -> tuple[sr.System, sr.State, Any]:
    """A crank and rocker that stays away from singular positions."""
    system = library("four_bar", L1=0.4, L2=1.2, L3=1.0, L4=1.3)
    return system, system.assemble(velocities={"A": 3.0}), None


def stewart() -> tuple[sr.System, sr.State, Any]:
    system = library("stewart")
    return system, stewart_start(system), LEGS


def platform() -> tuple[sr.System, sr.State, Any]:
    system = rrr()
    return system, system.assemble({"platform.x": 0.02, "platform.z": -0.01, "platform.angle": 0.1}), (0.05, 0, -0.03)


MACHINES: dict[str, Callable[[], tuple[sr.System, sr.State, Any]]] = {
    "four-bar": four_bar, "Stewart": stewart, "3-RRR": platform
}  # fmt: skip


@cache
def sharp(machine: str) -> sr.Trajectory:
    """The motion to 0.5 s, compared with somebody else's."""
    system, start, inputs = MACHINES[machine]()
    traj = sr.simulate(system, start, 0.5, inputs=inputs, **SHARP)
    if machine == "four-bar":
        twin = motion.four_bar(0.4, 1.2, 1.0, 1.3)
        found = twin.run(start["A"], 3.0, 0.5)
        assert relative(traj.q[-1], twin.configuration(found.s(0.5))) < 1e-11
        assert relative(traj["A.v"][-1], found.w(0.5)) < 1e-11
    elif machine == "Stewart":
        position, _, legs, rates = data.STEWART[0.5]
        assert relative(traj["platform.position"][-1], position) < 1e-11
        assert relative([traj[f"leg{i}"][-1] for i in range(6)], legs) < 1e-11
        assert relative(traj["platform.velocity"][-1], rates[:3]) < 1e-11
    else:
        q, v = rrr_coordinates(traj)
        assert relative(q[-1], data.RRR[0.5][0]) < 1e-11 and relative(v[-1], data.RRR[0.5][1]) < 1e-11
    return traj


def observed(machine: str, method: str, choices: list[dict[str, Any]]) -> np.ndarray:
    """Slopes of log error over log steps for positions, velocities and λ."""
    system, start, inputs = MACHINES[machine]()
    end = sharp(machine)
    steps, errors = [], []
    for options in choices:
        traj = sr.simulate(system, start, 0.5, method=method, inputs=inputs, **options)
        assert traj.status.ok and not traj.stats.bridges, str(traj)
        steps.append(traj.stats.steps)
        errors.append([np.max(np.abs(getattr(traj, x)[-1] - getattr(end, x)[-1])) for x in ("q", "v", "lam")])
    # λ of some hundred newtons, the rest about 1: errors must stand out of rounding
    assert np.min(np.array(errors)[:, :2]) > 2e-15
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


def steps(*lengths: float) -> list[dict[str, Any]]:
    return [{"dt": x} for x in lengths]


def limits(*lengths: float) -> list[dict[str, Any]]:
    """No error control at all."""
    return [{"max_step": x, "rtol": 1e3} for x in lengths]


def tolerances(*values: float) -> list[dict[str, Any]]:
    return [{"rtol": x} for x in values]


FIXED = (steps(0.01, 0.005, 0.0025), 0.1)
CASES = [
    *((machine, "euler", 1, *FIXED) for machine in MACHINES),
    *((machine, "variational", 2, *FIXED) for machine in MACHINES),
    *((machine, "rk4", 4, steps(0.01, 0.005), 0.2) for machine in ("four-bar", "Stewart")),
    ("3-RRR", "rk4", 4, steps(0.02, 0.01, 0.005), 0.2),
    ("Stewart", "dopri5", 5, limits(0.04, 0.02, 0.01), 0.2),
    ("four-bar", "dopri5", 5, limits(0.005, 0.0025, 0.00125), 0.8),
    ("Stewart", "dop853", 8, limits(0.125, 0.0625, 0.05), 0.4),
    ("four-bar", "dop853", 8, limits(0.05, 0.025, 0.0125), 0.4),
    ("four-bar", "radau", 5, limits(0.02, 0.01, 0.005), 0.2),
    ("3-RRR", "radau", 5, limits(0.04, 0.02, 0.01), 0.2),
    ("Stewart", "radau", 5, tolerances(1e-5, 1e-7, 1e-9), 0.5),
]


@pytest.mark.parametrize(("machine", "method", "nominal", "choices", "within"), CASES, ids=lambda x: str(x)[:12])
def test_observed_order(machine, method, nominal, choices, within):
    found = observed(machine, method, choices)
    assert np.all(np.abs(found - nominal) <= within), f"orders of q, v, λ: {np.round(found, 2)}, nominally {nominal}"


@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
@pytest.mark.parametrize("machine", list(MACHINES))
def test_error_follows_the_tolerance(machine, method):
    """Four decades of rtol: the error at the end never exceeds it by more than 2, and falls with it."""
    system, start, inputs = MACHINES[machine]()
    end, errors = sharp(machine), []
    scale = np.max(np.abs(end.v[-1]))
    for rtol in (1e-5, 1e-7, 1e-9, 1e-11):
        traj = sr.simulate(system, start, 0.5, method=method, inputs=inputs, rtol=rtol)
        errors.append(np.max(np.abs(traj.v[-1] - end.v[-1])) / scale)
        assert errors[-1] <= 2 * rtol, f"error {errors[-1]:.1e} at rtol {rtol}"
    assert errors[-1] < 1e-4 * errors[0]
