"""The papers' matrices at one state, by the names of the equation sheet: for teaching and for methods of one's own.

Every one is computed from its definition when first asked for. Rows of A are those of the machine divided by their
fixed references, switched-off rows are zero; X⁺ keeps as many directions as the rank says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.formulations.factors import FACTORS, factor, factor_rate
from sarrus.dynamics.formulations.mobility import partition
from sarrus.dynamics.formulations.point import Point, cut_svd, point_at
from sarrus.dynamics.formulations.projection import mean_inertia
from sarrus.dynamics.formulations.rates import christoffel, inertia_slopes, rates
from sarrus.dynamics.formulations.record import is_automatic_or_nonzero, is_automatic_or_positive
from sarrus.dynamics.formulations.sections import polar_section, polar_section_rate, transport_rate
from sarrus.dynamics.rubbing import refuse
from sarrus.dynamics.state import State
from sarrus.errors import StateError, UnknownNameError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


@dataclass(frozen=True, eq=False)
class Matrices:
    """Matrices of one machine at one state; `names` lists them, `about` says what each is.

    Attributes:
        system: the machine.
        state: the state.
        point: its equations there.
        B: actuator map, f = B u.
        mu: virtual mass [kg], a number.
        gamma_scale: weight γ of Mpp [kg], a number.
        factor: which square root W of M is meant.
        reference: basis to which V2w keeps near (`polar_section`), or None for any.
    """

    system: System
    state: State
    point: Point
    B: np.ndarray
    mu: float
    gamma_scale: float
    factor: str
    reference: np.ndarray | None = None

    def names(self) -> list[str]:
        """All matrices and vectors that can be asked for."""
        return [name for name, x in vars(type(self)).items() if isinstance(x, cached_property)]

    def about(self, name: str) -> str:
        """What one of them is, with its place on the equation sheet."""
        self._known(name)
        return str(getattr(type(self), name).__doc__)

    def __getitem__(self, name: str) -> np.ndarray:
        """One of them by name."""
        self._known(name)
        return getattr(self, name)

    def _known(self, name: str) -> None:
        if name not in self.names():
            raise UnknownNameError("matrix", name, self.names())

    def __str__(self) -> str:
        """Names with meanings, a line each."""
        width = max(map(len, self.names()))
        return "\n".join(f"{name:<{width}}  {self.about(name)}" for name in self.names())

    # --- the equations ---------------------------------------------------------------------------------------------
    @cached_property
    def M(self) -> np.ndarray:
        """Mass matrix (1)."""
        return self.point.M

    @cached_property
    def A(self) -> np.ndarray:
        """Constraint rows, each divided by its reference; switched-off rows are zero (1)."""
        return self.point.A

    @cached_property
    def Mdot(self) -> np.ndarray:
        """Rate of M along the motion."""
        return self._rates[0]

    @cached_property
    def Adot(self) -> np.ndarray:
        """Rate of A along the motion."""
        return self._rates[1]

    @cached_property
    def C(self) -> np.ndarray:
        """Christoffel matrix: C v is the quadratic part of h, Mdot - 2C is skew (1)."""
        return christoffel(self.system, self.state, self.M)

    @property
    def _rates(self) -> tuple[np.ndarray, np.ndarray]:
        Mdot, Adot = rates(self.system, self.state)
        scale = np.zeros(len(Adot))
        kept = list(self.system.kept)
        scale[kept] = np.any(self.A[kept] != 0, axis=1) / self.system.norms
        return Mdot, scale[:, None] * Adot

    # --- projectors (2) --------------------------------------------------------------------------------------------
    @cached_property
    def P(self) -> np.ndarray:
        """Orthogonal projector on the null space of A, I - A⁺A (2.1)."""
        return self.point.P

    @cached_property
    def Q(self) -> np.ndarray:
        """Orthogonal projector on the range of Aᵀ, I - P (2.1)."""
        return self.point.Q

    @cached_property
    def V1(self) -> np.ndarray:
        """Orthonormal basis of the range of Aᵀ (2.1)."""
        return self.point.svd[2]

    @cached_property
    def V2(self) -> np.ndarray:
        """Orthonormal basis of the null space of A (2.1)."""
        return complement(self.V1)

    @cached_property
    def Y(self) -> np.ndarray:
        """Normal-rate matrix -A⁺ Adot; Y v = an for v in the null space of A (2.2)."""
        U, s, V = self.point.svd
        return -V @ ((U.T @ self.Adot) / s[:, None])

    @cached_property
    def Pdot(self) -> np.ndarray:
        """Rate of P, YP + PYᵀ; exists where the rank stays (2.2)."""
        return self.Y @ self.P + self.P @ self.Y.T

    @cached_property
    def Omega(self) -> np.ndarray:
        """Y - Yᵀ; Omega v = an for v in the null space of A (2.4)."""
        return self.Y - self.Y.T

    @cached_property
    def an(self) -> np.ndarray:
        """Normal acceleration A⁺γ = Q v̇ (2.3)."""
        return self.point.an

    # --- constraint mass matrices (3) ------------------------------------------------------------------------------
    @cached_property
    def Mc(self) -> np.ndarray:
        """Constraint inertia matrix M + PM - MP (3)."""
        return self.M + self.P @ self.M - self.M @ self.P

    @cached_property
    def Mp(self) -> np.ndarray:
        """Symmetric constraint inertia matrix M'c = PMP + QMQ (3)."""
        return self.P @ self.M @ self.P + self.Q @ self.M @ self.Q

    @cached_property
    def Mpp(self) -> np.ndarray:
        """Scaled constraint inertia matrix M''c = PM + γQ (3)."""
        return self.P @ self.M + self.gamma_scale * self.Q

    @cached_property
    def Mb(self) -> np.ndarray:
        """Inertia matrix with virtual mass M̄ = PMP + μQ, symmetric positive definite (3)."""
        return self.P @ self.M @ self.P + self.mu * self.Q

    @cached_property
    def Cb(self) -> np.ndarray:
        """C̄ = PCP + PM Pdot - μYP with Mb v̇ + Cb v = P(f - G); d/dt Mb - 2Cb is skew (2.4, steady rows)."""
        return self.P @ self.C @ self.P + self.P @ self.M @ self.Pdot - self.mu * self.Y @ self.P

    @cached_property
    def kappa(self) -> np.ndarray:
        """κ = Q M Mc⁻¹, which maps tangent force to constraint force (4)."""
        return np.linalg.solve(self.Mc.T, (self.Q @ self.M).T).T

    # --- oblique projectors (5) ------------------------------------------------------------------------------------
    @cached_property
    def H(self) -> np.ndarray:
        """Inverse of the mobility of the rows, (A M⁻¹ Aᵀ)⁺ (4)."""
        return self.point.inverse_delassus(np.eye(len(self.A)))

    @cached_property
    def Phibar(self) -> np.ndarray:
        """Inertia-weighted inverse of the rows, Φ̄ = M⁻¹AᵀH (2.4 (7))."""
        return self.point.by_mass(self.A.T) @ self.H

    @cached_property
    def Theta(self) -> np.ndarray:
        """Projector on the null space of A, orthogonal in the kinetic energy: I - Φ̄A (5)."""
        return np.eye(self.point.n) - self.Phibar @ self.A

    @cached_property
    def Mob(self) -> np.ndarray:
        """Constrained mobility (PMP)⁺ = V2 (V2ᵀ M V2)⁻¹ V2ᵀ (5)."""
        return self.V2 @ np.linalg.solve(self.V2.T @ self.M @ self.V2, self.V2.T)

    @cached_property
    def S(self) -> np.ndarray:
        """Oblique projector on the range of Aᵀ along M N(A), I - M Mob (5)."""
        return np.eye(self.point.n) - self.M @ self.Mob

    # --- actuation (5) ---------------------------------------------------------------------------------------------
    @cached_property
    def Gam(self) -> np.ndarray:
        """Γ = (PB)⁺: inputs of least norm for a tangent force, u = Gam w (5)."""
        return np.linalg.pinv(self.P @ self.B, rcond=1e-8)

    @cached_property
    def R(self) -> np.ndarray:
        """B Γ: the actuator force R w of a tangent force w = P w; P R = P where the inputs suffice (5)."""
        return self.B @ self.Gam

    # --- bases of the null space (7) -------------------------------------------------------------------------------
    @cached_property
    def Cn(self) -> np.ndarray:
        """Basis of the null space in which some coordinates are free and the others follow (7)."""
        return partition(self.point)[0]

    # --- quasi-velocities (6) --------------------------------------------------------------------------------------
    @cached_property
    def W(self) -> np.ndarray:
        """Square root of the mass matrix, M = W Wᵀ, by `factor` (6)."""
        return factor(self.M, self.factor)

    @cached_property
    def Wdot(self) -> np.ndarray:
        """Rate of W along the motion (6)."""
        return factor_rate(self.W, self.Mdot, self.factor)

    @cached_property
    def Lam(self) -> np.ndarray:
        """Rows of the quasi-velocities, Λ = A W⁻ᵀ (6)."""
        return np.linalg.solve(self.W, self.A.T).T

    @cached_property
    def Lr(self) -> np.ndarray:
        """Reduced rows U1 Σ of Λ = U1 Σ V1ᵀ (6)."""
        U, s, _ = self._lam_svd
        return U * s

    @cached_property
    def V1w(self) -> np.ndarray:
        """Orthonormal basis of the range of Λᵀ (6)."""
        return self._lam_svd[2]

    @cached_property
    def V2w(self) -> np.ndarray:
        """Orthonormal basis of the null space of Λ: the one nearest to `reference`, if one was given (6)."""
        any_one = complement(self.V1w)
        return any_one if self.reference is None else polar_section(any_one, self.reference)

    @cached_property
    def Pwdot(self) -> np.ndarray:
        """Rate of the projector V2w V2wᵀ on the null space of Λ (2.2, 6)."""
        Lamdot = np.linalg.solve(self.W, self.Adot.T).T - self.Lam @ np.linalg.solve(self.W, self.Wdot).T
        U, s, V = self._lam_svd
        Yw = -V @ ((U.T @ Lamdot) / s[:, None])
        Pw = self.V2w @ self.V2w.T
        return Yw @ Pw + Pw @ Yw.T

    @cached_property
    def V2wdot(self) -> np.ndarray:
        """Rate of V2w; without `reference` that of a basis that does not turn in itself, V2wᵀ V2wdot = 0 (6)."""
        if self.reference is None:
            return transport_rate(self.V2w, self.Pwdot)
        return polar_section_rate(self.V2w, self.reference, self.Pwdot)

    @cached_property
    def Z(self) -> np.ndarray:
        """Basis W⁻ᵀ V2w of the null space of A with Zᵀ M Z = I; v = Z vr, vr = Zᵀ M v (6)."""
        return np.linalg.solve(self.W.T, self.V2w)

    @cached_property
    def Zdot(self) -> np.ndarray:
        """Rate of Z, W⁻ᵀ(V2wdot - Wdotᵀ Z) (6)."""
        return np.linalg.solve(self.W.T, self.V2wdot - self.Wdot.T @ self.Z)

    @cached_property
    def vr(self) -> np.ndarray:
        """Reduced quasi-velocities Zᵀ M v; v = Z vr + vn, and vrᵀ vr = 2T where no constraint moves (6)."""
        return self.Z.T @ (self.M @ self.state.v)

    @cached_property
    def vn(self) -> np.ndarray:
        """Velocity that moving constraints impose: A vn = a, Zᵀ M vn = 0, least in kinetic energy (6)."""
        U, s, V = self._lam_svd
        a = self.A @ self.state.v - self.point.slip
        return np.linalg.solve(self.W.T, V @ ((U.T @ a) / s))

    @cached_property
    def Gamma(self) -> np.ndarray:
        """Γ = W⁻¹(Wdot - (dv/dq)ᵀ), not skew; machines without quaternions (6)."""
        if self.system.layout.turns:
            raise StateError(f"{self.system.name}: Gamma needs velocities that are rates; take Gamma_s")
        slopes = inertia_slopes(self.system, self.state)
        gradient = np.stack([factor_rate(self.W, dM, self.factor).T @ self.state.v for dM in slopes], axis=1)
        return np.linalg.solve(self.W, self.Wdot - gradient.T)

    @cached_property
    def Gamma_s(self) -> np.ndarray:
        """The skew matrix that does the same to the quasi-velocities, W⁻¹CW⁻ᵀ - Wdotᵀ W⁻ᵀ (6)."""
        inner = np.linalg.solve(self.W, np.linalg.solve(self.W, self.C.T).T)
        return inner - np.linalg.solve(self.W, self.Wdot).T

    @cached_property
    def Gr(self) -> np.ndarray:
        """Γr = Zᵀ(M Zdot + C Z), skew: v̇r + Γr vr = Zᵀ(f - G) (6)."""
        return self.Z.T @ self._along

    @cached_property
    def Go(self) -> np.ndarray:
        """Γo = V1wᵀ W⁻¹(M Zdot + C Z): Γo vr - Lrᵀ λ = V1wᵀ W⁻¹(f - G) (6)."""
        return self.V1w.T @ np.linalg.solve(self.W, self._along)

    @property
    def _along(self) -> np.ndarray:
        return self.M @ self.Zdot + self.C @ self.Z

    @property
    def _lam_svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return cut_svd(self.Lam, self.point.rank)


def complement(V: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what is orthogonal to the orthonormal columns of V."""
    return np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]


def matrices(
    system: System, state: State, u: Any, f: Any, active: Mapping[str, bool] | None, mu: Any = "auto",
    gamma: Any = "auto", factor: str = "cholesky", reference: Any = None,
) -> Matrices:  # fmt: skip
    """Matrices at one state; see `System.matrices`."""
    refuse(system, active, "System.matrices")
    point = point_at(system, state, u, f, active)
    if not is_automatic_or_positive(mu):
        raise StateError(f"mu={mu!r}: expected 'auto' or a positive number")
    if not is_automatic_or_nonzero(gamma):
        raise StateError(f"gamma={gamma!r}: expected 'auto' or a number other than zero")
    if factor not in FACTORS:
        raise StateError(f"factor={factor!r}: expected one of {', '.join(FACTORS)}")
    if reference is not None:
        reference, shape = np.asarray(reference, dtype=float), (point.n, point.n - point.rank)
        if reference.shape != shape:
            raise StateError(
                f"reference: expected a basis of the {shape[1]} free directions as columns, shape {shape} (V2w of "
                f"another state), got shape {reference.shape}"
            )
    mean = mean_inertia(point)
    return Matrices(
        system, state, point, system.terms(state).B, mean if isinstance(mu, str) else float(mu),
        mean if isinstance(gamma, str) else float(gamma), factor, reference,
    )  # fmt: skip
