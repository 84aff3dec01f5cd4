"""Torques by levels of importance: each level is met as well as the levels before it allow, the rest is made small.

All controllers and the inverse dynamics end here. A level is K u = b; with G = Zᵀ B (Z an M-orthonormal basis of the
velocities that the constraints allow, sheet 6) the motion is the level G u = p + Zᵀ h, and the constraint forces are
another one. Least squares in the coordinates p are least squares in the mass metric, so units do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# parts of what they are made of, below which numbers are rounding: of a column near dependent rows, and of a product
FAINT, ROUNDING = 1e-10, 1e-13
RANK = 1e-8  # directions of a level weaker than this, relative to the strongest, do not count (sheet 5)


@dataclass(frozen=True, eq=False)
class Level:
    """K u = b, to be met as well as possible."""

    K: np.ndarray
    b: np.ndarray


@dataclass(frozen=True, eq=False)
class Inequalities:
    """What must hold in any case: low ≤ u ≤ high and C u ≤ d."""

    low: np.ndarray
    high: np.ndarray
    C: np.ndarray
    d: np.ndarray

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """All of them as rows of K u ≤ k; infinite limits give none."""
        eye = np.eye(len(self.low))
        up, down = np.isfinite(self.high), np.isfinite(self.low)
        K = np.vstack([eye[up], -eye[down], self.C])
        return K, np.concatenate([self.high[up], -self.low[down], self.d])

    def violation(self, u: np.ndarray) -> float:
        """The largest violation, relative to the size of what is compared."""
        K, k = self.rows()
        if not len(k):
            return 0.0
        size = np.abs(K) @ np.abs(u) + np.abs(k) + 1e-300
        return float(np.max((K @ u - k) / size))


def held_and_free(S: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scaled rows S = U diag(σ) V1ᵀ with their rank decided, and V2, an orthonormal basis of what they leave free."""
    if not S.size:
        n = S.shape[1]
        return np.zeros((len(S), 0)), np.zeros(0), np.zeros((n, 0)), np.eye(n)
    U, sigma, Vt = np.linalg.svd(S)
    r = int(np.sum(sigma > tolerance))
    return U[:, :r], sigma[:r], Vt[:r].T, Vt[r:].T


def free_part(V: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Vᵀ F for an orthonormal basis V, with zeros for columns of F of which nothing but rounding is left.

    Otherwise a motor that moves nothing would be asked for enormous torques.
    """
    G = V.T @ forces
    G[:, np.linalg.norm(G, axis=0) <= FAINT * np.linalg.norm(forces, axis=0)] = 0.0
    return G


def coupling(V: np.ndarray, J: np.ndarray, B: np.ndarray) -> np.ndarray:
    """J Mob B for columns Jᵀ of one size and B in the mass metric, with zeros for what is nothing but rounding."""
    J = J / np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    J2, B2 = free_part(V, J), free_part(V, B)
    K = J2.T @ B2
    j, b, j2, b2 = (np.linalg.norm(x, axis=0) for x in (J, B, J2, B2))
    K[np.abs(K) <= ROUNDING * (np.outer(j, b2) + np.outer(j2, b))] = 0.0
    return K


def split(
    K: np.ndarray, scale: np.ndarray, strongest: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Singular value decomposition of K diag(scale) with its rank decided: U, σ (those that count), V, null space.

    Args:
        K: the matrix.
        scale: of its columns.
        strongest: what the singular values are compared with; the largest of them if not given.
    """
    if not K.size:
        return np.eye(K.shape[0]), np.zeros(0), np.zeros((K.shape[1], 0)), np.eye(K.shape[1])
    U, sigma, Vt = np.linalg.svd(K * scale)
    strongest = float(sigma[0]) if strongest is None else strongest
    r = int(np.sum(sigma > RANK * strongest)) if strongest > 0 else 0
    return U, sigma[:r], Vt[:r].T, Vt[r:].T


def least(levels: Sequence[Level], scale: np.ndarray, wish: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The u that meets the levels in their order and is then nearest to `wish`, and the freedom left.

    Args:
        levels: the most important one first.
        scale: u = scale · x, where |x| is to be small: 1/√weight for each input.
        wish: where u should be if nothing else mattered; zero if not given.

    Returns:
        u, and a basis N of the changes of u that no level notices (orthonormal in x).
    """
    x = np.zeros(len(scale))
    N = np.eye(len(scale))
    for level in levels:
        whole = level.K * scale
        # what is left of a level after those before it may be nothing but rounding
        U, sigma, V, null = split(whole @ N, np.ones(N.shape[1]), float(np.linalg.norm(whole)))
        x = x + N @ (V @ ((U[:, : len(sigma)].T @ (level.b - (level.K * scale) @ x)) / sigma))
        N = N @ null
    if wish is not None:
        x = x + N @ (N.T @ (wish / scale - x))
    return scale * x, scale[:, None] * N


def bounded(
    levels: Sequence[Level], scale: np.ndarray, must: Inequalities, wish: np.ndarray | None = None
) -> tuple[np.ndarray, bool]:
    """As `least`, under inequalities: a cascade of quadratic programs.

    Returns:
        u, and whether the inequalities can be satisfied at all. If not, u is what `least` gives, cut at low and high.
    """
    low, high = must.low, must.high  # kept exactly, whatever the program solver leaves
    gap, size = must.high - must.low, np.abs(must.low) + np.abs(must.high)
    fixed = np.isfinite(gap) & (gap <= 1e-12 * size)
    if fixed.any():  # no choice: the program solver takes two bounds at one place for a contradiction
        levels = [Level(np.eye(len(scale))[fixed], must.low[fixed]), *levels]
        free = np.where(fixed, np.inf, 0.0)
        must = Inequalities(must.low - free, must.high + free, must.C, must.d)
    u, N = least(levels, scale, wish)
    if must.violation(u) <= 1e-12:
        return np.clip(u, low, high), True
    wished = np.zeros(len(u)) if wish is None else wish
    C, d = must.rows()
    for met in range(
        len(levels), int(fixed.any()) - 1, -1
    ):  # the first `met` levels as well as without limits, the others as possible
        start, N = least(levels[:met], scale)
        good = _program(levels[met : met + 1], start, N, scale, wished, C, d)
        if good is None:
            continue
        for k in range(met + 1, len(levels) + 1):  # what is left to the less important levels
            rows = np.vstack([level.K for level in levels[:k]])
            N = _null(rows, scale)
            better = _program(levels[k : k + 1], good, N, scale, wished, C, d)
            good = good if better is None else better
        return np.clip(good, low, high), True
    return np.clip(u, low, high), False


def _null(K: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return scale[:, None] * split(K, scale)[3]


def _program(
    level: Sequence[Level], start: np.ndarray, N: np.ndarray, scale: np.ndarray, wish: np.ndarray, C: np.ndarray,
    d: np.ndarray,
) -> np.ndarray | None:  # fmt: skip
    """The u = start + N y under C u ≤ d that meets a level best (nearest to the wish without one); None if none is."""
    if N.shape[1] == 0:
        slack = d - C @ start
        return start if np.all(slack >= -1e-9 * (np.abs(d) + np.abs(C) @ np.abs(start))) else None
    E = N / scale[:, None]
    P, q = E.T @ E, E.T @ ((start - wish) / scale)
    if level:
        K = level[0].K @ N
        size = max(float(np.abs(K).max(initial=0.0)), 1e-300)
        # the program solver needs a definite matrix: being near the wish decides among equally good solutions
        P = K.T @ K / size**2 + 1e-9 * P
        q = K.T @ (level[0].K @ start - level[0].b) / size**2 + 1e-9 * q
    y = _solve(P, q, C @ N, d - C @ start)
    if y is None:
        return None
    if level:
        y = _sharpened(Level(level[0].K @ N, level[0].b - level[0].K @ start), y, C @ N, d - C @ start)
    return start + N @ y


def _sharpened(level: Level, y: np.ndarray, G: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The exact solution of a level where the same inequalities hold with equality, if it is one; else y itself."""
    size = np.abs(h) + np.abs(G) @ np.abs(y)
    on = G @ y >= h - 1e-7 * size
    exact = least([Level(G[on], h[on]), level], np.ones(len(y)))[0]
    inside = np.all(G @ exact <= h + 1e-12 * size)
    return exact if inside and np.linalg.norm(level.K @ exact - level.b) < np.linalg.norm(level.K @ y - level.b) else y


def _solve(P: np.ndarray, q: np.ndarray, G: np.ndarray, h: np.ndarray) -> np.ndarray | None:
    """The y of least ½ yᵀP y + qᵀy with G y ≤ h."""
    try:
        from qpsolvers import solve_qp
    except ImportError:
        from sarrus.errors import SarrusError

        raise SarrusError(
            "torques within limits need a solver of quadratic programs; get one by: pip install 'sarrus[qp]'"
        ) from None
    rows = np.linalg.norm(G, axis=1)
    idle = rows <= 1e-12 * max(1.0, float(rows.max(initial=0.0)))
    if np.any(h[idle] < -1e-9):
        return None  # a row that y cannot change is broken
    G, h = G[~idle] / rows[~idle, None], h[~idle] / rows[~idle]
    size = max(float(np.abs(h).max(initial=0.0)), float(np.abs(np.linalg.solve(P, q)).max(initial=0.0)), 1e-300)
    y = solve_qp(P, q / size, G, h / size, solver="quadprog")
    return None if y is None else size * y
