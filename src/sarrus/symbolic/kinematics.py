"""Forward kinematics of the spanning tree, and the view of it that user functions receive.

Velocities and accelerations are carried from body to body in body axes, at the body's own origin: most joint columns
and all inertias are constant there, and nothing depends on how far the machine stands from the world's origin. World
quantities (for closures, springs and tasks) are turned once from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from sarrus.errors import UnknownNameError
from sarrus.model.geometry import perpendiculars, unit_axis
from sarrus.model.parts import GROUND, Feature, Joint, Model
from sarrus.model.tree import Edge, Tree
from sarrus.symbolic.algebra import SX, cross, quaternion_rate_map, to_sx, zeros3
from sarrus.symbolic.joints import Motion, joint_motion


@dataclass(frozen=True)
class Link:
    """A body in motion: pose (R, p) in the world, velocities and accelerations in body axes.

    w is the angular velocity, v the velocity of the body's origin, alpha and a their accelerations at v̇ = 0.
    """

    R: Any
    p: Any
    w: Any
    v: Any
    alpha: Any
    a: Any


@dataclass(frozen=True)
class Branch:
    """A tree joint: its motion, and its columns in world axes (angular, and velocity of the outer body's origin)."""

    edge: Edge
    first_v: int
    motion: Motion
    Sw: Any
    Su: Any

    @property
    def columns(self) -> range:
        """Its velocity indices."""
        return range(self.first_v, self.first_v + self.edge.joint.nv)


class Kinematics:
    """What a user function `function(k)` sees: time, coordinates, and places on bodies, as CasADi expressions."""

    def __init__(self, model: Model, tree: Tree):
        """Create the symbols and run the forward pass."""
        self.model, self.tree = model, tree
        self.nq = sum(e.joint.nq for e in tree.edges)
        self.nv = sum(e.joint.nv for e in tree.edges)
        self.t = SX.sym("t")
        self.q = SX.sym("q", self.nq)
        self.v = SX.sym("v", self.nv)
        self.p = SX.sym("p", len(model.parameters))
        self.parameters = {name: self.p[k] for k, name in enumerate(model.parameters)}
        rest = zeros3()
        self.links: dict[str, Link] = {GROUND: Link(ca.densify(SX.eye(3)), rest, rest, rest, rest, rest)}
        self.branches: list[Branch] = []
        self.inner: dict[str, int] = {}  # body -> index of the branch that carries it
        self.N = SX(self.nq, self.nv)
        self._slots: dict[str, tuple[Joint, int, int]] = {}
        iq = iv = 0
        for edge in tree.edges:
            self._grow(edge, iq, iv)
            iq, iv = iq + edge.joint.nq, iv + edge.joint.nv
        self.qdot = self.N @ self.v
        self.places, self.rates = self.q, self.qdot  # what positions depend on, and how that changes

    def _grow(self, edge: Edge, iq: int, iv: int) -> None:
        joint = edge.joint
        q = self.q[iq : iq + joint.nq] if joint.nq else SX(0, 1)  # an empty slice of a 1x1 SX has the wrong shape
        v = self.v[iv : iv + joint.nv] if joint.nv else SX(0, 1)
        x = joint_motion(joint, q, v, self.parameters, edge.reversed)
        base = self.links[edge.inner]
        T, w, u = x.R.T, x.Sb @ v, x.Su @ v
        spin = T @ base.w + w
        self.links[edge.outer] = Link(
            R=base.R @ x.R,
            p=base.p + base.R @ x.p,
            w=spin,
            v=T @ (base.v + cross(base.w, x.p) + u),
            alpha=T @ base.alpha + cross(spin, w) + x.cb,
            a=T @ (base.a + cross(base.alpha, x.p) + cross(base.w, cross(base.w, x.p) + 2 * u) + x.cu),
        )
        self.inner[edge.outer] = len(self.branches)
        self.branches.append(Branch(edge, iv, x, self.links[edge.outer].R @ x.Sb, base.R @ x.Su))
        self._slots[joint.name] = (joint, iq, iv)
        plain = joint.nq if joint.kind not in ("spherical", "free") else joint.nq - 4
        for k in range(plain):
            self.N[iq + k, iv + k] = 1.0
        if joint.nq > plain:
            self.N[iq + plain : iq + plain + 4, iv + plain : iv + plain + 3] = quaternion_rate_map(q[plain:])

    # --- the tree ------------------------------------------------------------------------------------------------
    def path(self, body: str) -> list[int]:
        """Branch indices from the ground to a body."""
        out: list[int] = []
        while body != GROUND:
            out.append(self.inner[body])
            body = self.branches[out[-1]].edge.inner
        return out[::-1]

    def common(self, a: str, b: str) -> str:
        """The nearest common ancestor of two bodies."""
        body = GROUND
        for i, j in zip(self.path(a), self.path(b), strict=False):
            if i != j:
                break
            body = self.branches[i].edge.outer
        return body

    def number(self, value: Any) -> Any:
        """A user's number or array as SX."""
        try:
            return to_sx(value, self.parameters)
        except KeyError as error:
            known = list(self.parameters)
            raise UnknownNameError(
                "parameter (one must occur in a part of the machine)", error.args[0], known
            ) from None

    # --- what user functions call --------------------------------------------------------------------------------
    def link(self, body: Any) -> Link:
        """A body's motion."""
        name = getattr(body, "name", body)
        if name not in self.links:
            raise UnknownNameError("body", name, list(self.links))
        return self.links[name]

    def rotation(self, body: Any) -> Any:
        """Rotation matrix from body to world axes."""
        return self.link(body).R

    def omega(self, body: Any) -> Any:
        """Angular velocity in world axes."""
        link = self.link(body)
        return link.R @ link.w

    def direction(self, body: Any, axis: Any) -> Any:
        """A body-fixed direction in world axes."""
        return self.link(body).R @ SX(unit_axis(axis))

    def arm(self, at: Feature) -> Any:
        """From the body's origin to the feature, in world axes."""
        return self.link(at.body).R @ self.number(at.at)

    def position(self, at: Feature) -> Any:
        """World position of a feature."""
        return self.link(at.body).p + self.arm(at)

    def velocity(self, at: Feature) -> Any:
        """World velocity of a feature."""
        link = self.link(at.body)
        return link.R @ (link.v + cross(link.w, self.number(at.at)))

    def acceleration_bias(self, at: Feature) -> Any:
        """World acceleration of a feature at v̇ = 0 (the J̇v of a point task)."""
        link, r = self.link(at.body), self.number(at.at)
        return link.R @ (link.a + cross(link.alpha, r) + cross(link.w, cross(link.w, r)))

    def angular_acceleration_bias(self, body: Any) -> Any:
        """Angular acceleration in world axes at v̇ = 0 (the J̇v of an orientation task)."""
        link = self.link(body)
        return link.R @ link.alpha

    def coordinate(self, name: str) -> Any:
        """A scalar joint coordinate; for a joint that was cut, measured between its two bodies."""
        for joint, iq, _ in self._slots.values():
            if name in joint.position_names:
                return self.q[iq + joint.position_names.index(name)]
        for joint in self.tree.cuts:
            if joint.name == name and joint.kind in ("revolute", "prismatic"):
                return self._measure(joint)
        known = [n for joint, _, _ in self._slots.values() for n in joint.position_names]
        raise UnknownNameError("coordinate", name, known)

    def rate(self, name: str) -> Any:
        """Rate of a scalar joint coordinate, linear in the velocities."""
        for joint, iq, iv in self._slots.values():
            if name in joint.position_names:
                k = joint.position_names.index(name)
                if joint.nq == joint.nv or k < joint.nq - 4:
                    return self.v[iv + k]
                return self.qdot[iq + k]
        return ca.jtimes(self.coordinate(name), self.places, self.rates)

    def _measure(self, joint: Joint) -> Any:
        """Angle or displacement across a cut joint, from the poses of its two sides."""
        parent, child = self.link(joint.parent), self.link(joint.child)
        base = parent.R @ SX(joint.rotation)
        if joint.kind == "prismatic":
            gap = child.p + child.R @ self.number(joint.child_at) - parent.p - parent.R @ self.number(joint.at)
            return ca.dot(base @ SX(joint.axis), gap)
        t1, t2 = perpendiculars(joint.axis)
        turned = child.R @ SX(joint.child_rotation) @ SX(t1)
        return ca.atan2(ca.dot(base @ SX(t2), turned), ca.dot(base @ SX(t1), turned))

    # --- Jacobians -------------------------------------------------------------------------------------------------
    def point_jacobian(self, at: Feature) -> Any:
        """J in velocity of a feature = J v."""
        where = self.position(at)
        J = SX(3, self.nv)
        for b in self.path(at.body):
            branch = self.branches[b]
            arm = where - self.links[branch.edge.outer].p
            for c, k in enumerate(branch.columns):
                J[:, k] = branch.Su[:, c] + cross(branch.Sw[:, c], arm)
        return J

    def angular_jacobian(self, body: Any) -> Any:
        """J in angular velocity of a body = J v, world axes."""
        J = SX(3, self.nv)
        for b in self.path(getattr(body, "name", body)):
            branch = self.branches[b]
            for c, k in enumerate(branch.columns):
                J[:, k] = branch.Sw[:, c]
        return J
