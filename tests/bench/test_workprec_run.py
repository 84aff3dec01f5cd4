"""Runs of the work-precision benchmark: contestants made up for the purpose, and Sarrus alone; no time is asserted."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from bench.workprec import equations, measure, ours, trees
from bench.workprec.contestant import Failed, Method, Run, steps, tolerances
from bench.workprec.problems import Observed, load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def problem():
    return load()["SC"]


def answer(problem, error: float) -> Observed:
    """The right values, but off by a relative `error` at the last time."""
    values = np.zeros((len(problem.grid), 1))
    values[problem.at] = problem.reference
    values[-1] += error * problem.scale
    return Observed(values, np.zeros(len(problem.grid)), np.zeros(len(problem.grid)))


def contestant(problem, error_of, solve=lambda: None, knob="rtol", settings=None) -> Method:
    """Somebody whose error is a function of the setting."""
    return Method(
        "made up", "made up", knob, settings or tolerances(2, 12),
        lambda setting: Run(solve, lambda found: answer(problem, error_of(setting))),
    )  # fmt: skip


def test_settings_go_from_coarse_to_fine_and_steps_divide_the_outputs():
    assert tolerances(3, 5, per_decade=2) == pytest.approx([1e-3, 10**-3.5, 1e-4, 10**-4.5, 1e-5])
    assert steps(10.0, 100, first=4, factor=2, count=3) == pytest.approx([0.025, 0.0125, 0.00625])


def test_a_sweep_records_what_it_was_told_and_stops_when_it_is_good_enough(problem):
    curve = measure.sweep(problem, contestant(problem, lambda rtol: 3 * rtol), limit=5.0)
    assert [p.setting for p in curve.points] == tolerances(2, 12)
    assert [p.accuracy.error for p in curve.points] == pytest.approx([3 * x for x in tolerances(2, 12)], rel=1e-3)
    assert curve.end == "good enough" and all(p.times[0] > 0 for p in curve.points)
    measure.repeat(problem, curve, limit=5.0)
    assert all(len(p.times) == 2 for p in curve.points)


def test_a_sweep_stops_when_finer_settings_are_no_better(problem):
    curve = measure.sweep(problem, contestant(problem, lambda rtol: max(rtol, 1e-5)), limit=5.0)
    assert curve.end == "finer settings are no better"
    assert [p.setting for p in curve.points] == tolerances(2, 5 + measure.FLAT)


@pytest.mark.parametrize("isolate", [True, False])
def test_a_solver_that_gives_up_says_why(problem, isolate):
    def solve():
        raise Failed("stopped at t = 3 s")

    curve = measure.sweep(problem, contestant(problem, float, solve), limit=5.0, isolate=isolate)
    assert len(curve.points) == measure.BROKEN["rtol"] and curve.end == "stopped at t = 3 s"
    assert all(p.accuracy is None and p.pair[0] == np.inf for p in curve.points)


def test_a_crash_and_a_wrong_length_stay_with_the_one_who_made_them(problem):
    curve = measure.sweep(problem, contestant(problem, float, lambda: os._exit(7)), limit=5.0)
    assert all("ended without an answer" in p.failure for p in curve.points)
    short = answer(problem, 0.0)
    short = replace(short, values=short.values[:-1])
    point = measure.once(problem, Run(lambda: None, lambda found: short), 1e-3, limit=5.0)
    assert point.accuracy is None and "ends early" in point.failure


def test_a_run_beyond_the_limit_of_time_is_ended(problem):
    def for_ever():
        while True:
            pass

    curve = measure.sweep(problem, contestant(problem, float, for_ever), limit=0.1)
    assert curve.end == "not within the limit of 0.1 s" and len(curve.points) == 1


def test_steps_that_would_take_too_long_are_not_tried(problem):
    def busy():
        start = measure.CLOCK()
        while measure.CLOCK() - start < 0.06:
            pass

    method = contestant(problem, lambda h: h, busy, "step [s]", (0.1, 0.01, 0.001))
    curve = measure.sweep(problem, method, limit=0.2)
    assert len(curve.points) == 1 and curve.end == "step [s] 0.01 would take more than 0.2 s"


@pytest.mark.parametrize("name", ["A01", "A03", "A04", "A05", "SC", "A02-2"])
def test_the_trees_that_peers_get_are_the_machines_that_sarrus_gets(name):
    """Accelerations at the start, by Lagrange's equations of the tree and by our own machine."""
    problem = load()[name]
    tree, system = trees.build(problem), ours.system_of(name)
    state = ours.start_of(system, tree)
    eq = equations.derive(tree)
    n, a = eq.q.numel(), system.acceleration(state, _torques(system, tree))
    expected = equations.dae(eq, "ggl", tree.q0, tree.v0).yp0[n : 2 * n]
    M = ca.Function("mass", [eq.q], [eq.M])(tree.q0).full()
    # vᵀ M v for v = a means the same in any coordinates of a machine at rest
    assert a @ system.terms(state).M @ a == pytest.approx(expected @ M @ expected, rel=1e-9, abs=1e-20)
    if {link.name for link in tree.links} != set(system.layout.q_names):
        assert name == "A04"  # its loop is cut at another hinge
        return
    index = [system.layout.find(link.name).start for link in tree.links]
    # where nothing accelerates at the start, rounding is that of the weights
    size = max(np.abs(a).max(), np.abs(tree.gravity).max())
    np.testing.assert_allclose(a[index], expected, rtol=1e-9, atol=1e-9 * size)


def _torques(system, tree):
    u = np.zeros(system.layout.nu)
    for k, torque in tree.torques.items():
        if system.layout.nu:
            u[system.layout.find(tree.links[k].name, "u")] = torque
    return u if tree.torques and system.layout.nu else None


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Sarrus alone on two problems, one of them through singular positions."""
    folder = tmp_path_factory.mktemp("workprec")
    command = [
        sys.executable, "-m", "bench.workprec", "--quick", "--problems", "A03,SC", "--peers", "none",
        "--json", str(folder / "out.json"), "--plot", str(folder / "out.png"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "out.json").read_text(encoding="utf-8")), folder / "out.png"


def test_sarrus_reaches_the_references(quick):
    rows = {row["problem"]: row for row in quick[1]["problems"]}
    assert set(rows) == {"A03", "SC"}
    for row in rows.values():
        (curve,) = row["curves"]
        points = [p for p in curve["points"] if p["error"] is not None]
        # below 1e-12 rounding may end a run that passes singular positions
        assert len(points) >= 8 and not [p["failure"] for p in curve["points"] if p["failure"] and p["setting"] > 9e-13]
        assert min(p["error"] for p in points) < 1e-10
        errors = np.log10([p["error"] for p in points])
        slope = np.polyfit(np.log10([p["setting"] for p in points]), errors, 1)[0]
        assert 0.8 < slope < 1.2, "errors follow the tolerance"
        assert all(p["loop"] < 1e-11 for p in points), "closed at every tolerance"
        for found in row["targets"].values():
            assert found["codes"]["Sarrus"]["seconds"] > 0 and found["met"] is None


def test_the_file_says_how_it_was_measured(quick):
    data = quick[1]
    assert data["host"]["cpu"] and data["versions"]["Sarrus"] and data["compiler"]["flags"]
    assert set(data["threads"].values()) == {"1"} and data["clock"] == "thread_time"


def test_table_and_picture(quick):
    assert "Andrews" in quick[0] and "slider-crank" in quick[0] and "(ms)" in quick[0]
    assert quick[2].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_unknown_names_are_refused():
    command = [sys.executable, "-m", "bench.workprec", "--problems", "A99"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0 and "unknown problem 'A99'" in done.stderr and "A02-40" in done.stderr
