"""Rank decisions near singular positions, the evidence reported with them, and how many digits each path keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sarrus as sr
from oracles.constraints import project_velocity
from oracles.dense import constrained_solve

from .support import EPS, largest, random_case

SEEDS = (2, 11, 14, 36, 37, 50)  # fast and rank-revealing, some with partners that leave rows early


def scaled_singular_values(system: sr.System, state: sr.State) -> np.ndarray:
    """Of diag(1/reference) A L⁻ᵀ, straight from its definition."""
    x, kept = system.terms(state), list(system.kept)
    rows = np.linalg.solve(np.linalg.cholesky(x.M), x.A[kept].T).T / system.norms[:, None]
    return np.linalg.svd(rows, compute_uv=False)


def reference(system: sr.System, state: sr.State, f: np.ndarray):
    """The dense solve with the package's own terms and row scales; rows are cut off at `system.tolerance`."""
    x, scale = system.terms(state), np.zeros(system.layout.m)
    scale[list(system.kept)] = 1 / system.norms
    top = scaled_singular_values(system, state)[0]
    return constrained_solve(x.M, x.h, f, x.A, x.gamma, scale, system.tolerance / max(top, system.tolerance))


# --- reports -----------------------------------------------------------------------------------------------
def evidence(seed: int):
    """(Solution, all singular values, the true rank) of a random machine where its loops are closed."""
    case, system = random_case(seed)
    rng = np.random.default_rng([seed, 6])
    state = system.state(case.q, project_velocity(case.tree, case.q, rng.normal(size=case.tree.nv), case.t), case.t)
    values = scaled_singular_values(system, state)
    return system.solve(state), values, case.rank


@pytest.mark.parametrize("seed", [1, 11, 33, 37])
def test_rank_revealing_path_reports_the_smallest_accepted_singular_value(seed):
    """Within 5 %: inverse iteration needs no more to be useful, and the value is no bound of anything else."""
    found, values, rank = evidence(seed)
    assert (found.path, found.rank) == ("rank-revealing", rank)
    assert found.accepted == pytest.approx(values[rank - 1], rel=0.05)
    assert found.rejected >= (1 - 1e-3) * values[rank:].max(initial=0.0) - 10 * EPS * values[0]
    assert found.rejected < 1e-8


@pytest.mark.parametrize("seed", [2, 14, 28, 50])
def test_fast_path_reports_an_upper_bound_of_the_smallest_singular_value(seed):
    """So says the documentation of Solution.accepted."""
    found, values, rank = evidence(seed)
    assert (found.path, found.rank) == ("fast", rank)
    assert found.accepted >= (1 - 1e-9) * values[rank - 1]


# --- near singular positions -------------------------------------------------------------------------------
def slider_crank(d):
    return sr.library.build("slider_crank"), [np.pi / 2 + d, np.pi]


def flat_four_bar(d):
    return sr.library.build("four_bar", L1=1.0, L2=1.5, L3=1.0, L4=1.5), [d, -d, 0.7 * d - np.pi]


@pytest.mark.parametrize("redundant", [False, True], ids=["choice", "rank-revealing"])
@pytest.mark.parametrize("machine", [slider_crank, flat_four_bar])
def test_rank_drops_exactly_where_a_singular_value_passes_the_tolerance(machine, redundant):
    """From 1e-9 to 0.3 away from the singular position; the acceleration is that of the dense solve throughout."""
    system = replace(sr.compile(machine(0.0)[0]), redundant=redundant)
    rng = np.random.default_rng(0)
    v, f = rng.normal(size=(2, system.layout.nv))
    ranks = []
    for d in 10.0 ** np.arange(-9.0, 0.0, 0.37):
        state = system.state(machine(d)[1], v)
        found, expected = system.solve(state, f=f), reference(system, state, f)
        values = scaled_singular_values(system, state)
        rank = int(np.sum(values > system.tolerance))
        assert found.rank == expected.rank == rank == system.rank(state).rank, d
        condition = values[0] / values[rank - 1] if rank else 1.0
        tolerance = 100 * EPS * max(condition, np.linalg.cond(system.terms(state).M))
        assert largest(found.vdot - expected.vdot) < tolerance * largest(expected.vdot), d
        ranks.append(found.rank)
    assert ranks[0] == len(values) - 1 == ranks[-1] - 1 and ranks == sorted(ranks)


# --- digits ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["fast", "rank-revealing"])
@pytest.mark.parametrize("seed", [s for s in SEEDS if s % 2 == 0])
def test_both_paths_keep_nine_digits_wherever_the_rows_are_well_conditioned(seed, path):
    """The worst of 5000 states with cond(Y) < 1000; cond(M) is about 1e3: k eps cond(M) cond(Y) = 2e-10 k, k = 5.

    Where the two paths differ most is where one of them is bad; there both are held against the dense solve.
    """
    case, system = random_case(seed)
    rng = np.random.default_rng([seed, 5])
    q = np.stack([case.tree.random_configuration(rng) for _ in range(5000)])
    v, f = rng.normal(size=(2, len(q), case.tree.nv))
    states = system.state(q, v)
    found = {p: replace(system, redundant=p != "fast").solve(states, f=f) for p in ("fast", "rank-revealing")}
    assert np.mean(found["fast"].path == "fast") > 0.8  # 14 random rows on 18 velocities are near singular at times
    gap = np.max(np.abs(found["fast"].vdot - found["rank-revealing"].vdot), axis=1)
    order = np.argsort(-gap / np.max(np.abs(found["rank-revealing"].vdot), axis=1))
    worst, checked = (0.0, ""), 0
    for i in map(int, order[:60]):
        state = states.row(i)
        values = scaled_singular_values(system, state)
        if found[path].path[i] != path or values[0] > 1e3 * values[-1]:
            continue
        expected = reference(system, state, f[i]).vdot
        error, checked = largest(found[path].vdot[i] - expected) / largest(expected), checked + 1
        text = f"state {i}: cond(Y) {values[0] / values[-1]:.1e}, smallest accepted {found[path].accepted[i]:.1e}"
        worst = max(worst, (error, text))
    assert checked > 5
    assert worst[0] < 1e-9, f"relative error {worst[0]:.1e} at {worst[1]}"
