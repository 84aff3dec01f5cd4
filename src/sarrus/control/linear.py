"""Linear control on the manifold: what inputs can reach, what outputs show, and the linear quadratic regulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from sarrus.control.builder import Builder
from sarrus.control.controller import Controller
from sarrus.control.tasks import traced
from sarrus.control.terms import gain
from sarrus.dynamics.linear import Linear, Mode
from sarrus.dynamics.manifold import plain_map
from sarrus.errors import StateError
from sarrus.symbolic.algebra import SX

FAINT = 1e-9  # a mode that inputs or outputs touch less than this, relative to the matrices, does not count as touched


def uncontrollable(linear: Linear) -> list[Mode]:
    """The eigenmodes that no input has a part in (Popov, Belevitch and Hautus: rank [s - A, B] < states).

    Of several modes of one eigenvalue, a combination may be out of reach: it is told as the one at right angles, in the
    mass metric, to those that are not.

    Args:
        linear: from `system.linearise`.
    """
    A, B = _checked(linear).A, linear.B
    out, left = [], _unreached(A, B)
    for s in _distinct(linear):
        if _null(np.hstack([A - s * np.eye(linear.size), _alike(A, s, B)]).conj().T).size:
            V = _null(A - s * np.eye(linear.size))
            U, sigma, _ = np.linalg.svd(V.conj().T @ left)
            out += [linear.mode(s, x) for x in (V @ U[:, : int(np.sum(sigma > 1e-6))]).T]
    return out


def unobservable(linear: Linear, outputs: Sequence[str]) -> list[Mode]:
    """The eigenmodes that some measured coordinates do not show.

    Args:
        linear: from `system.linearise`.
        outputs: measured coordinates by name: "A" for its position, "A.v" for its velocity.
    """
    A, C = _checked(linear).A, output_rows(linear, [outputs] if isinstance(outputs, str) else outputs)
    out = []
    for s in _distinct(linear):
        hidden = _null(np.vstack([A - s * np.eye(linear.size), _alike(A, s, C)]))
        out += [linear.mode(s, x) for x in hidden.T]
    return out


def _checked(linear: Any) -> Linear:
    if not isinstance(linear, Linear):
        raise StateError(f"expected what system.linearise(state, u) returns, got {type(linear).__name__}")
    return linear


def _distinct(linear: Linear) -> list[complex]:
    """Eigenvalues, slowest first, of a pair that with the positive frequency; those that differ by rounding once."""
    out: list[complex] = []
    values = [mode.eigenvalue for mode in linear.modes()]
    for s in values:
        if all(abs(s - other) > 1e-7 * max(map(abs, values)) for other in out):
            out.append(s)
    return out


def _alike(A: np.ndarray, s: complex, other: np.ndarray) -> np.ndarray:
    """Inputs or outputs of the size of s - A, so that units do not matter."""
    return other * (np.linalg.norm(A - s * np.eye(len(A))) / max(np.linalg.norm(other), 1e-300))


def _unreached(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Basis of what is at right angles to all that inputs ever lead to: the largest part of Bᵀx = 0 that Aᵀ keeps."""
    N = _null(B.T)
    while N.size:
        leaves = A.T @ N - N @ (N.T @ A.T @ N)
        kept = _null(leaves, float(np.linalg.norm(A)))
        if kept.shape[1] == N.shape[1]:
            break
        N = N @ kept
    return N


def _null(K: np.ndarray, strongest: float | None = None) -> np.ndarray:
    """An orthonormal basis of K x = 0."""
    _, sigma, Vt = np.linalg.svd(K)
    size = float(sigma.max(initial=0.0)) if strongest is None else strongest
    return Vt[int(np.sum(sigma > FAINT * size)) :].conj().T


def output_rows(linear: Linear, names: Sequence[str]) -> np.ndarray:
    """Rows of C for coordinates by name."""
    layout, C = linear.system.layout, linear.outputs()
    rows = []
    for name in names:
        rate = name.endswith(".v")
        where = layout.find(name.removesuffix(".v"), "v")
        rows.append(C[where.start + rate * layout.nv : where.stop + rate * layout.nv])
    return np.vstack(rows) if rows else np.zeros((0, linear.size))


class LinearQuadratic(Controller):
    r"""Linear quadratic regulator about an equilibrium, on the directions that the constraints leave free.

    $u = u_0 - K x$, $x = (θ, ω)$ the reduced state of `Linear`, with K from the Riccati equation of the smallest
    $\int (\delta^T Q_q \delta + v^T Q_v v + u^T R u)\,dt$. Weights are given for coordinates, which need not be
    independent.

    Stability: of the linear machine always, if every unstable mode is controllable and shows in the weights (both are
    checked); of the machine itself near the equilibrium.

    Attributes:
        gain: K.
        eigenvalues: of the closed loop, A - B K [1/s].
    """

    def __init__(self, linear: Linear, states: Mapping[str, float] | None = None, inputs: Any = 1.0):
        """Solve the Riccati equation and compile the law.

        Args:
            linear: from `system.linearise`, at an equilibrium.
            states: weights by name, "A" for a position, "A.v" for a velocity; 1 for all positions and 0 for velocities
                if not given.
            inputs: weight of each input: a number, or by name.
        """
        system, layout = _checked(linear).system, linear.system.layout
        if not layout.nu or not linear.size:
            lack = "inputs: add motors (mech.motor)" if linear.size else "free motion that could be controlled"
            raise StateError(f"LinearQuadratic: {system.name} has no {lack}")
        if np.linalg.norm(linear.drift) > 1e-6 * (1 + np.linalg.norm(linear.A)):
            raise StateError(
                "LinearQuadratic: the state is no equilibrium (its acceleration or velocity is not zero); find the "
                "inputs that hold it with sr.gravity_compensation and linearise with these"
            )
        bad = [mode for mode in uncontrollable(linear) if mode.eigenvalue.real > -1e-9]
        if bad:
            raise StateError(f"LinearQuadratic: no input has a part in this mode, which does not decay: {bad[0]}")
        weights = dict.fromkeys(layout.v_names, 1.0) if states is None else dict(states)
        C, size = [], []
        for name, w in weights.items():
            C.append(output_rows(linear, [name]))
            size += len(C[-1]) * list(gain(f"LinearQuadratic: weight of {name!r}", w, 1))
        scale = _input_scales(linear, inputs)
        self.gain = scale[:, None] * _regulator(
            linear.A, linear.B * scale, np.sqrt(np.array(size))[:, None] * np.vstack([*C, np.zeros((0, linear.size))])
        )
        self.eigenvalues = np.linalg.eigvals(linear.A - linear.B @ self.gain)
        self.linear = linear
        builder = Builder(system)
        s = builder.machine.s
        into = self.gain[:, : linear.Tq.shape[0]] @ linear.Tq
        by_v = self.gain[:, linear.Tq.shape[0] :] @ linear.Tv
        Kq = ca.reshape(builder.number("KQ", into.ravel(order="F")), *into.shape)
        Kv = ca.reshape(builder.number("KV", by_v.ravel(order="F")), *by_v.shape)
        q0, v0 = builder.number("Q0", linear.state.q), builder.number("V0", linear.state.v)
        u0 = builder.number("U0", linear.u)
        u = u0 - Kq @ _difference(system, q0, s["q"]) - Kv @ (s["v"] - v0)
        super().__init__(builder, "", "", plain=u)


def _input_scales(linear: Linear, inputs: Any) -> np.ndarray:
    """1/√weight of each input, from one number for all or by name."""
    layout = linear.system.layout
    R = np.zeros(layout.nu)
    given = {**dict.fromkeys(layout.u_names, 1.0), **inputs} if isinstance(inputs, Mapping) else None
    for name, w in (given or dict.fromkeys(layout.u_names, inputs)).items():
        R[layout.find(name, "u")] = gain(f"LinearQuadratic: weight of the input {name!r}", w, 1, positive=True)
    return 1 / np.sqrt(R)


def _regulator(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The gain K = BᵀP of the least ∫ |C x|² + |u|²."""
    from scipy.linalg import solve_continuous_are

    # both quadratic terms of size |B| |C|, whatever the units: P = (|C| / |B|) of a solution of that size
    b, c = np.linalg.norm(B, 2), np.linalg.norm(C, 2) if len(C) else 0.0
    ratio = c / b if c > 0 else 1 / b**2
    try:
        P = solve_continuous_are(A, B * np.sqrt(ratio), C.T @ C / ratio, np.eye(B.shape[1]))
    except np.linalg.LinAlgError as error:
        raise StateError(
            f"LinearQuadratic: the Riccati equation has no stabilising solution ({error}); give weights to all "
            "modes that do not decay"
        ) from error
    return ratio * B.T @ P


def _difference(system: Any, start: Any, end: Any) -> Any:
    """δ with end = start ⊞ δ; for quaternions twice the vector part, which agrees to second order."""
    layout = system.layout
    out = SX.zeros(layout.nv, 1)
    plain_q, plain_v = plain_map(layout)
    for i, k in zip(plain_q.tolist(), plain_v.tolist(), strict=True):
        out[k] = end[i] - start[i]
    for turn in layout.turns:
        a, b = start[turn.q : turn.q + 4], end[turn.q : turn.q + 4]
        scalar = ca.dot(a, b)
        vector = a[0] * b[1:4] - b[0] * a[1:4] - ca.cross(a[1:4], b[1:4])
        out[turn.v : turn.v + 3] = 2 * ca.if_else(scalar < 0, -1, 1) * vector
    return out


class Law(Controller):
    """A law of your own, compiled: any expression of the time and the motion.

    Functions given to `simulate` are compiled where they can be; this makes the same code available alone, in a `Loop`
    without calls to Python, and for `export`.

    Stability: that of the law.
    """

    def __init__(self, system: Any, function: Any):
        """Trace and compile the function.

        Args:
            system: the machine.
            function: of (t), (t, x) or (t, q, v) that returns one expression for each input (see `Moment`).
        """
        builder = Builder(system)
        u = traced(function, builder.machine.moment, "Law")
        if u.numel() != system.layout.nu:
            raise StateError(f"Law: expected {system.layout.nu} input(s) from the function, got {u.numel()}")
        super().__init__(builder, "", "", plain=u)
