"""Static sparse LDLᵀ on symbolic scalars: the pattern is known when code is generated, so no zero is ever touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca

Entries = dict[tuple[int, int], Any]


def entries(matrix: Any) -> Entries:
    """Structurally nonzero entries of an SX matrix."""
    matrix = ca.sparsify(matrix)
    rows, columns = matrix.sparsity().get_triplet()
    values = matrix.nonzeros()
    return {(i, j): value for i, j, value in zip(rows, columns, values, strict=True)}


def elimination_order(pattern: Iterable[tuple[int, int]], n: int) -> list[int]:
    """The order with least fill of two: last row first (none for a tree's mass matrix), and minimum degree."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for i, j in pattern:
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    backwards = list(range(n - 1, -1, -1))
    if _fill(neighbours, backwards) == 0:
        return backwards
    return min((_minimum_degree(neighbours), backwards), key=lambda order: _fill(neighbours, order))


def _fill(neighbours: list[set[int]], order: list[int]) -> int:
    graph = [set(s) for s in neighbours]
    added = 0
    for k in order:
        near = graph[k]
        for i in near:
            new = near - graph[i] - {i}
            added += len(new)
            graph[i] |= new
            graph[i].discard(k)
    return added


def _minimum_degree(neighbours: list[set[int]]) -> list[int]:
    graph = [set(s) for s in neighbours]
    left, order = set(range(len(graph))), []
    while left:
        k = min(left, key=lambda i: (len(graph[i]), i))
        left.discard(k)
        order.append(k)
        for i in graph[k]:
            graph[i] |= graph[k] - {i}
            graph[i].discard(k)
    return order


@dataclass(frozen=True)
class Factor:
    """A = L D Lᵀ with unit L, in elimination order; `lower[k]` lists (i, L_ik) below the pivot of k."""

    order: list[int]
    lower: dict[int, list[tuple[int, Any]]]
    pivots: dict[int, Any]

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


def factorise(matrix: Entries, n: int) -> Factor:
    """Symbolic LDLᵀ of a symmetric positive definite matrix given by its nonzero entries."""
    order = elimination_order(matrix, n)
    rows: list[dict[int, Any]] = [{} for _ in range(n)]
    for (i, j), value in matrix.items():
        rows[i][j] = value
    lower: dict[int, list[tuple[int, Any]]] = {}
    pivots: dict[int, Any] = {}
    rank = {k: position for position, k in enumerate(order)}
    for k in order:
        pivot = rows[k].pop(k)
        later = sorted((i for i in rows[k] if rank[i] > rank[k]), key=rank.__getitem__)
        pivots[k] = pivot
        inverse = 1 / pivot
        lower[k] = [(i, rows[k][i] * inverse) for i in later]
        for index, (i, factor) in enumerate(lower[k]):
            for j in later[: index + 1]:
                update = factor * rows[k][j]
                value = rows[i][j] - update if j in rows[i] else -update
                rows[i][j] = value
                rows[j][i] = value
    return Factor(order, lower, pivots)
