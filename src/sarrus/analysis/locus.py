"""Curves on a surface of configurations along which a matrix is singular.

The matrix has two blocks: constraint rows of constant rank, of which as many combinations are taken as are independent,
and rows of inputs, outputs or coordinates that complete them to a square one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sarrus.analysis.roles import Roles, evidence, signed
from sarrus.analysis.surface import Spot, Surface
from sarrus.analysis.tracing import Sample

STEP = 1e-5  # of central differences, in units of the scales


@dataclass(frozen=True, eq=False)
class Square:
    """A square matrix on a surface, whose determinant is the question.

    Attributes:
        surface: where.
        rows: all rows at a spot, the constraints' first.
        first: how many of them are constraints'.
        rank: how many of those are independent.
        mix: combinations of the remaining rows, one column for each that counts.
        like: independent combinations of the constraints' rows somewhere, for the sign of others.
    """

    surface: Surface
    rows: Callable[[Spot], np.ndarray]
    first: int
    rank: int
    mix: np.ndarray
    like: np.ndarray

    def value(self, spot: Spot) -> float:
        """The smallest singular value, signed by the determinant."""
        rows = self.rows(spot)
        frame = np.zeros((len(rows), rows.shape[1]))
        frame[self.first :, self.rank :] = self.mix
        if self.first == self.rank:
            frame[: self.first, : self.rank] = np.eye(self.first)
            return signed(rows, frame)
        basis = np.linalg.svd(rows[: self.first])[0][:, : self.rank]
        frame[: self.first, : self.rank] = basis
        return signed(rows, frame) * (1.0 if np.linalg.slogdet(self.like.T @ basis)[0] >= 0 else -1.0)


def square(surface: Surface, rows: Callable[[Spot], np.ndarray], first: int, places: list[np.ndarray]) -> Square | None:
    """The square matrix made of rows, if it can be made the same way everywhere.

    Args:
        surface: where.
        rows: all rows at a spot, the constraints' first.
        first: how many of them are constraints'.
        places: some configurations, none of them special.
    """
    width = surface.system.layout.nv
    blocks = [rows(surface.look(q)) for q in places]
    ranks = [int(np.sum(evidence(b[:first])[0] > surface.system.tolerance)) for b in blocks]
    rank = max(ranks)
    free = width - rank
    moved = []  # what the remaining rows say about velocities that the constraints allow
    for block, r in zip(blocks, ranks, strict=True):
        if r == rank:
            moved.append(block[first:] @ evidence(block[:first])[2][rank:].T)
    sides, sizes, _ = np.linalg.svd(np.hstack(moved)) if free else (np.eye(0), np.zeros(0), None)
    if int(np.sum(sizes > surface.system.tolerance)) != free:
        return None  # too few rows, or dependences among them that turn as the machine moves
    best = blocks[ranks.index(rank)]
    like = np.linalg.svd(best[:first])[0][:, :rank] if rank else np.zeros((first, 0))
    return Square(surface, rows, first, rank, sides[:, :free], like)


@dataclass(frozen=True, eq=False)
class Locus:
    """The track of configurations of a surface of dimension 2 at which a square matrix is singular."""

    surface: Surface
    rank: int
    matrix: Square
    finest: float = 1e-10

    def onto(self, q: np.ndarray, tolerance: float, tries: int = 12) -> Spot | None:
        """The configuration on the locus next to q, by Newton's method on the surface and across it at once."""
        across = np.zeros(0)

        def step_at(spot: Spot, number: int) -> np.ndarray | None:
            nonlocal across
            level = self.matrix.value(spot)
            if number < 3 or number % 3 == 0:
                slope, tangents = self._slope(spot)
                if not slope @ slope > 1e-12:
                    return None
                across = tangents @ (slope / (slope @ slope))
            return self.surface.step_onto(spot, self.rank) - level * across

        return self.surface.settle(q, step_at, max(tolerance, self.finest), tries)

    def direction(self, spot: Spot) -> np.ndarray | None:
        """The velocity along which the determinant stays zero; None where it does so along two."""
        slope, tangents = self._slope(spot)
        return tangents @ np.array([-slope[1], slope[0]]) if slope @ slope > 1e-10 else None

    def flips(self, here: Sample, new: Sample) -> bool:
        """Never told: curves of singular positions may cross."""
        return False

    def _slope(self, spot: Spot) -> tuple[np.ndarray, np.ndarray]:
        """Rates of the matrix's value along two velocities on the surface, and these."""
        surface = self.surface
        tangents = surface.tangents(spot, self.rank)
        tangents = tangents / surface.size(tangents.T)
        slope = [
            np.diff([self.matrix.value(surface.look(surface.move(spot.q, h * t))) for h in (-STEP, STEP)])[0]
            for t in tangents.T
        ]
        return np.array(slope) / (2 * STEP), tangents


def kind_square(surface: Surface, roles: Roles, kind: str, places: list[np.ndarray]) -> Square | None:
    """The square matrix of input or output singularities."""
    first = len(surface.look(places[0]).A)
    return square(surface, lambda spot: roles.rows(kind, spot, surface.t), first, places)


def edge_square(surface: Surface, where: tuple[int, int], places: list[np.ndarray]) -> Square | None:
    """The square matrix that is singular where two coordinates do not tell the way on the surface any more."""
    index, first = list(where), len(surface.look(places[0]).rows)

    def rows(spot: Spot) -> np.ndarray:  # of a spot in a slice, those of the surface come first
        return np.concatenate([spot.rows[:first], spot.back[index] / surface.units[index, None]])

    return square(surface, rows, first, places)
