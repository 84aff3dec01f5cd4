"""Maps over one coordinate against closed forms: four-bars, the slider-crank, spatial linkages."""

import json

import numpy as np
import pytest

import sarrus as sr

from .singular_machines import FOUR_BAR, ROCKERS, four_bar, four_bar_dead_points, four_bar_toggles, library

EXACT = 1e-8


def angles(points):
    return sorted(point.values[0] for point in points)


def test_grashof_four_bar():
    found = sr.singularity_map(four_bar(), "A", outputs=["rocker"])
    expected = four_bar_toggles(FOUR_BAR) + four_bar_toggles(FOUR_BAR, np.pi)
    assert len(expected) == 4 and four_bar_dead_points(FOUR_BAR) == []
    assert angles(found.of_kind("input")) == pytest.approx(sorted(expected), abs=EXACT)
    assert angles(found.of_kind("toggle")) == angles(found.points) and not found.of_kind("output")
    assert len(found.branches) == 2 and all(b.round and b.closed for b in found.branches)
    assert sorted(p.branches for p in found.points) == [(0,), (0,), (1,), (1,)]
    assert (found.modes == 2).all() and found.reachable == 1.0 and found.error < EXACT


def test_four_bar_that_cannot_go_round():
    system = four_bar(ROCKERS)
    found = sr.singularity_map(system, "A", outputs=["rocker"])
    ends = sorted(four_bar_dead_points(ROCKERS) + four_bar_dead_points(ROCKERS, np.pi))
    assert angles(found.of_kind("output")) == pytest.approx(ends, abs=EXACT)
    assert all(point.edge and "dead point" in point.singularity.words[0] for point in found.of_kind("output"))
    toggles = sorted(four_bar_toggles(ROCKERS) + four_bar_toggles(ROCKERS, np.pi))
    assert angles(found.of_kind("input")) == pytest.approx(toggles, abs=EXACT)
    lowest = min(branch.reach[0][0] for branch in found.branches)
    assert lowest == pytest.approx(ends[0], abs=EXACT)
    # what the counts say agrees with whether the closed form has real solutions
    a, b, c, d = ROCKERS
    reach = np.abs(d - a * np.exp(1j * found.centres[0]))
    assert (found.modes == np.where((reach < b + c) & (reach > abs(b - c)), 2, 0)).all()


@pytest.mark.parametrize(("unit", "cut", "twice"), [(1000.0, "D", False), (1.0, "C", False), (1.0, "D", True)])
def test_the_same_map_in_other_units_with_another_cut_or_a_repeated_row(unit, cut, twice):
    plain = sr.singularity_map(four_bar(ROCKERS), "A", outputs=["rocker"])
    other = sr.singularity_map(four_bar(ROCKERS, unit, cut, twice), "A", outputs=["rocker"])
    assert angles(other.points) == pytest.approx(angles(plain.points), abs=EXACT)
    assert sorted(p.kinds for p in other.points) == sorted(p.kinds for p in plain.points)
    assert len(other.branches) == len(plain.branches)


def test_slider_crank_with_equal_links_bifurcates():
    system = library("slider_crank")
    found = sr.singularity_map(system, "A", inputs=["A"])
    assert angles(found.of_kind("constraint")) == pytest.approx([-np.pi / 2, np.pi / 2], abs=EXACT)
    assert all(point.branches == (0, 1) and point.singularity.branches == 2 for point in found.points)
    folded = [b for b in found.branches if np.abs(np.sin(b.states["B"])).max() < 1e-9]
    slider = [b for b in found.branches if np.abs(np.sin(b.states["B"] + 2 * b.states["A"])).max() < 1e-9]
    assert len(found.branches) == 2 and len(folded) == 1 and len(slider) == 1 and folded != slider
    # over the other coordinate one branch stands upright, and is found by branching off
    upright = sr.singularity_map(system, "B", inputs=["A"])
    assert len(upright.branches) == 2 and min(np.ptp(b.values) for b in upright.branches) < 1e-9
    assert len(upright.of_kind("constraint")) == 2


def test_slider_crank_with_a_short_crank_does_not():
    system = library("slider_crank").with_parameters(L1=0.6)
    found = sr.singularity_map(system, "A", inputs=["A"])
    assert found.points == () and len(found.branches) == 2
    driven = sr.singularity_map(system, "A", inputs=["B"])
    # B = -A ± asin(...): it stands still where the coupler turns as fast as the crank, which L1 < L2 forbids
    assert driven.points == ()


def test_bricard_linkage_ends_at_its_dead_points():
    found = sr.singularity_map(library("bricard"), "J0")
    ends = [point.values[0] for point in found.points if point.edge]
    assert sorted(ends) == pytest.approx([-5 * np.pi / 6, -np.pi / 6], abs=EXACT)
    assert len(found.branches) == 1
    assert found.branches[0].reach[0] == pytest.approx((-np.pi / 6, 7 * np.pi / 6), abs=EXACT)


@pytest.mark.parametrize(("name", "coordinate", "count"), [("bennett", "A", 1), ("spherical_four_bar", "A", 2)])
def test_overconstrained_linkages_without_singular_positions(name, coordinate, count):
    found = sr.singularity_map(library(name), coordinate)
    assert found.points == () and len(found.branches) == count
    assert all(branch.round for branch in found.branches)


def test_flat_parallelogram():
    found = sr.singularity_map(library("parallelogram"), "A0")
    assert np.cos(2 * np.array(angles(found.of_kind("constraint")))) == pytest.approx([1.0, 1.0], abs=1e-12)


def test_part_of_the_range_and_one_branch_only():
    system = four_bar()
    state = system.assemble({"A": 0.4})
    found = sr.singularity_map(system, "A", {"A": (0.0, 2.6)}, outputs=["rocker"], branches=state)
    assert len(found.branches) == 1 and (found.modes == 1).all()
    assert found.branches[0].reach[0] == pytest.approx((0.0, 2.6), abs=1e-9)
    some = sr.singularity_map(system, "A", {"A": (0.0, 2.6)}, outputs=["rocker"])
    inside = [x for x in four_bar_toggles(FOUR_BAR) + four_bar_toggles(FOUR_BAR, np.pi) if 0 < x < 2.6]
    assert angles(some.points) == pytest.approx(sorted(inside), abs=EXACT) and len(some.branches) == 2
    assert len(found.points) == 1


def test_text_and_plain_data():
    found = sr.singularity_map(four_bar(ROCKERS), "A", outputs=["rocker"])
    text = str(found)
    assert "output at A = " in text and "(the coordinate turns back)" in text and "input and toggle at A" in text
    assert "branch 0: A " in text and "largest measure" in text
    data = json.loads(json.dumps(found.to_dict()))
    assert data["coordinates"] == ["A"] and len(data["points"]) == len(found.points)
    assert data["modes"] == found.modes.tolist()


def test_wrong_calls_are_explained():
    system, platform = four_bar(), library("planar_platform")
    with pytest.raises(sr.StateError, match=r"can move in 3 way\(s\).*hold 2 more, such as hold=\{'hip1': value\}"):
        sr.singularity_map(platform, "platform.x")
    with pytest.raises(sr.StateError, match=r"can move in 1 way\(s\), but the map has 2 coordinate\(s\); map 1"):
        sr.singularity_map(system, ["A", "B"])
    with pytest.raises(sr.StateError, match="one or two different coordinates, got A, A"):
        sr.singularity_map(system, ["A", "A"])
    with pytest.raises(sr.StateError, match="A cannot be held and mapped at once"):
        sr.singularity_map(system, "A", hold={"A": 1.0})
    with pytest.raises(sr.StateError, match=r"'A' needs \(low, high\) with low < high"):
        sr.singularity_map(system, "A", {"A": (1.0, 0.0)})
    with pytest.raises(sr.StateError, match="more than a full turn"):
        sr.singularity_map(system, "A", {"A": (0.0, 7.0)})
    with pytest.raises(sr.StateError, match="ranges: Z is not a coordinate of four-bar"):
        sr.singularity_map(system, "A", {"Z": (0.0, 1.0)})
    with pytest.raises(sr.StateError, match="must be 'all' or a state"):
        sr.singularity_map(system, "A", branches="some")
    with pytest.raises(sr.StateError, match="tol must lie between"):
        sr.singularity_map(system, "A", tol=1.0)
    with pytest.raises(sr.UnknownNameError, match="unknown coordinate 'Q'"):
        sr.singularity_map(system, "Q")
    with pytest.raises(sr.StateError, match=r"'platform' is not a single number but platform\.x"):
        sr.singularity_map(platform, "platform", hold={"hip1": 0.0, "hip2": 0.0})


def test_branches_told_apart_by_some_bodies_only():
    """The rods of a delta robot can each be mounted half a turn about themselves: its platform does not care."""
    system = library("delta")
    hold, part = {"arm1": 0.5, "arm2": 0.5}, {"arm0": (0.45, 0.55)}
    state = system.assemble({"arm0": 0.5, **hold})
    one = sr.singularity_map(system, "arm0", part, hold=hold, branches=state, cells=3)
    assert len(one.branches) == 1 and one.points == ()
    counts = sr.assembly_modes(system, {"arm0": float(one.centres[0][1]), **hold}, bodies=["platform"])
    some = sr.singularity_map(system, "arm0", part, hold=hold, bodies=["platform"], cells=3)
    assert some.modes[1] == len(counts)


def test_default_range_of_a_shift_is_its_reach():
    mech = sr.Mechanism("crank and slider", planar=True)
    crank, rod = mech.body("crank", 1.0, com=(0.15, 0), inertia=0.02), mech.body("rod", 1.0, com=(0.4, 0), inertia=0.06)
    slider = mech.body("slider", 2.0)
    mech.revolute("A", mech.ground, crank, initial=0.7)
    mech.revolute("B", crank, rod, at=(0.3, 0), initial=-1.0)
    mech.prismatic("x", mech.ground, slider, "x", initial=1.0)
    mech.close("pin", sr.point_on(rod, (0.8, 0)), sr.point_on(slider))
    mech.motor("A")
    found = sr.singularity_map(sr.compile(mech), "x", outputs=["x"])
    low, high = found.ranges[0]
    assert -1.2 < low < -1.1 and 1.1 < high < 1.2  # both ways of assembly, right and left of the crank
    assert sorted(p.values[0] for p in found.of_kind("toggle")) == pytest.approx([-1.1, -0.5, 0.5, 1.1], abs=EXACT)
    assert all(p.edge for p in found.points)
