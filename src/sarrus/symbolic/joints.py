"""Relative motion across one joint: pose, velocity columns and velocity-dependent acceleration.

Everything is expressed in the frame of the body nearer to the ground (the inner one). With v the joint's velocities,

    angular velocity of the outer body  ω = Sw v,      rate of its origin  u = Su v,
    their rates at constant v           cw, cu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.geometry import perpendiculars
from sarrus.model.parts import Joint
from sarrus.symbolic.algebra import SX, axis_rotation, cross, quaternion_rotation, to_sx, zeros3


@dataclass(frozen=True)
class Motion:
    """Pose (R, p) of the outer body in the inner one, columns Sw, Su and biases cw, cu."""

    R: Any
    p: Any
    Sw: Any
    Su: Any
    cw: Any
    cu: Any


def joint_motion(joint: Joint, q: Any, v: Any, parameters: Any, reverse: bool) -> Motion:
    """Motion of the child in the parent, or of the parent in the child if the tree passes the joint backwards."""
    core = _core(joint, q, v, to_sx(joint.pitch, parameters))
    forward = _place(core, joint, v, parameters)
    return _reversed(forward, v) if reverse else forward


def _core(joint: Joint, q: Any, v: Any, pitch: Any) -> Motion:
    """The bare joint, in its own frame on the parent side."""
    a = SX(joint.axis)
    none, eye, zero = SX.zeros(3, joint.nv), SX.eye(3), zeros3()
    still = (zero, zero)
    turn = ca.densify(eye)
    match joint.kind:
        case "fixed":
            return Motion(turn, zero, none, none, *still)
        case "revolute":
            return Motion(axis_rotation(joint.axis, q), zero, a, zero, *still)
        case "prismatic":
            return Motion(turn, a * q, zero, a, *still)
        case "helical":
            lead = pitch / (2 * math.pi)
            return Motion(axis_rotation(joint.axis, q), a * q * lead, a, a * lead, *still)
        case "cylindrical":
            columns = (ca.horzcat(a, zero), ca.horzcat(zero, a))
            return Motion(axis_rotation(joint.axis, q[0]), a * q[1], *columns, *still)
        case "universal":
            first = axis_rotation(joint.axis, q[0])
            second = first @ SX(joint.axis2)
            bias = cross(a * v[0], second * v[1])
            R = first @ axis_rotation(joint.axis2, q[1])
            return Motion(R, zero, ca.horzcat(a, second), none, bias, zero)
        case "planar":
            t1, t2 = (SX(t) for t in perpendiculars(joint.axis))
            Sw, Su = ca.horzcat(zero, zero, a), ca.horzcat(t1, t2, zero)
            return Motion(axis_rotation(joint.axis, q[2]), t1 * q[0] + t2 * q[1], Sw, Su, *still)
        case "spherical":
            R = quaternion_rotation(q)  # ω = R v: at constant v its rate is ω x ω = 0
            return Motion(R, zero, R, none, *still)
        case "free":
            R = quaternion_rotation(q[3:7])
            Sw, Su = ca.horzcat(SX.zeros(3, 3), R), ca.horzcat(turn, SX.zeros(3, 3))
            return Motion(R, q[0:3], Sw, Su, *still)
    raise ValueError(f"unknown joint kind {joint.kind!r}")


def _place(core: Motion, joint: Joint, v: Any, parameters: Any) -> Motion:
    """Put the bare joint between its offset frames: X = T(at) R(rotation) J R(child_rotation)ᵀ T(-child_at)."""
    R0, R1 = SX(joint.rotation), SX(joint.child_rotation)
    R = R0 @ core.R @ R1.T
    Sw, cw = R0 @ core.Sw, R0 @ core.cw
    p, Su, cu = to_sx(joint.at, parameters) + R0 @ core.p, R0 @ core.Su, R0 @ core.cu
    if np.any(joint.child_at != 0.0):
        d = R @ to_sx(joint.child_at, parameters)
        w = Sw @ v
        p = p - d
        Su = Su + (ca.horzcat(*[cross(d, Sw[:, k]) for k in range(joint.nv)]) if joint.nv else Su)
        cu = cu - cross(cw, d) - cross(w, cross(w, d))
    return Motion(R, p, Sw, Su, cw, cu)


def _reversed(x: Motion, v: Any) -> Motion:
    """The inner body seen from the outer one: with y = u - ω x p, ω' = -Rᵀω and u' = -Rᵀy."""
    T = x.R.T
    w, u = x.Sw @ v, x.Su @ v
    y = u - cross(w, x.p)
    ydot = x.cu - cross(x.cw, x.p) - cross(w, u)
    n = x.Sw.shape[1]
    Y = ca.horzcat(*[x.Su[:, k] - cross(x.Sw[:, k], x.p) for k in range(n)]) if n else x.Su
    return Motion(T, -T @ x.p, -T @ x.Sw, -T @ Y, -T @ x.cw, -T @ (ydot - cross(w, y)))
