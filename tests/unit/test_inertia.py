"""Inertia helpers against numerical integration over the body, closed forms and the parallel-axis rule."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.model.expression import numeric

M = 2.3


def tensor_of(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w (|r|² 1 - r rᵀ), the weights adding up to the mass M."""
    w = M * weights / weights.sum()
    squares = np.einsum("k,ki,ki->", w, points, points)
    return squares * np.eye(3) - np.einsum("k,ki,kj->ij", w, points, points)


def gauss(low: float, high: float, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(n)
    return low + (x + 1) * (high - low) / 2, w * (high - low) / 2


def grid(*axes: tuple[np.ndarray, np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    nodes = [x.ravel() for x in np.meshgrid(*[a[0] for a in axes], indexing="ij")]
    weights = np.ones_like(nodes[0])
    for w in np.meshgrid(*[a[1] for a in axes], indexing="ij"):
        weights = weights * w.ravel()
    return nodes, weights


def circle(n: int = 16) -> tuple[np.ndarray, np.ndarray]:
    return 2 * np.pi * np.arange(n) / n, np.full(n, 2 * np.pi / n)


def turn_z_to(axis: str) -> np.ndarray:
    """A rotation that carries z to the given axis."""
    return {"x": sr.rotation_about("y", np.pi / 2), "y": sr.rotation_about("x", -np.pi / 2), "z": np.eye(3)}[axis]


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_rod(axis):
    (s,), w = grid(gauss(-0.7, 0.7))
    points = np.outer(s, turn_z_to(axis)[:, 2])
    np.testing.assert_allclose(sr.rod(M, 1.4, axis), tensor_of(points, w), rtol=0, atol=1e-14 * M)


def test_rod_along_any_vector():
    (s,), w = grid(gauss(-0.5, 0.5))
    along = np.array([1.0, -2.0, 2.0]) / 3
    np.testing.assert_allclose(sr.rod(M, 1.0, (1, -2, 2)), tensor_of(np.outer(s, along), w), rtol=0, atol=1e-14 * M)


def test_rod_has_no_moment_about_itself():
    np.testing.assert_array_equal(sr.rod(3.0, 2.0, "x"), np.diag([0.0, 1.0, 1.0]))


def test_box():
    size = (0.3, 1.1, 0.7)
    nodes, w = grid(*[gauss(-s / 2, s / 2) for s in size])
    np.testing.assert_allclose(sr.box(M, size), tensor_of(np.stack(nodes, 1), w), rtol=0, atol=1e-14 * M)


@pytest.mark.parametrize("inner", [0.0, 0.25])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_cylinder(axis, inner):
    (r, angle, z), w = grid(gauss(inner, 0.4), circle(), gauss(-0.6, 0.6))
    points = np.stack([r * np.cos(angle), r * np.sin(angle), z], 1) @ turn_z_to(axis).T
    tensor = sr.cylinder(M, 0.4, 1.2, axis, inner_radius=inner)
    np.testing.assert_allclose(tensor, tensor_of(points, w * r), rtol=0, atol=1e-14 * M)


def test_sphere():
    (r, angle, c), w = grid(gauss(0, 0.6), circle(), gauss(-1, 1))
    s = np.sqrt(1 - c**2)
    points = np.stack([r * s * np.cos(angle), r * s * np.sin(angle), r * c], 1)
    np.testing.assert_allclose(sr.sphere(M, 0.6), tensor_of(points, w * r**2), rtol=0, atol=1e-14 * M)


def test_point_mass():
    at = np.array([0.3, -0.4, 1.2])
    np.testing.assert_allclose(sr.point_mass(M, at), tensor_of(at[None], np.ones(1)), rtol=1e-15)
    np.testing.assert_array_equal(sr.point_mass(M), np.zeros((3, 3)))


def test_parallel_axis_of_a_shifted_box():
    size, offset = (0.3, 1.1, 0.7), np.array([0.5, -0.2, 0.9])
    nodes, w = grid(*[gauss(-s / 2, s / 2) for s in size])
    shifted = sr.parallel_axis(sr.box(M, size), M, offset)
    np.testing.assert_allclose(shifted, tensor_of(np.stack(nodes, 1) + offset, w), rtol=0, atol=1e-14 * M)


def test_two_half_rods_make_one():
    half = sr.rod(1.0, 1.0)
    both = sum(sr.parallel_axis(half, 1.0, (x, 0, 0)) for x in (-0.5, 0.5))
    np.testing.assert_allclose(both, sr.rod(2.0, 2.0), rtol=0, atol=1e-15)


def test_rod_about_its_end():
    about_end = sr.parallel_axis(sr.rod(M, 1.4), M, (0.7, 0, 0))
    np.testing.assert_allclose(about_end, np.diag([0, 1, 1]) * M * 1.4**2 / 3, rtol=0, atol=1e-14 * M)


def test_named_parameters_stay_named():
    m, l = sr.parameter("m", M), sr.parameter("l", 1.4)
    cases = [
        (sr.rod(m, l), sr.rod),
        (sr.box(m, (l, 0.2, 2 * l)), lambda m, l: sr.box(m, (l, 0.2, 2 * l))),
        (sr.cylinder(m, 0.3, l, "y", inner_radius=l / 10), lambda m, l: sr.cylinder(m, 0.3, l, "y", l / 10)),
        (sr.sphere(m, l), sr.sphere),
        (sr.point_mass(m, (0, l, 0.1)), lambda m, l: sr.point_mass(m, (0, l, 0.1))),
        (
            sr.parallel_axis(sr.rod(m, l), m, (l / 2, 0, l)),
            lambda m, l: sr.parallel_axis(sr.rod(m, l), m, (l / 2, 0, l)),
        ),
    ]
    for named, plain in cases:
        assert named.dtype == object
        np.testing.assert_allclose(numeric(named), plain(M, 1.4), rtol=1e-14)
        np.testing.assert_allclose(numeric(named, {"m": 5.0, "l": 0.3}), plain(5.0, 0.3), rtol=1e-14)


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: sr.rod(0.0, 1.0), "mass must be positive, got 0.0"),
        (lambda: sr.rod(1.0, -1.0), "length must be positive, got -1.0"),
        (lambda: sr.box(1.0, (1.0, 0.0, 1.0)), "size must be positive, got 0.0"),
        (lambda: sr.cylinder(1.0, -0.1, 1.0), "radius must be positive, got -0.1"),
        (lambda: sr.sphere(-2.0, 1.0), "mass must be positive, got -2.0"),
        (lambda: sr.rod(1.0, float("nan")), "length must be positive, got nan"),
        (lambda: sr.rod(1.0, 1.0, "w"), "unknown axis 'w'"),
        (lambda: sr.parallel_axis(np.eye(2), 1.0, (0, 0, 0)), r"expected shape \(3, 3\), got \(2, 2\)"),
        (lambda: sr.parallel_axis(np.eye(3), 1.0, (0, 0)), r"expected shape \(3,\), got \(2,\)"),
    ],
)
def test_wrong_values(build, culprit):
    with pytest.raises(ValueError, match=culprit):
        build()


@pytest.mark.parametrize("inner", [0.5, -0.1])
def test_a_tube_needs_an_inner_radius_inside_the_outer_one(inner):
    with pytest.raises(ValueError, match="inner_radius"):
        sr.cylinder(1.0, 0.4, 1.0, inner_radius=inner)
