"""Wanted constraint forces of a controller: which multipliers, and what they are to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from sarrus.control.builder import Builder
from sarrus.errors import StateError, UnknownNameError
from sarrus.symbolic.algebra import SX


def add_forces(builder: Builder, forces: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Vector GOAL (λ_d in the scaled rows) with the tables of the rows; the names of these rows.

    Args:
        builder: of the controller.
        forces: constraint or row name -> reference.
    """
    layout, kept = builder.system.layout, list(builder.system.kept)
    goals, rows = [], []
    for name, value in (forces or {}).items():
        where = _rows(builder, name)
        target = builder.follow(value, len(where), f"forces of {name!r}")[0]
        for k, row in enumerate(where):
            if row in rows:
                raise StateError(f"forces: the row {layout.rows[row].name!r} is given twice")
            rows.append(row)
            goals.append(target[k] / builder.machine.inverse[kept.index(row)])
    builder.vector("GOAL", ca.vertcat(*goals) if goals else SX(0, 1))
    builder.defines["NF"] = len(rows)
    for table, index in (("sr_wanted", [kept.index(r) for r in rows]), ("sr_wanted_row", rows)):
        builder.texts.append(f"SR_TABLE int {table}[] = {{{', '.join(map(str, index)) or '0'}}};")
    return tuple(layout.rows[r].name for r in rows)


def _rows(builder: Builder, name: str) -> list[int]:
    """The rows that a name means, without those that are always satisfied (out of the plane of a planar machine)."""
    layout, kept = builder.system.layout, builder.system.kept
    by_row = [k for k, row in enumerate(layout.rows) if row.name == name]
    if name in layout.groups:
        found = layout.group_rows(name)
        by_row = list(range(found.start, found.stop))
    if not by_row:
        raise UnknownNameError("constraint or row", name, [*layout.groups, *(row.name for row in layout.rows)])
    out = [k for k in by_row if k in kept]
    if not out:
        raise StateError(f"forces of {name!r}: this row carries no force (it is always satisfied)")
    return out
