"""Configurations as a manifold: moving along a velocity, and the shortest move between two configurations."""

from __future__ import annotations

import numpy as np

from sarrus.model.layout import Layout


def plain_map(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Indices (into q, into v) of the coordinates that are plain numbers."""
    turned_q = {t.q + k for t in layout.turns for k in range(4)}
    turned_v = {t.v + k for t in layout.turns for k in range(3)}
    plain_q = [i for i in range(layout.nq) if i not in turned_q]
    plain_v = [i for i in range(layout.nv) if i not in turned_v]
    return np.array(plain_q, dtype=int), np.array(plain_v, dtype=int)


def retract(layout: Layout, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Move from q along `step`, a velocity times a time: numbers add, quaternions turn by the exponential map."""
    q, step = np.asarray(q, dtype=float), np.asarray(step, dtype=float)
    shape = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
    out = np.broadcast_to(q, (*shape, layout.nq)).copy()
    plain_q, plain_v = plain_map(layout)
    out[..., plain_q] += step[..., plain_v]
    for turn in layout.turns:
        rotation = step[..., turn.v : turn.v + 3]
        quat = quat_multiply(out[..., turn.q : turn.q + 4], quat_exp(rotation))
        out[..., turn.q : turn.q + 4] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    return out


def difference(layout: Layout, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The step that `retract` needs to get from `start` to `end` (shortest way round for quaternions)."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    shape = np.broadcast_shapes(start.shape[:-1], end.shape[:-1])
    out = np.zeros((*shape, layout.nv))
    plain_q, plain_v = plain_map(layout)
    out[..., plain_v] = (end - start)[..., plain_q]
    for turn in layout.turns:
        a, b = start[..., turn.q : turn.q + 4], end[..., turn.q : turn.q + 4]
        out[..., turn.v : turn.v + 3] = quat_log(quat_multiply(a * np.array([1.0, -1.0, -1.0, -1.0]), b))
    return out


def normalise(layout: Layout, q: np.ndarray) -> np.ndarray:
    """Unit length for every quaternion."""
    out = np.array(q, dtype=float)
    for turn in layout.turns:
        quat = out[..., turn.q : turn.q + 4]
        out[..., turn.q : turn.q + 4] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    return out


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of quaternions (w, x, y, z)."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    vector = aw * bv + bw * av + np.cross(av, bv)
    return np.concatenate([aw * bw - np.sum(av * bv, axis=-1, keepdims=True), vector], axis=-1)


def quat_exp(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternion of a rotation vector."""
    angle = np.linalg.norm(rotation, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), np.sinc(angle / (2 * np.pi)) / 2 * rotation], axis=-1)


def quat_log(quat: np.ndarray) -> np.ndarray:
    """Rotation vector of a unit quaternion, at most half a turn."""
    quat = np.where(quat[..., :1] < 0, -quat, quat)
    size = np.linalg.norm(quat[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(size, quat[..., :1])
    factor = np.where(size > 0, angle / np.where(size > 0, size, 1.0), 2.0)
    return factor * quat[..., 1:]
