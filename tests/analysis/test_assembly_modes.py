"""All ways to put a machine together, against closed forms and dense searches."""

import numpy as np
import pytest
from scipy.optimize import brentq

import sarrus as sr
from sarrus.analysis import branches

from .singular_machines import CORNERS, FEET, FIVE_BAR, LINK, ROCKERS, five_bar, four_bar, library, meeting


@pytest.mark.parametrize("A", [0.3, 1.0, -0.9])
def test_four_bar_has_two(A):
    a, b, c, d = ROCKERS
    found = sr.assembly_modes(four_bar(ROCKERS), {"A": A})
    pins = meeting(a * np.exp(1j * A), b, d + 0j, c)
    expected = sorted(np.angle((p - a * np.exp(1j * A)) * np.exp(-1j * A)) for p in pins)
    assert [state["B"] for state in found] == pytest.approx(expected, abs=1e-12)
    assert all(state["A"] == A for state in found) and found.settled and len(found) == 2


def test_out_of_reach_there_is_none():
    found = sr.assembly_modes(four_bar(ROCKERS), {"A": 3.0})
    assert len(found) == 0 and list(found) == [] and "0 assemblies" in str(found)


def test_five_bar_has_two_for_its_motors_and_four_for_its_tip():
    system = five_bar()
    base, l1, l2, l3, l4 = FIVE_BAR
    found = sr.assembly_modes(system, {"A": 2.0, "E": 1.0})
    one, two = -base / 2 + l1 * np.exp(2.0j), base / 2 + l4 * np.exp(1.0j)
    tips = sorted((system.frame(state, "tip")[0] for state in found), key=lambda p: p[2])
    expected = sorted(meeting(one, l2, two, l3), key=lambda p: p.imag)
    assert [complex(p[0], p[2]) for p in tips] == pytest.approx(expected, abs=1e-12)

    # with the tip held there are two ways to bend each arm
    mech = sr.Mechanism("held tip", planar=True)
    tip = mech.body("tip", 1.0, inertia=0.1)
    mech.planar_joint("tip", mech.ground, tip, initial=(0.05, 0.5, 0.0))
    for side, foot, lengths, bend in (("l", -0.2, (0.3, 0.5), -1.2), ("r", 0.2, (0.35, 0.45), 1.2)):
        near = mech.body(f"{side}1", 1.0, com=(0.1, 0), inertia=0.02)
        far = mech.body(f"{side}2", 1.0, com=(0.2, 0), inertia=0.03)
        mech.revolute(f"{side}1", mech.ground, near, at=(foot, 0), initial=1.5)
        mech.revolute(f"{side}2", near, far, at=(lengths[0], 0), initial=bend)
        mech.close(f"{side}3", sr.point_on(far, (lengths[1], 0)), sr.point_on(tip))
    held = sr.compile(mech)
    place = {"tip.x": 0.05, "tip.z": 0.5, "tip.angle": 0.2}
    assert len(sr.assembly_modes(held, place)) == 4
    assert len(sr.assembly_modes(held, place, bodies=["l1", "tip"])) == 2


def platform_poses(hips):
    """All poses of the platform for given hips: for every angle the place follows, one equation is left."""
    knees = FEET + LINK * np.exp(1j * np.asarray(hips))

    def place(angle):
        # |c + r_k|² = L² for r_k = corner_k - knee_k: differences are linear in c
        r = CORNERS * np.exp(1j * angle) - knees
        rows = 2 * np.array([[(r[k] - r[0]).real, (r[k] - r[0]).imag] for k in (1, 2)])
        right = np.array([abs(r[0]) ** 2 - abs(r[k]) ** 2 for k in (1, 2)])
        c = np.linalg.solve(rows, right) @ (1, 1j)
        return c, abs(c + r[0]) ** 2 - LINK**2

    grid = np.linspace(-np.pi, np.pi, 20001) + 1e-5
    values = np.array([place(x)[1] for x in grid])
    steep = np.abs(np.diff(values)) > 10.0  # where the linear equations are singular the sign may change without a zero
    roots = [
        brentq(lambda x: place(x)[1], grid[k], grid[k + 1], xtol=1e-14)
        for k in np.flatnonzero((values[:-1] * values[1:] < 0) & ~steep)
    ]
    return sorted((complex(place(x)[0]).real, complex(place(x)[0]).imag, x) for x in roots)


@pytest.mark.parametrize(
    ("count", "hips"),
    [(2, (0.67, 1.44, 0.27)), (2, (-0.8352, 1.2592, -2.9296)), (4, (0.59, 2.19, -2.23)), (4, (1.54, 2.21, -2.27)),
     (6, (0.97, 2.6, -2.73)), (6, (0.51, 1.97, -2.27))],
)  # fmt: skip
def test_platform_on_three_legs_has_as_many_as_its_equation_has_roots(count, hips):
    found = sr.assembly_modes(library("planar_platform"), dict(zip(("hip1", "hip2", "hip3"), hips, strict=True)))
    poses = sorted(tuple(state["platform"]) for state in found)
    expected = platform_poses(hips)
    assert len(poses) == len(expected) == count and found.settled
    for pose, other in zip(poses, expected, strict=True):
        assert pose == pytest.approx(other, abs=1e-8)


def test_stewart_platform_above_and_below_its_base():
    system = library("stewart")
    state = system.assemble({"platform": [0.1, -0.2, 2.1, *turn(0.15)]})
    lengths = {f"leg{i}": state[f"leg{i}"] for i in range(6)}
    found = sr.assembly_modes(system, lengths, bodies=["platform"])
    places = np.array([mode["platform"][:3] for mode in found])
    assert np.abs(places - [0.1, -0.2, 2.1]).max(axis=1).min() < 1e-9
    assert np.abs(places - [0.1, -0.2, -2.1]).max(axis=1).min() < 1e-9  # mirrored in the plane of the base
    assert len(found) % 2 == 0 and found.settled


def turn(yaw):
    return [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]


def test_level_poses_of_the_delta():
    """Three spheres about the ends of the arms, moved in by the platform's radius, meet in two points."""
    arms = (0.5, 0.4, 0.3)
    system = library("delta")
    found = sr.assembly_modes(system, {f"arm{i}": x for i, x in enumerate(arms)}, bodies=["platform"])
    level = [mode["platform"][:3] for mode in found if abs(mode["platform"][3]) > 1 - 1e-9]
    turns = [2 * np.pi * i / 3 for i in range(3)]
    out = [0.2 - 0.05 + 0.3 * np.cos(x) for x in arms]
    centres = np.array([[r * np.cos(w), r * np.sin(w), -0.3 * np.sin(x)] for r, w, x in
                        zip(out, turns, arms, strict=True)])  # fmt: skip
    # c = foot + s n on the line at equal distances from all three centres
    rows = centres[1:] - centres[0]
    right = (np.sum(centres[1:] ** 2, axis=1) - np.sum(centres[0] ** 2)) / 2
    foot = np.linalg.lstsq(rows, right, rcond=None)[0]
    n = np.cross(*rows) / np.linalg.norm(np.cross(*rows))
    offset = foot - centres[0]
    s = np.roots([1.0, 2 * offset @ n, offset @ offset - 0.8**2])
    expected = sorted((foot + x * n).tolist() for x in s.real)
    assert len(level) == 2 and np.allclose(sorted(p.tolist() for p in level), expected, atol=1e-9)


def test_the_count_does_not_depend_on_how_long_is_searched(monkeypatch):
    system = library("planar_platform")
    hips = {"hip1": 0.97, "hip2": 2.6, "hip3": -2.73}
    first = sr.assembly_modes(system, hips)
    monkeypatch.setattr(branches, "LEAST", 20)
    second = sr.assembly_modes(system, hips)
    assert second.starts > first.starts and len(second) == len(first)
    assert np.allclose([s.q for s in first], [s.q for s in second], atol=1e-9)


@pytest.mark.parametrize(("unit", "cut", "twice"), [(1000.0, "D", False), (1.0, "C", False), (1.0, "D", True)])
def test_units_cuts_and_repeated_rows_change_nothing(unit, cut, twice):
    plain = sr.assembly_modes(four_bar(ROCKERS), {"A": 0.7})
    other = sr.assembly_modes(four_bar(ROCKERS, unit, cut, twice), {"A": 0.7})
    assert [s["B"] for s in other] == pytest.approx([s["B"] for s in plain], abs=1e-10)


def test_joints_outside_their_limits_are_left_out():
    mech = sr.Mechanism("one elbow", planar=True)
    one, two = mech.body("one", 1.0, com=(0.5, 0), inertia=0.1), mech.body("two", 1.0, com=(0.5, 0), inertia=0.1)
    mech.revolute("A", mech.ground, one, initial=0.5)
    mech.revolute("B", one, two, at=(1.0, 0), initial=-1.0, limits=(-2.5, 0.1))
    mech.close("tip", sr.point_on(two, (1.0, 0)), sr.point_on(mech.ground, (1.2, 0.3)))
    system = sr.compile(mech)
    found = sr.assembly_modes(system, {})
    assert len(found) == 1 and found[0]["B"] < 0 and found.outside == 1
    assert "1 more with a joint outside its limits" in str(found)
    assert len(sr.assembly_modes(system, {}, limits=False)) == 2


def test_sarrus_linkage_has_assemblies_that_come_loose():
    found = sr.assembly_modes(library("sarrus"), {"A1": 0.5})
    assert len(found) >= 1 and found.loose and "a continuum of others" in str(found)


def test_wrong_calls_are_explained():
    with pytest.raises(sr.StateError, match=r"with A given it can still move in 1 way\(s\).*give 1 more of: .*E"):
        sr.assembly_modes(five_bar(), {"A": 1.0})
    with pytest.raises(sr.UnknownNameError, match="unknown body or frame 'top'"):
        sr.assembly_modes(library("stewart"), {}, bodies=["top"])
