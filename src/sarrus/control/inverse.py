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

from sarrus.control.levels import Inequalities, Level, bounded, least, split
from sarrus.control.patterns import Patterns
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.rubbing import refuse
from sarrus.dynamics.state import State, checked_array
from sarrus.dynamics.system import System
from sarrus.errors import StateError, UnknownNameError
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
        forces: constraint name -> wanted multipliers (nan: whatever it becomes); met as far as the accelerations allow.
        unilateral: names of constraints that can only push: their multipliers must not be negative.
        active: constraint name -> False for those switched off.

    Returns:
        Inputs with a verdict. If the accelerations cannot be had, the inputs that come nearest in the mass metric.

    Raises:
        StateError: if what was asked for makes no sense.
    """
    refuse(system, active, "inverse_dynamics")
    states, wanted = _question(system, state, accelerations)
    scale = _scales(system, weights)
    low, high = input_limits(system, limits, "limits")
    goal = _forces(system, forces)
    push = _rows(system, unilateral)
    single = states.count is None
    parts = [
        _one(system, states if single else states.row(i), a, scale, low, high, goal, push, active)
        for i, a in enumerate(wanted)
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
    flags = system.active_rows(active)
    x = system.terms(state)
    L, S = scaled_rows(system, x.M, x.A, flags)
    U, sigma, Vt = np.linalg.svd(S) if S.size else (np.eye(0), np.zeros(0), np.eye(len(L)))
    r = int(np.sum(sigma > system.tolerance))
    V1, V2 = Vt[:r].T, Vt[r:].T
    d = np.zeros(len(flags))
    d[list(system.kept)] = flags[list(system.kept)] / system.norms
    c = (U[:, :r].T @ (d * x.gamma)) / sigma[:r] if r else np.zeros(0)
    B, h = np.linalg.solve(L, x.B), np.linalg.solve(L, x.h)
    p = _free(system, L, V2, V1 @ c, wanted)
    G, w = V2.T @ B, p + V2.T @ h

    # λ = X (c + V1ᵀ(h - B u)), of smallest norm in the scaled rows
    X = d[:, None] * (U[:, :r] / sigma[:r])
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
    values = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in wanted.values()]) if where else np.zeros(0)
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
def _question(system: System, state: Any, accelerations: Any) -> tuple[State, list[Any]]:
    """States, and for each of them the wanted accelerations."""
    if not isinstance(state, State) and hasattr(state, "segments"):
        accelerations = state.a if accelerations is None else accelerations
        state = State(system.layout, state.q, state.v, state.t)
    system._own(state)
    count = state.count or 1
    if accelerations is None:
        return state, [None] * count
    if isinstance(accelerations, Mapping):
        if state.count is not None:
            raise StateError("accelerations: for an array of states give an array of shape (count, nv)")
        return state, [accelerations]
    a = checked_array("accelerations", accelerations, system.layout.nv, system.layout.v_names)
    if a.ndim == 2 and a.shape[0] != state.count:
        raise StateError(f"accelerations: {a.shape[0]} rows for {state.count or 'a single'} state(s)")
    return state, list(a) if a.ndim == 2 else [a] * count


def _scales(system: System, weights: Any) -> np.ndarray:
    """1/√weight of each input."""
    names = system.layout.u_names
    if weights is None:
        return np.ones(len(names))
    if isinstance(weights, str):
        low, high = input_limits(system, True, "limits")
        size = np.maximum(np.abs(low), np.abs(high))
        if weights != "limits" or not np.isfinite(size).all() or not np.all(size > 0):
            raise StateError(
                f"weights={weights!r}: expected 'limits' on a machine all of whose inputs have limits, or numbers"
            )
        return size
    values = np.ones(len(names))
    if isinstance(weights, Mapping):
        for name, value in weights.items():
            values[system.layout.find(name, "u")] = value
    else:
        values = checked_array("weights", weights, len(names), names)
    if values.ndim != 1 or not np.all(values > 0):
        raise StateError(f"weights: expected one positive number for each of {', '.join(names)}, got {weights!r}")
    return 1 / np.sqrt(values)


def _forces(system: System, forces: Mapping[str, Any] | None) -> np.ndarray | None:
    if not forces:
        return None
    goal = np.full(system.layout.m, np.nan)
    for name, value in forces.items():
        where = system.layout.group_rows(name)
        row = np.asarray(value, dtype=float)
        if row.shape not in ((), (where.stop - where.start,)):
            rows = ", ".join(r.name for r in system.layout.rows[where])
            raise StateError(f"forces of {name!r}: expected one number for each of its rows ({rows}), got {value!r}")
        goal[where] = row
    return goal


def _rows(system: System, names: Iterable[str]) -> np.ndarray:
    if isinstance(names, str):
        names = (names,)
    known = system.layout.groups
    out: list[int] = []
    for name in names:
        if name not in known:
            raise UnknownNameError("constraint", name, known)
        rows = system.layout.group_rows(name)
        out += range(rows.start, rows.stop)
    return np.array(out, dtype=int)
