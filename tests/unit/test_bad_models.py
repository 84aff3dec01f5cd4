"""Descriptions that cannot become machines: each message names the culprit, and all come at once."""

import re

import numpy as np
import pytest

import sarrus as sr


def sound(planar: bool = False) -> sr.Mechanism:
    """Two hinged bars on the ground; tests add one fault to it."""
    mech = sr.Mechanism("two bars", planar=planar)
    upper = mech.body("upper", 1.0, com=(0.5, 0, 0), inertia=sr.rod(1.0, 1.0))
    lower = mech.body("lower", 2.0, com=(0.5, 0, 0), inertia=sr.rod(2.0, 1.0))
    mech.revolute("A", mech.ground, upper, "y")
    mech.revolute("B", upper, lower, "y", at=(1, 0, 0))
    return mech


def tip(body: str = "lower") -> object:
    return sr.point_on(body, (1, 0, 0))


def disc() -> object:
    return sr.revolute_on("lower", (0, 0, 0), "y")


def floor() -> object:
    return sr.plane_on("ground", (0, 0, 0), "z")


def heavy(mech: sr.Mechanism, name: str, joint: str = "C", **changes) -> None:
    """Add a sound box on a hinge, with some fields changed."""
    fields = dict(mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3)) | changes
    mech.revolute(joint, "lower", mech.body(name, **fields), "z")


# each: the fault, and what the one message about it must contain
FAULTS = {
    "massless": (lambda m: m.revolute("C", "lower", m.body("ghost"), "y"), "'ghost'.*'C'.*no mass"),
    "negative mass": (lambda m: heavy(m, "balloon", mass=-1.0), "body 'balloon': mass is -1.0.*not be negative"),
    "NaN mass": (lambda m: heavy(m, "fog", mass=np.nan), "body 'fog': mass is nan; expected a finite number"),
    "infinite mass": (lambda m: heavy(m, "star", mass=np.inf), "body 'star': mass is inf"),
    "text as mass": (lambda m: heavy(m, "label", mass="2 kg"), "body 'label': expected a number, got '2 kg'"),
    "NaN com": (lambda m: heavy(m, "lost", com=(0, np.nan, 0)), "body 'lost': com is .*nan.*finite"),
    "NaN inertia": (lambda m: heavy(m, "mist", inertia=np.full((3, 3), np.nan)), "body 'mist': inertia is .*nan"),
    "short com": (lambda m: heavy(m, "stub", com=(1, 2)), "body 'stub': the point .* two numbers"),
    "long com": (lambda m: heavy(m, "stub", com=(1, 2, 3, 4)), r"body 'stub': expected shape \(3,\), got \(4,\)"),
    "inertia as number": (lambda m: heavy(m, "lump", inertia=2.0), "body 'lump': inertia must be a 3x3 matrix"),
    "inertia 2x2": (lambda m: heavy(m, "lump", inertia=np.eye(2)), r"body 'lump': expected shape \(3, 3\)"),
    "inertia not symmetric": (
        lambda m: heavy(m, "skew", inertia=np.eye(3) + np.eye(3, k=1) / 10),
        "body 'skew': its inertia matrix is not symmetric",
    ),
    "negative moment": (
        lambda m: heavy(m, "anti", inertia=np.diag([1.0, 1.0, -0.5])),
        "body 'anti': .*negative principal moment -0.5",
    ),
    "triangle inequality": (
        lambda m: heavy(m, "impossible", inertia=np.diag([1.0, 2.0, 3.5])),
        "body 'impossible': no rigid body has principal moments 1, 2, 3.5",
    ),
    "singular revolute": (
        lambda m: m.revolute("C", "lower", m.body("needle", 1.0, (0.5, 0, 0), sr.rod(1, 1)), "x"),
        "body 'needle': singular inertia for joint 'C'",
    ),
    "singular spherical": (
        lambda m: m.spherical("C", "lower", m.body("needle", 1.0, (0.5, 0, 0), sr.rod(1, 1))),
        "body 'needle': singular inertia for joint 'C'",
    ),
    "singular free": (lambda m: m.free("C", m.body("dot", 1.0)), "body 'dot': singular inertia for joint 'C'"),
    "disconnected": (lambda m: m.body("island", 1.0, inertia=np.eye(3)), "'island': no chain of joints leads to"),
    "disconnected pair": (
        lambda m: m.revolute("C", m.body("p", 1, inertia=np.eye(3)), m.body("q", 1, inertia=np.eye(3))),
        "bodies 'p', 'q': no chain of joints leads to the ground;",
    ),
    "cyclic parents": (
        lambda m: [m.body(n, 1.0, inertia=np.eye(3)) for n in "pqr"]
        and [m.revolute(f"C{a}", a, b, "y") for a, b in ("pq", "qr", "rp")],
        "bodies 'p', 'q', 'r': no chain of joints .*form a cycle",
    ),
    "body name twice": (lambda m: heavy(m, "upper"), "body 'upper': the name is taken 2 times"),
    "body called ground": (lambda m: heavy(m, "ground"), "body 'ground': this name belongs to the fixed world"),
    "empty name": (lambda m: heavy(m, ""), "body '': a name must be a text that is not empty"),
    "joint name twice": (lambda m: heavy(m, "box", "B"), "joint or constraint 'B': the name is taken 2 times"),
    "closure named as a joint": (
        lambda m: m.close("A", tip(), sr.point_on("ground", (2, 0, 0))),
        "joint or constraint 'A': the name is taken 2 times",
    ),
    "closure name twice": (
        lambda m: [m.close("D", tip(), sr.point_on("ground", (x, 0, 0))) for x in (1, 2)],
        "joint or constraint 'D': the name is taken 2 times",
    ),
    "lock named as a closure": (
        lambda m: (m.close("D", tip(), sr.point_on("ground")), m.lock("D", "A")),
        "joint or constraint 'D': the name is taken 2 times",
    ),
    "force name twice": (
        lambda m: (m.force("push", tip(), (1, 0, 0)), m.torque("push", "lower", (0, 1, 0))),
        "force element 'push': the name is taken 2 times",
    ),
    "spring named as a force": (
        lambda m: (m.spring("s", tip(), sr.point_on("ground"), 1.0), m.joint_spring("s", "A", 1.0)),
        "force element 's': the name is taken 2 times",
    ),
    "motor name twice": (lambda m: (m.motor("A"), m.motor("B", name="A")), "actuator 'A': the name is taken 2 times"),
    "frame name twice": (lambda m: (m.frame("tip", tip()), m.frame("tip", tip("upper"))), "frame 'tip'.*taken"),
    "frame named as a body": (lambda m: m.frame("upper", tip()), "frame 'upper': a body has this name"),
    "unknown axis": (lambda m: m.revolute("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), "w"), "'C'.*axis 'w'"),
    "zero axis": (
        lambda m: m.revolute("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), (0, 0, 0)),
        r"joint 'C': axis \(0, 0, 0\) has no direction",
    ),
    "NaN axis": (
        lambda m: m.revolute("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), (0, np.nan, 0)),
        "joint 'C': axis .*nan.* has no direction",
    ),
    "unknown kind": (lambda m: m.joint("hinge", "C", "lower", m.body("b", 1.0, inertia=np.eye(3))), "'C'.*'hinge'"),
    "unknown option": (lambda m: m.revolute("A2", "upper", "lower", "y", stifness=3), "joint 'A2'.*'stifness'"),
    "joint to itself": (lambda m: m.revolute("C", "lower", "lower", "y"), "joint 'C': it joins 'lower' to itself"),
    "joint on missing body": (lambda m: m.revolute("C", "lower", "nobody", "y"), "joint 'C': 'nobody' is not a body"),
    "joint at NaN": (lambda m: m.revolute("C", "lower", "ground", "y", at=(np.nan, 0, 0)), "joint 'C': at is .*nan"),
    "joint of wrong shape": (lambda m: m.revolute("C", "lower", "ground", "y", at=3.0), r"joint 'C': expected shape"),
    "not a rotation": (
        lambda m: m.revolute("C", "lower", "ground", "y", rotation=np.diag([1, 1, -1])),
        "joint 'C': rotation is not a rotation matrix",
    ),
    "limits reversed": (lambda m: m.revolute("C", "lower", "ground", "y", limits=(1, -1)), r"joint 'C': limits"),
    "limits NaN": (lambda m: m.revolute("C", "lower", "ground", "y", limits=(np.nan, 1)), r"joint 'C': limits"),
    "motor limits": (lambda m: m.motor("A", limits=(5, -5)), r"motor 'A': limits \(5, -5\) must be \(low, high\)"),
    "motor limits of wrong shape": (lambda m: m.motor("A", limits=(1, 2, 3)), "motor 'A': "),
    "initial of wrong size": (
        lambda m: m.revolute("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), "y", initial=(1, 2)),
        "joint 'C': initial has 2 values, its kind revolute has 1",
    ),
    "initial NaN": (lambda m: m.revolute("C", "lower", "ground", "y", initial=np.nan), "joint 'C': initial is .*nan"),
    "helical without pitch": (
        lambda m: m.helical("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), "y", 0.0),
        "joint 'C': a helical joint needs a pitch",
    ),
    "parallel universal axes": (
        lambda m: m.universal("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), ("x", "-x")),
        "joint 'C': the two axes of a universal joint must not be parallel",
    ),
    "stiffness of a ball": (
        lambda m: m.spherical("C", "lower", m.body("b", 1.0, inertia=np.eye(3)), stiffness=2.0),
        "joint 'C': stiffness is for joints with one coordinate, not spherical",
    ),
    "negative damping": (lambda m: m.joint_spring("s", "A", damping=-1.0), "joint spring 's': damping is -1.0"),
    "closure on missing body": (lambda m: m.close("D", tip("nobody"), sr.point_on("ground")), "'D': 'nobody' is not"),
    "closure on one body": (lambda m: m.close("D", tip(), sr.point_on("lower")), "'D': both sides are on 'lower'"),
    "wrong pair": (
        lambda m: m.close("D", sr.revolute_on("lower", (0, 0, 0), "y"), sr.point_on("ground")),
        "closure 'D': a revolute cannot be closed with a point",
    ),
    "two lines": (
        lambda m: m.close("D", sr.line_on("lower", (0, 0, 0), "x"), sr.line_on("ground", (0, 0, 0), "x")),
        "closure 'D': a line cannot be closed with a line",
    ),
    "feature with unknown axis": (
        lambda m: m.close("D", sr.line_on("lower", (0, 0, 0), "u"), sr.point_on("ground")),
        "closure 'D': .*'lower'.*unknown axis 'u'",
    ),
    "feature at NaN": (lambda m: m.close("D", sr.point_on("lower", (0, np.inf, 0)), sr.point_on("ground")), "'D'.*inf"),
    "distance 0": (lambda m: m.distance("D", tip(), sr.point_on("ground"), 0.0), "distance 'D': length 0.0 must be"),
    "distance negative": (lambda m: m.distance("D", tip(), sr.point_on("ground"), -2), "distance 'D': length -2.0"),
    "distance NaN": (lambda m: m.distance("D", tip(), sr.point_on("ground"), np.nan), "'D': length is nan|'D'.*nan"),
    "distance of lines": (
        lambda m: m.distance("D", sr.line_on("lower", (0, 0, 0), "x"), sr.point_on("ground"), 1.0),
        "distance 'D': both sides must be point_on, got line_on and point_on",
    ),
    "unknown coordinate in coupling": (lambda m: m.couple("gear", {"A": 1, "X": -2}), "coupling 'gear': 'X' is not"),
    "empty coupling": (lambda m: m.couple("gear", {}), "coupling 'gear': needs at least one coordinate"),
    "zero coupling": (lambda m: m.couple("gear", {"A": 0.0}), "coupling 'gear': needs at least one coordinate"),
    "unknown coordinate in lock": (lambda m: m.lock("L", "X"), "coupling 'L': 'X' is not a scalar joint coordinate"),
    "motion is no function": (lambda m: m.prescribe("drive", "A", 3.0), "motion 'drive': expected a function, got"),
    "unknown coordinate in motor": (lambda m: m.motor("X"), "actuator 'X': 'X' is not a scalar joint coordinate"),
    "unknown coordinate in actuator": (lambda m: m.actuator("act", {"Y": 1.0}), "actuator 'act': 'Y' is not"),
    "unknown coordinate in spring": (lambda m: m.joint_spring("s", "Z", 1.0), "joint spring 's': 'Z' is not"),
    "NaN stiffness": (lambda m: m.spring("s", tip(), sr.point_on("ground"), np.nan), "spring 's': stiffness is nan"),
    "spring on missing body": (lambda m: m.spring("s", tip("nobody"), sr.point_on("ground"), 1.0), "'s': 'nobody'"),
    "spring on one body": (lambda m: m.spring("s", tip(), sr.point_on("lower"), 1.0), "'s': both sides are on"),
    "force of wrong shape": (lambda m: m.force("push", tip(), (1, 2, 3, 4)), r"force 'push': expected shape \(3,\)"),
    "NaN force": (lambda m: m.force("push", tip(), (np.nan, 0, 0)), "load 'push': value is .*nan"),
    "force on missing body": (lambda m: m.force("push", tip("nobody"), (1, 0, 0)), "load 'push': 'nobody' is not"),
    "thruster without direction": (lambda m: m.thruster("jet", tip(), (0, 0, 0)), "thruster 'jet': .*no direction"),
    "frame on missing body": (lambda m: m.frame("F", tip("nobody")), "frame 'F': 'nobody' is not a body"),
    "rolling with wrong features": (lambda m: m.rolling("roll", tip(), 0.5, floor()), "rolling 'roll': needs hub="),
    "rolling radius": (lambda m: m.rolling("roll", disc(), 0.0, floor()), "rolling 'roll': radius 0.0 must be"),
    "knife edge on missing body": (lambda m: m.knife_edge("blade", tip("nobody"), "y"), "'blade': 'nobody' is not"),
    "constraint is no function": (lambda m: m.constrain("own", 3.0), "constraint 'own': expected a function, got"),
    "parameter with two defaults": (
        lambda m: [heavy(m, f"b{x}", f"C{x}", mass=sr.parameter("mass", x)) for x in (1, 2)],
        "parameter 'mass': has two defaults, 1.0 and 2.0",
    ),
}  # fmt: skip


def problems_of(mech: sr.Mechanism) -> tuple[str, ...]:
    with pytest.raises(sr.ModelError) as caught:
        mech.finalize()
    assert all(text in str(caught.value) for text in caught.value.problems)
    return caught.value.problems


def test_the_sound_machine_is_sound():
    assert sound().finalize().name == "two bars"


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_gives_one_message_that_names_it(fault):
    spoil, pattern = FAULTS[fault]
    mech = sound()
    spoil(mech)
    problems = problems_of(mech)
    assert len(problems) == 1, problems
    assert re.search(pattern, problems[0]), problems[0]


def test_gravity():
    for gravity, word in (((0, 0, np.nan), "nan"), ((0, 9.81), r"expected shape \(3,\), got \(2,\)")):
        mech = sr.Mechanism("falls", gravity=gravity)
        mech.revolute("A", mech.ground, mech.body("bar", 1.0, (0.5, 0, 0), sr.rod(1, 1)), "y")
        problems = problems_of(mech)
        assert len(problems) == 1 and re.search(f"^gravity.*{word}", problems[0]), problems


def test_parts_of_another_kind_are_reported_by_the_joint():
    mech = sound()
    mech.revolute("C", 3, "lower", "y")
    assert any("joint 'C'" in text and "got int" in text for text in problems_of(mech))


def test_a_loop_in_which_nothing_can_be_cut():
    mech = sr.Mechanism("screws")
    before = mech.ground
    for k, axis in enumerate("xyz"):
        body = mech.body(f"b{k}", 1.0, (0.1, 0.2, 0.3), np.eye(3))
        mech.helical(f"screw{k}", before, body, axis, 0.1)
        before = body
    mech.helical("last screw", before, mech.ground, "x", 0.1)
    problems = problems_of(mech)
    assert len(problems) == 1
    assert re.search(r"joint '(last screw|screw\d)' \(helical\): it closes a loop", problems[0])


def test_finalize_does_not_change_the_builder():
    mech = sound()
    mech.close("D", tip("nobody"), sr.point_on("ground"))
    assert problems_of(mech) == problems_of(mech)
