"""What a run asks of its start, residuals and generic rank by compiled code: against NumPy and known mobilities."""

import numpy as np
import pytest
from accuracy import library

import sarrus as sr
from sarrus.kernel.motion import Motion
from sarrus.simulation.mode import Mode, shape_of

FLAT = {"A0": 0.0, "A1": 0.0, "A2": 0.0, "B1": 0.0, "B2": 0.0}

# machine, parameters, start, rank on the motion away from singular positions (velocities less mobility)
RANKS = [
    ("four_bar", {}, {}, 2),
    ("bricard", {}, {}, 4),  # one row too many everywhere
    ("parallelogram", {}, {}, 3),  # one row too many everywhere
    ("sarrus", {}, {}, 4),  # one row too many everywhere
    ("stewart", {}, {}, 18),
    ("n_four_bar", {"n": 2}, FLAT, 4),  # all links on one line: only 2 there
    ("slider_crank", {}, {"A": np.pi / 2}, 1),  # the row vanishes there
]


def entered(system: sr.System, state: sr.State, **active: bool) -> Motion:
    assert system.library is not None
    mode = Mode(system, dict.fromkeys(system.groups, True) | active)
    motion = Motion(shape_of(system), system.library.path)
    mode.enter(motion, state)
    return motion


def rank_by_svd(system: sr.System, q: np.ndarray) -> int:
    terms = system.terms(system.state(q))
    Y = np.linalg.solve(np.linalg.cholesky(terms.M), terms.A.T)
    return int(np.linalg.matrix_rank(Y, tol=1e-5 * np.linalg.norm(Y, 2)))


@pytest.mark.parametrize(("name", "parameters", "positions", "expected"), RANKS, ids=[row[0] for row in RANKS])
def test_the_rank_of_the_motion_is_that_of_neighbours_on_it(name, parameters, positions, expected, rng):
    system = library(name, **parameters)
    state = system.assemble(positions)
    scales = np.array(system.layout.scales)
    around = [
        system.assemble(near=system.state(system.retract(state.q, 0.02 * scales * rng.uniform(-1, 1, len(scales)))))
        for _ in range(3)
    ]
    ranks = [rank_by_svd(system, near.q) for near in around]
    assert entered(system, state).raw.rank == max(ranks) == expected


def test_at_a_singular_position_the_rank_is_smaller_than_that_of_the_motion():
    system = library("n_four_bar", n=2)
    start = system.assemble(FLAT)
    assert rank_by_svd(system, start.q) == 2 and entered(system, start).raw.rank == 4


def test_switched_off_constraints_do_not_count():
    system = library("stewart")
    off = system.groups[:2]
    rows = sum(s.stop - s.start for s in map(system.layout.group_rows, off))
    motion = entered(system, system.assemble(), **dict.fromkeys(off, False))
    assert motion.raw.rank == 18 - rows and not motion.raw.dependent


@pytest.mark.parametrize("name", ["stewart", "andrews", "rolling_disc"])
def test_residuals_of_a_start_are_those_of_the_terms(name, rng):
    system = library(name)
    home = system.assemble()
    layout = system.layout
    state = system.state(
        system.retract(home.q, 0.1 * np.array(layout.scales) * rng.uniform(-1, 1, layout.nv)),
        rng.normal(size=layout.nv),
    )
    flags = np.ones(layout.m)
    flags[1] = 0.0
    terms = system.terms(state)
    kept = np.zeros(layout.m)
    kept[list(system.kept)] = 1.0
    assert system.library is not None
    phi, rate, size = system.library.residuals(state.t, state.q, state.v, system._constants, flags)
    np.testing.assert_allclose(phi, terms.phi * flags * kept, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rate, (terms.A @ state.v - terms.a) * flags, rtol=1e-11, atol=1e-13)
    expected = (np.abs(terms.A) @ np.abs(state.v) + np.abs(terms.a)) * flags
    np.testing.assert_allclose(size, expected, rtol=1e-12, atol=1e-14)
    assert np.abs(rate).max() > 1e-3
