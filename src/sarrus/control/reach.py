"""What the inputs of a machine can do at a state: move it, serve a task, set constraint forces (sheet 5, 8, 9.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.control.asked import compiled, rows_of_all
from sarrus.control.levels import coupling, free_part, held_and_free, split
from sarrus.control.patterns import Patterns
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError


@dataclass(frozen=True, eq=False)
class Controllability:
    """What the inputs can do at a state.

    Attributes:
        mobility: free directions of motion.
        reached: how many of them the inputs reach, rank Zᵀ B.
        unreachable: those that they do not.
        internal: inputs that move nothing.
        task: (rows of the task, how many of them can be served: rank K), or None.
        forces: (wanted rows, how many of them can be set without touching the motion), or None.
    """

    mobility: int
    reached: int
    unreachable: Patterns
    internal: Patterns
    task: tuple[int, int] | None = None
    forces: tuple[int, int] | None = None

    def __str__(self) -> str:
        """In words."""
        lines = [f"the inputs reach {self.reached} of {self.mobility} free directions"]
        if len(self.unreachable):
            lines.append(f"not reached: {self.unreachable}")
        lines.append(f"inputs that move nothing: {self.internal}")
        if self.task:
            lines.append(f"task: {self.task[1]} of {self.task[0]} values can be controlled")
        if self.forces:
            lines.append(f"forces: {self.forces[1]} of {self.forces[0]} can be set without moving anything")
        return "\n".join(lines)


def controllability(
    system: System, state: State, task: Any = None, forces: Iterable[str] = (), active: Mapping[str, bool] | None = None
) -> Controllability:
    """What the inputs can do at a state.

    Args:
        system: the machine.
        state: where.
        task: as for a controller; its rows are tested by rank J Mob B (sheet 8).
        forces: names of constraints, or of rows of them, whose multipliers are wanted.
        active: constraint name -> False for those switched off.
    """
    compiled(system)._own(state)
    if state.count is not None:
        raise StateError("controllability: give one state (state.row(i) picks one from an array of states)")
    layout = system.layout
    x = system.terms(state)
    L, S = scaled_rows(system, x.M, x.A, system.active_rows(active))
    U, sigma, V1, V2 = held_and_free(S, system.tolerance)
    B = np.linalg.solve(L, x.B)
    G = free_part(V2, B)
    left, values, _, null = split(G, np.ones(layout.nu))
    directions = np.linalg.solve(L.T, V2 @ left[:, len(values) :]).T
    served = None
    if task is not None:
        from sarrus.control.tasks import jacobian_at, task_terms
        from sarrus.control.terms import MachineTerms

        machine = MachineTerms(system)
        J = jacobian_at(machine, task_terms(machine, task), state)
        served = (len(J), len(split(coupling(V2, np.linalg.solve(L, J.T), B), np.ones(layout.nu))[1]))
    rows = rows_of_all(system, forces)
    pushed = None
    if rows:
        F = (U[rows] / sigma) @ V1.T @ B
        strongest = np.linalg.norm(F, 2)
        pushed = (len(rows), int(np.sum(np.linalg.svd(F @ null, compute_uv=False) > 1e-8 * strongest)))
    return Controllability(
        V2.shape[1], len(values), Patterns.of(layout.v_names, directions, np.array(layout.scales)),
        Patterns.of(layout.u_names, null.T, np.ones(layout.nu)), served, pushed,
    )  # fmt: skip


def independent(system: System, state: State, J: np.ndarray) -> int:
    """How many rows of a task the free motion can change independently: the rank of J Z."""
    x = system.terms(state)
    L, S = scaled_rows(system, x.M, x.A, system.active_rows(None))
    rows = np.linalg.solve(L, J.T)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    K = free_part(held_and_free(S, system.tolerance)[3], rows).T
    return len(split(K, np.ones(K.shape[1]))[1])
