"""Inverse dynamics with loops and passive joints: the torques for wanted accelerations, and what is wrong if none do.

With an M-orthonormal basis Z of the velocities that the constraints allow (Zᵀ M Z = 1, A Z = 0; sheet 6),
v̇ = Z p + a_n, and the equations of motion are p + Zᵀ h = G u with G = Zᵀ B (sheet 2.4 no. 9). So

- every p can be reached if and only if G has full row rank (the same as rank P B = n - r, sheet 5),
- u is unique if and only if G has full column rank; the null space of G are torques that move nothing and only load the
  machine inside,
- the weighted least u is G⁺ in that weight (sheet 5: u = Γ w).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.control.asked import compiled, input_scales, numbers, rows_of_all, wanted_multipliers
from sarrus.control.levels import Inequalities, Level, bounded, free_part, held_and_free, least, split
from sarrus.control.patterns import Patterns
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.rubbing import refuse
from sarrus.dynamics.state import State, checked_array
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.simulation.loop import input_limits

if TYPE_CHECKING:
    from sarrus.simulation.trajectory import Trajectory

EXACT = 1e-8  # a residual below this part of the forces at work counts as none


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Torques for wanted accelerations. For arrays of states every array has one row for each.

    Attributes:
        u: the inputs.
        feasible: whether they give the wanted accelerations (and keep what was demanded of them).
        unique: whether no other inputs would.
        residual: what is missed, √((v̇ - v̇*)ᵀ M (v̇ - v̇*)) [√kg m/s²].
        accelerations: what u gives.
        lam: multipliers that go with u, of smallest norm where they are not unique.
        reason: why it is not feasible, in words; empty if it is.
        unreachable: patterns of acceleration that the constraints allow but no input has any part in.
        internal: patterns of inputs that move nothing.
        force_error: what is missed of the wanted multipliers; nan where none was wanted.
    """

    u: np.ndarray
    feasible: Any
    unique: Any
    residual: Any
    accelerations: np.ndarray
    lam: np.ndarray
    reason: Any
    unreachable: Any
    internal: Any
    force_error: np.ndarray

    def __str__(self) -> str:
        """Inputs, and whether they do."""
        if self.u.ndim == 2:
            good = int(np.sum(self.feasible))
            return f"{len(self.u)} states, {good} feasible, largest residual {max(self.residual):.3g}"
        lines = [f"inputs {np.array2string(self.u, precision=6)}"]
        if self.feasible:
            lines[0] += ", unique" if self.unique else f", not unique ({len(self.internal)} internal patterns)"
        else:
            lines.append(f"not feasible, residual {self.residual:.3g}: {self.reason}")
        return "\n".join(lines)


def inverse_dynamics(
    system: System,
    state: State | Trajectory,
    accelerations: Any = None,
    *,
    weights: Any = None,
    limits: Any = None,
    forces: Mapping[str, Any] | None = None,
    unilateral: Iterable[str] = (),
    active: Mapping[str, bool] | None = None,
) -> InverseDynamics:
    """The inputs that give wanted accelerations to a machine with loops, passive joints or too many motors.

    Args:
        system: the compiled machine.
        state: one state, an array of states, or a trajectory.
        accelerations: wanted v̇: an array of shape (nv,) or (count, nv), or a mapping from coordinate names that
            determines them all. Not given: those of the trajectory, or none beyond what the constraints force.
        weights: the inputs of smallest Σ wᵢ uᵢ² are chosen where they are not unique: one positive number for each, or
            by name (1 for the others), or "limits" for 1/limit², which shares the load by strength.
        limits: True for those of the description, or a number, (low, high), or a mapping from input names to these.
        forces: name of a constraint, or of one of its rows -> wanted multipliers (nan: whatever it becomes); met as far
            as the accelerations allow.
        unilateral: names of constraints that can only push: their multipliers must not be negative.
        active: constraint name -> False for those switched off. Not given: all that are no contacts; of a trajectory,
            those that were on.

    Returns:
        Inputs with a verdict. If the accelerations cannot be had, the inputs that come nearest in the mass metric.

    Raises:
        StateError: if what was asked for makes no sense.
    """
    states, questions = _question(compiled(system), state, accelerations, active)
    scale = input_scales(system, weights)
    low, high = input_limits(system, limits, "limits")
    goal = wanted_multipliers(system, forces)
    push = np.array(rows_of_all(system, unilateral), dtype=int)
    single = states.count is None
    parts = [
        _one(machine, states if single else states.row(i), a, scale, low, high, goal, push, on)
        for i, (machine, a, on) in enumerate(questions)
    ]
    if single:
        return parts[0]

    def gather(key: str) -> Any:
        values = [getattr(part, key) for part in parts]
        return tuple(values) if key in ("reason", "unreachable", "internal") else np.array(values)

    return InverseDynamics(**{key: gather(key) for key in InverseDynamics.__dataclass_fields__})


def gravity_compensation(system: System, state: State, **options: Any) -> InverseDynamics:
    """The inputs that hold a machine still where it is, against gravity, springs and whatever else acts at rest.

    Args:
        system: the compiled machine.
        state: where; its velocities do not matter.
        options: as for `inverse_dynamics`: weights, limits, forces, unilateral, active.
    """
    system._own(state)
    return inverse_dynamics(system, State(state.layout, state.q, None, state.t), **options)


# --- one state -----------------------------------------------------------------------------------------------------
def _one(
    system: System, state: State, wanted: Any, scale: np.ndarray, low: np.ndarray, high: np.ndarray,
    goal: np.ndarray | None, push: np.ndarray, active: Mapping[str, bool] | None,
) -> InverseDynamics:  # fmt: skip
    refuse(system, active, "inverse_dynamics")
    flags = system.active_rows(active)
    x = system.terms(state)
    L, S = scaled_rows(system, x.M, x.A, flags)
    U, sigma, V1, V2 = held_and_free(S, system.tolerance)
    d = np.zeros(len(flags))
    d[list(system.kept)] = flags[list(system.kept)] / system.norms
    c = (U.T @ (d * x.gamma)) / sigma
    B, h = np.linalg.solve(L, x.B), np.linalg.solve(L, x.h)
    p = _free(system, L, V2, V1 @ c, wanted)
    G, w = free_part(V2, B), p + V2.T @ h

    # λ = X (c + V1ᵀ(h - B u)), of smallest norm in the scaled rows
    X = d[:, None] * (U / sigma)
    levels = [Level(G, w)]
    rows = np.flatnonzero(~np.isnan(goal)) if goal is not None else np.zeros(0, dtype=int)
    if len(rows):
        assert goal is not None
        unit = np.where(d[rows] > 0, 1 / np.where(d[rows] > 0, d[rows], 1.0), 1.0)[:, None]
        F = X[rows] @ V1.T
        levels.append(Level(-unit * (F @ B), unit[:, 0] * (goal[rows] - X[rows] @ c - F @ h)))
    push = push[d[push] > 0]
    F = X[push] @ V1.T
    must = Inequalities(low, high, F @ B, X[push] @ c + F @ h)
    bound = len(push) > 0 or bool(np.isfinite([low, high]).any())
    u, possible = bounded(levels, scale, must) if bound else (least(levels, scale)[0], True)

    miss = G @ u - w
    left, values, _, null = split(G, scale)
    size = np.linalg.norm(w) + np.linalg.norm(p) + np.linalg.norm(V2.T @ h) + np.linalg.norm(np.abs(G) @ np.abs(u))
    forbidden = np.zeros(0) if wanted is None or isinstance(wanted, Mapping) else V1.T @ (L.T @ wanted) - c
    residual = float(np.hypot(np.linalg.norm(miss), np.linalg.norm(forbidden)))
    reached = residual <= EXACT * max(size, float(np.linalg.norm(c)), 1e-300)
    directions = np.linalg.solve(L.T, V2 @ left[:, len(values) :]).T
    lam = X @ (c + V1.T @ (h - B @ u))
    reason = "" if reached and possible else _reason(
        system, possible, bool(np.linalg.norm(forbidden) > EXACT * max(size, 1e-300)),
        bool(np.linalg.norm(left[:, len(values) :].T @ w) > EXACT * max(size, 1e-300)), directions, state,
    )  # fmt: skip
    error = np.full(len(flags), np.nan)
    if goal is not None:
        error[rows] = lam[rows] - goal[rows]
    vdot = np.linalg.solve(L.T, V1 @ c + V2 @ (G @ u - V2.T @ h))
    layout = system.layout
    return InverseDynamics(
        u, reached and possible, len(values) == layout.nu, residual, vdot, lam, reason,
        Patterns.of(layout.v_names, directions, np.array(layout.scales)),
        Patterns.of(layout.u_names, (scale[:, None] * null).T, scale), error,
    )  # fmt: skip


def _reason(
    system: System, possible: bool, forbidden: bool, blocked: bool, directions: np.ndarray, state: State
) -> str:
    if not possible:
        return "no inputs within the limits keep the one-sided constraints pressing"
    if forbidden:
        return "the constraints do not allow these accelerations (A v̇ = γ is broken)"
    if blocked:
        return f"no input reaches {Patterns.of(system.layout.v_names, directions, np.array(system.layout.scales))}"
    return "the limits do not allow it"


def _free(system: System, L: np.ndarray, V2: np.ndarray, an: np.ndarray, wanted: Any) -> np.ndarray:
    """The free part p of the wanted accelerations."""
    if wanted is None:
        return np.zeros(V2.shape[1])
    if not isinstance(wanted, Mapping):
        return V2.T @ (L.T @ wanted)
    where = [system.layout.find(name.removesuffix(".v"), "v") for name in wanted]
    rows = np.concatenate([np.arange(s.start, s.stop) for s in where]) if where else np.zeros(0, dtype=int)
    given = [np.ravel(numbers(f"accelerations of {name!r}", value)) for name, value in wanted.items()]
    values = np.concatenate([*given, np.zeros(0)])
    if not np.isfinite(values).all():
        raise StateError(f"accelerations: expected finite numbers for {', '.join(wanted)}, got {list(wanted.values())}")
    if len(values) != len(rows):
        raise StateError(f"accelerations: expected {len(rows)} numbers for {', '.join(wanted)}, got {len(values)}")
    to_v = np.linalg.solve(L.T, np.column_stack([V2, an]))
    J = to_v[rows, :-1] / np.array(system.layout.scales)[rows, None]
    target = (values - to_v[rows, -1]) / np.array(system.layout.scales)[rows]
    p, _, rank, _ = np.linalg.lstsq(J, target, rcond=1e-8)
    if rank < V2.shape[1]:
        raise StateError(
            f"accelerations: those of {', '.join(wanted)} leave {V2.shape[1] - rank} of the machine's "
            f"{V2.shape[1]} directions open; give more, or all accelerations as an array"
        )
    if np.linalg.norm(J @ p - target) > EXACT * (np.linalg.norm(target) + np.linalg.norm(J) * np.linalg.norm(p)):
        raise StateError(f"accelerations: those of {', '.join(wanted)} contradict each other through the constraints")
    return p


# --- what was asked for --------------------------------------------------------------------------------------------
def _question(
    system: System, state: Any, accelerations: Any, active: Mapping[str, bool] | None
) -> tuple[State, list[tuple[System, Any, Mapping[str, bool] | None]]]:
    """States, and for each of them the machine as it was, the wanted accelerations and which constraints are on."""
    if not isinstance(state, State) and hasattr(state, "segments"):
        accelerations = state.a if accelerations is None else accelerations
        own = np.array_equal(system.p, state.system.p)
        rows = [
            (piece if own else system, segment.active if active is None else active)
            for where, segment, piece in state.pieces()
            for _ in range(where.start, where.stop)
        ]
        state = State(system.layout, state.q, state.v, state.t)
    else:
        count = getattr(state, "count", None)
        rows = [(system, active)] * (1 if count is None else count)
    system._own(state)
    if not rows:
        raise StateError("inverse_dynamics: expected at least one state, got an array of none")
    wanted: list[Any] = [None] * len(rows)
    if isinstance(accelerations, Mapping):
        if state.count is not None:
            raise StateError("accelerations: for an array of states give an array of shape (count, nv)")
        wanted = [accelerations]
    elif accelerations is not None:
        a = checked_array("accelerations", accelerations, system.layout.nv, system.layout.v_names)
        if a.ndim == 2 and a.shape[0] != state.count:
            raise StateError(f"accelerations: {a.shape[0]} rows for {state.count or 'a single'} state(s)")
        wanted = list(a) if a.ndim == 2 else [a] * len(rows)
    return state, [(machine, a, on) for (machine, on), a in zip(rows, wanted, strict=True)]
