"""From the parts of a controller to its C: a generated function for the terms, and a header for what is done with them.

A controller's numbers (parameters of its machine, flags, scales, gains, set points) travel in one array, so that they
can be changed without compiling anew, and controllers of one structure share their machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from sarrus.control.asked import compiled
from sarrus.control.references import make_reference
from sarrus.control.terms import MachineTerms
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.printer import c_function
from sarrus.symbolic.algebra import SX, Function

STACK = 6  # MB that a controller may need; threads have 8, as a rule
FAST_LENGTH = 15_000  # operations: beyond it the short cut would take longer to compile than it saves


@dataclass
class Builder:
    """Collects columns, vectors and numbers by name; each name becomes a macro (SR_AT_…, SR_Y_…, SR_P_…)."""

    system: System
    columns: dict[str, Any] = field(default_factory=dict)
    vectors: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, tuple[Any, np.ndarray]] = field(default_factory=dict)
    defines: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # where each task ends among the rows of all
    tables: list[tuple[Any, np.ndarray]] = field(default_factory=list)
    fast: tuple[Any, Any, bool] | None = None  # J, command, chart of a law that is no more than sarrus_control_fast.h

    def __post_init__(self) -> None:
        """Start with what every controller needs."""
        compiled(self.system)
        self.machine = m = MachineTerms(self.system)
        for name, symbol, values in (
            ("PARAMETERS", m.s["p"], self.system.p),
            ("ON", m.on, self.system.active_rows(None)[list(self.system.kept)]),
            ("INVERSE", m.inverse, 1 / self.system.norms),
        ):
            self.numbers[name] = (symbol, np.array(values, dtype=float))
        self.number("TOLERANCE", [self.system.tolerance])
        self.number("TRUST", [self.system.fast_pivot])

    def number(self, name: str, values: Any) -> Any:
        """Symbols for numbers that may be changed later."""
        array = np.array(values, dtype=float).reshape(-1)
        symbol = SX.sym(name.lower(), array.size)
        self.numbers[name] = (symbol, array)
        return symbol

    def column(self, name: str, force: Any) -> None:
        """Forces to be turned into the mass metric and split: one column, or several."""
        self.columns[name] = ca.densify(force)

    def vector(self, name: str, values: Any) -> None:
        """Numbers computed at each state."""
        self.vectors[name] = ca.densify(values)

    def follow(self, value: Any, size: int, what: str) -> tuple[Any, Any, Any]:
        """A reference as expressions of x_d and its derivatives."""
        reference = make_reference(value, size, what)
        table, point = SX.sym("table", 3 * size), SX(size, 1)
        if reference.samples is not None:
            self.tables.append((table, reference.samples.table))  # type: ignore[attr-defined]
        if reference.point is not None:
            point = self.number(f"POINT{len(self.numbers)}", reference.point)
        return reference.expressions(self.machine.s["t"], table, point)

    @property
    def values(self) -> np.ndarray:
        """All numbers, in the order in which the code reads them."""
        return np.concatenate([values for _, values in self.numbers.values()])

    def where(self, name: str) -> slice:
        """Where some numbers stand."""
        at = 0
        for key, (_, values) in self.numbers.items():
            if key == name:
                return slice(at, at + values.size)
            at += values.size
        raise KeyError(name)

    # --- C ---------------------------------------------------------------------------------------------------------
    def source(self, header: str, call: str, step: str = "") -> str:
        """C text of the controller.

        Args:
            header: sarrus_control_<header>.h does the work.
            call: statement that fills the stack s from the split x, the vectors y and the numbers p.
            step: the same for a controller with memory, which also has lam and memory; none if empty.
        """
        values, places, gamma = self.machine.rows()
        widths = {name: force.shape[1] for name, force in self.columns.items()}
        sizes = {name: vector.numel() for name, vector in self.vectors.items()}
        layout = self.system.layout
        defines = {
            "NQ": layout.nq, "NV": layout.nv, "NU": layout.nu, "K": len(self.system.kept), "NS": len(places),
            "COLS": sum(widths.values()), "NY": sum(sizes.values()), "NR": sum(3 * _size(t) for _, t in self.tables),
            **_offsets("AT", widths), **_offsets("Y", sizes),
            **_offsets("P", {name: x.size for name, (_, x) in self.numbers.items()}), **self.defines,
        }  # fmt: skip
        defines["BIG"] = big = max(defines["NV"], defines["K"], defines["NU"], *widths.values(), 1)
        defines["SLIM"] = slim = max(defines["NU"], widths.get("J", 0), 1)
        self._check_size(defines["NV"] * (defines["K"] + defines["COLS"]) + 2 * big**2 + 5 * big * slim, defines["K"])
        forces = [self.machine.hat_columns(force) for force in self.columns.values()]
        outputs = [values, gamma, _flat(forces), ca.densify(ca.vertcat(*self.vectors.values(), SX(0, 1)))]
        s = self.machine.s
        inputs = [s["t"], s["q"], s["v"], _stack([table for table, _ in self.tables]), self.block()]
        function = Function("sr_control_terms", inputs, ca.cse(outputs))
        lines = ['#include "sarrus_real.h"', *(f"#define SR_{key} {value}" for key, value in defines.items())]
        lines += [c_table("int sr_s_row", [k for k, _ in places]), c_table("int sr_s_col", [i for _, i in places])]
        lines += [
            c_table(f"real sr_samples{k}", [repr(float(x)) for x in np.ravel(table)])
            for k, (_, table) in enumerate(self.tables)
        ]
        lines += ['#include "sarrus_control.h"', '#include "sarrus_samples.h"']
        lines.append(c_function(function, ["t", "q", "v", "r", "p"], ["s", "gamma", "columns", "y"]))
        fast = self._fast_lines(inputs) if self.fast is not None else []
        if fast or header == "task":
            lines.append(c_table("int sr_task_end", self.ends))
        lines += [*self.texts, f'#include "sarrus_control_{header}.h"', *self._prepare()]
        lines += [*fast, *_entry("law", call, bool(fast))]
        return "\n".join([*lines, *(_entry("step", step) if step else []), ""])

    def _check_size(self, count: int, rows: int) -> None:
        """Refuse machines whose numbers do not fit on a stack: the code allocates nothing."""
        size = 8e-6 * (count + 3 * rows**2)
        if size > STACK:
            raise StateError(
                f"{self.system.name}: a controller for {self.system.layout.nv} velocities and {rows} constraint rows "
                f"needs {size:.3g} MB of stack, expected at most {STACK} MB; control a smaller model of it "
                "(coordinates are matched by name), or write the law as sr.control.Law"
            )

    def _fast_lines(self, inputs: list[Any]) -> list[str]:
        """The short cut of sarrus_control_fast.h, unless its code would be too long."""
        assert self.fast is not None
        K, right, trust = self.machine.tasks(*self.fast)
        outputs = [ca.reshape(ca.densify(K), K.numel(), 1), ca.densify(right), ca.densify(trust)]
        function = Function("sr_control_fast", inputs, ca.cse(outputs))
        if function.n_instructions() > FAST_LENGTH:
            return []
        text = c_function(function, ["t", "q", "v", "r", "p"], ["K", "b", "trust"])
        return [text, '#include "sarrus_control_fast.h"']

    def plain_source(self, u: Any) -> str:
        """C text of a law that is an expression itself."""
        s, layout = self.machine.s, self.system.layout
        function = Function("sr_expression", [s["t"], s["q"], s["v"], self.block()], [ca.cse(ca.densify(u))])
        sizes = {"NQ": layout.nq, "NV": layout.nv, "NU": layout.nu}
        return "\n".join([
            '#include "sarrus_real.h"', *(f"#define SR_{key} {value}" for key, value in sizes.items()),
            '#include "sarrus_types.h"', c_function(function, ["t", "q", "v", "p"], ["u"]),
            f"SR_FN long sr_law({_ARGUMENTS['law']}) {{",
            f"  {_REFUSE}",
            "  sr_expression(t, q, v, p, u);",
            "  return sr_lost(u, SR_NU) != 0;",
            "}",
            *_exported("law", _ARGUMENTS["law"]),
            "",
        ])  # fmt: skip

    def block(self) -> Any:
        """All numbers as symbols."""
        return _stack([symbol for symbol, _ in self.numbers.values()])

    def _prepare(self) -> list[str]:
        lookups, at = [], 0
        for k, (_, table) in enumerate(self.tables):
            lookups.append(f"  sr_lookup(sr_samples{k}, {len(table)}, {_size(table)}, t[0], r + {at});")
            at += 3 * _size(table)
        return [
            "SR_FN void sr_read(const real *t, real *r) {",
            "  (void)t, (void)r;",
            *lookups,
            "}",
            "SR_FN void sr_prepare(const real *t, const real *q, const real *v, const real *p, sr_split *x, real *y) {",
            "  real s[SR_DIM(SR_NS)], gamma[SR_DIM(SR_K)], r[SR_DIM(SR_NR)];",
            "  sr_read(t, r);",
            "  sr_control_terms(t, q, v, r, p, s, gamma, SR_COLUMN(x, 0), y);",
            "  sr_split_rows(s, gamma, p[SR_P_TOLERANCE], x);",
            "}",
        ]


_ARGUMENTS = {
    "law": "const real *t, const real *q, const real *v, const real *p, real *u",
    "step": "const real *t, const real *q, const real *v, const real *p, const real *lam, real *memory, real *u",
}

_REFUSE = "if (sr_lost(t, 1) + sr_lost(q, SR_NQ) + sr_lost(v, SR_NV) != 0) return 1;"


def _entry(name: str, call: str, fast: bool = False) -> list[str]:
    """The law as device code, and where it is called from outside."""
    return [
        f"SR_FN long sr_{name}({_ARGUMENTS[name]}) {{",
        "  sr_split x;",
        "  sr_stack s;",
        "  real y[SR_DIM(SR_NY)];",
        f"  {_REFUSE}",
        *(["  if (sr_fast_inputs(t, q, v, p, &s)) return sr_inputs(&s, u);"] if fast else []),
        "  sr_prepare(t, q, v, p, &x, y);",
        f"  {call}",
        "  return sr_inputs(&s, u);",
        "}",
        *_exported(name, _ARGUMENTS[name]),
    ]


def _exported(name: str, arguments: str) -> list[str]:
    names = ", ".join(part.split()[-1].lstrip("*") for part in arguments.split(","))
    head = f"SR_EXPORT long sarrus_{name}({arguments})"
    return ["#ifndef __CUDACC__", f"{head} {{ return sr_{name}({names}); }}", "#endif"]


def mapped(source: str, own: System, plant: System) -> str:
    """The controller's C for another machine whose coordinates include those that the controller knows, by name.

    Raises:
        UnknownNameError: naming what the other machine does not have.
        StateError: if a name means something else there.
    """
    a, b = own.layout, plant.layout
    tables = []
    for kind, mine in (("q", a.q_names), ("v", a.v_names), ("u", a.u_names)):
        index = []
        for name in mine:
            where = b.find(name, kind)
            if where.stop - where.start != 1:
                raise StateError(
                    f"{name!r} is one coordinate of {a.name}, but {where.stop - where.start} of {b.name}; "
                    "expected a machine whose coordinates and inputs mean the same"
                )
            index.append(where.start)
        tables.append(c_table(f"int from_{kind}", index))
    return "\n".join([
        source, *tables,
        f"SR_FN long sr_mapped({_ARGUMENTS['law']}) {{",
        "  real mq[SR_DIM(SR_NQ)], mv[SR_DIM(SR_NV)], mu[SR_DIM(SR_NU)];",
        "  for (int i = 0; i < SR_NQ; i++) mq[i] = q[from_q[i]];",
        "  for (int i = 0; i < SR_NV; i++) mv[i] = v[from_v[i]];",
        "  const long code = sr_law(t, mq, mv, p, mu);",
        "  for (int i = 0; i < SR_NU; i++) u[from_u[i]] = mu[i];",
        "  return code;",
        "}",
        *_exported("mapped", _ARGUMENTS["law"]),
        "",
    ])  # fmt: skip


def _offsets(prefix: str, sizes: dict[str, int]) -> dict[str, int]:
    out, at = {}, 0
    for name, size in sizes.items():
        out[f"{prefix}_{name}"] = at
        at += size
    return out


def _size(table: np.ndarray) -> int:
    return (table.shape[1] - 1) // 3


def _stack(symbols: Sequence[Any]) -> Any:
    return ca.vertcat(*symbols) if symbols else SX(0, 1)


def _flat(matrices: Sequence[Any]) -> Any:
    columns = [ca.reshape(m, m.numel(), 1) for m in matrices]
    return ca.densify(ca.vertcat(*columns)) if columns else SX(0, 1)


def c_table(what: str, values: Sequence[Any]) -> str:
    """A constant array in C."""
    return f"SR_TABLE {what}[] = {{{', '.join(map(str, values)) or '0'}}};"
