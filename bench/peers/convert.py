"""From a frozen Sarrus model, spanned by its tree, to MJCF text and to a neutral list of Pinocchio's parts.

Covers what the benchmark's machines use: revolute, prismatic, universal, planar, spherical and free joints, point
closures. Anything else is refused by name, because a machine that is only nearly the same must not be timed.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

import numpy as np

from sarrus.model.expression import numeric
from sarrus.model.geometry import frame_with_axis, perpendiculars
from sarrus.model.parts import GROUND, Body, Feature, Joint, Model
from sarrus.model.tree import Edge, span

Pose = tuple[np.ndarray, np.ndarray]  # rotation, position

KINDS = ("fixed", "revolute", "prismatic", "universal", "planar", "spherical", "free")
IDENTITY: Pose = (np.eye(3), np.zeros(3))


class UnsupportedError(ValueError):
    """The machine has a part that this converter does not translate."""


def value(x) -> np.ndarray:
    """A number or array of the description at its default parameters."""
    return np.asarray(numeric(x), dtype=float)


def compose(a: Pose, b: Pose) -> Pose:
    """a, then b in the frame that a gives."""
    return a[0] @ b[0], a[0] @ b[1] + a[1]


def inverse(a: Pose) -> Pose:
    """The pose that undoes a."""
    return a[0].T, -a[0].T @ a[1]


def refuse_what_is_missing(model: Model) -> None:
    """Raise if the model has anything beyond inertia, gravity, joints, point closures and actuators."""
    extra = (*model.couplings, *model.rollings, *model.customs, *model.springs, *model.joint_springs, *model.loads)
    problems = [part.name for part in extra]
    problems += [c.name for c in model.closures if c.kind != "point"]
    problems += [j.name for j in span(model).cuts]
    for edge in span(model).edges:
        j = edge.joint
        own = any(float(value(x)) != 0.0 for x in (j.stiffness, j.damping, j.rotor_inertia, j.pitch))
        turned = edge.reversed and j.kind not in ("fixed", "revolute", "prismatic")
        if j.kind not in KINDS or own or turned:
            problems.append(j.name)
    if problems:
        raise UnsupportedError(f"{model.name}: cannot convert {', '.join(problems)}")


def joint_frames(edge: Edge) -> tuple[Pose, Pose, float]:
    """The joint's frame in the inner and in the outer body, and the sign of its axis seen from the inner one."""
    j = edge.joint
    parent = (value(j.rotation), value(j.at))
    child = (value(j.child_rotation), value(j.child_at))
    return (child, parent, -1.0) if edge.reversed else (parent, child, 1.0)


# --- Pinocchio ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Link:
    """One Pinocchio joint: kind RZ, PZ, planar, spherical or free; where its coordinates belong, by Sarrus' names."""

    kind: str
    parent: int
    place: Pose
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]


@dataclass
class Chain:
    """A Pinocchio model as data: joint 0 is the world, `links[k]` is joint k + 1."""

    gravity: np.ndarray
    links: list[Link] = field(default_factory=list)
    bodies: list[tuple[int, Body, Pose]] = field(default_factory=list)
    loops: list[tuple[int, Pose, int, Pose]] = field(default_factory=list)


def to_chain(model: Model) -> Chain:
    """Translate. Every axis becomes the z axis of a turned frame: Pinocchio's aligned joints are its fastest."""
    refuse_what_is_missing(model)
    chain = Chain(value(model.gravity))
    places: dict[str, tuple[int, Pose]] = {GROUND: (0, IDENTITY)}
    edges = span(model).edges

    def branch(inner: str) -> None:  # depth first: Pinocchio wants each subtree in one block
        for edge in edges:
            if edge.inner == inner:
                places[edge.outer] = _add_links(chain, edge, *places[inner])
                branch(edge.outer)

    branch(GROUND)
    for body in model.bodies:
        chain.bodies.append((places[body.name][0], body, places[body.name][1]))
    for closure in model.closures:
        ends = []
        for feature in (closure.a, closure.b):
            joint, place = places[feature.body]
            ends += [joint, compose(place, (np.eye(3), value(feature.at)))]
        chain.loops.append(tuple(ends))
    return chain


def _add_links(chain: Chain, edge: Edge, parent: int, place: Pose) -> tuple[int, Pose]:
    j = edge.joint
    inner, outer, sign = joint_frames(edge)
    place = compose(place, inner)
    names_q, names_v = j.position_names, j.velocity_names
    if j.kind == "fixed":
        pieces = []
    elif j.kind in ("revolute", "prismatic"):
        pieces = [("RZ" if j.kind == "revolute" else "PZ", frame_with_axis(sign * value(j.axis)), names_q, names_v)]
    elif j.kind == "universal":
        axes = (value(j.axis), value(j.axis2))
        pieces = [("RZ", frame_with_axis(a), (q,), (v,)) for a, q, v in zip(axes, names_q, names_v, strict=True)]
    elif j.kind == "planar":
        pieces = [("planar", frame_with_axis(value(j.axis)), names_q, names_v)]
    else:
        pieces = [(j.kind, np.eye(3), names_q, names_v)]
    for kind, turn, q, v in pieces:
        chain.links.append(Link(kind, parent, compose(place, (turn, np.zeros(3))), q, v))
        parent, place = len(chain.links), (turn.T, np.zeros(3))
    return parent, compose(place, inverse(outer))


# --- MuJoCo -------------------------------------------------------------------------------------------------------
MUJOCO_DEFAULTS = {
    "jacobian": "dense", "solver": "Newton", "iterations": "20", "tolerance": "1e-12", "timestep": "0.001",
    "integrator": "RK4", "island": "disable", "impedance": "0.9999",
}  # fmt: skip


def to_mjcf(model: Model, settings: dict[str, str] | None = None) -> str:
    """The machine as MJCF; joints carry Sarrus' velocity names (a ball or free joint the joint's own name).

    Args:
        model: the frozen machine.
        settings: overrides of `MUJOCO_DEFAULTS`.
    """
    refuse_what_is_missing(model)
    s = {**MUJOCO_DEFAULTS, **(settings or {})}
    root = xml.Element("mujoco", model=model.name)
    # bodies such as a rod of no thickness need some inertia about every axis
    xml.SubElement(root, "compiler", angle="radian", boundinertia="1e-12", balanceinertia="true")
    keys = ("jacobian", "solver", "iterations", "tolerance", "timestep", "integrator")
    option = xml.SubElement(root, "option", {k: s[k] for k in keys}, gravity=_text(value(model.gravity)))
    off = ("contact", "limit", "frictionloss", "spring", "damper", "actuation", "sensor")
    xml.SubElement(option, "flag", {k: "disable" for k in off}, island=s["island"])
    nodes = {GROUND: xml.SubElement(root, "worldbody")}
    by_name = {body.name: body for body in model.bodies}
    for edge in span(model).edges:
        nodes[edge.outer] = _add_body(nodes[edge.inner], edge, by_name[edge.outer])
    equality = xml.SubElement(root, "equality")
    width = "0.001 0.5 2"
    for closure in model.closures:
        names = []
        for side, feature in (("a", closure.a), ("b", closure.b)):
            names.append(f"{closure.name}.{side}")
            _add_site(nodes[feature.body], names[-1], feature)
        xml.SubElement(
            equality, "connect", name=closure.name, site1=names[0], site2=names[1],
            solref="0.002 1", solimp=f"{s['impedance']} {s['impedance']} {width}",
        )  # fmt: skip
    return xml.tostring(root, encoding="unicode")


def _add_body(parent: xml.Element, edge: Edge, body: Body) -> xml.Element:
    inner, outer, sign = joint_frames(edge)
    rotation, position = compose(inner, inverse(outer))
    node = xml.SubElement(parent, "body", name=body.name, pos=_text(position), xyaxes=_text(rotation.T[:2].ravel()))
    for name, kind, axis in _mujoco_joints(edge.joint):
        if kind == "free" and (edge.inner != GROUND or any(np.any(a != b) for a, b in zip(inner, outer, strict=True))):
            raise UnsupportedError(f"joint {name!r}: a free joint must start from the ground, frame on frame")
        place = {} if kind == "free" else {"pos": _text(outer[1]), "axis": _text(sign * outer[0] @ axis)}
        xml.SubElement(node, "joint", name=name, type=kind, **place)
    I = value(body.inertia)
    full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    mass = repr(float(value(body.mass)))
    xml.SubElement(node, "inertial", pos=_text(value(body.com)), mass=mass, fullinertia=_text(full))
    return node


def _mujoco_joints(j: Joint) -> list[tuple[str, str, np.ndarray]]:
    axis = value(j.axis)
    if j.kind in ("revolute", "prismatic"):
        return [(j.velocity_names[0], "hinge" if j.kind == "revolute" else "slide", axis)]
    if j.kind == "universal":
        return [(j.velocity_names[0], "hinge", axis), (j.velocity_names[1], "hinge", value(j.axis2))]
    if j.kind == "planar":
        t1, t2 = perpendiculars(axis)
        return list(zip(j.velocity_names, ("slide", "slide", "hinge"), (t1, t2, axis), strict=True))
    return [] if j.kind == "fixed" else [(j.name, "ball" if j.kind == "spherical" else "free", axis)]


def _add_site(node: xml.Element, name: str, feature: Feature) -> None:
    xml.SubElement(node, "site", name=name, pos=_text(value(feature.at)))


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)
