"""Second and third paper: equations for the free directions alone, through a basis or an oblique projector (sheet 2.4).

Zᵀ M Z = I, A Z = 0 for quasi-velocities; any basis C of the null space for the minimal form (sheet 6, 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import qr

from sarrus.dynamics.formulations.factors import FACTORS, factor
from sarrus.dynamics.formulations.point import Point, cut_svd
from sarrus.dynamics.formulations.record import Evaluation, Formulation, Option, defaults

BASES = ("coordinates", "orthonormal")


def _quasi_velocity(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """v̇ = Z Zᵀ(f - h - M an) + an, Z = W⁻ᵀ V2; fc = W V1 V1ᵀ(Wᵀ v̇ - W⁻¹(f - h)) (sheet 2.4 (9), 6)."""
    W = factor(x.M, options["factor"])
    V1 = cut_svd(np.linalg.solve(W, x.A.T).T, x.rank)[2]
    net = x.f - x.h - x.M @ x.an
    u = np.linalg.solve(W, net)
    vdot = np.linalg.solve(W.T, u - V1 @ (V1.T @ u)) + x.an
    return vdot, W @ (V1 @ (V1.T @ (W.T @ vdot - np.linalg.solve(W, x.f - x.h))))


def independent_rows(x: Point) -> np.ndarray:
    """Indices of as many rows as the rank says, found by QR with column pivoting of L⁻¹Aᵀ."""
    return _pivots(np.linalg.solve(x.L, x.A.T))[: x.rank]


def _pivots(A: np.ndarray) -> np.ndarray:
    """Columns in the order of a QR factorisation with column pivoting."""
    found: Any = qr(A, mode="r", pivoting=True)
    return found[1]


def partition(x: Point) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The basis C = Xp - Yp (A Yp)⁻¹ A Xp of the null space (sheet 7), A a_p = γ, and the dependent coordinates.

    Which coordinates depend on the others is found by QR with column pivoting, so that A Yp is well conditioned.
    """
    rows = independent_rows(x)
    A = x.A[rows]
    order = _pivots(A) if len(rows) else np.arange(x.n)
    dependent, chosen = order[: x.rank], np.sort(order[x.rank :])
    C, particular = np.zeros((x.n, x.n - x.rank)), np.zeros(x.n)
    C[chosen] = np.eye(x.n - x.rank)
    if len(rows):
        C[dependent] = -np.linalg.solve(A[:, dependent], A[:, chosen])
        particular[dependent] = np.linalg.solve(A[:, dependent], x.gamma[rows])
    return C, particular, dependent


def _null_space(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Cᵀ M C ṗ = Cᵀ(f - h - M a_p), v̇ = C ṗ + a_p; fc = M v̇ + h - f."""
    if options["basis"] == "coordinates":
        C, particular, _ = partition(x)
    else:
        C, particular = np.linalg.svd(x.A)[2][x.rank :].T if len(x.A) else np.eye(x.n), x.an
    rate = np.linalg.solve(C.T @ x.M @ C, C.T @ (x.f - x.h - x.M @ particular))
    vdot = C @ rate + particular
    return vdot, x.M @ vdot + x.h - x.f


def _generalised(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """v̇ = Θ M⁻¹(f - h) + Φ̄ γ, Φ̄ = M⁻¹Aᵀ(A M⁻¹ Aᵀ)⁺, Θ = I - Φ̄ A; fc = -S(f - h - M an), S = I - Θᵀ."""
    Phibar = x.by_mass(x.A.T) @ x.inverse_delassus(np.eye(len(x.A)))
    Theta = np.eye(x.n) - Phibar @ x.A
    vdot = Theta @ x.free() + Phibar @ x.gamma
    net = x.f - x.h - x.M @ x.an
    return vdot, -(net - Theta.T @ net)


_FACTOR = {
    "factor": Option("cholesky", "square root W of the mass matrix, M = W Wᵀ: cholesky, root (symmetric) or "
                     "innovation (upper triangular, as the recursion from the tips to the base finds it)",
                     lambda x: isinstance(x, str) and x in FACTORS, f"one of {', '.join(FACTORS)}"),
}  # fmt: skip
_BASIS = {
    "basis": Option("coordinates", "coordinates: some coordinates follow from the others; orthonormal: V2 of an SVD",
                    lambda x: isinstance(x, str) and x in BASES, f"one of {', '.join(BASES)}"),
}  # fmt: skip

MOBILITY = (
    Formulation(
        "quasi-velocity", "v̇r + Γr vr = ur, v = Z vr + vn; v̇ = Z Zᵀ(f - h - M an) + an, Z = W⁻ᵀ V2", "2.4 (9), 6", 0,
        "a factor of M (n x n); an SVD of A W⁻ᵀ; no other system", _quasi_velocity, _FACTOR, defaults(_FACTOR),
    ),
    Formulation(
        "null-space", "Cᵀ M C ṗ = Cᵀ(f - h - M a_p), v̇ = C ṗ + a_p, A C = 0", "2.4 (8), 7", 0,
        "(n - r) x (n - r), symmetric positive definite; r x r for the basis", _null_space, _BASIS, defaults(_BASIS),
    ),
    Formulation(
        "generalised", "v̇ = Θ M⁻¹(f - h) + Φ̄ γ, Φ̄ = M⁻¹Aᵀ(A M⁻¹ Aᵀ)⁺, Θ = I - Φ̄ A", "2.4 (7), 5", 0,
        "m x m, symmetric; a factor of M", _generalised,
    ),
)  # fmt: skip
