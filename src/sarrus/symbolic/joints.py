"""Relative motion across one joint: pose, velocity columns and velocity-dependent acceleration.

The outer body hangs on the inner one (the one nearer to the ground). With v the joint's velocities:

    R, p     pose of the outer body in the inner one,
    Sb v     its relative angular velocity, in outer axes,        cb   the rate of that at constant v, outer axes
    Su v     the rate of p, in inner axes,                        cu   the rate of that at constant v, inner axes.

Columns are given in the axes in which they are constant for most joints, so that little is left to compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.geometry import perpendiculars
from sarrus.model.parts import Joint
from sarrus.symbolic.algebra import SX, axis_rotation, columns, cross, quaternion_rotation, to_sx, zeros3


@dataclass(frozen=True)
class Motion:
    """Pose, columns and biases of one joint; see the module's text."""

    R: Any
    p: Any
    Sb: Any
    Su: Any
    cb: Any
    cu: Any


def joint_motion(joint: Joint, q: Any, v: Any, parameters: Any, reverse: bool) -> Motion:
    """Motion of the child in the parent, or of the parent in the child if the tree passes the joint backwards."""
    core = _core(joint, q, v, to_sx(joint.pitch, parameters))
    forward = _place(core, joint, v, parameters)
    return _reversed(forward, v) if reverse else forward


def _core(joint: Joint, q: Any, v: Any, pitch: Any) -> Motion:
    """The bare joint: inner axes are those of the joint frame on the parent, outer axes those on the child."""
    a = SX(joint.axis)
    none, eye, zero = SX.zeros(3, joint.nv), ca.densify(SX.eye(3)), zeros3()
    still = (zero, zero)
    match joint.kind:
        case "fixed":
            return Motion(eye, zero, none, none, *still)
        case "revolute":
            return Motion(axis_rotation(joint.axis, q), zero, a, none, *still)
        case "prismatic":
            return Motion(eye, a * q, none, a, *still)
        case "helical":
            lead = pitch / (2 * math.pi)
            return Motion(axis_rotation(joint.axis, q), a * q * lead, a, a * lead, *still)
        case "cylindrical":
            return Motion(axis_rotation(joint.axis, q[0]), a * q[1], ca.horzcat(a, zero), ca.horzcat(zero, a), *still)
        case "universal":  # the second turn carries the first axis: its rate is -(a2 v2) x (first axis v1)
            second = axis_rotation(joint.axis2, q[1])
            first_axis = second.T @ a
            bias = -cross(SX(joint.axis2) * v[1], first_axis * v[0])
            R = axis_rotation(joint.axis, q[0]) @ second
            return Motion(R, zero, ca.horzcat(first_axis, SX(joint.axis2)), none, bias, zero)
        case "planar":
            t1, t2 = (SX(t) for t in perpendiculars(joint.axis))
            Sb, Su = ca.horzcat(zero, zero, a), ca.horzcat(t1, t2, zero)
            return Motion(axis_rotation(joint.axis, q[2]), t1 * q[0] + t2 * q[1], Sb, Su, *still)
        case "spherical":
            return Motion(quaternion_rotation(q), zero, eye, none, *still)
        case "free":
            Sb, Su = ca.horzcat(SX.zeros(3, 3), eye), ca.horzcat(eye, SX.zeros(3, 3))
            return Motion(quaternion_rotation(q[3:7]), q[0:3], Sb, Su, *still)
    raise ValueError(f"unknown joint kind {joint.kind!r}")


def _place(core: Motion, joint: Joint, v: Any, parameters: Any) -> Motion:
    """Put the bare joint between its offset frames: X = T(at) R(rotation) J R(child_rotation)ᵀ T(-child_at)."""
    R0, R1 = SX(joint.rotation), SX(joint.child_rotation)
    R = R0 @ core.R @ R1.T
    Sb, cb = R1 @ core.Sb, R1 @ core.cb
    p, Su, cu = to_sx(joint.at, parameters) + R0 @ core.p, R0 @ core.Su, R0 @ core.cu
    if np.any(joint.child_at != 0.0):
        d = to_sx(joint.child_at, parameters)  # outer axes, constant
        w = Sb @ v
        p = p - R @ d
        Su = Su - R @ columns(lambda s: cross(s, d), Sb)
        cu = cu - R @ (cross(cb, d) + cross(w, cross(w, d)))
    return Motion(R, p, Sb, Su, cb, cu)


def _reversed(x: Motion, v: Any) -> Motion:
    """The inner body seen from the outer one: with ω = R Sb v and y = u - ω x p, ω' = -ω and p'̇ = -Rᵀy.

    The rate of Rᵀy seen in its own axes is Rᵀ(ẏ - ω x y); the rate of ω itself, in the inner axes, is R cb.
    """
    Sw, cw, w, u = x.R @ x.Sb, x.R @ x.cb, x.R @ (x.Sb @ v), x.Su @ v
    y = u - cross(w, x.p)
    rate = x.cu - cross(cw, x.p) - cross(w, u) - cross(w, y)
    arm = columns(lambda s: cross(s, x.p), Sw)
    return Motion(x.R.T, -x.R.T @ x.p, -Sw, -x.R.T @ (x.Su - arm), -cw, -x.R.T @ rate)
