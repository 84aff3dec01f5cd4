"""What a run asks of its start, residuals and generic rank by compiled code: against NumPy and known mobilities."""

import casadi as ca
import numpy as np
import pytest
from accuracy import library

import sarrus as sr
from sarrus.errors import StateError
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
    found = system.library.residuals(state.t, state.q, state.v, system._constants, flags)
    phi, rate, size, square = found
    np.testing.assert_allclose(phi, terms.phi * flags * kept, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rate, (terms.A @ state.v - terms.a) * flags, rtol=1e-11, atol=1e-13)
    expected = (np.abs(terms.A) @ np.abs(state.v) + np.abs(terms.a)) * flags
    np.testing.assert_allclose(size, expected, rtol=1e-12, atol=1e-14)
    assert square == pytest.approx(state.v @ terms.M @ state.v, rel=1e-12)
    assert np.abs(rate).max() > 1e-3


@pytest.fixture(scope="module")
def doomed() -> sr.System:
    """A particle on a circle, with a further row that no motion can influence: it holds at t = 0 only."""
    x, y, vx, vy, t = (ca.SX.sym(name) for name in ("x", "y", "vx", "vy", "t"))
    return sr.compile(
        sr.Lagrangian(
            "doomed", time=t, coordinates=[x, y], velocities=[vx, vy], kinetic=(vx * vx + vy * vy) / 2,
            holonomic={"rod": (x * x + y * y - 1) / 2, "clock": t}, initial={"x": 1.0},
        )
    )  # fmt: skip


def test_a_row_of_time_alone_is_looked_at_too(doomed):
    """The compiled code leaves such rows out, so that another way of looking at the start must be taken."""
    assert doomed.kept == (0,)
    late = doomed.state((1.0, 0.0), (0.0, 1.0), t=0.5)
    with pytest.raises(StateError, match=r"breaks constraint 'clock' by 0\.5"):
        sr.simulate(doomed, late, 1.0)
    with pytest.raises(StateError, match=r"breaks constraint 'rod' by 0\.105"):
        sr.simulate(doomed, doomed.state((1.1, 0.0)), 1.0)


def test_both_ways_of_looking_at_the_velocities_agree(doomed):
    for system in (doomed, library("particle_on_circle")):
        with pytest.raises(StateError, match="velocities at the start break constraint"):
            sr.simulate(system, system.state((1.0, 0.0), (0.1, 1.0)), 1.0)
    kept = system.state((1.0, 0.0), (0.0, 1.0))
    assert sr.simulate(system, kept, 0.1).status.ok


@pytest.mark.parametrize("name", ["andrews", "stewart", "bricard", "slider_crank"])
def test_singular_values_by_compiled_code_are_those_of_the_dense_rows(name):
    system = library(name)
    state = system.assemble()
    for off in (None, system.groups[0]):
        flags = {g: g != off for g in system.groups}
        expected = system.rank(state, flags)
        sigma, rank = Mode(system, flags).singular_values(state.t, state.q)
        np.testing.assert_allclose(sigma, expected.singular_values, rtol=1e-10, atol=1e-14)
        assert rank == expected.rank


def test_near_a_singular_position_velocities_are_compared_with_what_the_row_usually_asks_for():
    """The row of the slider-crank vanishes at A = π/2, so that hardly anything is left of it to be broken."""
    system = library("slider_crank")

    def slipping(crank: float) -> sr.State:
        return system.state((crank, 2 * np.pi - 2 * crank), (2.0, -4.0 + 1e-5))

    assert sr.simulate(system, slipping(np.pi / 2 - 1e-9), 0.01).status.ok
    with pytest.raises(StateError, match="velocities at the start break constraint 'slider'"):
        sr.simulate(system, slipping(0.3), 0.01)


def test_the_version_is_looked_up_once_however_many_runs_there_are():
    """Reading the package's metadata takes longer than a short run."""
    from sarrus.simulation import settings

    system = library("pendulum")
    runs = [sr.simulate(system, system.assemble(), 0.1) for _ in range(3)]
    assert {traj.settings["version"] for traj in runs} == {sr.__version__}
    assert settings._version.cache_info().misses == 1


@pytest.mark.parametrize(("velocities", "later"), [({"A": 1.0, "B": -2.0}, None), ({"A": 1.0}, np.pi)])
def test_a_start_right_at_a_singular_position(velocities, later):
    """Positions are found as well as can be where a row vanishes, and the velocity chooses the branch (sheet 12.1)."""
    system = sr.compile(sr.library.build("slider_crank"))
    start = system.assemble({"A": np.pi / 2}, velocities)
    assert abs(start["B"] - np.pi) < 1e-7  # half the digits: Φ is of second order there
    exact = system.state([np.pi / 2, np.pi], [1.0, velocities.get("B", 0.0)])
    np.testing.assert_allclose(start.v, exact.v, atol=1e-12)
    found, reference = (sr.simulate(system, x, 3.0, rtol=1e-10) for x in (start, exact))
    np.testing.assert_allclose(found.q[-1], reference.q[-1], atol=1e-6)
    branch = 2 * np.pi - 2 * found["A"] if later is None else later
    np.testing.assert_allclose(found["B"], branch, atol=1e-7)
    assert np.ptp(found["energy.total"]) < 1e-8


def test_velocities_that_break_a_row_are_refused_next_to_a_singular_position():
    system = sr.compile(sr.library.build("slider_crank"))
    for near in (1e-1, 1e-3, 1e-4):
        angles = {"A": np.pi / 2 + near, "B": np.pi - 2 * near}
        assert system.assemble(angles, {"A": 1.0, "B": -2.0})["B.v"] == -2.0
        with pytest.raises(sr.errors.AssemblyError, match="no velocities satisfy constraint 'slider'"):
            system.assemble(angles, {"A": 1.0, "B": -2.001})


@pytest.mark.parametrize("method", [{}, {"method": "radau"}, {"method": "rk4", "dt": 1e-3}])
def test_velocities_that_lead_off_every_branch_are_refused(method):
    """At a singular position rows ask for nothing of first order; but v2 (2 v1 + v2) has to be zero there."""
    system = sr.compile(sr.library.build("slider_crank"))
    for rate in (-1.0, 0.5):
        start = system.assemble({"A": np.pi / 2}, {"A": 1.0, "B": rate})
        with pytest.raises(StateError, match="the velocities at the start lead off every branch of 'slider'"):
            sr.simulate(system, start, 1.0, **method)
