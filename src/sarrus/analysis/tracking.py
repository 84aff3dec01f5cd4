"""How near a motion comes to singular positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sarrus.analysis.roles import Roles, evidence, find_roles, signed
from sarrus.analysis.surface import Surface, make_surface
from sarrus.dynamics.state import State
from sarrus.simulation.trajectory import Trajectory

DEEP = 0.5  # dips below this part of the median are told
PASSED = 1e-5  # a dip below this is a passage through a singular position


@dataclass(frozen=True, eq=False)
class Approach:
    """A time at which a motion is nearer to a singular position than before and after.

    Attributes:
        kind: of singularity: "constraint", "output" or "input".
        t: when [s].
        measure: the singular value that vanishes at a singular position.
        passed: whether the motion goes through it.
        state: where.
    """

    kind: str
    t: float
    measure: float
    passed: bool
    state: State

    def __str__(self) -> str:
        """Time, kind and measure."""
        how = "passes through it" if self.passed else f"measure {self.measure:.3g}"
        return f"t = {self.t:.9g} s: {self.kind} singularity, {how}"


@dataclass(frozen=True, eq=False)
class SingularityTrack:
    """The outcome of `track_singularities`; prints itself.

    Attributes:
        name: of the machine.
        t: times of the record [s].
        inputs: what drives it.
        outputs: what it is for.
        measures: by kind, at each time, the singular value that vanishes at a singular position.
        approaches: the closest approaches, in order of time.
    """

    name: str
    t: np.ndarray
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    measures: Mapping[str, np.ndarray]
    approaches: tuple[Approach, ...]

    def closest(self, kind: str) -> Approach | None:
        """The closest approach to one kind of singularity; None if there is no dip."""
        some = [approach for approach in self.approaches if approach.kind == kind]
        return min(some, key=lambda approach: approach.measure) if some else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name, "t": self.t.tolist(), "inputs": list(self.inputs), "outputs": list(self.outputs),
            "measures": {kind: level.tolist() for kind, level in self.measures.items()},
            "approaches": [
                {"kind": a.kind, "t": a.t, "measure": a.measure, "passed": a.passed} for a in self.approaches
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        """The range of each measure, then the approaches."""
        lines = [f"{self.name}: singular positions along t = {self.t[0]:.6g} to {self.t[-1]:.6g} s"]
        for kind, level in self.measures.items():
            known = level[np.isfinite(level)]
            if known.size:
                lines.append(f"  {kind}: measure from {known.min():.3g} to {known.max():.3g}")
        lines += [f"  {approach}" for approach in self.approaches[:12]]
        more = len(self.approaches) - 12
        return "\n".join([*lines, f"  … and {more} more"] if more > 0 else lines)


def track_singularities(
    traj: Trajectory, inputs: Sequence[str] | None = None, *, outputs: Sequence[str] | None = None
) -> SingularityTrack:
    """Follow the measures of all kinds of singularity along a recorded motion, and locate the closest approaches.

    Args:
        traj: a recorded motion. Rows should be close enough to show the dips; these are refined between rows.
        inputs: what drives the machine, names of motors or coordinates; all motors if None.
        outputs: what it is for, names of coordinates, bodies or frames; if None, as in `classify`.
    """
    roles = find_roles(traj.system, inputs, outputs)
    measures = {kind: np.full(len(traj), np.inf) for kind in roles.kinds}
    approaches: list[Approach] = []
    for rows, segment, system in traj.pieces():
        surface = make_surface(system, {}, float(traj.t[rows.start]), segment.active)
        own = find_roles(system, inputs, outputs) if system is not traj.system else roles
        for kind in roles.kinds:
            value = _matrix(surface, own, kind)
            table = [evidence(value(traj.q[k], traj.t[k])) for k in range(rows.start, rows.stop)]
            rank = max(int(np.sum(sigma > 10 * PASSED)) for sigma, _, _ in table)
            if rank == 0:
                continue
            level = np.array([sigma[rank - 1] for sigma, _, _ in table])
            measures[kind][rows] = level
            found = [_approach(traj, kind, value, rank, rows.start + k) for k in _dips(level)]
            approaches += [approach for approach in found if approach.measure < DEEP * np.median(level)]
    ordered = sorted(approaches, key=lambda approach: approach.t)
    return SingularityTrack(traj.system.name, traj.t.copy(), roles.inputs, roles.outputs, measures, tuple(ordered))


def _matrix(surface: Surface, roles: Roles, kind: str) -> Callable[[np.ndarray, float], np.ndarray]:
    """The matrix of a kind as a function of positions and time."""

    def rows(q: np.ndarray, t: float) -> np.ndarray:
        here = surface if t == surface.t else replace(surface, t=float(t))
        return roles.rows(kind, here.look(q), float(t))

    return rows


def _dips(level: np.ndarray) -> list[int]:
    """Rows at which a measure is lower than at both neighbours."""
    inner = np.arange(1, len(level) - 1)
    low = (level[inner] <= level[inner - 1]) & (level[inner] < level[inner + 1])
    return [int(k) for k in inner[low]]


def _approach(traj: Trajectory, kind: str, value: Any, rank: int, row: int) -> Approach:
    """The lowest place between the neighbours of a row: a change of sign if there is one, else a minimum."""
    from scipy.optimize import brentq, minimize_scalar

    t0, t1, t2 = (float(traj.t[k]) for k in (row - 1, row, row + 1))

    def rows_at(t: float) -> np.ndarray:
        return value(traj.at(t).q, t)

    first = rows_at(t0)
    if rank == first.shape[1]:
        frame = evidence(first)[1][:, :rank]
        if signed(first, frame) * signed(rows_at(t2), frame) < 0:
            t = float(brentq(lambda t: signed(rows_at(t), frame), t0, t2, xtol=1e-13))  # type: ignore[arg-type]
            return _record(traj, kind, t, float(evidence(rows_at(t))[0][rank - 1]))
    best = (t1, float(evidence(rows_at(t1))[0][rank - 1]))
    for low, high in ((t0, t1), (t1, t2)):
        found = minimize_scalar(
            lambda t: float(evidence(rows_at(t))[0][rank - 1]), bounds=(low, high), method="bounded",
            options={"xatol": 1e-12 * max(1.0, abs(t1))},
        )  # fmt: skip
        best = min(best, (float(found.x), float(found.fun)), key=lambda pair: pair[1])
    return _record(traj, kind, *best)


def _record(traj: Trajectory, kind: str, t: float, measure: float) -> Approach:
    return Approach(kind, t, measure, measure < PASSED, traj.at(t))
