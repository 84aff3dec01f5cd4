"""What a trajectory holds, by name; the values between its rows; and two trajectories made into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.manifold import difference
from sarrus.dynamics.solution import Energy
from sarrus.dynamics.state import State
from sarrus.errors import StateError, UnknownNameError
from sarrus.model.layout import Layout
from sarrus.simulation import evaluate, interpolate
from sarrus.simulation.status import Stats

if TYPE_CHECKING:
    from sarrus.dynamics.system import System
    from sarrus.simulation.status import Crossing
    from sarrus.simulation.trajectory import Segment, Trajectory

ENERGIES = ("kinetic", "potential", "total", "dissipated", "applied")


# --- segments --------------------------------------------------------------------------------------------------------
def pieces(traj: Trajectory) -> list[tuple[slice, Segment, System]]:
    """Rows of each segment, the segment, and the machine with its parameters."""
    starts = [segment.start for segment in traj.segments]
    out = []
    for segment, start, stop in zip(traj.segments, starts, [*starts[1:], len(traj)], strict=True):
        system = traj.system
        if not np.array_equal(segment.p, system.p):
            system = system.with_parameters(**dict(zip(system.layout.parameters, segment.p.tolist(), strict=True)))
        if stop > start:
            out.append((slice(start, stop), segment, system))
    return out


def states(traj: Trajectory, rows: slice) -> State:
    """An array of states from rows of the record."""
    return State(traj.system.layout, traj.q[rows], traj.v[rows], traj.t[rows])


def breaks(traj: Trajectory) -> np.ndarray:
    """Rows after which the motion does not go on smoothly: another segment begins, or time stands still."""
    starts = [rows.start - 1 for rows, _, _ in traj.pieces()[1:]]
    return np.union1d(np.flatnonzero(np.diff(traj.t) <= 0), np.array(starts, dtype=int))


def held(traj: Trajectory) -> np.ndarray:
    """Whether inputs were held after each row, until the next, which has those with which it was reached."""
    out = np.zeros(len(traj), dtype=bool)
    for rows, segment, _ in traj.pieces():
        out[rows] = segment.held
    return out


def setting_out(traj: Trajectory) -> np.ndarray:
    """Accelerations just after each row: inputs that are held change there to those of the next row."""
    out = traj.a
    if not any(segment.held for segment in traj.segments) or len(traj) < 2:
        return out
    changed = np.any(np.diff(traj.u, axis=0) != 0, axis=1) & held(traj)[:-1]
    changed[breaks(traj)] = False
    out = out.copy()
    for rows, segment, system in traj.pieces():
        mine = rows.start + np.flatnonzero(changed[rows])
        if mine.size:
            flags = system.active_rows(segment.active)
            where = State(system.layout, traj.q[mine], traj.v[mine], traj.t[mine])
            out[mine] = evaluate.solve_rows(system, where, traj.u[mine + 1], flags)[0]
    return out


def residuals(traj: Trajectory) -> evaluate.Residuals:
    """What is left of each equation at each row."""
    parts = []
    for rows, segment, system in traj.pieces():
        flags = system.active_rows(segment.active)
        parts.append(evaluate.residuals(system, states(traj, rows), traj.a[rows], traj.u[rows], flags))
    return evaluate.Residuals.joined(parts)


def energy(traj: Trajectory) -> Energy:
    """Energies and powers at each row."""
    parts = []
    for rows, _, system in traj.pieces():
        where = states(traj, rows)
        found = evaluate.energies(system, where)
        rubbed = evaluate.friction_power(system, where, traj.lam[rows])
        parts.append(replace(found, dissipated=found.dissipated - rubbed))
    return Energy(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Energy)))


def poses(traj: Trajectory) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of every frame at each row."""
    parts = [evaluate.poses(system, states(traj, rows)) for rows, _, system in traj.pieces()]
    names = traj.system.layout.frames
    return {name: tuple(np.concatenate([part[name][k] for part in parts]) for k in (0, 1)) for name in names}  # type: ignore[misc]


def generalised(traj: Trajectory, group: str) -> np.ndarray:
    """A constraint's share A_gᵀ λ_g of the generalised constraint force at each row."""
    part, out = traj.system.layout.group_rows(group), []
    for rows, _, system in traj.pieces():
        lam = traj.lam[rows, part]
        chunks = evaluate.terms_in_chunks(system, states(traj, rows))
        out += [np.einsum("nmk,nm->nk", x.A[:, part], lam[inside]) for inside, x in chunks]
    return np.concatenate(out)


# --- names -----------------------------------------------------------------------------------------------------------
def value(traj: Trajectory, name: Any) -> np.ndarray:
    """Values along the motion by name; see `Trajectory.__getitem__` for what a name may be."""
    if isinstance(name, str):
        for meaning in (_coordinates, _inputs, _forces, _frames, _energies):
            found = meaning(traj, name)
            if found is not None:
                return found
    raise UnknownNameError("quantity", name, names(traj))


def names(traj: Trajectory) -> list[str]:
    """All names that `value` understands, each coordinate by itself."""
    x = traj.system.layout
    out = ["t", *x.q_names, *velocity_names(x), *(f"{name}.a" for name in x.v_names)]
    out += [f"{name}.u" for name in x.u_names]
    out += [f"{name}.force" for name in dict.fromkeys([*x.groups, *(row.name for row in x.rows)])]
    out += [f"{name}.generalised" for name in x.groups]
    out += [f"{name}.{what}" for name in x.frames for what in ("position", "rotation")]
    return list(dict.fromkeys([*out, *(f"energy.{what}" for what in ENERGIES)]))


def velocity_names(layout: Layout) -> list[str]:
    """Names of the velocities that no position has: `A.v`, but `platform.omega.x`."""
    return [f"{name}.v" if name in layout.q_names else name for name in layout.v_names]


def _find(layout: Layout, name: str, kind: str) -> slice | None:
    try:
        return layout.find(name, kind)
    except UnknownNameError:
        return None


def _columns(values: np.ndarray, where: slice | None) -> np.ndarray | None:
    if where is None:
        return None
    part = values[:, where]
    return part[:, 0].copy() if part.shape[1] == 1 else part.copy()


def _coordinates(traj: Trajectory, name: str) -> np.ndarray | None:
    """`t`, a joint or one of its coordinates, also with .q, .v or .a; a name without it is a position if it can be."""
    x = traj.system.layout
    for suffix, kind, values in ((".q", "q", traj.q), (".v", "v", traj.v), (".a", "v", traj.a)):
        if name.endswith(suffix):
            found = _columns(values, _find(x, name.removesuffix(suffix), kind))
            if found is not None:
                return found
    for kind, values in (("q", traj.q), ("v", traj.v)):
        found = _columns(values, _find(x, name, kind))
        if found is not None:
            return found
    return traj.t.copy() if name == "t" else None


def _inputs(traj: Trajectory, name: str) -> np.ndarray | None:
    return _columns(traj.u, _find(traj.system.layout, name.removesuffix(".u"), "u"))


def _forces(traj: Trajectory, name: str) -> np.ndarray | None:
    x = traj.system.layout
    name = name.removeprefix("loop.")
    stem, _, what = name.rpartition(".")
    if what == "force" and stem in x.groups:
        return traj.lam[:, x.group_rows(stem)].copy()
    if what == "generalised" and stem in x.groups:
        return generalised(traj, stem)
    rows = [row.name for row in x.rows]
    return traj.lam[:, rows.index(stem)].copy() if what == "force" and stem in rows else None


def _frames(traj: Trajectory, name: str) -> np.ndarray | None:
    for asked in (name, name.removeprefix("frame.")):  # a body may be called "frame"
        stem, _, what = asked.rpartition(".")
        if stem in traj.system.layout.frames and what in ("position", "rotation"):
            return traj.poses()[stem][0 if what == "position" else 1]
    return None


def _energies(traj: Trajectory, name: str) -> np.ndarray | None:
    start, _, what = name.partition(".")
    return np.array(getattr(traj.energy, what)) if start == "energy" and what in ENERGIES else None


# --- between rows ----------------------------------------------------------------------------------------------------
def between(traj: Trajectory, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a and u at any times within the record, on the constraints."""
    index, ends = interval(traj, times), breaks(traj)
    exact = traj.t[index] == times
    for k in index[~exact & np.isin(index, ends)][:1]:
        raise StateError(
            f"{traj.system.name}: an event changed the machine between the rows t = {traj.t[k]:.9g} s and "
            f"{traj.t[k + 1]:.9g} s, and the record has no rows at the event to tell what was in between; expected "
            "times outside: simulate with every step recorded to ask there"
        )
    start, holding = traj.setting_out, held(traj)
    q, v, a, u = (values[index].copy() for values in (traj.q, traj.v, traj.a, traj.u))
    for rows, segment, system in traj.pieces():
        mine = np.flatnonzero((index >= rows.start) & (index < rows.stop) & ~exact)
        if not mine.size:
            continue
        flags = system.active_rows(segment.active)
        spot = interpolate.hermite(system.layout, traj.t, traj.q, traj.v, traj.a, index[mine], times[mine], start)
        q[mine], v[mine], a[mine] = evaluate.corrected(system, times[mine], *spot, flags)
        later = index[mine] + 1
        between_rows = interpolate.between(traj.u, traj.t, ends, index[mine], times[mine])
        u[mine] = np.where(holding[index[mine], None], traj.u[later], between_rows)
    return q, v, a, u


def interval(traj: Trajectory, times: np.ndarray) -> np.ndarray:
    """The last row not later than each time; of two rows with the same time the second."""
    if times.ndim != 1 or not np.isfinite(times).all():
        raise StateError(f"{traj.system.name}: expected finite times in a list, got {times!r}")
    outside = (times < traj.t[0]) | (times > traj.t[-1])
    if np.any(outside):
        raise StateError(
            f"{traj.system.name}: t = {times[outside][0]:.9g} s lies outside the record, which spans "
            f"{traj.t[0]:.9g} s to {traj.t[-1]:.9g} s; nothing is extrapolated: simulate for longer"
        )
    return np.searchsorted(traj.t, times, side="right") - 1


def sample(traj: Trajectory, times: Any) -> Trajectory:
    """The same motion at other times."""
    times = np.array(times, dtype=float)
    index = interval(traj, times)
    if not times.size or np.any(np.diff(times) <= 0):
        raise StateError(f"{traj.system.name}: expected at least one time, each later than the one before")
    q, v, a, u = between(traj, times)
    owner = np.searchsorted([segment.start for segment in traj.segments], index, side="right") - 1
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    segments = tuple(replace(traj.segments[owner[k]], start=int(k)) for k in first)

    def inside(records: tuple) -> tuple:
        return tuple(record for record in records if times[0] <= record.t <= times[-1])

    crossings, events = inside(traj.crossings), inside(traj.events)
    return replace(traj, t=times, q=q, v=v, a=a, u=u, segments=segments, crossings=crossings, events=events)


# --- one after the other ---------------------------------------------------------------------------------------------
def join(first: Trajectory, second: Trajectory) -> Trajectory:
    """One trajectory from two, the second of which starts where the first ended.

    The row that both have is kept once if it says the same in both; if inputs, velocities, parameters or active
    constraints change there, both rows stay, as at an event.
    """
    _check_joint(first, second)
    return append(first, second)


def append(first: Trajectory, second: Trajectory) -> Trajectory:
    """One trajectory from two that are known to belong together."""
    last, start = first.segments[-1], second.segments[0]
    pairs = [(getattr(first, key)[-1], getattr(second, key)[0]) for key in "tqvau"]
    alike = last.held == start.held and np.array_equal(last.p, start.p)
    same = (
        alike
        and _active(first, last) == _active(second, start)
        and all(np.allclose(x, y, rtol=1e-9, atol=1e-12) for x, y in pairs)
    )
    skip = int(same)
    shift = len(first) - skip
    moved = [replace(segment, start=segment.start + shift) for segment in second.segments]
    arrays = {key: np.concatenate([getattr(first, key), getattr(second, key)[skip:]]) for key in "tqvau"}
    return replace(
        first,
        **arrays,
        status=second.status,
        stats=_sum(first.stats, second.stats),
        segments=(*first.segments, *(moved[1:] if same else moved)),
        crossings=first.crossings + _others(second.crossings, first.crossings[-1:]),
        events=first.events + second.events,
        settings=_settings_of_both(first.settings, second.settings),
    )


def _others(crossings: tuple[Crossing, ...], known: tuple[Crossing, ...]) -> tuple[Crossing, ...]:
    """Without the first passage if it is known: a run that stopped at a singular position starts in it again."""
    if known and crossings and abs(crossings[0].t - known[-1].t) <= 1e-9 * max(1e-3, abs(known[-1].t)):
        return crossings[1:]
    return crossings


def _settings_of_both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the second, with a list of the different ones before it; where each ended is in the record."""
    *earlier, last = *first.get("before", ()), {key: x for key, x in first.items() if key != "before"}
    own = {"t_end": None, "loop": None}  # what differs in any case
    alike = {**last, **own} == {**second, **own}
    before = earlier if alike else [*earlier, last]
    return {**second, "before": before} if before else dict(second)


def _active(traj: Trajectory, segment: Segment) -> list[float]:
    return traj.system.active_rows(segment.active).tolist()


def check_machine(x: Layout, y: Layout) -> None:
    """Refuse to go on with a trajectory of machine x as one of machine y, if these differ in any name."""
    for key, what in (
        ("name", "machine"), ("q_names", "coordinates"), ("v_names", "velocities"), ("u_names", "inputs"),
        ("groups", "constraints"),
    ):  # fmt: skip
        if getattr(x, key) != getattr(y, key):
            raise StateError(
                f"the trajectory belongs to {x.name!r}, not to {y.name!r} ({what} {getattr(x, key)!r} instead of "
                f"{getattr(y, key)!r}); expected one machine"
            )
    if list(x.parameters) != list(y.parameters):
        raise StateError(f"the trajectory of {x.name!r} has parameters {list(x.parameters)}, not {list(y.parameters)}")


def _check_joint(first: Trajectory, second: Trajectory) -> None:
    x = first.system.layout
    check_machine(x, second.system.layout)
    gap = second.t[0] - first.t[-1]
    if abs(gap) > 1e-9 * max(1e-3, abs(first.t[-1])):
        raise StateError(
            f"join: the first trajectory ends at t = {first.t[-1]:.9g} s, the second starts at {second.t[0]:.9g} s; "
            "start the second from `first.final`"
        )
    step = np.abs(difference(x, first.q[-1], second.q[0])) / np.array(x.scales or np.ones(x.nv))
    if np.any(step > 1e-8):
        k = int(np.argmax(step))
        raise StateError(
            f"join: at t = {second.t[0]:.9g} s the second trajectory starts elsewhere ({x.v_names[k]!r} differs by "
            f"{step[k]:.3g} of its scale); start the second from `first.final`"
        )


def _sum(a: Stats, b: Stats) -> Stats:
    counted = ("steps", "rejected", "evaluations", "projections", "bridges", "seconds")
    totals = {key: getattr(a, key) + getattr(b, key) for key in counted}
    steps = max(a.steps + b.steps, 1)
    weighted = [s.mean_step * s.steps for s in (a, b) if np.isfinite(s.mean_step)]
    return Stats(
        method=a.method if a.method == b.method else f"{a.method}, then {b.method}",
        rtol=float(np.fmax(a.rtol, b.rtol)),
        smallest_step=float(np.fmin(a.smallest_step, b.smallest_step)),
        mean_step=sum(weighted) / steps if weighted else float("nan"),
        **totals,
    )


def units(system: System) -> Mapping[str, list[str]]:
    """Units of positions, velocities, accelerations, inputs and multipliers; "" where the description tells none."""
    from sarrus.dynamics.manifold import plain_map
    from sarrus.model.parts import Model

    x = system.layout
    known = isinstance(system.description, Model)
    v = [("rad" if turns else "m") if known else "" for turns in x.angles]
    q = ["1"] * x.nq
    for i, j in zip(*plain_map(x), strict=True):
        q[i] = v[j]
    return {
        "q": q,
        "v": [f"{unit}/s" if unit else "" for unit in v],
        "a": [f"{unit}/s2" if unit else "" for unit in v],
        "lam": [{"m": "N", "rad": "N m"}.get(row.unit, "") for row in x.rows],
    }
