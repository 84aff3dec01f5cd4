"""Small motions about a motion: exact derivatives of the constrained machine in coordinates of its own manifold.

Positions near q₀ are q = q₀ ⊞ δ. With M-orthonormal bases Z_h of the directions that the holonomic constraints allow
and Z of those that all constraints allow (sheet 6, 7), both fixed at q₀,

    θ = Z_hᵀ M₀ δ,   ω = Zᵀ M₀ v,   δ = Z_h θ,   v - v₀ = Z ω + Y θ    (to first order),

Y θ being the least velocity that makes up for the change of A(q): A₀ Y = -∂(A v₀ - a)/∂q Z_h. The acceleration is
differentiated through its own equations, M v̇ + h - Aᵀλ - B u = 0 and A v̇ - γ = 0 (sheet 4), so nothing is
approximated.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.rubbing import refuse
from sarrus.dynamics.state import State
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


@dataclass(frozen=True, eq=False)
class Mode:
    """One way of small motion, ∝ exp(eigenvalue t).

    Attributes:
        eigenvalue: s, in 1/s.
        shape: motion of the velocity coordinates, the largest part (relative to its usual size) being 1; complex.
        names: of these coordinates.
    """

    eigenvalue: complex
    shape: np.ndarray
    names: tuple[str, ...]

    @property
    def frequency(self) -> float:
        """|s| / 2π [Hz]."""
        return abs(self.eigenvalue) / (2 * np.pi)

    @property
    def damping(self) -> float:
        """Part of critical damping, -Re s / |s|; negative if it grows."""
        size = abs(self.eigenvalue)
        return float(-self.eigenvalue.real / size) + 0.0 if size > 0 else 0.0  # no -0

    def __str__(self) -> str:
        """Eigenvalue, frequency, damping and shape."""
        parts = [f"{n} {x.real:+.3g}{f'{x.imag:+.3g}j' if abs(x.imag) > 1e-9 else ''}"
                 for n, x in zip(self.names, self.shape, strict=True) if abs(x) > 1e-9]  # fmt: skip
        text = f"{self.frequency:.6g} Hz, damping {self.damping:.3g} (s = {self.eigenvalue:.6g})"
        return f"{text}: {', '.join(parts)}"


@dataclass(frozen=True, eq=False)
class Linear:
    """ẋ = A x + B (u - u₀) for x = (θ, ω), the small motion on the manifold.

    Attributes:
        system: the machine.
        state: where.
        u: inputs there.
        A: shape (states, states).
        B: shape (states, nu).
        drift: ẋ at x = 0: not zero if the state is no equilibrium.
        Zq: δ = Zq θ.
        Zv: v - v₀ = Zv ω + Y θ.
        Y: see there.
        Tq: θ = Tq δ.
        Tv: ω = Tv (v - v₀).
    """

    system: System
    state: State
    u: np.ndarray
    A: np.ndarray
    B: np.ndarray
    drift: np.ndarray
    Zq: np.ndarray
    Zv: np.ndarray
    Y: np.ndarray
    Tq: np.ndarray
    Tv: np.ndarray

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.A)

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of A [1/s], slowest first."""
        values = np.linalg.eigvals(self.A)
        return values[np.lexsort((values.imag, np.round(np.abs(values), 12)))]

    def outputs(self) -> np.ndarray:
        """The matrix C with (δ, v - v₀) = C x."""
        nv, k = self.system.layout.nv, self.Zq.shape[1]
        C = np.zeros((2 * nv, self.size))
        C[:nv, :k], C[nv:, :k], C[nv:, k:] = self.Zq, self.Y, self.Zv
        return C

    def modes(self) -> list[Mode]:
        """Eigenmodes, slowest first; of a pair of complex ones that with the positive frequency."""
        values, vectors = np.linalg.eig(self.A)
        scales = np.array(self.system.layout.scales)
        out = []
        for s, x in zip(values, vectors.T, strict=True):
            if s.imag < -1e-12 * max(1.0, abs(s)):
                continue
            shape = self.Zq @ x[: self.Zq.shape[1]]
            if np.abs(shape / scales).max(initial=0.0) < 1e-12 * np.abs(x).max():
                shape = self.Zv @ x[self.Zq.shape[1] :]
            largest = int(np.argmax(np.abs(shape / scales)))
            out.append(Mode(complex(s), shape / shape[largest], self.system.layout.v_names))
        return sorted(out, key=lambda mode: (round(abs(mode.eigenvalue), 12), mode.eigenvalue.real))


def linearise(system: System, state: State, u: Any = None, active: Mapping[str, bool] | None = None) -> Linear:
    """The small motions about a state; see `System.linearise`."""
    layout = system.layout
    if state.count is not None:
        raise StateError("linearise: give one state (state.row(i) picks one from an array of states)")
    refuse(system, active, "System.linearise")
    solution = system.solve(state, u, None, active)
    inputs = np.zeros(layout.nu) if u is None else np.array(u, dtype=float)
    flags = system.active_rows(active)
    x = system.terms(state)
    L, S = scaled_rows(system, x.M, x.A, flags)
    holonomic = np.array([row.holonomic for row in layout.rows], dtype=float)
    Z, Zh = _free(L, S, system.tolerance), _free(L, S * holonomic[:, None], system.tolerance)
    values = _derivatives(system.functions.texts["terms"], layout.nq, layout.nv, layout.nu, layout.m, len(system.p))
    lam = solution.lam * flags
    R1q, R1v, R2q, R2v, D = (
        np.array(part) for part in values(state.t, state.q, state.v, inputs, solution.vdot, lam, system.p)
    )
    R2q, R2v, D = (part * flags[:, None] for part in (R2q, R2v, D))
    across = _across(L, S, system, flags)
    Y = -across @ (D @ Zh)
    turned = _half_turn(layout, state.v)
    into_v, into_q = Z.T @ x.M, Zh.T @ x.M
    by_q = Z @ (Z.T @ -R1q) - across @ R2q
    by_v = Z @ (Z.T @ -R1v) - across @ R2v
    # the second derivative of θ along the motion also turns with δ, but ω = Zᵀ M₀ v is taken from v itself
    A = np.block([
        [into_q @ (turned @ Zh + Y), into_q @ Z],
        [into_v @ (by_q @ Zh + by_v @ Y), into_v @ by_v @ Z],
    ])  # fmt: skip
    B = np.vstack([np.zeros((Zh.shape[1], layout.nu)), into_v @ Z @ (Z.T @ x.B)])
    drift = np.concatenate([into_q @ state.v, into_v @ solution.vdot])
    return Linear(system, state, inputs, A, B, drift, Zh, Z, Y, into_q, into_v)


def _free(L: np.ndarray, S: np.ndarray, tolerance: float) -> np.ndarray:
    """M-orthonormal basis of the velocities that the rows allow."""
    _, sigma, Vt = np.linalg.svd(S) if S.size else (None, np.zeros(0), np.eye(len(L)))
    return np.linalg.solve(L.T, Vt[int(np.sum(sigma > tolerance)) :].T)


def _across(L: np.ndarray, S: np.ndarray, system: System, flags: np.ndarray) -> np.ndarray:
    """The least v in the mass metric with A v = b, as a matrix: M⁻¹Aᵀ(A M⁻¹Aᵀ)⁺."""
    if not S.size:
        return np.zeros((len(L), len(S)))
    U, sigma, Vt = np.linalg.svd(S, full_matrices=False)
    r = int(np.sum(sigma > system.tolerance))
    scale = np.zeros(len(S))
    scale[list(system.kept)] = flags[list(system.kept)] / system.norms
    return np.linalg.solve(L.T, Vt[:r].T @ (U[:, :r] / sigma[:r]).T) * scale


def _half_turn(layout: Any, v: np.ndarray) -> np.ndarray:
    """∂δ̇/∂δ at δ = 0: δ̇ = v + δ ⨯ v / 2 for a turn."""
    out = np.zeros((layout.nv, layout.nv))
    for turn in layout.turns:
        x, y, z = v[turn.v : turn.v + 3]
        out[turn.v : turn.v + 3, turn.v : turn.v + 3] = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]]) / 2
    return out


@functools.lru_cache(maxsize=8)
def _derivatives(text: str, nq: int, nv: int, nu: int, m: int, count: int) -> Any:
    """(t, q, v, u, v̇, λ, p) -> how both equations, and A v - a, change with position and velocity."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX, Function

    sizes = {"t": 1, "q": nq, "v": nv, "u": nu, "a": nv, "lam": m, "p": count}
    s = {name: SX.sym(name, size) for name, size in sizes.items()}
    M, h, A, gamma, _, at, B, N = ca.Function.deserialize(text).call([s["t"], s["q"], s["v"], s["p"]])
    M, A, B, N = (ca.sparsify(x) for x in (M, A, B, N))
    motion = M @ s["a"] + h - A.T @ s["lam"] - (B @ s["u"] if nu else 0)
    pull, slip = A @ s["a"] - gamma, A @ s["v"] - at
    outputs = [
        part
        for equation in (motion, pull)
        for part in (ca.jacobian(equation, s["q"]) @ N, ca.jacobian(equation, s["v"]))
    ]
    outputs.append(ca.jacobian(slip, s["q"]) @ N)
    return Function("derivatives", list(s.values()), [ca.densify(x) for x in ca.cse(outputs)])
