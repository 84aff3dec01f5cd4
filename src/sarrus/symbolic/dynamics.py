"""Mass matrix (composite rigid body), bias forces (recursive Newton-Euler), energies and powers of the tree.

All in body axes, about each body's origin.

Equation of motion M v̇ + h = B u + f + Aᵀλ. `h` holds Coriolis, gravity, springs, dampers and user loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from sarrus.errors import ModelError
from sarrus.model.parts import GROUND, Body
from sarrus.symbolic.algebra import SX, column, cross, symmetric_rotation, zeros3
from sarrus.symbolic.kinematics import Kinematics


@dataclass
class Inertial:
    """Mass, first moment c and inertia about the body's origin, in its axes; sums for composites."""

    mass: Any
    c: Any
    inertia: Any

    def seen_from(self, R: Any, p: Any) -> Inertial:
        """The same matter, in the axes and about the origin of a body in which this one has the pose (R, p)."""
        c = R @ self.c
        across = ca.dot(p, p) * self.mass + 2 * ca.dot(p, c)
        half = p @ (c + self.mass * p / 2).T
        shift = across * SX.eye(3) - half - half.T
        return Inertial(self.mass, c + self.mass * p, symmetric_rotation(R, self.inertia) + shift)

    def plus(self, other: Inertial) -> Inertial:
        """Both together."""
        return Inertial(self.mass + other.mass, self.c + other.c, self.inertia + other.inertia)


@dataclass
class Elastic:
    """Spring, damper and dry friction on a coordinate: they push with `force` along `rate`."""

    stretch: Any
    rate: Any
    stiffness: Any
    damping: Any
    dry: Any = 0.0  # friction against the rate

    @property
    def force(self) -> Any:
        """What it does along its rate."""
        return -self.stiffness * self.stretch - self.damping * self.rate - self.dry


def joint_elastics(k: Kinematics) -> list[Elastic]:
    """Springs and dampers of joints, and those on combinations of coordinates."""
    found = []
    for joint in k.model.joints:
        stiffness, rest, damping = (k.number(x) for x in (joint.stiffness, joint.rest, joint.damping))
        if joint.nv == 1 and not (stiffness.is_zero() and damping.is_zero()):
            found.append(Elastic(k.coordinate(joint.name) - rest, k.rate(joint.name), stiffness, damping))
        elif joint.nv > 1 and not damping.is_zero():  # it resists each of its velocities alike
            branch = next(b for b in k.branches if b.edge.joint is joint)
            found += [Elastic(SX(0), k.v[i], SX(0), damping) for i in branch.columns]
    for s in k.model.joint_springs:
        combination = [(k.number(c), name) for name, c in s.coefficients.items()]
        q = sum(c * k.coordinate(name) for c, name in combination)
        v = sum(c * k.rate(name) for c, name in combination)
        dry = SX(0) if k.number(s.friction).is_zero() else k.number(s.friction) * ca.tanh(v / k.number(s.speed))
        found.append(Elastic(q - k.number(s.rest), v, k.number(s.stiffness), k.number(s.damping), dry))
    return found


class TreeDynamics:
    """Expressions of M, h, energies and powers for one machine."""

    def __init__(self, k: Kinematics):
        """Collect the loads, then run the backward passes."""
        self.k = k
        self.potential: Any = SX(0)
        self.dissipated: Any = SX(0)  # power taken out by dampers, never negative
        self.applied: Any = SX(0)  # power put in by user loads
        self._force = {b.name: zeros3() for b in k.model.bodies} | {GROUND: zeros3()}
        self._moment = {b.name: zeros3() for b in k.model.bodies} | {GROUND: zeros3()}
        self._tau = SX.zeros(k.nv, 1)
        self._springs()
        self._joint_springs()
        self._loads()
        self.own = {b.name: self._inertial(b) for b in k.model.bodies}
        self.M = self._mass_matrix()
        self.h = self._bias() - self._tau
        self.kinetic = self._kinetic()
        self.potential += self._gravity_potential()

    # --- loads -----------------------------------------------------------------------------------------------------
    def _push(self, body: str, arm: Any, force: Any, moment: Any = None) -> None:
        self._force[body] += force
        self._moment[body] += cross(arm, force) + (zeros3() if moment is None else moment)

    def _springs(self) -> None:
        k = self.k
        for s in k.model.springs:
            gap = k.position(s.b) - k.position(s.a)
            rate = k.velocity(s.b) - k.velocity(s.a)
            stiffness, length, damping = (k.number(x) for x in (s.stiffness, s.length, s.damping))
            if length.is_zero():  # no direction is lost where the two points meet
                force = stiffness * gap + damping * rate
                self.potential += stiffness * ca.dot(gap, gap) / 2
                self.dissipated += damping * ca.dot(rate, rate)
            else:
                now = ca.sqrt(ca.dot(gap, gap))
                along = gap / now
                speed = ca.dot(along, rate)
                force = (stiffness * (now - length) + damping * speed) * along
                self.potential += stiffness * (now - length) ** 2 / 2
                self.dissipated += damping * speed**2
            self._push(s.a.body, k.arm(s.a), force)
            self._push(s.b.body, k.arm(s.b), -force)

    def _joint_springs(self) -> None:
        for x in joint_elastics(self.k):
            self._tau += ca.jacobian(x.rate, self.k.v).T * x.force
            self.potential += x.stiffness * x.stretch**2 / 2
            self.dissipated += x.damping * x.rate**2 + x.dry * x.rate

    def _loads(self) -> None:
        k = self.k
        for load in k.model.loads:
            value = load.value(k) if callable(load.value) else k.number(load.value)
            value = column(value)
            if value.shape != (3, 1):
                text = f"{load.kind} {load.name!r}: its function must return 3 values, got shape {value.shape}"
                raise ModelError(k.model.name, [text])
            if load.local:
                value = k.link(load.at.body).R @ value
            if load.kind == "force":
                self._push(load.at.body, k.arm(load.at), value)
                self.applied += ca.dot(value, k.velocity(load.at))
            else:
                self._push(load.at.body, zeros3(), zeros3(), value)
                self.applied += ca.dot(value, k.omega(load.at.body))

    # --- inertia ---------------------------------------------------------------------------------------------------
    def _inertial(self, body: Body) -> Inertial:
        mass, r = self.k.number(body.mass), self.k.number(body.com)
        about_com = self.k.number(body.inertia)
        return Inertial(mass, mass * r, about_com + mass * (ca.dot(r, r) * SX.eye(3) - r @ r.T))

    def _mass_matrix(self) -> Any:
        k = self.k
        total = dict(self.own)
        M = SX(k.nv, k.nv)
        for b in reversed(range(len(k.branches))):
            branch = k.branches[b]
            x, inner = branch.motion, branch.edge.inner
            whole = total[branch.edge.outer]
            Ub = x.R.T @ x.Su
            for c, i in enumerate(branch.columns):
                turn, shift = x.Sb[:, c], Ub[:, c]
                moment = whole.inertia @ turn + cross(whole.c, shift)
                drag = cross(turn, whole.c)
                for d, j in enumerate(branch.columns[: c + 1]):
                    value = ca.dot(x.Sb[:, d], moment) + ca.dot(Ub[:, d], drag)
                    value += whole.mass * ca.dot(x.Su[:, d], x.Su[:, c])  # inner axes: no rotation to undo
                    if not value.is_zero():
                        M[i, j] = M[j, i] = value
                force = x.R @ drag + whole.mass * x.Su[:, c]
                self._project(M, i, inner, force, x.R @ moment + cross(x.p, force))
                rotor = k.number(branch.edge.joint.rotor_inertia)
                if not rotor.is_zero():
                    M[i, i] += rotor
            if inner != GROUND:
                total[inner] = total[inner].plus(whole.seen_from(x.R, x.p))
        return ca.sparsify(M)

    def _project(self, M: Any, i: int, body: str, force: Any, moment: Any) -> None:
        """Fill M[i, :] and M[:, i] for the joints below, from the force and moment that velocity i needs on a body."""
        k = self.k
        while body != GROUND:
            branch = k.branches[k.inner[body]]
            x = branch.motion
            inner_force = x.R @ force
            for c, j in enumerate(branch.columns):
                value = ca.dot(x.Sb[:, c], moment) + ca.dot(x.Su[:, c], inner_force)
                if not value.is_zero():
                    M[i, j] = M[j, i] = value
            force, moment = inner_force, x.R @ moment + cross(x.p, inner_force)
            body = branch.edge.inner

    def required(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Force and moment (body axes, about its origin) that each body needs from joints and rows at v̇ = 0.

        Newton-Euler, less gravity, springs between points, and loads.
        """
        k = self.k
        g = k.number(k.model.gravity)
        force: dict[str, Any] = {GROUND: zeros3()}
        moment: dict[str, Any] = {GROUND: zeros3()}
        for body in k.model.bodies:
            x, own = k.links[body.name], self.own[body.name]
            a = x.a - x.R.T @ g
            force[body.name] = own.mass * a + cross(x.alpha, own.c) + cross(x.w, cross(x.w, own.c))
            moment[body.name] = own.inertia @ x.alpha + cross(x.w, own.inertia @ x.w) + cross(own.c, a)
            force[body.name] -= x.R.T @ self._force[body.name]
            moment[body.name] -= x.R.T @ self._moment[body.name]
        return force, moment

    def _bias(self) -> Any:
        """Generalised forces that hold v̇ = 0."""
        k = self.k
        h = SX.zeros(k.nv, 1)
        force, moment = self.required()
        for branch in reversed(k.branches):
            x, inner, outer = branch.motion, branch.edge.inner, branch.edge.outer
            inner_force = x.R @ force[outer]
            for c, i in enumerate(branch.columns):
                h[i] = ca.dot(x.Sb[:, c], moment[outer]) + ca.dot(x.Su[:, c], inner_force)
            force[inner] += inner_force
            moment[inner] += x.R @ moment[outer] + cross(x.p, inner_force)
        return h

    # --- energy ----------------------------------------------------------------------------------------------------
    def _kinetic(self) -> Any:
        k, energy = self.k, SX(0)
        for body in k.model.bodies:
            link, own = k.links[body.name], self.own[body.name]
            energy += own.mass * ca.dot(link.v, link.v) / 2 + ca.dot(link.v, cross(link.w, own.c))
            energy += ca.dot(link.w, own.inertia @ link.w) / 2
        for branch in k.branches:
            for i in branch.columns:
                energy += k.number(branch.edge.joint.rotor_inertia) * k.v[i] ** 2 / 2
        return energy

    def _gravity_potential(self) -> Any:
        k, energy = self.k, SX(0)
        g = k.number(k.model.gravity)
        for body in k.model.bodies:
            link, own = k.links[body.name], self.own[body.name]
            energy -= ca.dot(g, own.mass * link.p + link.R @ own.c)
        return energy
