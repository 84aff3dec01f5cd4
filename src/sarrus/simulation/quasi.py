"""Reduced quasi-velocities along a motion, in a basis that turns smoothly with it (sheet 6 (b))."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.formulations.factors import FACTORS, factor
from sarrus.dynamics.formulations.sections import aligned
from sarrus.errors import StateError
from sarrus.simulation import access, evaluate

if TYPE_CHECKING:
    from sarrus.dynamics.system import System
    from sarrus.simulation.trajectory import Trajectory


def quasi_velocities(traj: Trajectory, kind: str) -> np.ndarray:
    """See `Trajectory.quasi_velocities`."""
    if kind not in FACTORS:
        raise StateError(f"factor={kind!r}: expected one of {', '.join(FACTORS)}")
    parts: list[np.ndarray] = []
    before = None
    for rows, segment, system in traj.pieces():
        w, directions, rank = _factored(traj, rows, system, system.active_rows(segment.active), kind)
        bases = _smooth(directions, rank, before)
        parts.append(np.einsum("cnk,cn->ck", bases, w))
        before = bases[-1]
    out = np.full((len(traj), max(part.shape[1] for part in parts)), np.nan)
    for (rows, _, _), part in zip(traj.pieces(), parts, strict=True):
        out[rows, : part.shape[1]] = part
    return out


def _factored(
    traj: Trajectory, rows: slice, system: System, flags: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The products w = Wᵀ v at each row, the right singular vectors of Λ = A W⁻ᵀ as columns, and its rank."""
    w, directions, rank = [], [], []
    kept = list(system.kept)
    for inside, x in evaluate.terms_in_chunks(system, access.states(traj, rows)):
        W = factor(x.M, kind)
        A = x.A[:, kept] * (flags[kept] / system.norms)[:, None]
        Lam = np.swapaxes(np.linalg.solve(W, np.swapaxes(A, -1, -2)), -1, -2)
        w.append(np.einsum("cij,ci->cj", W, traj.v[rows][inside]))
        if kept:
            _, sigma, Vt = np.linalg.svd(Lam)
        else:
            sigma, Vt = np.zeros((len(W), 0)), np.broadcast_to(np.eye(W.shape[-1]), W.shape)
        directions.append(np.swapaxes(Vt, -1, -2))
        rank.append(np.sum(sigma > system.tolerance, axis=-1))
    return np.concatenate(w), np.concatenate(directions), np.concatenate(rank)


def _smooth(directions: np.ndarray, rank: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """A basis of the free directions at each row that turns as little as it can from one to the next.

    At a singular position there are more of them; those nearest to the neighbours' are meant. The first regular row
    starts, fitted to the basis `before` if that has as many columns, and the rows on both sides of it follow.
    """
    count, n, _ = directions.shape
    most = int(rank.max())
    first = int(np.argmax(rank == most))
    out = np.empty((count, n, n - most))
    out[first] = directions[first][:, most:]
    if before is not None and before.shape == out[first].shape:
        out[first] = aligned(out[first], before)
    for i in range(first + 1, count):
        out[i] = aligned(directions[i][:, rank[i] :], out[i - 1])
    for i in range(first - 1, -1, -1):
        out[i] = aligned(directions[i][:, rank[i] :], out[i + 1])
    return out
