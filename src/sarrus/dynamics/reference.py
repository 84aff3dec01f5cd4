"""Fixed references of the constraint rows, and a first look at the mass matrix.

A row's reference is its typical size in the mass metric, |L⁻¹ aᵀ|, taken over sample configurations spread over the
machine's own length and angle ranges (sheet 2.5: dividing by the current norm would hide a vanishing row). It turns
any change of units into nothing: rows, masses and lengths scale together.
"""

from __future__ import annotations

import numpy as np

from sarrus.dynamics.functions import Functions
from sarrus.dynamics.manifold import plain_map
from sarrus.errors import ModelError
from sarrus.model.layout import Layout

SAMPLES = 12


def sample_configurations(layout: Layout, count: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """Random configurations: turns over the whole circle, shifts over the machine's length."""
    rng = np.random.default_rng(seed)
    plain_q, plain_v = plain_map(layout)
    out = np.zeros((count, layout.nq))
    scales = np.array(layout.scales)
    start = np.array(layout.initial)
    for row in out:
        spread = rng.uniform(-1.0, 1.0, plain_q.size)
        row[plain_q] = start[plain_q] + spread * scales[plain_v] * np.where(scales[plain_v] == 1.0, np.pi, 1.0)
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
            _, dinv, y, *_ = functions("stages", 0.0, q, zero_v, zero_u, zero_v, p, ones)
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
    bad = [name for name, ok in zip(layout.v_names, good.any(axis=0), strict=True) if not ok]
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
