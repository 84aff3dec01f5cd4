"""The control laws once more, written from the sheet with dense NumPy: the oracle of the compiled ones."""

from __future__ import annotations

import numpy as np

import sarrus as sr

pinv = np.linalg.pinv


class Plant:
    """Matrices of a machine at one state, in the sheet's notation."""

    def __init__(self, system: sr.System, state: sr.State):
        x = system.terms(state)
        self.system, self.state, self.v = system, state, state.v
        self.M, self.h, self.A, self.gamma, self.B = x.M, x.h, x.A, x.gamma, x.B
        self.G = system.terms(system.state(state.q, None, state.t)).h
        n = len(self.M)
        self.Ap = pinv(self.A, rcond=1e-9)
        self.Q = self.Ap @ self.A
        self.P = np.eye(n) - self.Q
        self.an = self.Ap @ self.gamma
        self.Mob = pinv(self.P @ self.M @ self.P, rcond=1e-10)
        self.Mi = np.linalg.inv(self.M)
        self.Phibar = self.Mi @ self.A.T @ pinv(self.A @ self.Mi @ self.A.T, rcond=1e-10)
        self.r = round(float(np.trace(self.Q)))

    @property
    def V2(self) -> np.ndarray:
        """Orthonormal basis of N(A)."""
        values, vectors = np.linalg.eigh(self.P)
        return vectors[:, values > 0.5]

    @property
    def Z(self) -> np.ndarray:
        """M-orthonormal basis of N(A)."""
        V2 = self.V2
        return V2 @ np.linalg.inv(np.linalg.cholesky(V2.T @ self.M @ V2)).T


def weighted(K: np.ndarray, b: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Solution of K u = b of least weighted norm."""
    root = np.ones(K.shape[1]) if weights is None else 1 / np.sqrt(weights)
    return root * (pinv(K * root, rcond=1e-9) @ b)


def projected(x: Plant, J, bias, command, weights=None):
    """Sheet 9.1 with sheet 5: f = P h + P M u_p, u = (P B)^+ f."""
    f = tangential(x, J, bias, command)
    return weighted(x.P @ x.B, f, weights)


def acceleration(x: Plant, J, bias, command):
    """u_p = d(Lam thetad)/dt with the wanted thetadd: J qdd + Jd qd = command, Q qdd = an."""
    Lam = x.V2 @ np.linalg.inv(J @ x.V2)
    return Lam @ (command - bias - J @ x.an) + x.an


def tangential(x: Plant, J, bias, command):
    """P h + P M u_p."""
    return x.P @ (x.h + x.M @ acceleration(x, J, bias, command))


def hybrid(x: Plant, J, bias, command, lam):
    """Sheet 9.2, a motor on every coordinate: f = h + kap M an + (I + kap) P M u_p + A' lam, as generalised force.

    With u_p the whole acceleration and kap = Q M Mc^-1, Mc = M + PM - MP.
    """
    kap = x.Q @ x.M @ np.linalg.inv(x.M + x.P @ x.M - x.M @ x.P)
    up = acceleration(x, J, bias, command)
    push = x.P @ x.M @ up
    return x.h + kap @ (push + x.M @ x.an) + push - x.A.T @ lam


def master(x: Plant, J, bias, command, weights=None):
    """Sheet 8, the master formula: K tau = xdd* + J Mob h + J Phibar Ad qd - Jd qd (gamma = -Ad qd)."""
    K = J @ x.Mob @ x.B
    return weighted(K, command + J @ x.Mob @ x.h - J @ x.Phibar @ x.gamma - bias, weights)


def partitioned(x: Plant, J, bias, command, tau0=None):
    """Sheet 8, augmented form: J'ft + A'fC + Nc'tau0 with zero at the passive coordinates (B selects coordinates)."""
    tau0 = np.zeros(len(x.M)) if tau0 is None else tau0
    Ja = np.vstack([J, x.A])
    La = pinv(Ja @ x.Mi @ Ja.T, rcond=1e-11)
    m = len(J)
    drift = np.concatenate([J @ x.Mi @ x.h - bias, x.A @ x.Mi @ x.h + x.gamma])  # gamma = -Ad qd
    ft = (La @ (np.concatenate([command, np.zeros(len(x.A))]) + drift))[:m]
    Nc = np.eye(len(x.M)) - x.Mi @ Ja.T @ La @ Ja
    w = J.T @ ft + Nc.T @ tau0
    passive = np.eye(len(x.M))[np.abs(x.B).sum(axis=1) == 0]
    fC = -pinv(passive @ x.A.T, rcond=1e-10) @ (passive @ w) if len(passive) else np.zeros(len(x.A))
    return pinv(x.B) @ (w + x.A.T @ fC)


def prioritised(x: Plant, tasks, tau0):
    """Strict priorities in the dynamically consistent way: p = p1 + N1 (J2 N1)^+ (...), null motion by tau0."""
    Z = x.Z
    p, N = np.zeros(Z.shape[1]), np.eye(Z.shape[1])
    normal = x.Phibar @ x.gamma
    for J, bias, command in tasks:
        JZ = J @ Z
        JN = JZ @ N
        p = p + pinv(JN, rcond=1e-8) @ (command - bias - J @ normal - JZ @ p)
        N = N - pinv(JN, rcond=1e-8) @ JN
    return p + N @ (Z.T @ (tau0 - x.h))


def christoffel(system: sr.System, state: sr.State, step: float = 1e-6) -> np.ndarray:
    """C(q, qd) by differences of M, for plain coordinates."""
    n = system.layout.nv
    D = np.zeros((n, n, n))
    for k in range(n):
        e = np.zeros(n)
        e[k] = step
        up, down = (system.terms(system.state(state.q + s * e)).M for s in (1, -1))
        D[:, :, k] = (up - down) / (2 * step)
    v = state.v
    return (D @ v + np.einsum("ikj,k->ij", D, v) - np.einsum("jki,k->ij", D, v)) / 2


def regulation(x: Plant, goal, kp, kd, lam=None):
    """Sheet 9.4: Z'f = Z'G - K_d v_r - Z'K_p q~; the reduced wrench, and multipliers' part for full actuation."""
    Z = x.Z
    return x.Z, Z.T @ (x.G - kp * (x.state.q - goal)) - kd * (Z.T @ x.M @ x.v)


def tracking(x: Plant, reference, kp, kd, step: float = 1e-5):
    """Sheet 9.3 without a gauge, from its definition: Z'(M d(w_t)/dt + C w_t) - K_d Z'M (v - w_t) + Z'(h - C v).

    w_t = Theta (v_d - K_p q~); its rate by differences along the motion.
    """
    system, state = x.system, x.state

    def tangent(t, q, near):
        now = Plant(system, system.state(q, x.v, t))
        qd, vd, _ = reference(t)
        w = vd - kp * (q - qd)
        return now.Mob @ now.M @ w

    w = tangent(state.t, state.q, x)
    rate = (tangent(state.t + step, state.q + step * x.v, x) - tangent(state.t - step, state.q - step * x.v, x)) / (
        2 * step
    )
    C = christoffel(system, state)
    Z = x.Z
    return Z, Z.T @ (x.M @ rate + C @ w + x.h - C @ x.v) - kd * (Z.T @ x.M @ (x.v - w))
