"""Closest approaches to singular positions along recorded motions."""

import json

import numpy as np
import pytest

import sarrus as sr

from .singular_machines import ROCKERS, five_bar, four_bar, library


@pytest.fixture(scope="module")
def five_bar_run():
    system = five_bar()
    return sr.simulate(system, system.assemble(velocities={"A": 1.0, "E": -0.6}), t_end=1.2, rtol=1e-10)


@pytest.fixture(scope="module")
def five_bar_track(five_bar_run):
    return sr.track_singularities(five_bar_run)


def test_five_bar_passes_input_singularities_where_a_leg_is_straight(five_bar_run, five_bar_track):
    found = five_bar_track
    passed = [approach for approach in found.approaches if approach.kind == "input" and approach.passed]
    # every change of sign of sin B or sin D in the record, and nothing else
    expected = sum(int(np.sum(np.diff(np.sign(np.sin(five_bar_run[name]))) != 0)) for name in ("B", "D"))
    assert len(passed) == expected >= 2
    for approach in passed:
        assert min(abs(np.sin(approach.state["B"])), abs(np.sin(approach.state["D"]))) < 1e-9
    assert found.closest("input").measure == min(approach.measure for approach in passed)


def test_measures_at_rows_are_those_of_the_states(five_bar_run, five_bar_track):
    found = five_bar_track
    for row in (0, len(five_bar_run) // 2, -1):
        one = sr.classify(five_bar_run.system, five_bar_run.state(row))
        for kind in one.judged:
            assert found.measures[kind][row] == pytest.approx(one.measures[kind], rel=1e-9)


def test_slider_crank_through_its_bifurcations():
    system = library("slider_crank")
    run = sr.simulate(system, system.assemble(velocities={"A": 3.0}), t_end=2.2)
    found = sr.track_singularities(run, ["A"])
    passed = [approach for approach in found.approaches if approach.kind == "constraint" and approach.passed]
    assert len(passed) == len(run.crossings) >= 2
    for approach, crossing in zip(passed, run.crossings, strict=True):
        assert approach.t == pytest.approx(crossing.t, abs=1e-5)
        assert abs(np.cos(approach.state["A"])) < 1e-5
    assert found.closest("input") is None and "input" not in found.measures


def test_an_approach_that_is_no_passage():
    """A four-bar swings under gravity: dips that are told as passages are, and the others are not."""
    system = four_bar(ROCKERS)
    run = sr.simulate(system, system.assemble({"A": 1.0}), t_end=1.5, rtol=1e-9)
    found = sr.track_singularities(run, outputs=["rocker"])
    for approach in found.approaches:
        here = sr.classify(system, approach.state, outputs=["rocker"])
        assert here.measures[approach.kind] == pytest.approx(approach.measure, rel=1e-6, abs=1e-9)
        assert (approach.kind in here.kinds) == (approach.measure < 1e-6)
    kinds = {approach.kind for approach in found.approaches if approach.passed}
    C, B = np.sin(run["C"]), np.sin(run["B"])
    assert ("output" in kinds) == bool(np.any(C[:-1] * C[1:] < 0))
    assert ("input" in kinds) == bool(np.any(B[:-1] * B[1:] < 0))


def test_text_and_plain_data(five_bar_run, five_bar_track):
    found = five_bar_track
    text = str(found)
    assert "input: measure from" in text and "passes through it" in text
    data = json.loads(json.dumps(found.to_dict()))
    assert len(data["t"]) == len(data["measures"]["output"]) == len(five_bar_run)
    assert len(data["approaches"]) == len(found.approaches)
