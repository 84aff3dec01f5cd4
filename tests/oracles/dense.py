"""Constrained accelerations in plain NumPy: the unit-free mass-metric solution, and the KKT system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Solution:
    """Acceleration, multipliers, and how the rank was decided (`values`: all singular values)."""

    vdot: np.ndarray
    lam: np.ndarray
    rank: int
    values: np.ndarray


def constrained_solve(M, h, tau, A, gamma, scale=None, tol: float = 1e-6) -> Solution:
    """Solve M vdot + h = tau + Aᵀ lam, A vdot = gamma (in the least-squares sense of the mass metric).

    With M = L Lᵀ, Y = L⁻¹ Aᵀ D, D = diag(scale), y = L⁻¹ (tau - h): vdot = L⁻ᵀ [(I - Π) y + Y⁺ᵀ D gamma] and
    lam = D mu with the smallest |mu|. Singular values up to `tol` times the largest count as zero.
    """
    M, A = np.asarray(M, dtype=float), np.asarray(A, dtype=float).reshape(-1, len(M))
    d = np.ones(len(A)) if scale is None else np.asarray(scale, dtype=float)
    L = np.linalg.cholesky(M)
    y = np.linalg.solve(L, np.asarray(tau, dtype=float) - h)
    if len(A) == 0:
        return Solution(np.linalg.solve(L.T, y), np.zeros(0), 0, np.zeros(0))
    Y = np.linalg.solve(L, A.T) * d
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    rank = int(np.sum(s > tol * s[0])) if s[0] > 0 else 0
    U, kept, V = U[:, :rank], s[:rank], Vt[:rank].T
    along = (V.T @ (d * np.asarray(gamma, dtype=float))) / kept  # coordinates of z = Lᵀ vdot in range(Y)
    z = y - U @ (U.T @ y) + U @ along
    mu = V @ ((along - U.T @ y) / kept)
    return Solution(np.linalg.solve(L.T, z), d * mu, rank, s)


def kkt_lstsq(M, h, tau, A, gamma, rcond: float = 1e-11) -> tuple[np.ndarray, np.ndarray]:
    """The same equations as one linear system, with the smallest |(vdot, lam)|: returns vdot and lam."""
    M, A = np.asarray(M, dtype=float), np.asarray(A, dtype=float).reshape(-1, len(M))
    m = len(A)
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    x = np.linalg.lstsq(K, np.concatenate([np.asarray(tau, dtype=float) - h, gamma]), rcond=rcond)[0]
    return x[: len(M)], x[len(M) :]
