"""Inertia tensors of common shapes, about the centre of mass [kg m²], and the parallel-axis rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarrus.model.expression import Scalar, as_array, as_number
from sarrus.model.geometry import unit_axis


def _axisymmetric(along: Any, across: Any, axis: Any) -> np.ndarray:
    """Across · (I - a aᵀ) + along · a aᵀ, for the unit vector a."""
    a = unit_axis(axis)
    projector = np.outer(a, a)
    return _tidy(across * (np.eye(3) - projector) + along * projector)


def _tidy(tensor: np.ndarray) -> np.ndarray:
    return as_array(tensor, (3, 3))


def _positive(name: str, value: Any) -> Any:
    number = as_number(value)
    if not isinstance(number, Scalar) and not number > 0.0:
        raise ValueError(f"{name} must be positive, got {number}")
    return number


def rod(mass: Any, length: Any, axis: Any = "x") -> np.ndarray:
    """Slender uniform rod along `axis`: m l²/12 across it, nothing about it.

    Args:
        mass: [kg].
        length: [m].
        axis: letter or vector.
    """
    m, length = _positive("mass", mass), _positive("length", length)
    return _axisymmetric(0.0, m * length * length / 12.0, axis)


def box(mass: Any, size: Any) -> np.ndarray:
    """Solid box with edge lengths `size` = (x, y, z).

    Args:
        mass: [kg].
        size: edge lengths along x, y, z [m].
    """
    m = _positive("mass", mass)
    x, y, z = (_positive("size", s) for s in size)
    out = np.zeros((3, 3), dtype=object)
    out[0, 0], out[1, 1], out[2, 2] = m * (y * y + z * z) / 12, m * (x * x + z * z) / 12, m * (x * x + y * y) / 12
    return _tidy(out)


def cylinder(mass: Any, radius: Any, length: Any, axis: Any = "z", inner_radius: Any = 0.0) -> np.ndarray:
    """Solid cylinder (or tube, with `inner_radius`) along `axis`.

    Args:
        mass: [kg].
        radius: outer radius [m].
        length: [m].
        axis: letter or vector.
        inner_radius: of a tube [m].
    """
    m, r, length = _positive("mass", mass), _positive("radius", radius), _positive("length", length)
    inner = as_number(inner_radius)
    if not 0.0 <= float(inner) < float(r):
        raise ValueError(f"inner_radius must be at least 0 and less than radius, got {inner} in {r}")
    square = r * r + inner * inner
    return _axisymmetric(m * square / 2.0, m * (3.0 * square + length * length) / 12.0, axis)


def sphere(mass: Any, radius: Any) -> np.ndarray:
    """Solid sphere.

    Args:
        mass: [kg].
        radius: [m].
    """
    m, r = _positive("mass", mass), _positive("radius", radius)
    return _tidy(0.4 * m * r * r * np.eye(3))


def point_mass(mass: Any, at: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    """A point mass at the offset `at` from the reference point (zero tensor when at it).

    Args:
        mass: [kg].
        at: its place, from the reference point [m].
    """
    return parallel_axis(np.zeros((3, 3)), mass, at)


def parallel_axis(inertia: Any, mass: Any, offset: Any) -> np.ndarray:
    """Move a tensor from the centre of mass to a point at `offset` from it: I + m (d·d 1 - d dᵀ).

    Args:
        inertia: tensor about the centre of mass [kg m²].
        mass: [kg].
        offset: from the centre of mass to the new reference point [m].
    """
    d = as_array(offset, (3,))
    tensor = as_array(inertia, (3, 3))
    return _tidy(tensor + as_number(mass) * (np.dot(d, d) * np.eye(3) - np.outer(d, d)))
