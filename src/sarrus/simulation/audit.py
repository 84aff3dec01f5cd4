"""The audit: does a recorded motion satisfy the machine's own equations?

Everything is computed again from t, q, v, a and u alone. Closures, velocities and accelerations are compared with
Φ = 0, A v = a and A v̇ = γ; these with M v̇ + h = B u + Aᵀλ for the best λ; and the energy with the work done:

    J(t) - J(0) = ∫ (vᵀB u + λᵀa + vᵀD λ_N + applied - dissipated - ∂L/∂t) dt + jumps at events,   J = vᵀ∂T/∂v - T + V,

where J = T + V for every machine of bodies, L = T - V, λᵀa is the power of constraints that move and vᵀD λ_N that of
friction at contacts. The integral uses three Gauss points between two rows, where the motion is interpolated; half the
rows, left out, tell what it resolves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.errors import SarrusError, UnknownNameError
from sarrus.model.layout import Layout
from sarrus.simulation import access, evaluate, interpolate

if TYPE_CHECKING:
    from sarrus.dynamics.system import System
    from sarrus.simulation.evaluate import Residuals
    from sarrus.simulation.trajectory import Trajectory

TINY = 1e-3  # a machine that moves less than this part of its length in the whole run counts as standing still
TOLERANCE = 1e-6

# name -> (how it reads, what to do when it is too large)
QUANTITIES = {
    "loop": (
        "loop error",
        "Keep drift='project', and ask for a smaller rtol or max_step.",
    ),
    "velocity": (
        "velocity error",
        "Keep drift='project', ask for a smaller rtol, and start from a state that `system.assemble` returned.",
    ),
    "acceleration": (
        "acceleration error",
        "The recorded accelerations break the constraints: look for a singular position near this time, or for an "
        "event without its row before and after; if the record was sampled, audit the one it came from.",
    ),
    "motion": (
        "equations of motion",
        "The recorded accelerations do not follow from the forces: check that the machine, its parameters and the "
        "inputs are those of the run; if the record was sampled, audit the one it came from.",
    ),
    "energy": (
        "energy balance",
        "Ask for a smaller rtol or dt; if only the audit cannot follow the work of inputs, record more rows.",
    ),
}


class AuditError(SarrusError):
    """A motion that breaks the machine's equations by more than was allowed.

    Attributes:
        audit: all that was found.
    """

    def __init__(self, text: str, audit: Audit):
        """Keep the evidence beside the text."""
        self.audit = audit
        super().__init__(text)


@dataclass(frozen=True)
class Worst:
    """The largest error of one kind.

    Attributes:
        value: the error, in `unit`.
        relative: the error divided by what it should be compared with.
        unit: of `value`.
        t: when [s].
        where: constraint row, if it belongs to one.
    """

    value: float = 0.0
    relative: float = 0.0
    unit: str = ""
    t: float = 0.0
    where: str = ""


@dataclass(frozen=True)
class Jump:
    """A change of energy between the two rows of an event.

    Attributes:
        t: when [s].
        energy: what was added; negative if lost [J].
        event: its name, if the record has one.
    """

    t: float
    energy: float
    event: str = ""


@dataclass(frozen=True, eq=False)
class Audit:
    """What a check of a trajectory found; prints itself.

    Attributes:
        name: the machine.
        rows: of the record.
        span: first and last time [s].
        loop: size of Φ, relative to the machine's length (angles: to 1 rad).
        velocity: size of A v - a, relative to the largest size of the row's terms during the run.
        acceleration: size of A v̇ - γ, likewise.
        motion: the part of M v̇ + h - B u that no λ explains, in the mass metric, relative to the size of the terms.
        energy: the part of the energy's change that no work explains, relative to the energy that moves.
        by_group: relative loop error of each constraint.
        work: done by inputs, loads, dampers and moving constraints over the whole run [J].
        resolution: how well the integral of the power is known [J].
        jumps: energy changes at events, which the balance leaves out.
        rank: independent active rows, at each row of the record.
        rank_changes: (time, rank before, rank after).
        singular: rows of the record at which the rank is lower than usual in their segment; they do not count in
            `motion`, since the constraints do not tell the direction of their force there.
        crossings: number of singular positions passed.
        events: number of events.
    """

    name: str
    rows: int
    span: tuple[float, float]
    loop: Worst
    velocity: Worst
    acceleration: Worst
    motion: Worst
    energy: Worst
    by_group: Mapping[str, float]
    work: float
    resolution: float
    jumps: tuple[Jump, ...]
    rank: np.ndarray
    rank_changes: tuple[tuple[float, int, int], ...]
    singular: int
    crossings: int
    events: int

    def ok(self, tolerance: float | Mapping[str, float] = TOLERANCE) -> bool:
        """Whether every relative error is at most the tolerance.

        An energy error that the integral of the power cannot resolve does not count.

        Args:
            tolerance: one number, or one for each quantity by name ("loop", "velocity", "acceleration", "motion",
                "energy"); quantities left out are not judged.
        """
        return not self._failures(tolerance)

    def _failures(self, tolerance: float | Mapping[str, float]) -> list[tuple[float, str, float]]:
        """Quantities above their limit: (how many times, name, limit), worst first."""
        limits = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(QUANTITIES, float(tolerance))
        out = []
        for name, limit in limits.items():
            if name not in QUANTITIES:
                raise UnknownNameError("audit quantity", name, list(QUANTITIES))
            worst: Worst = getattr(self, name)
            if not worst.relative <= limit and not (name == "energy" and worst.value <= self.resolution):
                out.append((worst.relative / limit if limit > 0 else np.inf, name, limit))
        return sorted(out, reverse=True)

    def raise_above(self, tolerance: float | Mapping[str, float]) -> None:
        """Raise `AuditError` naming the worst quantity, if one is larger than its tolerance.

        Args:
            tolerance: as for `ok`.
        """
        failures = self._failures(tolerance)
        if not failures:
            return
        _, name, limit = failures[0]
        worst: Worst = getattr(self, name)
        title, cure = QUANTITIES[name]
        place = f" in {worst.where!r}" if worst.where else ""
        others = [QUANTITIES[key][0] for _, key, _ in failures[1:]]
        more = f" Too large as well: {', '.join(others)}." if others else ""
        raise AuditError(
            f"{self.name}: {title} {worst.relative:.3g} at t = {worst.t:.9g} s{place}, allowed is {limit:.3g} "
            f"(relative; it is {worst.value:.3g} {worst.unit}). {cure}{more}".replace(" )", ")"),
            self,
        )

    def __str__(self) -> str:
        """A table of the errors, then energy, rank, crossings and events."""
        lines = [f"{self.name}: audit of {self.rows} rows from t = {self.span[0]:.9g} to {self.span[1]:.9g} s"]
        lines.append(f"  {'':<20} {'relative':>9}  {'largest':>14}  {'at t [s]':>11}  where")
        for key, (title, _) in QUANTITIES.items():
            worst: Worst = getattr(self, key)
            size = f"{worst.value:.2g} {worst.unit}"
            lines.append(f"  {title:<20} {worst.relative:>9.2g}  {size:>14}  {worst.t:>11.6g}  {worst.where}".rstrip())
        if self.work or self.resolution:
            lines.append(f"  work done {self.work:.9g} J, integrated to about {self.resolution:.1g} J")
        for jump in self.jumps[:5]:
            lines.append(f"  energy {jump.energy:+.6g} J at t = {jump.t:.9g} s {jump.event}".rstrip())
        if len(self.jumps) > 5:
            lines.append(f"  … and {len(self.jumps) - 5} more changes of energy at events")
        lines.append(
            f"  rank {_range(self.rank)}" + (f", {len(self.rank_changes)} changes" if self.rank_changes else "")
        )
        if self.singular:
            lines[-1] += f"; {self.singular} rows at singular positions, left out of the equations of motion"
        lines.append(f"  {self.crossings} crossings, {self.events} events")
        return "\n".join(lines)


def _range(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def audit(traj: Trajectory, raise_above: float | Mapping[str, float] | None = None) -> Audit:
    """Check a trajectory against the equations of its machine.

    Args:
        traj: the record.
        raise_above: limits as for `Audit.ok`; `AuditError` if one is exceeded.
    """
    x, r, t = traj.system.layout, traj.residuals, traj.t
    span = float(t[-1] - t[0])
    unit = np.array([x.length if row.unit == "m" else 1.0 for row in x.rows])
    still = TINY * unit / span if span > 0 else np.zeros(x.m)
    loop = r.loop / unit
    singular = np.concatenate([r.rank[rows] < np.median(r.rank[rows]) for rows, _, _ in traj.pieces()])
    energy, work, resolution, jumps = _energy(traj, r)
    changes = np.flatnonzero(np.diff(r.rank))
    result = Audit(
        name=x.name,
        rows=len(traj),
        span=(float(t[0]), float(t[-1])),
        loop=_worst_row(x, t, r.loop, loop, ""),
        velocity=_worst_row(x, t, r.slip, _relative(r.slip, r.slip_size, still), "/s"),
        acceleration=_worst_row(x, t, r.pull, _relative(r.pull, r.pull_size, still / max(span, 1e-300)), "/s2"),
        motion=_motion(t, r, singular),
        energy=energy,
        by_group={group: float(loop[:, x.group_rows(group)].max(initial=0.0)) for group in x.groups},
        work=work,
        resolution=resolution,
        jumps=jumps,
        rank=r.rank,
        rank_changes=tuple((float(t[k + 1]), int(r.rank[k]), int(r.rank[k + 1])) for k in changes),
        singular=int(singular.sum()),
        crossings=len(traj.crossings),
        events=len(traj.events),
    )
    if raise_above is not None:
        result.raise_above(raise_above)
    return result


def _relative(error: np.ndarray, size: np.ndarray, floor: np.ndarray) -> np.ndarray:
    scale = np.maximum(size.max(axis=0, initial=0.0), floor)
    return error / np.where(scale > 0, scale, 1.0)


def _worst_row(layout: Layout, t: np.ndarray, error: np.ndarray, relative: np.ndarray, per: str) -> Worst:
    if not error.size:
        return Worst()
    i, j = np.unravel_index(int(np.argmax(relative)), relative.shape)
    row = layout.rows[j]
    return Worst(float(error[i, j]), float(relative[i, j]), (row.unit or "1") + per, float(t[i]), row.name)


def _motion(t: np.ndarray, r: Residuals, singular: np.ndarray) -> Worst:
    scale = np.maximum(r.motion_size, TINY * r.motion_size.max())
    relative = np.where(singular, 0.0, r.motion / np.where(scale > 0, scale, 1.0))
    i = int(np.argmax(relative))
    return Worst(float(r.motion[i]), float(relative[i]), "√J/s", float(t[i]))


# --- energy ----------------------------------------------------------------------------------------------------------
def _energy(traj: Trajectory, r: Residuals) -> tuple[Worst, float, float, tuple[Jump, ...]]:
    """The worst imbalance, the work, its uncertainty, and the jumps."""
    stored = np.concatenate(
        [
            evaluate.evaluate(balance(system)[0], _arguments(system, traj, rows), rows.stop - rows.start)[0][:, 0, 0]
            for rows, _, system in traj.pieces()
        ]
    )
    before = access.breaks(traj)
    steps = np.diff(stored)
    leap = np.zeros(len(stored))
    leap[before + 1] = steps[before]
    work = _work(traj, r, np.arange(len(traj)))
    half = _every_other(traj)
    resolution = float(np.abs(_work(traj, r, half) - work[half]).max()) / 4 if np.any(work) else 0.0
    error = np.abs(stored - stored[0] - work - np.cumsum(leap))
    energy = traj.energy
    moved = max(float(np.max(energy.kinetic)), float(np.ptp(energy.potential)), float(np.ptp(work)))
    scale = max(moved, 1e-6 * float(np.max(np.abs(stored))))  # rounding of a large constant is no motion
    i = int(np.argmax(error))
    names = {event.t: event.name for event in traj.events}
    found = [Jump(float(traj.t[k]), float(steps[k]), names.get(float(traj.t[k]), "")) for k in before]
    jumps = tuple(jump for jump in found if jump.energy or jump.event)  # where inputs jump, energy does not
    worst = Worst(float(error[i]), float(error[i]) / scale if scale > 0 else 0.0, "J", float(traj.t[i]))
    return worst, float(work[-1]), resolution, jumps


def balance(system: System, driven: bool = True) -> tuple[Any, Any]:
    """The energy J and the power put in except by constraints, as CasADi functions of (t, q, v, u, p).

    Args:
        system: the machine.
        driven: whether any input is not zero.

    Returns:
        Both functions; None for the power if it is zero always.
    """
    import casadi as ca

    from sarrus.symbolic.algebra import Function

    s = evaluate.symbols(system)
    T, V, t, v = s["kinetic"], s["potential"], s["t"], s["v"]
    stored = ca.jtimes(T, v, v) - T + V
    power = s["applied"] - s["dissipated"] - ca.gradient(T - V, t)
    if driven and system.layout.nu:
        power += ca.dot(s["B"] @ s["u"], v)
    power = ca.sparsify(ca.simplify(power))
    full = [s[key] for key in ("t", "q", "v", "u", "p")]
    energy = Function("energy", full, [ca.densify(stored)])
    return energy, Function("power", full, [ca.densify(power)]) if power.nnz() else None


def _arguments(system: System, traj: Trajectory, rows: slice) -> list[np.ndarray]:
    return [traj.t[rows, None], traj.q[rows], traj.v[rows], traj.u[rows], system.p]


def _every_other(traj: Trajectory) -> np.ndarray:
    """Every second row of each smooth stretch, with its first and last; inputs that are held must not change in it."""
    breaks = access.breaks(traj)
    cuts = [0, *breaks, *(breaks + 1), len(traj) - 1]
    cuts += np.flatnonzero(np.any(np.diff(traj.u, axis=0) != 0, axis=1) & access.held(traj)[:-1]).tolist()
    cuts = np.unique(cuts)
    return np.unique(np.concatenate([cuts, *(np.arange(a, b, 2) for a, b in pairwise(cuts))]))


def _work(traj: Trajectory, r: Residuals, kept: np.ndarray) -> np.ndarray:
    """Work done since the start at the kept rows, from these rows alone."""
    start, held = traj.setting_out[kept], access.held(traj)[kept, None]
    t, q, v, a, u = (getattr(traj, key)[kept] for key in "tqvau")
    ends = np.flatnonzero(np.isin(kept, access.breaks(traj)))
    smooth = np.setdiff1d(np.arange(len(kept) - 1), ends)
    gains = np.zeros(len(kept))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    for rows, segment, system in traj.pieces():
        mine = smooth[(kept[smooth] >= rows.start) & (kept[smooth] < rows.stop)]
        flags = system.active_rows(segment.active)
        _, power = balance(system, bool(np.any(traj.u[rows])))
        moving = bool(np.any(r.drive[rows]))
        rubbing = bool(np.any(flags[system.layout.rubbing_rows]))
        if power is None and not moving and not rubbing:
            continue
        for first in range(0, mine.size, 8192):  # bounds memory
            part = mine[first : first + 8192]
            width = t[part + 1] - t[part]
            for node, weight in zip(nodes, weights, strict=True):
                when = t[part] + width * (1 + node) / 2
                spot, speed, _ = interpolate.hermite(system.layout, t, q, v, a, part, when, start)
                push = np.where(held[part], u[part + 1], interpolate.between(u, t, ends, part, when))
                total = np.zeros(part.size)
                if power is not None:
                    inputs = [when[:, None], spot, speed, push, system.p]
                    total += evaluate.evaluate(power, inputs, part.size)[0][:, 0, 0]
                if moving or rubbing:
                    total += _drive_power(system, State(system.layout, spot, speed, when), push, flags)
                gains[part + 1] += total * width * weight / 2
    return np.cumsum(gains)


def _drive_power(system: System, state: State, u: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """λᵀa + vᵀD λ_N, the power of constraints that move and of friction at contacts."""
    _, lam = evaluate.solve_rows(system, state, u, flags)
    lam = lam * flags
    speeds = np.concatenate([x.a for _, x in evaluate.terms_in_chunks(system, state)])
    return np.einsum("nm,nm->n", lam, speeds) + evaluate.friction_power(system, state, lam)
