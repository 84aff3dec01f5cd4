"""A motion in time: what the integrator recorded, and everything that follows from it, by name.

The record holds t, q, v, the acceleration a and the inputs u, one row for each output; all else (forces, energies,
poses) is computed from these when it is first asked for. Where an event changed something there are two rows with the
same time: before and after. Rows belong to segments, within each of which active rows and parameters do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarrus.dynamics.system import System
from sarrus.simulate.status import Crossing, EventRecord, Stats, Status


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows from `start` to the next segment were computed with these constraints and parameters.

    Attributes:
        start: index of its first row.
        active: whether each constraint group was switched on, by name.
        p: parameter values, in the order of `layout.parameters`.
    """

    start: int
    active: Mapping[str, bool]
    p: np.ndarray


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A recorded motion. Made by `sarrus.simulate`; all its fields are fixed.

    Attributes:
        system: the machine, with the parameters at the start.
        t: times [s], shape (count,), never falling.
        q: positions, (count, nq).
        v: velocities, (count, nv).
        a: accelerations, (count, nv).
        u: inputs, (count, nu).
        status: how the run ended.
        stats: what it cost.
        segments: at least one; the first starts at row 0.
        crossings: passages through singular positions.
        events: guards that passed zero.
        settings: how it was computed (method, rtol, dt, crossing, drift, versions ...), as plain JSON data.
    """

    system: System
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    status: Status
    stats: Stats
    segments: tuple[Segment, ...]
    crossings: tuple[Crossing, ...] = ()
    events: tuple[EventRecord, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
