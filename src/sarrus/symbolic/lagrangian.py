"""Terms of a machine given by its Lagrangian: M = ∂²T/∂v², h = (∂²T/∂v∂q) v + ∂²T/∂v∂t - ∂T/∂q + ∂V/∂q + ∂D/∂v - Q."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from sarrus.errors import ModelError
from sarrus.model.lagrangian import Lagrangian
from sarrus.model.layout import Layout, Row
from sarrus.symbolic.algebra import SX, column
from sarrus.symbolic.constraints import check_rows, holonomic, pfaffian
from sarrus.symbolic.terms import Terms


@dataclass(frozen=True)
class _Symbols:
    """The symbols that the constraint derivatives need."""

    t: Any
    q: Any
    v: Any
    N: Any
    qdot: Any


def derive_lagrangian(lagrangian: Lagrangian) -> Terms:
    """Derive the terms of a machine described by energies and constraints."""
    L = lagrangian
    q, v = column(L.coordinates), column(L.velocities)
    names = tuple(str(q[i]) for i in range(q.numel()))
    _check(L, q, v, names)
    n = len(names)
    t = SX.sym("t") if L.time is None else L.time
    pairs = list(L.parameters.items() if isinstance(L.parameters, dict) else L.parameters)
    p = ca.vertcat(*[s for s, _ in pairs]) if pairs else SX.sym("p", 0)
    T, V, D = SX(L.kinetic), SX(L.potential), SX(L.dissipation)
    momentum = ca.gradient(T, v)
    M = ca.sparsify(ca.jacobian(momentum, v))
    h = ca.jtimes(momentum, q, v) + ca.jacobian(momentum, t) - ca.gradient(T, q)
    h += ca.gradient(V, q) + ca.gradient(D, v)
    applied = SX(0)
    if L.forces is not None:
        forces = column(L.forces)
        h, applied = h - forces, ca.dot(forces, v)
    k = _Symbols(t, q, v, SX.eye(n), v)
    rows, parts, groups = _constraints(L, k)
    width = {"phi": 1, "A": n, "a": 1, "gamma": 1}
    stack: dict[str, Any] = {key: ca.vertcat(*parts[key]) if rows else SX(0, width[key]) for key in parts}
    inputs, B = _inputs(L, n)
    start = tuple(float(L.initial.get(name, 0.0)) for name in names)
    scales = tuple(float(L.scales.get(name, 1.0)) for name in names)
    defaults = {str(s): float(value) for s, value in pairs}
    layout = Layout(
        L.name,
        names,
        names,
        inputs,
        tuple(rows),
        groups,
        (),
        defaults,
        initial=start,
        scales=scales,
        angles=(False,) * n,
        one_sided={name: (1.0, float(e), "newton") for name, e in L.one_sided.items()},
    )
    return Terms(
        layout=layout, t=t, q=q, v=v, p=p, M=M, h=ca.densify(h), B=B, N=k.N, kinetic=T, potential=V,
        dissipated=ca.dot(ca.gradient(D, v), v), applied=applied, **stack,
    )  # fmt: skip


def _check(L: Lagrangian, q: Any, v: Any, names: tuple[str, ...]) -> None:
    problems = []
    if not (q.is_valid_input() and v.is_valid_input()):
        problems.append("coordinates and velocities must be SX symbols")
    if q.numel() != v.numel():
        problems.append(f"{q.numel()} coordinates ({', '.join(names)}) but {v.numel()} velocities; one rate for each")
    if len(set(names)) < len(names):
        problems.append(f"coordinate names {names} must be unique")
    unknown = (set(L.initial) | set(L.scales)) - set(names)
    problems += [
        f"{name!r} in initial or scales is not a coordinate; coordinates: {', '.join(names)}" for name in unknown
    ]
    for name, value in L.one_sided.items():
        if name not in L.holonomic:
            problems.append(f"one-sided constraint {name!r}: no holonomic constraint has this name")
        elif not 0 <= value <= 1:
            problems.append(f"one-sided constraint {name!r}: restitution is {value}; expected a number from 0 to 1")
    shared = set(L.holonomic) & set(L.pfaffian)
    problems += [f"constraint {name!r}: the name is used by a holonomic and a Pfaffian constraint" for name in shared]
    if problems:
        raise ModelError(L.name, problems)


def _inputs(L: Lagrangian, n: int) -> tuple[tuple[str, ...], Any]:
    if isinstance(L.inputs, (dict, list, tuple)) and not L.inputs:
        return (), SX(n, 0)
    if isinstance(L.inputs, dict):
        columns = [column(entry) for entry in L.inputs.values()]
        for symbol, entry in zip(L.inputs, columns, strict=True):
            if entry.shape != (n, 1):
                text = f"input {symbol}: its column of B has shape {entry.shape}, expected ({n}, 1)"
                raise ModelError(L.name, [text])
        return tuple(str(s) for s in L.inputs), ca.sparsify(ca.horzcat(*columns))
    symbols = column(L.inputs)
    if symbols.numel() > n:
        raise ModelError(L.name, [f"{symbols.numel()} inputs for {n} coordinates; give a mapping to columns of B"])
    B = SX(n, symbols.numel())
    for i in range(symbols.numel()):
        B[i, i] = 1
    return tuple(str(symbols[i]) for i in range(symbols.numel())), B


def _constraints(L: Lagrangian, k: _Symbols) -> tuple[list[Row], dict[str, list[Any]], tuple[str, ...]]:
    rows: list[Row] = []
    parts: dict[str, list[Any]] = {"phi": [], "A": [], "a": [], "gamma": []}

    def add(name: str, phi: Any, blocks: tuple[Any, Any, Any], is_holonomic: bool) -> None:
        count = phi.shape[0]
        rows.extend(Row(name, str(i + 1) if count > 1 else "", "", is_holonomic) for i in range(count))
        for key, block in zip(parts, (phi, *blocks), strict=True):
            parts[key].append(block)

    for name, expression in L.holonomic.items():
        phi = column(expression)
        check_rows(L.name, name, phi, k, True)
        add(name, phi, holonomic(k, phi), True)
    for name, (A, a) in L.pfaffian.items():
        w = SX(A) @ k.v - column(a)
        check_rows(L.name, name, w, k, False)
        add(name, SX.zeros(w.shape[0], 1), pfaffian(k, w), False)
    return rows, parts, tuple(dict.fromkeys(row.group for row in rows))
