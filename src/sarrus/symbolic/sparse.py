"""Static sparse LDLᵀ on symbolic scalars: the pattern is known when code is generated, so no zero is ever touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

Entries = dict[tuple[int, int], Any]


def entries(matrix: Any) -> Entries:
    """Structurally nonzero entries of an SX matrix."""
    matrix = ca.sparsify(matrix)
    rows, columns = matrix.sparsity().get_triplet()
    values = matrix.nonzeros()
    return {(i, j): value for i, j, value in zip(rows, columns, values, strict=True)}


def minimum_degree(
    pattern: Iterable[tuple[int, int]], n: int, may_go: Callable[[int], bool] = lambda k: True
) -> list[int]:
    """Elimination order: always an unknown with fewest neighbours, last ones first (the leaves of a tree).

    `may_go(k)` is asked before k is eliminated; where it says no to all that are left, they go as they come.
    """
    graph: list[set[int]] = [set() for _ in range(n)]
    for i, j in pattern:
        if i != j:
            graph[i].add(j)
            graph[j].add(i)
    left, order = set(range(n)), []
    while left:
        ranking = sorted(left, key=lambda i: (len(graph[i]), -i))
        k = next((i for i in ranking if may_go(i)), ranking[0])
        left.discard(k)
        order.append(k)
        for i in graph[k]:
            graph[i] |= graph[k] - {i}
            graph[i].discard(k)
    return order


def saddle_order(pattern: Iterable[tuple[int, int]], n: int, m: int, samples: list[np.ndarray]) -> list[int]:
    """Elimination order of K = [[M, Aᵀ], [A, 0]]: velocities 0 … n-1, then rows.

    A row may go once the velocities already gone support it: its pivot -(a M⁻¹ aᵀ) over those velocities must stay
    away from zero in every sample (values of K with the rows scaled to about 1). Local loops are so eliminated
    locally, and the cost grows with the number of loops instead of its cube.
    """
    reduced = [sample.copy() for sample in samples]

    def eliminate(k: int) -> None:
        for K in reduced:
            if K[k, k] != 0.0:
                K -= np.outer(K[:, k], K[k, :]) / K[k, k]
            K[k, :] = K[:, k] = 0.0

    def may_go(k: int) -> bool:
        if k >= n and any(-K[k, k] < _SUPPORT for K in reduced):
            return False
        eliminate(k)
        return True

    return minimum_degree(pattern, n + m, may_go)


# Smallest pivot, relative to the row's squared reference, with which a row is eliminated early. Smaller ones save
# little (nothing on single loops, 10 % on a chain of 40) and leave the fast path untrusted more often.
_SUPPORT = 0.1


@dataclass(frozen=True)
class Factor:
    """A = L D Lᵀ with unit L; `lower[k]` lists (i, L_ik) below the pivot of k, `inverse` holds 1/D."""

    order: list[int]
    lower: dict[int, list[tuple[int, Any]]]
    pivots: dict[int, Any]
    inverse: dict[int, Any]

    def forward(self, b: dict[int, Any]) -> dict[int, Any]:
        """L⁻¹ b for a sparse right-hand side."""
        x = dict(b)
        for k in self.order:
            if k in x:
                for i, value in self.lower[k]:
                    x[i] = x[i] - value * x[k] if i in x else -(value * x[k])
        return x

    def backward(self, b: dict[int, Any]) -> dict[int, Any]:
        """L⁻ᵀ b."""
        x = dict(b)
        for k in reversed(self.order):
            for i, value in self.lower[k]:
                if i in x:
                    x[k] = x[k] - value * x[i] if k in x else -(value * x[i])
        return x

    def solve(self, b: dict[int, Any]) -> dict[int, Any]:
        """A⁻¹ b."""
        x = self.forward(b)
        return self.backward({k: value * self.inverse[k] for k, value in x.items()})


def factorise(matrix: Entries, order: list[int]) -> Factor:
    """Symbolic LDLᵀ of a symmetric matrix given by its nonzero entries, without pivoting, in the given order."""
    rows: list[dict[int, Any]] = [{} for _ in order]
    for (i, j), value in matrix.items():
        rows[i][j] = value
    lower: dict[int, list[tuple[int, Any]]] = {}
    pivots: dict[int, Any] = {}
    inverses: dict[int, Any] = {}
    rank = {k: position for position, k in enumerate(order)}
    for k in order:
        pivots[k] = rows[k].pop(k, 0.0)
        inverses[k] = 1 / pivots[k]
        later = sorted((i for i in rows[k] if rank[i] > rank[k]), key=rank.__getitem__)
        lower[k] = [(i, rows[k][i] * inverses[k]) for i in later]
        for index, (i, factor) in enumerate(lower[k]):
            for j in later[: index + 1]:
                update = factor * rows[k][j]
                rows[i][j] = rows[j][i] = rows[i][j] - update if j in rows[i] else -update
    return Factor(order, lower, pivots, inverses)
