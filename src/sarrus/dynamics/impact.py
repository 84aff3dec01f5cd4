"""One-sided constraints at one instant: which of them push, and what happens when they are hit (sheet 2.9).

Everything is in the mass metric, M = L Lᵀ, w = Lᵀ v, with scaled rows S = diag(1/d) A L⁻ᵀ. Rows that hold in any case
(`held`) are taken out by the projector on their null space; what is left of the one-sided rows is N. Then

    impact         u = N w,     u⁺ = u + N Nᵀ p,   u⁺ - b ≥ 0,  p ≥ 0,  pᵀ (u⁺ - b) = 0,   b = -e min(u, 0)   (Newton)
    acceleration   α = N Nᵀ λ + α₀ ≥ 0,  λ ≥ 0,  λᵀ α = 0

Poisson's law is the first with b = 0 (compression), then impulses at least e times those (restitution).
Both are the optimality conditions of a non-negative least-squares problem, so that redundant contacts are welcome.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.rubbing import drag
from sarrus.dynamics.state import State
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


@dataclass(frozen=True)
class Side:
    """A one-sided constraint as rows of the machine.

    Attributes:
        name: of the constraint.
        normal: its first row.
        others: rows that hold only while it touches (they stick).
        sign: +1 if the residual stays at or above zero.
        restitution: speed of separation over that of approach.
        law: "newton" or "poisson".
    """

    name: str
    normal: int
    others: tuple[int, ...]
    sign: float
    restitution: float
    law: str


@dataclass(frozen=True, eq=False)
class Impact:
    """What an impact does.

    Attributes:
        v: velocities after it.
        impulses: one for each constraint row, M (v⁺ - v) = Aᵀ impulses [N s or N m s].
        lost: kinetic energy that went [J].
    """

    v: np.ndarray
    impulses: np.ndarray
    lost: float


def sides_of(system: System) -> tuple[Side, ...]:
    """The one-sided constraints of a machine."""
    out = []
    for name, (sign, restitution, law) in system.layout.one_sided.items():
        rows = system.layout.group_rows(name)
        out.append(Side(name, rows.start, tuple(range(rows.start + 1, rows.stop)), sign, restitution, law))
    return tuple(out)


def impact(system: System, state: State, held: np.ndarray, sides: Sequence[Side], plastic: frozenset[str]) -> Impact:
    """Velocities after the touching one-sided constraints are hit.

    Args:
        system: the machine.
        state: position, and velocities before.
        held: one flag for each row: 1 if it holds in any case.
        sides: the one-sided constraints that touch.
        plastic: names of those that stay in touch, whatever their restitution and whatever throws them off.
    """
    terms = system.terms(state)
    L, S = scaled_rows(system, terms.M, terms.A, np.ones(len(terms.A)))
    miss = terms.a / system.references  # rows want S w = miss
    staying = [row for s in sides if s.name in plastic for row in (s.normal, *s.others)]
    held = held + np.isin(np.arange(len(held)), staying)
    sides = [s for s in sides if s.name not in plastic]
    w0 = L.T @ state.v
    e = np.array([s.restitution for s in sides], dtype=float)
    poisson = np.array([s.law == "poisson" for s in sides], dtype=bool)
    normal, signs = [s.normal for s in sides], np.array([s.sign for s in sides])
    before = signs * (S[normal] @ w0 - miss[normal])
    target = np.where(poisson, 0.0, -e * np.minimum(before, 0.0))
    sticking = {s.name for s in sides if s.others}
    while True:  # those that leave do not stick
        rows = _rows(held, sides, sticking)
        base, project = _held(S, rows, w0, miss)
        N = signs[:, None] * project(S[normal])
        p = _complementary(N, signs * (S[normal] @ base - miss[normal]) - target)
        leaves = signs * (S[normal] @ (base + N.T @ p) - miss[normal]) > 1e-9 * (np.abs(before) + 1e-300)
        gone = {s.name for s, x, off in zip(sides, p, leaves, strict=True) if off and x == 0.0} & sticking
        if not gone:
            break
        sticking -= gone
    if np.any(poisson & (e > 0)):
        p = p + np.where(poisson, e, 0.0) * p
        rest = signs * (S[normal] @ (base + N.T @ p) - miss[normal]) - target
        p = p + _complementary(N, rest)
    w = base + N.T @ p
    push = np.zeros(len(S))
    push[normal] = signs * p
    if len(rows):
        push[rows] = np.linalg.lstsq(S[rows].T, w - w0 - S.T @ push, rcond=system.tolerance)[0]
    v = np.linalg.solve(L.T, w)
    return Impact(v, push / system.references, 0.5 * float(w0 @ w0 - w @ w))


def supporting(
    system: System,
    state: State,
    u: np.ndarray,
    held: np.ndarray,
    sides: Sequence[Side],
    easing: Collection[str] = (),
) -> tuple[frozenset[str], dict[str, float]]:
    """Which touching constraints at rest stay closed, and the normal acceleration of each if none of them pushed.

    Args:
        system: the machine.
        state: position and velocities, which the touching constraints keep.
        u: inputs.
        held: one flag for each row: 1 if it holds in any case.
        sides: the one-sided constraints that touch and do not separate.
        easing: names of those that are open, unless the machine would go through them then (forces of redundant
            contacts are not determinate, so that others may be able to carry the machine without them).
    """
    terms = system.terms(state)
    L, S = scaled_rows(system, terms.M, terms.A, np.ones(len(terms.A)))
    want = terms.gamma / system.references
    z = np.linalg.solve(L, terms.B @ u - terms.h)
    normal, signs = [s.normal for s in sides], np.array([s.sign for s in sides])
    free, _ = _held(S, _rows(held, sides, set()), z, want)
    alone = signs * (S[normal] @ free - want[normal])
    sticking = {s.name for s in sides if s.others}
    D = _friction(system, state, L, sides)
    idle = np.array([s.name in easing for s in sides], dtype=bool)
    size = np.linalg.norm(S[normal], axis=1) * (np.linalg.norm(z) + 1e-300) + np.abs(want[normal])
    sticking -= set(easing)
    while True:
        base, project = _held(S, _rows(held, sides, sticking), z, want)
        N = signs[:, None] * project(S[normal])
        alpha = signs * (S[normal] @ base - want[normal])
        p = np.zeros(len(alpha))
        p[~idle] = _complementary(N[~idle], alpha[~idle], D[:, ~idle])
        after = alpha + N @ ((N.T + D) @ p)
        needed = idle & (after < -1e-9 * size)
        if needed.any():
            idle &= ~needed
            sticking |= {s.name for s, on in zip(sides, needed, strict=True) if on and s.others}
            continue
        closed = ~idle & (after <= 1e-9 * size)
        gone = {s.name for s, on in zip(sides, closed, strict=True) if not on} & sticking
        if not gone:
            break
        sticking -= gone
    shut = [s for s, on in zip(sides, closed, strict=True) if on]
    if not _all_push(S, _rows(held, sides, sticking), shut, want - S @ z, D[:, closed]):
        closed = p > 0  # redundant, and forces of least norm would pull at some: a set that does without them
    names = frozenset(s.name for s, on in zip(sides, closed, strict=True) if on)
    return names, {s.name: float(a * system.references[s.normal]) for s, a in zip(sides, alone, strict=True)}


def _friction(system: System, state: State, L: np.ndarray, sides: Sequence[Side]) -> np.ndarray:
    """L⁻¹D for each one-sided constraint, for a scaled multiplier of one; zeros where nothing rubs."""
    layout, out = system.layout, np.zeros((len(L), len(sides)))
    if layout.rubbing:
        columns = np.linalg.solve(L, drag(system, state))
        for k, side in enumerate(sides):
            if side.name in layout.rubbing:
                out[:, k] = columns[:, layout.rubbing.index(side.name)] / system.references[side.normal]
    return out


def _all_push(S: np.ndarray, rows: list[int], sides: Sequence[Side], missing: np.ndarray, D: np.ndarray) -> bool:
    """Whether the constraint forces of least norm, those that a simulation has, push at every one-sided constraint."""
    every = [*rows, *(s.normal for s in sides)]
    S, missing = S[every], missing[every]
    if D.any():  # λ = (S Sᵀ)⁺(missing - S D λ_N)
        least = np.linalg.pinv(S.T, rcond=1e-9) @ np.linalg.pinv(S, rcond=1e-9)
        rub = S @ np.hstack([np.zeros((len(D), len(rows))), D])
        lam = np.linalg.solve(np.eye(len(every)) + least @ rub, least @ missing)
    else:
        lam = np.linalg.lstsq(S.T, np.linalg.pinv(S, rcond=1e-9) @ missing, rcond=1e-9)[0]
    normal = np.array([s.sign for s in sides]) * lam[len(rows) :]
    return bool(np.all(normal >= -1e-9 * np.max(np.abs(lam), initial=0.0)))


def _rows(held: np.ndarray, sides: Sequence[Side], sticking: set[str]) -> list[int]:
    on = held > 0
    for s in sides:
        if s.name in sticking:
            on = on | np.isin(np.arange(len(on)), s.others)
    return np.flatnonzero(on).tolist()


def _held(S, rows, w, want):
    """The nearest w with S w = want in these rows, and the projector on what they leave free."""
    if not rows:
        return w, lambda x: x
    U, sigma, Vt = np.linalg.svd(S[rows], full_matrices=False)
    r = int(np.sum(sigma > 1e-9))
    V = Vt[:r].T
    step = V @ ((U[:, :r].T @ (S[rows] @ w - want[rows])) / sigma[:r])
    return w - step, lambda x: x - (x @ V) @ V.T


def _complementary(N: np.ndarray, q: np.ndarray, D: np.ndarray | None = None) -> np.ndarray:
    """Solve p ≥ 0, W p + q ≥ 0, pᵀ(W p + q) = 0 with W = N (Nᵀ + D), D being friction that goes with p."""
    from scipy.optimize import nnls

    if D is not None and D.any():
        return _with_friction(N @ (N.T + D), q, _complementary(N, q) > 0)
    if not len(q) or np.all(q >= 0):
        return np.zeros(len(q))
    c = np.linalg.lstsq(N, q, rcond=1e-12)[0]  # N c = q, so that the conditions are those of min |Nᵀ p + c|
    p, _ = nnls(N.T, -c)
    on = p > 1e-12 * max(p.max(), 1e-300)
    out = np.zeros(len(q))
    if on.any():  # once more for the set that was found: nnls works with normal equations
        out[on] = np.maximum(np.linalg.lstsq(N[on].T, -c, rcond=1e-12)[0], 0.0)
    return out


def _with_friction(W: np.ndarray, q: np.ndarray, on: np.ndarray) -> np.ndarray:
    """The same for a matrix that is not symmetric, by Murty's least-index pivoting from a first guess of who pushes.

    It ends if every principal minor of W is positive, as it is for small friction.
    """
    on, small = on.copy(), 1e-12 * float(np.max(np.abs(q), initial=0.0))
    for _ in range(50 + 2 ** min(len(q) + 2, 10)):
        p = np.zeros(len(q))
        if on.any():
            p[on] = np.linalg.lstsq(W[np.ix_(on, on)], -q[on], rcond=1e-12)[0]
        wrong = np.flatnonzero((on & (p < 0)) | (~on & (W @ p + q < -small)))
        if not wrong.size:
            return p
        on[wrong[0]] = not on[wrong[0]]
    raise StateError(
        "contacts with friction: no contact forces belong to this state (Painlevé's paradox); expected a smaller "
        "friction, or contacts that stick"
    )
