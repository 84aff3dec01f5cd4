"""All ways in which a machine can be put together: Newton's method from many starts at once, duplicates merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sarrus.analysis.surface import Surface, make_surface
from sarrus.dynamics.manifold import plain_map, retract
from sarrus.dynamics.reference import sample_configurations
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import AssemblyError, StateError, UnknownNameError

BATCH = 64  # starts solved together
HITS = 3  # a list counts as complete when every assembly in it was found this often ...
LEAST = 4  # ... after at least this many batches
MOST = 40
LOOSE = 8  # examples kept of configurations that do not stand alone
SAME = 1e-6  # places of bodies closer than this, in lengths of the machine and radians, are one
ITERATIONS = 50
RADIUS = 0.6  # longest step, in units of the scales


@dataclass(frozen=True, eq=False)
class AssemblyModes(Sequence[State]):
    """The outcome of `assembly_modes`: a sequence of states that says how it was found.

    Attributes:
        states: one for each assembly, in ascending order of their coordinates.
        hits: how often each was found.
        starts: from how many starts.
        loose: states from which it can still move although the coordinates are held; these are not counted.
        outside: assemblies left out because a joint is outside its limits.
    """

    states: tuple[State, ...]
    hits: tuple[int, ...]
    starts: int
    loose: tuple[State, ...] = ()
    outside: int = 0

    @property
    def settled(self) -> bool:
        """Whether each was found several times over, so that one more is unlikely."""
        return min(self.hits, default=HITS) >= HITS

    def __len__(self) -> int:
        """How many assemblies there are."""
        return len(self.states)

    def __getitem__(self, index: Any) -> Any:
        """One of the states, or several."""
        return self.states[index]

    def __str__(self) -> str:
        """Counts, then the coordinates of each."""
        lines = [f"{len(self)} assembl{'y' if len(self) == 1 else 'ies'}, from {self.starts} starts"]
        lines[0] += "" if self.settled else "; some were found only once or twice, so there may be more"
        for state, hits in zip(self.states, self.hits, strict=True):
            q = ", ".join(f"{n}={x:.6g}" for n, x in zip(state.layout.q_names, state.q, strict=True))
            lines.append(f"  {q}  (found {hits} times)")
        if self.loose:
            lines.append("  and a continuum of others, from which it can still move")
        if self.outside:
            lines.append(f"  {self.outside} more with a joint outside its limits")
        return "\n".join(lines)


def assembly_modes(
    system: System,
    positions: Mapping[str, float],
    *,
    t: float = 0.0,
    active: Mapping[str, bool] | None = None,
    limits: bool = True,
    bodies: Sequence[str] = (),
) -> AssemblyModes:
    """Every way in which a machine can be put together with some coordinates given.

    Newton's method runs from many starts spread over all configurations, the same ones every time; results in which
    every body is in the same place are merged. It stops when each assembly has been found several times over, so that
    one more is unlikely. No method by starts can prove that nothing is missing.

    Args:
        system: the machine.
        positions: as many coordinates as the machine has mobility, by name.
        t: time [s], for moving constraints.
        active: constraint name -> False to leave it out.
        limits: leave out assemblies in which a joint is outside its limits.
        bodies: names of bodies or frames; assemblies in which these are in the same place count once. All bodies if
            empty: then a rod on a universal joint that can also be mounted half a turn about itself counts twice.

    Returns:
        States at rest; none if the positions cannot be reached.

    Raises:
        StateError: the coordinates given leave it free to move, so that assemblies are not counted but continuous.
    """
    surface = replace(make_surface(system, positions, t, active), bodies=known_frames(system, bodies))
    found = find_modes(surface)
    if found.loose and not found.places:
        q = found.loose[0]
        given = ", ".join(positions) or "nothing"
        free = system.layout.nv - surface.rank(q)
        text = f"{system.name}: with {given} given it can still move in {free} way(s), so assemblies cannot be "
        raise StateError(
            text + f"counted; give {free} more of: {', '.join(plain_names(system, set(surface.held_v))[:12])}"
        )
    inside = [not limits or within_limits(system, q, surface.period) for q in found.places]
    kept = [k for k, fine in enumerate(inside) if fine]
    return AssemblyModes(
        tuple(State(system.layout, found.places[k], t=t) for k in kept), tuple(found.hits[k] for k in kept),
        found.starts, tuple(State(system.layout, q, t=t) for q in found.loose), len(inside) - len(kept),
    )  # fmt: skip


def known_frames(system: System, names: Sequence[str]) -> tuple[str, ...]:
    """The names, if they are bodies or frames of the machine."""
    for name in names:
        if name not in system.layout.frames:
            raise UnknownNameError("body or frame", name, system.layout.frames)
    return tuple(names)


def plain_names(system: System, taken: set[int]) -> list[str]:
    """Names of the coordinates that are single numbers, those at some velocity indices left out."""
    pairs = zip(*(x.tolist() for x in plain_map(system.layout)), strict=True)
    return [system.layout.q_names[i] for i, k in pairs if k not in taken]


def _moves(surface: Surface, q: np.ndarray) -> bool:
    """Whether there is a finite motion from q, and not just one of first order."""
    tangents = surface.tangents(surface.look(q), surface.rank(q))
    for direction in tangents.T:
        step = 0.02 * direction / surface.size(direction)
        spot = surface.onto(surface.move(q, step))
        if spot is not None and surface.distance(spot.q, q) > 0.01:
            return True
    return False


@dataclass(frozen=True, eq=False)
class Found:
    """Configurations found from many starts: `places` that stand alone, and some `loose` ones that can move on."""

    places: list[np.ndarray]
    hits: list[int]
    loose: list[np.ndarray]
    starts: int


def find_modes(surface: Surface, most: int = MOST) -> Found:
    """Configurations on a surface that should consist of single points, in a fixed order.

    Args:
        surface: with enough coordinates held.
        most: batches of starts, at most.
    """
    found, poses, hits = np.zeros((0, surface.system.layout.nq)), np.zeros((0, 0)), np.zeros(0, dtype=int)
    loose: list[np.ndarray] = []
    number = 0
    for number in range(1, most + 1):
        reached = solve_many(surface, random_starts(surface, number - 1))
        for q, pose in zip(reached, surface.poses(reached) if len(reached) else (), strict=True):
            apart = np.max(np.abs(poses - pose), axis=1) if len(poses) else np.ones(0)
            if np.any(apart < SAME):
                hits[np.argmin(apart)] += 1
            elif surface.rank(q) < surface.system.layout.nv and _moves(surface, q):
                loose += [surface.wrapped(q)] if len(loose) < LOOSE else []
            else:
                found, hits = np.vstack([found, q]), np.append(hits, 1)
                poses = np.vstack([poses.reshape(-1, len(pose)), pose])
        if number >= LEAST and hits.min(initial=HITS) >= HITS:
            break
    places = surface.wrapped(found)
    order = sorted(range(len(places)), key=lambda k: tuple(np.round(places[k], 6)))
    return Found([places[k] for k in order], [int(hits[k]) for k in order], loose, number * BATCH)


def random_starts(surface: Surface, number: int) -> np.ndarray:
    """A batch of configurations over the whole range, in the first one also those near the initial guess."""
    layout = surface.system.layout
    out = sample_configurations(layout, BATCH, seed=1000 + number)
    if number == 0:
        rng = np.random.default_rng(1)
        size = np.linspace(0.0, 1.0, BATCH // 4)[:, None]
        near = size * surface.scales * rng.uniform(-1, 1, (len(size), layout.nv))
        out[: len(size)] = retract(layout, np.array(layout.initial), near)
    out[:, list(surface.held_q)] = surface.values
    return out


def solve_many(surface: Surface, starts: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """Newton's method from many configurations at once.

    Args:
        surface: where to get to.
        starts: positions, one row for each.
        values: what the held coordinates are to be, one row for each start; those of the surface if None.

    Returns:
        The configurations that were reached, (count, nq). With `values` there is one row for each start, and those
        that did not get there are not-a-number.
    """
    q = np.array(starts, dtype=float)
    goal = np.broadcast_to(surface.values if values is None else values, (len(q), len(surface.held_q)))
    done = np.full(q.shape, np.nan)
    index, radius = np.arange(len(q)), np.full(len(q), RADIUS)
    step, merit = _steps(surface, q, goal) if len(q) else (np.zeros((0, 0)), np.zeros(0))
    for iteration in range(ITERATIONS):
        size = surface.size(step)
        ready = size < 1e-12
        done[index[ready]] = q[ready]
        keep = ~ready & np.isfinite(merit) & (radius > 1e-4)
        if iteration >= 20:
            keep &= size < 0.5  # those that wander for so long seldom arrive
        index, q, goal, step, merit = index[keep], q[keep], goal[keep], step[keep], merit[keep]
        radius, size = radius[keep], size[keep]
        if not len(index):
            break
        trial = retract(surface.system.layout, q, step * np.minimum(1.0, radius / size)[:, None])
        next_step, next_merit = _steps(surface, trial, goal)
        settled = (size < 1e-9) & ~(surface.size(next_step) < size)  # rounding is all that is left
        done[index[settled]] = q[settled]
        better = next_merit < merit
        radius = np.where(better, np.minimum(2 * radius, RADIUS), radius / 4)
        radius[settled] = 0.0
        close = better | (size < 1e-6)
        q[close], step[close], merit[close] = trial[close], next_step[close], next_merit[close]
    arrived = np.flatnonzero(np.isfinite(done).all(axis=1))
    if len(arrived):
        done[arrived[~_assembled(surface, done[arrived])]] = np.nan
    return done if values is not None else done[np.isfinite(done).all(axis=1)]


def _steps(surface: Surface, q: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Damped Newton steps for many configurations, and their squared residuals (infinite where there are none)."""
    system, nv = surface.system, surface.system.layout.nv
    kept, holonomic, factor = surface.row_index
    place, speed, unit = surface.held_index
    with np.errstate(all="ignore"):
        phi, A, _, _, M = system.functions.many("position", len(q), surface.t, q, system.p)
    flat = np.concatenate([x.reshape(len(q), -1) for x in (phi, A, M)], axis=1)
    finite = np.asarray(np.all(np.isfinite(flat), axis=1))
    A, phi = np.where(finite[:, None, None], A, 0.0), np.where(finite[:, None], phi, 0.0)
    M = np.where(finite[:, None, None], M, np.eye(nv))
    try:
        back = np.linalg.inv(np.linalg.cholesky(M)).transpose(0, 2, 1)
    except np.linalg.LinAlgError:  # at some of them M is not positive definite
        finite &= np.linalg.eigvalsh(M)[:, 0] > 0
        M = np.where(finite[:, None, None], M, np.eye(nv))
        back = np.linalg.inv(np.linalg.cholesky(M)).transpose(0, 2, 1)
    on = kept[holonomic]
    held = np.broadcast_to(unit[:, None] * back[:, speed], (len(q), len(speed), nv))
    rows = np.concatenate([factor[holonomic, None] * (A[:, on] @ back), held], axis=1)
    residual = np.concatenate([factor[holonomic] * phi[:, on], unit * (q[:, place] - goal)], axis=1)
    merit = np.where(finite, np.sum(residual**2, axis=1), np.inf)
    if not rows.shape[1]:
        return np.zeros((len(q), nv)), merit
    U, sigma, Vt = np.linalg.svd(rows, full_matrices=False)
    relative = np.max(np.abs(residual) / np.linalg.norm(rows, axis=2).clip(1e-9), axis=1)
    damping = (np.minimum(1e-2, relative) * sigma[:, 0])[:, None]
    inverse = np.where(sigma > system.tolerance, sigma / np.maximum(sigma**2 + damping**2, 1e-300), 0.0)
    scaled = inverse * np.einsum("nij,ni->nj", U, residual)
    return -np.einsum("nij,nj->ni", back, np.einsum("nji,nj->ni", Vt, scaled)), merit


def _assembled(surface: Surface, q: np.ndarray) -> np.ndarray:
    """Where all closures really hold (a dependent row may not), and axes point the right way."""
    system, layout, t = surface.system, surface.system.layout, surface.t
    on = np.array([row.holonomic for row in layout.rows], dtype=float) * surface.flags
    units = np.array([layout.length if row.unit == "m" else 1.0 for row in layout.rows])
    phi = system.functions.many("position", len(q), t, q, system.p)[0]
    fine = np.all(np.abs(phi) * on <= 1e-9 * units, axis=1)
    if system.guard_rows:
        free = surface.flags[list(system.guard_rows)] == 0
        guards = np.array([system.functions("guards", t, x, system.p)[0] for x in q])
        fine &= np.all((guards > 0) | free, axis=1)
    return fine


def limits_of(system: System) -> list[tuple[int, int, str, float, float]]:
    """Position index, velocity index, name and limits of each coordinate that has any."""
    layout, out = system.layout, []
    to_v = dict(zip(*(x.tolist() for x in plain_map(layout)), strict=True))
    for name, (low, high) in layout.limits.items():
        index = layout.find(name).start
        out.append((index, to_v[index], name, float(low), float(high)))
    return out


def excess(limit: tuple[int, int, str, float, float], q: np.ndarray, period: np.ndarray) -> Any:
    """How far a coordinate is beyond its limits (negative inside), whole turns left out."""
    index, k, _, low, high = limit
    offset = q[..., index] - (low + high) / 2
    if period[k]:
        offset = offset - 2 * np.pi * np.round(offset / (2 * np.pi))
    return np.abs(offset) - (high - low) / 2


def within_limits(system: System, q: np.ndarray, period: np.ndarray) -> bool:
    """Whether every joint is inside its limits."""
    return all(excess(limit, q, period) <= 1e-9 for limit in limits_of(system))


def starting_place(surface: Surface) -> np.ndarray:
    """Some configuration on a surface that may have any dimension: the nearest to the machine's initial guess.

    Raises:
        AssemblyError: none was found.
    """
    names = [surface.system.layout.q_names[i] for i in surface.held_q]
    rows = surface.system.layout.rows
    off = {row.group: False for row, flag in zip(rows, surface.flags, strict=True) if flag == 0}
    try:
        positions = dict(zip(names, surface.values.tolist(), strict=True))
        return surface.system.assemble(positions, t=surface.t, active=off).q.copy()
    except AssemblyError:
        pass
    for number in range(6):
        found = solve_many(surface, random_starts(surface, number))
        if len(found):
            return found[0]
    held = ", ".join(f"{surface.system.layout.q_names[i]} = {x:.6g}" for i, x in
                     zip(surface.held_q, surface.values, strict=True))  # fmt: skip
    text = f"{surface.system.name}: it cannot be put together" + (f" with {held}" if held else "")
    raise AssemblyError(text + "; see system.assemble for the constraint that fails", {}, np.array([]))
