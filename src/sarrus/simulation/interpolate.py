"""Between two recorded states: quintic Hermite polynomials on the manifold of configurations.

Numbers are interpolated as they are. A quaternion is interpolated through the rotation vector ξ of q = q₀ exp(ξ), whose
rates follow from the body-axes velocity ω and acceleration ω̇ by

    ω = J(ξ) ξ̇,   ω̇ = J(ξ) ξ̈ + J̇ ξ̇,   J(ξ) = 1 - b [ξ]ₓ + c [ξ]ₓ²,   b = (1 - cos θ)/θ²,  c = (θ - sin θ)/θ³,  θ = |ξ|.
"""

from __future__ import annotations

import numpy as np

from sarrus.dynamics.manifold import difference, retract
from sarrus.model.layout import Layout


def skew(x: np.ndarray) -> np.ndarray:
    """[x]ₓ for an array of vectors."""
    zero = np.zeros(x.shape[:-1])
    a, b, c = np.moveaxis(x, -1, 0)
    rows = [[zero, -c, b], [c, zero, -a], [-b, a, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _coefficients(xi: np.ndarray) -> tuple[np.ndarray, ...]:
    """The functions b, c, b'/θ and c'/θ of θ = |ξ|, by their series near 0."""
    square = np.sum(xi * xi, axis=-1)
    small = square < 1e-2
    s = np.where(small, 1.0, square)
    theta = np.sqrt(s)
    b, c = (1 - np.cos(theta)) / s, (theta - np.sin(theta)) / (s * theta)
    db, dc = (np.sin(theta) / theta - 2 * b) / s, (b - 3 * c) / s
    x = np.where(small, square, 0.0)
    series = (
        1 / 2 - x / 24 + x**2 / 720 - x**3 / 40320 + x**4 / 3628800,
        1 / 6 - x / 120 + x**2 / 5040 - x**3 / 362880 + x**4 / 39916800,
        -1 / 12 + x / 180 - x**2 / 6720 + x**3 / 453600,
        -1 / 60 + x / 1260 - x**2 / 60480 + x**3 / 4989600,
    )
    return tuple(np.where(small, near, far) for near, far in zip(series, (b, c, db, dc), strict=True))


def rotation_jacobian(xi: np.ndarray) -> np.ndarray:
    """J in ω = J(ξ) ξ̇, body axes."""
    b, c, _, _ = (x[..., None, None] for x in _coefficients(xi))
    X = skew(xi)
    return np.eye(3) - b * X + c * (X @ X)


def _jacobian_rate(xi: np.ndarray, rate: np.ndarray) -> np.ndarray:
    b, c, db, dc = (x[..., None, None] for x in _coefficients(xi))
    X, dX = skew(xi), skew(rate)
    along = np.sum(xi * rate, axis=-1)[..., None, None]
    return -(db * along * X + b * dX) + dc * along * (X @ X) + c * (dX @ X + X @ dX)


def chart_rates(
    layout: Layout, xi: np.ndarray, v: np.ndarray, a: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """ξ̇ (and ξ̈, if accelerations are given) of the step ξ from a fixed configuration; numbers pass unchanged."""
    first, second = v.copy(), np.zeros_like(v) if a is None else a.copy()
    for turn in layout.turns:
        part = slice(turn.v, turn.v + 3)
        J = rotation_jacobian(xi[..., part])
        first[..., part] = np.linalg.solve(J, v[..., part, None])[..., 0]
        if a is not None:
            drift = _jacobian_rate(xi[..., part], first[..., part]) @ first[..., part, None]
            second[..., part] = np.linalg.solve(J, a[..., part, None] - drift)[..., 0]
    return first, second


def velocities(layout: Layout, xi: np.ndarray, xi_dot: np.ndarray) -> np.ndarray:
    """The velocity v of a step ξ with rate ξ̇."""
    out = xi_dot.copy()
    for turn in layout.turns:
        part = slice(turn.v, turn.v + 3)
        out[..., part] = (rotation_jacobian(xi[..., part]) @ xi_dot[..., part, None])[..., 0]
    return out


# value, slope and curvature at both ends -> coefficients of 1, s, …, s⁵, for s from 0 to 1
_QUINTIC = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0.5, 0, 0, 0],
        [-10, -6, -1.5, 10, -4, 0.5],
        [15, 8, 1.5, -15, 7, -1],
        [-6, -3, -0.5, 6, -3, 0.5],
    ]
)


def hermite(
    layout: Layout,
    t: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    index: np.ndarray,
    when: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations between recorded states.

    Args:
        layout: names and quaternions.
        t: times of the record [s], one for each row of the arrays that follow.
        q: positions.
        v: velocities.
        a: accelerations.
        index: interval of each time asked for: from record i to i + 1.
        when: the times asked for [s].
        start: accelerations with which each record sets out, if they differ from `a`, those with which it is reached.

    Returns:
        q, v and a, one row for each time asked for. Each is right to the sixth, fifth and fourth power of the spacing.
    """
    i, j = index, index + 1
    step = (t[j] - t[i])[:, None]
    step = np.where(step > 0, step, 1.0)
    s = (np.asarray(when, dtype=float)[:, None] - t[i][:, None]) / step
    xi = difference(layout, q[i], q[j])
    zero = np.zeros_like(xi)
    first0, second0 = chart_rates(layout, zero, v[i], (a if start is None else start)[i])
    first1, second1 = chart_rates(layout, xi, v[j], a[j])
    ends = np.stack([zero, first0 * step, second0 * step**2, xi, first1 * step, second1 * step**2])
    c = np.einsum("pk,knj->pnj", _QUINTIC, ends)
    value = ((((c[5] * s + c[4]) * s + c[3]) * s + c[2]) * s + c[1]) * s
    slope = ((((5 * c[5] * s + 4 * c[4]) * s + 3 * c[3]) * s + 2 * c[2]) * s + c[1]) / step
    bend = (((20 * c[5] * s + 12 * c[4]) * s + 6 * c[3]) * s + 2 * c[2]) / step**2
    out_v = velocities(layout, value, slope)
    out_a = velocities(layout, value, bend)
    for turn in layout.turns:
        part = slice(turn.v, turn.v + 3)
        out_a[:, part] += (_jacobian_rate(value[:, part], slope[:, part]) @ slope[:, part, None])[..., 0]
    return retract(layout, q[i], value), out_v, out_a


def between(values: np.ndarray, t: np.ndarray, breaks: np.ndarray, index: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Values known at the rows only, between rows: a polynomial through the six nearest rows of one smooth stretch.

    Where a stretch is short, fewer rows are used.

    Args:
        values: one row for each time of the record.
        t: times of the record [s].
        breaks: the last row of each smooth stretch but the last stretch.
        index: interval of each time asked for: from record i to i + 1.
        when: the times asked for [s].
    """
    starts, ends = np.append(-1, breaks) + 1, np.append(breaks, len(t) - 1)
    stretch = np.searchsorted(breaks, index)
    low, high = starts[stretch], ends[stretch]
    first = np.clip(index - 2, low, np.maximum(low, high - 5))
    nodes = first[:, None] + np.arange(6)
    usable = nodes <= high[:, None]
    nodes = np.minimum(nodes, high[:, None])
    span = (t[index + 1] - t[index])[:, None]
    s = (t[nodes] - np.asarray(when, dtype=float)[:, None]) / span
    weights = np.where(usable, 1.0, 0.0)
    for j in range(6):
        for k in range(6):
            both = usable[:, j] & usable[:, k] & (j != k)
            gap = np.where(both, s[:, k] - s[:, j], 1.0)
            weights[:, j] *= np.where(both, s[:, k] / gap, 1.0)
    return np.einsum("pk,pkn->pn", weights, values[nodes])
