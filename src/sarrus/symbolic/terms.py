"""All symbolic terms of one machine, whichever way it was described: the input of code generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.expression import Scalar, numeric
from sarrus.model.layout import Layout, Row, Turn
from sarrus.model.parts import GROUND, Feature, Model, Touch
from sarrus.model.tree import Tree, span
from sarrus.symbolic.algebra import SX
from sarrus.symbolic.constraints import constraint_blocks, rubbing
from sarrus.symbolic.dynamics import TreeDynamics
from sarrus.symbolic.kinematics import Kinematics


@dataclass(frozen=True)
class Terms:
    """M v̇ + h = B u + f + Aᵀλ, Φ = 0, A v = a, A v̇ = γ, q̇ = N v, as expressions of (t, q, v, u, p).

    Attributes:
        layout: names, sizes and slices.
        frames: name -> (position, rotation matrix) in the world.
        guards: signs that must be positive at a true assembly (aligned axes), with the group they belong to.
        drag: D, one column for each contact with friction: its generalised force for a normal force of 1 N, so that
            M v̇ + h = B u + f + Aᵀλ + D λ_N.
    """

    layout: Layout
    t: Any
    q: Any
    v: Any
    p: Any
    M: Any
    h: Any
    phi: Any
    A: Any
    a: Any
    gamma: Any
    B: Any
    N: Any
    kinetic: Any
    potential: Any
    dissipated: Any
    applied: Any
    frames: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    guards: tuple[tuple[str, Any], ...] = ()
    drag: Any = None


def derive(model: Model) -> Terms:
    """Derive the terms of a machine described by bodies and joints."""
    tree = span(model)
    k = Kinematics(model, tree)
    dynamics = TreeDynamics(k)
    blocks = constraint_blocks(k)
    rows = tuple(row for block in blocks for row in block.rows)
    stack = {
        key: ca.vertcat(*[getattr(block, key) for block in blocks]) if blocks else SX(0, width)
        for key, width in (("phi", 1), ("A", k.nv), ("a", 1), ("gamma", 1))
    }
    return Terms(
        layout=_layout(model, tree, rows),
        t=k.t, q=k.q, v=k.v, p=k.p,
        M=dynamics.M, h=dynamics.h, B=_actuation(k), N=k.N,
        kinetic=dynamics.kinetic, potential=dynamics.potential,
        dissipated=dynamics.dissipated, applied=dynamics.applied,
        frames=_frames(k), guards=tuple((b.rows[0].group, g) for b in blocks for g in b.guards),
        drag=_drag(k), **stack,
    )  # fmt: skip


def _drag(k: Kinematics) -> Any:
    columns = [rubbing(k, touch) for touch in _rubbing(k.model)]
    return ca.horzcat(*columns) if columns else None


def _rubbing(model: Model) -> list[Touch]:
    return [touch for touch in model.touches if isinstance(touch.friction, Scalar) or touch.friction != 0]


def actuator_rates(k: Kinematics) -> list[Any]:
    """For each input the rate, linear in v, that it works on: the power of input i is u_i times it."""
    rates = []
    for actuator in k.model.actuators:
        if actuator.kind == "point":
            assert actuator.at is not None and actuator.direction is not None
            body = actuator.at.body if actuator.local else GROUND
            rate = ca.dot(k.direction(body, actuator.direction), k.velocity(actuator.at))
        else:
            rate = sum((k.number(c) * k.rate(name) for name, c in actuator.coefficients.items()), SX(0))
        rates.append(rate)
    return rates


def _actuation(k: Kinematics) -> Any:
    """B by virtual work."""
    columns = [ca.jacobian(rate, k.v).T for rate in actuator_rates(k)]
    return ca.sparsify(ca.horzcat(*columns)) if columns else SX(k.nv, 0)


def _frames(k: Kinematics) -> dict[str, tuple[Any, Any]]:
    frames = {b.name: (k.links[b.name].p, k.links[b.name].R) for b in k.model.bodies}
    for name, feature in k.model.frames.items():
        frames[name] = (k.position(feature), k.link(feature.body).R @ SX(feature.frame))
    return frames


def _layout(model: Model, tree: Tree, rows: tuple[Row, ...]) -> Layout:
    q_names: list[str] = []
    v_names: list[str] = []
    turns, initial, angles = [], [], []
    length = _length(model)
    limits = {}
    for edge in tree.edges:
        joint = edge.joint
        if joint.kind in ("spherical", "free"):
            turns.append(Turn(len(q_names) + joint.nq - 4, len(v_names) + joint.nv - 3))
        start = np.zeros(joint.nq)
        if joint.kind in ("spherical", "free"):
            start[-4] = 1.0
        initial += list(start if joint.initial is None else joint.initial)
        angles += _angles(joint.kind)
        if joint.limits is not None:
            limits |= dict.fromkeys(joint.position_names, joint.limits)
        q_names += joint.position_names
        v_names += joint.velocity_names
    groups = tuple(dict.fromkeys(row.group for row in rows))
    bodies = tuple(b.name for b in model.bodies)
    return Layout(
        model.name, tuple(q_names), tuple(v_names), tuple(a.name for a in model.actuators), rows, groups,
        tuple(turns), dict(model.parameters), bodies, (*bodies, *model.frames), limits,
        {a.name: a.limits for a in model.actuators if a.limits is not None},
        tuple(map(float, initial)), tuple(1.0 if turn else length for turn in angles),
        tuple(angles), length, {x.name: (x.sign, x.restitution, x.law) for x in model.one_sided},
        tuple(touch.name for touch in _rubbing(model)),
    )  # fmt: skip


def _angles(kind: str) -> list[bool]:
    """Whether each velocity coordinate of a joint turns (and does not shift)."""
    table = {
        "fixed": [],
        "prismatic": [False],
        "cylindrical": [True, False],
        "universal": [True, True],
        "planar": [False, False, True],
        "spherical": [True] * 3,
        "free": [False] * 3 + [True] * 3,
    }
    return table.get(kind, [True])


def _length(model: Model) -> float:
    """The largest offset, length or starting shift that occurs in the description; 1 m if there is none."""
    places: list[Any] = [b.com for b in model.bodies]
    places += [x for j in model.joints for x in (j.at, j.child_at)]
    features: list[Feature] = [f for c in (*model.closures, *model.springs) for f in (c.a, c.b)]
    features += [f for c in model.touches for f in (c.plane, c.point)]
    places += [f.at for f in features]
    sizes = [float(np.linalg.norm(np.asarray(numeric(x), dtype=float))) for x in places]
    sizes += [float(numeric(c.length)) for c in model.closures if c.kind == "distance"]
    sizes += [float(numeric(r.radius)) for r in model.rollings]
    sizes += [float(numeric(s.length)) for s in model.springs]
    for joint in model.joints:  # where shifts start
        if joint.initial is not None:
            sizes += [abs(x) for x, turns in zip(joint.initial, _angles(joint.kind), strict=False) if not turns]
    largest = max(sizes, default=0.0)
    return largest if largest > 0 else 1.0
