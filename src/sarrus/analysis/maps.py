"""Singularity maps: where on a machine's manifold of configurations something singular happens, on all branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sarrus.analysis import map_curves
from sarrus.analysis.branches import known_frames, plain_names, starting_place
from sarrus.analysis.landmarks import Landmark, dips, landmarks, rank_rows, settle, survey
from sarrus.analysis.map_job import Job, make_point, watched_rows
from sarrus.analysis.map_record import EDGE, Branch, SingularityMap, SingularPoint
from sarrus.analysis.roles import evidence, find_roles
from sarrus.analysis.singularities import branch_directions
from sarrus.analysis.surface import Spot, Surface, coordinate_index, make_surface
from sarrus.analysis.sweep import Slice, Trace, make_axis, search, spread
from sarrus.analysis.tracing import Line, between, follow, lies_on
from sarrus.analysis.workspace import OPEN, travels_of
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError

SEARCHED = 9  # centres at which branches are looked for from many starts


def singularity_map(
    system: System,
    coordinates: str | Sequence[str],
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    hold: Mapping[str, float] | None = None,
    branches: str | State = "all",
    bodies: Sequence[str] = (),
    tol: float = 1e-8,
    cells: int | None = None,
    t: float = 0.0,
    active: Mapping[str, bool] | None = None,
) -> SingularityMap:
    """Find every singular position over one or two coordinates of the assembled machine.

    Every branch is followed by its arc, through places where the coordinates turn back and across other branches.
    Singular points are refined between samples, singular curves are followed; each point of them is a configuration
    that satisfies the constraints and at which the deciding matrix is singular, to rounding.

    Args:
        system: the machine.
        coordinates: names of one or two of its coordinates.
        ranges: (low, high) by name. If not given: the joint's limits; else a full turn for angles, and the machine's
            reach for shifts; where that has no end, its length both ways from the start.
        inputs: what drives it, names of motors or coordinates; all motors if None.
        outputs: what it is for, names of coordinates, bodies or frames; if None, as in `classify`.
        hold: values of further coordinates, as many as the machine has mobility beyond those of the map.
        branches: "all", or a state: then only the branch through it.
        bodies: names of bodies or frames; branches on which these are in the same places count once. All bodies if
            empty.
        tol: how exact singular points must be, as the measure that vanishes there; curves are computed a hundred times
            finer, and a point that could not be found so exactly says so.
        cells: in how many cells each range is divided to look for branches; 48 for one coordinate, 24 for two.
        t: time [s], for moving constraints.
        active: constraint name -> False to leave it out.

    Returns:
        The map; see `SingularityMap`.

    Raises:
        StateError: the coordinates do not fit the machine's mobility; the text says how many to hold.
    """
    names = (coordinates,) if isinstance(coordinates, str) else tuple(coordinates)
    held = dict(hold or {})
    _sensible(names, held, branches, tol)
    surface = replace(make_surface(system, held, t, active), bodies=known_frames(system, bodies))
    where = tuple(coordinate_index(system, name) for name in names)
    rank = _fitting_rank(surface, where, names, branches)
    bounds = tuple(_range(system, surface, name, place, ranges or {}) for name, place in zip(names, where, strict=True))
    count = cells or (48 if len(names) == 1 else 24)
    axes = tuple(
        make_axis(place, low, high, count, bool(surface.period[place[1]]) and high - low > 2 * np.pi - 1e-6)
        for place, (low, high) in zip(where, bounds, strict=True)
    )
    whole = make_surface(system, {}, t, active)
    job = Job(surface, whole, find_roles(system, inputs, outputs), axes, bounds, rank, tol)
    near = branches.q if isinstance(branches, State) else None
    found = _over_one(job, near) if len(names) == 1 else map_curves.over_two(job, near)
    parts, points, curves, modes, untraced = found
    error = float(max([*(p.measure for p in points), *(c.measure for c in curves)], default=0.0))
    units = tuple(_unit(system, place[1]) for place in where)
    return SingularityMap(
        system.name, names, bounds, units, job.roles.inputs, job.roles.outputs, held, job.roles.kinds, parts, points,
        curves, tuple(axis.centres for axis in axes), modes, untraced, tol, error,
    )  # fmt: skip


def _sensible(names: tuple[str, ...], held: Mapping[str, float], branches: Any, tol: float) -> None:
    if len(names) not in (1, 2) or len(set(names)) != len(names):
        got = ", ".join(names) or "none"
        raise StateError(f"singularity_map: expected one or two different coordinates, got {got}")
    both = set(names) & set(held)
    if both:
        raise StateError(f"singularity_map: {', '.join(sorted(both))} cannot be held and mapped at once")
    if not (isinstance(branches, State) and branches.count is None) and branches != "all":
        raise StateError(f"singularity_map: branches must be 'all' or a state, got {branches!r}")
    if not 1e-14 < tol < 1e-3:
        raise StateError(f"singularity_map: tol must lie between 1e-14 and 1e-3, got {tol!r}")


def _fitting_rank(surface: Surface, where: tuple[Any, ...], names: tuple[str, ...], branches: Any) -> int:
    """Rank of the surface's rows; an error unless that leaves as many ways to move as there are coordinates."""
    system, nv = surface.system, surface.system.layout.nv
    start = branches.q if isinstance(branches, State) else starting_place(surface)
    first = surface.rank(start)
    tangents = surface.tangents(surface.look(start), first)
    rng, ranks = np.random.default_rng(3), [first]
    for size in (0.05, 0.1, 0.2, 0.4):
        direction = tangents @ rng.normal(size=tangents.shape[1])
        if tangents.shape[1]:
            spot = surface.onto(surface.move(start, size * direction / surface.size(direction)), tries=25)
            ranks += [surface.rank(spot.q)] if spot is not None else []
    free = nv - max(ranks)
    if free == len(names):
        return max(ranks)
    held = f" with {len(surface.held_v)} held" if surface.held_v else ""
    text = f"{system.name}: it can move in {free} way(s){held}, but the map has {len(names)} coordinate(s); "
    if free < len(names):
        raise StateError(text + f"map {free}" if free else text + "there is nothing to map")
    taken = {*surface.held_v, *(w[1] for w in where)}
    rest = plain_names(system, taken)
    more = f"hold {free - len(names)} more, such as hold={{{rest[0]!r}: value}}"
    raise StateError(text + more + f" (of {', '.join(rest)})")


def _range(
    system: System, surface: Surface, name: str, where: tuple[int, int], ranges: Mapping[str, tuple[float, float]]
) -> tuple[float, float]:
    layout = system.layout
    unknown = set(ranges) - {name} - set(layout.q_names)
    if unknown:
        raise StateError(f"ranges: {', '.join(sorted(unknown))} is not a coordinate of {system.name}")
    if name in ranges:
        low, high = (float(x) for x in ranges[name])
        if not (np.isfinite([low, high]).all() and low < high):
            raise StateError(f"ranges: {name!r} needs (low, high) with low < high, got {ranges[name]!r}")
        if surface.period[where[1]] and high - low > 2 * np.pi + 1e-9:
            raise StateError(f"ranges: {name!r} spans more than a full turn, from {low:.6g} to {high:.6g}")
        return low, high
    if layout.q_names[where[0]] in layout.limits:
        low, high = layout.limits[layout.q_names[where[0]]]
        return float(low), float(high)
    if surface.period[where[1]]:
        return -np.pi, np.pi
    start = layout.initial[where[0]]
    low, high = float(start - layout.length), float(start + layout.length)
    ends = [end for travel in travels_of(surface, where) for end in (travel.low, travel.high)]
    if not ends or any(end.cause == OPEN for end in ends):
        return low, high
    values = [end.value for end in ends]
    more = 0.02 * (max(values) - min(values)) or 0.02 * layout.length
    return min(values) - more, max(values) + more


def _unit(system: System, index: int) -> str:
    layout = system.layout
    if not layout.bodies:
        return ""
    return "rad" if layout.angles[index] else "m"


# --- one coordinate --------------------------------------------------------------------------------------------------


def _over_one(job: Job, near: np.ndarray | None) -> tuple[Any, ...]:
    """Branches, points, curves (none), counts and kinds that could not be followed (none)."""
    axis = job.axes[0]
    piece = Slice(Line(job.surface, job.rank), axis)
    if near is None:
        search(piece, spread(len(axis.centres), SEARCHED))
    else:
        path = follow(piece.line, job.surface.look(near), axis.outside)
        piece.add_path(path)
    watched = watched_rows(job)
    marks: dict[int, list[Landmark]] = {}
    for k, trace in enumerate(piece.traces):  # which grows on the way
        marks[k] = _marks(job, piece, trace, watched)
        if near is None:
            _switch(job, piece, marks[k])
    points = _points(job, marks)
    branches = _branches(job, piece.traces, marks)
    modes = np.zeros(len(axis.centres), dtype=int)
    for trace in piece.traces:
        for j, _, _ in trace.passes:
            modes[j] += 1
    return branches, points, (), modes, ()


def _marks(job: Job, piece: Slice, trace: Trace, watched: dict[str, Any]) -> list[Landmark]:
    """Everything singular on a curve: changes of sign, and dips that reach zero."""
    surveys = {kind: survey(trace.path, rows) for kind, rows in watched.items()}
    found = landmarks(piece.line, trace.path, surveys)
    surveys["constraint"] = survey(trace.path, rank_rows(job.surface, job.roles, "constraint"))
    for kind in job.roles.kinds:
        surveyed = surveys[kind]
        for pair, spot, low in dips(piece.line, trace.path, surveyed, found):
            if low < job.surface.system.tolerance:
                frame = surveyed.found[pair][2][:, : surveyed.rank]
                spot = settle(job.surface, spot, surveyed.rows, frame)
                found.append(Landmark(kind, spot, pair, trace.path.samples[pair].ahead))
    turns = [mark for mark in found if mark.what == EDGE and not _turns(job, piece, trace, mark)]
    return [mark for mark in found if job.inside(mark.spot.q) and mark not in turns]


def _turns(job: Job, piece: Slice, trace: Trace, mark: Landmark) -> bool:
    """Whether the map's coordinate goes the other way after a landmark."""
    a, b = list(trace.path.pairs(job.surface))[mark.pair]
    return bool(a.ahead[piece.axis.where[1]] * b.ahead[piece.axis.where[1]] < 0)


def _switch(job: Job, piece: Slice, marks: list[Landmark]) -> None:
    """Follow the branches that cross a curve."""
    surface = job.surface
    for mark in marks:
        if mark.what != "crossing":
            continue
        for direction in branch_directions(surface, mark.spot.q, surface.rank(mark.spot.q)) or ():
            step = 0.02 * direction / surface.size(direction)
            spot = surface.onto(surface.move(mark.spot.q, step), job.rank)
            if spot is None or surface.distance(spot.q, mark.spot.q) < 0.01 or piece.axis.outside(spot) > 0:
                continue
            if not any(lies_on(piece.line, trace.path, spot.q) for trace in piece.traces):
                piece.add_path(follow(piece.line, spot, piece.axis.outside))


def _points(job: Job, marks: dict[int, list[Landmark]]) -> tuple[SingularPoint, ...]:
    """Landmarks in the same place become one point."""
    places: list[tuple[np.ndarray, np.ndarray, set[int], set[str]]] = []
    for owner, some in marks.items():
        for mark in some:
            pose = job.surface.poses(mark.spot.q[None])[0]
            for _, other, owners, what in places:
                if np.max(np.abs(other - pose)) < 1e-6:
                    owners.add(owner)
                    what.add(mark.what)
                    break
            else:
                places.append((mark.spot.q, pose, {owner}, {mark.what}))
    points = [make_point(job, q, EDGE in what, tuple(sorted(owners))) for q, _, owners, what in places]
    return tuple(sorted((p for p in points if p is not None), key=lambda p: (p.branches, p.values)))


def _branches(job: Job, traces: list[Trace], marks: dict[int, list[Landmark]]) -> tuple[Branch, ...]:
    """The records of curves over one coordinate, with landmarks among the samples."""
    surface, kinds, axis = job.surface, job.roles.kinds, job.axes[0]
    lines = [_with_landmarks(job, trace, marks[k]) for k, trace in enumerate(traces)]
    tables = [
        {k: np.array([evidence(job.roles.rows(k, spot, surface.t))[0] for spot in line]) for k in kinds}
        for line in lines
    ]
    ranks = [{k: int(np.max(np.sum(x > surface.system.tolerance, axis=1))) for k, x in t.items()} for t in tables]
    best = {k: max(rank[k] for rank in ranks) for k in kinds} if ranks else {}
    out = []
    for trace, line, table, rank in zip(traces, lines, tables, ranks, strict=True):
        q = np.array([spot.q for spot in line])
        y = q[:, axis.where[0]]
        rounds = trace.path.closed and axis.full and bool(abs(_net(surface, trace, axis.where[1])) > np.pi)
        shift = 2 * np.pi * np.round(((y.min() + y.max()) - sum(job.ranges[0])) / (4 * np.pi)) if axis.full else 0.0
        measures = {k: x[:, best[k] - 1] for k, x in table.items() if best[k]}
        always = tuple(k for k in kinds if rank[k] < best[k])
        states = State(surface.system.layout, q, t=np.full(len(q), surface.t))
        values = (axis.value(q) if rounds else y - shift)[:, None]
        out.append(Branch(values, states, trace.path.closed, always, measures, rounds))
    return tuple(out)


def _net(surface: Surface, trace: Trace, index: int) -> float:
    """By how much a coordinate grows along a curve, the closing step included."""
    return float(sum(surface.gap(a.q, b.q)[index] for a, b in trace.path.pairs(surface)))


def _with_landmarks(job: Job, trace: Trace, marks: list[Landmark]) -> list[Spot]:
    """The spots of a curve within the range, landmarks and the range's ends inserted."""
    surface, axis, line = job.surface, job.axes[0], Line(job.surface, job.rank)
    out: list[Spot] = []
    for k, (a, b) in enumerate(trace.path.pairs(surface)):
        inside = [job.inside(a.q), job.inside(b.q)]
        extra = [mark.spot for mark in marks if mark.pair == k]
        if inside[0] != inside[1]:
            low, high = job.ranges[0]
            ends = [between(line, a, b, lambda s, y=y: float(s.q[axis.where[0]] - y)) for y in (low, high)]
            extra += [sample.spot for sample in ends if sample is not None]
        # along the way whole turns count, landmarks may have been found a turn away
        extra = [replace(s, q=surface.move(a.q, surface.gap(a.q, s.q))) for s in extra]
        out += [a.spot] if inside[0] else []
        out += sorted(extra, key=lambda s: surface.size(surface.gap(a.q, s.q)))
    last = trace.path.samples[-1]
    return [*out, last.spot] if not trace.path.closed and job.inside(last.q) else out
