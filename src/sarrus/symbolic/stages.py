"""The constrained acceleration in stages, each a function whose code is generated without a loop.

    terms    M, A, b = B u + f - h, γ (only their nonzero entries); rows of inactive groups are set to zero
    place    M, A, Φ, a at a configuration, for corrections of position and velocity
    fast     [[M, Aᵀ], [A, -inactive]] (v̇, -λ) = (b, γ) by static sparse LDLᵀ, with the pivots of the rows

`fast` is right while no row's pivot is small against the row's fixed reference. Otherwise, in the mass metric of
design section 5 (sheet 2.4 (7), section 4), with M = L D Lᵀ:

    factor   L, D⁻¹, Y = L⁻¹Aᵀ, z = L⁻¹b
    (at run time, `kernel/include/sarrus_solve.h`: rank-revealing solve for λ and x = D⁻¹(z + Yλ))
    finish   v̇ = L⁻ᵀ x
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from sarrus.symbolic.algebra import SX, Function
from sarrus.symbolic.sparse import Entries, Factor, entries, factorise, minimum_degree, saddle_order
from sarrus.symbolic.terms import Terms


@dataclass(frozen=True)
class Stages:
    """The functions that do not depend on an elimination order of the whole, and the static patterns.

    Attributes:
        terms: (t, q, v, u, f, p, active) -> (mass, jac, b, gamma).
        place: (t, q, p, active) -> (mass, jac, phi, a).
        factor: (mass, jac, b) -> (lower, dinv, y, z).
        finish: (lower, x) -> vdot.
        kept: indices of the rows that are not structurally zero; all row vectors above have this length.
        mass_index: (i, j) of each stored entry of M, i >= j.
        jac_index: (kept row, velocity) of each stored entry of A.
        y_index: (velocity, kept row) of each stored entry of Y.
    """

    terms: ca.Function
    place: ca.Function
    factor: ca.Function
    finish: ca.Function
    kept: tuple[int, ...]
    mass_index: tuple[tuple[int, int], ...]
    jac_index: tuple[tuple[int, int], ...]
    y_index: tuple[tuple[int, int], ...]

    def rows(self) -> ca.Function:
        """(t, q, v, u, f, p, active) -> (dinv, y): the rows in the mass metric, for their reference norms."""
        inputs = self.terms.sx_in()
        mass, jac, b, _ = self.terms(*inputs)
        _, dinv, y, _ = self.factor(mass, jac, b)
        return Function("rows", inputs, [dinv, y])


def build_stages(terms: Terms) -> Stages:
    """Derive the stages from the terms of a machine, all but the fast one."""
    n, nu = terms.layout.nv, terms.layout.nu
    A = entries(terms.A)
    kept = tuple(sorted({i for i, _ in A}))
    place = {row: i for i, row in enumerate(kept)}
    jac = {(place[i], k): value for (i, k), value in sorted(A.items())}
    mass = {(i, j): value for (i, j), value in sorted(entries(terms.M).items()) if i >= j}
    u, f, active = SX.sym("u", nu), SX.sym("f", n), SX.sym("on", len(kept))
    b = terms.B @ u + f - terms.h if nu else f - terms.h
    metric = [_column(list(mass.values())), _column([active[i] * value for (i, _), value in jac.items()])]
    phi, a, gamma = (
        _column([active[i] * x[row] for i, row in enumerate(kept)]) for x in (terms.phi, terms.a, terms.gamma)
    )
    first = Function(
        "sr_terms", [terms.t, terms.q, terms.v, u, f, terms.p, active], ca.cse([*metric, ca.densify(b), gamma])
    )
    place = Function("sr_place", [terms.t, terms.q, terms.p, active], ca.cse([*metric, phi, a]))
    symbols = _Symbols(n, len(kept), tuple(mass), tuple(jac))
    factor, finish, y_index = _slow(symbols)
    return Stages(first, place, factor, finish, kept, tuple(mass), tuple(jac), y_index)


class _Symbols:
    """Symbols for what `terms` computes, so that the later stages read arrays."""

    def __init__(self, n: int, m: int, mass: tuple[tuple[int, int], ...], jac: tuple[tuple[int, int], ...]):
        self.n, self.m = n, m
        self.mass_vector, self.jac_vector = SX.sym("mass", len(mass)), SX.sym("jac", len(jac))
        self.b, self.gamma = SX.sym("b", n), SX.sym("g", m)
        self.jac: Entries = {key: self.jac_vector[e] for e, key in enumerate(jac)}
        self.mass: Entries = {}
        for e, (i, j) in enumerate(mass):
            self.mass[i, j] = self.mass[j, i] = self.mass_vector[e]


def _column(values: list[Any]) -> Any:
    return ca.densify(ca.vertcat(*values)) if values else SX(0, 1)


def build_fast(stages: Stages, n: int, samples: list[np.ndarray]) -> ca.Function:
    """The fast stage: (mass, jac, b, gamma, active, reference) -> (vdot, lam, pivots of rows, of velocities).

    Args:
        stages: the other stages.
        n: number of velocities.
        samples: values of [[M, Aᵀ], [A, 0]] with scaled rows, by which the elimination order is chosen.
    """
    m = len(stages.kept)
    s = _Symbols(n, m, stages.mass_index, stages.jac_index)
    active, reference = SX.sym("on", m), SX.sym("ref", m)  # reference: squared row norms
    K: Entries = dict(s.mass)
    for (i, k), value in s.jac.items():
        K[n + i, k] = K[k, n + i] = value
    for i in range(m):  # an inactive row is zero: this makes its multiplier zero and its pivot ordinary
        K[n + i, n + i] = (active[i] - 1) * reference[i]
    factor = factorise(K, saddle_order(K, n, m, samples))
    x = factor.solve({k: s.b[k] for k in range(n)} | {n + i: s.gamma[i] for i in range(m)})
    outputs = [
        _column([x[k] for k in range(n)]),
        _column([-x[n + i] for i in range(m)]),
        _column([-factor.pivots[n + i] for i in range(m)]),
        _column([factor.pivots[k] for k in range(n)]),
    ]
    inputs = [s.mass_vector, s.jac_vector, s.b, s.gamma, active, reference]
    return Function("sr_fast", inputs, ca.cse(outputs))


def _slow(s: _Symbols) -> tuple[ca.Function, ca.Function, tuple[tuple[int, int], ...]]:
    n, m = s.n, s.m
    factor = factorise(s.mass, minimum_degree(s.mass, n))
    z = factor.forward({k: s.b[k] for k in range(n)})
    columns = [factor.forward({k: value for (i, k), value in s.jac.items() if i == row}) for row in range(m)]
    y_index = tuple((k, i) for i, column in enumerate(columns) for k in sorted(column))
    lower = [value for k in factor.order for _, value in factor.lower[k]]
    outputs = [
        _column(lower),
        _column([factor.inverse[k] for k in range(n)]),
        _column([columns[i][k] for k, i in y_index]),
        _column([z[k] for k in range(n)]),
    ]
    first = Function("sr_factor", [s.mass_vector, s.jac_vector, s.b], ca.cse(outputs))
    return first, _finish(n, factor), y_index


def _finish(n: int, factor: Factor) -> ca.Function:
    symbols, x = SX.sym("l", sum(len(v) for v in factor.lower.values())), SX.sym("x", n)
    index = iter(range(symbols.numel()))
    lower = {k: [(i, symbols[next(index)]) for i, _ in factor.lower[k]] for k in factor.order}
    vdot = Factor(factor.order, lower, {}, {}).backward({k: x[k] for k in range(n)})
    return Function("sr_finish", [symbols, x], [_column([vdot[k] for k in range(n)])])
