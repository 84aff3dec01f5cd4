"""One mode of a machine: which constraints are on and what its parameters are, as the integrator needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sarrus.dynamics.manifold import plain_map, retract
from sarrus.dynamics.positions import Request, find_positions
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import Motion, Shape

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
        return self.system.active_rows(self.active)

    def units(self) -> np.ndarray:
        """What a residual of each row is measured in: the machine's length, or 1 rad."""
        layout = self.system.layout
        return np.array([layout.length if row.unit == "m" else 1.0 for row in layout.rows])

    def errors(self, state: State) -> dict[str, tuple[float, float]]:
        """Position and velocity residuals of each active group, relative to the machine's size and its speed."""
        terms, unit = self.system.terms(state), self.units()
        phi = np.abs(terms.phi) / unit
        slip = np.abs(terms.A @ state.v - terms.a)
        size = np.abs(terms.A) @ np.abs(state.v) + np.abs(terms.a)
        # a row that vanishes at a singular position is compared with its usual size
        kept, usual = list(self.system.kept), 1e-3 * np.sqrt(state.v @ terms.M @ state.v)
        size[kept] = np.maximum(size[kept], usual * self.system.norms)
        slip = np.where(slip > 0, slip / np.where(size > 0, size, 1.0), 0.0)
        rows = {g: self.system.layout.group_rows(g) for g in self.system.groups if self.active[g]}
        return {g: (float(phi[s].max(initial=0)), float(slip[s].max(initial=0))) for g, s in rows.items()}

    def generic_rank(self, state: State) -> int:
        """Rank of the active rows near a state, away from singular positions.

        The rank at the state may be too small there (it may be singular) and the rank at positions that break the loops
        too large (overconstrained machines), so neighbours on the manifold are asked.
        """
        flags, system = self.flags, self.system
        best = _rank(system, state, flags)
        if best == min(int(flags[list(system.kept)].sum()), system.layout.nv):
            return best  # no position has more
        rng = np.random.default_rng(1)
        scales = np.array(system.layout.scales)
        for spread in (1e-2, 1e-2, 3e-3):
            guess = retract(system.layout, state.q, spread * scales * rng.uniform(-1, 1, system.layout.nv))
            near = State(system.layout, guess, None, state.t)
            q, _ = find_positions(system, Request({}, {}, near, {}, state.t, self.active, 1e-12), attempts=0)
            if q is not None:
                best = max(best, _rank(system, State(system.layout, q, None, state.t), flags))
        return best

    def enter(self, motion: Motion, state: State) -> None:
        """Put this mode into the integrator."""
        system, raw = self.system, motion.raw
        kept = list(system.kept)
        flags = self.flags[kept]
        square = system.norms**2
        motion.array("p", system.p)
        motion.array("rowdata", np.concatenate([square, 1 / square, 1 / system.norms]))
        motion.array("active", flags)
        motion.array("unit", self.units()[kept])
        raw.rank = self.generic_rank(state) if kept else 0
        raw.dependent = int(raw.rank < int(flags.sum()))
        for options in (raw.setup.options, raw.regular):
            options.tolerance, options.fast_pivot = system.tolerance, system.fast_pivot
            options.mode, options.max_rank = 0, -1
        raw.released = 0
        raw.s_ref = 0.0

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
        errors = self.errors(state)
        if drift != "project" or not errors:
            return state
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


def _rank(system: System, state: State, flags: np.ndarray) -> int:
    terms = system.terms(state)
    _, S = scaled_rows(system, terms.M, terms.A, flags)
    return int(np.sum(np.linalg.svd(S, compute_uv=False) > system.tolerance)) if S.size else 0


def shape_of(system: System) -> Shape:
    """What the integrators are compiled for."""
    x = system.layout
    plain = tuple(zip(*(index.tolist() for index in plain_map(x)), strict=True))
    turns = tuple((turn.q, turn.v) for turn in x.turns)
    return Shape(x.nq, x.nv, x.nu, len(x.parameters), x.m, len(system.kept), plain, turns)
