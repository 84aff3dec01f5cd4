"""A description with many faults gives one error that lists all of them by name."""

import re

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import SarrusError, UnknownNameError


def problems_of(mech: sr.Mechanism) -> tuple[str, ...]:
    with pytest.raises(sr.ModelError) as caught:
        mech.finalize()
    return caught.value.problems


def unmatched(problems: tuple[str, ...], patterns: list[str]) -> list[str]:
    """Patterns that no problem matches; each problem may serve one pattern only."""
    left, missing = list(problems), []
    for pattern in patterns:
        hit = next((text for text in left if re.search(pattern, text)), None)
        if hit is None:
            missing.append(pattern)
        else:
            left.remove(hit)
    assert not left or missing, f"problems that no fault explains: {left}"
    return missing


def hinged(mech: sr.Mechanism, name: str, joint: str, axis="y", **fields) -> None:
    """A bar of its own on the ground."""
    fields = dict(mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3)) | fields
    mech.revolute(joint, mech.ground, mech.body(name, **fields), axis)


def acceptance(mech: sr.Mechanism) -> list[str]:
    """The faults that the acceptance list names, whole graph and single parts together."""
    hinged(mech, "sound", "A")
    mech.revolute("J ghost", mech.ground, mech.body("ghost"), "y")
    mech.body("island", 1.0, inertia=np.eye(3))
    hinged(mech, "needle", "J needle", "x", com=(0.5, 0, 0), inertia=sr.rod(1.0, 1.0))
    hinged(mech, "bent", "J bent", "w")
    hinged(mech, "fog", "J fog", mass=np.nan)
    mech.close("loose end", sr.point_on("sound"), sr.point_on("nobody"))
    for name in "pqr":
        mech.body(name, 1.0, inertia=np.eye(3))
    for parent, child in ("pq", "qr", "rp"):
        mech.revolute(f"{parent} on {child}", parent, child, "y")
    return [
        "'ghost'.*no mass",
        "'island': no chain of joints",
        "'needle': singular inertia",
        "'J bent'.*unknown axis 'w'",
        "'fog': mass is nan",
        "'loose end'.*'nobody' is not a body",
        "'p', 'q', 'r'.*cycle",
    ]


def test_faults_of_the_graph_and_of_parts_together():
    mech = sr.Mechanism("wreck")
    patterns = acceptance(mech)
    problems = problems_of(mech)
    assert unmatched(problems, patterns) == []
    assert len(problems) == len(patterns)


@pytest.mark.parametrize("twice", ["joint", "closure", "force", "actuator", "body"])
def test_duplicate_names_do_not_hide_the_rest(twice):
    mech = sr.Mechanism("wreck")
    patterns = acceptance(mech)
    for k in range(2):
        if twice == "body":
            hinged(mech, "twin", f"J twin {k}")
        elif twice == "joint":
            hinged(mech, f"body of twin {k}", "twin")
        elif twice == "closure":
            mech.close("twin", sr.point_on("sound"), sr.point_on("ground", (k, 0, 0)))
        elif twice == "force":
            mech.force("twin", sr.point_on("sound"), (k, 0, 0))
        else:
            mech.motor("A", name="twin")
    problems = problems_of(mech)
    space = "joint or constraint" if twice in ("joint", "closure") else twice
    assert unmatched(problems, [*patterns, f"^{space}.* 'twin': the name is taken 2 times"]) == []
    assert len(problems) == len(patterns) + 1


@pytest.mark.parametrize(
    ("spoil", "pattern"),
    [
        (lambda m: m.revolute("odd", "sound", "sound", "y"), "joint 'odd': it joins 'sound' to itself"),
        (lambda m: m.revolute("odd", "sound", "nowhere", "y"), "joint 'odd': 'nowhere' is not a body"),
        (lambda m: m.joint("hinge", "odd", m.ground, m.body("b", 1, inertia=np.eye(3))), "joint 'odd'.*kind 'hinge'"),
    ],
)
def test_a_bad_joint_does_not_hide_the_rest(spoil, pattern):
    mech = sr.Mechanism("wreck")
    patterns = acceptance(mech)
    spoil(mech)
    assert unmatched(problems_of(mech), [*patterns, pattern]) == []


def test_everything_but_the_graph_at_once():
    """Thirty faults of parts in one machine: none hides another."""
    mech = sr.Mechanism("junkyard", gravity=(0, 0, np.inf))
    hinged(mech, "sound", "A")
    at = sr.point_on("sound", (1, 0, 0))
    bodies = {
        "balloon": (dict(mass=-1.0), "mass is -1.0"),
        "star": (dict(mass=np.inf), "mass is inf"),
        "label": (dict(mass="2"), "expected a number, got '2'"),
        "lost": (dict(com=(np.nan, 0, 0)), "com is"),
        "skew": (dict(inertia=np.eye(3) + np.eye(3, k=1)), "not symmetric"),
        "impossible": (dict(inertia=np.diag([1.0, 1.0, 5.0])), "no rigid body"),
        "lump": (dict(inertia=2.0), "3x3"),
    }
    patterns = ["^gravity.*inf"]
    for name, (fields, text) in bodies.items():
        hinged(mech, name, f"J {name}", **fields)
        patterns.append(f"body '{name}': .*{text}")
    faults = [
        (lambda: mech.close("D1", at, sr.point_on("sound")), "'D1': both sides are on 'sound'"),
        (lambda: mech.close("D2", sr.revolute_on("sound", (0, 0, 0)), sr.point_on("ground")), "'D2': a revolute"),
        (lambda: mech.close("D3", at, sr.line_on("ground", (0, 0, 0), "u")), "'D3'.*unknown axis 'u'"),
        (lambda: mech.distance("D4", at, sr.point_on("ground"), 0.0), "'D4': length 0.0"),
        (lambda: mech.couple("gear", {"A": 1, "X1": 2}), "'gear': 'X1'"),
        (lambda: mech.lock("hold", "X2"), "'hold': 'X2'"),
        (lambda: mech.prescribe("drive", "A", 1.0), "'drive': expected a function"),
        (lambda: mech.motor("X3"), "'X3': 'X3'"),
        (lambda: mech.actuator("act", {"X4": 1.0}), "'act': 'X4'"),
        (lambda: mech.joint_spring("coil", "X5", 1.0), "'coil': 'X5'"),
        (lambda: mech.spring("rubber", at, sr.point_on("X6"), 1.0), "'rubber': 'X6'"),
        (lambda: mech.spring("string", at, sr.point_on("ground"), np.nan), "'string': stiffness is nan"),
        (lambda: mech.force("push", at, (1, 2, 3, 4)), "'push': expected shape"),
        (lambda: mech.torque("twist", "X7", (1, 0, 0)), "'twist': 'X7'"),
        (lambda: mech.thruster("jet", at, (0, 0, 0)), "'jet': .*no direction"),
        (lambda: mech.rolling("roll", at, 1.0, at), "'roll': needs hub"),
        (lambda: mech.constrain("own", 3), "'own': expected a function"),
        (lambda: mech.frame("F", sr.point_on("X8")), "'F': 'X8'"),
        (lambda: mech.motor("A", name="weak", limits=(1, -1)), "'weak': limits"),
        (lambda: [hinged(mech, f"b{x}", f"J b{x}", mass=sr.parameter("M", x)) for x in (1, 2)], "'M': has two"),
    ]
    for spoil, pattern in faults:
        spoil()
        patterns.append(pattern)
    problems = problems_of(mech)
    assert unmatched(problems, patterns) == []
    assert len(problems) == len(patterns)


def test_the_error_numbers_its_problems_and_names_the_machine():
    mech = sr.Mechanism("wreck")
    acceptance(mech)
    with pytest.raises(sr.ModelError, match=r"^wreck: 7 problems in the description:\n  1\. ") as caught:
        mech.finalize()
    lines = str(caught.value).splitlines()[1:]
    assert [line.strip() for line in lines] == [f"{k}. {x}" for k, x in enumerate(caught.value.problems, 1)]
    assert str(sr.ModelError("one", ["fault"])) == "one: 1 problem in the description:\n  1. fault"


def test_compile_raises_the_same_error():
    mech = sr.Mechanism("wreck")
    acceptance(mech)
    with pytest.raises(sr.ModelError, match="'island'") as caught:
        sr.compile(mech)
    assert len(caught.value.problems) == 7
    with pytest.raises(SarrusError, match="compile: expected a Mechanism or a Lagrangian, got str"):
        sr.compile("four_bar")  # type: ignore[arg-type]


def test_faults_that_only_the_equations_show():
    """A carriage whose only mass sits on its joint: found while deriving, and named."""
    mech = sr.Mechanism("hollow")
    mech.revolute("A", mech.ground, mech.body("crank", 1.0, (1, 0, 0)), "y")
    first, dot = mech.body("first"), mech.body("dot", 1.0)
    mech.revolute("B", mech.ground, first, "y")
    mech.revolute("C", first, dot, "y")
    with pytest.raises(sr.ModelError, match=r"'dot'|'B'|'C'"):
        sr.compile(mech)


def test_constraints_that_only_the_equations_show():
    for add, text in (
        (lambda m: m.constrain("own", lambda k: k.rate("A")), "constraint 'own': .*contains velocities"),
        (lambda m: m.constrain_velocity("own", lambda k: k.rate("A") ** 2), "constraint 'own': it is not linear"),
    ):
        mech = sr.Mechanism("odd")
        hinged(mech, "sound", "A")
        add(mech)
        with pytest.raises(sr.ModelError, match=text):
            sr.compile(mech)


def test_names_in_the_library():
    with pytest.raises(UnknownNameError, match=r"unknown machine 'fourbar'\. Did you mean 'four_bar'"):
        sr.library.build("fourbar")
    with pytest.raises(UnknownNameError, match="unknown machine 'nothing'"):
        sr.library.summary("nothing")
    with pytest.raises(TypeError, match="machine 'four_bar' has no parameter 'L5'; it takes: L1, L2"):
        sr.library.build("four_bar", L5=1.0)
    with pytest.raises(UnknownNameError, match="unknown curve 'spiral'"):
        sr.library.build("arm_on_curve", curve="spiral")
