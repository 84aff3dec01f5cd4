"""Features: the named places on bodies that closures, forces and frames refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sarrus.model.expression import as_array
from sarrus.model.geometry import frame_with_axis, rotation_matrix, unit_axis
from sarrus.model.parts import Body, Feature


def body_name(body: Any) -> str:
    """The name of a body given as its record or as its name."""
    if isinstance(body, Body):
        return body.name
    if isinstance(body, str):
        return body
    raise TypeError(f"expected a body or its name, got {type(body).__name__}")


def point(at: Any) -> np.ndarray:
    """Three numbers; two are the x and z of a planar machine."""
    raw = np.array(at, dtype=object)
    if raw.shape == (2,):
        raw = np.array([raw[0], 0.0, raw[1]], dtype=object)
    return as_array(raw, (3,))


def _feature(kind: str, body: Any, at: Any, frame: Callable[[], np.ndarray], expression: Any = None) -> Feature:
    """Build a feature; a wrong value becomes its `problem`, so that finalize() can report all of them together."""
    try:
        return Feature(kind, body_name(body), point(at), frame(), expression, flat=np.shape(at) == (2,))
    except (ValueError, TypeError) as error:
        name = getattr(body, "name", body)
        return Feature(kind, str(name), np.zeros(3), np.eye(3), problem=f"{kind}_on({name!r}): {error}")


def _axis_feature(kind: str, body: Any, at: Any, axis: Any) -> Feature:
    return _feature(kind, body, at, lambda: frame_with_axis(unit_axis(axis)))


def point_on(body: Any, at: Any = (0, 0, 0)) -> Feature:
    """A point of a body. Two points closed together: 3 rows, a spherical joint.

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
    """
    return _feature("point", body, at, lambda: np.eye(3))


def spherical_on(body: Any, at: Any = (0, 0, 0)) -> Feature:
    """One half of a spherical joint: the same as `point_on`.

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
    """
    return point_on(body, at)


def revolute_on(body: Any, at: Any, axis: Any = "y") -> Feature:
    """One half of a revolute joint: a point and an axis [5 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: letter or vector, in the body's frame.
    """
    return _axis_feature("revolute", body, at, axis)


def prismatic_on(body: Any, at: Any, axis: Any, rotation: Any = None) -> Feature:
    """One half of a prismatic joint [5 rows].

    `rotation` turns the axis, and with it the frame that must stay parallel to the other side's.

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: letter or vector, in the body's frame.
        rotation: 3x3 matrix or quaternion (w, x, y, z).
    """
    return _feature("prismatic", body, at, lambda: rotation_matrix(rotation) @ frame_with_axis(unit_axis(axis)))


def cylindrical_on(body: Any, at: Any, axis: Any) -> Feature:
    """One half of a cylindrical joint: two lines kept in one [4 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: letter or vector, in the body's frame.
    """
    return _axis_feature("cylindrical", body, at, axis)


def universal_on(body: Any, at: Any, axis: Any) -> Feature:
    """One half of a universal joint: two points together, two axes kept at a right angle [4 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: letter or vector, in the body's frame.
    """
    return _axis_feature("universal", body, at, axis)


def planar_on(body: Any, at: Any, axis: Any) -> Feature:
    """One half of a planar joint: two planes, given by their normals, kept in one [3 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: the plane's normal, letter or vector.
    """
    return _axis_feature("planar", body, at, axis)


def weld_on(body: Any, at: Any = (0, 0, 0), rotation: Any = None) -> Feature:
    """One half of a weld: two frames kept in one [6 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        rotation: of the frame in the body, 3x3 matrix or quaternion (w, x, y, z).
    """
    return _feature("weld", body, at, lambda: rotation_matrix(rotation))


def line_on(body: Any, at: Any, axis: Any) -> Feature:
    """A straight line of a body; close a point on it [2 rows].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: letter or vector, in the body's frame.
    """
    return _axis_feature("line", body, at, axis)


def plane_on(body: Any, at: Any, axis: Any) -> Feature:
    """A plane of a body, by a point and its normal; close a point on it [1 row].

    Args:
        body: the body (or its name).
        at: position in the body's frame [m]; (x, z) in a planar machine.
        axis: the plane's normal, letter or vector.
    """
    return _axis_feature("plane", body, at, axis)


def curve_on(body: Any, expression: Callable[[Any], Any], at: Any = (0, 0, 0)) -> Feature:
    """A curve or surface fixed to a body, as a function that is zero on it; close a point on it.

    Args:
        body: the body that carries it.
        expression: function of the position p = (p[0], p[1], p[2]) in the body's axes, measured from `at`. Returns one
            value (a surface, or a curve of a planar machine) or a list of values (two for a curve in space).
        at: origin of p in the body.
    """

    def frame() -> np.ndarray:
        if not callable(expression):
            raise TypeError("`expression` must be a function of the position p")
        return np.eye(3)

    return _feature("curve", body, at, frame, expression)


def surface_on(body: Any, expression: Callable[[Any], Any], at: Any = (0, 0, 0)) -> Feature:
    """A surface fixed to a body, as a function of position that is zero on it [1 row]; as for `curve_on`."""
    return curve_on(body, expression, at)
