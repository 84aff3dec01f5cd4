"""Fixed references of the constraint rows, and a first look at the mass matrix.

A row's reference is its typical size in the mass metric, |L⁻¹ aᵀ|, taken over sample configurations spread over the
machine's own length and angle ranges (sheet 2.5: dividing by the current norm would hide a vanishing row). It turns
any change of units into nothing: rows, masses and lengths scale together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.functions import Functions
from sarrus.dynamics.manifold import plain_map
from sarrus.errors import AssemblyError, ModelError
from sarrus.model.layout import Layout

if TYPE_CHECKING:
    from sarrus.dynamics.system import System

SAMPLES = 12


def sample_configurations(layout: Layout, count: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """Random configurations: turns over the whole circle, shifts over the machine's length."""
    rng = np.random.default_rng(seed)
    plain_q, plain_v = plain_map(layout)
    out = np.zeros((count, layout.nq))
    reach = np.where(np.array(layout.angles, dtype=bool), np.pi, np.array(layout.scales))
    start = np.array(layout.initial)
    for row in out:
        row[plain_q] = start[plain_q] + rng.uniform(-1.0, 1.0, plain_q.size) * reach[plain_v]
        for turn in layout.turns:
            quat = rng.normal(size=4)
            row[turn.q : turn.q + 4] = quat / np.linalg.norm(quat)
    return out


def row_norms(
    layout: Layout, functions: Functions, kept: tuple[int, ...], y_index: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """Reference norm of each row that can be nonzero; checks on the way that M is positive definite."""
    squares, pivots = [], []
    ones = np.ones(len(kept))
    zero_v, zero_u = np.zeros(layout.nv), np.zeros(layout.nu)
    with np.errstate(all="ignore"):
        for q in sample_configurations(layout):
            dinv, y = functions("stages", 0.0, q, zero_v, zero_u, zero_v, p, ones)
            if len(y_index):
                terms = y**2 * dinv[y_index[:, 0]]
                squares.append(np.bincount(y_index[:, 1], weights=terms, minlength=len(kept)))
            M = functions("terms", 0.0, q, zero_v, p)[0]
            pivots.append(1.0 / dinv / np.where(np.diag(M) > 0, np.diag(M), np.inf))
    _check_inertia(layout, np.array(pivots))
    if not kept:
        return np.zeros(0)
    table = np.array(squares)
    usable = np.isfinite(table) & (table >= 0)
    mean = np.where(usable, table, 0.0).sum(axis=0) / np.maximum(usable.sum(axis=0), 1)
    return _with_floor(layout, kept, np.sqrt(mean))


def _check_inertia(layout: Layout, pivots: np.ndarray) -> None:
    good = np.isfinite(pivots) & (pivots > 1e-13)
    bad = [name for name, ok in zip(layout.v_names, np.any(good, axis=0).tolist(), strict=True) if not ok]
    if bad:
        raise ModelError(
            layout.name,
            [f"coordinate {name!r}: nothing with inertia moves with it alone (singular mass matrix)" for name in bad],
        )


def _with_floor(layout: Layout, kept: tuple[int, ...], norms: np.ndarray) -> np.ndarray:
    """Rows that vanish everywhere keep the reference of their peers, so that rounding does not become a constraint."""
    unit = np.array([layout.length if layout.rows[i].unit == "rad" else 1.0 for i in kept])
    known = np.array([layout.rows[i].unit != "" for i in kept])
    out = norms.copy()
    for index, i in enumerate(kept):
        same = [k for k, j in enumerate(kept) if layout.rows[j].group == layout.rows[i].group]
        peers = known if known[index] else np.isin(np.arange(len(kept)), same)
        floor = 1e-3 * float(np.max((norms * unit)[peers], initial=0.0)) / unit[index]
        out[index] = max(norms[index], floor)
    return np.where(out > 0, out, 1.0)


def saddle_samples(system: System, count: int = 3) -> tuple[list[np.ndarray], bool]:
    """Values of [[M, Aᵀ], [A, 0]] with scaled rows at assembled states near the start, and whether rows depend there.

    A machine that cannot be assembled from its starting guess gets samples anywhere.
    """
    layout = system.layout
    configurations = sample_configurations(layout, count)
    assembled = True
    try:
        start = system.assemble().q
        configurations = [start, *(_nearby(system, start, k) for k in range(1, count))]
    except AssemblyError:
        assembled = False
    samples, deficient = [], []
    for q in configurations:
        _, A, _, _, M = system.functions("position", 0.0, q, system.p)
        rows = A[list(system.kept)] / system.norms[:, None]
        K = np.block([[M, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        if np.isfinite(K).all():
            samples.append(K)
            on = system.active_rows(None)[list(system.kept)] > 0
            S = np.linalg.solve(np.linalg.cholesky(M), rows[on].T)
            deficient.append(bool(S.size) and np.linalg.eigvalsh(S.T @ S)[0] <= system.tolerance**2)
    return samples, assembled and bool(deficient) and all(deficient)


def _nearby(system: System, start: np.ndarray, seed: int) -> np.ndarray:
    """An assembled configuration some way from the start, or the start itself."""
    rng = np.random.default_rng(seed)
    step = 0.2 * seed * np.array(system.layout.scales) * rng.uniform(-1.0, 1.0, system.layout.nv)
    guess = system.state(system.retract(start, step))
    try:
        return system.assemble(near=guess).q
    except AssemblyError:
        return start
