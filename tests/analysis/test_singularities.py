"""Kinds of singular positions against closed forms, and what must not change them."""

import json

import numpy as np
import pytest

import sarrus as sr

from .singular_machines import (
    FOUR_BAR,
    ROCKERS,
    five_bar,
    four_bar,
    four_bar_dead_points,
    four_bar_mechanism,
    four_bar_toggles,
    library,
    line_determinant,
)


def stretched(lengths=ROCKERS):
    """The rockers' four-bar with coupler and rocker in line."""
    a, _, _, d = lengths
    A = four_bar_dead_points(lengths)[0]
    line = np.angle(d - a * np.exp(1j * A))
    return [A, line - A, 0.0]


def in_line(lengths=FOUR_BAR):
    """The Grashof four-bar with crank and coupler in line."""
    a, b, _, d = lengths
    A = four_bar_toggles(lengths)[0]
    return [A, 0.0, np.angle(d - (a + b) * np.exp(1j * A)) - A]


def test_regular_position_of_a_four_bar():
    system = four_bar()
    found = sr.classify(system, system.assemble({"A": 0.8}), outputs=["rocker"])
    assert found.kind == "regular" and found.kinds == ()
    assert (found.mobility, found.ordinary, found.locked) == (1, 1, 0)
    assert "not at all with them locked" in found.words[0]
    assert all(found.measures[kind] > 0.05 for kind in ("constraint", "output", "input"))


def test_dead_point_of_a_four_bar():
    system = four_bar(ROCKERS)
    found = sr.classify(system, system.state(stretched()), outputs=["rocker"])
    assert found.kinds == ("output",) and found.turning == ("output",)
    assert found.finite is False and found.locked == 1
    assert found.ranks["output"] == (2, 3)
    # with the crank at rest, coupler and rocker turn about their common line's ends
    b, c = ROCKERS[1:3]
    motion = found.motions["output"][:, 0]
    assert np.abs(motion).max() == pytest.approx(1.0) and motion[0] == pytest.approx(0.0, abs=1e-9)
    assert motion[1] / motion[2] == pytest.approx(-c / (b + c), abs=1e-9)
    assert "dead point" in str(found) and "cannot resist" in str(found)


def test_toggle_of_a_four_bar():
    system = four_bar()
    found = sr.classify(system, system.state(in_line()), outputs=["rocker"])
    assert found.kinds == ("input", "toggle") and found.turning == ("input",)
    assert "stand still" in found.words[0] and "turn back" in found.words[1]
    # driven by the rocker the same position is a dead point
    turned = sr.classify(system, system.state(in_line()), inputs=["C"], outputs=["A"])
    assert "output" not in turned.kinds  # C is measured from the coupler, which moves on
    mech = four_bar_mechanism()
    mech.frame("pin", sr.point_on("rocker", (0.3, 0.0)))
    point = sr.classify(sr.compile(mech), system.state(in_line()))
    assert point.outputs == ("pin",) and point.kinds == ("input", "toggle")


def test_bifurcation_of_the_slider_crank():
    system = library("slider_crank")
    found = sr.classify(system, system.state([np.pi / 2, np.pi]))
    assert found.kinds == ("constraint",) and found.branches == 2
    assert (found.mobility, found.ordinary) == (2, 1)
    assert "2 branches of motion meet" in str(found)
    one = sr.classify(system, system.state([np.pi / 2, np.pi]), inputs=["A"])
    assert one.kinds == ("constraint", "output")
    near = sr.classify(system, system.state([np.pi / 2 - 1e-3, np.pi + 2e-3]), inputs=["A"])
    assert near.kinds == () and near.distances["constraint"] == pytest.approx(2e-3, rel=0.6)


def test_parallelogram_lying_flat():
    system = library("parallelogram")
    found = sr.classify(system, system.state([0.0, 0.0, 0.0, 0.0]))
    assert found.kinds == ("constraint", "output") and found.ranks["constraint"] == (2, 3)
    assert sr.classify(system, system.assemble({"A0": 0.7})).kinds == ()


def leg_lines(system, state):
    """Plücker coordinates of a Stewart platform's legs about the platform's centre."""
    centre, _ = system.frame(state, "platform")
    rows = []
    for i in range(6):
        foot = system.frame(state, f"tube{i}")[0]
        top = system.frame(state, f"rod{i}")[0]
        direction = (top - foot) / np.linalg.norm(top - foot)
        rows.append([*direction, *np.cross(top - centre, direction)])
    return np.array(rows)


def stewart_at(system, yaw, height=2.0):
    quat = [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
    return system.assemble({"platform": [0.0, 0.0, height, *quat]})


def test_stewart_regular_and_turned_by_a_right_angle():
    system = library("stewart")
    for yaw in (0.0, 0.4):
        state = stewart_at(system, yaw)
        assert abs(np.linalg.det(leg_lines(system, state))) > 1e-3
        assert sr.classify(system, state).kinds == ()
    for yaw in (np.pi / 2, -np.pi / 2):  # Fichter's singular position
        state = stewart_at(system, yaw)
        assert abs(np.linalg.det(leg_lines(system, state))) < 1e-12
        found = sr.classify(system, state)
        assert found.kinds == ("output",) and found.locked == 1
        # the legs keep their lengths to first order along the motion that is found
        lengths = [system.layout.find(f"leg{i}", "v").start for i in range(6)]
        assert np.abs(found.motions["output"][lengths]).max() < 1e-9
    assert sr.classify(system, stewart_at(system, np.pi / 2 - 0.02)).distances["output"] == pytest.approx(0.02, rel=0.5)


def test_three_legs_meeting_in_a_point():
    system = library("planar_platform")
    state = library("planar_platform", angle=0.0).assemble()
    feet = np.array([complex(*system.frame(state, f"thigh{k}")[0][[0, 2]]) for k in (1, 2, 3)])
    tips = [system.frame(state, f"shank{k}") for k in (1, 2, 3)]
    corners = np.array([complex(*(p + R @ (0.5, 0, 0))[[0, 2]]) for p, R in tips])
    assert abs(line_determinant(feet, corners)) < 1e-12
    found = sr.classify(system, state)
    assert found.kinds == ("output",) and found.outputs == ("platform",)
    turning = found.motions["output"][system.layout.find("platform", "v"), 0]
    assert abs(turning[2]) > 0.1 and np.abs(turning[:2]).max() < 1e-9  # it turns about the common point
    assert sr.classify(system, system.assemble()).kinds == ()


def test_inputs_and_outputs_of_a_five_bar():
    system = five_bar()
    straight = system.assemble({"A": 1.3, "B": 0.0})
    assert sr.classify(system, straight).kinds == ("input",)
    one = sr.classify(system, straight, inputs=["A"], outputs=["E"])
    assert one.locked == 1 and one.kinds == ()  # one motor for two ways to move: one is always left


def test_shaky_and_stiff_structures():
    def arch(span):
        mech = sr.Mechanism("arch", planar=True)
        one, two = mech.body("one", 1.0, com=(0.5, 0), inertia=0.1), mech.body("two", 2.0, com=(0.4, 0), inertia=0.1)
        mech.revolute("A", mech.ground, one, initial=0.3)
        mech.revolute("B", one, two, at=(1.0, 0), initial=-0.6)
        mech.close("C", sr.point_on(two, (0.8, 0)), sr.point_on(mech.ground, (span, 0)))
        return sr.compile(mech)

    flat = arch(1.8)
    found = sr.classify(flat, flat.state([0.0, 0.0]))
    assert found.kind == "constraint" and found.branches == 0 and (found.mobility, found.ordinary) == (1, 0)
    assert "shaky" in str(found)
    stiff = arch(1.5)
    found = sr.classify(stiff, stiff.assemble())
    assert found.kinds == () and "a structure" in str(found)


@pytest.mark.parametrize(("unit", "cut", "twice"), [(1000.0, "D", False), (1.0, "C", False), (1.0, "D", True)])
def test_verdicts_do_not_depend_on_units_cuts_or_repeated_rows(unit, cut, twice):
    system = four_bar(ROCKERS, unit, cut, twice)
    A, B, _ = stretched()
    values = {"A": A, "B": B, "C": 0.0, "D": A + B + np.pi}  # from its own pivot the rocker points the other way
    q = [values[name] for name in system.layout.q_names]
    found = sr.classify(system, system.state(q), inputs=["A"], outputs=["rocker"])
    assert found.kinds == ("output",) and found.turning == ("output",) and found.finite is False
    assert sr.classify(system, system.assemble({"A": 0.4}), outputs=["rocker"]).kinds == ()
    if unit != 1.0:
        plain = sr.classify(four_bar(ROCKERS), four_bar(ROCKERS).assemble({"A": 0.4}), outputs=["rocker"])
        scaled = sr.classify(system, system.assemble({"A": 0.4}), outputs=["rocker"])
        for kind in plain.judged:
            assert scaled.measures[kind] == pytest.approx(plain.measures[kind], rel=1e-9)


def test_record_as_plain_data():
    system = library("slider_crank")
    data = json.loads(json.dumps(sr.classify(system, system.state([np.pi / 2, np.pi])).to_dict()))
    assert data["kind"] == "constraint" and data["branches"] == 2
    assert data["gaps"]["constraint"] is None  # there is no singular value above the only one


def test_wrong_calls_are_explained():
    system = four_bar()
    state = system.assemble({"A": 0.8})
    with pytest.raises(sr.UnknownNameError, match="unknown input or coordinate 'X'"):
        sr.classify(system, state, inputs=["X"])
    with pytest.raises(sr.UnknownNameError, match=r"unknown coordinate, body or frame 'rock'.*'rocker'"):
        sr.classify(system, state, outputs=["rock"])
    with pytest.raises(sr.SarrusError, match=r"outputs: expected a list of names, got 'rocker'; write \['rocker'\]"):
        sr.classify(system, state, outputs="rocker")
    with pytest.raises(sr.StateError, match=r"constraint 'loop.* is open by"):
        sr.classify(system, system.state(state.q + np.array([0.0, 0.1, 0.0])))
    with pytest.raises(sr.StateError, match="give one state"):
        sr.classify(system, system.state(np.stack([state.q, state.q])))
