"""How far coordinates go, against closed forms and a dense search."""

import json

import numpy as np
import pytest

import sarrus as sr

from .singular_machines import CORNERS, FEET, FOUR_BAR, ROCKERS, five_bar, four_bar, four_bar_dead_points, library
from .singular_machines import four_bar_mechanism as mechanism


def limited(lengths=FOUR_BAR, **limits):
    return sr.compile(mechanism(lengths, limits=limits))


def test_crank_that_goes_round_and_one_that_does_not():
    found = sr.reach(four_bar(), "A")
    assert len(found.travels) == 2 and all(travel.round for travel in found.travels)
    assert str(found).count("all the way round") == 2
    ends = sorted(four_bar_dead_points(ROCKERS) + four_bar_dead_points(ROCKERS, np.pi))
    found = sr.reach(four_bar(ROCKERS), "A")
    values = sorted(end.value for travel in found.travels for end in (travel.low, travel.high))
    assert values == pytest.approx(ends, abs=1e-10)
    assert {end.cause for travel in found.travels for end in (travel.low, travel.high)} == {"dead point"}


def transmission(lengths, A):
    """The angle between coupler and rocker for a crank angle."""
    a, b, c, d = lengths
    return np.arccos((abs(d - a * np.exp(1j * A)) ** 2 - b * b - c * c) / (2 * b * c))


def test_a_limit_of_another_joint_ends_the_travel_of_the_crank():
    a, b, c, d = FOUR_BAR
    low, high = -1.8, -0.2
    found = sr.reach(limited(C=(low, high)), "A")
    # C = -1.8 where the diagonal has this length; the shortest diagonal gives C beyond the limit
    diagonal = b * b + c * c + 2 * b * c * np.cos(low)
    A = np.arccos((a * a + d * d - diagonal) / (2 * a * d))
    assert len(found.travels) == 1
    travel = found.travels[0]
    assert (travel.low.value + 2 * np.pi, travel.high.value) == pytest.approx((2 * np.pi - A + 0.0, -A), abs=1e-9) or (
        travel.low.value, travel.high.value
    ) == pytest.approx((A, 2 * np.pi - A), abs=1e-9)  # fmt: skip
    assert {travel.low.cause, travel.high.cause} == {"limit of C"}
    assert travel.low.state["C"] == pytest.approx(low, abs=1e-9)
    free = sr.reach(limited(C=(low, high)), "A", limits=False)
    assert all(travel.round for travel in free.travels) and len(free.travels) == 2


def test_own_limits_and_dead_points_of_a_follower():
    found = sr.reach(limited(A=(-0.3, 1.1)), "C")
    # C is the angle between coupler and rocker: it turns back where the crank points along the ground, A = 0
    inner, outer = transmission(FOUR_BAR, 0.0), transmission(FOUR_BAR, 1.1)
    values = [(travel.low.value, travel.high.value) for travel in found.travels]
    assert values == [pytest.approx((-inner, -outer), abs=1e-9), pytest.approx((outer, inner), abs=1e-9)]
    assert (found.travels[1].low.cause, found.travels[1].high.cause) == ("limit of A", "dead point")
    assert found.travels[1].low.state["A"] == pytest.approx(1.1, abs=1e-9)


def test_one_motor_held():
    system = five_bar()
    found = sr.reach(system, "A", hold={"E": 0.5})
    assert found.mobility == 1 and found.travels
    base, l1, l2, l3, l4 = 0.4, 0.3, 0.5, 0.45, 0.35
    for travel in found.travels:
        for end in (travel.low, travel.high):
            gap = abs((base / 2 + l4 * np.exp(0.5j)) - (-base / 2 + l1 * np.exp(1j * end.value)))
            assert travel.round or min(abs(gap - l2 - l3), abs(gap - abs(l2 - l3))) < 1e-9


def test_machine_with_three_ways_to_move():
    found = sr.reach(library("planar_platform"), "platform.x")
    assert found.mobility == 3 and len(found.travels) == 1
    travel = found.travels[0]
    assert travel.low.value == pytest.approx(-travel.high.value, abs=1e-8)  # the machine is its own mirror image
    # a dense search: the platform fits where every corner is within 1 of its foot
    x, z, angle = np.meshgrid(np.linspace(0.6, 0.75, 76), np.linspace(-0.6, 0.6, 121), np.linspace(-1, 1, 121))
    ends = (x + 1j * z)[..., None] + CORNERS * np.exp(1j * angle)[..., None]
    densest = x[np.all(abs(ends - FEET) <= 1.0, axis=-1)].max()
    assert densest <= travel.high.value < densest + 0.004
    x, z, angle = travel.high.state["platform"]
    legs = abs(x + 1j * z + CORNERS * np.exp(1j * angle) - FEET)
    assert np.sum(abs(legs - 1.0) < 1e-6) >= 2  # at the end legs are stretched


def test_limits_with_two_ways_to_move():
    mech = sr.Mechanism("arm", planar=True)
    one, two = mech.body("one", 1.0, com=(0.5, 0), inertia=0.1), mech.body("two", 1.0, com=(0.4, 0), inertia=0.1)
    tip = mech.body("tip", 0.5, inertia=0.02)
    mech.planar_joint("tip", mech.ground, tip, initial=(1.0, 0.6, 0.0))
    mech.revolute("A", mech.ground, one, initial=0.2, limits=(0.3, 1.2))
    mech.revolute("B", one, two, at=(1.0, 0), initial=0.5, limits=(0.2, 2.0))
    mech.close("grip", sr.weld_on(two, (0.8, 0)), sr.weld_on(tip))
    system = sr.compile(mech)
    found = sr.reach(system, "tip.x")
    high = np.cos(0.3) + 0.8 * np.cos(0.5)
    low = np.cos(1.2) + 0.8 * np.cos(3.2)
    angles = np.linspace(0.3, 1.2, 91)
    lowest = min(low, *(np.cos(a) + 0.8 * np.cos(a + b) for a in angles for b in np.linspace(0.2, 2.0, 91)))
    assert found.mobility == 2 and len(found.travels) == 1
    assert found.travels[0].high.value == pytest.approx(high, abs=1e-8)
    assert lowest - 1e-3 < found.travels[0].low.value <= lowest + 1e-9
    assert found.travels[0].high.cause.startswith("limit of")


def test_text_plain_data_and_wrong_calls():
    found = sr.reach(four_bar(ROCKERS), "A")
    assert "reach of A [rad]" in str(found) and "(dead point; dead point)" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["travels"][0]["low"]["cause"] == "dead point"
    with pytest.raises(sr.StateError, match="'A' cannot be held and reach"):
        sr.reach(four_bar(), "A", hold={"A": 0.0})
    with pytest.raises(sr.StateError, match="with B held it cannot move"):
        sr.reach(four_bar(), "A", hold={"B": 0.3})


def test_only_the_branch_through_a_state():
    system = sr.compile(mechanism(FOUR_BAR, limits={"C": (-2.4, 2.4)}))
    states = sr.assembly_modes(system, {"A": 2.0})
    assert len(states) == 2
    for state in states:
        found = sr.reach(system, "C", branches=state)
        assert len(found.travels) == 1
        assert found.travels[0].low.value - 1e-9 <= state["C"] <= found.travels[0].high.value + 1e-9
    with pytest.raises(sr.StateError, match="branches must be 'all' or a state"):
        sr.reach(system, "C", branches="some")
