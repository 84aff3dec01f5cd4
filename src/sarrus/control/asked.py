"""What was asked for, checked: machines, names of constraints, wanted multipliers, weights of the inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sarrus.dynamics.state import checked_array
from sarrus.dynamics.system import System
from sarrus.errors import StateError, UnknownNameError
from sarrus.simulation.loop import input_limits


def compiled(system: Any) -> System:
    """Refuse what is no compiled machine."""
    if not hasattr(system, "layout") or not hasattr(system, "terms"):
        raise StateError(f"expected a compiled machine, got {type(system).__name__}; use sr.compile(machine)")
    return system


def numbers(what: str, value: Any) -> np.ndarray:
    """Numbers of any shape; nan and infinity are for the caller to judge."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StateError(f"{what}: expected numbers, got {value!r}") from None


def mapping(what: str, value: Any, meaning: str) -> dict[str, Any]:
    """A mapping from names, empty for None."""
    if value is not None and not isinstance(value, Mapping):
        raise StateError(f"{what}: expected a mapping from {meaning}, got {value!r}")
    return dict(value or {})


def constraint_rows(system: System, name: str) -> list[int]:
    """The rows that the name of a constraint, or of one of its rows, means."""
    layout = system.layout
    if name in layout.groups:
        found = layout.group_rows(name)
        return list(range(found.start, found.stop))
    rows = [k for k, row in enumerate(layout.rows) if row.name == name]
    if not rows:
        known = dict.fromkeys([*layout.groups, *(row.name for row in layout.rows)])
        raise UnknownNameError("constraint or row", name, list(known))
    return rows


def force_rows(system: System, name: str) -> list[int]:
    """The same without those that are always satisfied (out of the plane of a planar machine)."""
    rows = [k for k in constraint_rows(system, name) if k in system.kept]
    if not rows:
        raise StateError(f"forces of {name!r}: this row carries no force (it is always satisfied)")
    return rows


def rows_of_all(system: System, names: Iterable[str]) -> list[int]:
    """The rows that can carry a force of several constraints; one name may stand alone."""
    return [k for name in ([names] if isinstance(names, str) else names) for k in force_rows(system, name)]


def wanted_multipliers(system: System, forces: Any) -> np.ndarray | None:
    """One number for each row: what is wanted, or nan."""
    if not forces:
        return None
    goal = np.full(system.layout.m, np.nan)
    for name, value in mapping("forces", forces, "names of constraints to wanted multipliers").items():
        every, carrying = constraint_rows(system, name), force_rows(system, name)
        row = numbers(f"forces of {name!r}", value)
        if np.isinf(row).any() or row.shape not in ((), (len(carrying),), (len(every),)):
            labels = ", ".join(system.layout.rows[k].name for k in carrying)
            raise StateError(
                f"forces of {name!r}: expected one number for each of its rows ({labels}; nan for any), got {value!r}"
            )
        goal[every if row.shape == (len(every),) else carrying] = row
    return goal


def input_scales(system: System, weights: Any) -> np.ndarray:
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
            one = numbers(f"weights of {name!r}", value)
            values[system.layout.find(name, "u")] = one if one.ndim == 0 else np.nan
    else:
        values = checked_array("weights", weights, len(names), names)
    if values.ndim != 1 or not np.all((values > 0) & np.isfinite(values)):
        raise StateError(f"weights: expected one positive number for each of {', '.join(names)}, got {weights!r}")
    return 1 / np.sqrt(values)


def expression(what: str, call: Callable[[], Any], of: str = "", cure: str = "") -> Any:
    """What a user's function returns for symbols, as one column of expressions.

    Args:
        what: whose function it is.
        call: calls it.
        of: what it is to be an expression of.
        cure: what else can be done if it is none.
    """
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CasADi comments on NumPy functions of its symbols
            value = call()
            parts = value.ravel().tolist() if isinstance(value, np.ndarray) else value
            x = ca.densify(SX(ca.vertcat(*parts) if isinstance(parts, (list, tuple)) else parts))
    except UnknownNameError:
        raise
    except Exception as error:
        said = str(error).splitlines() or [type(error).__name__]
        raise StateError(
            f"{what}: the function cannot be turned into an expression{of} ({said[0]}); write it with NumPy or CasADi "
            f"functions and without branches{cure}"
        ) from error
    f = ca.Function("f", ca.symvar(x), [x])
    constants = [f.instruction_constant(k) for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CONST]
    if not np.isfinite(constants).all():
        raise StateError(f"{what}: the function contains a number that is not finite")
    return ca.reshape(x, x.numel(), 1)
