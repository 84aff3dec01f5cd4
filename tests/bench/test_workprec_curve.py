"""Reading curves, forming errors and judging: against known answers, without running anything."""

import math

import numpy as np
import pytest
from bench.workprec import summary
from bench.workprec.contestant import Method
from bench.workprec.curve import best, cost, front
from bench.workprec.measure import Curve, Point
from bench.workprec.problems import Accuracy, Observed, accuracy, load

from oracles import motion
from oracles import motion_data as data

ORDER = 8


def time_of(error: float) -> float:
    """What a method of order 8 takes: seconds ~ error^(-1/8)."""
    return 2e-3 * error ** (-1 / ORDER)


LINE = [(e, time_of(e)) for e in (1e-3, 1e-5, 1e-6, 1e-8, 1e-10)]


# --- curves --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("error", [1e-3, 3e-5, 1e-6, 2.2e-9, 1e-10])
def test_a_power_law_is_read_exactly_between_its_points(error):
    for points in (LINE, LINE[::-1]):
        found = cost(points, error)
        assert found.seconds == pytest.approx(time_of(error), rel=1e-12) and not found.bound


def test_an_error_a_little_beyond_the_ends_is_read_and_one_further_off_is_not():
    assert cost(LINE, 6e-11).seconds == pytest.approx(time_of(6e-11), rel=1e-12)
    assert cost(LINE, 4e-11).seconds is None
    assert cost(LINE, 1.5e-3).seconds == pytest.approx(time_of(1.5e-3), rel=1e-12)
    coarser = cost(LINE, 1e-2)
    assert coarser.bound and coarser.seconds == LINE[0][1], "no credit for runs that were not made"
    assert cost(LINE[:1], 1e-2) == cost(LINE[:1], 1e-3) and cost(LINE[:1], 1e-2).bound
    assert cost([], 1e-3).seconds is None


def test_points_that_others_beat_in_both_and_points_that_are_no_numbers_do_not_count():
    worse = [(1e-4, 1.0), (1e-7, 2.0), (math.inf, 1e-9), (math.nan, 1e-9), (0.0, 1e-9), (1e-6, 0.0)]
    assert front(LINE + worse) == LINE
    slower_and_better = (1e-9, 5.0)
    assert slower_and_better not in front([*LINE, slower_and_better]), "a finer point takes less"
    assert front([(1e-3, 1.0), (1e-3, 0.5)]) == [(1e-3, 0.5)]


def test_the_cheapest_method_that_gets_there_counts():
    coarse = [(1e-2, 1e-6), (1e-4, 1e-5)]
    name, found = best(
        [("coarse", cost(coarse, 1e-8)), ("fine", cost(LINE, 1e-8)), ("slow", cost([(1e-8, 9.0)], 1e-8))]
    )
    assert name == "fine" and found.seconds == pytest.approx(time_of(1e-8))
    assert best([("coarse", cost(coarse, 1e-8))])[1].seconds is None


# --- errors --------------------------------------------------------------------------------------------------------
@pytest.fixture
def problem():
    return load()["A02-2"]


def perfect(problem) -> Observed:
    values = np.zeros((len(problem.grid), problem.reference.shape[1]))
    values[problem.at] = problem.reference
    return Observed(values, np.zeros(len(problem.grid)), np.full(len(problem.grid), 7.0))


def test_errors_are_relative_to_the_largest_reference_of_the_same_quantity(problem):
    seen = perfect(problem)
    assert accuracy(problem, seen) == Accuracy(0.0, 0.0, 0.0, 0.0)
    seen.values[problem.at[1], 3] += 1e-3
    seen.values[problem.at[-1], 0] -= 1e-6
    seen.values[3, 2] = 99.0  # no reference time
    seen.loop[7], seen.invariant[9] = 3e-8, 6.5
    found = accuracy(problem, seen)
    scale = np.abs(problem.reference).max(axis=0)
    assert found.error == pytest.approx(1e-3 / scale[3]) and found.final == pytest.approx(1e-6 / scale[0])
    assert (found.loop, found.drift) == (3e-8, 0.5)


@pytest.mark.parametrize("spoil", ["early end", "not a number", "infinite energy"])
def test_what_is_incomplete_or_not_finite_has_no_finite_error(problem, spoil):
    seen = perfect(problem)
    if spoil == "early end":
        seen = Observed(seen.values[:-1], seen.loop[:-1], seen.invariant[:-1])
    elif spoil == "not a number":
        seen.values[2, 1] = math.nan
    else:
        seen.invariant[0] = math.inf
    assert accuracy(problem, seen).error == math.inf


# --- the references ------------------------------------------------------------------------------------------------
def test_references_are_those_of_independent_computations():
    """Each problem against closed forms or tables with a source of their own."""
    problems = load()
    want = {}
    mirrored = np.array([-1.0, 1.0])  # released at x = -1 instead of +1
    want["A01"] = [mirrored * data.PENDULUM[t][:2] for t in (0.5, 1.0, 2.0, 5.0, 10.0)]
    for n, table in ((2, data.FOUR_BARS_2), (40, data.FOUR_BARS_40)):
        times = problems[f"A02-{n}"].grid[problems[f"A02-{n}"].at]
        inertia, weight = (n + 1) / 3 + n, motion.G * ((n + 1) / 2 + n)
        angle = motion.turning_pendulum(inertia, weight, 0.0, 1.0, times)
        rate = np.sqrt(1 + 2 * weight / inertia * (1 - np.cos(angle)))
        want[f"A02-{n}"] = np.stack([np.sin(angle), np.cos(angle), np.cos(angle) * rate, -np.sin(angle) * rate], axis=1)
        np.testing.assert_allclose(want[f"A02-{n}"], [table[t] for t in times], atol=1e-10)
    want["B1"] = [data.ANDREWS[t][0] for t in (0.005, 0.01, 0.015, 0.02, 0.025, 0.03)]
    crank = motion.slider_crank().run(np.pi / 4, 0.0, 10.0)
    want["SC"] = [crank.s(t) for t in (1.0, 2.0, 5.0, 10.0)]
    want["A04"] = [data.BRICARD[t] for t in (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)]
    want["A05"] = [data.FLYBALL[t][1:2] for t in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)]
    for name, rows in want.items():
        np.testing.assert_allclose(problems[name].reference, rows, rtol=0, atol=1e-10, err_msg=name)
    assert set(problems) - set(want) == {"A03"}  # B1 from another start: see test_workprec_run


# --- the judge -----------------------------------------------------------------------------------------------------
def curve(code: str, points: list[tuple[float, float]], name: str = "", failure: str = "") -> Curve:
    method = Method(code, name or code, "rtol", [1.0], lambda setting: pytest.fail("nothing is to run"))
    made = [Point(e, [s], Accuracy(e, e, 0.0, 0.0)) for e, s in points]
    made += [Point(1e-9, failure=failure)] if failure else []
    return Curve(method, made, end=failure)


def faster(factor: float) -> list[tuple[float, float]]:
    return [(e, s / factor) for e, s in LINE]


def test_the_ratio_is_that_to_the_fastest_peer_that_gets_there():
    curves = [
        curve("Sarrus", faster(20), "one"), curve("Sarrus", LINE, "two"),
        curve("slow", LINE), curve("rough", [(1e-2, 1e-9), (1e-4, 1e-8)]),
        curve("broken", [], failure="gave up at 3 s"),
    ]  # fmt: skip
    found = summary.judge(curves, 1e-8)
    assert found["best_peer"] == "slow" and found["ratio"] == pytest.approx(20) and found["met"] is True
    assert found["codes"]["Sarrus"]["method"] == "one"
    assert found["codes"]["rough"]["seconds"] is None and found["codes"]["rough"]["closest"] == 1e-4
    assert "gave up at 3 s" in found["codes"]["broken"]["why"]
    found = summary.judge([curve("Sarrus", faster(9.9)), curve("slow", LINE)], 1e-8)
    assert found["met"] is False and found["ratio"] == pytest.approx(9.9)


@pytest.mark.parametrize("answer", [[(0.3, 1e-9)], [(0.3, 1e-9), (0.31, 1e-8)]])
def test_a_fast_wrong_answer_is_refused(answer):
    found = summary.judge([curve("Sarrus", faster(20)), curve("slow", LINE), curve("cheat", answer)], 1e-6)
    assert found["codes"]["cheat"]["seconds"] is None and found["best_peer"] == "slow"
    ours_wrong = summary.judge([curve("Sarrus", answer), curve("slow", LINE)], 1e-6)
    assert ours_wrong["met"] is False and ours_wrong["ratio"] is None


def test_where_no_peer_gets_there_or_none_took_part():
    rough = curve("rough", [(1e-2, 1e-9)])
    assert summary.judge([curve("Sarrus", LINE), rough], 1e-6)["met"] is True
    assert summary.judge([curve("Sarrus", LINE)], 1e-6)["met"] is None
    assert summary.judge([curve("Sarrus", [(1e-2, 1.0)]), rough], 1e-6)["met"] is None
