"""Square roots W of the mass matrix, M = W Wᵀ, and their rates (sheet 6).

cholesky    lower triangular; each quasi-velocity keeps its value under a change of the unit of a coordinate
root        symmetric, M^½; only the length of the quasi-velocities does
innovation  upper triangular: (I + HΦK) D^½ of the recursion from the tips of a tree to its base (see `recursion`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_sylvester

from sarrus.errors import SarrusError

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System

FACTORS = ("cholesky", "root", "innovation")


def factor(M: np.ndarray, kind: str) -> np.ndarray:
    """W with M = W Wᵀ, of one matrix or of a stack of them."""
    if kind == "cholesky":
        return np.linalg.cholesky(M)
    if kind == "innovation":
        return np.linalg.cholesky(M[..., ::-1, ::-1])[..., ::-1, ::-1]
    w, X = np.linalg.eigh(M)
    return (X * np.sqrt(w)[..., None, :]) @ np.swapaxes(X, -1, -2)


def factor_rate(W: np.ndarray, Mdot: np.ndarray, kind: str) -> np.ndarray:
    """Ẇ: L tril½(L⁻¹ Ṁ L⁻ᵀ) with half the diagonal, the same from above, or X of M^½ X + X M^½ = Ṁ."""
    if kind == "root":
        return solve_sylvester(W, W, Mdot)
    inner = np.linalg.solve(W, np.linalg.solve(W, Mdot).T)
    half = np.tril(inner, -1) if kind == "cholesky" else np.triu(inner, 1)
    return W @ (half + np.diag(np.diag(inner)) / 2)


def recursion(system: System, state: State) -> np.ndarray:
    """The innovation factor by the spatial recursion from the tips to the base, without forming M (sheet 6; 001 V.C).

    All spatial vectors are taken at the world's origin, so that shifting them from link to link needs no matrix: with
    the columns S_k of joint k and the inertia P_k of everything it carries,

        D_k = S_kᵀ P_k S_k + rotor,  G_k = P_k S_k D_k^-½,  P_inner += P_k - G_k G_kᵀ,  W_ik = S_iᵀ G_k for i inside k.

    Args:
        system: a machine described by bodies.
        state: one state.
    """
    from sarrus.model.parts import Model
    from sarrus.model.tree import span

    model = system.description
    if not isinstance(model, Model):
        raise SarrusError(f"{system.name}: the recursion needs a machine described by bodies, not by a Lagrangian")
    edges = span(model).edges
    columns = _columns(system, state)
    inertia = {body.name: _spatial_inertia(system, state, body) for body in model.bodies}
    path: dict[str, list[int]] = {"ground": []}
    start, slices = 0, []
    for k, edge in enumerate(edges):
        slices.append(slice(start, start + edge.joint.nv))
        start += edge.joint.nv
        path[edge.outer] = [*path[edge.inner], k]
    motion = [columns[e.outer][:, s] - columns[e.inner][:, s] for e, s in zip(edges, slices, strict=True)]
    W = np.zeros((start, start))
    for k in range(len(edges) - 1, -1, -1):
        edge, S, own = edges[k], motion[k], slices[k]
        P = inertia[edge.outer]
        rotor = _number(system, edge.joint.rotor_inertia)
        root = factor(S.T @ P @ S + rotor * np.eye(S.shape[1]), "innovation")
        G = np.linalg.solve(root, S.T @ P).T  # P S D^-T/2
        W[own, own] = root
        for i in path[edge.inner]:
            W[slices[i], own] = motion[i].T @ G
        if edge.inner != "ground":
            inertia[edge.inner] = inertia[edge.inner] + P - G @ G.T
    return W


def _columns(system: System, state: State) -> dict[str, np.ndarray]:
    """(ω, velocity of the body's point at the world's origin) of each body for unit velocities."""
    from sarrus.model.features import point_on

    out = {"ground": np.zeros((6, system.layout.nv))}
    for name in system.layout.bodies:
        _, J, _ = system.task("orientation", name).evaluate(state)
        p, Jp, _ = system.task("point", point_on(name, (0.0, 0.0, 0.0))).evaluate(state)
        out[name] = np.vstack([J, Jp + _cross(p) @ J])
    return out


def _spatial_inertia(system: System, state: State, body: Any) -> np.ndarray:
    """Inertia of a body about the world's origin, in world axes."""
    p, R = system.frame(state, body.name)
    mass = _number(system, body.mass)
    c = p + R @ _number(system, body.com)
    about = R @ _number(system, body.inertia) @ R.T
    C = _cross(c)
    return np.block([[about - mass * C @ C, mass * C], [-mass * C, mass * np.eye(3)]])


def _number(system: System, value: Any) -> Any:
    from sarrus.model.expression import numeric

    return numeric(value, system.parameters)


def _cross(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
