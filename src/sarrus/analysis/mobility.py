"""In how many ways a machine can move: at this instant, and really.

The mobility at an instant is the number of velocities less the rank, nv - r. Grübler's count nv - m takes all m rows
for independent; with d dependent rows the two differ by d. A velocity that the constraints allow need not belong to a
motion: the **finite mobility** is the dimension of the assembled positions around the state. It is found by going a
little along the allowed directions, assembling again, and looking at the rank there. Where that leads back to the
start, nothing moves; the second-order test says so too: a dependence z whose quadratic form v ↦ zᵀγ(v) is definite on
the allowed velocities lets none of them go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sarrus.dynamics.manifold import difference
from sarrus.dynamics.positions import Request, find_positions
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.model.parts import Model

STEPS = (0.02, 0.05, 0.1, 0.3)  # in radians, or in lengths of the machine


@dataclass(frozen=True)
class Mobility:
    """Mobilities of a machine at one state.

    Attributes:
        instant: velocities less rank, at this instant.
        finite: dimension of the motions through this position.
        grubler: what a count of velocities and rows predicts (without the rows that a planar machine always satisfies).
        dependent: rows less rank, of the same rows.
        singular: whether the rank is lower here than at assembled positions near by.
        rank_near: the rank there; that of the state if it cannot move.
        definite: whether the second-order test proves that the extra mobility leads nowhere.
    """

    instant: int
    finite: int
    grubler: int
    dependent: int
    singular: bool
    rank_near: int
    definite: bool


def mobility(
    system: System, state: State, active: Mapping[str, bool] | None = None
) -> tuple[Mobility, tuple[State, ...]]:
    """Count the mobilities at a state; also the assembled states near by that were looked at."""
    rank = system.rank(state, active)
    flags = system.active_rows(active).astype(bool)
    rows = int(flags.sum())
    if isinstance(system.description, Model) and system.description.planar:
        rows = sum(1 for i in system.kept if flags[i])
    near = neighbours(system, state, active)
    ranks = [system.rank(s, active).rank for s in near]
    finite = max((system.layout.nv - r for r in ranks), default=0) if rank.mobility else 0
    rank_near = max(ranks, default=rank.rank)
    definite = bool(rank.mobility) and not near and _definite(system, state, active)
    found = Mobility(
        rank.mobility, finite, system.layout.nv - rows, rows - rank.rank, rank_near > rank.rank, rank_near, definite
    )
    return found, near


def allowed(system: System, state: State, active: Mapping[str, bool] | None = None) -> np.ndarray:
    """A basis Z of the allowed velocities, Zᵀ M Z = 1 and A Z = 0 (sheet 6)."""
    x = system.terms(state)
    return allowed_velocities(system, x.M, x.A, system.active_rows(active))


def allowed_velocities(system: System, M: np.ndarray, A: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """The same from M and A."""
    from sarrus.dynamics.rank import scaled_rows

    L, S = scaled_rows(system, M, A, flags)
    if not len(S):
        return np.linalg.inv(L).T
    _, sigma, Vt = np.linalg.svd(S)
    return np.linalg.solve(L.T, Vt[int(np.sum(sigma > system.tolerance)) :].T)


def neighbours(
    system: System, start: State, active: Mapping[str, bool] | None = None, steps: tuple[float, ...] = STEPS
) -> tuple[State, ...]:
    """Assembled states some way along the motion, where nothing special is to be expected."""
    rng = np.random.default_rng(1)
    scales = np.array(system.layout.scales)
    Z = allowed(system, start, active)
    states = []
    for size in steps:
        direction = Z @ rng.normal(size=Z.shape[1])
        largest = np.max(np.abs(direction) / scales, initial=0.0)
        if largest == 0.0:
            break
        step = direction * size / largest
        guess = State(system.layout, system.retract(start.q, step), t=start.t)
        q, _ = find_positions(system, Request({}, {}, guess, {}, start.t, active or {}, 1e-12), attempts=0)
        if q is None:
            continue
        moved = np.max(np.abs(difference(system.layout, start.q, q)) / scales)
        if 0.2 * size < moved < 5 * size:
            states.append(State(system.layout, q, t=start.t))
    return tuple(states)


def _definite(system: System, state: State, active: Mapping[str, bool] | None) -> bool:
    """Whether some dependence has a definite quadratic form on the allowed velocities."""
    from sarrus.dynamics.rank import analyse

    Z, null = allowed(system, state, active), analyse(system, state, active).null
    k = Z.shape[1]
    kept = list(system.kept)

    def gamma(v: np.ndarray) -> np.ndarray:
        """The part of γ that is quadratic in v, along each dependence."""
        ahead, back, still = (
            system.terms(State(system.layout, state.q, s * v, state.t)).gamma[kept] for s in (1.0, -1.0, 0.0)
        )
        return null[kept].T @ ((ahead + back - 2 * still) / (2 * system.norms))

    single = [gamma(Z[:, i]) for i in range(k)]
    Q = np.zeros((null.shape[1], k, k))
    for i in range(k):
        for j in range(i + 1):
            Q[:, i, j] = Q[:, j, i] = single[i] if i == j else (gamma(Z[:, i] + Z[:, j]) - single[i] - single[j]) / 2
    return any(_all_one_sign(np.linalg.eigvalsh(form)) for form in Q)


def _all_one_sign(values: np.ndarray) -> bool:
    low = 1e-6 * np.abs(values).max()
    return bool(low > 0 and (np.all(values > low) or np.all(values < -low)))
