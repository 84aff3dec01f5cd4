"""Places on a curve of configurations where something happens: a rank drops, a coordinate turns back, a limit is met.

A rank that drops is found as a change of sign of the smallest singular value, signed by the determinant, of as many
combinations of rows as there are columns; the combinations stay the same between two samples. Where there are fewer
independent rows than columns, or the value touches zero without a change of sign, the dips of the singular value are
searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sarrus.analysis.branches import excess, limits_of
from sarrus.analysis.roles import Roles, evidence, signed
from sarrus.analysis.surface import Spot, Surface
from sarrus.analysis.tracing import Line, Path, Sample, Value, between, point_between

ZERO = 1e-7  # a singular value below this at a refined place is zero
DEEP = 0.3  # dips below this part of the median are looked into
Rows = Callable[[Spot], np.ndarray]


@dataclass(frozen=True, eq=False)
class Landmark:
    """A place on a curve.

    Attributes:
        what: a kind of singularity, "crossing" (of branches), "edge" (a coordinate turns back), or a limit's name.
        spot: where.
        pair: after which sample of the curve.
        ahead: direction of the curve.
    """

    what: str
    spot: Spot
    pair: int
    ahead: np.ndarray


def rank_rows(surface: Surface, roles: Roles, kind: str) -> Rows:
    """The matrix whose rank decides about a kind of singularity."""
    return lambda spot: roles.rows(kind, spot, surface.t)


def edge_rows(surface: Surface, *where: int) -> Rows:
    """The rows of a surface, completed by those of coordinates: dependent where these coordinates turn back."""
    index = list(where)
    return lambda spot: np.concatenate([spot.rows, spot.back[index] / surface.units[index, None]])


@dataclass(frozen=True, eq=False)
class Survey:
    """A matrix at the samples of a curve.

    Attributes:
        rows: the matrix at a spot.
        found: at each sample its rows, singular values and left singular vectors.
    """

    rows: Rows
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def level(self, rank: int) -> np.ndarray:
        """A singular value along the curve, counted from 1."""
        return np.array([sigma[rank - 1] for _, sigma, _ in self.found])

    @property
    def rank(self) -> int:
        """The largest rank on the curve, by singular values well above zero."""
        return max((int(np.sum(sigma > 10 * ZERO)) for _, sigma, _ in self.found), default=0)


def survey(path: Path, rows: Rows) -> Survey:
    """A matrix at all samples of a curve."""
    table = [rows(sample.spot) for sample in path.samples]
    return Survey(rows, [(x, *evidence(x)[:2]) for x in table])


def landmarks(line: Line, path: Path, watched: dict[str, Survey], limits: bool = False) -> list[Landmark]:
    """Everything that happens on a curve.

    Args:
        line: what makes the curve.
        path: the curve.
        watched: matrices whose rank matters, by name.
        limits: also where joints reach their limits.
    """
    surface, found = line.surface, []
    stops = limits_of(surface.system) if limits else []
    for k, (a, b) in enumerate(path.pairs(surface)):
        for what, surveyed in watched.items():
            sample = _zero(line, a, b, surveyed, k)
            if sample is not None:
                found.append(Landmark(what, sample.spot, k, sample.ahead))
        if line.rank:
            sample = _crossing(line, a, b)
            if sample is not None:
                found.append(Landmark("crossing", sample.spot, k, sample.ahead))
        for stop in stops:
            over = _over(surface, stop)
            if over(a.spot) * over(b.spot) < 0:
                sample = between(line, a, b, over)
                if sample is not None:
                    found.append(Landmark(f"limit of {stop[2]}", sample.spot, k, sample.ahead))
    return found


def _over(surface: Surface, stop: tuple[int, int, str, float, float]) -> Value:
    return lambda spot: float(excess(stop, spot.q, surface.period))


def _zero(line: Line, a: Sample, b: Sample, watched: Survey, k: int) -> Sample | None:
    """Where between two samples a matrix with as many independent rows as columns is singular."""
    (here, sigma, U), (there, _, _) = watched.found[k], watched.found[(k + 1) % len(watched.found)]
    if len(here) < len(sigma) or sigma[-1] < ZERO:
        return None
    rows, frame = watched.rows, U[:, : len(sigma)]
    if np.linalg.slogdet(frame.T @ here)[0] * np.linalg.slogdet(frame.T @ there)[0] >= 0:
        return None
    sample = between(line, a, b, lambda spot: signed(rows(spot), frame))
    # rows that depend on each other may have turned so far that the combinations themselves became dependent
    return sample if sample is not None and evidence(rows(sample.spot))[0][-1] < ZERO else None


def _crossing(line: Line, a: Sample, b: Sample) -> Sample | None:
    """Where another branch crosses: the determinant of the rows with the direction of travel changes sign."""
    U = evidence(a.spot.rows)[1]
    frame = np.zeros((len(a.spot.rows) + 1, line.rank + 1))
    frame[:-1, :-1], frame[-1, -1] = U[:, : line.rank], 1.0

    def value(spot: Spot) -> float:
        direction = spot.back @ np.linalg.svd(spot.rows)[2][-1]
        across = direction if direction @ (a.ahead / line.surface.scales**2) > 0 else -direction
        return signed(np.vstack([spot.rows, np.linalg.solve(spot.back, across)]), frame)

    if value(a.spot) * value(b.spot) >= 0:
        return None
    sample = between(line, a, b, value)
    if sample is None or np.linalg.svd(sample.spot.rows, compute_uv=False)[line.rank - 1] > 1e-4:
        return None
    return Sample(settle(line.surface, sample.spot, lambda spot: spot.rows, U[:, : line.rank]), sample.ahead)


def settle(surface: Surface, spot: Spot, rows: Rows, frame: np.ndarray) -> Spot:
    """The place next to a spot where independent rows become dependent, to rounding.

    Gauss-Newton on residual = 0, rowsᵀ F y = 0, |y| = 1 for the configuration and y: regular where the corrector of the
    surface no longer is.

    Args:
        surface: on which the place lies.
        spot: near.
        rows: that become dependent.
        frame: F, the combinations of rows that are independent around here.
    """
    nv = surface.system.layout.nv
    y = np.linalg.svd(frame.T @ rows(spot))[0][:, -1]
    for _ in range(15):
        value = _dependence(spot, rows, frame, y)
        jacobian = np.zeros((len(value), nv + len(y)))
        for k in range(nv):
            h = 1e-6 * surface.scales[k] * np.eye(nv)[k]
            ends = [_dependence(surface.look(surface.move(spot.q, s)), rows, frame, y) for s in (h, -h)]
            jacobian[:, k] = (ends[0] - ends[1]) / 2e-6
        jacobian[len(spot.residual) : -1, nv:] = rows(spot).T @ frame
        jacobian[-1, nv:] = 2 * y
        step = -np.linalg.lstsq(jacobian, value, rcond=1e-7)[0]
        step *= min(1.0, 0.3 / max(np.abs(step[:nv]).max(), 1e-300))
        spot, y = surface.look(surface.move(spot.q, step[:nv] * surface.scales)), y + step[nv:]
        if np.abs(step).max() < 1e-13:
            break
    return spot


def _dependence(spot: Spot, rows: Rows, frame: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.concatenate([spot.residual, rows(spot).T @ (frame @ y), [y @ y - 1.0]])


def dips(line: Line, path: Path, watched: Survey, known: Sequence[Landmark]) -> list[tuple[int, Spot, float]]:
    """Dips of a singular value along a curve: the pair of samples, the lowest place and the value there.

    Args:
        line: what makes the curve.
        path: the curve.
        watched: the matrix; of its singular values the last that is not zero throughout.
        known: landmarks; dips beside them are left out.
    """
    from scipy.optimize import minimize_scalar

    rank, rows = watched.rank, watched.rows
    if rank == 0 or len(path.samples) < 4:
        return []
    level = watched.level(rank)
    pairs, near = list(path.pairs(line.surface)), {mark.pair for mark in known}
    found = []
    for k in range(len(level)):
        left, right = (k - 1, k + 1) if not path.closed else ((k - 1) % len(level), (k + 1) % len(level))
        if left < 0 or right >= len(level) or level[k] > min(level[left], level[right]):
            continue
        if level[k] > DEEP * np.median(level) or near & {left, k}:
            continue
        for pair in (left, k):

            def value(part: float, ends: tuple[Sample, Sample] = pairs[pair]) -> float:
                spot = point_between(line, *ends, part)
                return 1e3 if spot is None else float(evidence(rows(spot))[0][rank - 1])

            low = minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
            spot = point_between(line, *pairs[pair], float(low.x))
            if spot is not None and 1e-3 < low.x < 1 - 1e-3:
                found.append((pair, spot, float(low.fun)))
    return found
