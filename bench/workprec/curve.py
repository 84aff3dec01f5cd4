"""Reading a work-precision curve: what an accuracy costs.

Points are (error, seconds). Only those count that no other point beats in both; between two neighbours of these the
logarithm of the time is linear in that of the error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
REACH = 2.0  # how far beyond the last point an error may be read, as a factor


@dataclass(frozen=True)
class Cost:
    """CPU time of an accuracy.

    Attributes:
        seconds: None where the accuracy was not reached.
        bound: the coarsest run was already more accurate, so that this is its time and less may do.
    """

    seconds: float | None
    bound: bool = False


def front(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both error and time, by falling error."""
    kept: list[Point] = []
    for error, seconds in sorted(p for p in points if math.isfinite(p[0]) and p[0] > 0 and p[1] > 0):
        if not kept or seconds < kept[-1][1]:
            kept.append((error, seconds))
    return kept[::-1]


def cost(points: Iterable[Point], error: float) -> Cost:
    """CPU time at which a code reaches an error.

    Args:
        points: of one method.
        error: to be reached.
    """
    found = front(points)
    if not found or error < found[-1][0] / REACH:
        return Cost(None)
    if error >= found[0][0]:
        if error > REACH * found[0][0] or len(found) == 1:
            return Cost(found[0][1], bound=True)
        return Cost(_along(found[0], found[1], error))
    for left, right in itertools.pairwise(found):
        if right[0] <= error:
            return Cost(_along(left, right, error))
    return Cost(_along(found[-2], found[-1], error) if len(found) > 1 else None)


def best(costs: Sequence[tuple[str, Cost]]) -> tuple[str, Cost]:
    """The cheapest of several, ("", not reached) if there is none."""
    reached = [(c.seconds, name, c) for name, c in costs if c.seconds is not None]
    if not reached:
        return "", Cost(None)
    _, name, found = min(reached, key=lambda x: x[0])
    return name, found


def _along(a: Point, b: Point, error: float) -> float:
    share = math.log(error / a[0]) / math.log(b[0] / a[0])
    return math.exp(math.log(a[1]) + share * math.log(b[1] / a[1]))
