"""Wanted constraint forces of a controller: which multipliers, and what they are to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from sarrus.control.asked import force_rows, mapping
from sarrus.control.builder import Builder, c_table
from sarrus.errors import StateError
from sarrus.symbolic.algebra import SX


def add_forces(builder: Builder, forces: Mapping[str, Any] | None, measured: bool = False) -> tuple[str, ...]:
    """Vector GOAL (λ_d in the scaled rows) with the tables of the rows; the names of these rows.

    Args:
        builder: of the controller.
        forces: constraint or row name -> reference.
        measured: whether the law also reads measured multipliers, of all rows.
    """
    layout, kept = builder.system.layout, list(builder.system.kept)
    goals, rows = [], []
    for name, value in mapping("forces", forces, "names of constraints to references").items():
        where = force_rows(builder.system, name)
        rows_named = ", ".join(layout.rows[k].name for k in where)
        target = builder.follow(value, len(where), f"forces of {name!r} (rows {rows_named})")[0]
        for k, row in enumerate(where):
            if row in rows:
                raise StateError(f"forces: the row {layout.rows[row].name!r} is given twice")
            rows.append(row)
            goals.append(target[k] / builder.machine.inverse[kept.index(row)])
    builder.vector("GOAL", ca.vertcat(*goals) if goals else SX(0, 1))
    builder.defines["NF"] = len(rows)
    builder.texts.append(c_table("int sr_wanted", [kept.index(r) for r in rows]))
    if measured:
        builder.texts.append(c_table("int sr_wanted_row", rows))
    return tuple(layout.rows[r].name for r in rows)
