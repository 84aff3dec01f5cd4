"""How far a coordinate of an assembled machine can go, and what ends its travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.analysis.branches import excess, limits_of, random_starts, solve_many, starting_place, within_limits
from sarrus.analysis.landmarks import edge_rows, landmarks, settle, survey
from sarrus.analysis.roles import evidence
from sarrus.analysis.surface import Spot, Surface, coordinate_index, make_surface
from sarrus.analysis.tracing import Line, Path, follow, lies_on
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError

BATCHES = 12  # of random starts, at most
CLIMBERS = 16  # starts from which a coordinate is driven to its ends, where there is more than one way to move
FAR = 30.0  # a machine that gets this far, in units of the scales, is taken to go on for ever
DEAD, OPEN, LOST = "dead point", "no end", "not followed further"


@dataclass(frozen=True, eq=False)
class End:
    """Where the travel of a coordinate ends.

    Attributes:
        value: of the coordinate.
        cause: "dead point" (it turns back, whatever drives the machine), "limit of NAME", "no end", or "not followed
            further" (a place that a curve cannot be followed through).
        state: the position.
    """

    value: float
    cause: str
    state: State


@dataclass(frozen=True, eq=False)
class Travel:
    """An interval that a coordinate can go through without taking the machine apart.

    Attributes:
        low: its lower end.
        high: its upper end.
        round: whether it makes full turns; the ends then mean nothing.
        states: configurations along it; only the ends where there is more than one way to move.
    """

    low: End
    high: End
    round: bool
    states: State

    def __str__(self) -> str:
        """The interval and what ends it."""
        if self.round:
            return "all the way round"
        ends = f"{round(self.low.value, 12):.10g} to {round(self.high.value, 12):.10g}"
        return f"{ends} ({self.low.cause}; {self.high.cause})"


@dataclass(frozen=True, eq=False)
class Reach:
    """The outcome of `reach`; prints itself.

    Attributes:
        name: of the machine.
        coordinate: whose travel it is.
        unit: "rad" or "m", or empty if unknown.
        hold: values of the coordinates that were held.
        mobility: in how many ways the machine can move with these held.
        travels: one interval for each branch (mobility 1), or for each range found (more).
    """

    name: str
    coordinate: str
    unit: str
    hold: Mapping[str, float]
    mobility: int
    travels: tuple[Travel, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name, "coordinate": self.coordinate, "unit": self.unit, "hold": dict(self.hold),
            "mobility": self.mobility,
            "travels": [
                {"round": x.round}
                | {k: {"value": e.value, "cause": e.cause} for k, e in (("low", x.low), ("high", x.high))}
                for x in self.travels
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        """One line for each interval."""
        unit = f" [{self.unit}]" if self.unit else ""
        held = ", ".join(f"{name} = {x:.6g}" for name, x in self.hold.items())
        lines = [f"{self.name}: reach of {self.coordinate}{unit}" + (f" with {held}" if held else "")]
        lines += [f"  {travel}" for travel in self.travels]
        if not self.travels:
            lines.append("  nothing: it cannot be put together within its limits")
        return "\n".join(lines)


def reach(
    system: System,
    coordinate: str,
    *,
    hold: Mapping[str, float] | None = None,
    branches: str | State = "all",
    limits: bool = True,
    t: float = 0.0,
    active: Mapping[str, bool] | None = None,
) -> Reach:
    """Find how far a coordinate can go, on every branch, with the limits of all joints respected.

    A machine that can move in one way (with what is held) is followed along every branch; ends are located to
    rounding. One that can move in several ways is driven uphill and downhill from many starts, and intervals that
    overlap are joined: they may belong to different branches.

    Args:
        system: the machine.
        coordinate: its name.
        hold: values of other coordinates.
        branches: "all", or a state: then only the branch through it, or what can be reached from it.
        limits: respect the limits of the joints.
        t: time [s], for moving constraints.
        active: constraint name -> False to leave it out.
    """
    where = coordinate_index(system, coordinate)
    surface = make_surface(system, hold or {}, t, active)
    if where[1] in surface.held_v:
        raise StateError(f"reach: {coordinate!r} cannot be held and reach anything at once")
    if not isinstance(branches, State) and branches != "all":
        raise StateError(f"reach: branches must be 'all' or a state, got {branches!r}")
    near = branches.q if isinstance(branches, State) else None
    rank = surface.rank(starting_place(surface) if near is None else near)
    free = system.layout.nv - rank
    if free == 0:
        raise StateError(f"{system.name}: with {', '.join(hold or {}) or 'nothing'} held it cannot move")
    stops = limits_of(system) if limits else []
    travels = _travels(surface, rank, where, stops, near)
    layout = system.layout
    unit = "" if not layout.bodies else "rad" if layout.angles[where[1]] else "m"
    return Reach(system.name, coordinate, unit, dict(hold or {}), free, tuple(travels))


def travels_of(surface: Surface, where: tuple[int, int]) -> list[Travel]:
    """What `reach` finds for a coordinate, limits left aside."""
    rank = surface.rank(starting_place(surface))
    return _travels(surface, rank, where, [], None) if rank < surface.system.layout.nv else []


def _travels(
    surface: Surface, rank: int, where: tuple[int, int], stops: list[Any], near: np.ndarray | None
) -> list[Travel]:
    alone = rank == surface.system.layout.nv - 1
    found = (_along if alone else _driven)(surface, rank, where, stops, near)
    return sorted(found, key=lambda x: (x.low.value, x.high.value))


def _on_surface(surface: Surface, rank: int, near: np.ndarray | None) -> Any:
    """Batches of configurations, those with the ordinary rank only; just the given one if there is one."""
    if near is not None:
        yield [near]
        return
    for number in range(BATCHES):
        yield [q for q in solve_many(surface, random_starts(surface, number)) if surface.rank(q) == rank]


def _beyond(surface: Surface) -> Any:
    """How far a configuration is beyond where anything of interest can be."""
    start, steady = np.array(surface.system.layout.initial), ~surface.period

    def outside(spot: Spot) -> float:
        away = np.abs(surface.gap(start, spot.q)) / surface.scales
        return float(np.max(away[steady], initial=0.0)) - FAR

    return outside


# --- one way to move -------------------------------------------------------------------------------------------------


def _along(
    surface: Surface, rank: int, where: tuple[int, int], stops: list[Any], near: np.ndarray | None
) -> list[Travel]:
    line, paths, outside = Line(surface, rank), [], _beyond(surface)
    quiet = 0
    for batch in _on_surface(surface, rank, near):
        before = len(paths)
        for q in batch:
            if not any(lies_on(line, path, q) for path in paths):
                path = follow(line, surface.look(q), outside)
                paths += [path] if len(path.samples) > 1 else []
        quiet = quiet + 1 if len(paths) == before and batch else 0
        if quiet == 2:
            break
    return [travel for path in paths for travel in _parts(line, path, where, stops)]


def _parts(line: Line, path: Path, where: tuple[int, int], stops: list[Any]) -> list[Travel]:
    """The parts of a curve within the limits."""
    surface = line.surface
    marks = landmarks(line, path, {DEAD: survey(path, edge_rows(surface, where[1]))}, limits=bool(stops))
    marks = [mark for mark in marks if mark.what == DEAD or mark.what.startswith("limit")]
    chain: list[tuple[np.ndarray, str]] = []  # configurations in order, whole turns counted; what each one is
    q = path.samples[0].q
    for k, (a, b) in enumerate(path.pairs(surface)):
        chain.append((q, ""))
        here = sorted((m for m in marks if m.pair == k), key=lambda m: surface.size(surface.gap(a.q, m.spot.q)))
        chain += [(surface.move(q, surface.gap(a.q, m.spot.q)), m.what) for m in here]
        q = surface.move(q, surface.gap(a.q, b.q))
    chain.append((q, ""))
    if not path.closed:
        outside = _beyond(surface)
        for k in (0, -1):
            chain[k] = (chain[k][0], OPEN if outside(path.samples[k].spot) > -1e-6 else LOST)
    fits = [all(excess(stop, q, surface.period) <= 1e-9 for stop in stops) for q, _ in chain]
    if all(fits):
        return [_travel(surface, chain, where[0], path.closed)]
    if path.closed:  # begin the round where it is not allowed, so that no part is cut in two
        first = fits.index(False)
        chain, fits = _rolled(surface, chain, first), [*fits[first:-1], *fits[: first + 1]]
    parts: list[list[tuple[np.ndarray, str]]] = [[]]
    for item, fit in zip(chain, fits, strict=True):
        if fit:
            parts[-1].append(item)
        elif parts[-1]:
            parts.append([])
    return [_travel(surface, part, where[0], False) for part in parts if len(part) > 1]


def _rolled(surface: Surface, chain: list[tuple[np.ndarray, str]], first: int) -> list[tuple[np.ndarray, str]]:
    """A closed chain begun at another place."""
    whole = chain[-1][0] - chain[0][0] if surface.system.layout.nq == surface.system.layout.nv else None
    later = [(q + whole if whole is not None else q, what) for q, what in chain[1 : first + 1]]
    return [*chain[first:], *later]


def _travel(surface: Surface, part: list[tuple[np.ndarray, str]], index: int, closed: bool) -> Travel:
    layout, t = surface.system.layout, surface.t
    q = np.array([q for q, _ in part])
    y = q[:, index]
    rounds = closed and abs(y[-1] - y[0]) > np.pi
    low, high = int(np.argmin(y)), int(np.argmax(y))
    shift = 2 * np.pi * np.round((y[low] + y[high]) / (4 * np.pi)) if _turning(surface, index) else 0.0
    ends = [End(float(y[k] - shift), part[k][1] or DEAD, State(layout, q[k], t=t)) for k in (low, high)]
    return Travel(ends[0], ends[1], bool(rounds), State(layout, q, t=np.full(len(q), t)))


def _turning(surface: Surface, index: int) -> bool:
    layout = surface.system.layout
    return bool(surface.period[coordinate_index(surface.system, layout.q_names[index])[1]])


# --- several ways to move --------------------------------------------------------------------------------------------


def _driven(
    surface: Surface, rank: int, where: tuple[int, int], stops: list[Any], near: np.ndarray | None
) -> list[Travel]:
    starts: list[np.ndarray] = []
    for batch in _on_surface(surface, rank, near):
        starts += [q for q in batch if not stops or within_limits(surface.system, q, surface.period)]
        if len(starts) >= CLIMBERS:
            break
    found: list[tuple[End, End, bool]] = []
    for q in starts[:CLIMBERS]:
        high, over = _climb(surface, rank, q, where, 1.0, stops)
        low, under = _climb(surface, rank, q, where, -1.0, stops)
        found.append((low, high, over or under))
    return _joined(surface, found, where[0])


def _joined(surface: Surface, found: list[tuple[End, End, bool]], index: int) -> list[Travel]:
    """Intervals that overlap become one."""
    layout, t = surface.system.layout, surface.t

    def travel(low: End, high: End, rounds: bool) -> Travel:
        q = np.array([low.state.q, high.state.q])
        return Travel(low, high, rounds, State(layout, q, t=np.full(2, t)))

    for low, high, rounds in found:
        if rounds:
            return [travel(low, high, True)]
    merged: list[tuple[End, End]] = []
    for low, high, _ in sorted(found, key=lambda x: x[0].value):
        if merged and low.value <= merged[-1][1].value + 1e-9:
            last = merged[-1]
            merged[-1] = (last[0], max(last[1], high, key=lambda end: end.value))
        else:
            merged.append((low, high))
    return [travel(low, high, False) for low, high in merged]


def _climb(
    surface: Surface, rank: int, q: np.ndarray, where: tuple[int, int], sign: float, stops: list[Any]
) -> tuple[End, bool]:
    """Drive a coordinate up (or down) as far as it goes; whether it went all the way round.

    The steepest way on the surface; a joint that meets a limit is held there for the rest of the way, unless it would
    leave the limit by itself.
    """
    held: list[Any] = []
    start, step, outside = q[where[0]], 0.1, _beyond(surface)
    for _ in range(600):
        now, extra = _with_stops(surface, held, q)
        spot = now.look(q)
        slope, ahead = _steepest(now, spot, rank + extra, where, sign)
        if slope < 1e-6:
            freed = [stop for stop in held if _leaves(surface, rank, spot, where, sign, stop, held)]
            if not freed:
                break
            held = [stop for stop in held if stop not in freed]
            continue
        new = now.onto(surface.move(q, step * ahead), rank + extra, 1e-10)
        if new is None or sign * (new.q[where[0]] - q[where[0]]) <= 0.1 * slope * step:
            step *= 0.4
            if step < 1e-9:
                break
            continue
        over = [stop for stop in stops if stop not in held and excess(stop, new.q, surface.period) > 0]
        if over:
            if step < 1e-8:
                held.append(over[0])
                step = 0.05
            else:
                step *= 0.4
            continue
        q, step = new.q, min(0.2, 1.5 * step)
        if outside(new) > 0:
            return _end(surface, q, where, OPEN), False
        if surface.period[where[1]] and abs(q[where[0]] - start) > 2 * np.pi:
            return _end(surface, q, where, OPEN), True
    now, extra = _with_stops(surface, held, q)
    rows = edge_rows(now, where[1])
    beside = evidence(rows(now.look(surface.move(q, 1e-3 * surface.scales))))[1]
    best = settle(now, now.look(q), rows, beside[:, : rank + extra + 1])
    q = best.q if surface.distance(best.q, q) < 0.05 else q
    return _end(surface, q, where, f"limit of {held[-1][2]}" if held else DEAD), False


def _end(surface: Surface, q: np.ndarray, where: tuple[int, int], cause: str) -> End:
    return End(float(q[where[0]]), cause, State(surface.system.layout, q, t=surface.t))


def _with_stops(surface: Surface, held: list[Any], q: np.ndarray) -> tuple[Surface, int]:
    """The surface with some joints at the limits they are next to, and by how much its rank is larger."""
    for index, k, _, low, high in held:
        turn = 2 * np.pi * np.round((q[index] - (low + high) / 2) / (2 * np.pi)) if surface.period[k] else 0.0
        surface = surface.holding((index, k), min((low + turn, high + turn), key=lambda x: abs(x - q[index])))
    return surface, len(held)


def _steepest(surface: Surface, spot: Spot, rank: int, where: tuple[int, int], sign: float) -> tuple[float, np.ndarray]:
    """Rate of the coordinate along the steepest direction of size 1, and the direction."""
    tangents = surface.tangents(spot, rank)
    ahead = sign * tangents @ tangents[where[1]]
    size = float(surface.size(ahead))
    if not size > 0:
        return 0.0, ahead
    return float(sign * ahead[where[1]] / size), ahead / size


def _leaves(
    surface: Surface, rank: int, spot: Spot, where: tuple[int, int], sign: float, stop: Any, held: list[Any]
) -> bool:
    """Whether the coordinate could go on by moving a joint away from its limit."""
    others = [other for other in held if other is not stop]
    now, extra = _with_stops(surface, others, spot.q)
    slope, ahead = _steepest(now, now.look(spot.q), rank + extra, where, sign)
    inside = surface.move(spot.q, 1e-4 * ahead)
    return slope > 1e-4 and bool(excess(stop, inside, surface.period) < excess(stop, spot.q, surface.period) - 1e-9)
