"""What every formulation starts from: the equations of a machine at one state, and one rank decision for all of them.

The rank is that of `System.rank`: singular values of the scaled rows in the mass metric, S = diag(d)⁻¹ A L⁻ᵀ. All
other factorisations keep as many directions, so that no two formulations can disagree about the constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.state import State, checked_array
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


@dataclass(frozen=True, eq=False)
class Point:
    """M v̇ + h = f + Aᵀλ, A v̇ = γ at one state, rows scaled by their references d, switched-off rows zero.

    Attributes:
        M: mass matrix.
        h: Coriolis, gravity and passive forces.
        f: applied forces B u + f.
        A: scaled rows, diag(d)⁻¹ A.
        gamma: scaled right-hand sides.
        phi: scaled residuals Φ.
        slip: scaled residuals A v - a.
        rank: directions that count.
    """

    M: np.ndarray
    h: np.ndarray
    f: np.ndarray
    A: np.ndarray
    gamma: np.ndarray
    phi: np.ndarray
    slip: np.ndarray
    rank: int

    @property
    def n(self) -> int:
        """Number of velocities."""
        return len(self.h)

    @cached_property
    def L(self) -> np.ndarray:
        """Cholesky factor, M = L Lᵀ."""
        return np.linalg.cholesky(self.M)

    def free(self) -> np.ndarray:
        """M⁻¹(f - h), the acceleration without constraints."""
        return self.by_mass(self.f - self.h)

    def by_mass(self, x: np.ndarray) -> np.ndarray:
        """M⁻¹ x."""
        return np.linalg.solve(self.L.T, np.linalg.solve(self.L, x))

    @cached_property
    def svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, s, V of A = U diag(s) Vᵀ (sheet 2.1), cut to the rank."""
        return cut_svd(self.A, self.rank)

    @cached_property
    def Q(self) -> np.ndarray:
        """Orthogonal projector on the range of Aᵀ, A⁺A (sheet 2.1)."""
        V1 = self.svd[2]
        return V1 @ V1.T

    @cached_property
    def P(self) -> np.ndarray:
        """Orthogonal projector on the null space of A, I - A⁺A (sheet 2.1)."""
        return np.eye(self.n) - self.Q

    @cached_property
    def an(self) -> np.ndarray:
        """Normal acceleration A⁺γ = Q v̇ (sheet 2.3)."""
        U, s, V1 = self.svd
        return V1 @ ((U.T @ self.gamma) / s)

    @cached_property
    def delassus(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvectors U and eigenvalues w of A M⁻¹ Aᵀ, cut to the rank: its pseudo-inverse is U diag(1/w) Uᵀ."""
        U, s, _ = cut_svd(np.linalg.solve(self.L, self.A.T).T, self.rank)
        return U, s**2

    def inverse_delassus(self, x: np.ndarray) -> np.ndarray:
        """(A M⁻¹ Aᵀ)⁺ x."""
        U, w = self.delassus
        return U @ ((U / w).T @ x)

    def measured(self, root: np.ndarray) -> Point:
        """The same equations in the coordinates W^½ v, which make W the unit (sheet 2.8).

        Args:
            root: W^-½.
        """
        return Point(
            root @ self.M @ root, root @ self.h, root @ self.f, self.A @ root, self.gamma, self.phi, self.slip,
            self.rank,
        )  # fmt: skip


def cut_svd(A: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The `rank` strongest terms of a singular value decomposition: U, s and V (as columns)."""
    if not rank:
        return np.zeros((len(A), 0)), np.zeros(0), np.zeros((A.shape[1], 0))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return U[:, :rank], s[:rank], Vt[:rank].T


def point_at(system: System, state: State, u: Any, f: Any, active: Mapping[str, bool] | None) -> Point:
    """The equations at one state.

    Args:
        system: the machine.
        state: one state.
        u: inputs, or None.
        f: further generalised forces, or None.
        active: constraint name -> False for those switched off.
    """
    system._own(state)
    if state.count is not None:
        raise StateError("a formulation takes one state (state.row(i) picks one from an array of states)")
    x, layout = system.terms(state), system.layout
    u = np.zeros(layout.nu) if u is None else checked_array("inputs u", u, layout.nu, layout.u_names)
    f = np.zeros(layout.nv) if f is None else checked_array("forces f", f, layout.nv, layout.v_names)
    flags, kept = system.active_rows(active), list(system.kept)
    _, S = scaled_rows(system, x.M, x.A, flags)
    sigma = np.linalg.svd(S, compute_uv=False) if S.size else np.zeros(0)
    scale = np.zeros(layout.m)
    scale[kept] = flags[kept] / system.norms
    slip = x.A @ state.v - x.a
    return Point(
        x.M, x.h, x.B @ u + f, scale[:, None] * x.A, scale * x.gamma, scale * x.phi, scale * slip,
        int(np.sum(sigma > system.tolerance)),
    )  # fmt: skip


def multipliers(system: System, point: Point, force: np.ndarray) -> np.ndarray:
    """λ of least norm (metric of `System.solve`) whose force Aᵀλ is `force`, for the rows as they were written."""
    U, s, V = cut_svd(np.linalg.solve(point.L, point.A.T).T, point.rank)
    scaled = U @ ((V.T @ np.linalg.solve(point.L, force)) / s)
    out = np.zeros(len(point.A))
    kept = list(system.kept)
    out[kept] = scaled[kept] / system.norms
    return out
