"""Rank, determinacy and projectors by singular values of the scaled rows in the mass metric (sheet 2.1, 2.5, 3, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.solution import ConstraintForces, Rank
from sarrus.dynamics.state import State
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


def mass_factor(name: str, M: np.ndarray) -> np.ndarray:
    """L with M = L Lᵀ."""
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        low = float(np.linalg.eigvalsh(M)[0]) if np.isfinite(M).all() else float("nan")
        text = f"{name}: the mass matrix is not positive definite at this state (smallest eigenvalue {low:.3g})"
        raise StateError(f"{text}; check masses, inertias and parameters") from None


def scaled_rows(system: System, M: np.ndarray, A: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with M = L Lᵀ, and diag(d) A L⁻ᵀ: all rows, those switched off or identically zero as zeros."""
    L = mass_factor(system.name, M)
    rows = np.zeros_like(A)
    kept = list(system.kept)
    rows[kept] = (A[kept] * active[kept, None]) / system.norms[:, None]
    return L, np.linalg.solve(L, rows.T).T


def analyse(system: System, state: State, active: Mapping[str, bool] | None) -> Rank:
    """Rank of the active rows at one state."""
    if state.count is not None:
        raise StateError("rank: give one state (state.row(i) picks one from an array of states)")
    flags = system.active_rows(active)
    values = system.terms(state)
    _, S = scaled_rows(system, values.M, values.A, flags)
    on = np.flatnonzero(flags)
    U, sigma = _left(S[on])
    r = int(np.sum(sigma > system.tolerance))
    null = np.zeros((len(S), len(on) - r))
    null[on] = U[:, r:]
    names = [row.name for row in system.layout.rows]
    redundant = tuple(names[i] for i in np.flatnonzero(np.any(np.abs(null) > 1e-6, axis=1)))
    return Rank(r, len(on), system.layout.nv - r, sigma, system.tolerance, redundant, null)


def _left(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left singular vectors and singular values."""
    if not S.size:
        return np.eye(len(S)), np.zeros(0)
    U, sigma, _ = np.linalg.svd(S)
    return U, sigma


def accepted_values(
    system: System, state: State, active: Mapping[str, bool] | None, ranks: Any, path: Any, estimate: Any
) -> Any:
    """Smallest accepted singular values: the kernel's where it looked for them, computed here where it did not."""
    if state.count is not None:
        parts = zip(range(state.count), ranks, path, estimate, strict=True)
        return np.array([accepted_values(system, state.row(i), active, *part) for i, *part in parts])
    if ranks == 0:
        return np.inf
    if path:
        return estimate
    values = system.terms(state)
    _, S = scaled_rows(system, values.M, values.A, system.active_rows(active))
    return np.linalg.svd(S, compute_uv=False)[int(ranks) - 1]


def constraint_forces(
    system: System, state: State, lam: np.ndarray, active: Mapping[str, bool] | None
) -> ConstraintForces:
    """Split Aᵀλ by constraint, and find which shares the equations determine."""
    if state.count is not None:
        parts = [constraint_forces(system, state.row(i), lam[i], active) for i in range(state.count)]
        groups = system.groups

        def gather(key: str) -> dict[str, Any]:
            return {g: np.stack([getattr(part, key)[g] for part in parts]) for g in groups}

        total = np.stack([part.generalised for part in parts])
        return ConstraintForces(gather("lam"), total, gather("by_group"), gather("determinate"))
    values = system.terms(state)
    flags = system.active_rows(active)
    _, S = scaled_rows(system, values.M, values.A, flags)
    U, sigma = _left(S)
    null = U[:, int(np.sum(sigma > system.tolerance)) :]
    slices = {g: system.layout.group_rows(g) for g in system.groups}
    # a share changes along a dependence n of the rows by S_gᵀ n_g: it is determinate if that is nothing
    determinate = {g: bool(np.all(np.abs(S[s].T @ null[s]) < 10 * system.tolerance)) for g, s in slices.items()}
    return ConstraintForces(
        {g: lam[s] for g, s in slices.items()},
        values.A.T @ lam,
        {g: values.A[s].T @ lam[s] for g, s in slices.items()},
        determinate,
    )


def projector(system: System, state: State, metric: str, active: Mapping[str, bool] | None) -> np.ndarray:
    """Θ = L⁻ᵀ(I - Π)Lᵀ, or P = I - A⁺A."""
    if metric not in ("mass", "plain"):
        raise StateError(f"projector: unknown metric {metric!r}; use 'mass' or 'plain'")
    if state.count is not None:
        return np.stack([projector(system, state.row(i), metric, active) for i in range(state.count)])
    values = system.terms(state)
    L, S = scaled_rows(system, values.M, values.A, system.active_rows(active))
    if not S.size:
        return np.eye(system.layout.nv)
    _, sigma, Vt = np.linalg.svd(S, full_matrices=False)
    V = Vt[: int(np.sum(sigma > system.tolerance))].T
    if metric == "mass":
        return np.eye(len(L)) - np.linalg.solve(L.T, V @ (V.T @ L.T))
    basis = np.linalg.qr(L @ V)[0] if V.size else V  # columns of Aᵀ = L Sᵀ span what L V spans
    return np.eye(len(L)) - basis @ basis.T
