"""The C file of one machine: sizes, tables, generated stages, then the headers that do the rest."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from sarrus.kernel.printer import c_function
from sarrus.symbolic.algebra import Function
from sarrus.symbolic.stages import Stages
from sarrus.symbolic.terms import Terms

_STAGES = {
    "terms": (["t", "q", "v", "u", "f", "p", "on"], ["mass", "jac", "b", "gamma"]),
    "place": (["t", "q", "p", "on"], ["mass", "jac", "phi", "a"]),
    "fast": (["mass", "jac", "b", "gamma", "on", "reference"], ["vdot", "lam", "pivots", "inertia"]),
    "factor": (["mass", "jac", "b"], ["lower", "dinv", "y", "z"]),
    "finish": (["lower", "x"], ["vdot"]),
}


def machine_source(terms: Terms, stages: Stages, fast: ca.Function) -> str:
    """C text of the whole machine; the same for CPU and GPU."""
    layout = terms.layout
    sizes = {
        "SR_NQ": layout.nq,
        "SR_NV": layout.nv,
        "SR_NU": layout.nu,
        "SR_NP": len(layout.parameters),
        "SR_M": layout.m,
        "SR_K": len(stages.kept),
        "SR_NM": stages.terms.numel_out(0),
        "SR_NA": stages.terms.numel_out(1),
        "SR_NL": stages.factor.numel_out(0),
        "SR_NY": len(stages.y_index),
        "SR_RUBBING": len(layout.rubbing),
    }
    parts = ['#include "sarrus_real.h"', *(f"#define {key} {value}" for key, value in sizes.items())]
    parts.append(_table("sr_kept", stages.kept))
    parts.append(_table("sr_y_row", [k for k, _ in stages.y_index]))
    parts.append(_table("sr_y_col", [i for _, i in stages.y_index]))
    parts.append(_table("sr_a_row", [i for i, _ in stages.jac_index]))
    parts.append(_table("sr_a_col", [k for _, k in stages.jac_index]))
    functions = {
        "terms": stages.terms,
        "place": stages.place,
        "fast": fast,
        "factor": stages.factor,
        "finish": stages.finish,
    }
    parts += [c_function(functions[name], *arguments) for name, arguments in _STAGES.items()]
    if layout.rubbing:
        parts.append(_table("sr_rubbing_row", [stages.kept.index(row) for row in layout.rubbing_rows]))
        parts.append(c_function(_drag(terms), ["t", "q", "v", "p"], ["drag"]))
    parts += ['#include "sarrus_solve.h"', "#ifndef __CUDACC__"]
    parts.append(_table("sr_m_row", [i for i, _ in stages.mass_index]))
    parts.append(_table("sr_m_col", [j for _, j in stages.mass_index]))
    parts += ['#include "sarrus_host.h"', "#endif", ""]
    return "\n".join(parts)


def _drag(terms: Terms) -> ca.Function:
    """The friction of each contact for a normal force of 1 N, one after the other."""
    return Function("sr_drag", [terms.t, terms.q, terms.v, terms.p], [ca.densify(ca.vec(terms.drag))])


def _table(name: str, values: Sequence[int]) -> str:
    return f"SR_TABLE int {name}[] = {{{', '.join(map(str, values)) or '0'}}};"
