"""What a body looks like, guessed from its mass, its inertia and the places where joints hold it.

Three kinds of shape are enough: bars, flat plates and balls. Two joints make a bar, three or more in one plane a plate;
a body whose inertia tells more than its joints do is drawn as the cylinder, disc or box of that inertia.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.model.expression import numeric
from sarrus.model.parts import GROUND, Body, Model

HOLDS = ("fixed", "revolute", "prismatic", "helical", "cylindrical", "universal", "spherical")  # at a certain point
SLENDER = 0.3  # a solid is a bar if it is thinner than this part of its length
CORNERS = 28  # of a disc's edge


@dataclass(frozen=True, eq=False)
class Shape:
    """A piece of a body, in the body's frame.

    Attributes:
        kind: "bar" (between two points), "plate" (corners in order) or "ball" (one point).
        points: shape (count, 3) [m].
        size: radius of a bar or ball, half the thickness of a plate [m].
        normal: of a plate.
        inside: it slides within another bar, and is hidden by it.
    """

    kind: str
    points: np.ndarray
    size: float
    normal: np.ndarray | None = None
    inside: bool = False


def places(model: Model, p: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Points of each body (and of the ground) where joints, closures, springs and named frames sit, each once."""
    found: dict[str, list[Any]] = {GROUND: [], **{body.name: [] for body in model.bodies}}
    for joint in model.joints:
        if joint.kind in HOLDS:
            found[joint.parent].append(joint.at)
            found[joint.child].append(joint.child_at)
    for closure in model.closures:
        if closure.a.kind not in ("line", "plane", "curve"):  # those have no certain point
            found[closure.a.body].append(closure.a.at)
        found[closure.b.body].append(closure.b.at)
    for feature in (*model.frames.values(), *(end for spring in model.springs for end in (spring.a, spring.b))):
        found[feature.body].append(feature.at)
    return {name: _distinct([np.asarray(numeric(at, p), dtype=float) for at in each]) for name, each in found.items()}


def _distinct(points: list[np.ndarray]) -> np.ndarray:
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > 1e-9 for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, 3)


def thickness(model: Model, p: Mapping[str, float], span: float) -> float:
    """Radius of bars for the whole machine: in keeping with its extent and with its bodies' [m].

    Args:
        model: the machine.
        p: parameter values by name.
        span: its extent when it starts [m].
    """
    held = places(model, p)
    lengths = [float(np.ptp(points, axis=0).max()) for points in held.values() if len(points) > 1]
    for body in model.bodies:
        solid = _equivalent(body, p)
        if solid is not None and len(held[body.name]) < 2:
            lengths.append(float(np.max(solid[0])))
    lengths = [x for x in lengths if x > 0]
    return min(0.013 * span, 0.05 * float(np.median(lengths))) if lengths else 0.013 * span


def body_shapes(model: Model, body: Body, points: np.ndarray, p: Mapping[str, float], radius: float) -> list[Shape]:
    """The shapes that stand for one body.

    Args:
        model: the machine.
        body: one of its bodies.
        points: where it is held, from `places`.
        p: parameter values by name.
        radius: of bars [m].
    """
    solid = _equivalent(body, p)
    mass, com = float(numeric(body.mass, p)), np.asarray(numeric(body.com, p), dtype=float)
    if solid is not None and not _is_slender(solid[0]) and _can_be_seen_whole(model, solid, com, points):
        return _solid(solid, com, radius) + _ties(solid, com, points, radius)
    if solid is not None and len(points) < 2:
        return _solid(solid, com, radius) + _ties(solid, com, points, radius)
    out = [Shape("ball", com[None], 2.2 * radius * _by_mass(model, mass, p))] if mass > 0 and solid is None else []
    if mass > 0:
        far = len(points) == 0 or min(np.linalg.norm(points - com, axis=1)) > 1e-9
        off = len(points) > 1 and _distance_to_segments(points, com) > 0.12 * float(np.ptp(points, axis=0).max())
        if far and (len(points) == 1 or off):
            points = np.vstack([points, com])
    if len(points) > 1:
        return _between(points, radius) + out
    if not out:  # neither mass nor extent: a carriage
        at = points[0] if len(points) else com
        out = [_box(at, np.eye(3), np.full(3, 2.0 * radius))]
    return out


def _by_mass(model: Model, mass: float, p: Mapping[str, float]) -> float:
    heaviest = max(float(numeric(body.mass, p)) for body in model.bodies)
    return max(0.6, (mass / heaviest) ** (1 / 3))


def _equivalent(body: Body, p: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray] | None:
    """Edges (smallest last) and axes (columns) of the uniform box with this inertia; None for a point mass."""
    mass, inertia = float(numeric(body.mass, p)), np.asarray(numeric(body.inertia, p), dtype=float)
    if mass <= 0 or not np.any(inertia):
        return None
    moments, axes = np.linalg.eigh(inertia)
    edges = np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mass, 0.0))
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return edges, axes


def _is_slender(edges: np.ndarray) -> bool:
    return bool(edges[1] < SLENDER * edges[0])


def _can_be_seen_whole(model: Model, solid: tuple[np.ndarray, np.ndarray], com: np.ndarray, points: np.ndarray) -> bool:
    """Whether the solid reaches all places where the body is held, so that nothing would seem to hang in the air.

    A planar body's single number of inertia says nothing about its shape.
    """
    edges, axes = solid
    if model.planar and len(points) > 1:
        return False
    inside = np.abs((points - com) @ axes) <= 0.65 * edges + 0.03 * edges[0]
    return bool(inside.all())


def _solid(solid: tuple[np.ndarray, np.ndarray], com: np.ndarray, radius: float) -> list[Shape]:
    """Bar, cylinder, disc, ball or box of an inertia."""
    edges, axes = solid
    if _is_slender(edges):
        thin = max(float(edges[1:].mean()) * 0.58, 0.6 * radius)  # radius of the cylinder with the same moments
        along = axes[:, 0] * edges[0] / 2
        return [Shape("bar", np.array([com - along, com + along]), min(thin, 0.2 * float(edges[0])))]
    if edges[2] > 0.97 * edges[0]:
        return [Shape("ball", com[None], float(edges.mean()) * 0.645)]  # the sphere with the same moments
    half = np.maximum(edges / 2, 0.3 * radius)
    if edges[1] > 0.99 * edges[0]:  # the same in two directions: a disc
        angle = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
        rim = half[0] * 1.1547 * (np.outer(np.cos(angle), axes[:, 0]) + np.outer(np.sin(angle), axes[:, 1]))
        return [Shape("plate", com + rim, float(half[2]), axes[:, 2])]
    return [_box(com, axes, half)]


def _box(centre: np.ndarray, axes: np.ndarray, half: np.ndarray) -> Shape:
    signs = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    return Shape("plate", centre + (signs * half[:2]) @ axes[:, :2].T, float(half[2]), axes[:, 2])


def _ties(solid: tuple[np.ndarray, np.ndarray], com: np.ndarray, points: np.ndarray, radius: float) -> list[Shape]:
    """Bars from a solid to the places outside of it where the body is held."""
    edges, axes = solid
    outside = np.any(np.abs((points - com) @ axes) > 0.5 * edges + radius, axis=1)
    return [Shape("bar", np.array([com, point]), radius) for point in points[outside]]


def _distance_to_segments(points: np.ndarray, at: np.ndarray) -> float:
    """Distance of a place from the nearest line between two of the points."""
    best = np.inf
    for k, start in enumerate(points):
        for end in points[k + 1 :]:
            along = end - start
            s = np.clip((at - start) @ along / (along @ along), 0.0, 1.0)
            best = min(best, float(np.linalg.norm(start + s * along - at)))
    return best


def _between(points: np.ndarray, radius: float) -> list[Shape]:
    """Bar, plate or star through the places where a body is held."""
    centre = points.mean(axis=0)
    _, sizes, directions = np.linalg.svd(points - centre, full_matrices=False)
    if len(points) == 2 or sizes[1] < 0.03 * sizes[0]:
        along = (points - centre) @ directions[0]
        return [Shape("bar", points[[np.argmin(along), np.argmax(along)]], radius)]
    if len(points) > 3 and sizes[2] > 0.03 * sizes[0]:
        return [Shape("bar", np.array([centre, point]), radius) for point in points]
    flat = (points - centre) @ directions[:2].T
    return [Shape("plate", points[_hull(flat)], 0.6 * radius, directions[2])]


def _hull(flat: np.ndarray) -> list[int]:
    """Indices of the corners of the convex hull of points in a plane, in order (monotone chain)."""
    order = sorted(range(len(flat)), key=lambda k: (flat[k, 0], flat[k, 1]))

    def half(indices: list[int]) -> list[int]:
        chain: list[int] = []
        for k in indices:
            while len(chain) > 1 and _turn(flat[chain[-2]], flat[chain[-1]], flat[k]) <= 0:
                chain.pop()
            chain.append(k)
        return chain[:-1]

    return half(order) + half(order[::-1])


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
