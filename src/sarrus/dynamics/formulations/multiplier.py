"""Third and fifth paper: formulations that find the multipliers first, and those that damp drift (sheet 2.4 (10), 10).

Index-1 form: M v̇ - Aᵀλ = f - h, A v̇ = γ. λ = -(A M⁻¹ Aᵀ)⁺(A M⁻¹(f - h) - γ + …), the dots being what damps drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sarrus.dynamics.formulations.mobility import independent_rows, partition
from sarrus.dynamics.formulations.point import Point, cut_svd
from sarrus.dynamics.formulations.record import (
    Evaluation,
    Formulation,
    Option,
    defaults,
    is_automatic_or_positive,
    is_not_negative,
)


def _with(x: Point, lam: np.ndarray) -> Evaluation:
    """Acceleration and force of multipliers: v̇ = M⁻¹(f - h + Aᵀλ)."""
    force = x.A.T @ lam
    return x.by_mass(x.f - x.h + force), force


def _multiplier(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """λ = -(A M⁻¹ Aᵀ)⁺(A M⁻¹(f - h) - γ), of least norm if rows depend on each other."""
    return _with(x, -x.inverse_delassus(x.A @ x.free() - x.gamma))


def _gauss(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Least ½(v̇ - a)ᵀM(v̇ - a), a = M⁻¹(f - h), among the v̇ with A v̇ = γ: v̇ = a + M^-½ (A M^-½)⁺(γ - A a)."""
    w, X = np.linalg.eigh(x.M)
    root, inverse = (X * np.sqrt(w)) @ X.T, (X / np.sqrt(w)) @ X.T
    free = inverse @ (inverse @ (x.f - x.h))
    lead = x.A @ inverse
    U, s, V = cut_svd(lead, x.rank)
    change = V @ ((U.T @ (x.gamma - x.A @ free)) / s)
    return free + inverse @ change, root @ change


def _reduction(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """λ = -(A M⁻¹ Aᵀ)⁻¹(A M⁻¹(f - h) - γ) on rows that do not depend on each other; the others get nothing."""
    rows = independent_rows(x)
    A = x.A[rows]
    lam = np.zeros(len(x.A))
    if len(rows):
        lam[rows] = -np.linalg.solve(A @ x.by_mass(A.T), A @ x.free() - x.gamma[rows])
    return _with(x, lam)


def _saddle(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """[M, -Aᵀ; A, 0](v̇; λ) = (f - h; γ) on rows that do not depend on each other."""
    rows = independent_rows(x)
    A = x.A[rows]
    K = np.block([[x.M, -A.T], [A, np.zeros((len(rows), len(rows)))]])
    solution = np.linalg.solve(K, np.concatenate([x.f - x.h, x.gamma[rows]]))
    return solution[: x.n], A.T @ solution[x.n :]


def _split(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """[Pc M; A] v̇ = (Pc (f - h); γ), Pc Aᵀ = 0."""
    C, _, _ = partition(x)
    rows = independent_rows(x)
    K = np.vstack([C.T @ x.M, x.A[rows]])
    vdot = np.linalg.solve(K, np.concatenate([C.T @ (x.f - x.h), x.gamma[rows]]))
    return vdot, x.M @ vdot + x.h - x.f


def _baumgarte(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """A v̇ = γ - 2α (A v - a) - β² Φ."""
    alpha, beta = float(options["alpha"]), float(options["beta"])
    wanted = x.gamma - 2 * alpha * x.slip - beta**2 * x.phi
    return _with(x, -x.inverse_delassus(x.A @ x.free() - wanted))


def _regularised(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """λ = -(Wc² + ε I)⁻¹ Wc [A M⁻¹(f - h) - γ + (2/h)(A v - a) + (2/h²) Φ], Wc = A M⁻¹ Aᵀ, by its eigenvalues."""
    h = 1e-3 if isinstance(options["h"], str) else float(options["h"])
    s, V = np.linalg.eigh(x.A @ x.by_mass(x.A.T)) if len(x.A) else (np.zeros(0), np.zeros((0, 0)))
    eps = (1e-4 * max(float(s[-1]), 0.0)) ** 2 if isinstance(options["eps"], str) else float(options["eps"])
    wanted = x.A @ x.free() - x.gamma + 2 / h * x.slip + 2 / h**2 * x.phi
    size = s**2 + eps
    return _with(x, -V @ (np.divide(s, size, out=np.zeros_like(s), where=size > 0) * (V.T @ wanted)))


_GAINS = {
    "alpha": Option(10.0, "damping of errors [1/s]", is_not_negative, "a number that is not negative"),
    "beta": Option(10.0, "stiffness of errors [1/s]", is_not_negative, "a number that is not negative"),
}
_SMOOTH = {
    "h": Option("auto", "time within which errors are damped [s]; auto: dt of rk4, 2 dt of euler, else 1 ms",
                is_automatic_or_positive, "'auto' or a positive number of seconds"),
    "eps": Option("auto", "how much is given up for regularity; auto: (1e-4 times the largest eigenvalue of Wc)²",
                  is_automatic_or_positive, "'auto' or a positive number"),
}  # fmt: skip


def _dae(name: str, equation: str, index: int, sizes: str, evaluate: Any = _saddle) -> Formulation:
    return Formulation(name, equation, "10", index, sizes, evaluate)


MULTIPLIER = (
    Formulation("multiplier", "v̇ = M⁻¹(f - h + Aᵀλ), λ = -(A M⁻¹ Aᵀ)⁺(A M⁻¹(f - h) - γ)", "2.4 (10), 4", 0,
                "m x m, symmetric; a factor of M", _multiplier),
    Formulation("gauss", "least ½(v̇ - a)ᵀM(v̇ - a) with A v̇ = γ, a = M⁻¹(f - h)", "2.4 (10), 4", 0,
                "an SVD of A M^-½; eigenvalues of M", _gauss),
    Formulation("reduction", "the underlying ODE: v̇ = M⁻¹(f - h + Aᵀλ), λ of r independent rows", "10", 0,
                "r x r, symmetric positive definite; a factor of M", _reduction),
    Formulation("baumgarte", "A v̇ = γ - 2α(A v - a) - β²Φ", "10", 0, "m x m, symmetric; a factor of M", _baumgarte,
                _GAINS, defaults(_GAINS), stabilised=True),
    Formulation("regularised", "λ = -(Wc² + ε)⁻¹Wc[A M⁻¹(f - h) - γ + (2/h)(A v - a) + (2/h²)Φ], Wc = A M⁻¹ Aᵀ",
                "10", 0, "eigenvalues of an m x m matrix; a factor of M", _regularised, _SMOOTH,
                defaults(_SMOOTH), stabilised=True),
)  # fmt: skip

DAE = (
    _dae("index-1", "q̇ = v, M v̇ = f - h + Aᵀλ, A v̇ = γ", 1, "2n + r unknowns"),
    _dae("index-2", "q̇ = v, M v̇ = f - h + Aᵀλ, A v = a", 2, "2n + r unknowns"),
    _dae("ggl", "q̇ = v + Aᵀμ, M v̇ = f - h + Aᵀλ, Φ = 0, A v = a", 2, "2n + 2r unknowns"),
    _dae("ggl-implicit", "q̇ = v + Aᵀμ, v̇ = w, 0 = f - h - M w + Aᵀλ, Φ = 0, A v = a", 2, "3n + 2r unknowns"),
    _dae("index-3", "q̇ = v, M v̇ = f - h + Aᵀλ, Φ = 0", 3, "2n + r unknowns"),
    _dae("coordinate-split", "Pc(q̇ - v) = 0, Pc(M v̇ + h - f) = 0, Φ = 0, A v = a, Pc Aᵀ = 0", 1, "2n unknowns", _split),
)
