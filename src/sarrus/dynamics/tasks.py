"""Task maps: a position, an orientation or a coordinate, with J and J̇v (sheet 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.errors import SarrusError
from sarrus.model.parts import Feature, Model


@dataclass(frozen=True, eq=False)
class Task:
    """x(q), with ẋ = J v and ẍ = J v̇ + J̇v.

    For an orientation x is the rotation matrix and J maps v to the angular velocity in world axes.
    """

    name: str
    function: Any
    p: np.ndarray
    coordinates: tuple[str, ...]  # of the machine that it was made for

    def evaluate(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value x, Jacobian J and J̇v at a state, or stacked for an array of states."""
        if state.count is not None:
            x, J, bias = zip(*(self.evaluate(state.row(i)) for i in range(state.count)), strict=True)
            return np.stack(x), np.stack(J), np.stack(bias)
        values = self.function.call([np.asarray(s, dtype=float) for s in (state.t, state.q, state.v, self.p)])
        x, J, bias = (np.array(value.full()) for value in values)
        return (x[:, 0] if x.shape[1] == 1 else x), J, bias[:, 0]


def build_task(model: Model, kind: str, target: Any, p: np.ndarray, coordinates: tuple[str, ...]) -> Task:
    """Derive the task's expressions from the machine's description."""
    import casadi as ca

    from sarrus.model.tree import span
    from sarrus.symbolic.algebra import Function
    from sarrus.symbolic.kinematics import Kinematics

    k = Kinematics(model, span(model))
    if kind == "point":
        if not isinstance(target, Feature):
            raise SarrusError("task 'point': give a feature such as sr.point_on(body, at)")
        x, J, bias = k.position(target), k.point_jacobian(target), k.acceleration_bias(target)
    elif kind == "orientation":
        x, J, bias = k.rotation(target), k.angular_jacobian(target), k.angular_acceleration_bias(target)
    elif kind == "coordinate":
        x = k.coordinate(target)
        rate = k.rate(target)
        J, bias = ca.jacobian(rate, k.v), ca.jtimes(rate, k.q, k.qdot)
    else:
        raise SarrusError(f"unknown task {kind!r}; kinds: 'point', 'orientation', 'coordinate'")
    outputs = [ca.densify(e) for e in (x, J, bias)]
    return Task(f"{kind} task", Function("task", [k.t, k.q, k.v, k.p], ca.cse(outputs)), p, coordinates)
