"""Put a machine together: positions that satisfy every constraint (see `positions`), then velocities that do.

Velocities: the values given, completed with the least kinetic energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.complaints import cannot_close, cannot_move
from sarrus.dynamics.positions import Request, find_positions, hold, rounding_of_rows, smallest_step
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
            v[free] += smallest_step(system, A @ v - a, A[:, free], Mff, damping=0.0)
    slip = np.abs(A @ v - a)
    size = np.maximum(np.abs(A) @ np.abs(v) + np.abs(a), rounding_of_rows(system, M, v))
    allowed = 1e-9 * size + 1e-300
    if np.any(slip > allowed):
        raise cannot_move(system, request, slip, allowed)
    return v
