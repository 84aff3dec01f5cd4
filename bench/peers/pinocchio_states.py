"""States, forces and accelerations between Sarrus' and Pinocchio's coordinates, for many states at once.

Numbers of hinges and sliders are the same. Planar and free joints differ: Pinocchio's velocity w is in the moving
frame, v = R w with R the joint's rotation, so that forces go over as Rᵀ and v̇ = R (ẇ + ω × w).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sarrus as sr
from bench.machines import Samples
from bench.peers.convert import Chain, Link
from sarrus.model.geometry import quaternion_to_matrix

SIZES = {"RZ": (1, 1), "PZ": (1, 1), "planar": (4, 3), "spherical": (4, 3), "free": (7, 6)}


def to_pinocchio(
    system: sr.System, chain: Chain, samples: Samples
) -> tuple[tuple[np.ndarray, ...], Callable[[np.ndarray], np.ndarray]]:
    """(q, v, tau) in Pinocchio's coordinates, and the map of its accelerations to Sarrus' v̇."""
    q_at = {name: k for k, name in enumerate(system.layout.q_names)}
    v_at = {name: k for k, name in enumerate(system.layout.v_names)}
    q_parts, v_parts, tau_parts, returns = [], [], [], []
    begin = 0
    for link in chain.links:
        q = samples.states.q[:, [q_at[n] for n in link.q_names]]
        index = [v_at[n] for n in link.v_names]
        q_new, R = _position(link, q)
        v = _turned(link, R.transpose(0, 2, 1), samples.states.v[:, index])
        q_parts.append(q_new)
        v_parts.append(v)
        tau_parts.append(_turned(link, R.transpose(0, 2, 1), samples.tau[:, index]))
        returns.append((link, R, v, index, slice(begin, begin + SIZES[link.kind][1])))
        begin += SIZES[link.kind][1]

    def back(found: np.ndarray) -> np.ndarray:
        out = np.full((len(found), system.layout.nv), np.nan)
        for link, R, v, index, part in returns:
            out[:, index] = _turned(link, R, found[:, part] + _carried(link, v))
        return out

    return tuple(np.ascontiguousarray(np.concatenate(x, axis=1)) for x in (q_parts, v_parts, tau_parts)), back


def _position(link: Link, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pinocchio's coordinates of one joint, and its rotation for every state."""
    still = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    if link.kind == "planar":
        c, s, zero = np.cos(q[:, 2]), np.sin(q[:, 2]), np.zeros(len(q))
        R = np.stack([np.stack([c, -s, zero], 1), np.stack([s, c, zero], 1), np.stack([zero, zero, zero + 1], 1)], 1)
        return np.column_stack([q[:, :2], c, s]), R
    if link.kind in ("spherical", "free"):
        w, xyz = q[:, -4:-3], q[:, -3:]
        R = np.array([quaternion_to_matrix(quat) for quat in q[:, -4:]])
        return np.column_stack([q[:, :-4], xyz, w]), R
    return q, still


def _turned(link: Link, R: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Turn the translational part of a velocity, force or acceleration; the rest stays."""
    out = values.copy()
    if link.kind == "planar":
        out[:, :2] = np.einsum("sij,sj->si", R[:, :2, :2], values[:, :2])
    elif link.kind == "free":
        out[:, :3] = np.einsum("sij,sj->si", R, values[:, :3])
    return out


def _carried(link: Link, w: np.ndarray) -> np.ndarray:
    """ω × w, the part of v̇ that comes from the turning of the moving frame."""
    out = np.zeros_like(w)
    if link.kind == "planar":
        out[:, 0], out[:, 1] = -w[:, 2] * w[:, 1], w[:, 2] * w[:, 0]
    elif link.kind == "free":
        out[:, :3] = np.cross(w[:, 3:], w[:, :3])
    return out
