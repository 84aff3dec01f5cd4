"""Torque resolution on a hundred random machines given by their matrices, against quadratic programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from qpsolvers import solve_qp
from scipy.optimize import lsq_linear

import sarrus as sr
from sarrus.dynamics.solution import TermValues
from sarrus.model.layout import Layout, Row


@dataclass
class Matrices:
    """A machine that is nothing but its matrices at one state: the part of `System` that torque resolution asks for."""

    x: TermValues
    layout: Layout
    norms: np.ndarray
    name: str = "random"
    tolerance: float = 1e-6

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(range(self.layout.m))

    def terms(self, state: sr.State) -> TermValues:
        return self.x

    def active_rows(self, active) -> np.ndarray:
        return np.ones(self.layout.m)

    def _own(self, state: sr.State) -> None:
        assert state.layout is self.layout


def random_machine(rng: np.random.Generator) -> Matrices:
    """Random M, h, B, and rows of random rank, some of them redundant; sometimes with too few inputs."""
    n = int(rng.integers(3, 11))
    r = int(rng.integers(1, n))
    m = r + int(rng.integers(0, 3))
    nu = int(rng.integers(1, n + 1))
    root = rng.normal(size=(n, n))
    M = root @ root.T + 0.3 * np.eye(n)
    A = rng.normal(size=(m, r)) @ rng.normal(size=(r, n))
    B = rng.normal(size=(n, nu))
    if rng.random() < 0.5:  # motors on some coordinates
        B = np.eye(n)[:, rng.permutation(n)[:nu]]
    gamma = A @ rng.normal(size=n)
    none = np.zeros(0)
    layout = Layout(
        "random", tuple(f"q{k}" for k in range(n)), tuple(f"q{k}" for k in range(n)), tuple(f"u{k}" for k in range(nu)),
        tuple(Row(f"c{k}", "", "m", True) for k in range(m)), tuple(f"c{k}" for k in range(m)), (), {},
        scales=(1.0,) * n, angles=(False,) * n,
    )  # fmt: skip
    norms = np.sqrt(np.einsum("ij,jk,ik->i", A, np.linalg.inv(M), A))
    return Matrices(TermValues(M, rng.normal(size=n) * 5, A, gamma, none, none, B, np.eye(n)), layout, norms)


def reached(machine: Matrices) -> tuple[np.ndarray, np.ndarray, int]:
    """V2 (a plain orthonormal basis of the free directions), V2' B and its rank (sheet 5)."""
    _, s, Vt = np.linalg.svd(machine.x.A)
    V2 = Vt[int(np.sum(s > 1e-9 * s[0])) :]
    K = V2 @ machine.x.B
    return V2, K, int(np.linalg.matrix_rank(K, tol=1e-9 * np.linalg.norm(machine.x.B)))


def allowed(machine: Matrices, rng: np.random.Generator) -> np.ndarray:
    V2, _, _ = reached(machine)
    return np.linalg.pinv(machine.x.A, rcond=1e-9) @ machine.x.gamma + V2.T @ rng.normal(size=len(V2))


@pytest.mark.parametrize("index", range(100))
def test_least_torques_limits_and_verdicts(index, rng):
    machine = random_machine(rng)
    state = sr.State(machine.layout, np.zeros(machine.layout.nq))
    x, nu = machine.x, machine.layout.nu
    V2, K, rank = reached(machine)
    a = allowed(machine, rng)
    w = rng.uniform(0.3, 3, nu)
    found = sr.inverse_dynamics(machine, state, a, weights=w)
    load = V2 @ (x.M @ a + x.h)
    size = 1 + np.abs(found.u).max()
    # the verdicts
    assert found.unique == (rank == nu)
    assert len(found.unreachable) == len(V2) - rank
    assert len(found.internal) == nu - rank
    inside = np.linalg.norm(load - K @ np.linalg.lstsq(K, load, rcond=1e-9)[0]) < 1e-8 * np.linalg.norm(load)
    assert found.feasible == inside
    if inside and rank == len(V2):
        best = solve_qp(np.diag(w), np.zeros(nu), A=K, b=load, solver="quadprog")
        assert best is not None
        np.testing.assert_allclose(found.u, best, atol=1e-9 * size)
    if not inside:  # nearest in the mass metric: a program in (v̇, u), weighted by M, with u all but free
        Z = V2.T
        mobility = np.linalg.inv(Z.T @ x.M @ Z)
        scale = np.linalg.cholesky(mobility).T  # |scale (K u - load)| is the residual
        best = np.linalg.lstsq(scale @ K, scale @ load, rcond=1e-10)[0]
        residual = np.linalg.norm(scale @ (K @ best - load))
        assert found.residual == pytest.approx(residual, rel=1e-8)
        for pattern in found.unreachable.basis:
            np.testing.assert_allclose(x.A @ pattern, 0, atol=1e-8)
            np.testing.assert_allclose(x.B.T @ pattern, 0, atol=1e-8)
    # what was promised happens: M v̇ + h = B u + A'λ
    force = x.M @ found.accelerations + x.h - x.B @ found.u - x.A.T @ found.lam
    np.testing.assert_allclose(force, 0, atol=1e-7 * (size + np.abs(found.lam).max()))
    np.testing.assert_allclose(x.A @ found.accelerations, x.gamma, atol=1e-8 * (1 + np.abs(x.gamma).max()))
    _limits(machine, state, a, w, found, K, load)


def _limits(machine, state, a, w, free, K, load):
    """Half the largest torque for all: kept, and the best that can be had."""
    nu = machine.layout.nu
    bound = 0.5 * np.abs(free.u).max()
    cut = sr.inverse_dynamics(machine, state, a, weights=w, limits=bound)
    assert np.abs(cut.u).max() <= bound * (1 + 1e-8)
    if free.feasible and len(K) == np.linalg.matrix_rank(K):
        best = solve_qp(
            np.diag(w), np.zeros(nu), A=K, b=load, lb=np.full(nu, -bound), ub=np.full(nu, bound), solver="quadprog"
        )
        assert cut.feasible == (best is not None)
        if not cut.feasible:
            # nearest in the mass metric: bounded least squares by another method
            x = machine.x
            V2, _, _ = reached(machine)
            scale = np.linalg.cholesky(np.linalg.inv(V2 @ x.M @ V2.T)).T
            near = lsq_linear(scale @ K, scale @ load, (-bound, bound), method="bvls", tol=1e-14)
            assert cut.residual == pytest.approx(np.linalg.norm(near.fun), rel=1e-9)
        if cut.feasible:
            _optimal(cut.u, w, K, load, bound)
        if best is not None:
            np.testing.assert_allclose(cut.u, best, atol=1e-8 * (1 + bound))
        else:
            assert cut.reason == "the limits do not allow it"


def _optimal(u, w, K, load, bound):
    """Karush, Kuhn and Tucker: W u - K'ν is zero at inputs within the limits, and pulls outwards at those on them."""
    size = 1 + np.abs(u).max()
    np.testing.assert_allclose(K @ u, load, atol=1e-9 * (np.abs(K) @ np.abs(u)).max())
    inside = np.abs(u) < bound * (1 - 1e-9)
    slack = w * u - K.T @ _multipliers(K, w * u, inside, np.sign(u))
    np.testing.assert_allclose(slack[inside], 0, atol=1e-7 * size * w.max())
    assert np.all((slack * np.sign(u))[~inside] <= 1e-7 * size * w.max())


def _multipliers(K, gradient, inside, sides):
    """ν with gradient - K'ν zero inside and of the right sign at the limits, by a linear program."""
    from scipy.optimize import linprog

    rows = -(K.T * sides[:, None])[~inside]
    found = linprog(
        np.zeros(len(K) + 1) + np.eye(len(K) + 1)[-1],
        A_ub=np.vstack([
            np.hstack([K.T[inside], -np.ones((inside.sum(), 1))]),
            np.hstack([-K.T[inside], -np.ones((inside.sum(), 1))]),
            np.hstack([rows, -np.ones((len(rows), 1))]),
        ]),
        b_ub=np.concatenate([gradient[inside], -gradient[inside], -(gradient * sides)[~inside]]),
        bounds=[(None, None)] * len(K) + [(0, None)],
        method="highs",
    )  # fmt: skip
    assert found.status == 0
    return found.x[:-1]
