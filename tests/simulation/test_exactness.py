"""What every run must keep: loops closed, equations of motion satisfied, forces right, work bounded."""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import curved_branch, elastic_crank, library, rrr, stewart_start

import sarrus as sr
from oracles import motion_data as data
from oracles.dense import kkt_lstsq
from sarrus.kernel.motion import METHODS

G = 9.81


def options(method: str, dt: float, rtol: float = 1e-7) -> dict:
    return {"dt": dt} if method in ("rk4", "euler", "variational") else {"rtol": rtol}


def loop_error(traj: sr.Trajectory) -> float:
    """Largest |Φ| of all rows, relative to the machine's length; computed here from the terms."""
    layout = traj.system.layout
    unit = np.array([layout.length if row.unit == "m" else 1.0 for row in layout.rows])
    return max(float(np.max(np.abs(traj.system.terms(traj.state(k)).phi) / unit)) for k in range(len(traj)))


def slip(traj: sr.Trajectory) -> float:
    """Largest |A v - a|, relative to the terms of the row at their largest (where these are not just rounding)."""
    rows = [traj.system.terms(traj.state(k)) for k in range(len(traj))]
    miss = np.array([np.abs(x.A @ v - x.a) for x, v in zip(rows, traj.v, strict=True)])
    size = np.array([np.abs(x.A) @ np.abs(v) + np.abs(x.a) for x, v in zip(rows, traj.v, strict=True)])
    most = size.max(axis=0)
    return float(np.max(miss.max(axis=0) / np.maximum(most, 1e-3 * most.max(initial=1e-300))))


def machines() -> list:
    """Planar and spatial, tree quaternions, redundant rows, moving constraints, nonholonomic rows."""
    return ["four_bar", "n_four_bar", "parallelogram", "bricard", "stewart", "rolling_disc", "slider_crank", "delta"]


def lively(name: str) -> tuple[sr.System, sr.State]:
    system = library(name)
    if name == "stewart":
        return system, stewart_start(system)
    if name == "n_four_bar":
        return system, system.assemble({"A0": np.pi / 2}, velocities={"A0": -1.0})
    if name == "rolling_disc":
        return system, system.assemble(velocities={"disc.omega": (0.3, 3.0, -0.2)})
    return system, system.assemble()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", machines())
def test_loops_stay_closed_at_every_output(name, method):
    """At every step, and between the steps, where dense output is brought back to the constraints."""
    system, start = lively(name)
    for output in ("steps", np.linspace(0.013, 0.5, 38)):
        traj = sr.simulate(system, start, 0.5, method=method, output=output, **options(method, 0.002))
        assert traj.status.ok, str(traj.status)
        assert loop_error(traj) < 1e-12
        assert slip(traj) < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_loops_stay_closed_through_singular_positions(method):
    """Two passages each, looked at in 1501 places; the rows of the curve vanish to rounding in between."""
    crank, rows, curve = lively("slider_crank"), lively("n_four_bar"), curved_branch()
    for system, start, until in ((*crank, 4.0), (*rows, 1.5), (curve, curve.state((-0.5, 0.25)), 2.0)):
        times = np.linspace(0.01, until, 1501)
        traj = sr.simulate(system, start, until, method=method, output=times, **options(method, 0.002, 1e-6))
        assert traj.status.ok and len(traj.crossings) == 2, str(traj)
        assert loop_error(traj) < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_constraints_that_move_are_followed(method):
    """The drive of the crank is a constraint with time in it."""
    system = elastic_crank()
    start = system.state(*data.CRANK_START)
    traj = sr.simulate(system, start, 0.002, method=method, output=np.linspace(1e-4, 2e-3, 23), **options(method, 2e-6))
    assert traj.status.ok, str(traj.status)
    assert loop_error(traj) < 1e-12 and slip(traj) < 1e-12
    np.testing.assert_allclose(traj["phi1"], 150.0 * traj.t, rtol=1e-12)


@pytest.mark.parametrize("limit", [1e-9, 1e-12])
def test_the_loop_error_asked_for_is_kept(limit):
    system, start = lively("stewart")
    traj = sr.simulate(system, start, 0.5, rtol=1e-4, loop_error=limit)
    assert loop_error(traj) <= limit


# --- ten seconds of the Stewart platform ---------------------------------------------------------------------------
@pytest.fixture(scope="module", params=["dop853", "radau"])
def ten_seconds(request) -> sr.Trajectory:
    """It is held near home by springs in the legs, pushed by swinging forces; outputs at 2001 times between steps."""
    system = library("stewart")
    names = [f"leg{i}" for i in range(6)]
    home = system.assemble()
    rest = np.array([home[name] for name in names])

    def law(t: float, x) -> list:
        return [
            4078.8 - 2e4 * (x[name] - rest[i]) - 2e3 * x[f"{name}.v"] + 4000 * np.sin(2 * t + i)
            for i, name in enumerate(names)
        ]

    return sr.simulate(
        system, home, 10.0, method=request.param, rtol=1e-10, inputs=law, output=np.linspace(0.0, 10.0, 2001)
    )


def test_stewart_for_ten_seconds(ten_seconds):
    traj = ten_seconds
    assert traj.status.ok, str(traj.status)
    assert np.max(np.ptp(traj["platform.position"], axis=0)) > 0.1, "it should move"
    assert loop_error(traj) < 1e-12
    audit = traj.audit(raise_above={"loop": 1e-12, "velocity": 1e-12, "acceleration": 1e-12, "motion": 1e-10})
    assert audit.energy.relative < 1e-8
    assert set(audit.rank) == {18}


def test_stewart_forces_agree_with_an_independent_solve(ten_seconds):
    """[M, -A'; A, 0] (v', lambda) = (B u - h, gamma) by NumPy's least squares, at fifty times."""
    traj, system = ten_seconds, ten_seconds.system
    for k in range(0, 2001, 40):
        x = system.terms(traj.state(k))
        a, lam = kkt_lstsq(x.M, x.h, x.B @ traj.u[k], x.A, x.gamma)
        size = np.max(np.abs(lam))
        np.testing.assert_allclose(traj.a[k], a, rtol=1e-9, atol=1e-9 * np.max(np.abs(a)))
        np.testing.assert_allclose(traj.lam[k], lam, rtol=0, atol=1e-10 * size)
        residual = x.M @ traj.a[k] + x.h - x.B @ traj.u[k] - x.A.T @ traj.lam[k]
        assert np.max(np.abs(residual)) < 1e-10 * np.max(np.abs(x.h) + np.abs(x.M) @ np.abs(traj.a[k]))


# --- what it costs -------------------------------------------------------------------------------------------------
# evaluations of the acceleration, a third above what was counted when these numbers were written
WORK = {
    "dop853": {"pendulum": 2900, "andrews": 2000, "bricard": 2200, "stewart": 500, "3-RRR": 350, "four bars": 5000},
    "dopri5": {"pendulum": 13000, "andrews": 7700, "bricard": 9700, "stewart": 1900, "3-RRR": 800, "four bars": 17500},
    "radau": {
        "pendulum": 25500,
        "andrews": 18500,
        "bricard": 21000,
        "stewart": 5200,
        "3-RRR": 2300,
        "four bars": 26500,
    },
}


@pytest.mark.parametrize("method", list(WORK))
def test_work_is_bounded(method):
    """At rtol 1e-10 on six reference motions: nothing makes the integrators slower unnoticed."""
    squeezer, platform = library("andrews"), rrr()
    pose = {"platform.x": 0.02, "platform.z": -0.01, "platform.angle": 0.1}
    pushes = [3000.0 + 100.0 * i for i in range(6)]
    runs = {
        "pendulum": (library("pendulum"), library("pendulum").assemble(), 10.0, None),
        "andrews": (squeezer, squeezer.assemble({"Theta": 0.0}), 0.03, None),
        "bricard": (library("bricard"), library("bricard").assemble(), 10.0, None),
        "stewart": (*lively("stewart"), 1.0, pushes),
        "3-RRR": (platform, platform.assemble(pose), 1.0, (0.05, 0.0, -0.03)),
        "four bars": (*lively("n_four_bar"), 10.0, None),
    }
    found = {
        name: sr.simulate(system, start, until, method=method, rtol=1e-10, inputs=inputs).stats
        for name, (system, start, until, inputs) in runs.items()
    }
    over = {
        name: (x.evaluations, WORK[method][name]) for name, x in found.items() if x.evaluations > WORK[method][name]
    }
    assert not over, f"evaluations, limit: {over}"
    for name, x in found.items():
        assert x.rejected <= 0.3 * x.steps, (name, x)
        assert x.projections <= 1.1 * x.steps + 20 * 30 * x.bridges, (name, x)


def test_fixed_steps_cost_what_their_tables_say():
    """Evaluations a step: 4 for the classical method, 1 for Euler's; none of the two is lost to projection."""
    system, start = lively("four_bar")
    for method, stages in (("rk4", 4), ("euler", 1)):
        traj = sr.simulate(system, start, 0.2, method=method, dt=1e-3)
        assert traj.stats.steps == 200 and not traj.stats.bridges
        assert traj.stats.evaluations == stages * 200 + 1
