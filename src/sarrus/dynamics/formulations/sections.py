"""Bases of the free directions that turn smoothly with the machine (sheet 6).

A singular value decomposition finds an orthonormal basis V2 of the null space of Λ = A W⁻ᵀ at each position anew, and
its columns jump from one position to the next. Three cures, all with V2ᵀ V2 = I and the same span:

(a) `polar_section`: a field over positions, the basis nearest to a reference; what the integrators use within a step.
(b) `aligned`: along a record, each basis the nearest to the one before it. It is (a) with a new reference each time.
(c) `transport_rate`: V̇ = Ṗ V, which never turns within its span (VᵀV̇ = 0); a differential equation for the basis.

Only (a) gives the same basis wherever one comes from: after a round trip (b) and (c) may have turned.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_sylvester

from sarrus.errors import StateError

STEEPEST = 1e-4  # least eigenvalue of V_refᵀ P V_ref: at zero a direction of the reference is lost


def polar_section(V2: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """V(q) = P V_ref (V_refᵀ P V_ref)^-½, P = V2 V2ᵀ: the basis of the span of V2 nearest to the reference (a).

    Args:
        V2: any orthonormal basis of the null space at q, as columns.
        reference: the basis to stay near, (n, n - r).
    """
    N, root = _parts(V2, reference)
    return np.linalg.solve(root, N.T).T


def polar_section_rate(V2: np.ndarray, reference: np.ndarray, Pdot: np.ndarray) -> np.ndarray:
    """Rate of (a) along a motion: V̇ = (Ṗ V_ref - V Ṡ) S⁻¹, S = (V_refᵀ P V_ref)^½, S Ṡ + Ṡ S = V_refᵀ Ṗ V_ref.

    Args:
        V2: any orthonormal basis of the null space at q, as columns.
        reference: as for `polar_section`; it does not move.
        Pdot: rate of P = V2 V2ᵀ (2.2 with Λ for A).
    """
    N, root = _parts(V2, reference)
    V = np.linalg.solve(root, N.T).T
    turning = solve_sylvester(root, root, reference.T @ Pdot @ reference)
    return np.linalg.solve(root, (Pdot @ reference - V @ turning).T).T


def aligned(V2: np.ndarray, before: np.ndarray) -> np.ndarray:
    """V2 U Wᵀ with U D Wᵀ = svd(V2ᵀ before), turned to fit the basis before it best (Procrustes, b).

    Args:
        V2: any orthonormal basis of the null space; it may have more columns than are wanted.
        before: the basis at the position before.
    """
    U, _, Wt = np.linalg.svd(V2.T @ before, full_matrices=False)
    return V2 @ U @ Wt


def transport_rate(V: np.ndarray, Pdot: np.ndarray) -> np.ndarray:
    """V̇ = Ṗ V, the rate of a basis that does not turn within its span (c).

    Args:
        V: the basis now.
        Pdot: rate of the projector V Vᵀ (2.2 with Λ for A).
    """
    return Pdot @ V


def _parts(V2: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P V_ref and (V_refᵀ P V_ref)^½."""
    inner = V2.T @ reference
    w, X = np.linalg.eigh(inner.T @ inner)
    if len(w) and not w[0] > STEEPEST:
        angle = np.degrees(np.arccos(np.sqrt(np.clip(w[0], 0, 1))))
        raise StateError(
            f"the free directions have turned by {angle:.1f} degrees from the reference basis; expected well below 90: "
            "take the basis at a position nearer to this one as the reference"
        )
    return V2 @ inner, (X * np.sqrt(np.clip(w, 0, None))) @ X.T
