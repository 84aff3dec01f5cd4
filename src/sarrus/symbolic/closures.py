"""Closures between two bodies: Φ, A and γ from vectors carried by the bodies.

A closure is a function of a few points and directions fixed to bodies. Its derivatives with respect to those vectors
come from automatic differentiation; the vectors' own first and second rates are rigid-body kinematics. So

    Φ̇ = Σ ∂Φ/∂x ẋ = A v,      Φ̈ = A v̇ - γ,   γ = -(d/dt Φ̇ at v̇ = 0),

without differentiating through the whole chain, and with the Ȧv term always in. Rows are written along the axes of
the nearest common ancestor of the two bodies in the tree (the world, where the loop passes the ground).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.geometry import frame_with_axis
from sarrus.model.layout import Row
from sarrus.model.parts import GROUND, Closure, Feature, Joint
from sarrus.symbolic.algebra import SX, Function, column, cross, zeros3
from sarrus.symbolic.kinematics import Kinematics


@dataclass
class Block:
    """The rows of one constraint group: residual, Jacobian, bias of A v = a, γ, and signs that must stay positive.

    `source` is what was differentiated: Φ of a holonomic row, A v - a of a Pfaffian one.
    """

    rows: list[Row]
    phi: Any
    A: Any
    a: Any
    gamma: Any
    source: Any
    guards: list[Any] = field(default_factory=list)


class _Carried:
    """Vectors fixed to bodies: their values and rates, and the symbols that stand for them in Φ."""

    def __init__(self, k: Kinematics):
        self.k = k
        self.items: list[tuple[str, bool, Any, Any]] = []  # body, is a point, value, symbol
        self.rates: list[Any] = []
        self.biases: list[Any] = []

    def _add(self, body: str, is_point: bool, value: Any, rate: Any, bias: Any) -> Any:
        symbol = SX.sym(f"x{len(self.items)}", 3)
        self.items.append((body, is_point, value, symbol))
        self.rates.append(rate)
        self.biases.append(bias)
        return symbol

    def point(self, at: Feature) -> Any:
        k = self.k
        return self._add(at.body, True, k.position(at), k.velocity(at), k.acceleration_bias(at))

    def direction(self, body: str, axis: np.ndarray) -> Any:
        link, d = self.k.links[body], SX(axis)
        rate = cross(link.w, d)
        bias = cross(link.alpha, d) + cross(link.w, rate)
        return self._add(body, False, link.R @ d, link.R @ rate, link.R @ bias)


def closure_block(k: Kinematics, closure: Closure) -> Block:
    """Rows of one closure."""
    x = _Carried(k)
    base = k.common(closure.a.body, closure.b.body)
    phi, labels, guards = _rows(x, closure, base)
    return _differentiate(k, x, closure.name, phi, labels, guards, base)


def _axes(x: _Carried, base: str) -> list[Any]:
    """Directions along which a gap is measured: world axes, or those of the common ancestor."""
    if base == GROUND:
        return [SX(e) for e in np.eye(3)]
    return [x.direction(base, e) for e in np.eye(3)]


def _rows(x: _Carried, c: Closure, base: str) -> tuple[list[Any], list[tuple[str, str]], list[Any]]:
    """Φ as expressions of the carried vectors, (label, unit) of each row, and the guards."""
    if c.kind == "point-on-curve":
        return _curve(x, c)
    a, b = x.point(c.a), x.point(c.b)
    gap = b - a
    along = [("x", "m"), ("y", "m"), ("z", "m")]
    if c.kind == "point":
        return [ca.dot(e, gap) for e in _axes(x, base)], along, []
    if c.kind == "distance":
        return [ca.sqrt(ca.dot(gap, gap)) - x.k.number(c.length)], [("length", "m")], []
    t1, t2, n = (x.direction(c.a.body, c.a.frame[:, i]) for i in range(3))
    across = [ca.dot(t1, gap), ca.dot(t2, gap)]
    sideways = [("shift-1", "m"), ("shift-2", "m")]
    if c.kind == "point-on-line":
        return across, sideways, []
    if c.kind == "point-on-plane":
        return [ca.dot(n, gap)], [("height", "m")], []
    nb = x.direction(c.b.body, c.b.frame[:, 2])
    if c.kind == "universal":
        return [*(ca.dot(e, gap) for e in _axes(x, base)), ca.dot(n, nb) - c.length], [*along, ("angle", "rad")], []
    tilt = [ca.dot(t1, nb), ca.dot(t2, nb)]
    tilts = [("tilt-1", "rad"), ("tilt-2", "rad")]
    aligned = [ca.dot(n, nb)]
    if c.kind == "revolute":
        return [*(ca.dot(e, gap) for e in _axes(x, base)), *tilt], [*along, *tilts], aligned
    if c.kind == "cylindrical":
        return [*across, *tilt], [*sideways, *tilts], aligned
    if c.kind == "planar":
        return [ca.dot(n, gap), *tilt], [("height", "m"), *tilts], aligned
    ub = x.direction(c.b.body, c.b.frame[:, 1])
    twist, twisted = ca.dot(t1, ub), ("twist", "rad")
    facing = [*aligned, ca.dot(t2, ub)]
    if c.kind == "prismatic":
        return [*across, *tilt, twist], [*sideways, *tilts, twisted], facing
    if c.kind == "weld":
        rows = [*(ca.dot(e, gap) for e in _axes(x, base)), *tilt, twist]
        return rows, [*along, *tilts, twisted], facing
    raise ValueError(f"closure {c.name!r}: unknown kind {c.kind!r}")


def _curve(x: _Carried, c: Closure) -> tuple[list[Any], list[tuple[str, str]], list[Any]]:
    """A point on a user's curve or surface, evaluated in the axes of the body that carries it."""
    gap = x.point(c.b) - x.point(c.a)
    axes = [x.direction(c.a.body, e) if c.a.body != GROUND else SX(e) for e in np.eye(3)]
    local = ca.vertcat(*[ca.dot(e, gap) for e in axes])
    assert c.a.expression is not None  # checked by curve_on
    rows = ca.vertsplit(column(c.a.expression(local)))
    return rows, [(f"curve-{i + 1}" if len(rows) > 1 else "curve", "") for i in range(len(rows))], []


def _differentiate(
    k: Kinematics, x: _Carried, name: str, phi: list[Any], labels: list[tuple[str, str]], guards: list[Any], base: str
) -> Block:
    rows = [Row(name, label, unit, True) for label, unit in labels]
    symbols = ca.vertcat(*[item[3] for item in x.items])
    rate, bias = SX.sym("xd", symbols.numel()), SX.sym("xdd", symbols.numel())
    residual = ca.vertcat(*phi)
    G = ca.jacobian(residual, symbols)
    curvature = ca.jtimes(G @ rate, symbols, rate) + G @ bias
    outputs = [residual, ca.densify(G), -curvature, ca.vertcat(*guards) if guards else SX(0, 1)]
    evaluate = Function("closure", [symbols, rate, bias, k.p], outputs)
    values = [ca.vertcat(*part) for part in ([item[2] for item in x.items], x.rates, x.biases)]
    phi_value, G_value, gamma, guard_value = evaluate(*values, k.p)
    A = SX(len(rows), k.nv)
    skip = len(k.path(base))  # the common ancestors move both sides alike: exactly zero columns
    for body in dict.fromkeys(item[0] for item in x.items if item[0] != base):
        for b in k.path(body)[skip:]:
            _columns(k, x, G_value, b, body, A)
    guard_list = [guard_value[i] for i in range(guard_value.numel())]
    return Block(rows, phi_value, ca.sparsify(A), SX.zeros(len(rows), 1), gamma, phi_value, guard_list)


def _columns(k: Kinematics, x: _Carried, G: Any, b: int, body: str, A: Any) -> None:
    """Add to A the columns of tree joint b for all vectors carried by one body: force g and moment about the joint."""
    branch = k.branches[b]
    origin = k.links[branch.edge.outer].p
    for i in range(A.shape[0]):
        force, moment = zeros3(), zeros3()
        for index, (owner, is_point, value, _) in enumerate(x.items):
            if owner != body:
                continue
            g = G[i, 3 * index : 3 * index + 3].T
            moment = moment + cross(value - origin if is_point else value, g)
            force = force + g if is_point else force
        for c, j in enumerate(branch.columns):
            entry = ca.dot(branch.Sw[:, c], moment) + ca.dot(branch.Su[:, c], force)
            if not entry.is_zero():
                A[i, j] += entry


def cut_closure(joint: Joint) -> Closure:
    """The closure that replaces a joint cut out of a loop."""

    def side(body: str, at: np.ndarray, turn: np.ndarray, axis: np.ndarray) -> Feature:
        return Feature("cut", body, at, turn @ frame_with_axis(axis))

    second = joint.axis2 if joint.kind == "universal" else joint.axis
    kind = {"spherical": "point", "fixed": "weld"}.get(joint.kind, joint.kind)
    a = side(joint.parent, joint.at, joint.rotation, joint.axis)
    b = side(joint.child, joint.child_at, joint.child_rotation, second)
    skew = float(joint.axis @ joint.axis2) if joint.kind == "universal" else 0.0
    return Closure(joint.name, kind, a, b, skew)
