"""Tasks: what a controller is to make follow a reference, as expressions x(q), J, J̇v and their errors (sheet 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.control.asked import expression
from sarrus.control.terms import MachineTerms
from sarrus.dynamics.state import State
from sarrus.dynamics.tasks import Task
from sarrus.errors import StateError
from sarrus.simulation.callbacks import apply, arity
from sarrus.symbolic.algebra import SX, Function, quaternion_rotation


@dataclass(frozen=True, eq=False)
class Part:
    """One piece of a task.

    Attributes:
        names: of its rows, for messages.
        x: value: a column, or a rotation matrix.
        J: ẋ = J v (or angular velocity in world axes).
        bias: J̇v.
        values: numbers that its reference has (4 for an orientation: a quaternion w, x, y, z, of any length but 0).
    """

    names: tuple[str, ...]
    x: Any
    J: Any
    bias: Any
    values: int

    def errors(self, v: Any, xd: Any, rate: Any, bend: Any) -> tuple[Any, Any, Any]:
        """Error of position and of velocity, and the acceleration of the reference."""
        if self.x.shape[1] == 1:
            return xd - self.x, rate - self.J @ v, bend
        # world axes; sin(angle) times axis: Σ rᵢ ⨯ r_dᵢ / 2 over the columns of both rotations. A reference between
        # two orientations need not be of unit length on its way: with p = |p| r, 2 ṗ p⁻¹ = ω + 2 |p|˙/|p|
        square = ca.dot(xd, xd)
        Rd = quaternion_rotation(xd / ca.sqrt(square))
        e = sum((ca.cross(self.x[:, k], Rd[:, k]) for k in range(3)), SX.zeros(3, 1)) / 2
        turn, growth = 2 * _vector_part(rate, xd) / square, ca.dot(xd, rate) / square
        return e, turn - self.J @ v, 2 * _vector_part(bend, xd) / square - 2 * growth * turn


@dataclass(frozen=True, eq=False)
class TaskTerms:
    """A whole task: its parts stacked."""

    parts: tuple[Part, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.names)

    @property
    def values(self) -> int:
        """Numbers that a reference has."""
        return sum(part.values for part in self.parts)

    @property
    def J(self) -> Any:
        """Jacobian."""
        return ca.vertcat(*[part.J for part in self.parts])

    def command(self, v: Any, xd: Any, rate: Any, bend: Any, kp: Any, kd: Any) -> Any:
        """ẍ_d + Kd (ẋ_d - ẋ) + Kp (x_d - x) - J̇v, what J v̇ is to be (sheet 9.5)."""
        rows, at = [], 0
        for part in self.parts:
            where = slice(at, at + part.values)
            e, slip, ahead = part.errors(v, xd[where], rate[where], bend[where])
            rows.append((e, slip, ahead - part.bias))
            at += part.values
        e, slip, ahead = (ca.vertcat(*column) for column in zip(*rows, strict=True))
        return ca.densify(ahead + kd * slip + kp * e)


def task_terms(machine: MachineTerms, task: Any) -> TaskTerms:
    """A task from whatever describes it: a name, a `Task`, a function of a moment, or a list of these."""
    items = list(task) if isinstance(task, Sequence) and not isinstance(task, str) else [task]
    if not items:
        raise StateError("task: expected at least one coordinate, Task or function")
    return TaskTerms(tuple(_part(machine, item, k) for k, item in enumerate(items)))


def _part(machine: MachineTerms, item: Any, index: int) -> Part:
    s = machine.s
    if isinstance(item, str):
        return _coordinate(machine, item)
    if isinstance(item, Task):
        if item.coordinates != machine.system.layout.q_names:
            raise StateError(
                f"task: this {item.name} was made for another machine, with the coordinates "
                f"{', '.join(item.coordinates)}; use system.task(...) of {machine.system.name} itself"
            )
        x, J, bias = item.function.call([s["t"], s["q"], s["v"], s["p"]])
        values = x.shape[0] if x.shape[1] == 1 else 4
        return Part(tuple(f"{item.name}[{k}]" for k in range(J.shape[0])), x, ca.sparsify(J), bias, values)
    if not callable(item):
        raise StateError(f"task: expected a coordinate name, a Task or a function of (t, x), got {item!r}")
    x = traced(item, machine.moment, "task")
    if ca.depends_on(x, ca.vertcat(s["v"], s["t"])):
        raise StateError("task: the function must depend on the position alone, not on time or velocities")
    J = ca.sparsify(ca.jacobian(x, s["q"]) @ s["N"])
    bias = machine.along(J @ s["v"], s["v"])
    return Part(tuple(f"task{index}[{k}]" for k in range(x.numel())), x, J, ca.densify(bias), x.numel())


def jacobian_at(machine: MachineTerms, terms: TaskTerms, state: State) -> np.ndarray:
    """The numbers of J at a state."""
    function = Function("task", [machine.s[k] for k in ("t", "q", "v", "p")], [ca.densify(terms.J)])
    return np.array(function(state.t, state.q, state.v, machine.system.p))


def traced(function: Any, moment: Any, what: str) -> Any:
    """A user's function of (t), (t, x) or (t, q, v) as one column of expressions."""
    return expression(what, lambda: apply(function, arity(function, what), moment))


def _coordinate(machine: MachineTerms, name: str) -> Part:
    layout, s = machine.system.layout, machine.s
    where = layout.find(name)
    turned = {t.q + k for t in layout.turns for k in range(4)}
    index = range(where.start, where.stop)
    if turned & set(index):
        raise StateError(
            f"task {name!r}: a quaternion is no list of numbers to follow; use system.task('orientation', body)"
        )
    x = s["q"][where]
    J = ca.sparsify(ca.jacobian(x, s["q"]) @ s["N"])
    return Part(layout.q_names[where], x, J, SX.zeros(len(index), 1), len(index))


def _vector_part(a: Any, b: Any) -> Any:
    """The vector part of a ∘ conj(b)."""
    return -a[0] * b[1:4] + b[0] * a[1:4] - ca.cross(a[1:4], b[1:4])
