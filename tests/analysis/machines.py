"""Machines with known verdicts, and the same machine written in other ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sarrus as sr
from sarrus.model.expression import numeric
from sarrus.model.parts import Feature, Model

BARS = (1.0, 2.0, 1.8)
GROUND = 2.2


def spatial_four_bar(tilt: float = 0.0, joint: str = "D", both_sides: bool = True, cut: str = "D", scale: float = 1.0):
    """A planar four-bar in space: four revolute joints about y, one of them perhaps tilted about x by `tilt`.

    With `both_sides` the tilted joint D fits in the starting position (and only there); without, only the ground's
    side is tilted. Tilted joints A, B and C are tilted in both bodies by themselves.
    """
    lengths = [scale * x for x in BARS]
    start = 1.0
    reach = GROUND - BARS[0] * np.exp(1j * start)
    cosine = (abs(reach) ** 2 - BARS[1] ** 2 - BARS[2] ** 2) / (2 * BARS[1] * BARS[2])
    third = -np.arccos(cosine)
    second = np.angle(reach) - np.angle(BARS[1] + BARS[2] * np.exp(1j * third))
    mech = sr.Mechanism("four-bar in space")
    crank, coupler, rocker = (
        mech.body(name, x, com=(x / 2, 0, 0), inertia=sr.rod(x, x))
        for name, x in zip(("crank", "coupler", "rocker"), lengths, strict=True)
    )

    def axis(name: str) -> np.ndarray:
        return np.array([np.tan(tilt) if joint == name else 0.0, -1.0, 0.0])

    there = sr.rotation_about("-y", second + third)  # of the rocker, at the start
    axis_on_rocker = there.T @ axis("D") if both_sides else np.array([0.0, -1.0, 0.0])

    def hinge(name, inner, outer, at, initial):
        if name == cut:
            mech.close(name, sr.revolute_on(inner, at, axis(name)), sr.revolute_on(outer, (0, 0, 0), axis(name)))
        else:
            mech.revolute(name, inner, outer, axis(name), at=at, initial=initial)

    end, foot = (lengths[2], 0, 0), (scale * GROUND, 0, 0)
    hinge("A", mech.ground, crank, (0, 0, 0), start)
    hinge("B", crank, coupler, (lengths[0], 0, 0), second - start)
    hinge("C", coupler, rocker, (lengths[1], 0, 0), third)
    if cut == "D":
        mech.close("D", sr.revolute_on(rocker, end, axis_on_rocker), sr.revolute_on(mech.ground, foot, axis("D")))
    else:
        mech.revolute("D", mech.ground, rocker, axis("D"), at=foot, child_at=end, child_rotation=there.T, initial=0.0)
    mech.motor("A")
    return mech


def truss(bars: dict[str, tuple[str, str]], nodes: dict[str, tuple[float, float]], fixed: tuple[str, ...], load=None):
    """Point masses in a plane, held by massless bars; `fixed` nodes belong to the ground."""
    mech = sr.Mechanism("truss", planar=True)
    places = {}
    for name, at in nodes.items():
        if name in fixed:
            places[name] = sr.point_on(mech.ground, at)
            continue
        slide, node = mech.body(f"{name} slide"), mech.body(name, 2.0)
        mech.prismatic(f"{name}.x", mech.ground, slide, "x", initial=at[0])
        mech.prismatic(f"{name}.z", slide, node, "z", initial=at[1])
        places[name] = sr.point_on(node)
        if load and name in load:
            mech.force(f"load {name}", places[name], load[name])
    for name, (a, b) in bars.items():
        length = float(np.hypot(*np.subtract(nodes[b], nodes[a])))
        mech.distance(name, places[a], places[b], length)
    return mech


NODES = {"P": (0.0, 1.0), "Q": (1.0, 1.2), "S": (0.0, 0.0), "T": (1.1, 0.0)}
FRAME = {"left": ("S", "P"), "right": ("T", "Q"), "top": ("P", "Q"), "up": ("S", "Q"), "down": ("P", "T")}


def braced_frame(without: tuple[str, ...] = (), load=None):
    """A frame of two nodes with two diagonals: one bar more than it needs."""
    return truss({k: v for k, v in FRAME.items() if k not in without}, NODES, ("S", "T"), load)


def bars_in_line(offset: float = 0.0):
    """A node between two supports, held by two bars in one line: shaky, but it cannot move."""
    nodes = {"P": (0.5, offset), "S": (0.0, 0.0), "T": (1.2, 0.0)}
    return truss({"left": ("S", "P"), "right": ("P", "T")}, nodes, ("S", "T"))


def maximal(model: Model, poses: dict[str, tuple[np.ndarray, np.ndarray]]) -> sr.Mechanism:
    """The same machine with every body free and every joint a closure: the reactions are the multipliers."""
    mech = sr.Mechanism(model.name + " in pieces", gravity=model.gravity)
    for body in model.bodies:
        p, R = poses[body.name]
        inertia = numeric(body.inertia)
        part = mech.body(body.name, float(numeric(body.mass)), numeric(body.com), inertia + 1e-9 * np.eye(3))
        mech.free(f"free {body.name}", part, initial=(*p, *quaternion(R)))
    for joint in model.joints:
        assert joint.kind == "revolute"
        a = sr.revolute_on(joint.parent, numeric(joint.at), joint.rotation @ joint.axis)
        b = sr.revolute_on(joint.child, numeric(joint.child_at), joint.child_rotation @ joint.axis)
        mech.close(joint.name, a, b)
    return mech


def quaternion(R: np.ndarray) -> np.ndarray:
    """The unit quaternion (w, x, y, z) of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])


def in_other_units(model: Model, length: float, mass: float) -> Model:
    """The same machine with lengths counted in other units, and masses in others; springs and loads left out."""

    def place(feature: Feature) -> Feature:
        return replace(feature, at=numeric(feature.at) * length)

    def joint(j):
        first = None
        if j.initial is not None:
            shifts = {"prismatic": [0], "cylindrical": [1], "planar": [0, 1], "free": [0, 1, 2]}.get(j.kind, [])
            first = np.array(j.initial, dtype=float)
            first[shifts] *= length
        return replace(
            j, at=numeric(j.at) * length, child_at=numeric(j.child_at) * length, pitch=float(numeric(j.pitch)) * length,
            initial=first, stiffness=0.0, rest=0.0, damping=0.0, rotor_inertia=0.0,
        )  # fmt: skip

    return replace(
        model,
        gravity=np.asarray(numeric(model.gravity)) * length,
        bodies=tuple(
            replace(
                b, mass=float(numeric(b.mass)) * mass, com=numeric(b.com) * length,
                inertia=numeric(b.inertia) * mass * length**2,
            )
            for b in model.bodies
        ),
        joints=tuple(joint(j) for j in model.joints),
        closures=tuple(
            replace(
                c, a=place(c.a), b=place(c.b),
                length=float(numeric(c.length)) * (length if c.kind == "distance" else 1.0),
            )
            for c in model.closures
        ),
        springs=(), joint_springs=(), loads=(), frames={}, parameters={},
    )  # fmt: skip
