"""Put a machine together: positions that satisfy every constraint (see `positions`), then velocities that do.

Velocities: the values given, completed with the least kinetic energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.complaints import cannot_close, cannot_move
from sarrus.dynamics.positions import Request, find_positions, hold, smallest_step
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.state import State

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


def assemble(system: System, request: Request) -> State:
    """A consistent state for the request, or an error that says which closure fails and why."""
    _, held_v = hold(system, np.zeros(system.layout.nv), request.velocities, "v")
    q, best = find_positions(system, request)
    if q is None:
        raise cannot_close(system, request, best)
    v = _velocities(system, q, held_v, request, system.active_rows(request.active))
    return State(system.layout, q, v, request.t)


def _velocities(
    system: System, q: np.ndarray, held: dict[int, float], request: Request, flags: np.ndarray
) -> np.ndarray:
    """Values given, the rest by least kinetic energy: v_f = -M_ff⁻¹M_fx v_x plus the smallest correction."""
    layout = system.layout
    _, A, a, _, M = system.functions("position", request.t, q, system.p)
    A, a = A * flags[:, None], a * flags
    v = np.zeros(layout.nv)
    if not held and not np.any(a):
        return v
    for index, value in held.items():
        v[index] = value
    free = [k for k in range(layout.nv) if k not in held]
    if free:
        Mff = M[np.ix_(free, free)]
        v[free] = np.linalg.solve(Mff, -(M[free] @ v))
        for _ in range(2):  # the second removes rounding
            v[free] += smallest_step(system, A @ v - a, A[:, free], Mff, 0.0, system.tolerance)
    _check(system, request, A, A @ v - a, np.abs(A) @ np.abs(v) + np.abs(a), M, v)
    return v


def _check(
    system: System, request: Request, A: np.ndarray, slip: np.ndarray, size: np.ndarray, M: np.ndarray, v: np.ndarray
) -> None:
    """Refuse velocities that break rows, or break them together in a direction that is not lost here (sheet 2.5)."""
    kept, d = list(system.kept), system.norms
    L, S = scaled_rows(system, M, A, np.ones(len(A)))
    U, sigma, _ = np.linalg.svd(S[kept], full_matrices=False)
    U = U[:, sigma > system.tolerance]
    carried, usual = np.abs(slip), np.zeros(len(slip))
    carried[kept] = np.abs(d * (U @ (U.T @ (slip[kept] / d))))
    usual[kept] = system.tolerance * d * float(np.linalg.norm(L.T @ v))  # what a lost direction may be off by
    allowed = 1e-9 * np.maximum(size, usual) + 1e-300
    broken = (carried > allowed) | (np.abs(slip) > np.maximum(allowed, usual))
    if np.any(broken):
        raise cannot_move(system, request, np.where(broken, np.abs(slip), 0.0), allowed)
