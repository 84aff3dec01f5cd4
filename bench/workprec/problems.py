"""The problems: reference values from `problems.json`, what is compared, and how an error is formed.

The error of a quantity at a time is |found - reference| over the largest |reference| of that quantity at the reference
times; the error of a run is the largest over all quantities and reference times, its final error that at the last
time. Loop error (of positions, in the unit of the closure) and drift of the invariant are the largest over the whole
output grid of `steps` equal intervals. The invariant is the energy, in A03 and B1 less the work of the motor, in A05,
which has dampers, the angular momentum about the shaft.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).with_name("problems.json")


@dataclass(frozen=True)
class Problem:
    """One problem with its reference.

    Attributes:
        name: as in the table.
        title: in words.
        grid: times of output, 0 and the reference times among them [s].
        at: which of them are reference times.
        reference: (times, quantities).
        scale: largest |reference| of each quantity.
        quantities: names with units.
        start: coordinates at time 0 where the source gives numbers, else None.
    """

    name: str
    title: str
    grid: np.ndarray
    at: np.ndarray
    reference: np.ndarray
    scale: np.ndarray
    quantities: tuple[str, ...]
    start: tuple[float, ...] | None = None

    @property
    def t_end(self) -> float:
        """Length of the run [s]."""
        return float(self.grid[-1])


@dataclass(frozen=True)
class Observed:
    """What a run says about itself on the output grid, in the problem's terms.

    Attributes:
        values: (times, quantities).
        loop: largest closure error at each time, zeros where there is no closure.
        invariant: at each time.
    """

    values: np.ndarray
    loop: np.ndarray
    invariant: np.ndarray


@dataclass(frozen=True)
class Accuracy:
    """Errors of one run, as defined above."""

    error: float
    final: float
    loop: float
    drift: float


def load() -> dict[str, Problem]:
    """All problems by name."""
    found = {}
    for name, entry in json.loads(DATA.read_text(encoding="utf-8")).items():
        grid = np.linspace(0.0, entry["t_end"], entry["steps"] + 1)
        at = np.array([int(np.argmin(np.abs(grid - t))) for t in entry["times"]])
        if not np.allclose(grid[at], entry["times"], rtol=1e-12, atol=0.0):
            raise ValueError(f"{name}: the output grid misses a reference time of {entry['times']}")
        reference = np.array(entry["reference"])
        start = tuple(entry["q0"]) if "q0" in entry else None
        scale = np.abs(reference).max(axis=0)
        found[name] = Problem(
            name, entry["title"], grid, at, reference, scale, tuple(entry["quantities"]), start
        )  # fmt: skip
    return found


def accuracy(problem: Problem, seen: Observed) -> Accuracy:
    """The errors of a run; infinite where it did not reach the end or holds anything but numbers."""
    infinite = Accuracy(*[float("inf")] * 4)
    if len(seen.values) != len(problem.grid) or not all(
        np.isfinite(x).all() for x in (seen.values, seen.loop, seen.invariant)
    ):
        return infinite
    errors = np.abs(seen.values[problem.at] - problem.reference) / problem.scale
    drift = np.abs(seen.invariant - seen.invariant[0]).max()
    return Accuracy(float(errors.max()), float(errors[-1].max()), float(seen.loop.max()), float(drift))
