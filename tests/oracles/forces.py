"""Generalised forces of the force elements and actuators, through Pinocchio's Jacobians."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pinocchio as pin

from sarrus.model.parts import Feature, Joint, Load

from .constraints import State, coordinate_indices
from .pinocchio_tree import PinocchioTree, value


class Now:
    """What a user's force function gets as k: numbers (CasADi DM columns) at one state."""

    def __init__(self, state: State):
        self.t = state.t
        self._state = state

    def position(self, feature: Feature) -> ca.DM:
        """World position of a feature."""
        return ca.DM(self._state.point(feature).x)

    def velocity(self, feature: Feature) -> ca.DM:
        """World velocity of a feature."""
        return ca.DM(self._state.point(feature).rate)


def _numbers(x: Any) -> np.ndarray:
    if isinstance(x, (list, tuple)):
        x = ca.vertcat(*x)
    return np.asarray(ca.DM(x).full()).ravel() if isinstance(x, (ca.DM, ca.SX)) else value(x)


def _load(state: State, load: Load) -> np.ndarray:
    m = state.tree.motion(state.q, state.v, load.at.body)
    f = _numbers(load.value(Now(state)) if callable(load.value) else load.value)
    f = m.R @ f if load.local else f
    return m.J_omega.T @ f if load.kind == "torque" else state.point(load.at).J.T @ f


def _cut_joint(state: State, joint: Joint) -> np.ndarray:
    """Spring and damper of a revolute or prismatic joint left out of the tree, its coordinate measured."""
    parent, child = (state.tree.motion(state.q, state.v, b) for b in (joint.parent, joint.child))
    R_p, R_c = parent.R @ value(joint.rotation), child.R @ value(joint.child_rotation)
    axis = R_p @ value(joint.axis)
    if joint.kind == "revolute":
        coordinate = float(value(joint.axis) @ pin.log3(R_p.T @ R_c))
        J = axis @ (child.J_omega - parent.J_omega)
    elif joint.kind == "prismatic":
        a = state.point(Feature("point", joint.parent, joint.at, np.eye(3)))
        b = state.point(Feature("point", joint.child, joint.child_at, np.eye(3)))
        coordinate = axis @ (b.x - a.x)
        J = state.direction(joint.parent, value(joint.rotation) @ value(joint.axis)).dot(b - a).J
    else:
        return np.zeros(state.tree.nv)
    pull = float(value(joint.stiffness)) * (coordinate - float(value(joint.rest)))
    return -J * (pull + float(value(joint.damping)) * (J @ state.v))


def applied_force(tree: PinocchioTree, q, v, t: float = 0.0) -> np.ndarray:
    """Springs, joint springs (on combinations too), forces and torques, as a force on the right-hand side.

    Springs and dampers of joints of the tree are part of `PinocchioTree.bias`; those of cut joints are here.
    """
    state = State(tree, np.asarray(q, dtype=float), np.asarray(v, dtype=float), float(t))
    out = np.zeros(tree.nv)
    for s in tree.model.springs:
        length = (state.point(s.b) - state.point(s.a)).norm()
        pull = float(value(s.stiffness)) * (length.x - float(value(s.length)))
        out -= length.J * (pull + float(value(s.damping)) * length.rate)
    for s in tree.model.joint_springs:
        row, x = np.zeros(tree.nv), 0.0
        for name, coefficient in s.coefficients.items():
            iq, iv = coordinate_indices(tree, name)
            row[iv] += float(value(coefficient))
            x += float(value(coefficient)) * state.q[iq]
        out -= row * (
            float(value(s.stiffness)) * (x - float(value(s.rest))) + float(value(s.damping)) * (row @ state.v)
        )
    for load in tree.model.loads:
        out += _load(state, load)
    for joint in tree.tree.cuts:
        out += _cut_joint(state, joint)
    return out


def spring_energy(tree: PinocchioTree, q, t: float = 0.0) -> float:
    """Potential energy of all springs (of the tree's joints too), without gravity."""
    state = State(tree, np.asarray(q, dtype=float), np.zeros(tree.nv), float(t))
    total = 0.0
    for s in tree.model.springs:
        stretch = (state.point(s.b) - state.point(s.a)).norm().x - float(value(s.length))
        total += 0.5 * float(value(s.stiffness)) * stretch**2
    for s in tree.model.joint_springs:
        x = sum(float(value(c)) * state.q[coordinate_indices(tree, n)[0]] for n, c in s.coefficients.items())
        total += 0.5 * float(value(s.stiffness)) * (x - float(value(s.rest))) ** 2
    for edge in tree.tree.edges:
        if edge.joint.nv == 1:
            x = state.q[tree.q_slices[edge.joint.name].start]
            total += 0.5 * float(value(edge.joint.stiffness)) * (x - float(value(edge.joint.rest))) ** 2
    return float(total)


def actuation(tree: PinocchioTree, q) -> np.ndarray:
    """B(q): one column for each actuator, in the order written."""
    state = State(tree, np.asarray(q, dtype=float), np.zeros(tree.nv), 0.0)
    columns = []
    for a in tree.model.actuators:
        if a.kind == "point":
            direction = value(a.direction)
            m = tree.motion(state.q, state.v, a.at.body)
            columns.append(state.point(a.at).J.T @ (m.R @ direction if a.local else direction))
            continue
        column = np.zeros(tree.nv)
        for name, coefficient in a.coefficients.items():
            column[coordinate_indices(tree, name)[1]] += float(value(coefficient))
        columns.append(column)
    return np.array(columns).reshape(-1, tree.nv).T
