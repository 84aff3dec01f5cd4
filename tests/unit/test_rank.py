"""Rank, mobility, redundant rows and minimum-norm forces; singular positions; constraints switched off."""

from dataclasses import replace

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError

# name: (velocities, independent rows, a coordinate that drives it, angles)
REDUNDANT = {
    "bricard": (5, 4, "J0", (0.15, 0.4, 0.9)),
    "parallelogram": (4, 3, "A0", (0.3, 1.0, 2.2)),
    "sarrus": (5, 4, "A1", (0.2, 0.6, 1.1)),
    "bennett": (3, 2, "A", (0.5, 1.0, 2.0)),
}
EPS = np.finfo(float).eps


def compiled(name: str, **parameters) -> sr.System:
    return sr.compile(sr.library.build(name, **parameters))


def moving(system: sr.System, driver: str, angle: float, rate: float = 1.7) -> sr.State:
    return system.assemble({driver: angle}, velocities={driver: rate})


def scaled(system: sr.System, x, active=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L, the kept rows divided by their references in the mass metric, and the references."""
    L = np.linalg.cholesky(x.M)
    kept = list(system.kept)
    rows = x.A[kept] * system.active_rows(active)[kept, None] / system.norms[:, None]
    return L, np.linalg.solve(L, rows.T).T, system.norms


def least_norm(system: sr.System, state: sr.State, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and multipliers by NumPy's pseudo-inverse: the least Σ (λᵢ dᵢ)²."""
    x = system.terms(state)
    L, S, d = scaled(system, x)
    y = np.linalg.solve(L, x.B @ u - x.h)
    inverse = np.linalg.pinv(S, rcond=1e-6)
    mu = inverse.T @ (inverse @ (x.gamma[list(system.kept)] / d) - inverse @ S @ y)
    lam = np.zeros(system.layout.m)
    lam[list(system.kept)] = mu / d
    return np.linalg.solve(L.T, y + S.T @ mu), lam


# --- redundant machines ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", REDUNDANT)
def test_rank_and_mobility(name):
    nv, expected, driver, angles = REDUNDANT[name]
    system = compiled(name)
    for angle in angles:
        rank = system.rank(moving(system, driver, angle))
        assert (rank.rank, rank.mobility) == (expected, 1)
        assert nv == system.layout.nv and rank.rows == system.layout.m
        assert rank.redundant and set(rank.redundant) <= {row.name for row in system.layout.rows}
        assert rank.smallest_accepted > 1e-3 > rank.tolerance > 1e-9 > rank.largest_rejected
        assert list(rank.singular_values) == sorted(rank.singular_values, reverse=True)


@pytest.mark.parametrize("name", REDUNDANT)
def test_accelerations_satisfy_the_equations(name):
    """M v̇ + h = B u + Aᵀλ and A v̇ = γ, redundant rows included."""
    _, expected, driver, angles = REDUNDANT[name]
    system = compiled(name)
    u = np.array([0.8])
    for angle in angles:
        state = moving(system, driver, angle)
        solution = system.solve(state, u)
        x = system.terms(state)
        size = np.abs(x.h).max() + np.abs(x.A).max() * np.abs(solution.lam).max()
        np.testing.assert_allclose(x.M @ solution.vdot + x.h, x.B @ u + x.A.T @ solution.lam, atol=1e-12 * size)
        np.testing.assert_allclose(x.A @ solution.vdot, x.gamma, atol=1e-10 * np.abs(solution.vdot).max())
        assert np.abs(solution.vdot).max() > 0.01
        assert (solution.rank, solution.path, solution.rows) == (expected, "rank-revealing", system.layout.m)


@pytest.mark.parametrize("name", REDUNDANT)
def test_multipliers_are_of_minimum_norm(name):
    _, _, driver, angles = REDUNDANT[name]
    system = compiled(name)
    u = np.array([0.8])
    for angle in angles:
        state = moving(system, driver, angle)
        vdot, lam = least_norm(system, state, u)
        solution, forces = system.solve(state, u), system.constraint_forces(state, u)
        np.testing.assert_allclose(solution.vdot, vdot, atol=1e-10 * np.abs(vdot).max())
        np.testing.assert_allclose(solution.lam, lam, atol=1e-9 * np.abs(lam).max())
        np.testing.assert_array_equal(np.concatenate([forces[g] for g in system.groups]), solution.lam)
        x = system.terms(state)
        np.testing.assert_allclose(forces.generalised, x.A.T @ lam, atol=1e-9 * np.abs(x.A.T @ lam).max())
        np.testing.assert_allclose(sum(forces.by_group.values()), forces.generalised, atol=1e-12 * np.abs(lam).max())


def test_parallel_cranks_move_as_one():
    """Closed form: each crank about its pivot (1/3 m l²) and the coupler's mass at their ends."""
    system = compiled("parallelogram")
    a, rate, u = 1.1, 1.7, 2.0
    solution = system.solve(moving(system, "A0", a, rate), [u])
    inertia = 3 * (1.0 / 3) + 2.0
    pull = -9.81 * np.cos(a) * (3 * 0.5 + 2.0)
    np.testing.assert_allclose(solution.vdot[:3], (u + pull) / inertia, rtol=1e-12)


def test_rows_of_a_planar_machine_out_of_its_plane_are_zero():
    system = compiled("four_bar")
    rank = system.rank(system.assemble())
    assert (rank.rows, rank.rank, rank.mobility, rank.redundant) == (3, 2, 1, ("D.y",))


# --- singular positions ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rate", [0.0, 1.0, -3.0])
def test_slider_crank_exactly_at_its_singular_position(rate):
    system = compiled("slider_crank")
    state = system.state([np.pi / 2, np.pi], [rate, -2 * rate])
    rank, solution = system.rank(state), system.solve(state)
    assert (rank.rank, rank.mobility, rank.rows) == (0, 2, 1)
    assert rank.singular_values.shape == (1,) and rank.singular_values[0] < 1e-15
    assert rank.largest_rejected == rank.singular_values[0] and rank.smallest_accepted == np.inf
    assert rank.redundant == ("slider.height",)
    assert (solution.rank, solution.path, solution.accepted) == (0, "rank-revealing", np.inf)
    assert solution.rejected < 1e-15
    x = system.terms(state)
    np.testing.assert_allclose(solution.vdot, np.linalg.solve(x.M, -x.h), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(solution.lam, [0.0])
    assert np.all(np.isfinite(solution.vdot))


@pytest.mark.parametrize(("offset", "expected"), [(1e-2, 1), (1e-4, 1), (1e-8, 0), (1e-12, 0)])
def test_rank_next_to_the_singular_position(offset, expected):
    """On the slider branch; the row shrinks like the offset, the tolerance is 1e-6."""
    system = compiled("slider_crank")
    a = np.pi / 2 - offset
    state = system.state([a, 2 * np.pi - 2 * a], [1.0, -2.0])
    rank, solution = system.rank(state), system.solve(state)
    assert rank.rank == solution.rank == expected
    assert 0.01 * offset < rank.singular_values[0] < 10 * offset
    assert np.all(np.isfinite(solution.vdot)) and np.abs(solution.vdot).max() < 100


def test_parallelogram_where_all_bars_are_on_one_line():
    system = compiled("parallelogram")
    flat = system.state(np.zeros(4), np.zeros(4))
    rank = system.rank(flat)
    assert rank.rank == 2 and rank.mobility == 2  # the other branch of motion begins here
    assert np.all(np.isfinite(system.acceleration(flat, [1.0])))
    assert system.solve(flat).rank == 2


def test_rank_wants_one_state():
    system = compiled("pendulum")
    with pytest.raises(StateError, match=r"rank: give one state \(state.row\(i\)"):
        system.rank(system.state(np.zeros((2, 1))))
    assert system.rank(system.assemble()).mobility == 1 and system.rank(system.assemble()).rank == 0


# --- switched off ----------------------------------------------------------------------------------------------------
def without(name: str, group: str) -> sr.System:
    """The machine without one closure (or one joint that would be cut)."""
    model = sr.library.build(name).finalize()
    return sr.compile(
        replace(
            model,
            name=f"{name} without {group}",
            closures=tuple(c for c in model.closures if c.name != group),
            couplings=tuple(c for c in model.couplings if c.name != group),
            joints=tuple(j for j in model.joints if j.name != group),
            groups=tuple(g for g in model.groups if g != group),
        )
    )


OFF = [
    ("four_bar", "D", "fast"), ("stewart", "top2", "fast"), ("two_arms", "left grip", "fast"),
    ("planar_platform", "leg1", "fast"), ("geared_chain", "gear2", "fast"), ("n_four_bar", "C1", "fast"),
    ("parallelogram", "C2", "rank-revealing"), ("bricard", None, "rank-revealing"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "group", "path"), OFF)
def test_a_group_switched_off_is_a_group_that_is_not_there(name, group, path, rng):
    system = compiled(name)
    group = group or system.groups[0]
    other = without(name, group)
    assert other.layout.q_names == system.layout.q_names
    assert other.groups == tuple(g for g in system.groups if g != group)
    start = system.assemble()
    v = system.projector(start, active={group: False}) @ rng.normal(size=system.layout.nv)
    state, u = system.state(start.q, v), rng.normal(size=system.layout.nu)
    solution = system.solve(state, u, active={group: False})
    expected = other.solve(other.state(start.q, v), u)
    size = np.abs(expected.vdot).max()
    assert solution.path == path
    assert solution.vdot.shape == (system.layout.nv,) and solution.lam.shape == (system.layout.m,)
    np.testing.assert_allclose(solution.vdot, expected.vdot, atol=1e-10 * size)
    rows = system.layout.group_rows(group)
    np.testing.assert_array_equal(solution.lam[rows], 0.0)
    others = np.delete(solution.lam, np.arange(rows.start, rows.stop))
    np.testing.assert_allclose(others, expected.lam, atol=1e-9 * max(1.0, np.abs(expected.lam).max(initial=0.0)))
    ranks = system.rank(state, {group: False}), other.rank(other.state(start.q, v))
    assert ranks[0].rank == ranks[1].rank == solution.rank
    assert ranks[0].rows == ranks[1].rows == solution.rows
    assert ranks[0].redundant == ranks[1].redundant
    assert np.abs(system.acceleration(state, u) - solution.vdot).max() > 1e-3 * size


def test_everything_switched_off_is_the_tree(rng):
    system = compiled("stewart")
    state = system.state(system.assemble().q, rng.normal(size=24))
    off = dict.fromkeys(system.groups, False)
    x, u = system.terms(state), rng.normal(size=6)
    solution = system.solve(state, u, active=off)
    expected = np.linalg.solve(x.M, x.B @ u - x.h)
    np.testing.assert_allclose(solution.vdot, expected, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(solution.lam, 0.0)
    assert (solution.rank, solution.rows, solution.path) == (0, 0, "fast")
    np.testing.assert_array_equal(system.projector(state, active=off), np.eye(24))


def test_active_true_is_the_default_and_unknown_groups_are_named():
    system = compiled("four_bar")
    state = moving(system, "A", 1.0)
    np.testing.assert_array_equal(system.acceleration(state, active={"D": True}), system.acceleration(state))
    for call in (system.solve, system.rank, system.projector, system.constraint_forces):
        with pytest.raises(UnknownNameError, match=r"unknown constraint 'E'. .*Known: 'D'"):
            call(state, active={"E": False})


# --- determinate or not ----------------------------------------------------------------------------------------------
def two_machines_in_one() -> sr.Mechanism:
    """A redundant parallelogram and, beside it, a determinate pendulum on a sliding rail."""
    mech = sr.library.build("parallelogram")
    bob = mech.body("bob", 1.0, (0.3, 0), 0.1)
    mech.planar_joint("bob", mech.ground, bob, initial=(5.0, 0.0, 0.3))
    mech.close("rail", sr.line_on(mech.ground, (5, 0), "x"), sr.point_on(bob, (0, 0)))
    return mech


@pytest.mark.parametrize("name", ["two in one", *REDUNDANT, "four_bar", "two_arms", "n_four_bar", "spherical_four_bar"])
def test_determinate_flags_by_moving_in_the_null_space(name, rng):
    """Adding to λ what Aᵀ does not see changes the shares of the groups that are not determinate, and no others."""
    system = sr.compile(two_machines_in_one()) if name == "two in one" else compiled(name)
    state = system.assemble()
    forces = system.constraint_forces(state, rng.normal(size=system.layout.nu))
    A = system.terms(state).A
    U, sigma, _ = np.linalg.svd(A)
    null = U[:, np.sum(sigma > 1e-9 * sigma[0]) :]
    other = null @ rng.normal(size=null.shape[1])
    np.testing.assert_allclose(A.T @ other, 0, atol=1e-12)
    changed = {}
    for group in system.groups:
        rows = system.layout.group_rows(group)
        changed[group] = bool(np.abs(A[rows].T @ other[rows]).max() > 1e-9)
    assert dict(forces.determinate) == {group: not x for group, x in changed.items()}
    if name == "two in one":
        assert forces.determinate == {"C1": False, "C2": False, "rail": True}


def test_projectors(rng):
    for name in ("bricard", "stewart", "rolling_disc"):
        system = compiled(name)
        state = system.assemble()
        x = system.terms(state)
        mass, plain = system.projector(state), system.projector(state, "plain")
        for P, metric in ((mass, x.M), (plain, np.eye(len(x.M)))):
            np.testing.assert_allclose(P @ P, P, atol=1e-11)
            np.testing.assert_allclose(metric @ P, (metric @ P).T, atol=1e-11 * np.abs(metric).max())
            np.testing.assert_allclose(x.A @ P, 0, atol=1e-10)
            assert np.trace(P) == pytest.approx(system.rank(state).mobility, abs=1e-9)
        np.testing.assert_allclose(plain, np.eye(len(plain)) - np.linalg.pinv(x.A, rcond=1e-9) @ x.A, atol=1e-10)
    with pytest.raises(StateError, match="projector: unknown metric 'energy'; use 'mass' or 'plain'"):
        system.projector(state, "energy")
