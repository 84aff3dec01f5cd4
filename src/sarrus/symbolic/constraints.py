"""All constraint rows of a machine, grouped by the user's names.

Closures go the short way (`closures`); couplings, rolling, knife edges and users' own rows are differentiated
directly: with q̇ = N v, a holonomic row has Φ̇ = (∂Φ/∂q) N v + ∂Φ/∂t, a Pfaffian row w = A v - a is given, and

    γ = -(∂w/∂q N v + ∂w/∂t)  at constant v.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from sarrus.errors import ModelError
from sarrus.model.layout import Row
from sarrus.model.parts import Coupling, Custom, Feature, Rolling, Touch
from sarrus.symbolic.algebra import SX, column, cross
from sarrus.symbolic.closures import Block, closure_block, cut_closure
from sarrus.symbolic.kinematics import Kinematics


def constraint_blocks(k: Kinematics) -> list[Block]:
    """One block for each constraint of the user, in the order written, then one for each joint that was cut."""
    model = k.model
    by_name: dict[str, Block] = {}
    for closure in model.closures:
        by_name[closure.name] = closure_block(k, closure)
    for coupling in model.couplings:
        by_name[coupling.name] = _coupling(k, coupling)
    for rolling in model.rollings:
        by_name[rolling.name] = _rolling(k, rolling)
    for touch in model.touches:
        by_name[touch.name] = _touch(k, touch)
    for custom in model.customs:
        by_name[custom.name] = _custom(k, custom)
    blocks = [by_name[name] for name in model.groups]
    return blocks + [closure_block(k, cut_closure(joint)) for joint in k.tree.cuts if joint.kind != "free"]


def holonomic(k: Any, phi: Any) -> tuple[Any, Any, Any]:
    """A, a and γ of rows Φ(q, t) = 0."""
    A = ca.sparsify(ca.jacobian(phi, k.q) @ k.N)
    phi_t = ca.jacobian(phi, k.t)
    return A, -ca.densify(phi_t), _gamma(k, A @ k.v + phi_t)


def pfaffian(k: Any, w: Any) -> tuple[Any, Any, Any]:
    """A, a and γ of rows w(q, v, t) = A v - a = 0."""
    A = ca.sparsify(ca.jacobian(w, k.v))
    return A, -ca.densify(ca.substitute(w, k.v, SX.zeros(k.v.shape[0], 1))), _gamma(k, w)


def _gamma(k: Any, w: Any) -> Any:
    return -(ca.jtimes(w, k.q, k.qdot) + ca.jacobian(w, k.t))


def _coupling(k: Kinematics, c: Coupling) -> Block:
    phi = sum((k.number(x) * k.coordinate(name) for name, x in c.coefficients.items()), SX(0)) - k.number(c.constant)
    if c.target is not None:
        phi -= c.target(k.t)
    A, a, gamma = holonomic(k, phi)
    return Block([Row(c.name, "", "", True)], phi, A, a, gamma, phi)


def _rolling(k: Kinematics, r: Rolling) -> Block:
    """The lowest point of the disc touches the plane and its material does not slip there."""
    n = k.link(r.plane.body).R @ SX(r.plane.frame[:, 2])
    d = k.direction(r.hub.body, r.hub.frame[:, 2])
    tilt = ca.dot(n, d)
    reach = -k.number(r.radius) * (n - tilt * d) / ca.sqrt(1 - tilt**2)
    contact = k.position(r.hub) + reach
    velocity = k.velocity(r.hub) + cross(k.omega(r.hub.body), reach)
    return _on_plane(k, r.name, r.plane, contact, velocity, held=True)


def _touch(k: Kinematics, c: Touch) -> Block:
    """A point on a plane, held there or not."""
    return _on_plane(k, c.name, c.plane, k.position(c.point), k.velocity(c.point), c.sticking)


def _on_plane(k: Kinematics, name: str, plane: Feature, contact: Any, velocity: Any, held: bool) -> Block:
    """Height of a place over a plane and, if it is held, the slip of material that moves there with this velocity."""
    n = k.link(plane.body).R @ SX(plane.frame[:, 2])
    phi = ca.dot(n, contact - k.position(plane))
    A0, a0, g0 = holonomic(k, phi)
    rows = [Row(name, "height", "m", True)]
    if not held:
        return Block(rows, phi, A0, a0, g0, phi)
    slips = _slips(k, plane, contact, velocity)
    A1, a1, g1 = pfaffian(k, slips)
    rows += [Row(name, "slip-1", "m", False), Row(name, "slip-2", "m", False)]
    stack = [ca.vertcat(*pair) for pair in ((phi, SX.zeros(2, 1)), (A0, A1), (a0, a1), (g0, g1))]
    return Block(rows, stack[0], stack[1], stack[2], stack[3], ca.vertcat(phi, slips))


def _slips(k: Kinematics, plane: Feature, contact: Any, velocity: Any) -> Any:
    """Velocity of material at a place of a plane, along its two axes and relative to it."""
    under = k.link(plane.body)
    slip = velocity - under.R @ under.v - cross(k.omega(plane.body), contact - under.p)
    return ca.vertcat(*[ca.dot(under.R @ SX(plane.frame[:, i]), slip) for i in range(2)])


def rubbing(k: Kinematics, c: Touch) -> Any:
    """Generalised friction of a contact for a normal force of 1 N: -μ Tᵀ s/|s| tanh(|s|/speed), T = ∂s/∂v."""
    s = ca.simplify(_slips(k, c.plane, k.position(c.point), k.velocity(c.point)))
    speed, moving = k.number(c.speed), [s[i] for i in range(2) if not s[i].is_zero()]
    if not moving:
        return SX(k.nv, 1)
    if len(moving) == 1:
        share = ca.tanh(moving[0] / speed)
    else:  # tanh(x)/x as a function of x², by its series where the root has no derivative
        square = ca.dot(s, s) / speed**2
        low, x = ca.fmin(square, 1e-3), ca.sqrt(ca.fmax(square, 1e-3))
        series = 1 - low / 3 + 2 * low**2 / 15 - 17 * low**3 / 315 + 62 * low**4 / 2835
        share = ca.vertcat(*moving) / speed * ca.if_else(square < 1e-3, series, ca.tanh(x) / x)
    return -k.number(c.friction) * (ca.jacobian(ca.vertcat(*moving), k.v).T @ share)


def _custom(k: Kinematics, c: Custom) -> Block:
    value = column(c.function(k))
    rows = [Row(c.name, str(i + 1) if value.numel() > 1 else "", "", c.holonomic) for i in range(value.numel())]
    check_rows(k.model.name, c.name, value, k, c.holonomic)
    if c.holonomic:
        return Block(rows, value, *holonomic(k, value), source=value)
    return Block(rows, SX.zeros(len(rows), 1), *pfaffian(k, value), source=value)


def check_rows(machine: str, name: str, value: Any, k: Any, is_holonomic: bool) -> None:
    """Refuse holonomic rows that contain velocities and Pfaffian rows that are not linear in them."""
    if value.shape[1] != 1:
        raise ModelError(machine, [f"constraint {name!r}: expected a scalar or a column, got shape {value.shape}"])
    if is_holonomic and ca.depends_on(value, k.v):
        text = "its Φ(q, t) contains velocities; use constrain_velocity for rows A(q, t) v = a(t)"
        raise ModelError(machine, [f"constraint {name!r}: {text}"])
    if not is_holonomic and ca.depends_on(ca.simplify(ca.jacobian(value, k.v)), k.v):
        text = "it is not linear in the velocities; rows must have the form A(q, t) v - a(t)"
        raise ModelError(machine, [f"constraint {name!r}: {text}"])
