"""What every joint transmits, whether it is in the tree or was cut, as an affine function of the multipliers.

In joint coordinates the reactions of the tree's joints do not occur, and which joint was cut is an accident of the
description. Here each joint and each closure between two bodies is a `Connection` with the same description: with the
multipliers λ of the rows, the wrench (force, then moment about the joint's place, world axes) on its child is

    w = fixed + spread λ.

For a closure or a cut joint that is the push of its own rows. For a joint of the tree it is what the bodies beyond it
need (Newton-Euler) less what the rows give them, less the part that the joint's own motor, spring or gear carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError
from sarrus.model.expression import numeric
from sarrus.model.geometry import frame_with_axis
from sarrus.model.parts import GROUND, Closure, Feature, Joint, Model
from sarrus.model.tree import Tree, span
from sarrus.symbolic.bodies import body_function, grip_function
from sarrus.symbolic.closures import cut_closure


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint or a closure between two bodies, at one state.

    Attributes:
        name: of the joint or closure.
        kind: of the joint ("revolute", …) or closure ("point", …).
        parent: body on the first side.
        child: body on the second side: wrenches act on it, and the opposite ones on the parent.
        point: its place on the child, world axes [m].
        axes: its frame on the child: the columns are directions in world axes, the third its axis.
        spread: wrench on the child for each multiplier, shape (6, m): force, then moment about `point`.
        carried: the same with the part that a gear or lock on this joint's own coordinates carries.
        in_tree: whether the joint has coordinates of its own in this machine.
    """

    name: str
    kind: str
    parent: str
    child: str
    point: np.ndarray
    axes: np.ndarray
    spread: np.ndarray
    carried: np.ndarray
    in_tree: bool


@dataclass(frozen=True, eq=False)
class Bodies:
    """The bodies of a machine as functions of numbers; built once, asked at many states."""

    system: System
    model: Model
    tree: Tree
    grip: Any
    terms: Any

    @staticmethod
    def of(system: System) -> Bodies:
        """Derive them from the machine's description."""
        model = system.description
        if not isinstance(model, Model):
            raise SarrusError(f"{system.name}: joints need a machine described by bodies, not by a Lagrangian")
        return Bodies(system, model, span(model), grip_function(model), body_function(model))

    def at(self, state: State) -> Place:
        """Everything at one state."""
        s = self.system
        values = self.terms.call([np.asarray(x, dtype=float) for x in (state.t, state.q, state.v, s.p)])
        poses, need, inertia, J, columns, rotors = (np.array(x.full()) for x in values)
        grip = self.grip.call([np.asarray(x, dtype=float) for x in (state.t, state.q, state.v, s.p, poses)])
        rows, inputs, push = (np.array(x.full()) for x in grip)
        names = [b.name for b in self.model.bodies]
        pose = {GROUND: (np.eye(3), np.zeros(3))}
        for k, name in enumerate(names):
            x = poses[12 * k : 12 * k + 12, 0]
            pose[name] = (x[:9].reshape(3, 3, order="F"), x[9:])
        return Place(
            self, state, pose, rows.reshape(s.layout.m, len(push)), inputs.reshape(s.layout.nu, len(push)), push[:, 0],
            need, inertia, J, columns, rotors.ravel(),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Place:
    """The bodies at one state: poses, grips of rows and inputs, needs; see `symbolic.bodies`."""

    bodies: Bodies
    state: State
    pose: dict[str, tuple[np.ndarray, np.ndarray]]
    rows: np.ndarray
    inputs: np.ndarray
    push: np.ndarray
    need: np.ndarray
    inertia: np.ndarray
    J: np.ndarray
    columns: np.ndarray
    rotors: np.ndarray

    def connections(self) -> list[Connection]:
        """All joints in the order written (but free ones), then the closures."""
        model, found = self.bodies.model, []
        edges = {edge.joint.name: edge for edge in self.bodies.tree.edges}
        for joint in model.joints:
            if joint.kind == "free":
                continue
            if joint.name in edges:
                found.append(self._tree_joint(joint))
            else:
                found.append(self._closure(cut_closure(joint), joint.kind))
        return found + [self._closure(c, c.kind) for c in model.closures if _has_wrench(c)]

    # --- wrenches --------------------------------------------------------------------------------------------------
    def wrench(self, grips: np.ndarray, bodies: Sequence[str], point: np.ndarray) -> np.ndarray:
        """Force and moment about a point (6, n), world axes, of n pushes given over V (n, nv + 6 nb), on some bodies.

        Args:
            grips: rows of generalised forces over V.
            bodies: on which bodies together.
            point: moments are about it [m].
        """
        nv = self.bodies.system.layout.nv
        out = np.zeros((6, len(grips)))
        for k, body in enumerate(self.bodies.model.bodies):
            if body.name in bodies:
                R, p = self.pose[body.name]
                part = grips[:, nv + 6 * k : nv + 6 * k + 6]
                force = R @ part[:, 3:].T
                out[:3] += force
                out[3:] += R @ part[:, :3].T + np.cross(p - point, force, axisb=0, axisc=0)
        return out

    def needs(self, vdot: np.ndarray) -> np.ndarray:
        """What the bodies take from joints, rows, inputs and joint springs at an acceleration, over V."""
        nv = self.bodies.system.layout.nv
        out = np.zeros(nv + self.need.size)
        for k in range(self.need.shape[1]):
            moved = self.inertia[:, 6 * k : 6 * k + 6] @ (self.J[:, nv * k : nv * (k + 1)] @ vdot)
            out[nv + 6 * k : nv + 6 * k + 6] = self.need[:, k] + moved
        return out

    def beyond(self, joint: Joint) -> tuple[str, ...]:
        """The bodies that a tree joint carries."""
        carried: list[str] = []
        for edge in self.bodies.tree.edges:
            if edge.joint is joint or edge.inner in carried:
                carried.append(edge.outer)
        return tuple(carried)

    def own_part(self, joint: Joint, point: np.ndarray) -> tuple[slice, np.ndarray]:
        """The joint's velocities, and the wrench across it (6, its velocities) for a unit torque or force on each.

        The wrench is in the span of the joint's own freedoms: a motor on a hinge is a pure moment about its axis.
        """
        edges = self.bodies.tree.edges
        k = next(k for k, edge in enumerate(edges) if edge.joint is joint)
        first = sum(edge.joint.nv for edge in edges[:k])
        where = slice(first, first + joint.nv)
        outer = edges[k].outer
        turn, shift = self.columns[:3, where], self.columns[3:, where]
        shift = shift + np.cross(turn, point - self.pose[outer][1], axisa=0, axisc=0)
        if joint.kind == "helical":  # the drive of a screw is a torque
            shift = np.zeros_like(shift)
        freedom = np.vstack([shift, turn])
        return where, freedom @ np.linalg.pinv(freedom.T @ freedom) if joint.nv else freedom

    def _tree_joint(self, joint: Joint) -> Connection:
        point, axes = self._frame(joint.child, joint.child_at, joint.child_rotation @ frame_with_axis(joint.axis))
        sign = self.sign(joint)
        carried = -sign * self.wrench(self.rows, self.beyond(joint), point)
        where, own = self.own_part(joint, point)
        spread = carried - sign * own @ self.rows[:, where].T
        return Connection(
            joint.name, joint.kind, joint.parent, joint.child, point, axes, spread, carried, True
        )  # fmt: skip

    def sign(self, joint: Joint) -> float:
        """+1 if the bodies beyond a tree joint hang on its child, -1 if on its parent."""
        return 1.0 if joint.child in self.beyond(joint) else -1.0

    def _closure(self, c: Closure, kind: str) -> Connection:
        layout = self.bodies.system.layout
        point, _ = self._frame(c.b.body, c.b.at, c.b.frame)
        R = self.pose[c.a.body][0]
        axes = np.eye(3) if c.kind in ("point", "distance", "point-on-curve") else R @ c.a.frame
        rows = layout.group_rows(c.name)
        grips = np.zeros_like(self.rows)
        grips[rows] = self.rows[rows]
        if c.b.body != GROUND:
            spread = self.wrench(grips, (c.b.body,), point)
        else:
            spread = -self.wrench(grips, (c.a.body,), point)
        return Connection(c.name, kind, c.a.body, c.b.body, point, axes, spread, spread, False)

    def _frame(self, body: str, at: Any, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        R, p = self.pose[body]
        return p + R @ self.number(at), R @ frame

    def number(self, at: Any) -> np.ndarray:
        """A user's vector at the machine's parameters."""
        system = self.bodies.system
        return np.asarray(numeric(at, system.parameters), dtype=float)


def _has_wrench(c: Closure) -> bool:
    features: tuple[Feature, Feature] = (c.a, c.b)
    return features[0].body != features[1].body
