"""Axes, rotations and points as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarrus.model.expression import as_array

_LETTERS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def unit_axis(axis: Any) -> np.ndarray:
    """A unit vector from a letter ("x", "-y") or a vector of numbers."""
    if isinstance(axis, str):
        sign, letter = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if letter not in _LETTERS:
            raise ValueError(f"unknown axis {axis!r}: use 'x', 'y', 'z', '-x', '-y', '-z' or a vector of 3 numbers")
        return sign * np.array(_LETTERS[letter]) + 0.0
    raw = as_array(axis, (3,))
    if raw.dtype == object:
        raise ValueError(f"axis {axis!r} contains a named parameter: axes and rotations must be plain numbers")
    length = float(np.linalg.norm(raw))
    if not np.isfinite(length) or length == 0.0:
        raise ValueError(f"axis {axis!r} has no direction: give a vector of finite numbers, not all zero")
    unit = raw / length
    return np.where(np.abs(unit) < 1e-15, 0.0, unit)


def rotation_about(axis: Any, angle: float) -> np.ndarray:
    """Rotation matrix about an axis (Rodrigues).

    Args:
        axis: letter or vector.
        angle: [rad].
    """
    a = unit_axis(axis)
    skew = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * (skew @ skew)


def rotation_matrix(rotation: Any) -> np.ndarray:
    """A rotation from None (identity), a 3x3 matrix, or a quaternion (w, x, y, z)."""
    if rotation is None:
        return np.eye(3)
    values = as_array(rotation, np.shape(rotation))
    if values.dtype == object:
        raise ValueError("rotation contains a named parameter: axes and rotations must be plain numbers")
    if values.shape == (4,):
        length = float(np.linalg.norm(values))
        if not np.isfinite(length) or length == 0.0:
            raise ValueError(f"rotation {rotation!r}: a quaternion must be finite and not zero")
        return quaternion_to_matrix(values / length)
    if values.shape != (3, 3):
        raise ValueError(f"rotation must be a 3x3 matrix or a quaternion (w, x, y, z), got shape {values.shape}")
    if not np.allclose(values @ values.T, np.eye(3), atol=1e-9) or np.linalg.det(values) < 0:
        raise ValueError("rotation is not a rotation matrix: its columns must be orthonormal and right-handed")
    return values


def quaternion_to_matrix(quat_wxyz: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quat_wxyz
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def perpendiculars(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that complete `axis` to a right-handed frame (t1, t2, axis).

    For a coordinate axis they are positive coordinate axes: z gives (x, y), -y gives (x, z).
    """
    k = int(np.argmax(np.abs(axis)))
    if np.count_nonzero(axis) == 1:
        first = (k + 1) % 3 if axis[k] > 0 else (k + 2) % 3
        seed = np.eye(3)[first]
    else:
        seed = np.eye(3)[int(np.argmin(np.abs(axis)))]
    t1 = seed - axis * (axis @ seed)
    t1 = t1 / np.linalg.norm(t1) + 0.0
    return t1, np.cross(axis, t1) + 0.0


def frame_with_axis(axis: np.ndarray) -> np.ndarray:
    """Rotation matrix whose third column is `axis`."""
    t1, t2 = perpendiculars(axis)
    return np.column_stack([t1, t2, axis])
