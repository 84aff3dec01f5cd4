"""All formulations give the acceleration and the constraint force of the default, to 1e-9 in the mass metric.

The reference is compiled code that shares nothing with them but the terms of the equation of motion.
"""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr
from oracles import motion

from .machines import EVERY, force_size, library, mass_size, moving, place

EXACT = [x.name for x in sr.formulations() if x.name != "regularised"]
LIMIT = 1e-9


@pytest.mark.parametrize("name", EVERY)
def test_every_formulation_agrees_with_the_default(name, rng):
    for _ in range(2):
        _, system, state, u, f = place(name, rng)
        M, h = system.terms(state).M, system.terms(state).h
        wanted = system.solve(state, u, f)
        force = system.constraint_forces(state, u, f).generalised
        size = mass_size(M, wanted.vdot) + force_size(M, force) + force_size(M, h) + force_size(M, f)
        for form in EXACT:
            vdot = system.acceleration(state, u, f, formulation=form)
            error = mass_size(M, vdot - wanted.vdot) / size
            assert error <= LIMIT, f"{form}: acceleration off by {error:.1e}"
            found = system.constraint_forces(state, u, f, formulation=form)
            error = force_size(M, found.generalised - force) / size
            assert error <= LIMIT, f"{form}: constraint force off by {error:.1e}"


@pytest.mark.parametrize("name", ["random-3", "random-8", "sarrus"])
def test_forces_of_formulations_lie_in_the_range_of_the_rows_by_themselves(name, rng):
    """`constraint_forces` goes through λ; here is what each formulation returns before that."""
    from sarrus.dynamics.formulations.point import point_at

    _, system, state, u, f = place(name, rng)
    point = point_at(system, state, u, f, None)
    wanted = system.constraint_forces(state, u, f).generalised
    size = force_size(point.M, wanted) + force_size(point.M, point.f - point.h)
    for form in sr.formulations():
        if form.name == "regularised":
            continue
        vdot, force = form.evaluate(point, form.options)
        assert force_size(point.M, force - wanted) <= LIMIT * size, form.name
        assert force_size(point.M, point.M @ vdot + point.h - point.f - force) <= LIMIT * size, form.name


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("virtual-mass", {"mu": 0.01}), ("virtual-mass", {"mu": 30.0}), ("projection-scaled", {"gamma": -2.0}),
        ("projection-scaled", {"gamma": 7.0}), ("quasi-velocity", {"factor": "root"}),
        ("quasi-velocity", {"factor": "innovation"}), ("null-space", {"basis": "orthonormal"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["random-5", "random-8", "prescribe"])
def test_options_change_the_way_but_not_the_result(name, form, options, rng):
    _, system, state, u, f = place(name, rng)
    M = system.terms(state).M
    wanted = system.acceleration(state, u, f)
    found = system.acceleration(state, u, f, formulation=sr.formulation(form, **options))
    assert mass_size(M, found - wanted) <= LIMIT * (mass_size(M, wanted) + force_size(M, f))


@pytest.mark.parametrize("form", ["projection", "projection-symmetric", "projection-scaled", "virtual-mass"])
def test_the_metric_does_not_change_the_motion(form, rng):
    """Sheet 2.8: weights as numbers and as a full matrix; two machines, one redundant."""
    for name in ("random-3", "random-8"):
        _, system, state, u, f = place(name, rng)
        M, n = system.terms(state).M, system.layout.nv
        wanted = system.acceleration(state, u, f)
        root = rng.normal(size=(n, n))
        for W in (10.0 ** rng.uniform(-1, 1, n), root @ root.T + n * np.eye(n)):
            found = system.acceleration(state, u, f, formulation=sr.formulation(form, W=W))
            assert mass_size(M, found - wanted) <= LIMIT * (mass_size(M, wanted) + force_size(M, f))


def test_switched_off_constraints_and_arrays_of_states(rng):
    system = library("five_bar")
    start = system.assemble()
    group = system.groups[0]
    q = np.stack([start.q, start.q])
    v = system.projector(start, active={group: False}) @ rng.normal(size=(system.layout.nv, 2))
    states = system.state(q, v.T)
    u = rng.normal(size=(2, system.layout.nu))
    wanted = system.acceleration(states, u, active={group: False})
    held = system.acceleration(states.row(0), u[0])
    assert np.max(np.abs(held - wanted[0])) > 1e-3, "the constraint does something here"
    for form in ("projection", "multiplier", "coordinate-split"):
        np.testing.assert_allclose(
            system.acceleration(states, u, active={group: False}, formulation=form), wanted, rtol=1e-9, atol=1e-9
        )


# --- off the constraints -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["four_bar", "parallelogram"])
def test_baumgarte_damps_errors_with_its_gains(name, rng):
    """A v̇ - γ = -2α(A v - a) - β²Φ at a state that breaks the constraints (sheet 10)."""
    system = library(name)
    start = system.assemble()
    q = system.retract(start.q, 1e-3 * rng.normal(size=system.layout.nv))
    state = system.state(q, rng.normal(size=system.layout.nv))
    x = system.terms(state)
    vdot = system.acceleration(state, formulation=sr.formulation("baumgarte", alpha=3.0, beta=5.0))
    wanted = x.gamma - 6.0 * (x.A @ state.v - x.a) - 25.0 * x.phi
    gap = x.A @ vdot - wanted
    if name == "parallelogram":  # dependent rows contradict each other off the constraints: the fit is the best one
        kept = list(system.kept)
        L = np.linalg.cholesky(x.M)
        rows = np.linalg.solve(L, x.A[kept].T / system.norms).T
        gap = rows.T @ (gap[kept] / system.norms)
    np.testing.assert_allclose(gap, 0, atol=1e-9 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("name", ["four_bar", "parallelogram", "random-9"])
def test_regularisation_gives_up_the_stated_part(name, rng):
    """Sheet 10: along eigenvector i of Wc eps / (s_i² + eps) of A v̇ - γ without forces is left."""
    system, state = place(name, rng)[1:3] if name.startswith("random") else moving(name, rng)
    eps = 1e-3
    x, kept = system.terms(state), list(system.kept)
    A, gamma = x.A[kept] / system.norms[:, None], x.gamma[kept] / system.norms
    s, V = np.linalg.eigh(A @ np.linalg.solve(x.M, A.T))
    vdot = system.acceleration(state, formulation=sr.formulation("regularised", eps=eps, h=1e6))
    left = V.T @ (A @ vdot - gamma)
    free = V.T @ (A @ np.linalg.solve(x.M, -x.h) - gamma)
    np.testing.assert_allclose(left, eps / (s**2 + eps) * free, atol=1e-9 * np.max(np.abs(free)))


def test_regularisation_damps_errors_within_its_time():
    """eps -> 0: Baumgarte with a1 = 2/h, a0 = 2/h², that is alpha = 1/h, beta = sqrt(2)/h."""
    system = library("four_bar")
    start = system.assemble(velocities={system.layout.v_names[0]: 1.0})
    state = system.state(system.retract(start.q, [1e-4, -2e-4, 1e-4]), [*(start.v + 0.01)])
    h = 0.02
    found = system.acceleration(state, formulation=sr.formulation("regularised", h=h, eps=1e-24))
    same = system.acceleration(state, formulation=sr.formulation("baumgarte", alpha=1 / h, beta=np.sqrt(2) / h))
    np.testing.assert_allclose(found, same, rtol=1e-9)


# --- near singular positions ---------------------------------------------------------------------------------------
def towards_the_fold(gap: float) -> tuple[sr.System, sr.State]:
    """The arm on x = 0 of sheet 12.7, `gap` above its first singular position, on its way from rest at π/3."""
    system, minimal = library("arm_on_curve", curve="x=0"), motion.arm_on_line()
    q1 = gap
    fall = minimal.potential(np.array([np.pi / 3])) - minimal.potential(np.array([q1]))
    speed = -np.sqrt(2 * fall.item() / np.asarray(minimal.inertia(np.array([q1]))).item())
    return system, system.state((q1, np.pi - 2 * q1), (speed, -2 * speed))


ODES = [x.name for x in sr.formulations() if not x.index and x.name != "regularised"]


@pytest.mark.parametrize("form", ODES)
def test_near_a_singular_position_the_motion_is_that_of_the_branch(form):
    """Acceleration on the branch q2 = π - 2 q1: of the machine with one coordinate; rounding grows like 1/sigma²."""
    for gap in (1e-1, 1e-2, 1e-3):
        system, state = towards_the_fold(gap)
        minimal = motion.arm_on_line()
        s, w = state.q[:1], state.v[:1]
        wanted = minimal.acceleration(0.0, s, w)[0]
        found = system.acceleration(state, formulation=form)
        sigma = system.rank(state).smallest_accepted
        np.testing.assert_allclose(found, [wanted, -2 * wanted], rtol=1e-13 / sigma**2)


@pytest.mark.parametrize("form", ["projection", "virtual-mass", "quasi-velocity", "multiplier", "gauss"])
def test_the_multiplier_diverges_and_the_force_does_not(form):
    """Sheet 2.6: lam = -35, -93, -781, -7631 at |A| = .66, .22, .022, .0022 while Aᵀ lam -> (15.3, 7.6)."""
    for size, lam, digits in ((0.66, -35, 0.02), (0.22, -93, 0.02), (0.022, -781, 0.02), (0.0022, -7631, 0.02)):
        system, state = towards_the_fold(np.arcsin(size / np.sqrt(5)))
        found = system.constraint_forces(state, formulation=form)
        np.testing.assert_allclose(found["curve"].max(), lam, rtol=digits)
        assert np.linalg.norm(found.generalised) < 24
    np.testing.assert_allclose(found.generalised, [15.3, 7.6], rtol=0.02)


def test_at_the_singular_position_itself_all_agree_that_the_row_is_gone():
    """P = I there: the machine moves on without the row, and no force acts (first paper, sheet 2.6)."""
    system, state = towards_the_fold(0.0)
    x = system.terms(state)
    free = np.linalg.solve(x.M, -x.h)
    for form in ODES:
        np.testing.assert_allclose(system.acceleration(state, formulation=form), free, rtol=1e-9, err_msg=form)
        np.testing.assert_allclose(system.constraint_forces(state, formulation=form).generalised, 0, atol=1e-9)


def test_regularisation_passes_the_singular_position_smoothly():
    """No jump within the window, in which the others lose the row; far from it the result is theirs."""
    gaps = np.linspace(-1e-3, 1e-3, 41)
    accelerations = []
    for gap in gaps:
        system, state = towards_the_fold(float(gap))
        accelerations.append(system.acceleration(state, formulation=sr.formulation("regularised", eps=1e-6)))
    a = np.array(accelerations)
    assert np.isfinite(a).all()
    steps = np.linalg.norm(np.diff(a, axis=0), axis=1)
    assert np.max(steps) < 0.2 * np.linalg.norm(a[20] - a[0]) + 1e-6
