"""Following curves of configurations: predictor and corrector, through folds and across crossings of branches.

A curve is followed by its arc and not by a coordinate, so that it may turn back; where branches cross, it goes straight
on. What happens on the way (a rank that drops, a coordinate that turns back or meets a value) is found by a change of
sign between neighbouring samples and refined between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sarrus.analysis.surface import Spot, Surface
from sarrus.errors import SarrusError

LONGEST = 0.15  # between samples, in units of the scales
SHORTEST = 1e-5
STRAIGHT = 0.97  # cosine between neighbouring directions
FINE = 1e-12  # how exact samples are, in units of the scales
MOST = 4000
CROSS = 2e-3  # branches that come nearer to each other than this count as crossing
CLEAR = 1e-4  # samples keep away from places where the rank is about to drop


class Track(Protocol):
    """What a curve is made of: a way onto it, and its direction."""

    @property
    def surface(self) -> Surface:
        """Where the curve lies."""
        ...

    def onto(self, q: np.ndarray, tolerance: float) -> Spot | None:
        """The configuration on the curve next to q."""
        ...

    def direction(self, spot: Spot) -> np.ndarray | None:
        """A velocity along the curve; None where it has no single one."""
        ...

    def flips(self, here: Sample, new: Sample) -> bool:
        """Whether the rows with the direction of travel change orientation between two samples.

        They do where another branch crosses, and never on a smooth curve: else it has jumped to another one.
        """
        ...


@dataclass(frozen=True, eq=False)
class Sample:
    """A configuration on a curve, with the direction (of size 1 in units of the scales) in which the curve runs."""

    spot: Spot
    ahead: np.ndarray

    @property
    def q(self) -> np.ndarray:
        """Its positions."""
        return self.spot.q

    def turned(self) -> Sample:
        """The same, running the other way."""
        return Sample(self.spot, -self.ahead)


@dataclass(frozen=True, eq=False)
class Line:
    """The track of a surface of dimension 1, whose rows have a rank one less than there are velocities."""

    surface: Surface
    rank: int

    def onto(self, q: np.ndarray, tolerance: float) -> Spot | None:
        """The configuration on the surface next to q."""
        return self.surface.onto(q, self.rank, tolerance, 8)

    def direction(self, spot: Spot) -> np.ndarray | None:
        """The velocity that the rows leave."""
        if not len(spot.rows):
            return spot.back[:, 0]
        sigma, Vt = np.linalg.svd(spot.rows)[1:]
        return None if self.rank and sigma[self.rank - 1] < CLEAR else spot.back @ Vt[-1]

    def flips(self, here: Sample, new: Sample) -> bool:
        """Whether the sign of det [rows; direction] changes."""
        if not self.rank:
            return False
        frame = np.linalg.svd(here.spot.rows)[0][:, : self.rank]
        signs = [
            np.linalg.slogdet(np.vstack([frame.T @ x.spot.rows, np.linalg.solve(x.spot.back, x.ahead)]))[0]
            for x in (here, new)
        ]
        return bool(signs[0] * signs[1] < 0)


@dataclass(frozen=True, eq=False)
class Path:
    """A curve of configurations.

    Attributes:
        samples: in order.
        closed: whether the last one joins the first (whole turns left out).
    """

    samples: tuple[Sample, ...]
    closed: bool

    @property
    def q(self) -> np.ndarray:
        """Positions, one row for each sample."""
        return np.stack([sample.q for sample in self.samples])

    def pairs(self, surface: Surface) -> Iterator[tuple[Sample, Sample]]:
        """Neighbouring samples; the last and the first too if the curve is closed."""
        yield from zip(self.samples, self.samples[1:], strict=False)
        if self.closed and len(self.samples) > 1:
            last, first = self.samples[-1], self.samples[0]
            q = surface.move(last.q, surface.gap(last.q, first.q))  # whole turns further, perhaps
            yield last, Sample(replace(first.spot, q=q), first.ahead)


Value = Callable[[Spot], float]


def sample_on(track: Track, spot: Spot, like: np.ndarray | None = None) -> Sample | None:
    """The sample at a place on a curve, its direction on the side of `like`."""
    ahead = track.direction(spot)
    if ahead is None:
        return None
    if like is not None and _cosine(track.surface, ahead, like) < 0:
        ahead = -ahead
    return Sample(spot, ahead / track.surface.size(ahead))


def _cosine(surface: Surface, a: np.ndarray, b: np.ndarray) -> float:
    x, y = a / surface.scales, b / surface.scales
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def follow(track: Track, spot: Spot, outside: Value, direction: np.ndarray | None = None) -> Path:
    """The whole curve through a place on it.

    Args:
        track: what makes the curve.
        spot: where to begin.
        outside: the curve ends where this becomes positive.
        direction: which way to go first.
    """
    start = sample_on(track, spot, direction)
    if start is None:
        return Path((), False)
    ahead, closed = _run(track, start, outside)
    if closed:
        return Path((start, *ahead), True)
    back, _ = _run(track, start.turned(), outside)
    return Path((*(s.turned() for s in reversed(back)), start, *ahead), False)


def _run(track: Track, start: Sample, outside: Value) -> tuple[list[Sample], bool]:
    """Samples after `start` until the curve ends, and whether it returns to it."""
    out, here, step = [], start, 0.3 * LONGEST
    bend = np.zeros_like(start.ahead)
    for _ in range(MOST):
        new, step = _next(track, here, bend, step)
        if new is None:  # a place that cannot be passed: a cusp, a dead end
            return out, False
        if outside(new.spot) > 0:
            end = between(track, here, new, outside)
            return ([*out, end] if end is not None else out), False
        if len(out) > 2 and _comes_round(track.surface, start, here, new):
            return out, True
        bend = (new.ahead - here.ahead) / track.surface.size(track.surface.gap(here.q, new.q))
        out.append(new)
        here, step = new, min(LONGEST, 1.6 * step)
    text = f"{track.surface.system.name}: a curve of configurations did not end after {MOST} steps"
    raise SarrusError(text + "; narrow the ranges")


def _next(track: Track, here: Sample, bend: np.ndarray, step: float) -> tuple[Sample | None, float]:
    """The next sample, and the step that led there."""
    surface = track.surface
    while step > SHORTEST:
        for stretch in (1.0, 1.31):  # where a step lands on a crossing of branches, one a bit longer passes it
            h = stretch * step
            spot = track.onto(surface.move(here.q, h * here.ahead + 0.5 * h * h * bend), FINE)
            new = None if spot is None else sample_on(track, spot, here.ahead)
            if new is None:
                continue
            gone = surface.size(surface.gap(here.q, new.q))
            straight = _cosine(surface, here.ahead, new.ahead) > STRAIGHT and 0.5 * h < gone < 1.5 * h
            if straight and (h < CROSS or not track.flips(here, new)):
                return new, step
        step *= 0.4
    return None, step


def _comes_round(surface: Surface, start: Sample, here: Sample, new: Sample) -> bool:
    """Whether the start lies between two neighbouring samples."""
    whole, part = surface.gap(here.q, new.q) / surface.scales, surface.gap(here.q, start.q) / surface.scales
    length = np.abs(whole).max()
    if np.abs(part).max() > 1.05 * length or _cosine(surface, start.ahead, here.ahead) <= 0.5:
        return False
    along = float(part @ whole) / float(whole @ whole)
    return 0.0 < along <= 1.0 and np.abs(part - along * whole).max() < 0.1 * length


def point_between(track: Track, a: Sample, b: Sample, part: float) -> Spot | None:
    """The configuration on the curve that lies a part of the way from one sample to the next."""
    return track.onto(track.surface.move(a.q, _cubic(track.surface, a, b, part)), 1e-12)


def _cubic(surface: Surface, a: Sample, b: Sample, x: float) -> np.ndarray:
    """The step from one sample to a part x of the way to the next, along the cubic with both directions."""
    chord = surface.gap(a.q, b.q)
    return x * x * (3 - 2 * x) * chord + surface.size(chord) * x * (1 - x) * ((1 - x) * a.ahead - x * b.ahead)


class _Lost(Exception):
    """The corrector failed between two samples."""


def between(track: Track, a: Sample, b: Sample, function: Value) -> Sample | None:
    """The place between two samples where a function of the configuration changes sign, to rounding."""
    from scipy.optimize import brentq

    def value(part: float) -> float:
        spot = point_between(track, a, b, part)
        if spot is None:
            raise _Lost
        return function(spot)

    try:
        part = float(brentq(value, 0.0, 1.0, xtol=1e-15, rtol=1e-14, maxiter=80))  # type: ignore[arg-type]
    except (_Lost, ValueError):  # a ValueError: no change of sign after all
        return None
    spot = point_between(track, a, b, part)
    return None if spot is None else sample_on(track, spot, a.ahead) or Sample(spot, a.ahead)


def lies_on(track: Track, path: Path, q: np.ndarray, tolerance: float = 1e-3) -> bool:
    """Whether a configuration lies on a path, judged by cubics through neighbouring samples."""
    surface, n = track.surface, len(path.samples)
    if not n:
        return False
    far = surface.distance(path.q, q)
    nearest = int(np.argmin(far))
    if far[nearest] > LONGEST:
        return False
    for first in (nearest - 1, nearest):
        if not path.closed and not 0 <= first < n - 1:
            continue
        a, b = path.samples[first % n], path.samples[(first + 1) % n]
        chord, part = surface.gap(a.q, b.q), surface.gap(a.q, q)
        whole = chord / surface.scales
        x = float((part / surface.scales) @ whole) / float(whole @ whole)
        offset = part - _cubic(surface, a, b, x)
        ahead = ((1 - x) * a.ahead + x * b.ahead) / surface.scales
        offset = offset / surface.scales
        beside = offset - float(offset @ ahead) / float(ahead @ ahead) * ahead
        if -0.1 < x < 1.1 and np.abs(beside).max() < tolerance:
            return True
    return n == 1 and bool(far[0] < tolerance)
