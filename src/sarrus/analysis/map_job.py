"""What a singularity map is about, for the modules that make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.analysis.landmarks import edge_rows, rank_rows
from sarrus.analysis.map_record import EDGE, SingularPoint
from sarrus.analysis.roles import Roles
from sarrus.analysis.singularities import judge
from sarrus.analysis.surface import Surface
from sarrus.analysis.sweep import Axis
from sarrus.dynamics.state import State


@dataclass(frozen=True, eq=False)
class Job:
    """What a map is about.

    Attributes:
        surface: with the held coordinates.
        whole: without.
        roles: inputs and outputs.
        axes: of the map, with a little overlap at the ends.
        ranges: without.
        rank: of the rows of the surface.
        tolerance: what was asked for.
    """

    surface: Surface
    whole: Surface
    roles: Roles
    axes: tuple[Axis, ...]
    ranges: tuple[tuple[float, float], ...]
    rank: int
    tolerance: float

    def inside(self, q: np.ndarray) -> bool:
        """Whether the map's coordinates are within their ranges."""
        return all(
            axis.full or low - 1e-9 <= q[axis.where[0]] <= high + 1e-9
            for axis, (low, high) in zip(self.axes, self.ranges, strict=True)
        )

    def values(self, q: np.ndarray) -> np.ndarray:
        """The map's coordinates."""
        return np.stack([axis.value(q) for axis in self.axes], axis=-1)


def watched_rows(job: Job) -> dict[str, Any]:
    """Square matrices to watch along curves: of inputs, of outputs, and of the map's own coordinates."""
    rows = {kind: rank_rows(job.surface, job.roles, kind) for kind in job.roles.kinds if kind != "constraint"}
    return {**rows, EDGE: edge_rows(job.surface, *(axis.where[1] for axis in job.axes))}


def make_point(job: Job, q: np.ndarray, edge: bool, owners: tuple[int, ...]) -> SingularPoint | None:
    """The record of a singular point; None if it turns out to be nothing special."""
    singularity = judge(job.whole, job.roles, q)
    if not singularity.kinds and not edge:
        return None
    state = State(job.surface.system.layout, job.surface.wrapped(q), t=job.surface.t)
    return SingularPoint(tuple(map(float, job.values(q))), state, singularity, edge, owners)
