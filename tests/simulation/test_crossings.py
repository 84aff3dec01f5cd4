"""Through singular positions: exactly, without stalling, on the branch that the velocity chooses, and reported.

Every motion is compared with the reduced equations on its branch, which know nothing of the singularity
(`oracles.motion`). Energy drift is relative to the energy that moves: twice the weight times the machine's height.
"""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import curved_branch, library

import sarrus as sr
from oracles import motion

G = motion.G
ADAPTIVE = ("dop853", "dopri5", "radau")


def passed_well(traj: sr.Trajectory, roots: np.ndarray, within: float) -> None:
    """No stall, and every crossing reported once, at its time."""
    assert traj.status.code == "finished", str(traj.status)
    assert traj.stats.smallest_step >= 1e-4 * traj.stats.mean_step, str(traj.stats)
    times = np.array([x.t for x in traj.crossings])
    assert len(times) == len(roots), f"{len(times)} crossings instead of {len(roots)}"
    np.testing.assert_allclose(times, roots, atol=within)
    for x in traj.crossings:
        assert x.rank < x.rank_before and x.singular_values[x.rank_before - 1] < 1e-5 * x.singular_values.max(initial=1)
        assert abs(sum(value**2 for value in x.direction.values()) - 1) < 1e-12


def drift(traj: sr.Trajectory, scale: float) -> float:
    return float(np.ptp(traj["energy.total"]) / scale)


# --- the slider-crank of sheet 12.1 --------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def crank() -> motion.Motion:
    """100 s of its motion from π/4 at rest."""
    found = motion.slider_crank().run(np.pi / 4, 0.0, 100.0)
    np.testing.assert_allclose(
        found.s((1.0, 2.0, 5.0, 10.0))[:, 0], (-1.14204632, -3.79341650, 0.63183131, -0.15545912), atol=1e-8
    )
    return found


def passages(found: motion.Motion, until: float = np.inf) -> np.ndarray:
    roots = found.roots(lambda y: np.cos(y[0]))
    return roots[roots < until]


def test_four_passages_in_ten_seconds(crank):
    system = library("slider_crank")
    traj = sr.simulate(system, system.assemble(), 10.0, rtol=1e-9, output=(1.0, 2.0, 5.0, 10.0))
    np.testing.assert_allclose(traj["A"], (-1.14204632, -3.79341650, 0.63183131, -0.15545912), atol=1.5e-8)
    roots = passages(crank, 10.0)
    assert len(roots) == 4
    passed_well(traj, roots, 1e-8)
    first = traj.crossings[0]
    assert first.rank == 0 and first.rank_before == 1
    np.testing.assert_allclose(first.q, (-np.pi / 2, 3 * np.pi), atol=1e-7)
    np.testing.assert_allclose(  # the slider branch: q2' = -2 q1'
        [first.direction["A"], first.direction["B"]], [-1 / np.sqrt(5), 2 / np.sqrt(5)], atol=1e-6
    )
    assert "rank 0 instead of 1" in str(first) and "left along A -0.447, B +0.894" in str(first)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-11, 1e-12])
def test_a_hundred_seconds_of_the_slider_crank(crank, rtol, method):
    system = library("slider_crank")
    times = np.linspace(0.5, 100.0, 200)
    traj = sr.simulate(system, system.assemble(), 100.0, method=method, rtol=rtol, output=times)
    error = float(np.max(np.abs(traj["A"] - crank.s(times)[:, 0])))
    assert error < 1e4 * rtol, f"off by {error:.1e} rad"  # the phase drifts with the energy, over 43 passages
    passed_well(traj, passages(crank), 1e4 * rtol)
    assert drift(traj, 2 * G) <= 1000 * rtol
    np.testing.assert_allclose(traj["B"], 2 * np.pi - 2 * traj["A"], atol=1e-8)  # its branch
    assert np.max(np.abs(np.sin(traj["A"]) + np.sin(traj["A"] + traj["B"]))) < 1e-12


@pytest.mark.parametrize(
    ("method", "dt", "limit"), [("rk4", 1e-3, 1e-9), ("variational", 1e-3, 1e-4), ("euler", 1e-4, 0.2)]
)
def test_fixed_steps_pass_too(crank, method, dt, limit):
    """Errors as of the method's order; bridges take the place of the steps that would meet the singular position."""
    system = library("slider_crank")
    times = np.linspace(0.1, 10.0, 100)
    traj = sr.simulate(system, system.assemble(), 10.0, method=method, dt=dt, output=times)
    assert np.max(np.abs(traj["A"] - crank.s(times)[:, 0])) < limit
    passed_well(traj, passages(crank, 10.0), limit)


@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_a_controller_that_is_asked_every_millisecond_passes_too(crank, rtol):
    """Its samples cut the bridges into some thirty pieces at each passage."""
    system = library("slider_crank")
    times = np.linspace(0.1, 10.0, 100)
    traj = sr.simulate(
        system, system.assemble(), 10.0, rtol=rtol, output=times, inputs=lambda t: (0.0, 0.0), sample=1e-3
    )
    assert np.max(np.abs(traj["A"] - crank.s(times)[:, 0])) < 1e-8
    passed_well(traj, passages(crank, 10.0), 1e-8)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize(("amplitude", "rtol", "within"), [
    (1e-2, 1e-9, 1e-5), (1e-4, 1e-6, 1e-3), (1e-4, 1e-9, 1e-4), (1e-4, 1e-11, 1e-4), (1e-6, 1e-8, 2e-2),
])  # fmt: skip
def test_oscillation_about_the_singular_equilibrium(amplitude, rtol, within, method):
    """All of it lies where rows hardly carry; dropping them gives 13 to 117 times the amplitude (sheet 2.6)."""
    system = library("slider_crank")
    below = system.assemble({"A": -np.pi / 2 + amplitude}, near={"B": 3 * np.pi - 2 * amplitude})
    twin = motion.slider_crank().run(-np.pi / 2 + amplitude, 0.0, 12.0)
    times = np.linspace(0.05, 12.0, 240)
    traj = sr.simulate(system, below, 12.0, method=method, rtol=rtol, output=times, max_steps=50_000)
    assert traj.status.ok, str(traj.status)
    swing = (traj["A"] + np.pi / 2) / amplitude
    assert np.max(np.abs(swing)) < 1 + within, "amplitude"
    assert np.max(np.abs(traj["A"] - twin.s(times)[:, 0])) < within * amplitude
    assert len(traj.crossings) == len(twin.roots(lambda y: np.cos(y[0]))) == 5


# --- other machines ------------------------------------------------------------------------------------------------
def compare(traj, twin, column, times, limit):
    error = float(np.max(np.abs(column - twin.s(times)[:, 0])))
    assert error < limit, f"off by {error:.1e}"


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize(("rtol", "limit"), [(1e-6, 1e-6), (1e-8, 1e-8), (1e-12, 1e-11)])
def test_curved_branch(rtol, limit, method):
    """Sheet 2.6, where holding the last row gives 1.2e-4 and extrapolating it 3.1e-7."""
    system, times = curved_branch(), np.linspace(0.1, 4.0, 40)
    twin = motion.curved_branch().run(-0.5, 0.0, 4.0)
    traj = sr.simulate(system, system.state((-0.5, 0.25)), 4.0, method=method, rtol=rtol, output=times)
    compare(traj, twin, traj["x"], times, limit)
    roots = twin.roots(lambda y: y[0])
    assert len(roots) == 5
    passed_well(traj, roots, 10 * limit)
    np.testing.assert_allclose(traj["y"], traj["x"] ** 2, atol=10 * limit)  # not on y = -x
    assert drift(traj, 2 * G) < 1000 * rtol


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize(("rtol", "limit"), [(1e-6, 5e-5), (1e-9, 5e-8), (1e-12, 5e-11)])
def test_arm_on_a_line_passes_where_a_dae_solver_stops(rtol, limit, method):
    """Sheet 12.7; the first passage, 0.581 s after the release, ends the fifth paper's run."""
    system = library("arm_on_curve", curve="x=0")
    start = system.assemble()
    twin = motion.arm_on_line().run(start["A"], 0.0, 5.0)
    times = np.linspace(0.1, 5.0, 50)
    traj = sr.simulate(system, start, 5.0, method=method, rtol=rtol, output=times)
    compare(traj, twin, traj["A"], times, limit)
    for t, angles in {
        0.5: (0.25700373, 2.62758519), 1.0: (-2.49527627, 8.13214519), 2.0: (-3.95456429, 11.05072124),
        5.0: (-4.03510433, 11.21180131),
    }.items():  # fmt: skip
        k = round(t * 10) - 1
        np.testing.assert_allclose((traj["A"][k], traj["B"][k]), angles, atol=max(2 * limit, 1e-8))
    roots = twin.roots(lambda y: np.sin(y[0]))
    assert len(roots) == 6 and abs(roots[0] - 0.581) < 5e-4
    passed_well(traj, roots, 10 * limit)
    assert drift(traj, 20 * G) < 1000 * rtol


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize(("rtol", "limit"), [(1e-6, 1e-4), (1e-9, 1e-6), (1e-12, 1e-10)])
def test_parallelogram_with_a_redundant_crank(rtol, limit, method):
    """Rows depend on each other everywhere, and one more where the cranks lie along the coupler."""
    system = library("parallelogram")
    start = system.assemble(velocities={"A0": 6.0})
    twin = motion.parallelogram().run(start["A0"], 6.0, 10.0)
    times = np.linspace(0.1, 10.0, 100)
    traj = sr.simulate(system, start, 10.0, method=method, rtol=rtol, output=times)
    compare(traj, twin, traj["A0"], times, limit)
    roots = twin.roots(lambda y: np.sin(y[0]))
    assert len(roots) == 23
    passed_well(traj, roots, 10 * limit)
    for other in ("A1", "A2"):
        np.testing.assert_allclose(traj[other], traj["A0"], atol=1e-9)
    assert {(x.rank, x.rank_before) for x in traj.crossings} == {(2, 3)}
    assert drift(traj, 2 * 3.5 * G) < 1000 * rtol


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_rows_of_four_bars_lose_several_ranks_at_once(n, method):
    system = library("n_four_bar", n=n)
    start = system.assemble({"A0": np.pi / 2}, velocities={"A0": -1.0})
    twin = motion.n_four_bar(n).run(np.pi / 2, -1.0, 10.0)
    times, roots = np.linspace(0.1, 10.0, 100), twin.roots(lambda y: np.sin(y[0]))
    assert len(roots) == 10
    for rtol, limit in ((1e-6, 1e-3), (1e-9, 1e-6), (1e-12, 1e-9)):
        traj = sr.simulate(system, start, 10.0, method=method, rtol=rtol, output=times)
        compare(traj, twin, traj["A0"], times, limit)
        passed_well(traj, roots, limit)
        assert {x.rank_before - x.rank for x in traj.crossings} == {n}
        assert drift(traj, 2 * (1.5 * n + 0.5) * G) < 1000 * rtol


# --- the other ways to treat it ------------------------------------------------------------------------------------
def test_stop_ends_there_and_can_be_continued(crank):
    system, roots = library("slider_crank"), passages(crank, 10.0)
    traj = sr.simulate(system, system.assemble(), 10.0, rtol=1e-10, crossing="stop")
    assert traj.status.code == "crossing" and traj.status.ok
    assert abs(traj.t[-1] - roots[0]) < 1e-9 and abs(traj["A"][-1] + np.pi / 2) < 1e-9
    assert len(traj.crossings) == 1
    text = str(traj.status)
    assert text.startswith("Stopped at a singular position, as asked for by crossing='stop' at t = 1.163")
    assert "rank 0 instead of 1" in text and "Use crossing='continue' to pass it" in text
    # the next run starts in the singular position, does not stop there again, but at the next
    more = sr.simulate(system, traj, 10.0, rtol=1e-10, crossing="stop")
    assert more.status.code == "crossing" and abs(more.t[-1] - roots[1]) < 1e-8
    rest = sr.simulate(system, more, 10.0, rtol=1e-10)
    assert rest.status.code == "finished" and abs(rest["A"][-1] - crank.s(10.0)[0]) < 1e-6


@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_release_is_good_for_a_fast_passage_through_a_small_window(crank, rtol):
    """Sheet 2.6, fixed window of the paper: errors 5.6e-7 and 1.9e-9 for windows of 1e-2 and 1e-3, 5.5e-3 for 1e-1."""
    system, roots = library("slider_crank"), passages(crank, 10.0)
    errors, times = [], np.linspace(0.1, 10.0, 100)
    for window in (1e-1, 1e-2, 1e-3):
        traj = sr.simulate(system, system.assemble(), 10.0, rtol=rtol, crossing="release", window=window, output=times)
        assert traj.status.code == "finished"
        errors.append(np.max(np.abs(traj["A"] - crank.s(times)[:, 0])))
        np.testing.assert_allclose([x.t for x in traj.crossings], roots, atol=window)
        speed = np.sqrt(4 * G * (np.sin(np.pi / 4) + 1) / 10)  # of the crank there; support falls with its cosine
        for x in traj.crossings:
            dwell = float(x.text.split("released for ")[1].split(" s")[0])
            assert 0.5 * window / speed < dwell < 6 * window / speed, (window, speed, dwell)
    assert errors[2] < 1e-7 + 10 * rtol and errors[2] < errors[0] / 100


@pytest.mark.parametrize(("method", "options"), [("rk4", {"dt": 1e-3}), ("dop853", {"rtol": 1e-8})])
def test_release_does_not_stall_where_only_a_pivot_vanishes(method, options):
    """Stretched on x = 1 the arm's row carries well (support 0.77), but a pivot of the fast path is zero there."""
    system = library("arm_on_curve", curve="x=1")
    exact = sr.simulate(system, system.assemble(), 2.0, rtol=1e-11)
    for window in (1e-1, 1e-3):
        traj = sr.simulate(
            system, system.assemble(), 2.0, method=method, crossing="release", window=window, max_steps=5000, **options
        )
        assert traj.status.code == "finished" and not traj.crossings, str(traj.status)
        np.testing.assert_allclose(traj.q[-1], exact.q[-1], atol=1e-6)


def test_release_says_when_it_was_wrong():
    system = library("slider_crank")
    traj = sr.simulate(system, system.assemble(), 10.0, rtol=1e-6, crossing="release", window=0.1)
    assert len(traj.crossings) == 4
    for x in traj.crossings:
        assert x.text.startswith("constraints released for 0.0"), x.text
        assert "on taking them up again the velocity broke them by" in x.text
        assert x.text.endswith("the motion in between was not that of the machine, use crossing='continue'")
    small = sr.simulate(system, system.assemble(), 10.0, rtol=1e-6, crossing="release", window=1e-3)
    assert not any("was not that of the machine" in x.text for x in small.crossings)
    exact = sr.simulate(system, system.assemble(), 10.0, rtol=1e-6)
    assert np.ptp(traj["energy.total"]) > 1e-3 > 100 * np.ptp(exact["energy.total"])
