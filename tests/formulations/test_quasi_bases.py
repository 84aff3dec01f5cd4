"""Bases of the free directions that turn smoothly, and the quasi-velocities of states and trajectories in them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sarrus as sr
from sarrus.dynamics.formulations.factors import FACTORS
from sarrus.dynamics.formulations.sections import aligned, polar_section, polar_section_rate, transport_rate

from .machines import library, mass_size, moving, place

# central difference of order 8
WEIGHTS = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])


def size_of(x: np.ndarray) -> float:
    """Largest entry."""
    return float(np.max(np.abs(x), initial=0.0))


# --- bases -----------------------------------------------------------------------------------------------------------
def stations(name: str, kind: str, count: int) -> list[Any]:
    """Matrices along a motion, close together."""
    system = library(name)
    start = system.assemble()
    v = system.projector(start) @ np.random.default_rng(3).normal(size=system.layout.nv)
    run = sr.simulate(system, system.state(start.q, v), 0.05, rtol=1e-13, output=np.linspace(0, 0.05, count))
    assert not run.crossings
    return [system.matrices(run.state(i), factor=kind) for i in range(count)]


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", ["five_bar", "planar_platform", "stewart"])
def test_bases_are_smooth_where_those_of_a_decomposition_jump(name, kind):
    """6: (a), (b) and (c) span the null space, are orthonormal, and turn by no more than the motion does."""
    places = stations(name, kind, 41)
    svd = [np.linalg.svd(x.Lam)[2][x.point.rank :].T for x in places]
    field = [polar_section(V2, svd[0]) for V2 in svd]
    chain = [svd[0]]
    for V2 in svd[1:]:
        chain.append(aligned(V2, chain[-1]))
    for bases in (field, chain):
        steps = [size_of(b - a) for a, b in pairwise(bases)]
        assert max(steps) < 0.05
        for x, V in zip(places, bases, strict=True):
            np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), rtol=0, atol=1e-13)
            np.testing.assert_allclose(V @ V.T, x.V2w @ x.V2w.T, rtol=0, atol=1e-11)
    # (b) is (a) about the basis before, and both are the same whatever basis the decomposition gives
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(svd[0].shape[1],) * 2))[0]
    np.testing.assert_allclose(aligned(svd[9] @ turn, field[7]), polar_section(svd[9], field[7]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", ["five_bar", "planar_platform", "stewart"])
def test_rates_of_the_bases(name, kind):
    """Finite differences of the field (a) along the motion; (c) does not turn in itself; Żs of both keep A Z = 0."""
    places = stations(name, kind, 41)
    reference, e = places[3].V2w, 0.05 / 40
    k = 20
    field = [polar_section(places[k + i].V2w, reference) for i in range(-4, 5)]
    slope = np.einsum("i,ijk->jk", WEIGHTS, np.array(field)) / e
    x = places[k]
    rate = polar_section_rate(x.V2w, reference, x.Pwdot)
    np.testing.assert_allclose(rate, slope, rtol=0, atol=1e-7 * (1 + size_of(slope)))
    still = transport_rate(field[4], x.Pwdot)
    np.testing.assert_allclose(field[4].T @ still, np.zeros((still.shape[1],) * 2), rtol=0, atol=1e-9)
    # the rate of (a) is that of (c) and a turning within the span, which is skew
    own = field[4].T @ rate
    np.testing.assert_allclose(rate, still + field[4] @ own, rtol=0, atol=1e-9 * (1 + size_of(rate)))
    np.testing.assert_allclose(own, -own.T, rtol=0, atol=1e-9 * (1 + size_of(rate)))
    y = x.system.matrices(x.state, factor=kind, reference=reference)
    np.testing.assert_allclose(y.V2w, field[4], rtol=0, atol=1e-12)
    Zs = [np.linalg.solve(places[k + i].W.T, field[4 + i]) for i in range(-4, 5)]
    slope = np.einsum("i,ijk->jk", WEIGHTS, np.array(Zs)) / e
    np.testing.assert_allclose(y.Zdot, slope, rtol=0, atol=1e-7 * (1 + size_of(slope)))


def test_a_section_that_has_turned_away_is_refused():
    system = library("particle_on_circle")
    there = system.matrices(system.assemble())
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]]) @ there.V2w
    with pytest.raises(
        sr.SarrusError, match=r"turned by 90\.0 degrees from the reference basis; expected well below 90"
    ):
        polar_section(there.V2w, quarter)
    with pytest.raises(sr.SarrusError, match=r"reference: expected a basis of the 1 free directions as columns"):
        system.matrices(system.assemble(), reference=np.eye(2))


def test_the_circle_of_the_paper():
    """12.3: vr = g θ̇ = -g q̇₁/q₂ with g = (m₂q₁² + m₁q₂²)^½, up to the sign of the basis; Γr = 0."""
    system = library("cartesian_on_circle")
    m = np.diag(system.terms(system.assemble()).M)
    for angle in (0.3, 1.9, 4.0):
        q = np.array([np.cos(angle), np.sin(angle)])
        radius = np.linalg.norm(system.assemble().q)
        state = system.state(radius * q, 1.7 * radius * np.array([-q[1], q[0]]))
        x = system.matrices(state)
        g = np.sqrt(m[1] * state.q[0] ** 2 + m[0] * state.q[1] ** 2)
        np.testing.assert_allclose(abs(x.vr[0]), 1.7 * g, rtol=1e-12)
        np.testing.assert_allclose(x.Gr, [[0.0]], atol=1e-12)
        np.testing.assert_allclose(x.vn, [0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize("name", ["prescribe", "constrain_velocity", "rolling", "random-9"])
def test_moving_constraints_have_their_own_velocity(name, rng):
    """V = Z vr + vn, A vn = a, Zᵀ M vn = 0, 2T = |vr|² + vnᵀ M vn."""
    _, system, state, _, _ = place(name, rng)
    x, terms = system.matrices(state), system.terms(state)
    np.testing.assert_allclose(x.Z @ x.vr + x.vn, state.v, rtol=0, atol=1e-11 * size_of(state.v))
    np.testing.assert_allclose(terms.A @ x.vn, terms.a, rtol=0, atol=1e-11 * (1 + size_of(terms.a)))
    np.testing.assert_allclose(x.Z.T @ x.M @ x.vn, 0 * x.vr, rtol=0, atol=1e-11 * mass_size(x.M, state.v))
    energy = 2 * system.energy(state).kinetic
    np.testing.assert_allclose(x.vr @ x.vr + x.vn @ x.M @ x.vn, energy, rtol=1e-11)
    assert (size_of(x.vn) > 1e-3) == (name in ("prescribe", "constrain_velocity"))


# --- along a trajectory ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", ["four_bar", "parallelogram", "five_bar", "stewart"])
def test_quasi_velocities_along_a_motion(name, kind):
    """|vr|² = 2T, and without jumps, through singular positions too."""
    system = library(name)
    start = moving(name, np.random.default_rng(5))[1]
    if name == "parallelogram":
        start = system.assemble({system.layout.q_names[0]: -0.3})
    traj = sr.simulate(system, start, 1.0, rtol=1e-10, output=np.linspace(0, 1, 401))
    vr = traj.quasi_velocities(kind)
    assert vr.shape == (401, system.layout.nv - max(int(system.rank(traj.state(i)).rank) for i in range(0, 401, 20)))
    np.testing.assert_allclose(np.sum(vr**2, axis=1), 2 * traj.energy.kinetic, rtol=1e-9, atol=1e-12)
    steps = np.max(np.abs(np.diff(vr, axis=0)), axis=1)
    assert np.max(steps) < 0.2 * np.max(np.abs(vr))


def test_quasi_velocities_follow_their_equation():
    """v̇r of the record by finite differences; one free direction has Γr = 0, so v̇r = Zᵀ(f - G) whatever the gauge."""
    system = library("four_bar", L1=0.4, L2=1.2, L3=1.0, L4=1.3)
    start = system.assemble(velocities={"A": 3.0})
    e = 1e-3
    traj = sr.simulate(system, start, 0.4, rtol=1e-13, max_step=0.01, output=e * np.arange(401))
    vr = traj.quasi_velocities()[:, 0]
    for i in range(4, 397, 40):
        x = system.matrices(traj.state(i))
        sign = np.sign(x.vr[0] * vr[i])
        push = sign * (x.Z.T @ (x.point.f - (x.point.h - x.C @ traj.v[i])))[0]
        np.testing.assert_allclose(WEIGHTS @ vr[i - 4 : i + 5] / e, push, rtol=0, atol=1e-8 * (1 + abs(push)))


def test_quasi_velocities_where_constraints_change():
    """A constraint that is switched off leaves another free direction; columns that are not there are nan."""
    system = library("four_bar")
    start = system.assemble(velocities={system.layout.v_names[0]: 1.0})
    group = system.groups[0]
    release = sr.Event("release", lambda t: t - 0.2, action=sr.Change(active={group: False}))
    traj = sr.simulate(system, start, 0.4, events=[release], formulation="quasi-velocity", rtol=1e-9)
    assert traj.status.ok and len(traj.segments) == 2
    vr, first = traj.quasi_velocities(), traj.segments[1].start
    assert np.all(np.isnan(vr[:first, 1:])) and not np.any(np.isnan(vr[first:]))
    np.testing.assert_allclose(np.nansum(vr**2, axis=1), 2 * traj.energy.kinetic, rtol=1e-10)
    with pytest.raises(sr.SarrusError, match="factor='lu': expected one of cholesky, root, innovation"):
        traj.quasi_velocities("lu")
