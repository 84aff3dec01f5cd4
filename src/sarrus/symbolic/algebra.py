"""Small vector algebra on CasADi SX: three-vectors, rotations, and user numbers turned into symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.expression import Scalar

# CasADi's type stubs miss many ways to call these
SX: Any = ca.SX
Function: Any = ca.Function


def to_sx(values: Any, parameters: Mapping[str, Any]) -> Any:
    """A number or array as SX, parameters replaced by their symbols. Vectors become columns."""
    if isinstance(values, Scalar):
        return SX(values.evaluate(parameters))
    if isinstance(values, np.ndarray):
        flat = [to_sx(x, parameters) for x in values.ravel(order="F")]
        return ca.reshape(ca.vertcat(*flat), *(values.shape if values.ndim == 2 else (values.size, 1)))
    return SX(float(values))


def column(value: Any) -> Any:
    """A scalar, row, column or list of scalars as one column."""
    if isinstance(value, (list, tuple)):
        return ca.vertcat(*value) if value else SX(0, 1)
    value = SX(value)
    return value.T if value.shape[0] == 1 and value.shape[1] > 1 else value


def zeros3() -> Any:
    """The zero vector."""
    return SX.zeros(3, 1)


def cross(a: Any, b: Any) -> Any:
    """A x b."""
    return ca.vertcat(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def axis_rotation(axis: np.ndarray, angle: Any) -> Any:
    """Rotation about a constant unit axis: a aᵀ + cos (1 - a aᵀ) + sin [a]x."""
    c, s = ca.cos(angle), ca.sin(angle)
    outer = np.outer(axis, axis)
    skew = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    rotation = SX.zeros(3, 3)
    for i in range(3):
        for j in range(3):
            rotation[i, j] = outer[i, j] + c * ((i == j) - outer[i, j]) + s * skew[i, j]
    return rotation


def quaternion_rotation(quat_wxyz: Any) -> Any:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (quat_wxyz[k] for k in range(4))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return ca.vertcat(*[ca.horzcat(*row) for row in rows])


def quaternion_rate_map(quat_wxyz: Any) -> Any:
    """The 4x3 matrix N in dquat/dt = N ω, for ω in body axes: half of quat ∘ (0, ω)."""
    w, x, y, z = (quat_wxyz[k] for k in range(4))
    rows = [[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]
    return 0.5 * ca.vertcat(*[ca.horzcat(*row) for row in rows])


def columns(function: Any, matrix: Any) -> Any:
    """Apply a function of a vector to each column."""
    n = matrix.shape[1]
    return ca.horzcat(*[function(matrix[:, k]) for k in range(n)]) if n else SX(3, 0)


def symmetric_rotation(R: Any, inertia: Any) -> Any:
    """R I Rᵀ of a symmetric I, each entry computed once."""
    half = R @ inertia
    out = SX.zeros(3, 3)
    for i in range(3):
        for j in range(i + 1):
            out[i, j] = out[j, i] = ca.dot(half[i, :], R[j, :])
    return out
