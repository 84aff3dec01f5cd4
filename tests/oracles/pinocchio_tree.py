"""The spanning tree of a machine in Pinocchio, seen through Sarrus coordinates.

Every joint is composed of elementary Pinocchio joints (hinge, slider, screw, ball), so that no Pinocchio
joint with its own conventions is involved. A reversed edge is the same chain read backwards: elementary motions
with negated axes, and balls with the conjugate quaternion, whose velocity is -R(quat) omega. That velocity map
T(q) is orthogonal and d/dt(T) v = -R (omega x omega) = 0: accelerations transform with T alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from sarrus.model.expression import numeric
from sarrus.model.geometry import perpendiculars
from sarrus.model.parts import GROUND, Joint, Model
from sarrus.model.tree import Edge, span

WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def value(x: Any) -> np.ndarray:
    """A number or array of the description at its default parameters, as floats."""
    return np.asarray(numeric(x), dtype=float)


def quaternion_rotation(quat_wxyz: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z), normalised first."""
    w, x, y, z = np.asarray(quat_wxyz, dtype=float) / np.linalg.norm(quat_wxyz)
    return pin.Quaternion(w, x, y, z).toRotationMatrix()


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton product of quaternions (w, x, y, z)."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def joint_transform(joint: Joint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J(q) straight from its definition, as (rotation, shift); shares nothing with the Pinocchio chain."""
    kind, axis, none = joint.kind, value(joint.axis), np.zeros(3)

    def turn(about, angle):
        return pin.exp3(np.asarray(about) * angle)

    if kind == "fixed":
        return np.eye(3), none
    if kind == "revolute":
        return turn(axis, q[0]), none
    if kind == "prismatic":
        return np.eye(3), axis * q[0]
    if kind == "helical":
        return turn(axis, q[0]), axis * float(value(joint.pitch)) * q[0] / (2 * np.pi)
    if kind == "cylindrical":
        return turn(axis, q[0]), axis * q[1]
    if kind == "universal":
        return turn(axis, q[0]) @ turn(value(joint.axis2), q[1]), none
    if kind == "planar":
        t1, t2 = perpendiculars(axis)
        return turn(axis, q[2]), q[0] * t1 + q[1] * t2
    if kind == "spherical":
        return quaternion_rotation(q), none
    return quaternion_rotation(q[3:]), np.asarray(q[:3], dtype=float)


@dataclass(frozen=True)
class Piece:
    """One elementary motion: its Pinocchio joint, and where its coordinates start in the Sarrus joint."""

    model: Any
    q: int
    v: int
    ball: bool = False


@dataclass(frozen=True)
class Motion:
    """Pose, velocity, acceleration (for zero vdot) and Jacobians of a body's frame, in world axes."""

    R: np.ndarray
    p: np.ndarray
    omega: np.ndarray
    velocity: np.ndarray
    alpha: np.ndarray
    acceleration: np.ndarray
    J_omega: np.ndarray
    J_velocity: np.ndarray


def _pieces(joint: Joint, backwards: bool) -> list[Piece]:
    """The elementary motions of J(q), or of its inverse, in order from the inner to the outer body."""
    sign = -1.0 if backwards else 1.0

    def hinge(axis, at):
        return Piece(pin.JointModelRevoluteUnaligned(*(sign * axis)), at, at)

    def slider(axis, at):
        return Piece(pin.JointModelPrismaticUnaligned(*(sign * axis)), at, at)

    axis, kind = value(joint.axis), joint.kind
    if kind == "fixed":
        chain = []
    elif kind == "revolute":
        chain = [hinge(axis, 0)]
    elif kind == "prismatic":
        chain = [slider(axis, 0)]
    elif kind == "helical":
        per_radian = float(value(joint.pitch)) / (2 * np.pi)
        chain = [Piece(pin.JointModelHelicalUnaligned(*(sign * axis), per_radian), 0, 0)]
    elif kind == "cylindrical":
        chain = [hinge(axis, 0), slider(axis, 1)]
    elif kind == "universal":
        chain = [hinge(axis, 0), hinge(value(joint.axis2), 1)]
    elif kind == "planar":
        t1, t2 = perpendiculars(axis)
        chain = [slider(t1, 0), slider(t2, 1), hinge(axis, 2)]
    elif kind == "spherical":
        chain = [Piece(pin.JointModelSpherical(), 0, 0, ball=True)]
    elif kind == "free":
        chain = [slider(e, i) for i, e in enumerate(np.eye(3))]
        chain.append(Piece(pin.JointModelSpherical(), 3, 3, ball=True))
    else:
        raise ValueError(f"unknown joint kind {kind!r}")
    return chain[::-1] if backwards else chain


class PinocchioTree:
    """The tree of `span(model)`, parameters at their defaults; everything in Sarrus coordinates."""

    def __init__(self, model: Model):
        self.model = model
        self.tree = span(model)
        self.pin = pin.Model()
        self.pin.gravity.linear = value(model.gravity)
        self.names_q = tuple(n for e in self.tree.edges for n in e.joint.position_names)
        self.names_v = tuple(n for e in self.tree.edges for n in e.joint.velocity_names)
        self.nq, self.nv = len(self.names_q), len(self.names_v)
        self.q_slices: dict[str, slice] = {}
        self.v_slices: dict[str, slice] = {}
        self._place = {GROUND: (0, pin.SE3.Identity())}
        self._scalars: list[tuple[int, int, int, int]] = []  # pin q, pin v, Sarrus q, Sarrus v
        self._balls: list[tuple[int, int, int, int, bool]] = []  # the same, and whether it is read backwards
        q0 = v0 = 0
        for edge in self.tree.edges:
            self.q_slices[edge.joint.name] = slice(q0, q0 + edge.joint.nq)
            self.v_slices[edge.joint.name] = slice(v0, v0 + edge.joint.nv)
            q0, v0 = q0 + edge.joint.nq, v0 + edge.joint.nv
        self._add_branches(GROUND)
        self.rotor = np.zeros(self.nv)
        for edge in self.tree.edges:
            self.rotor[self.v_slices[edge.joint.name]] = float(value(edge.joint.rotor_inertia))
        for body in model.bodies:
            joint, place = self._place[body.name]
            inertia = pin.Inertia(float(value(body.mass)), value(body.com), value(body.inertia))
            self.pin.appendBodyToJoint(joint, inertia, place)
        self.data = self.pin.createData()
        self._seen: tuple[bytes, bytes] | None = None

    def _add_branches(self, inner: str) -> None:
        """Add what hangs on a body, depth first: Pinocchio needs each subtree's joints in one block."""
        for edge in self.tree.edges:
            if edge.inner == inner:
                self._add(edge, self.q_slices[edge.joint.name].start, self.v_slices[edge.joint.name].start)
                self._add_branches(edge.outer)

    def _add(self, edge: Edge, q0: int, v0: int) -> None:
        joint, back = edge.joint, edge.reversed
        frames = [
            pin.SE3(value(joint.rotation), value(joint.at)),
            pin.SE3(value(joint.child_rotation), value(joint.child_at)),
        ]
        inner, outer = frames[::-1] if back else frames
        parent, place = self._place[edge.inner]
        place = place * inner
        for i, piece in enumerate(_pieces(joint, back)):
            parent = self.pin.addJoint(parent, piece.model, place, f"{joint.name}/{i}")
            place = pin.SE3.Identity()
            added = self.pin.joints[parent]
            where = (added.idx_q, added.idx_v, q0 + piece.q, v0 + piece.v)
            if piece.ball:
                self._balls.append((*where, back))
            else:
                self._scalars.append(where)
        self._place[edge.outer] = (parent, place * outer.inverse())

    # --- coordinates ---------------------------------------------------------------------------------------
    def pack(self, values: dict[str, float]) -> np.ndarray:
        """Stack named coordinates (positions) in Sarrus order; names of cut joints are ignored."""
        return np.array([values[n] for n in self.names_q], dtype=float)

    def unpack(self, q: np.ndarray) -> dict[str, float]:
        """Coordinates by name."""
        return dict(zip(self.names_q, map(float, q), strict=True))

    def random_configuration(self, rng: np.random.Generator) -> np.ndarray:
        """Angles within 1.5 rad, shifts within 0.5 m, uniformly distributed unit quaternions."""
        q = np.zeros(self.nq)
        for edge in self.tree.edges:
            q[self.q_slices[edge.joint.name]] = random_coordinates(edge.joint.kind, rng)
        return q

    def integrate(self, q: np.ndarray, v: np.ndarray, dt: float = 1.0) -> np.ndarray:
        """The exact flow of q' = N(q) v over dt for constant v."""
        out = np.array(q, dtype=float)
        for _, _, iq, iv in self._scalars:
            out[iq] += dt * v[iv]
        for _, _, iq, iv, _ in self._balls:
            half = 0.5 * dt * np.asarray(v[iv : iv + 3])
            angle = np.linalg.norm(half)
            step = np.concatenate([[np.cos(angle)], np.sinc(angle / np.pi) * half])
            new = quaternion_product(out[iq : iq + 4], step)
            out[iq : iq + 4] = new / np.linalg.norm(new)
        return out

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """T(q), orthogonal: v_pin = T v and vdot_pin = T vdot."""
        T = np.zeros((self.nv, self.nv))
        for _, pv, _, iv in self._scalars:
            T[pv, iv] = 1.0
        for _, pv, iq, iv, back in self._balls:
            T[pv : pv + 3, iv : iv + 3] = -quaternion_rotation(q[iq : iq + 4]) if back else np.eye(3)
        return T

    def to_pin(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pinocchio's configuration and velocity."""
        out = np.zeros(self.pin.nq)
        for pq, _, iq, _ in self._scalars:
            out[pq] = q[iq]
        for pq, _, iq, _, back in self._balls:
            w, x, y, z = np.asarray(q[iq : iq + 4]) / np.linalg.norm(q[iq : iq + 4])
            sign = -1.0 if back else 1.0
            out[pq : pq + 4] = (sign * x, sign * y, sign * z, w)
        return out, self.velocity_map(q) @ v

    # --- dynamics ------------------------------------------------------------------------------------------
    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """M(q) with rotor inertias on its diagonal."""
        T = self.velocity_map(q)
        upper = np.triu(pin.crba(self.pin, self.pin.createData(), self.to_pin(q, np.zeros(self.nv))[0]))
        full = upper + np.triu(upper, 1).T
        return T.T @ full @ T + np.diag(self.rotor)

    def joint_forces(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Springs and dampers written into the tree's joints, on the left-hand side: k (q - rest) + d v."""
        out = np.zeros(self.nv)
        for edge in self.tree.edges:
            joint, iq, iv = edge.joint, self.q_slices[edge.joint.name], self.v_slices[edge.joint.name]
            out[iv] += float(value(joint.damping)) * np.asarray(v)[iv]
            if joint.nv == 1:
                out[iv] += float(value(joint.stiffness)) * (np.asarray(q)[iq] - float(value(joint.rest)))
        return out

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """h(q, v): Coriolis, gravity, and the joints' own springs and dampers (no other force elements)."""
        nle = pin.nonLinearEffects(self.pin, self.pin.createData(), *self.to_pin(q, v))
        return self.velocity_map(q).T @ nle + self.joint_forces(q, v)

    def aba(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The tree's acceleration without loop closures, by the articulated-body algorithm."""
        T = self.velocity_map(q)
        self.pin.armature = T @ self.rotor  # hinges and sliders only, where T is a permutation
        force = T @ (np.asarray(tau, dtype=float) - self.joint_forces(q, v))
        vdot = T.T @ pin.aba(self.pin, self.pin.createData(), *self.to_pin(q, v), force)
        self.pin.armature = np.zeros(self.nv)
        return vdot

    def energy(self, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
        """(Kinetic energy with rotors, potential energy of gravity), summed body by body, without CRBA."""
        kinetic, potential = 0.5 * float(np.sum(self.rotor * np.asarray(v) ** 2)), 0.0
        for body in self.model.bodies:
            m = self.motion(q, v, body.name)
            mass, arm = float(value(body.mass)), m.R @ value(body.com)
            speed, spin = m.velocity + np.cross(m.omega, arm), m.R.T @ m.omega
            kinetic += 0.5 * (mass * speed @ speed + spin @ value(body.inertia) @ spin)
            potential -= mass * value(self.model.gravity) @ (m.p + arm)
        return float(kinetic), float(potential)

    # --- kinematics ----------------------------------------------------------------------------------------
    def _update(self, q: np.ndarray, v: np.ndarray) -> None:
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if self._seen != (q.tobytes(), v.tobytes()):
            self._T = self.velocity_map(q)
            pq, pv = self.to_pin(q, v)
            pin.computeJointJacobians(self.pin, self.data, pq)
            pin.forwardKinematics(self.pin, self.data, pq, pv, np.zeros(self.nv))
            self._seen = (q.tobytes(), v.tobytes())

    def motion(self, q: np.ndarray, v: np.ndarray, name: str) -> Motion:
        """Everything about a body's frame; accelerations are those for vdot = 0."""
        if name == GROUND:
            none = np.zeros(3)
            return Motion(np.eye(3), none, none, none, none, none, np.zeros((3, self.nv)), np.zeros((3, self.nv)))
        self._update(q, v)
        joint, place = self._place[name]
        pose = self.data.oMi[joint] * place
        if joint == 0:
            none, J = np.zeros(3), np.zeros((6, self.nv))
            return Motion(pose.rotation.copy(), pose.translation.copy(), none, none, none, none, J[:3], J[3:])
        twist = pin.getVelocity(self.pin, self.data, joint, WORLD_ALIGNED)
        change = pin.getClassicalAcceleration(self.pin, self.data, joint, WORLD_ALIGNED)
        J = pin.getJointJacobian(self.pin, self.data, joint, WORLD_ALIGNED) @ self._T
        arm = pose.translation - self.data.oMi[joint].translation
        omega, alpha = twist.angular.copy(), change.angular.copy()
        return Motion(
            pose.rotation.copy(), pose.translation.copy(), omega, twist.linear + np.cross(omega, arm), alpha,
            change.linear + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm)),
            J[3:], J[:3] - pin.skew(arm) @ J[3:],
        )  # fmt: skip

    def body_pose(self, q: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(R, p) of the body's frame in the world."""
        m = self.motion(q, np.zeros(self.nv), name)
        return m.R, m.p

    def body_twist(self, q: np.ndarray, v: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(Angular velocity, velocity of the body's origin), both in world axes."""
        m = self.motion(q, v, name)
        return m.omega, m.velocity

    def body_acceleration(self, q, v, vdot, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(Angular acceleration, acceleration of the body's origin), both in world axes."""
        m = self.motion(q, v, name)
        return m.alpha + m.J_omega @ vdot, m.acceleration + m.J_velocity @ vdot


def random_coordinates(kind: str, rng: np.random.Generator) -> np.ndarray:
    """A random position of one joint of this kind."""
    angle, shift, quat = rng.uniform(-1.5, 1.5, 3), rng.uniform(-0.5, 0.5, 3), rng.normal(size=4)
    quat = quat / np.linalg.norm(quat)
    return {
        "fixed": np.zeros(0),
        "revolute": angle[:1],
        "prismatic": shift[:1],
        "helical": angle[:1],
        "cylindrical": np.array([angle[0], shift[0]]),
        "universal": angle[:2],
        "planar": np.array([shift[0], shift[1], angle[0]]),
        "spherical": quat,
        "free": np.concatenate([shift, quat]),
    }[kind]
