"""All branches over one or two coordinates: curves of configurations along a coordinate, slice by slice.

A slice holds the first coordinate and follows every curve along the second. What is found in one slice is carried over
to its neighbours, both ways, until nothing new appears; a few places are searched from many starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sarrus.analysis.branches import SAME, find_modes, solve_many
from sarrus.analysis.surface import Spot, Surface
from sarrus.analysis.tracing import Line, Path, follow

OVERLAP = 1e-3  # curves are followed this part of the range beyond its ends, so that nothing at an end is missed
BATCHES = 10  # of random starts at each place that is searched
NEXT = 0.8  # from one slice to the next a configuration changes by less than this, in units of the scales


@dataclass(frozen=True, eq=False)
class Axis:
    """A coordinate of the map.

    Attributes:
        where: its indices in q and v.
        low: lower end of its range.
        high: upper end.
        centres: the values at which assemblies are counted: middles of cells, a little off, since what is special
            about a machine is often in the middle.
        full: an angle over a full turn: its ends are the same place, and curves run across them.
    """

    where: tuple[int, int]
    low: float
    high: float
    centres: np.ndarray
    full: bool

    def outside(self, spot: Spot) -> float:
        """How far a configuration is beyond the range; negative inside."""
        y = spot.q[self.where[0]]
        return -1.0 if self.full else float(max(self.low - y, y - self.high))

    def value(self, q: np.ndarray) -> np.ndarray:
        """The coordinate; whole turns beyond a full range left out."""
        y = q[..., self.where[0]]
        return self.high - (self.high - y) % (self.high - self.low) if self.full else y

    def passed(self, a: float, b: float) -> list[tuple[int, float]]:
        """Centres between two values, and these as they stand on the way, whole turns included."""
        low, high = min(a, b), max(a, b)
        span = self.high - self.low
        centres = self.centres + (span * np.ceil((low - self.centres) / span) if self.full else 0.0)
        return [(int(j), float(centres[j])) for j in np.flatnonzero((centres >= low) & (centres < high))]


def make_axis(where: tuple[int, int], low: float, high: float, cells: int, full: bool) -> Axis:
    """The axis of a coordinate over a range, divided into cells; curves go on a bit beyond the ends of the range."""
    more = 0.0 if full else OVERLAP * (high - low)
    return Axis(where, low - more, high + more, low + (np.arange(cells) + 0.5137) * (high - low) / cells, full)


@dataclass(eq=False)
class Trace:
    """A curve in one slice, and where it passes the centres of the axis along it: (index, configuration, pose)."""

    path: Path
    passes: list[tuple[int, np.ndarray, np.ndarray]]
    branch: int = -1
    linked: list[Trace] = field(default_factory=list)


@dataclass(eq=False)
class Slice:
    """All curves found on a surface of dimension 1 along an axis."""

    line: Line
    axis: Axis
    traces: list[Trace] = field(default_factory=list)

    def owner(self, index: int, pose: np.ndarray) -> Trace | None:
        """The curve that passes a centre with the bodies in these places."""
        for trace in self.traces:
            for j, _, other in trace.passes:
                if j == index and np.max(np.abs(other - pose)) < 1e3 * SAME:
                    return trace
        return None

    def add(self, index: int, q: np.ndarray) -> Trace | None:
        """The curve through a configuration at a centre: one that is known, or a new one."""
        surface = self.line.surface
        pose = surface.poses(q[None])[0]
        known = self.owner(index, pose)
        if known is not None:
            return known
        trace = self.add_path(follow(self.line, surface.look(q), self.axis.outside))
        if trace is not None and self.owner(index, pose) is not trace:
            trace.passes.append((index, q, pose))
        return trace

    def add_path(self, path: Path) -> Trace | None:
        """Take up a curve that is not yet known."""
        if len(path.samples) < 2:
            return None
        trace = Trace(path, self._passes(path))
        self.traces.append(trace)
        return trace

    def _passes(self, path: Path) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Where a curve passes the centres: guessed between samples, then solved for all together."""
        surface, place = self.line.surface, self.axis.where[0]
        guesses, indices, goals = [], [], []
        for a, b in path.pairs(surface):
            chord = surface.gap(a.q, b.q)
            rise = chord[self.axis.where[1]]
            for j, y in self.axis.passed(a.q[place], a.q[place] + rise):
                guesses.append(surface.move(a.q, chord * (y - a.q[place]) / rise))
                indices.append(j)
                goals.append(np.append(surface.values, y))
        if not guesses:
            return []
        held = surface.holding(self.axis.where, 0.0)
        solved = solve_many(held, np.array(guesses), np.array(goals))
        good = np.flatnonzero(np.isfinite(solved).all(axis=1))
        good = good[surface.distance(np.array(guesses)[good], solved[good]) < 0.3] if len(good) else good
        found: list[tuple[int, np.ndarray, np.ndarray]] = []
        for k, pose in zip(good, surface.poses(solved[good]) if len(good) else (), strict=True):
            same = [other for j, _, other in found if j == indices[k]]
            if all(
                np.max(np.abs(other - pose)) > 1e3 * SAME for other in same
            ):  # a centre that is a sample is met twice
                found.append((indices[k], solved[k], pose))
        return found


def search(piece: Slice, indices: Sequence[int]) -> None:
    """Look for curves of a slice from many starts at some centres."""
    for j in indices:
        held = piece.line.surface.holding(piece.axis.where, float(piece.axis.centres[j]))
        for q in find_modes(held, BATCHES).places:
            piece.add(int(j), q)


def sweep(surface: Surface, rank: int, first: Axis, second: Axis, near: np.ndarray | None = None) -> list[Slice]:
    """All curves along the second axis, for every centre of the first.

    Args:
        surface: of dimension 2.
        rank: of its rows.
        first: the axis whose coordinate is held.
        second: the axis to follow.
        near: only the branch through this configuration, if given.
    """
    pieces = [Slice(Line(surface.holding(first.where, float(x)), rank + 1), second) for x in first.centres]
    if near is None:
        for i in spread(len(pieces), 3):
            search(pieces[i], spread(len(second.centres), 3))
    else:
        i, j = (int(np.argmin(np.abs(axis.centres - near[axis.where[0]]))) for axis in (first, second))
        held = pieces[i].line.surface.holding(second.where, float(second.centres[j]))
        for q in solve_many(held, near[None]):
            pieces[i].add(j, q)
    carried: set[tuple[int, int, int]] = set()
    changed = True
    while changed:
        changed = False
        for i in [*range(len(pieces)), *reversed(range(len(pieces)))]:
            for other in (i - 1, i + 1):
                if 0 <= other < len(pieces):
                    changed |= _carry(pieces, i, other, carried)
    return pieces


def spread(count: int, wanted: int) -> list[int]:
    """Some of the numbers below count, evenly."""
    return sorted({int((k + 0.5) * count / wanted) for k in range(min(wanted, count))})


def _carry(pieces: list[Slice], i: int, other: int, carried: set[tuple[int, int, int]]) -> bool:
    """Take what one slice holds over to another; whether that gave new curves."""
    source, target = pieces[i], pieces[other]
    todo = [(t, p) for k, t in enumerate(source.traces) if (i, other, k) not in carried for p in t.passes]
    carried |= {(i, other, k) for k in range(len(source.traces))}
    before = len(target.traces)
    for trace, j, q in _moved(source, target, todo):
        twin = target.add(j, q)
        if twin is not None:
            _join(trace, twin)
    return len(target.traces) > before


def _join(one: Trace, other: Trace) -> None:
    if not any(other is x for x in one.linked):
        one.linked.append(other)
        other.linked.append(one)


def _moved(source: Slice, target: Slice, todo: list) -> list[tuple[Trace, int, np.ndarray]]:
    """Configurations of one slice moved to another one."""
    if not todo:
        return []
    surface, held = source.line.surface, target.line.surface.holding(target.axis.where, 0.0)
    starts = np.array([q for _, (_, q, _) in todo])
    place = target.axis.where[0]
    values = np.array([np.append(target.line.surface.values, q[place]) for q in starts])
    solved = solve_many(held, starts, values)
    return [
        (trace, j, q)
        for (trace, (j, start, _)), q in zip(todo, solved, strict=True)
        if np.isfinite(q).all() and surface.distance(start, q) < NEXT
    ]


def name_branches(pieces: list[Slice]) -> None:
    """Number the branches: curves that go over into one another from slice to slice belong to one."""
    count = 0
    for piece in pieces:
        for trace in piece.traces:
            trace.branch = -1
    for piece in pieces:
        for trace in piece.traces:
            if trace.branch >= 0:
                continue
            todo = [trace]
            while todo:
                one = todo.pop()
                if one.branch < 0:
                    one.branch = count
                    todo += one.linked
            count += 1


def counts(pieces: list[Slice], branch: int | None = None) -> np.ndarray:
    """How many assemblies there are at each pair of centres, on one branch or on all."""
    out = np.zeros((len(pieces), len(pieces[0].axis.centres)), dtype=int)
    for i, piece in enumerate(pieces):
        for trace in piece.traces:
            if branch in (None, trace.branch):
                for j, _, _ in trace.passes:
                    out[i, j] += 1
    return out


def across(surface: Surface, rank: int, first: Axis, second: Axis, pieces: list[Slice]) -> list[Slice]:
    """Slices the other way: curves along the first axis, through all that was found along the second."""
    out = {
        j: Slice(Line(surface.holding(second.where, float(second.centres[j])), rank + 1), first)
        for j in range(0, len(second.centres), 2)  # every other one: few curves hide from all slices the first way
    }
    for i, piece in enumerate(pieces):
        for trace in piece.traces:
            for j, q, _ in trace.passes:
                new = out[j].add(i, q) if j in out else None
                if new is not None:
                    _join(trace, new)
    return list(out.values())


def bridge(surface: Surface, rank: int, first: Axis, pieces: list[Slice], places: list[np.ndarray]) -> None:
    """Join the branches that are reached from configurations of one branch, by a slice through each of these."""
    before: Trace | None = None
    for q in places:
        y = float(first.value(q))
        target = pieces[int(np.argmin(np.abs(first.centres - y)))]
        own = Slice(Line(surface.holding(first.where, float(q[first.where[0]])), rank + 1), target.axis)
        trace = own.add_path(follow(own.line, own.line.surface.look(q), own.axis.outside))
        if trace is None:
            continue
        if before is not None:
            _join(before, trace)
        before = trace
        for _, j, end in _moved(own, target, [(trace, p) for p in trace.passes]):
            twin = target.add(j, end)
            if twin is not None:
                _join(trace, twin)
