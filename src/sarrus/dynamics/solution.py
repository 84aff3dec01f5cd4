"""Records that the solves return; each prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

METRIC = "smallest Σ (λᵢ dᵢ)², dᵢ the fixed reference norm of row i in the mass metric"


@dataclass(frozen=True, eq=False)
class TermValues:
    """M v̇ + h = B u + f + Aᵀλ, A v = a, A v̇ = γ, Φ = 0, q̇ = N v, as arrays at one state or at each of many."""

    M: np.ndarray
    h: np.ndarray
    A: np.ndarray
    gamma: np.ndarray
    phi: np.ndarray
    a: np.ndarray
    B: np.ndarray
    N: np.ndarray


@dataclass(frozen=True, eq=False)
class Solution:
    """The constrained acceleration and what was decided to get it.

    Attributes:
        vdot: accelerations.
        lam: multipliers, of smallest norm in `metric` where they are not unique.
        rank: independent active rows at this state.
        rows: active rows.
        path: "fast" (generated Cholesky) or "rank-revealing".
        tolerance: singular values below it count as zero.
        accepted: smallest accepted singular value (within about 1 % on the rank-revealing path); inf if none.
        rejected: an upper bound of the largest rejected one; 0 if none.
        metric: the norm in which `lam` is smallest.
    """

    vdot: np.ndarray
    lam: np.ndarray
    rank: Any
    rows: int
    path: Any
    tolerance: float
    accepted: Any
    rejected: Any
    metric: str = METRIC

    def __str__(self) -> str:
        """Accelerations, and how they were found."""
        if np.ndim(self.rank):
            return f"{len(self.rank)} solutions, ranks {sorted(set(self.rank.tolist()))} of {self.rows}"
        decided = f"smallest accepted {self.accepted:.3g}, largest rejected {self.rejected:.2g}"
        return (
            f"accelerations {np.array2string(self.vdot, precision=6)}\n"
            f"rank {self.rank} of {self.rows} rows ({self.path} path; tolerance {self.tolerance:g}, {decided})"
        )


@dataclass(frozen=True, eq=False)
class Rank:
    """Rank of the constraints at one state, with the evidence.

    Attributes:
        rank: independent rows.
        rows: active rows.
        mobility: velocities that remain free.
        singular_values: of the scaled rows in the mass metric, largest first.
        tolerance: those below it count as zero.
        redundant: names of rows that take part in a dependence (some of them can go without changing the motion).
        null: one column for each dependence among the rows, in the scaled rows.
    """

    rank: int
    rows: int
    mobility: int
    singular_values: np.ndarray
    tolerance: float
    redundant: tuple[str, ...]
    null: np.ndarray

    def __str__(self) -> str:
        """Rank and evidence in two or three lines."""
        text = f"rank {self.rank} of {self.rows} rows, mobility {self.mobility}\nsingular values "
        text += f"{np.array2string(self.singular_values, precision=3)}, tolerance {self.tolerance:g}"
        return text + (f"\nredundant: {', '.join(self.redundant)}" if self.redundant else "")

    @property
    def smallest_accepted(self) -> float:
        """Smallest singular value that counts; inf if there is none."""
        return float(self.singular_values[self.rank - 1]) if self.rank else float("inf")

    @property
    def largest_rejected(self) -> float:
        """Largest singular value that does not count; 0 if there is none."""
        return float(self.singular_values[self.rank]) if self.rank < len(self.singular_values) else 0.0


@dataclass(frozen=True, eq=False)
class ConstraintForces:
    """What the constraints do to the machine.

    Attributes:
        lam: multipliers by constraint name, of smallest norm in `metric`.
        generalised: Aᵀλ, the generalised constraint force (always unique).
        by_group: each constraint's own share A_gᵀ λ_g of it.
        determinate: whether that share is unique, by constraint name.
        metric: the norm in which λ is smallest.
    """

    lam: Mapping[str, np.ndarray]
    generalised: np.ndarray
    by_group: Mapping[str, np.ndarray]
    determinate: Mapping[str, bool]
    metric: str = METRIC

    def __str__(self) -> str:
        """One line for each constraint."""
        lines = []
        for name, values in self.lam.items():
            known = "" if np.all(self.determinate[name]) else "  (not determinate: shared with redundant rows)"
            lines.append(f"{name}: {np.array2string(np.asarray(values), precision=6)}{known}")
        return "\n".join(lines) or "no constraints"

    def __getitem__(self, name: str) -> np.ndarray:
        """Multipliers of one constraint."""
        return self.lam[name]


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies [J] and powers [W] at a state.

    Attributes:
        kinetic: ½ vᵀ M v.
        potential: gravity and springs.
        dissipated: power taken out by dampers, not negative.
        applied: power put in by the user's loads.
    """

    kinetic: Any
    potential: Any
    dissipated: Any
    applied: Any

    def __str__(self) -> str:
        """Energies in one line."""
        if np.ndim(self.kinetic):
            return f"energies of {len(self.kinetic)} states"
        return f"kinetic {self.kinetic:.9g} J, potential {self.potential:.9g} J, total {self.total:.9g} J"

    @property
    def total(self) -> Any:
        """Kinetic plus potential."""
        return self.kinetic + self.potential
