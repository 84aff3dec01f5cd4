"""The constrained acceleration in three stages, each a function whose code is generated without a loop.

With M = L D Lᵀ (L unit, D diagonal), in the mass metric of design section 5 (sheet 2.4 (7), (10) and section 4):

    terms    Y = L⁻¹Aᵀ, z = L⁻¹(B u + f - h), γ,   rows of inactive groups set to zero
    fast     S = YᵀD⁻¹Y + diag of the inactive, λ = S⁻¹(γ - YᵀD⁻¹z), x = D⁻¹(z + Yλ), pivots of S
    finish   v̇ = L⁻ᵀ x

`fast` is right while no pivot of S is small against the rows' reference; otherwise the run-time rank-revealing solve
of `kernel/include/sarrus_solve.h` computes λ and x from the same L, D, Y, z, γ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from sarrus.symbolic.algebra import SX
from sarrus.symbolic.sparse import entries, factorise
from sarrus.symbolic.terms import Terms


@dataclass(frozen=True)
class Stages:
    """The three functions and the static pattern of Y.

    Attributes:
        terms: (t, q, v, u, f, p, active) -> (lower, dinv, y, z, gamma).
        fast: (dinv, y, z, gamma, active, reference) -> (lam, x, pivots); reference = squared row norms.
        finish: (lower, x) -> vdot.
        kept: indices of the rows that are not structurally zero; all row vectors above have this length.
        y_index: (velocity, kept row) of each stored entry of Y.
    """

    terms: ca.Function
    fast: ca.Function
    finish: ca.Function
    kept: tuple[int, ...]
    y_index: tuple[tuple[int, int], ...]

    @property
    def instructions(self) -> int:
        """Arithmetic operations of the whole fast path."""
        return sum(f.n_instructions() for f in (self.terms, self.fast, self.finish))


def build_stages(terms: Terms) -> Stages:
    """Derive the stages from the terms of a machine."""
    n, nu = terms.layout.nv, terms.layout.nu
    A = entries(terms.A)
    kept = tuple(sorted({i for i, _ in A}))
    place = {row: i for i, row in enumerate(kept)}
    m = len(kept)
    u, f, active = SX.sym("u", nu), SX.sym("f", n), SX.sym("on", m)
    factor = factorise(entries(terms.M), n)
    rhs = ca.densify(terms.B @ u + f - terms.h) if nu else ca.densify(f - terms.h)
    z = factor.forward({k: rhs[k] for k in range(n)})
    columns = [
        factor.forward({j: active[place[row]] * value for (i, j), value in A.items() if i == row}) for row in kept
    ]
    y_index = tuple((k, i) for i, column in enumerate(columns) for k in sorted(column))
    y = [columns[i][k] for k, i in y_index]
    gamma = [active[i] * terms.gamma[row] for i, row in enumerate(kept)]
    lower = [value for k in factor.order for _, value in factor.lower[k]]
    dinv = [1 / factor.pivots[k] for k in range(n)]
    outputs = [_column(x) for x in (lower, dinv, y, [z[k] for k in range(n)], gamma)]
    inputs = [terms.t, terms.q, terms.v, u, f, terms.p, active]
    first = ca.Function("sr_terms", inputs, ca.cse(outputs))
    fast = _fast(n, m, y_index)
    finish = _finish(n, factor)
    return Stages(first, fast, finish, kept, y_index)


def _column(values: list[Any]) -> Any:
    return ca.densify(ca.vertcat(*values)) if values else SX(0, 1)


def _fast(n: int, m: int, y_index: tuple[tuple[int, int], ...]) -> ca.Function:
    dinv, y, z = SX.sym("d", n), SX.sym("y", len(y_index)), SX.sym("z", n)
    gamma, active, reference = SX.sym("g", m), SX.sym("on", m), SX.sym("ref", m)
    by_row: list[dict[int, Any]] = [{} for _ in range(m)]
    for index, (k, i) in enumerate(y_index):
        by_row[i][k] = y[index]
    weighted = [{k: value * dinv[k] for k, value in row.items()} for row in by_row]
    S = {}
    for i in range(m):
        for j in range(i + 1):
            shared = [k for k in by_row[i] if k in by_row[j]]
            if shared:
                S[i, j] = S[j, i] = sum(weighted[i][k] * by_row[j][k] for k in shared)
        S[i, i] += (1 - active[i]) * reference[i]
    factor = factorise(S, m)
    rhs = {i: gamma[i] - sum(value * z[k] for k, value in weighted[i].items()) for i in range(m)}
    forward = factor.forward(rhs)
    lam = factor.backward({i: forward[i] / factor.pivots[i] for i in range(m)})
    x = [z[k] for k in range(n)]
    for i in range(m):
        for k, value in by_row[i].items():
            x[k] = x[k] + value * lam[i]
    outputs = [
        _column([lam[i] for i in range(m)]),
        _column([dinv[k] * x[k] for k in range(n)]),
        _column([factor.pivots[i] for i in range(m)]),
    ]
    return ca.Function("sr_fast", [dinv, y, z, gamma, active, reference], ca.cse(outputs))


def _finish(n: int, factor: Any) -> ca.Function:
    count = sum(len(v) for v in factor.lower.values())
    lower, x = SX.sym("l", count), SX.sym("x", n)
    index = iter(range(count))
    symbolic = type(factor)(
        factor.order, {k: [(i, lower[next(index)]) for i, _ in factor.lower[k]] for k in factor.order}, {}
    )
    vdot = symbolic.backward({k: x[k] for k in range(n)})
    return ca.Function("sr_finish", [lower, x], [_column([vdot[k] for k in range(n)])])
