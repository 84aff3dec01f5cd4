"""A text that changes whenever the derived expressions would: the cache key of a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.model.expression import Scalar
from sarrus.model.lagrangian import Lagrangian
from sarrus.model.parts import Coupling, Feature, Model
from sarrus.symbolic.algebra import SX


class _Opaque(Exception):
    """A user function that only the full derivation can read."""


def describe(machine: Model | Lagrangian) -> str | None:
    """The description as text, or None if it contains functions of the kinematics (then it is derived each time)."""
    if isinstance(machine, Lagrangian):
        return _describe_lagrangian(machine)
    try:
        return _text(machine)
    except _Opaque:
        return None


def _text(value: Any) -> str:
    if isinstance(value, Scalar):
        return f"{value.text}{sorted(value.defaults.items())}"
    if isinstance(value, np.ndarray):
        return f"{value.shape}[{','.join(_text(x) for x in value.ravel())}]"
    if isinstance(value, Feature):
        curve = "" if value.expression is None else _called(value.expression, SX.sym("p", 3))
        return f"{value.kind},{value.body},{_text(value.at)},{_text(value.frame)},{curve}"
    if isinstance(value, Coupling):
        motion = "" if value.target is None else _called(value.target, SX.sym("t"))
        return f"{value.name},{_text(value.coefficients)},{_text(value.constant)},{motion}"
    if is_dataclass(value):
        return f"{type(value).__name__}({';'.join(f'{f.name}={_text(getattr(value, f.name))}' for f in fields(value))})"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(_text(x) for x in value)})"
    if callable(value):
        raise _Opaque
    return repr(value)


def _called(function: Any, argument: Any) -> str:
    value = function(argument)
    return str(ca.vertcat(*value) if isinstance(value, (list, tuple)) else SX(value))


def _describe_lagrangian(L: Lagrangian) -> str:
    flat = [L.kinetic, L.potential, L.dissipation, *L.holonomic.values()]
    flat += [part for pair in L.pfaffian.values() for part in pair]
    flat += list(L.inputs.values()) if isinstance(L.inputs, dict) else [L.inputs]
    flat += [] if L.forces is None else [L.forces]
    texts = [
        str(ca.vertcat(*x) if isinstance(x, (list, tuple)) and x else SX(x) if not isinstance(x, (list, dict)) else x)
        for x in flat
    ]
    names = [str(x) for x in (L.name, L.coordinates, L.velocities, L.time)]
    names += [str(list(x)) for x in (L.holonomic, L.pfaffian, L.inputs if isinstance(L.inputs, dict) else [])]
    names += [str(sorted((str(k), v) for k, v in dict(x).items())) for x in (L.parameters, L.scales, L.initial)]
    return "\n".join([*names, *texts])
