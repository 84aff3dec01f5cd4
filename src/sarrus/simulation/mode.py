"""One mode of a machine: which constraints are on and what its parameters are, as the integrator needs it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sarrus.dynamics.manifold import plain_map
from sarrus.dynamics.positions import Request, find_positions
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.rubbing import closed
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import Motion, Shape
from sarrus.simulation.evaluate import symbols

LOOSE = 1e-6  # a start may miss its constraints by so much, relative; it is then put right
ROUNDING = 1e-10  # a start with velocities that miss them by less stays as it is


@dataclass(frozen=True, eq=False)
class Mode:
    """A machine with some of its constraints switched on.

    Attributes:
        system: with the parameters of this mode.
        active: whether each constraint group is on, by name.
    """

    system: System
    active: Mapping[str, bool]

    @property
    def flags(self) -> np.ndarray:
        """One flag for each row."""
        plain = all(self.active.values()) and not self.system.layout.one_sided
        return self.system._all_rows if plain else self.system.active_rows(self.active)

    def errors(self, state: State) -> dict[str, tuple[float, float]]:
        """Position and velocity residuals of each active group, relative to the machine's size and its speed."""
        phi, slip = self._residuals(state)
        rows = {g: self.system.layout.group_rows(g) for g in self.system.groups if self.active[g]}
        return {g: (float(phi[s].max(initial=0)), float(slip[s].max(initial=0))) for g, s in rows.items()}

    def _residuals(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """The same for each row; rows that are off as zeros."""
        system = self.system
        if system.functions.once("idle", lambda: _idle(system)):
            assert system.library is not None
            parts = system.library.residuals(state.t, state.q, state.v, system._constants, self.flags)
            phi, slip, size, square = parts
        else:
            terms, flags = system.terms(state), self.flags
            phi, slip = terms.phi * flags, (terms.A @ state.v - terms.a) * flags
            size = np.abs(terms.A) @ np.abs(state.v) + np.abs(terms.a)
            square = state.v @ terms.M @ state.v
        # a row that vanishes at a singular position is compared with its usual size
        kept = system.kept_index
        usual = math.sqrt(square) * system.norms
        size[kept] = np.where(size[kept] <= system.tolerance * usual, usual, np.maximum(size[kept], 1e-3 * usual))
        size[size == 0] = 1.0
        return np.abs(phi) / system.units, np.abs(slip) / size

    def singular_values(self, t: float, q: np.ndarray) -> tuple[np.ndarray, int]:
        """Singular values of the active rows, as `System.rank` gives them, and their rank."""
        system = self.system
        assert system.library is not None
        rows = system.library.rows(t, q, system._constants, self.flags)[self.flags[system.kept_index] > 0]
        sigma = np.linalg.svd(rows, compute_uv=False) if rows.size else np.zeros(0)
        idle = min(int(self.flags.sum()), system.layout.nv) - len(sigma)  # rows without any entry
        return np.append(sigma, np.zeros(idle)), int(np.sum(sigma > system.tolerance))

    def enter(self, motion: Motion, state: State) -> None:
        """Put this mode into the integrator."""
        system, raw = self.system, motion.raw
        kept = system.kept_index
        flags = self.flags[kept]
        motion.fill("p", system.p)
        motion.fill("rowdata", system._constants.rowdata)
        motion.fill("active", flags)
        motion.fill("unit", system.units[kept])
        motion.fill("scale", system.scales)
        for options in (raw.setup.options, raw.regular):
            options.tolerance, options.fast_pivot = system.tolerance, system.fast_pivot
            options.mode, options.max_rank = 0, -1
        raw.released = 0
        raw.s_ref = 0.0
        motion.put("q", state.q)
        raw.t = state.t
        self.count(motion)

    def count(self, motion: Motion) -> None:
        """Tell the integrator, which is at a state in this mode, how many of the rows are independent."""
        raw, flags = motion.raw, self.flags[self.system.kept_index]
        raw.rank = motion.generic_rank() if len(flags) else 0  # and raw.here
        # where contacts rub all rows stay: how they share a force decides about the friction
        raw.dependent = int(raw.rank < int(flags.sum()) and not closed(self.system, self.active))

    def settled(self, state: State, precision: float) -> State:
        """The state moved onto the active constraints by the least change in the mass metric.

        Positions that satisfy them within `precision` stay; of the velocities that break them nothing is left, which is
        a plastic impact (sheet 2.9).
        """
        if max((error for error, _ in self.errors(state).values()), default=0.0) > precision:
            request = Request({}, {}, state, {}, state.t, self.active, min(precision, 1e-12))
            q, _ = find_positions(self.system, request, attempts=0)
            state = state if q is None else State(state.layout, q, state.v, state.t)
        terms = self.system.terms(state)
        L, S = scaled_rows(self.system, terms.M, terms.A, self.flags)
        kept, rows = list(self.system.kept), np.zeros(state.layout.m)
        rows[kept] = ((terms.A @ state.v - terms.a) * self.flags)[kept] / self.system.norms
        U, sigma, Vt = np.linalg.svd(S, full_matrices=False)
        r = int(np.sum(sigma > self.system.tolerance))
        step = -np.linalg.solve(L.T, Vt[:r].T @ ((U[:, :r].T @ rows) / sigma[:r]))
        return State(state.layout, state.q, state.v + step, state.t)

    def require(self, state: State, drift: str, precision: float) -> State:
        """A start that satisfies the active constraints: as it is, put right if it nearly does, else an error."""
        if drift != "project" or not self.active:
            return state
        phi, slip = self._residuals(state)
        if phi.max(initial=0) <= precision and slip.max(initial=0) <= ROUNDING:
            return state
        errors = self.errors(state)
        worst = max(errors, key=lambda g: errors[g][0])
        if errors[worst][0] > LOOSE:
            raise StateError(
                f"the start breaks constraint {worst!r} by {errors[worst][0]:.3g} of the machine's size; expected a "
                "state that is put together: use system.assemble(..., near=state)"
            )
        slipping = max(errors, key=lambda g: errors[g][1])
        if errors[slipping][1] > LOOSE:
            raise StateError(
                f"the velocities at the start break constraint {slipping!r} (by {errors[slipping][1]:.3g} of its "
                "speed); expected velocities that keep it: use system.assemble(positions, velocities=...)"
            )
        good = errors[worst][0] <= precision and errors[slipping][1] <= ROUNDING
        return state if good else self.settled(state, precision)

    def follow(self, state: State, rank: int) -> None:
        """Refuse velocities that no motion through a singular position has (sheet 2.6).

        Where rows are lost, A v̇ = γ must not ask for anything in their direction.

        Args:
            state: a start.
            rank: of the rows near it.
        """
        system, terms = self.system, self.system.terms(state)
        kept = list(system.kept)
        L, S = scaled_rows(system, terms.M, terms.A, self.flags)
        U, sigma, _ = np.linalg.svd(S[kept])
        r = int(np.sum(sigma > system.tolerance))
        if r >= rank:
            return
        lost = U[:, r:] @ (U[:, r:].T @ ((terms.gamma * self.flags)[kept] / system.norms))
        pace = float(np.max(np.abs(state.v) / np.array(system.layout.scales), initial=0.0))
        if np.linalg.norm(lost) > 1e-4 * pace * np.linalg.norm(L.T @ state.v):
            group = system.layout.rows[kept[int(np.argmax(np.abs(lost)))]].group
            raise StateError(
                f"the velocities at the start lead off every branch of {group!r}: it is a singular position, where "
                f"constraints lose {rank - r} of their rank {rank} and branches of motion meet; expected velocities "
                "along one of them (start a little before it, or see sarrus.assembly_modes and diagnose)"
            )


def _idle(system: System) -> bool:
    """Whether rows without any entry in A, which compiled code leaves out, always hold: their Φ is zero."""
    phi = symbols(system)["phi"]
    return all(phi[row].nnz() == 0 for row in range(system.layout.m) if row not in system.kept)


def shape_of(system: System) -> Shape:
    """What the integrators are compiled for."""
    return system.functions.once("shape", lambda: _shape(system))


def _shape(system: System) -> Shape:
    x = system.layout
    plain = tuple(zip(*(index.tolist() for index in plain_map(x)), strict=True))
    turns = tuple((turn.q, turn.v) for turn in x.turns)
    return Shape(x.nq, x.nv, x.nu, len(x.parameters), x.m, len(system.kept), plain, turns)
