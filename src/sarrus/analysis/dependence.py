"""Which constraint rows depend on each other: families, circuits and rows that can go, by name.

A dependence is a vector z with Aᵀz = 0: multipliers that push on nothing. A **circuit** is a smallest set of rows that
depend on each other: leave any one of them out and the rest are independent, and every row of it follows from the
others. A **family** is a set of rows tied together by circuits; rows of different families have nothing to do with
each other. With the nullity d of a family, d of its rows can go.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from sarrus.dynamics.solution import Rank
from sarrus.dynamics.system import System
from sarrus.model.parts import Model

NOTHING = 1e-6  # entries of a unit dependence below this are not part of it (rounding of the singular vectors)
CIRCUITS = 2000  # families with more candidate circuits than this are not searched completely


@dataclass(frozen=True)
class Family:
    """Rows that depend on each other, directly or through others.

    Attributes:
        rows: their names.
        groups: the constraints that they belong to.
        nullity: how many of them can go.
        spare: rows that can go together, one choice: the latest ones written.
        circuits: the smallest dependent sets; of each, any one row follows from the others.
        complete: whether all circuits are listed, or only enough to explain every spare row.
    """

    rows: tuple[str, ...]
    groups: tuple[str, ...]
    nullity: int
    spare: tuple[str, ...]
    circuits: tuple[tuple[str, ...], ...]
    complete: bool


@dataclass(frozen=True, eq=False)
class Dependence:
    """The dependences at one state; in a planar machine without the rows out of its plane.

    Attributes:
        null: one unit column for each dependence, over all rows, in scaled rows.
        multipliers: the same in multipliers λ of the rows as written.
        families: the rows that depend on each other, by name.
    """

    null: np.ndarray
    multipliers: np.ndarray
    families: tuple[Family, ...]


def dependence(system: System, rank: Rank) -> Dependence:
    """Find families and circuits from the null space of the scaled rows."""
    names = [row.name for row in system.layout.rows]
    Z = _in_the_plane(system, rank.null)
    if not Z.shape[1]:
        return Dependence(Z, Z, ())
    pivots, basis = _fundamental(Z)
    families = []
    for rows, columns in _connected(basis):
        part = basis[:, columns]
        circuits, complete = _circuits(part, rows, [pivots[c] for c in columns])
        families.append(
            Family(
                tuple(names[i] for i in rows),
                tuple(dict.fromkeys(system.layout.rows[i].group for i in rows)),
                len(columns),
                tuple(names[i] for i in sorted(pivots[c] for c in columns)),
                tuple(tuple(names[i] for i in circuit) for circuit in circuits),
                complete,
            )
        )
    families.sort(key=lambda family: names.index(family.rows[0]))
    return Dependence(Z, Z / system.references[:, None], tuple(families))


def idle_rows(system: System, groups: Collection[str] | None = None) -> tuple[str, ...]:
    """Rows that are identically satisfied, by name; only those of some constraints if given."""
    wanted = system.groups if groups is None else groups
    return tuple(r.name for i, r in enumerate(system.layout.rows) if i not in system.kept and r.group in wanted)


def _in_the_plane(system: System, Z: np.ndarray) -> np.ndarray:
    """The dependences of a planar machine, without those of its rows out of the plane, which are no part of it."""
    if not (isinstance(system.description, Model) and system.description.planar) or not Z.shape[1]:
        return Z
    inside = np.zeros_like(Z)
    inside[list(system.kept)] = Z[list(system.kept)]
    U, s, _ = np.linalg.svd(inside, full_matrices=False)
    return U[:, s > 0.5]  # singular values are 1, or 0 for the idle rows


def _fundamental(Z: np.ndarray) -> tuple[list[int], np.ndarray]:
    """A basis of the dependences with an own row for each: the latest rows that serve well.

    Column k has 1 in row pivots[k] and 0 in the other pivots: it says how that row follows from rows that stay.
    """
    pivots: list[int] = []
    left = Z.copy()
    for wanted in (0.1, 1e-3, 0.0):
        for i in reversed(range(len(Z))):
            size = float(np.linalg.norm(left[i]))
            if len(pivots) == Z.shape[1]:
                break
            if i not in pivots and size > wanted:
                pivots.append(i)
                direction = left[i] / size
                left = left - np.outer(left @ direction, direction)
    basis = Z @ np.linalg.inv(Z[pivots])
    basis[np.abs(basis) < NOTHING * np.abs(basis).max(axis=0)] = 0.0
    return pivots, basis


def _connected(basis: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of the blocks of a matrix."""
    blocks: list[tuple[set[int], list[int]]] = []
    for c in range(basis.shape[1]):
        rows, columns = set(np.flatnonzero(basis[:, c]).tolist()), [c]
        for block in [b for b in blocks if b[0] & rows]:
            rows |= block[0]
            columns = block[1] + columns
            blocks.remove(block)
        blocks.append((rows, columns))
    return [(sorted(rows), sorted(columns)) for rows, columns in blocks]


def _circuits(basis: np.ndarray, rows: list[int], pivots: list[int]) -> tuple[list[list[int]], bool]:
    """Supports of the vectors in the span of `basis` that vanish in as many rows as they can."""
    d = basis.shape[1]
    plain = [sorted(np.flatnonzero(basis[:, k]).tolist()) for k in range(d)]
    if d == 1:
        return plain, True
    if comb(len(rows), d - 1) > CIRCUITS:
        return sorted(plain), False
    scaled = basis / np.linalg.norm(basis, axis=0)
    found: set[tuple[int, ...]] = set(map(tuple, plain))
    for zeros in combinations(rows, d - 1):
        _, s, Vt = np.linalg.svd(scaled[list(zeros)])
        if s[-1] < NOTHING:
            continue  # these rows do not single out one vector
        z = scaled @ Vt[-1]
        found.add(tuple(np.flatnonzero(np.abs(z) > NOTHING * np.abs(z).max()).tolist()))
    smallest = [x for x in found if not any(set(y) < set(x) for y in found)]
    return [list(x) for x in sorted(smallest, key=lambda x: (len(x), x))], True
