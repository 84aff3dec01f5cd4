"""The identities of the equation sheet (theory/equations.md), evaluated in plain NumPy from `system.terms`.

Machines with full rank and with redundant rows, planar and in space, with quaternions; states found by hypothesis.
Every identity is exact: tolerances are k eps cond with cond(M) and cond(A) below 1e4 on these machines, k eps cond of
the order of 1e-9 at the very worst; 1e-9 is used relative to the largest term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some

from .support import closure_case, force_size, largest, random_case, velocity_size

TOLERANCE = 1e-9
STEADY = ("parallelogram", "sarrus", "fourbar_joint", "planar_point", "rolling", "knife_edge", "point", "random-9")
MOVING = ("prescribe", "constrain", "constrain_velocity")
EVERY = pytest.mark.parametrize("name", [*STEADY, *MOVING])
SETTINGS = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEED = some.integers(0, 10**6)


@cache
def machine(name: str):
    return random_case(int(name.split("-")[1])) if name.startswith("random-") else closure_case(name, 0)


def consistent_state(case, system, rng):
    """Some way along the constraint manifold, by Newton steps; the given configuration where they fail."""
    holonomic = np.array([row.holonomic for row in system.layout.rows])
    none = np.zeros(case.tree.nv)

    def closest(q, w):
        x = system.terms(system.state(q, none, case.t))
        return w - np.linalg.pinv(x.A, rcond=1e-7) @ (x.A @ w - x.a)

    q = case.tree.integrate(case.q, closest(case.q, rng.normal(size=case.tree.nv)), 0.1)
    for _ in range(8):
        x = system.terms(system.state(q, none, case.t))
        q = case.tree.integrate(q, -np.linalg.pinv(x.A[holonomic], rcond=1e-6) @ x.phi[holonomic])
    q = q if largest(system.terms(system.state(q, none, case.t)).phi) < 1e-13 else case.q
    return system.state(q, closest(q, rng.normal(size=case.tree.nv)), case.t)


@dataclass
class Sheet:
    """Everything the sheet names, at one state with v in the constraint, from the terms alone."""

    name: str
    seed: int

    def __post_init__(self):
        self.case, self.system = machine(self.name)
        self.rng = np.random.default_rng(self.seed)
        self.state = consistent_state(self.case, self.system, self.rng)
        self.v = self.state.v
        self.f = 10.0 ** self.rng.uniform(-1, 2) * self.rng.normal(size=self.case.tree.nv)
        x = self.x = self.system.terms(self.state)
        self.M, self.h, self.A, self.gamma, self.n = x.M, x.h, x.A, x.gamma, len(x.h)
        scale = np.linalg.norm(self.A, axis=1)
        self.D = 1.0 / np.maximum(scale, 1e-3 * scale.max())  # rows of about unit length: the same solutions
        U, s, Vt = np.linalg.svd(self.D[:, None] * self.A)
        assume(s[self.case.rank - 1] > 1e-3 * s[0] and np.all(s[self.case.rank :] < 1e-9 * s[0]))
        self.r = self.case.rank
        self.V1, self.V2 = Vt[: self.r].T, Vt[self.r :].T
        self.pinv = (self.V1 / s[: self.r]) @ U[:, : self.r].T * self.D  # a {1,2,3,4}-inverse for scaled rows
        self.P = self.V2 @ self.V2.T
        self.Q = np.eye(self.n) - self.P
        self.an = self.pinv @ self.gamma  # normal acceleration, d/dt Φ_t included
        Mi = np.linalg.inv(self.M)
        Y = self.V1.T @ Mi @ self.V1
        self.Theta = np.eye(self.n) - Mi @ self.V1 @ np.linalg.inv(Y) @ self.V1.T
        found = self.system.solve(self.state, f=self.f)
        self.vdot, self.lam, self.Mi = found.vdot, found.lam, Mi
        self.fc = self.A.T @ self.lam
        self.S = np.eye(self.n) - self.Theta.T

    def same(self, got, expected, *sizes):
        """Equal to 1e-9 of the largest term that went in."""
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * largest(got, expected, *sizes))


def every_state(test):
    return EVERY(SETTINGS(given(seed=SEED)(test)))


# --- projectors --------------------------------------------------------------------------------------------
@every_state
def test_projectors(name, seed):
    """2.1: P = I - A⁺A is the orthogonal projector on the null space. 1, 2.7: Θ the M-orthogonal one."""
    s = Sheet(name, seed)
    P, T, one = s.system.projector(s.state, "plain"), s.system.projector(s.state), np.eye(s.n)
    s.same(P, s.P, one)
    s.same(P, one - np.linalg.pinv(s.D[:, None] * s.A, rcond=1e-7) @ (s.D[:, None] * s.A), one)
    s.same(P @ P, P)
    s.same(P, P.T)
    s.same(s.A @ P, 0 * s.A, s.A)
    assert round(np.trace(P)) == s.n - s.r == round(np.trace(T))
    s.same(T, s.Theta)
    s.same(T @ T, T)
    s.same(s.A @ T, 0 * s.A, s.A, T)
    s.same(s.M @ T, T.T @ s.M)
    s.same(T.T @ s.M @ (one - T), 0 * T, s.M @ T)  # M-orthogonal: free and constrained motions share no energy
    s.same(T @ P, P)
    s.same(P @ T, T)


@every_state
def test_projections_of_velocities(name, seed):
    """2.7: Θ never raises the kinetic energy. 2.9: what it takes away is ½ (A v)ᵀ (A M⁻¹ Aᵀ)⁺ (A v)."""
    s = Sheet(name, seed)
    w = s.rng.normal(size=s.n)
    T = s.system.projector(s.state)
    before, after = 0.5 * w @ s.M @ w, 0.5 * (T @ w) @ s.M @ (T @ w)
    assert after <= before * (1 + 1e-12)
    rows = s.D[:, None] * s.A
    loss = 0.5 * (rows @ w) @ np.linalg.pinv(rows @ s.Mi @ rows.T, rcond=1e-10) @ (rows @ w)
    s.same(before - after, loss, before)
    s.same(s.P @ (s.M @ (T @ w - w)), 0 * w, s.M @ w)  # the impulse M (v⁺ - v⁻) is in R(Aᵀ)


# --- accelerations -----------------------------------------------------------------------------------------
@every_state
def test_normal_acceleration(name, seed):
    """2.3: Q v = A⁺ a (nothing for steady rows), Q v̇ = an = A⁺ γ, and A v̇ = γ."""
    s = Sheet(name, seed)
    s.same(s.Q @ s.v, s.pinv @ s.x.a, s.v)
    s.same(s.Q @ s.vdot, s.an, s.vdot)
    s.same(s.D * (s.A @ s.vdot), s.D * s.gamma, s.vdot)


@every_state
def test_mass_matrix_formulations(name, seed):
    """2.4 items 1 to 5: each constraint mass matrix gives the same acceleration."""
    s = Sheet(name, seed)
    M, P, Q, an = s.M, s.P, s.Q, s.an
    b = P @ (s.f - s.h)
    weight = float(np.sqrt(np.linalg.eigvalsh(s.V2.T @ M @ s.V2)[[0, -1]].prod()))
    s.same(P @ M @ s.vdot, b, M @ s.vdot, s.f - s.h)
    forms = {
        "Mc": (M + P @ M - M @ P, b + M @ an),
        "Mp": (P @ M @ P + Q @ M @ Q, b + (Q - P) @ M @ an),
        "Mpp": (P @ M + weight * Q, b + weight * an),
        "Mb": (P @ M @ P + weight * Q, b - P @ M @ an + weight * an),
    }
    for matrix, right in forms.values():
        s.same(np.linalg.solve(matrix, right), s.vdot)
    for key in ("Mc", "Mp", "Mb"):  # 3: the kinetic energy of velocities in N(A)
        free = P @ s.v
        s.same(free @ forms[key][0] @ free, free @ M @ free)
    assert np.linalg.eigvalsh(forms["Mb"][0])[0] > 0
    s.same(np.linalg.slogdet(forms["Mc"][0])[1], np.linalg.slogdet(forms["Mp"][0])[1], 1.0)


@every_state
def test_projected_formulations(name, seed):
    """2.4 items 6 to 10: constrained mobility, oblique projector, null-space bases, multipliers."""
    s = Sheet(name, seed)
    M, A, Mi, an, force = s.M, s.D[:, None] * s.A, s.Mi, s.an, s.f - s.h
    gamma, free = s.D * s.gamma, force - M @ an
    mobility = np.linalg.pinv(s.P @ M @ s.P, rcond=1e-10)
    s.same(mobility @ free + an, s.vdot)
    inverse = np.linalg.pinv(A @ Mi @ A.T, rcond=1e-10)
    s.same(s.Theta @ (Mi @ force) + Mi @ A.T @ inverse @ gamma, s.vdot, Mi @ force)
    s.same(s.V2 @ np.linalg.solve(s.V2.T @ M @ s.V2, s.V2.T @ free) + an, s.vdot)
    W = np.linalg.cholesky(M)  # Z = W⁻ᵀ V2 of A W⁻ᵀ
    lifted = np.linalg.svd(np.linalg.solve(W, A.T).T)[2][s.r :].T
    Z = np.linalg.solve(W.T, lifted)
    s.same(Z.T @ M @ Z, np.eye(s.n - s.r))
    s.same(Z @ (Z.T @ free) + an, s.vdot)
    lam = inverse @ (gamma - A @ Mi @ force)
    s.same(Mi @ (force + A.T @ lam), s.vdot, Mi @ force)


# --- constraint forces -------------------------------------------------------------------------------------
@every_state
def test_constraint_force(name, seed):
    """4: fc = Aᵀλ in R(Aᵀ), fc = -S (f - h - M an), and its virtual power on every free motion is nothing."""
    s = Sheet(name, seed)
    fc = s.system.constraint_forces(s.state, f=s.f).generalised
    s.same(fc, s.fc)
    s.same(s.P @ fc, 0 * fc, fc)
    s.same(fc, -s.S @ (s.f - s.h - s.M @ s.an), s.f - s.h, s.M @ s.an)
    s.same(s.M @ s.vdot + s.h, s.f + fc, fc, s.f, s.h)
    rows = s.D[:, None] * s.A
    lam = -np.linalg.pinv(rows @ s.Mi @ rows.T, rcond=1e-10) @ (rows @ s.Mi @ (s.f - s.h) - s.D * s.gamma)
    s.same(rows.T @ lam, fc, s.f - s.h)
    L = np.linalg.cholesky(s.M)
    for w in s.rng.normal(size=(3, s.n)):
        assert abs(fc @ (s.Theta @ w)) <= TOLERANCE * force_size(L, fc) * velocity_size(L, w)
    work = TOLERANCE * force_size(L, fc) * velocity_size(L, s.v)
    if s.name in STEADY:
        assert abs(fc @ s.v) <= work
    else:
        assert abs(fc @ s.v - s.lam @ s.x.a) <= work + TOLERANCE * (np.abs(s.lam) @ np.abs(s.x.a))


@every_state
def test_multipliers_are_the_smallest_in_the_stated_metric(name, seed):
    """λ + n for any dependence n of the rows (Aᵀ n = 0) is larger, Σ (λ d)² with d the reference norms."""
    s = Sheet(name, seed)
    kept = list(s.system.kept)
    d, lam = s.system.norms, s.lam[kept]
    null = np.linalg.svd(s.A[kept].T / d)[2][s.r :]  # of D⁻¹A: d λ = μ, Aᵀ λ = (D⁻¹ A)ᵀ μ
    s.same(null @ (d * lam), np.zeros(len(null)), d * lam)
    for direction in null:
        for step in (-0.1, 0.1):
            other = lam + step * (1 + largest(lam)) * direction / d
            s.same(s.A[kept].T @ other, s.fc, np.abs(s.A[kept].T) @ np.abs(other))
            assert np.sum((d * other) ** 2) > np.sum((d * lam) ** 2)
