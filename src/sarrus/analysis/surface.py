"""The configurations of a machine as a surface: places on it, its tangents, and finding the way onto it.

Everything is measured in the mass metric with rows scaled by fixed references (sheet 2.5), so nothing here depends on
units. Lengths of steps are the largest change of a coordinate in units of its scale (1 rad, or a length of the
machine).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sarrus.dynamics.manifold import difference, plain_map, retract
from sarrus.dynamics.positions import hold
from sarrus.dynamics.rank import mass_factor
from sarrus.dynamics.reference import sample_configurations
from sarrus.dynamics.system import System
from sarrus.errors import StateError

TURN = 2 * np.pi


@dataclass(frozen=True, eq=False)
class Spot:
    """A configuration with its rows.

    Attributes:
        q: positions.
        residual: scaled Φ, then the held coordinates' distance from their values.
        rows: their scaled derivatives in the mass metric, one column for each velocity.
        A: all constraint rows, scaled, in the mass metric; those switched off are zero.
        back: L⁻ᵀ, which turns vectors of the mass metric into velocities.
    """

    q: np.ndarray
    residual: np.ndarray
    rows: np.ndarray
    A: np.ndarray
    back: np.ndarray


StepAt = Callable[[Spot, int], np.ndarray | None]  # (place, which step it is) -> a velocity, or None: there is no way


@dataclass(frozen=True, eq=False)
class Surface:
    """All q with Φ(q, t) = 0 and some coordinates held.

    Attributes:
        system: the machine.
        held_q: position indices of the held coordinates.
        held_v: their velocity indices.
        values: what they are held at.
        t: time [s].
        flags: 1 for every active row.
        units: reference length of every velocity coordinate in the mass metric, |L⁻¹ eₖ|.
        period: velocity coordinates after a full turn of which everything is as before.
        bodies: those whose places tell configurations apart; all if empty.
    """

    system: System
    held_q: tuple[int, ...]
    held_v: tuple[int, ...]
    values: np.ndarray
    t: float
    flags: np.ndarray
    units: np.ndarray
    period: np.ndarray
    bodies: tuple[str, ...] = ()

    def holding(self, where: tuple[int, int], value: float) -> Surface:
        """The part of the surface where one more coordinate, given by its indices in q and v, has a value."""
        q, v = (*self.held_q, where[0]), (*self.held_v, where[1])
        return replace(self, held_q=q, held_v=v, values=np.append(self.values, value))

    @cached_property
    def _plain(self) -> bool:
        return not self.system.layout.turns

    @cached_property
    def row_index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows that count, whether each restricts positions, and factors that scale them."""
        kept = np.array(self.system.kept, dtype=int)
        holonomic = np.array([self.system.layout.rows[i].holonomic for i in kept], dtype=bool)
        return kept, np.flatnonzero(holonomic), self.flags[kept] / self.system.norms

    @cached_property
    def held_index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position and velocity indices of the held coordinates, and factors that scale their rows."""
        q, v = np.array(self.held_q, dtype=int), np.array(self.held_v, dtype=int)
        return q, v, 1 / self.units[v]

    @cached_property
    def scales(self) -> np.ndarray:
        """Typical size of each velocity coordinate's motion."""
        return np.array(self.system.layout.scales)

    # --- moving ----------------------------------------------------------------------------------------------------
    def move(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Positions after a step, which is a velocity times a time."""
        return q + step if self._plain else retract(self.system.layout, q, step)

    def gap(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The step from a to b, whole turns left out; both may have many rows."""
        step = (b - a) if self._plain else difference(self.system.layout, a, b)
        step = np.array(step)
        step[..., self.period] -= TURN * np.round(step[..., self.period] / TURN)
        return step

    def size(self, step: np.ndarray) -> Any:
        """Largest entry of a step in units of the scales."""
        return np.max(np.abs(step) / self.scales, axis=-1, initial=0.0)

    def distance(self, a: np.ndarray, b: np.ndarray) -> Any:
        """How far apart two configurations are, whole turns left out."""
        return self.size(self.gap(a, b))

    def poses(self, q: np.ndarray) -> np.ndarray:
        """Numbers that are equal for configurations in which every body is in the same place, one row for each.

        Whole turns and the two signs of a quaternion make no difference.
        """
        system, layout, count = self.system, self.system.layout, len(q)
        if not layout.bodies:
            turning = np.where(self.period, q, 0.0)
            return np.concatenate([np.where(self.period, 0.0, q), np.cos(turning), np.sin(turning)], axis=1)
        values = system.functions.many("frames", count, self.t, q, system.p)
        places = [layout.frames.index(name) for name in self.bodies or layout.bodies]
        parts = [values[2 * k + side] for k in places for side in (0, 1)]
        flat = [part.reshape(count, -1) / (layout.length if k % 2 == 0 else 1.0) for k, part in enumerate(parts)]
        return np.concatenate(flat, axis=1)

    def wrapped(self, q: np.ndarray) -> np.ndarray:
        """The same configuration with angles in (-π, π], those held excepted, and quaternions with w ≥ 0."""
        out, layout = np.array(q), self.system.layout
        plain_q, plain_v = plain_map(layout)
        for i, k in zip(plain_q.tolist(), plain_v.tolist(), strict=True):
            if self.period[k] and k not in self.held_v:
                out[..., i] = np.pi - (np.pi - out[..., i]) % TURN
        for turn in layout.turns:
            part = out[..., turn.q : turn.q + 4]
            lead = np.take_along_axis(part, np.argmax(np.abs(part) > 1e-9, axis=-1)[..., None], axis=-1)
            out[..., turn.q : turn.q + 4] = np.where(lead < 0, -part, part)
        return out

    # --- looking ---------------------------------------------------------------------------------------------------
    def look(self, q: np.ndarray) -> Spot:
        """Rows and residuals at a configuration."""
        kept, holonomic, factor = self.row_index
        place, speed, unit = self.held_index
        phi, A, M = self._terms(q)
        back = np.linalg.inv(mass_factor(self.system.name, M)).T
        scaled = factor[:, None] * (A[kept] @ back)
        rows = np.concatenate([scaled[holonomic], unit[:, None] * back[speed]])
        residual = np.concatenate([(factor * phi[kept])[holonomic], unit * (q[place] - self.values)])
        return Spot(q, residual, rows, scaled, back)

    def _terms(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Φ, A and M, in one column: taking arrays out of CasADi one by one costs more than computing them."""
        m, nv = self.system.layout.m, self.system.layout.nv
        column = np.array(self._packed.call([self.t, q, self.system.p])[0].full())[:, 0]
        A = column[m : m + m * nv].reshape(nv, m).T
        return column[:m], A, column[m + m * nv :].reshape(nv, nv).T

    @cached_property
    def _packed(self) -> Any:
        return _pack(self.system)

    def step_onto(self, spot: Spot, rank: int | None = None) -> np.ndarray:
        """The smallest step in the mass metric that removes the residual to first order."""
        if not spot.residual.size:
            return np.zeros(len(spot.back))
        U, sigma, Vt = np.linalg.svd(spot.rows, full_matrices=False)
        keep = int(np.sum(sigma > self.system.tolerance)) if rank is None else rank
        return -spot.back @ (Vt[:keep].T @ ((U[:, :keep].T @ spot.residual) / sigma[:keep]))

    def onto(self, q: np.ndarray, rank: int | None = None, tolerance: float = 1e-12, tries: int = 12) -> Spot | None:
        """The configuration on the surface next to q, or None if Newton's method does not find one."""
        return self.settle(q, lambda spot, _: self.step_onto(spot, rank), tolerance, tries)

    def settle(self, q: np.ndarray, step_at: StepAt, tolerance: float, tries: int) -> Spot | None:
        """Where steps of Newton's method lead from q; None if they do not converge, or there is none."""
        last = np.inf
        for number in range(tries):
            spot = self.look(q)
            if not np.isfinite(spot.residual).all():
                return None
            step = step_at(spot, number)
            if step is None:
                return None
            size = self.size(step)
            if size < tolerance or (size < 1e-9 and size >= last):
                return spot
            if size > 1.0:
                return None
            q, last = self.move(q, step), size
        return None

    def tangents(self, spot: Spot, rank: int) -> np.ndarray:
        """Velocities that keep it on the surface: columns, orthonormal in the mass metric."""
        if not spot.rows.size:
            return spot.back.copy()
        return spot.back @ np.linalg.svd(spot.rows)[2][rank:].T

    def rank(self, q: np.ndarray) -> int:
        """Independent rows at a configuration."""
        rows = self.look(q).rows
        return int(np.sum(np.linalg.svd(rows, compute_uv=False) > self.system.tolerance)) if rows.size else 0


@functools.lru_cache(maxsize=16)
def _pack(system: System) -> Any:
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    f = system.functions.function("position")
    t, q, p = SX.sym("t"), SX.sym("q", system.layout.nq), SX.sym("p", len(system.p))
    phi, A, _, _, M = f.call([t, q, p])
    return ca.Function("packed", [t, q, p], [ca.densify(ca.vertcat(ca.vec(phi), ca.vec(A), ca.vec(M)))])


def make_surface(
    system: System, held: Mapping[str, float], t: float = 0.0, active: Mapping[str, bool] | None = None
) -> Surface:
    """The surface of a machine with some coordinates held at values."""
    where = [coordinate_index(system, name) for name in held]
    values = [float(hold(system, np.array(system.layout.initial), {n: x}, "q")[0][w[0]]) for (n, x), w in
              zip(held.items(), where, strict=True)]  # fmt: skip
    units = reference_lengths(system, np.eye(system.layout.nv))
    return Surface(
        system, tuple(w[0] for w in where), tuple(w[1] for w in where), np.array(values), t,
        system.active_rows(active), units, _periodic(system, t),
    )  # fmt: skip


def coordinate_index(system: System, name: str) -> tuple[int, int]:
    """Indices in q and v of a coordinate that is a plain number."""
    where = system.layout.find(name.removesuffix(".q"))
    plain_q, plain_v = plain_map(system.layout)
    if where.stop - where.start != 1 or where.start not in plain_q:
        parts = ", ".join(system.layout.q_names[where])
        raise StateError(f"{name!r} is not a single number but {parts}; name one angle or shift")
    return where.start, int(plain_v[np.flatnonzero(plain_q == where.start)[0]])


def reference_lengths(system: System, rows: Any) -> np.ndarray:
    """Typical length in the mass metric of rows that multiply v: their root mean square over sample configurations.

    Args:
        system: the machine.
        rows: an array, or a function of q that gives one.
    """
    squares, layout = [], system.layout
    for q in sample_configurations(layout):
        with np.errstate(all="ignore"):
            M = system.functions("position", 0.0, q, system.p)[4]
        here: Any = rows(q) if callable(rows) else rows
        try:
            squares.append(np.sum(np.linalg.solve(np.linalg.cholesky(M), here.T) ** 2, axis=0))
        except np.linalg.LinAlgError:  # a sample in a place where the terms do not exist
            continue
    if not squares:
        start: Any = rows(np.array(layout.initial)) if callable(rows) else rows
        return np.ones(len(start))
    mean = np.sqrt(np.mean(squares, axis=0))
    return np.where(mean > 1e-12 * np.max(mean, initial=0.0), mean, 1.0)


def _periodic(system: System, t: float) -> np.ndarray:
    """Velocity coordinates that are angles of period 2π: found by trying, so that gears are not taken for hinges."""
    layout = system.layout
    out = np.zeros(layout.nv, dtype=bool)
    samples = sample_configurations(layout, 3, seed=5)

    def same(shift: float, index: int) -> bool:
        moved = samples.copy()
        moved[:, index] += shift
        for q, other in zip(samples, moved, strict=True):
            one, two = (system.functions("position", t, x, system.p) for x in (q, other))
            for k in (0, 1, 4):
                if not np.allclose(one[k], two[k], rtol=1e-9, atol=1e-9 * (1 + np.abs(one[k]).max(initial=0.0))):
                    return False
        return True

    for i, k in zip(*(x.tolist() for x in plain_map(layout)), strict=True):
        known = len(layout.angles) == layout.nv and bool(layout.bodies)
        if known and not layout.angles[k]:
            continue
        with np.errstate(all="ignore"):
            out[k] = same(TURN, i) and (known or not same(1.0, i))
    return out
