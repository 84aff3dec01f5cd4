"""A text that changes whenever the derived expressions would: the cache key of a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sarrus.model.expression import Scalar
from sarrus.model.lagrangian import Lagrangian
from sarrus.model.parts import Coupling, Feature, Model
from sarrus.symbolic.algebra import SX, Function, column


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
    return _exact([argument], [column(function(argument))])


def _exact(inputs: list[Any], outputs: list[Any]) -> str:
    """Every digit and every operation (the printed form of an expression shows only six digits)."""
    return Function("described", inputs, outputs, {"allow_free": True}).serialize()


def _describe_lagrangian(L: Lagrangian) -> str:
    inputs = list(L.inputs.items()) if isinstance(L.inputs, dict) else [(None, L.inputs)]
    pairs = list(L.parameters.items() if isinstance(L.parameters, dict) else L.parameters)
    symbols = [column(L.coordinates), column(L.velocities)]
    symbols += [SX.sym("t") if L.time is None else L.time, column([s for s, _ in pairs])]
    outputs = [SX(L.kinetic), SX(L.potential), SX(L.dissipation), *(column(x) for x in L.holonomic.values())]
    outputs += [x for A, a in L.pfaffian.values() for x in (SX(A), column(a))]
    outputs += [column(x) for _, x in inputs] + ([] if L.forces is None else [column(L.forces)])
    names = [L.name, *map(str, symbols), str([str(s) for s, _ in inputs])]
    names += [str(list(x)) for x in (L.holonomic, L.pfaffian)]
    names += [
        str(sorted((str(k), v) for k, v in x))
        for x in (pairs, L.scales.items(), L.initial.items(), L.one_sided.items())
    ]
    return "\n".join([*names, str(len(outputs)), _exact(symbols, outputs)])
