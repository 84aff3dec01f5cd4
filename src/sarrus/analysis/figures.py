"""Figures of merit at a state: conditioning, scaling, mass matrices of the constrained machine, DAE index.

Velocities that shift are counted in lengths of the machine here, so that all entries of M are inertias [kg m²] and
nothing depends on the unit of length.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sarrus.dynamics.solution import Rank
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System

INDICES = (("positions (Φ = 0)", 3), ("velocities (A v = a)", 2), ("accelerations (A v̇ = γ)", 1))


@dataclass(frozen=True)
class Figures:
    """Numbers that say how well the machine computes at a state.

    Attributes:
        condition: of the constraint rows in the mass metric: largest over smallest accepted singular value.
        gap: smallest accepted over largest rejected singular value; inf if none was rejected.
        mass_condition: of M.
        row_spread: largest over smallest reference length of rows of the same unit.
        virtual_mass: smallest and largest nonzero eigenvalue of P M P [kg m²]: any μ between them makes the constraint
            mass matrix PMP + μ(1 - P) as well conditioned as it can be (sheet 3); None without constraints or motion.
        best_mass: the geometric mean of the two.
        coupling: how strongly motion and constraint force are coupled through the inertia, 0 to 1: the largest
            cosine, in the mass metric, between an allowed velocity and one across them. 0: the constraint force does
            not depend on the force along the motion (Q M P = 0, sheet 4).
        index: of the differential-algebraic equations, by the level at which the constraints are written (sheet 10);
            None where the rows are dependent: the multipliers are then not determined and no index exists.
    """

    condition: float
    gap: float
    mass_condition: float
    row_spread: float
    virtual_mass: tuple[float, float] | None
    best_mass: float | None
    coupling: float
    index: dict[str, int] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON (inf becomes None)."""
        return {k: None if x == np.inf else x for k, x in asdict(self).items()}


def figures(system: System, state: State, rank: Rank, flags: np.ndarray) -> Figures:
    """Compute them at one state."""
    x, scales = system.terms(state), np.array(system.layout.scales)
    M = x.M * np.outer(scales, scales)
    A = x.A * flags[:, None] * scales
    s = rank.singular_values
    accepted = s[: rank.rank]
    rejected = rank.largest_rejected
    eigenvalues, coupling = _split(M, A, rank.rank, system)
    inside = (float(eigenvalues[0]), float(eigenvalues[-1])) if eigenvalues.size and rank.rank else None
    return Figures(
        float(accepted[0] / accepted[-1]) if accepted.size else 1.0,
        float(accepted[-1] / rejected) if rejected and accepted.size else np.inf,
        float(np.linalg.cond(M)),
        _spread(system),
        inside,
        float(np.sqrt(inside[0] * inside[1])) if inside else None,
        coupling,
        _index(system, rank, flags),
    )  # fmt: skip


def _split(M: np.ndarray, A: np.ndarray, rank: int, system: System) -> tuple[np.ndarray, float]:
    """Eigenvalues of M on the allowed velocities, and its coupling with those across them."""
    if not A.size:
        return np.zeros(0), 0.0
    rows = A[list(system.kept)] / system.norms[:, None]
    V = np.linalg.svd(rows)[2].T if rows.size else np.eye(A.shape[1])
    across, along = V[:, :rank], V[:, rank:]
    M22 = along.T @ M @ along
    if not rank or not along.shape[1]:
        return np.linalg.eigvalsh(M22), 0.0
    L1, L2 = np.linalg.cholesky(across.T @ M @ across), np.linalg.cholesky(M22)
    C = np.linalg.solve(L1, np.linalg.solve(L2, (across.T @ M @ along).T).T)
    return np.linalg.eigvalsh(M22), float(np.linalg.svd(C, compute_uv=False)[0])


def _spread(system: System) -> float:
    """Ratio of reference lengths, worst over the units."""
    worst = 1.0
    for unit in {row.unit for row in system.layout.rows}:
        norms = [x for i, x in zip(system.kept, system.norms, strict=True) if system.layout.rows[i].unit == unit]
        worst = max(worst, max(norms) / min(norms)) if norms else worst
    return float(worst)


def _index(system: System, rank: Rank, flags: np.ndarray) -> dict[str, int] | None:
    """0 without constraints; otherwise by level, for rows that are independent."""
    pushing = [i for i in system.kept if flags[i]]
    if not pushing:
        return {"ordinary differential equations": 0}
    if rank.rank < len(pushing):
        return None
    holonomic = all(system.layout.rows[i].holonomic for i in pushing)
    return dict(INDICES if holonomic else INDICES[1:])
