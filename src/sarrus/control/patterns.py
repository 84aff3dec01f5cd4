"""Directions told by name: a basis of a subspace that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np


@dataclass(frozen=True, eq=False)
class Patterns(Sequence[dict[str, float]]):
    """A basis of some directions; each reads as a mapping from names to parts, the largest part being 1.

    Attributes:
        names: of the coordinates.
        basis: one row for each direction.
    """

    names: tuple[str, ...]
    basis: np.ndarray

    @staticmethod
    def of(names: Sequence[str], rows: np.ndarray, scales: np.ndarray) -> Patterns:
        """The basis of the same space with as many zeros as elimination gives.

        Args:
            names: of the columns.
            rows: any basis.
            scales: typical size of each column, so that the choice does not depend on units.
        """
        work = np.array(rows, dtype=float) / scales
        work = np.linalg.qr(work.T)[0].T if work.size else work
        for k in range(len(work)):
            i, j = np.unravel_index(np.argmax(np.abs(work[k:])), work[k:].shape)
            work[[k, k + i]] = work[[k + i, k]]
            work[k] /= work[k, j]
            for other in range(len(work)):
                if other != k:
                    work[other] -= work[other, j] * work[k]
        work = work * scales
        work[np.abs(work) < 1e-9 * np.abs(work).max(initial=0.0)] = 0.0
        for row in work:
            row /= row[np.argmax(np.abs(row))]
        return Patterns(tuple(names), work)

    def __len__(self) -> int:
        """How many directions."""
        return len(self.basis)

    @overload
    def __getitem__(self, index: int) -> dict[str, float]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, float]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, float] | list[dict[str, float]]:
        """One direction: the parts that are not zero."""
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        row = self.basis[index]
        return {name: float(value) for name, value in zip(self.names, row, strict=True) if value}

    def __str__(self) -> str:
        """All directions."""
        return "; ".join(
            "(" + ", ".join(f"{name} {value:+.3g}" for name, value in part.items()) + ")" for part in self
        ) or "none"  # fmt: skip
