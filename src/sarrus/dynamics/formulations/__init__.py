"""The formulations of the papers: alternatives that must agree, each with its equation, its problem and its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.formulations.mobility import MOBILITY
from sarrus.dynamics.formulations.multiplier import DAE, MULTIPLIER
from sarrus.dynamics.formulations.point import multipliers, point_at
from sarrus.dynamics.formulations.projection import PROJECTION
from sarrus.dynamics.formulations.record import Formulation
from sarrus.dynamics.rubbing import refuse
from sarrus.errors import SarrusError, UnknownNameError

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System

_ALL = {x.name: x for x in (*PROJECTION, *MOBILITY, *MULTIPLIER, *DAE)}


def formulation(name: str, **options: Any) -> Formulation:
    """A formulation by name, with its options.

    Args:
        name: one of those that `formulations` lists.
        options: what it leaves open, such as `mu` of "virtual-mass"; print the formulation to see them.
    """
    if name not in _ALL:
        raise UnknownNameError("formulation", name, list(_ALL))
    return _ALL[name].with_options(**options)


def formulations() -> tuple[Formulation, ...]:
    """All formulations, with their options at the defaults; those that make an ODE come first."""
    return tuple(_ALL.values())


def chosen(what: str | Formulation) -> Formulation:
    """A formulation given by name or as it is."""
    if isinstance(what, Formulation):
        return what
    if not isinstance(what, str):
        raise SarrusError(f"formulation: expected a name or sr.formulation(...), got {what!r}")
    return formulation(what)


def solve_with(
    system: System, state: State, u: Any, f: Any, active: Mapping[str, bool] | None, what: str | Formulation
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and multipliers by one formulation, for one state or each of an array of states."""
    form = chosen(what)
    if state.count is not None:
        parts = [solve_with(system, state.row(i), _row(u, i), _row(f, i), active, form) for i in range(state.count)]
        vdot, lam = zip(*parts, strict=True)
        return np.stack(vdot), np.stack(lam)
    refuse(system, active, f"formulation {form.name!r}")
    point = point_at(system, state, u, f, active)
    vdot, force = form.evaluate(point, form.options)
    return vdot, multipliers(system, point, force)


def _row(values: Any, index: int) -> Any:
    return values[index] if np.ndim(values) == 2 else values
