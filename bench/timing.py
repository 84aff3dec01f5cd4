"""Time many contestants fairly: interleaved rounds, medians, processor time.

Everything runs in this one thread and never waits, so its processor time is its time on an idle machine; the clock on
the wall would also count whatever else the machine does.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.peers.contestant import Contestant

CLOCK = time.thread_time


@dataclass(frozen=True)
class Timing:
    """Seconds per evaluation of one contestant, one entry for each round; `trivial` is the cost of an empty call."""

    raw: np.ndarray
    trivial: np.ndarray | None

    @property
    def overhead(self) -> float:
        """Median cost of calling [s]; 0 where no interpreter stands between two evaluations."""
        return 0.0 if self.trivial is None else float(np.median(self.trivial))

    @property
    def seconds(self) -> float:
        """Median time of one evaluation less the cost of calling [s]."""
        return float(np.median(self.raw)) - self.overhead


def measure(contestants: Sequence[Contestant], rounds: int, batch: float) -> list[Timing]:
    """Let every contestant run once in each round, each round starting with another one.

    Args:
        contestants: who takes part.
        rounds: how many rounds count; one more warms up.
        batch: how long one run should take [s].
    """
    runs: list[Callable[[int], int]] = []
    for contestant in contestants:
        runs.append(contestant.run)
        if contestant.trivial is not None:
            runs.append(contestant.trivial)
    counts = [_count(run, batch) for run in runs]
    times = np.zeros((rounds, len(runs)))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for index in range(-1, rounds):
            for place in range(len(runs)):
                k = (place + index) % len(runs)
                seconds = _once(runs[k], counts[k])
                if index >= 0:
                    times[index, k] = seconds
    finally:
        if collecting:
            gc.enable()
    columns = iter(times.T)
    return [Timing(next(columns), None if c.trivial is None else next(columns)) for c in contestants]


def _once(run: Callable[[int], int], count: int) -> float:
    start = CLOCK()
    done = run(count)
    return (CLOCK() - start) / done


def _count(run: Callable[[int], int], batch: float) -> int:
    """How many evaluations take about `batch` seconds."""
    count = 16
    while True:
        seconds = _once(run, count) * count
        if seconds >= batch / 4:
            return max(1, round(count * batch / seconds))
        count *= 4
