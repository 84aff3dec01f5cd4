"""A motion in time: what the integrator recorded, and everything that follows from it, by name.

The record holds t, q, v, the acceleration a and the inputs u, one row for each output; all else (forces, energies,
poses) is computed from these when it is first asked for. Where an event changed something there are two rows with the
same time: before and after. Rows belong to segments, within each of which active rows and parameters do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.solution import Energy
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.simulation import access, quasi
from sarrus.simulation.evaluate import Residuals
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status

if TYPE_CHECKING:
    from sarrus.simulation.audit import Audit


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows from `start` to the next segment were computed with these constraints and parameters.

    Attributes:
        start: index of its first row.
        active: whether each constraint group was switched on, by name.
        p: parameter values, in the order of `layout.parameters`.
        held: whether inputs were sampled and held: a row then has those with which it was reached.
    """

    start: int
    active: Mapping[str, bool]
    p: np.ndarray
    held: bool = False


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A recorded motion. Made by `sarrus.simulate`; all its fields are fixed.

    Attributes:
        system: the machine, with the parameters at the start.
        t: times [s], shape (count,), never falling.
        q: positions, (count, nq).
        v: velocities, (count, nv).
        a: accelerations, (count, nv).
        u: inputs, (count, nu).
        status: how the run ended.
        stats: what it cost.
        segments: at least one; the first starts at row 0.
        crossings: passages through singular positions.
        events: guards that passed zero.
        settings: how it was computed (method, rtol, dt, crossing, drift, versions ...), as plain JSON data.
    """

    system: System
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    u: np.ndarray
    status: Status
    stats: Stats
    segments: tuple[Segment, ...]
    crossings: tuple[Crossing, ...] = ()
    events: tuple[EventRecord, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    # --- what it is ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        """Number of rows."""
        return len(self.t)

    def __repr__(self) -> str:
        """Machine, rows, span and how the run ended."""
        return f"<Trajectory of {self.system.name!r}: {len(self)} rows, {self._span}, {self.status.code}>"

    def __str__(self) -> str:
        """Machine, span, how the run ended, what it cost, and what happened on the way."""
        lines = [f"{self.system.name}: {len(self)} rows, {self._span}", f"  {self.status}", f"  {self.stats}"]
        for what, records in (("crossings", self.crossings), ("events", self.events)):
            lines += [f"  {what}:", *(f"    {record}" for record in records[:5])] if records else []
            lines += [f"    … and {len(records) - 5} more"] if len(records) > 5 else []
        return "\n".join(lines)

    @property
    def _span(self) -> str:
        return f"t = {self.t[0]:.9g} to {self.t[-1]:.9g} s"

    def pieces(self) -> list[tuple[slice, Segment, System]]:
        """For each segment: its rows, itself, and the machine with the parameters that held there."""
        return self._pieces

    @cached_property
    def _pieces(self) -> list[tuple[slice, Segment, System]]:
        return access.pieces(self)

    @cached_property
    def setting_out(self) -> np.ndarray:
        """Accelerations just after each row; other than `a` where an input that was held until there changes."""
        return access.setting_out(self)

    # --- what follows from it --------------------------------------------------------------------------------------
    @cached_property
    def residuals(self) -> Residuals:
        """What is left of each equation at each row, with the size of its terms."""
        return access.residuals(self)

    @property
    def lam(self) -> np.ndarray:
        """Multipliers λ, shape (count, m): those of least norm that fit Aᵀλ = M a + h - B u best, at each row.

        The metric is that of `System.solve`. Directions that count as dependent there carry nothing, so that λ stays
        finite at singular positions; rows of constraints switched off are zero.
        """
        return self.residuals.lam

    @cached_property
    def energy(self) -> Energy:
        """Energies [J] and powers [W] at each row."""
        return access.energy(self)

    def quasi_velocities(self, factor: str = "cholesky") -> np.ndarray:
        """Reduced quasi-velocities v_r = Zᵀ M v at each row (sheet 6), in a basis smooth along the motion.

        Args:
            factor: square root of the mass matrix, "cholesky", "root" or "innovation".

        Returns:
            Shape (count, free directions), nan where a change of the active constraints left fewer of them.
        """
        return quasi.quasi_velocities(self, factor)

    def poses(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """World position (count, 3) and rotation matrix (count, 3, 3) of every body and named frame."""
        return access.poses(self)

    def __getitem__(self, name: str) -> np.ndarray:
        """Values along the motion by name.

        Coordinates come first, under the names that a state has too: `"A"` or `"A.q"` (position), `"A.v"`, and `"A.a"`
        (acceleration). Then inputs (`"A.u"`, or their own name), multipliers of a constraint, (count, rows), or of one
        of its rows (`"D.force"` or `"loop.D.force"`, `"D.x.force"`), the constraint's share of the generalised force,
        (count, nv) (`"D.generalised"`), poses (`"crank.position"`, `"crank.rotation"`; with `"frame."` before it
        where a joint has the same name), `"energy.total"` and its like, and `"t"`. See `names`.
        """
        return access.value(self, name)

    def names(self) -> list[str]:
        """All names that can be asked for in square brackets, each coordinate by itself."""
        return access.names(self)

    # --- single states and other times -----------------------------------------------------------------------------
    def state(self, index: int) -> State:
        """The state at one row; negative numbers count from the end."""
        if not -len(self) <= index < len(self):
            raise StateError(
                f"{self.system.name}: row {index} of a trajectory with {len(self)} rows; use at(t) for times"
            )
        return State(self.system.layout, self.q[index], self.v[index], float(self.t[index]))

    @property
    def final(self) -> State:
        """The state at the last row."""
        return self.state(-1)

    def at(self, t: Any) -> State:
        """The state at a time, or an array of states at several times.

        Between rows positions and velocities are interpolated by quintic polynomials through positions, velocities and
        accelerations of both neighbours (errors of the sixth and fifth power of the spacing) and then moved onto the
        constraints by the least change in the mass metric: these hold to rounding, except close to singular positions,
        where directions that are nearly dependent stay as interpolated. At the time of a row the state is that row; at
        an event it is the state after it.

        Args:
            t: a time or several [s], within the record.
        """
        times = np.array(t, dtype=float)
        q, v, _, _ = access.between(self, times.reshape(-1) if times.ndim == 0 else times)
        return (
            State(self.system.layout, q[0], v[0], float(times))
            if times.ndim == 0
            else State(self.system.layout, q, v, times)
        )

    def sample(self, times: Any) -> Trajectory:
        """The same motion at other times within the record, accurate as `at`.

        Inputs are interpolated by polynomials through six rows, or held if they were held.

        Args:
            times: in ascending order [s].
        """
        return access.sample(self, times)

    # --- proof, files, pictures ------------------------------------------------------------------------------------
    def audit(self, raise_above: float | Mapping[str, float] | None = None) -> Audit:
        """Check the record against the equations of the machine: constraints, equations of motion and energy.

        Args:
            raise_above: raise `AuditError` if a relative error exceeds this number; or a limit for each quantity by
                name ("loop", "velocity", "acceleration", "motion", "energy").
        """
        from sarrus.simulation.audit import audit

        return audit(self, raise_above)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `load` makes the same trajectory again.

        Args:
            path: ends in `.nc` (netCDF) or `.csv` (plain text).
        """
        from sarrus.io.trajectory_files import save

        save(self, path)

    @staticmethod
    def check_target(path: str | PathLike[str]) -> None:
        """Refuse a file that `save` could not write: better before a long computation than after it.

        Args:
            path: as for `save`.
        """
        from sarrus.io.trajectory_files import check_target

        check_target(path)

    @staticmethod
    def load(path: str | PathLike[str], system: System) -> Trajectory:
        """Read a trajectory that `save` wrote.

        Args:
            path: the file.
            system: the machine that moved.
        """
        from sarrus.io.trajectory_files import load

        return load(path, system)

    def to_pandas(self) -> Any:
        """A pandas table: a row for each time, a column for each position, velocity, acceleration, input, λ, energy."""
        from sarrus.io.trajectory_files import to_pandas

        return to_pandas(self)

    def to_xarray(self) -> Any:
        """An xarray dataset over time with q, v, a, u, lam and the energies, their names as coordinates, and units."""
        from sarrus.io.trajectory_files import to_xarray

        return to_xarray(self)

    def plot(self, path: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Draw the motion on one page; see `sarrus.view.plot.plot_trajectory`.

        Args:
            path: image file to write, if any.
            options: passed on.
        """
        from sarrus.view.plot import plot_trajectory

        return plot_trajectory(self, path, **options)

    def animate(self, path: str | PathLike[str], **options: Any) -> Any:
        """Write a 3-D animation as one HTML file; see `sarrus.view.animate.write_animation`.

        Args:
            path: file to write.
            options: passed on.
        """
        from sarrus.view.animate import write_animation

        return write_animation(self, path, **options)

    def report(self, path: str | PathLike[str]) -> Any:
        """Write status, audit, figure and animation as one HTML file.

        Args:
            path: file to write.
        """
        from sarrus.view.report import write_report

        return write_report(self, path)


def join(first: Trajectory, second: Trajectory) -> Trajectory:
    """One trajectory from two, the second of which starts where the first ended.

    The row that both have is kept once if it says the same in both; if inputs, velocities, accelerations, parameters or
    active constraints change there, both rows stay, as at an event. Costs are added up.

    Args:
        first: what came before.
        second: what followed, started from `first.final`.
    """
    return access.join(first, second)
