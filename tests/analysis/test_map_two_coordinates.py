"""Maps over two coordinates: the five-bar and the platform on three legs against closed forms.

That nothing false is found: every point of every curve fulfils the closed form. That nothing is missed: points computed
from the closed form lie on the curves.
"""

import functools
import itertools
import json

import numpy as np
import pytest
from scipy.optimize import brentq

import sarrus as sr

from .singular_machines import CORNERS, FEET, FIVE_BAR, LINK, five_bar, library, line_determinant, meeting

EXACT = 1e-8
BESIDE = 0.02  # chords leave the curve by h²κ/8: h is 0.15, κ up to about 5


def elbows(A, E):
    base, l1, _, _, l4 = FIVE_BAR
    return -base / 2 + l1 * np.exp(1j * np.asarray(A)), base / 2 + l4 * np.exp(1j * np.asarray(E))


def beside(curves, points, period):
    """Distance of each point from the nearest chord of some curves."""
    best = np.full(len(points), np.inf)
    for curve in curves:
        rows = np.vstack([curve.values, curve.values[:1]]) if curve.closed else curve.values
        for a, b in itertools.pairwise(rows):
            chord = _short(b - a, period)
            away = _short(points - a, period)
            part = np.clip(away @ chord / max(chord @ chord, 1e-300), 0, 1)
            best = np.minimum(best, np.linalg.norm(away - part[:, None] * chord, axis=1))
    return best


def _short(step, period):
    return step - period * np.round(step / period) if period else step


@functools.cache
def five_bar_map():
    return sr.singularity_map(five_bar(), ["A", "E"], cells=16)


def test_five_bar_output_curves_are_where_the_rods_are_in_line():
    found = five_bar_map()
    _, _, l2, l3, _ = FIVE_BAR
    curves = found.of_kind("output")
    assert curves and all(curve.edge for curve in curves)  # the motors are the coordinates
    for curve in curves:
        one, two = elbows(*curve.values.T)
        gap = abs(one - two)
        assert np.min([abs(gap - (l2 + l3)), abs(gap - abs(l2 - l3))], axis=0).max() < EXACT
    wanted = []
    base, _, _, _, l4 = FIVE_BAR
    for A in np.linspace(-np.pi, np.pi, 61):
        one = elbows(A, 0.0)[0]
        for span in (l2 + l3, abs(l2 - l3)):
            wanted += [(A, np.angle(p - base / 2)) for p in meeting(base / 2 + 0j, l4, one, span)]
    assert len(wanted) > 30
    assert beside(curves, np.array(wanted), 2 * np.pi).max() < BESIDE


def test_five_bar_input_curves_are_where_a_leg_is_straight():
    found = five_bar_map()
    base, l1, l2, l3, l4 = FIVE_BAR
    curves = found.of_kind("input")
    for curve in curves:
        straight = [np.abs(np.sin(curve.states[name])).max() for name in ("B", "D")]
        assert min(straight) < EXACT
        tip = np.array([five_bar().frame(curve.states.row(k), "tip")[0] for k in range(len(curve.values))])
        tip = tip[:, 0] + 1j * tip[:, 2]
        one, two = elbows(*curve.values.T)
        assert np.abs(abs(tip - one) - l2).max() < 1e-9 and np.abs(abs(tip - two) - l3).max() < 1e-9
    left, right = [], []
    for x in np.linspace(-np.pi, np.pi, 41):
        for side in (1, -1):
            tip = -base / 2 + (l1 + side * l2) * np.exp(1j * x)
            left += [(x, np.angle(p - base / 2)) for p in meeting(base / 2 + 0j, l4, tip, l3)]
            tip = base / 2 + (l4 + side * l3) * np.exp(1j * x)
            right += [(np.angle(p + base / 2), x) for p in meeting(-base / 2 + 0j, l1, tip, l2)]
    assert len(left) > 20 and len(right) > 20
    assert beside(curves, np.array(left + right), 2 * np.pi).max() < BESIDE


def test_five_bar_counts_and_error():
    found = five_bar_map()
    _, _, l2, l3, _ = FIVE_BAR
    one, two = elbows(*np.meshgrid(*found.centres, indexing="ij"))
    gap = abs(one - two)
    assert (found.modes == np.where((gap < l2 + l3) & (gap > abs(l2 - l3)), 2, 0)).all()
    assert found.error < EXACT and found.untraced == () and found.tolerance == 1e-8
    assert sum(len(branch.values) for branch in found.branches) == found.modes.sum()


def test_equal_rods_turn_about_one_elbow_while_both_motors_stand_still():
    """With equal rods the elbows can coincide: the rods then turn together about one point."""
    system = library("five_bar").with_parameters(L0=0.3, L1=0.35, L2=0.45)
    upper = {"A": (0.6, 1.7), "E": (1.6, 2.6)}
    found = sr.singularity_map(system, ["A", "E"], upper, cells=10)
    still = [curve for curve in found.curves if curve.still]
    assert len(still) == 1 and still[0].kinds == ("output",) and still[0].closed
    A = np.arccos(0.15 / 0.35)
    assert still[0].values[0] == pytest.approx((A, np.pi - A), abs=EXACT)
    assert len(found.branches) == 1  # tip above and tip below are joined by this turn alone


def test_isolated_constraint_singularity_of_the_five_bar():
    """With all links in line on the axis, the rods as long as what they have to span."""
    around = {"A": (2.6, 3.6), "E": (-0.5, 0.5)}
    found = sr.singularity_map(library("five_bar"), ["A", "E"], around, cells=8)
    points = found.of_kind("constraint")
    assert len(points) == 1 and points[0].values == pytest.approx((np.pi, 0.0), abs=EXACT)
    assert points[0].singularity.mobility == 3


# --- the platform on three legs --------------------------------------------------------------------------------------

SPAN, ANGLE = 0.25, 0.3
PLACE = {"platform.x": (-SPAN, SPAN), "platform.z": (-SPAN, SPAN)}


@functools.cache
def platform(motors):
    system = library("planar_platform", motors=motors)
    return system, sr.singularity_map(
        system, ["platform.x", "platform.z"], PLACE, hold={"platform.angle": ANGLE}, cells=8
    )


def knees(hips):
    return FEET + LINK * np.exp(1j * np.asarray(hips))


def corners(x, z):
    return x + 1j * z + CORNERS * np.exp(1j * ANGLE)


def test_platform_driven_at_the_hips_loses_control_where_the_shanks_lines_meet():
    _, found = platform(("hip1", "hip2", "hip3"))
    curves = found.of_kind("output")
    assert len(found.branches) == 8 and (found.modes == 8).all() and len(curves) > 4
    for curve in curves:
        for k in range(len(curve.values)):
            state = curve.states.row(k)
            ends = corners(*curve.values[k])
            middle = knees([state[f"hip{i}"] for i in (1, 2, 3)])
            assert abs(ends - middle) == pytest.approx(LINK, abs=1e-9)
            assert abs(line_determinant(middle, ends)) < EXACT
    # and along lines of constant x every zero of the determinant, for every bend of the knees, is on a curve
    total = 0
    for bends in itertools.product((1, -1), repeat=3):
        mine = [c for c in curves if all(np.sign(np.sin(c.states.row(0)[f"elbow{i}"])) == b for i, b in
                                         zip((1, 2, 3), bends, strict=True))]  # fmt: skip
        wanted = [(x, z) for x in np.linspace(-0.22, 0.22, 9) for z in zeros_along(x, bends)]
        total += len(wanted)
        if wanted:
            assert beside(mine, np.array(wanted), None).max() < 0.2 * BESIDE
    assert total > 20


def zeros_along(x, bends):
    def determinant(z):
        ends = corners(x, z)
        reach = ends - FEET
        middle = FEET + reach / 2 - 1j * np.array(bends) * reach / abs(reach) * np.sqrt(LINK**2 - abs(reach) ** 2 / 4)
        return line_determinant(middle, ends)

    grid = np.linspace(-SPAN, SPAN, 101)
    values = [determinant(z) for z in grid]
    return [brentq(determinant, grid[k], grid[k + 1]) for k in range(100) if values[k] * values[k + 1] < 0]


def test_platform_driven_at_the_knees_loses_control_where_the_legs_lines_meet():
    hold = {"platform.angle": ANGLE}
    wide = {"platform.x": (-0.45, 0.1), "platform.z": (-0.1, 0.45)}
    system = library("planar_platform")
    found = sr.singularity_map(system, ["platform.x", "platform.z"], wide, hold=hold, cells=8)
    curves = [curve for curve in found.of_kind("output") if not curve.still]
    assert curves
    for curve in curves:
        for x, z in curve.values:
            legs = corners(x, z) - FEET
            if np.min(abs(legs)) > 1e-3:  # a leg of no length has no line
                assert abs(line_determinant(FEET, corners(x, z))) < EXACT


def test_text_and_plain_data():
    _, found = platform(("hip1", "hip2", "hip3"))
    text = str(found)
    assert "held: platform.angle = 0.3" in text and "output curve: " in text and "branches: 8" in text
    data = json.loads(json.dumps(found.to_dict()))
    assert len(data["curves"]) == len(found.curves) and data["units"] == ["m", "m"]


def test_underactuated_machine_says_what_it_cannot_follow():
    system = five_bar()
    found = sr.singularity_map(system, ["A", "E"], {"A": (1.9, 2.5), "E": (0.6, 1.2)}, inputs=["A"], cells=4)
    assert found.untraced == ("output",) and "curves were not followed: output" in str(found)
