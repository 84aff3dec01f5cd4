"""Every machine of the library: mobility, closed forms where there are any, and what its text promises."""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr

# velocities, rank, mobility; from the machines' own geometry
COUNTS = {
    "pendulum": (1, 0, 1), "particle_on_circle": (2, 1, 1), "cartesian_on_circle": (2, 1, 1),
    "slider_crank": (2, 1, 1), "four_bar": (3, 2, 1), "n_four_bar": (5, 4, 1), "andrews": (7, 6, 1),
    "bricard": (5, 4, 1), "flyball": (4, 0, 4), "parallelogram": (4, 3, 1), "arm_on_curve": (2, 1, 1),
    "geared_chain": (6, 2, 4), "planar_platform": (9, 6, 3), "underactuated_chain": (3, 0, 3), "five_bar": (4, 2, 2),
    "stewart": (24, 18, 6), "delta": (21, 18, 3), "sarrus": (5, 4, 1), "bennett": (3, 2, 1),
    "spherical_four_bar": (3, 2, 1), "rolling_disc": (6, 3, 3), "two_arms": (9, 6, 3),
}  # fmt: skip


def test_every_machine_is_counted_here():
    assert set(COUNTS) == set(sr.library.names())


@pytest.mark.parametrize("name", sr.library.names())
def test_counts_and_consistency(name):
    result = sr.check(sr.library.build(name))
    assert not result.problems
    assert (result.velocities, result.rank, result.mobility) == COUNTS[name]
    assert result.loop_error <= 1e-12
    system = sr.compile(sr.library.build(name))
    solution = system.solve(system.assemble())
    assert np.isfinite(solution.vdot).all()


def test_slider_crank_follows_its_reduced_equation():
    """Sheet 12.1: (1 + 4 sin² q1) q1dd + 4 sin q1 cos q1 q1d² + g cos q1 = 0 for m = l = 1."""
    system = sr.compile(sr.library.build("slider_crank"))
    for angle, speed in ((0.3, 1.2), (-0.9, 0.4), (1.2, -2.0)):
        state = system.state([angle, 2 * np.pi - 2 * angle], [speed, -2 * speed])
        s, c = np.sin(angle), np.cos(angle)
        expected = -(4 * s * c * speed**2 + 9.81 * c) / (1 + 4 * s**2)
        np.testing.assert_allclose(system.acceleration(state), [expected, -2 * expected], rtol=1e-12)
        terms = system.terms(state)
        c2 = np.cos(state["B"])
        np.testing.assert_allclose(terms.M, [[3 + 2 * c2, 1 + c2], [1 + c2, 1]], atol=1e-14)


def test_slider_crank_at_its_singular_position():
    """Rank 0 is reported with the singular value, and the acceleration is finite: that of the free chain."""
    system = sr.compile(sr.library.build("slider_crank"))
    state = system.state([np.pi / 2, np.pi], [0.5, -1.0])
    rank = system.rank(state)
    assert (rank.rank, rank.mobility) == (0, 2)
    assert rank.largest_rejected < 1e-12 and rank.smallest_accepted == np.inf
    terms = system.terms(state)
    np.testing.assert_allclose(system.acceleration(state), np.linalg.solve(terms.M, -terms.h), atol=1e-12)
    assert system.solve(state).path == "rank-revealing"


def test_particle_on_circle_has_the_centripetal_force():
    """Sheet 12.2: m = ρ = 1, speed 2: the wire holds the particle with 4 N, plus gravity along the radius."""
    system = sr.compile(sr.library.build("particle_on_circle"))
    state = system.assemble({"x": 0.0}, velocities={"x": 2.0}, near={"z": -1.0})
    assert state["z"] == pytest.approx(-1.0)
    force = system.constraint_forces(state).generalised
    np.testing.assert_allclose(force, [0.0, 4.0 + 9.81], atol=1e-12)


def test_parallelogram_rod_like_pendulum():
    """Three equal cranks and a coupler: I θ'' = V sin θ from the vertical, by energy."""
    system = sr.compile(sr.library.build("parallelogram"))
    state = system.assemble(velocities={"A0": 0.7})
    forces = system.constraint_forces(state)
    assert not any(forces.determinate.values())  # each coupler hinge can be loaded against the others
    power = forces.generalised @ state.v
    assert abs(power) < 1e-12


def test_stewart_static_leg_forces():
    """The leg force that balances the home pose, from the benchmark's load case."""
    system = sr.compile(sr.library.build("stewart"))
    state = system.assemble()
    assert np.abs(system.acceleration(state, [4078.7836566993483] * 6)).max() < 1e-9


@pytest.mark.parametrize("angle, expected", [(0.05, 89.4), (0.2, 22.45), (0.6, 7.82), (1.12, 5.18)])
def test_planar_platform_condition_number(angle, expected):
    """Sheet 12.5: conditioning of the passive part of A'."""
    system = sr.compile(sr.library.build("planar_platform"))
    state = system.assemble({"platform.angle": angle, "platform.x": 0.0, "platform.z": 0.0})
    terms = system.terms(state)
    rows = terms.A[list(system.kept)]
    passive = [i for i, name in enumerate(system.layout.v_names) if name not in system.inputs]
    assert np.linalg.cond(rows[:, passive]) == pytest.approx(expected, rel=2e-3)


def test_build_refuses_unknown_names():
    with pytest.raises(sr.UnknownNameError, match=r"'foo'.*'four_bar'"):
        sr.library.build("foo")
    with pytest.raises(TypeError, match=r"pendulum.*'foo'.*L"):
        sr.library.build("pendulum", foo=1)
