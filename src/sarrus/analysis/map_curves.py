"""Singularity maps over two coordinates: slices both ways give places to start from, the curves are then followed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarrus.analysis.landmarks import landmarks, rank_rows, settle, survey
from sarrus.analysis.locus import Locus, edge_square, kind_square
from sarrus.analysis.map_job import Job, make_point, watched_rows
from sarrus.analysis.map_record import EDGE, Branch, SingularCurve, SingularPoint
from sarrus.analysis.roles import evidence
from sarrus.analysis.singularities import ordinary_ranks
from sarrus.analysis.surface import Spot
from sarrus.analysis.sweep import Slice, Trace, across, bridge, counts, name_branches, sweep
from sarrus.analysis.tracing import Path, follow, lies_on, sample_on
from sarrus.dynamics.state import State

LOW = 0.5  # dips of a measure below this part of its median may hide something singular between two slices
LOW_OWN = 0.6  # the same for the constraints' own measure: it vanishes in single points, which slices miss
FAR = 0.6  # a place found from a dip must be this near to it, in units of the scales


def over_two(job: Job, near: np.ndarray | None) -> tuple[Any, ...]:
    """Branches, points, curves, counts and the kinds whose curves could not be followed."""
    first, second = job.axes
    pieces = sweep(job.surface, job.rank, first, second, near)
    places = _places(pieces)
    if not places:
        return (), (), (), counts(pieces), ()
    other = across(job.surface, job.rank, first, second, pieces)
    squares = {k: kind_square(job.surface, job.roles, k, places) for k in job.roles.kinds if k != "constraint"}
    squares[EDGE] = edge_square(job.surface, (first.where[1], second.where[1]), places)
    loci = {k: Locus(job.surface, job.rank, m, 0.01 * job.tolerance) for k, m in squares.items() if m is not None}
    seeds, low = _seeds(job, [*pieces, *other], loci)
    paths, singles = _follow_all(job, loci, seeds)
    _bridge_still(job, pieces, paths)
    name_branches([*pieces, *other])
    curves = _curves(job, loci, paths)
    points = [make_point(job, q, edge, (trace.branch,)) for q, edge, trace in singles]
    points += [make_point(job, q, False, (trace.branch,)) for q, trace in _constraint_places(job, low, places)]
    untraced = tuple(k for k, matrix in squares.items() if matrix is None and k != EDGE)
    return (
        _branches(job, pieces),
        _distinct(job, [point for point in points if point is not None]),
        curves,
        counts(pieces),
        untraced,
    )


def _places(pieces: list[Slice], most: int = 12) -> list[np.ndarray]:
    """Some configurations, from all over."""
    q = [p[1] for piece in pieces for trace in piece.traces for p in trace.passes]
    return [q[int(k)] for k in np.linspace(0, len(q) - 1, min(most, len(q)))] if q else []


Seed = tuple[str, Spot, Trace]  # kind, where, on which curve


def _seeds(job: Job, pieces: list[Slice], loci: dict[str, Locus]) -> tuple[list[Seed], list[tuple[Spot, Trace]]]:
    """Places to start curves from, and dips of the constraints' own singular value."""
    watched = {kind: rows for kind, rows in watched_rows(job).items() if kind in loci}
    seeds: list[Seed] = []
    dipping: list[Seed] = []
    low: list[tuple[Spot, Trace]] = []
    nv = job.surface.system.layout.nv
    own = rank_rows(job.surface, job.roles, "constraint")
    for one, trace in [(x, trace) for x in pieces for trace in x.traces]:
        surveys = {kind: survey(trace.path, rows) for kind, rows in watched.items()}
        marks = landmarks(one.line, trace.path, surveys)
        seeds += [(m.what, m.spot, trace) for m in marks if m.what in loci]
        for kind, surveyed in surveys.items():
            near = {m.pair for m in marks if m.what == kind}
            dipping += [(kind, spot, trace) for spot in _dips(trace.path, surveyed.level(nv), near)]
        surveyed = survey(trace.path, own)
        low += [(spot, trace) for spot in _dips(trace.path, surveyed.level(surveyed.rank), set(), LOW_OWN)]
    return [*seeds, *dipping], low


def _dips(path: Path, level: np.ndarray, near: set[int], part: float = LOW) -> list[Spot]:
    """Samples at which a measure is low and lower than at both neighbours."""
    if len(level) < 3 or not np.isfinite(level).all():
        return []
    inner = np.arange(len(level)) if path.closed else np.arange(1, len(level) - 1)
    n = len(level)
    deep = part * np.median(level)
    return [
        path.samples[k].spot
        for k in inner
        if level[k] <= min(level[k - 1], level[(k + 1) % n]) and level[k] < deep and not near & {k - 1, k}
    ]


Paths = dict[str, list[tuple[Path, Trace]]]  # by kind; each with a slice's curve that it meets


def _follow_all(
    job: Job, loci: dict[str, Locus], seeds: list[Seed]
) -> tuple[Paths, list[tuple[np.ndarray, bool, Trace]]]:
    """Every curve once; and places from which none can be followed, with whether they are edges."""
    paths: Paths = {kind: [] for kind in loci}
    singles = []
    for kind, spot, trace in seeds:
        locus = loci[kind]
        if any(lies_on(locus, path, spot.q) for path, _ in paths[kind]):
            continue
        start = locus.onto(spot.q, 1e-10)
        if start is None or job.surface.distance(start.q, spot.q) > FAR or _beyond(job, start) > 1e-9:
            continue
        if sample_on(locus, start) is None:
            singles.append((start.q, kind == EDGE, trace))
            continue
        if any(lies_on(locus, path, start.q) for path, _ in paths[kind]):
            continue
        path = follow(locus, start, lambda s: _beyond(job, s))
        if len(path.samples) > 1:
            paths[kind].append((path, trace))
    return paths, singles


def _bridge_still(job: Job, pieces: list[Slice], paths: Paths) -> None:
    """Join the branches that meet where the machine moves while the map's coordinates stand still.

    No slice leads along such a curve, since the held coordinate has its value only there.
    """
    surface = job.surface
    for path in [path for some in paths.values() for path, _ in some]:
        if np.max(np.ptp(job.values(path.q), axis=0)) > 1e-7:
            continue
        beside = []
        for sample in path.samples[:: max(1, len(path.samples) // 2)]:
            tangents = surface.tangents(sample.spot, job.rank)
            along = np.linalg.solve(sample.spot.back, sample.ahead)
            coordinates = np.linalg.solve(sample.spot.back, tangents).T @ along
            sideways = tangents @ np.array([-coordinates[1], coordinates[0]])
            for side in (0.05, -0.05):
                spot = surface.onto(surface.move(sample.q, side * sideways / surface.size(sideways)), job.rank)
                beside += [spot.q] if spot is not None else []
        bridge(surface, job.rank, job.axes[0], pieces, beside)


def _beyond(job: Job, spot: Spot) -> float:
    beyond = [-1.0]
    for axis, (low, high) in zip(job.axes, job.ranges, strict=True):
        y = float(axis.value(spot.q))
        beyond += [] if axis.full else [low - y, y - high]
    return max(beyond)


def _curves(job: Job, loci: dict[str, Locus], paths: Paths) -> tuple[SingularCurve, ...]:
    """The records; an edge that is also a singular curve is told only once."""
    out = []
    for kind, some in paths.items():
        for path, trace in some:
            middle = path.samples[len(path.samples) // 2].spot
            here = {k: abs(locus.matrix.value(middle)) < job.tolerance for k, locus in loci.items()}
            kinds = tuple(k for k in here if here[k] and k != EDGE)
            if kind != (kinds[0] if kinds else EDGE):
                continue  # the same curve stands under its first kind
            q = path.q
            measure = max(abs(loci[kind].matrix.value(sample.spot)) for sample in path.samples)
            states = State(job.surface.system.layout, q, t=np.full(len(q), job.surface.t))
            out.append(
                SingularCurve(kinds, here.get(EDGE, False), job.values(q), states, path.closed, trace.branch, measure)
            )
    return tuple(sorted(out, key=lambda c: (c.kinds, c.branch, -len(c.values))))


def _constraint_places(
    job: Job, low: list[tuple[Spot, Trace]], places: list[np.ndarray]
) -> list[tuple[np.ndarray, Trace]]:
    """Places where the constraints themselves become dependent, from dips of their singular value."""
    surface, own = job.surface, rank_rows(job.surface, job.roles, "constraint")
    rank = ordinary_ranks(surface, job.roles, places)["constraint"]
    found: list[tuple[np.ndarray, Trace]] = []
    for spot, trace in low if rank else []:
        frame = evidence(own(spot))[1][:, :rank]
        end = settle(surface, surface.look(spot.q), own, frame)
        if surface.distance(end.q, spot.q) > FAR or not job.inside(end.q):
            continue
        if evidence(own(end))[0][rank - 1] > surface.system.tolerance or np.abs(end.residual).max() > 1e-9:
            continue
        if all(surface.distance(end.q, q) > 1e-5 for q, _ in found):
            found.append((end.q, trace))
    return found


def _distinct(job: Job, points: list[SingularPoint]) -> tuple[SingularPoint, ...]:
    out: list[SingularPoint] = []
    for point in points:
        if all(job.surface.distance(point.state.q, other.state.q) > 1e-5 for other in out):
            out.append(point)
    return tuple(sorted(out, key=lambda p: p.values))


def _branches(job: Job, pieces: list[Slice]) -> tuple[Branch, ...]:
    """One record for each branch: all its assemblies at the centres of cells."""
    owned: dict[int, list[np.ndarray]] = {}
    for piece in pieces:
        for trace in piece.traces:
            owned.setdefault(trace.branch, []).extend(q for _, q, _ in trace.passes)
    layout, t = job.surface.system.layout, job.surface.t
    out = []
    for branch in sorted(owned):
        q = np.array(owned[branch])
        if len(q):
            out.append(Branch(job.values(q), State(layout, q, t=np.full(len(q), t)), False, (), {}))
    return tuple(out)
