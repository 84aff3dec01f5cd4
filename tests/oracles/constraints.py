"""Every constraint of a machine written down a second time, with exact rates: Φ, A, a(t) and γ in NumPy.

The rows are this file's own choice, so they need not equal those of the package. What must agree: Φ = 0 on
the same configurations, the row space of A, the right-hand sides on it, and therefore the acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.geometry import frame_with_axis
from sarrus.model.parts import Closure, Coupling, Custom, Feature, Joint, Rolling

from .dense import Solution, constrained_solve
from .pinocchio_tree import PinocchioTree, value


@dataclass(frozen=True)
class Moving:
    """A vector or number along the motion: value, Jacobian, first and second rate (for vdot = 0)."""

    x: Any
    J: np.ndarray
    rate: Any
    second: Any

    def __sub__(self, other: Moving) -> Moving:
        return Moving(self.x - other.x, self.J - other.J, self.rate - other.rate, self.second - other.second)

    def dot(self, other: Moving) -> Moving:
        """Scalar product of two vectors."""
        return Moving(
            self.x @ other.x,
            self.x @ other.J + other.x @ self.J,
            self.rate @ other.x + self.x @ other.rate,
            self.second @ other.x + 2 * self.rate @ other.rate + self.x @ other.second,
        )

    def norm(self) -> Moving:
        """Length of a vector."""
        square, length = self.dot(self), np.linalg.norm(self.x)
        rate = square.rate / (2 * length)
        return Moving(length, square.J / (2 * length), rate, (square.second / 2 - rate**2) / length)


@dataclass(frozen=True)
class Rows:
    """Rows of one constraint: Φ (None if nonholonomic), A, a and γ, so that A v = a(t) and A vdot = γ."""

    name: str
    phi: np.ndarray | None
    A: np.ndarray
    a: np.ndarray
    gamma: np.ndarray


@dataclass(frozen=True)
class State:
    """Where the rows are evaluated."""

    tree: PinocchioTree
    q: np.ndarray
    v: np.ndarray
    t: float

    def point(self, feature: Feature) -> Moving:
        """The feature's place in the world."""
        m = self.tree.motion(self.q, self.v, feature.body)
        r, w = m.R @ value(feature.at), m.omega
        return Moving(
            m.p + r, m.J_velocity - _skew(r) @ m.J_omega, m.velocity + np.cross(w, r),
            m.acceleration + np.cross(m.alpha, r) + np.cross(w, np.cross(w, r)),
        )  # fmt: skip

    def direction(self, body: str, local: np.ndarray) -> Moving:
        """A direction fixed to a body, in world axes."""
        m = self.tree.motion(self.q, self.v, body)
        d, w = m.R @ local, m.omega
        return Moving(d, -_skew(d) @ m.J_omega, np.cross(w, d), np.cross(m.alpha, d) + np.cross(w, np.cross(w, d)))

    def axes(self, feature: Feature) -> list[Moving]:
        """The three axes of the feature's frame; the third is its axis."""
        return [self.direction(feature.body, column) for column in value(feature.frame).T]


def _skew(a: np.ndarray) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def _constant(x: float, like: Moving) -> Moving:
    return Moving(x, np.zeros_like(like.J), 0.0, 0.0)


# --- closures ----------------------------------------------------------------------------------------------
def _aligned(a: list[Moving], b: list[Moving]) -> list[Moving]:
    """Third axes parallel."""
    return [a[0].dot(b[2]), a[1].dot(b[2])]


def _parallel(a: list[Moving], b: list[Moving]) -> list[Moving]:
    """All axes parallel (the three products of different axes; regular at zero rotation)."""
    return [a[0].dot(b[1]), a[1].dot(b[2]), a[2].dot(b[0])]


def _pair(kind: str, state: State, a: Feature, b: Feature, cosine: float = 0.0) -> list[Moving]:
    """The rows of each kind in which both sides are frames."""
    axes_a, axes_b = state.axes(a), state.axes(b)
    gap = state.point(b) - state.point(a)
    together = [Moving(gap.x[i], gap.J[i], gap.rate[i], gap.second[i]) for i in range(3)]
    on_axis = [axes_a[0].dot(gap), axes_a[1].dot(gap)]
    if kind in ("point", "spherical"):
        return together
    if kind == "revolute":
        return together + _aligned(axes_a, axes_b)
    if kind == "prismatic":
        return on_axis + _parallel(axes_a, axes_b)
    if kind == "cylindrical":
        return on_axis + _aligned(axes_a, axes_b)
    if kind == "universal":
        angle = axes_a[2].dot(axes_b[2])
        return [*together, angle - _constant(cosine, angle)]
    if kind == "planar":
        return [axes_a[2].dot(gap), *_aligned(axes_a, axes_b)]
    if kind in ("weld", "fixed"):
        return together + _parallel(axes_a, axes_b)
    if kind == "point-on-line":
        return on_axis
    if kind == "point-on-plane":
        return [axes_a[2].dot(gap)]
    raise ValueError(kind)


def _distance(state: State, closure: Closure) -> list[Moving]:
    length = (state.point(closure.b) - state.point(closure.a)).norm()
    return [length - _constant(float(value(closure.length)), length)]


def _curve(state: State, closure: Closure) -> list[Moving]:
    """The user's expression of the point's position in the curve's body axes, with its derivatives."""
    gap = state.point(closure.b) - state.point(closure.a)
    local = [e.dot(gap) for e in (state.direction(closure.a.body, c) for c in np.eye(3))]
    p = ca.SX.sym("p", 3)
    values = closure.a.expression([p[0], p[1], p[2]])
    values = values if isinstance(values, (list, tuple)) else [values]
    x, J = np.array([c.x for c in local]), np.array([c.J for c in local])
    rate, second = np.array([c.rate for c in local]), np.array([c.second for c in local])
    rows = []
    for expression in values:
        hessian, gradient = ca.hessian(expression, p)
        f = ca.Function("f", [p], [expression, gradient, hessian])
        phi, g, H = (np.asarray(out.full()) for out in f(x))
        g = g.ravel()
        rows.append(Moving(float(phi[0, 0]), g @ J, g @ rate, g @ second + rate @ H @ rate))
    return rows


def _cut(state: State, joint: Joint) -> list[Moving]:
    """A joint left out of the tree."""
    if joint.kind == "free":
        return []
    axis_b = joint.axis2 if joint.kind == "universal" else joint.axis
    sides = [
        Feature(joint.kind, body, value(at), value(turn) @ frame_with_axis(value(axis)))
        for body, at, turn, axis in (
            (joint.parent, joint.at, joint.rotation, joint.axis),
            (joint.child, joint.child_at, joint.child_rotation, axis_b),
        )
    ]
    return _pair(joint.kind, state, *sides, cosine=float(value(joint.axis) @ value(joint.axis2)))


def _holonomic(name: str, rows: list[Moving], state: State) -> Rows:
    n = state.tree.nv
    return Rows(
        name, np.array([r.x for r in rows], dtype=float), np.array([r.J for r in rows]).reshape(-1, n),
        np.zeros(len(rows)), -np.array([r.second for r in rows], dtype=float),
    )  # fmt: skip


# --- couplings ---------------------------------------------------------------------------------------------
def coordinate_indices(tree: PinocchioTree, name: str) -> tuple[int, int]:
    """Where a scalar coordinate stands in q and in v."""
    for edge in tree.tree.edges:
        if name in edge.joint.position_names:
            k = edge.joint.position_names.index(name)
            return tree.q_slices[edge.joint.name].start + k, tree.v_slices[edge.joint.name].start + k
    raise KeyError(f"{name!r} is not a coordinate of the tree")


def _coupling(state: State, coupling: Coupling) -> Rows:
    t = ca.SX.sym("t")
    motion = ca.SX(coupling.target(t)) if coupling.target else ca.SX(0)
    first = ca.jacobian(motion, t)
    f = ca.Function("f", [t], [motion, first, ca.jacobian(first, t)])
    target, speed, acceleration = (float(x) for x in f(state.t))
    A, total = np.zeros((1, state.tree.nv)), 0.0
    for name, coefficient in coupling.coefficients.items():
        iq, iv = coordinate_indices(state.tree, name)
        A[0, iv] += float(value(coefficient))
        total += float(value(coefficient)) * state.q[iq]
    phi = total - float(value(coupling.constant)) - target
    return Rows(coupling.name, np.array([phi]), A, np.array([speed]), np.array([acceleration]))


# --- rolling -----------------------------------------------------------------------------------------------
def _rolling(state: State, part: Rolling) -> list[Rows]:
    """Height of the disc's lowest point over the plane, and the velocity of the disc's material there."""
    if part.plane.body != "ground":
        raise NotImplementedError("rolling on a plane that moves")
    r = float(value(part.radius))
    t1, t2, n = value(part.plane.frame).T
    axis = state.axes(part.hub)[2]
    centre = state.point(part.hub)
    m = state.tree.motion(state.q, state.v, part.hub.body)
    fixed = Moving(n, np.zeros_like(axis.J), np.zeros(3), np.zeros(3))
    lean = axis.dot(fixed)  # e = (n - lean axis) / s points up from the contact in the disc's plane
    s = np.sqrt(1 - lean.x**2)
    s_J, s_rate = -lean.x * lean.J / s, -lean.x * lean.rate / s
    s_second = -(lean.rate**2 + lean.x * lean.second + s_rate**2) / s
    height = Rows(
        part.name,
        np.array([(centre.x - value(part.plane.at)) @ n - r * s]),
        (n @ centre.J - r * s_J)[None, :],
        np.zeros(1),
        -np.array([n @ centre.second - r * s_second]),
    )
    e = (n - lean.x * axis.x) / s
    e_rate = (-lean.rate * axis.x - lean.x * axis.rate - s_rate * e) / s
    J = centre.J + r * _skew(e) @ m.J_omega  # v + omega × (-r e)
    change = centre.second - r * np.cross(m.alpha, e) - r * np.cross(m.omega, e_rate)
    plane = np.array([t1, t2])
    return [height, Rows(part.name, None, plane @ J, np.zeros(2), -plane @ change)]


# --- user functions ----------------------------------------------------------------------------------------
class Along:
    """What a user's function gets as k: positions and velocities as expressions of s, where vdot = 0."""

    def __init__(self, state: State):
        self.s = ca.SX.sym("s")
        self.t = state.t + self.s
        self._state = state

    def _series(self, *terms: Any) -> ca.SX:
        return sum((ca.DM(c) * self.s**k / max(k, 1) for k, c in enumerate(terms)), ca.SX(3, 1))

    def position(self, feature: Feature) -> ca.SX:
        """World position of a feature."""
        m = self._state.point(feature)
        return self._series(m.x, m.rate, m.second)

    def velocity(self, feature: Feature) -> ca.SX:
        """World velocity of a feature."""
        m = self._state.point(feature)
        return self._series(m.rate, m.second)

    def direction(self, body: Any, local: Any) -> ca.SX:
        """A direction fixed to a body, in world axes."""
        m = self._state.direction(getattr(body, "name", body), np.asarray(local, dtype=float))
        return self._series(m.x, m.rate, m.second)


def _column(expression: Any) -> ca.SX:
    return ca.vertcat(*expression) if isinstance(expression, (list, tuple)) else ca.vec(ca.SX(expression))


def _series_values(k: Along, expression: Any) -> list[np.ndarray]:
    """Value, first and second derivative with respect to s at s = 0."""
    f0 = _column(expression)
    f1 = ca.jacobian(f0, k.s)
    out = ca.Function("f", [k.s], [f0, f1, ca.jacobian(f1, k.s)])(0.0)
    return [np.asarray(x.full()).ravel() for x in out]


def _custom(state: State, part: Custom) -> Rows:
    n, order = state.tree.nv, 1 if part.holonomic else 0  # which derivative of the function is A v - a

    def series(v: np.ndarray) -> list[np.ndarray]:
        k = Along(State(state.tree, state.q, v, state.t))
        return _series_values(k, part.function(k))

    now, a = series(state.v), -series(np.zeros(n))[order]
    A = np.array([series(e)[order] + a for e in np.eye(n)]).T
    return Rows(part.name, now[0] if part.holonomic else None, A, a, -now[order + 1])


# --- all together ------------------------------------------------------------------------------------------
def constraint_rows(tree: PinocchioTree, q, v, t: float = 0.0) -> list[Rows]:
    """All rows of the machine: cut joints, closures, couplings, rollings, user functions."""
    state = State(tree, np.asarray(q, dtype=float), np.asarray(v, dtype=float), float(t))
    model, out = tree.model, []
    for joint in tree.tree.cuts:
        out.append(_holonomic(joint.name, _cut(state, joint), state))
    for c in model.closures:
        special = {"distance": _distance, "point-on-curve": _curve}.get(c.kind)
        rows = special(state, c) if special else _pair(c.kind, state, c.a, c.b)
        out.append(_holonomic(c.name, rows, state))
    out += [_coupling(state, c) for c in model.couplings]
    for rolling in model.rollings:
        out += _rolling(state, rolling)
    return out + [_custom(state, c) for c in model.customs]


def stacked(tree: PinocchioTree, q, v, t: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Φ of the holonomic rows, A, a, γ) of all rows."""
    rows = constraint_rows(tree, q, v, t)
    empty = [np.zeros(0)]
    return (
        np.concatenate(empty + [r.phi for r in rows if r.phi is not None]),
        np.concatenate([np.zeros((0, tree.nv))] + [r.A for r in rows]),
        np.concatenate(empty + [r.a for r in rows]),
        np.concatenate(empty + [r.gamma for r in rows]),
    )


def row_scale(A: np.ndarray) -> np.ndarray:
    """One over the length of each row, but never blowing up the noise of rows that (nearly) vanish."""
    length = np.linalg.norm(A, axis=1)
    return 1.0 / np.maximum(length, 1e-3 * length.max(initial=1e-300))


def project_velocity(tree: PinocchioTree, q, v, t: float = 0.0) -> np.ndarray:
    """The velocity nearest to v in the mass metric with A v = a(t)."""
    _, A, a, _ = stacked(tree, q, v, t)
    M = tree.mass_matrix(q)
    return constrained_solve(M, np.zeros(tree.nv), M @ v, A, a, row_scale(A)).vdot


def oracle_acceleration(tree: PinocchioTree, q, v, tau, t: float = 0.0) -> Solution:
    """The acceleration with all force elements, and tau added; v should satisfy the constraints."""
    from .forces import applied_force

    _, A, _, gamma = stacked(tree, q, v, t)
    force = np.asarray(tau, dtype=float) + applied_force(tree, q, v, t)
    return constrained_solve(tree.mass_matrix(q), tree.bias(q, v), force, A, gamma, row_scale(A))
