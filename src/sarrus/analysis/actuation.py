"""What the inputs can do: which motions they reach, which torques are unique, which only load the machine inside.

With Z a basis of the allowed velocities (A Z = 0, Zᵀ M Z = 1) and b = L⁻¹B with columns of length one, an allowed
velocity Z y gets from the inputs the generalised force (LᵀZ)ᵀ b u. With k the mobility, n the number of inputs and
c = rank (LᵀZ)ᵀb (all conditions of sheet 5 and 8 are this rank or that of a task's part of it):

- every motion can be driven iff c = k (the first and the fourth paper: rank PB = n - r, R(PB) = N(A)); the directions
  that fail are the velocities on which no input does work;
- the torques for a motion are unique iff c = n; otherwise n - c combinations of them move nothing and only load the
  machine inside;
- a task x(q) can be driven iff rank J Mob B is the number of its rows, and the machine can follow it at all iff
  rank J Z is (the third paper, 002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sarrus.dynamics.rank import mass_factor
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.dynamics.tasks import Task
from sarrus.errors import StateError

KINDS = {
    "none": "no inputs",
    "fixed": "nothing to drive: mobility 0",
    "under": "underactuated: fewer motions can be driven than there are",
    "full": "fully actuated: every motion can be driven, with one choice of torques each",
    "redundant": "redundantly actuated: every motion can be driven, in more ways than one",
}


@dataclass(frozen=True)
class TaskActuation:
    """Whether the inputs can drive a task.

    Attributes:
        rows: of the task.
        movable: directions of the task in which the machine can move (rank J Z).
        driven: directions in which the inputs can accelerate it (rank J Mob B).
        generic: `movable` at positions near by; more than `movable` where the task has lost a direction.
    """

    rows: int
    movable: int
    driven: int
    generic: int

    @property
    def actuated(self) -> bool:
        """Whether the inputs can drive the task in every direction in which the machine can move at all."""
        return self.driven == self.movable == self.generic


@dataclass(frozen=True)
class Actuation:
    """What the inputs can do at one state.

    Attributes:
        kind: "none", "fixed", "under", "full" or "redundant"; see `text`.
        inputs: their names.
        mobility: motions there are.
        driven: motions that can be driven.
        singular_values: of the inputs' part along the allowed velocities, scaled to at most √n; small ones are weak.
        undriven: velocities on which no input does work, by velocity name, in radians and lengths of the machine per
            second, each of largest entry 1.
        internal: combinations of inputs that move nothing, by input name, each of largest entry 1.
        idle: inputs that can do nothing at all here.
        unique: whether the torques for a motion are unique.
        passive: coordinates that no input works on directly.
        without_constraints: whether every motion can be driven without loading any constraint (N(A) within R(B)).
        tasks: by name, whether the inputs drive them.
    """

    kind: str
    inputs: tuple[str, ...]
    mobility: int
    driven: int
    singular_values: tuple[float, ...]
    undriven: tuple[Mapping[str, float], ...]
    internal: tuple[Mapping[str, float], ...]
    idle: tuple[str, ...]
    unique: bool
    passive: tuple[str, ...]
    without_constraints: bool
    tasks: Mapping[str, TaskActuation]

    @property
    def motion_actuated(self) -> bool:
        """Whether every motion can be driven."""
        return self.driven == self.mobility

    @property
    def text(self) -> str:
        """The kind in words."""
        return KINDS[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "motion_actuated": self.motion_actuated, "text": self.text}


def actuation(
    system: System, state: State, Z: np.ndarray, near: tuple[State, ...] = (), nearby: tuple[np.ndarray, ...] = (),
    tasks: Mapping[str, Task] | None = None,
) -> Actuation:  # fmt: skip
    """Judge the inputs at a state; see the module's text.

    Args:
        system: the machine.
        state: one state.
        Z: the allowed velocities there (`mobility.allowed`).
        near: assembled states near by, to compare tasks with.
        nearby: their allowed velocities.
        tasks: by name, what else should be driven.
    """
    x = system.terms(state)
    L = mass_factor(system.name, x.M)
    b = np.linalg.solve(L, x.B)
    sizes = np.linalg.norm(b, axis=0)
    b = b / np.where(sizes > 0, sizes, 1.0)
    W = L.T @ Z  # orthonormal
    tolerance = system.tolerance
    U, sigma, Vt = _svd(W.T @ b)
    c, k, n = int(np.sum(sigma > tolerance)), Z.shape[1], x.B.shape[1]
    names = system.inputs
    torque = Vt[c:] / np.where(sizes > 0, sizes, 1.0)
    scales = np.array(system.layout.scales)
    return Actuation(
        _kind(c, k, n), names, k, c, tuple(map(float, sigma)),
        tuple(named(system.layout.v_names, way) for way in sparse_rows((Z @ U[:, c:]).T / scales)),
        tuple(named(names, row) for row in sparse_rows(torque)),
        tuple(name for name, size in zip(names, sizes, strict=True) if size == 0),
        c == n,
        tuple(v for v, row in zip(system.layout.v_names, x.B, strict=True) if not np.any(row)),
        _within(W, b, tolerance),
        {name: _task(task, state, Z, L, b, near, nearby, tolerance) for name, task in (tasks or {}).items()},
    )  # fmt: skip


def _kind(c: int, k: int, n: int) -> str:
    if n == 0:
        return "none"
    if k == 0:
        return "fixed"
    if c < k:
        return "under"
    return "full" if c == n else "redundant"


def _task(
    task: Any, state: State, Z: np.ndarray, L: np.ndarray, b: np.ndarray, near: tuple[State, ...],
    nearby: tuple[np.ndarray, ...], tolerance: float,
) -> TaskActuation:  # fmt: skip
    if not isinstance(task, Task):
        raise StateError(f"tasks: expected system.task(...), got {type(task).__name__}")
    J = np.atleast_2d(task.evaluate(state)[1])
    JZ = J @ Z
    size = float(np.linalg.norm(np.linalg.solve(L, J.T), 2))  # what the task moves at most, for its kinetic energy
    limit = tolerance * (size if size > 0 else 1.0)
    generic = [_rank(np.atleast_2d(task.evaluate(s)[1]) @ z, limit) for s, z in zip(near, nearby, strict=True)]
    movable = _rank(JZ, limit)
    return TaskActuation(
        len(J), movable, _rank(JZ @ (Z.T @ (L @ b)), limit), max([movable, *generic])
    )  # fmt: skip


def _svd(K: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not K.size:
        return np.eye(K.shape[0]), np.zeros(0), np.eye(K.shape[1])
    return np.linalg.svd(K)


def _rank(K: np.ndarray, limit: float) -> int:
    return int(np.sum(np.linalg.svd(K, compute_uv=False) > limit)) if K.size else 0


def _within(W: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether the columns of W lie in the range of b."""
    U, sigma, _ = np.linalg.svd(b, full_matrices=False)
    basis = U[:, sigma > tolerance]
    return bool(np.linalg.norm(W - basis @ (basis.T @ W)) < tolerance * max(1, W.shape[1]))


def named(names: tuple[str, ...], values: np.ndarray) -> dict[str, float]:
    """The entries that matter, by name, the largest made 1."""
    largest = values[np.argmax(np.abs(values))] if values.size else 0.0
    return {n: float(x / largest) for n, x in zip(names, values, strict=True) if abs(x) > 1e-6 * abs(largest)}


def sparse_rows(rows: np.ndarray) -> np.ndarray:
    """Other vectors that span the same space, each with an entry that the others do not have: easier to read."""
    out, used = rows.copy(), np.zeros(rows.shape[1], dtype=bool)
    for k in range(len(out)):
        i, j = np.unravel_index(np.argmax(np.abs(out[k:]) * ~used), out[k:].shape)
        out[[k, k + int(i)]] = out[[k + int(i), k]]
        out[k] /= out[k, j]
        others = np.arange(len(out)) != k
        out[others] -= np.outer(out[others, j], out[k])
        used[j] = True
    return out
