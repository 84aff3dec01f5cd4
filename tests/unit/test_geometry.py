"""Axes, rotations, quaternions and the frames that features carry."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sarrus as sr
from sarrus.dynamics.manifold import quat_exp, quat_log, quat_multiply
from sarrus.model.geometry import frame_with_axis, perpendiculars, quaternion_to_matrix, rotation_matrix, unit_axis

EPS = np.finfo(float).eps
LETTERS = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
vectors = arrays(float, 3, elements=st.floats(-3, 3)).filter(lambda x: np.linalg.norm(x) > 1e-3)


@pytest.mark.parametrize("letter", LETTERS)
def test_letters(letter):
    np.testing.assert_array_equal(unit_axis(letter), LETTERS[letter])
    np.testing.assert_array_equal(unit_axis("-" + letter), -np.array(LETTERS[letter]))
    assert not np.any(np.signbit(unit_axis(letter)))


def test_minus_letters_have_no_negative_zeros():
    assert np.count_nonzero(np.signbit(unit_axis("-y"))) == 1


@given(vectors)
def test_vectors_are_normalised(vector):
    unit = unit_axis(vector)
    assert abs(np.linalg.norm(unit) - 1) <= 4 * EPS
    np.testing.assert_allclose(np.cross(unit, vector), 0, atol=8 * EPS * np.linalg.norm(vector))
    assert unit @ vector > 0


@pytest.mark.parametrize("wrong", ["w", "", "--x", "xy", "X", "+x"])
def test_unknown_letters(wrong):
    with pytest.raises(ValueError, match=re.escape(f"unknown axis {wrong!r}: use 'x'")):
        unit_axis(wrong)


@pytest.mark.parametrize("wrong", [(0, 0, 0), (np.nan, 0, 1), (np.inf, 0, 0)])
def test_vectors_without_direction(wrong):
    with pytest.raises(ValueError, match=r"axis \(.*\) has no direction"):
        unit_axis(wrong)


def test_axis_of_wrong_length_or_with_a_parameter():
    with pytest.raises(ValueError, match=r"expected shape \(3,\), got \(2,\)"):
        unit_axis((1, 0))
    with pytest.raises(ValueError, match=r"tilt.*named parameter"):
        unit_axis((1, 0, sr.parameter("tilt", 0.1)))


@pytest.mark.parametrize("axis", ["x", "y", "z", "-x", "-y", "-z"])
def test_perpendiculars_of_letters_are_positive_letters(axis):
    t1, t2 = perpendiculars(unit_axis(axis))
    np.testing.assert_array_equal(np.cross(t1, t2), unit_axis(axis))
    for t in (t1, t2):
        assert sorted(t) == [0, 0, 1]


def test_perpendiculars_as_documented():
    np.testing.assert_array_equal(perpendiculars(unit_axis("z")), [(1, 0, 0), (0, 1, 0)])
    np.testing.assert_array_equal(perpendiculars(unit_axis("-y")), [(1, 0, 0), (0, 0, 1)])


@given(vectors)
def test_frame_with_axis_is_a_right_handed_rotation(vector):
    R = frame_with_axis(unit_axis(vector))
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=16 * EPS)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=16 * EPS)
    np.testing.assert_array_equal(R[:, 2], unit_axis(vector))


def test_frame_of_an_axis_next_to_a_letter():
    """Nearly, but not exactly, a letter: still orthonormal."""
    R = frame_with_axis(unit_axis((1e-9, 0, 1)))
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=16 * EPS)


@given(vectors, st.floats(-4, 4), vectors)
def test_rotation_about_by_parts(axis, angle, vector):
    a = unit_axis(axis)
    along = a * (a @ vector)
    expected = along + np.cos(angle) * (vector - along) + np.sin(angle) * np.cross(a, vector)
    np.testing.assert_allclose(sr.rotation_about(axis, angle) @ vector, expected, atol=32 * EPS * 6)


def test_rotation_about_is_right_handed():
    np.testing.assert_allclose(sr.rotation_about("z", np.pi / 2) @ (1, 0, 0), (0, 1, 0), atol=EPS)
    np.testing.assert_allclose(sr.rotation_about("-y", 0.3) @ (1, 0, 0), (np.cos(0.3), 0, np.sin(0.3)), atol=EPS)


@given(vectors, st.floats(-3, 3))
def test_quaternions_are_w_x_y_z(axis, angle):
    quat = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * unit_axis(axis)])
    np.testing.assert_allclose(quaternion_to_matrix(quat), sr.rotation_about(axis, angle), atol=32 * EPS)
    np.testing.assert_allclose(rotation_matrix(tuple(-5 * quat)), sr.rotation_about(axis, angle), atol=32 * EPS)
    np.testing.assert_allclose(quat_exp(angle * unit_axis(axis)), quat, atol=8 * EPS)


@given(vectors, vectors)
def test_products_of_quaternions_are_products_of_rotations(a, b):
    qa, qb = quat_exp(a), quat_exp(b)
    product = quaternion_to_matrix(quat_multiply(qa, qb))
    np.testing.assert_allclose(product, quaternion_to_matrix(qa) @ quaternion_to_matrix(qb), atol=64 * EPS)


@given(vectors)
def test_logarithm_undoes_exponential(vector):
    turn = vector * min(1.0, 3.1 / np.linalg.norm(vector))  # less than half a turn
    np.testing.assert_allclose(quat_log(quat_exp(turn)), turn, atol=64 * EPS)
    np.testing.assert_allclose(quat_log(-quat_exp(turn)), turn, atol=64 * EPS)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-20, 1e-9])
def test_small_turns(size):
    turn = size * np.array([0.6, 0.0, 0.8])
    np.testing.assert_allclose(quat_log(quat_exp(turn)), turn, rtol=8 * EPS)


def test_rotation_matrix_accepts_what_it_should():
    np.testing.assert_array_equal(rotation_matrix(None), np.eye(3))
    R = sr.rotation_about((1, 2, 3), 0.7)
    np.testing.assert_array_equal(rotation_matrix(R), R)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (np.diag([1, 1, -1]), "not a rotation matrix"),
        (np.diag([1, 1, 2]), "not a rotation matrix"),
        (np.full((3, 3), np.nan), "rotation"),
        ((0, 0, 0, 0), r"rotation \(0, 0, 0, 0\): a quaternion must be finite and not zero"),
        ((1, np.nan, 0, 0), r"rotation \(1, nan, 0, 0\): a quaternion must be finite"),
        ((1, 0, 0), r"rotation must be a 3x3 matrix or a quaternion .*shape \(3,\)"),
        (0.5, r"rotation must be a 3x3 matrix or a quaternion"),
    ],
)
def test_wrong_rotations(wrong, text):
    with pytest.raises(ValueError, match=text):
        rotation_matrix(wrong)


def test_features_carry_their_axis():
    feature = sr.revolute_on("crank", (1, 2, 3), (0, 3, 4))
    assert feature.body == "crank"
    np.testing.assert_array_equal(feature.at, (1, 2, 3))
    np.testing.assert_allclose(feature.frame[:, 2], (0, 0.6, 0.8), rtol=EPS)
    turned = sr.prismatic_on("crank", (0, 0, 0), "z", rotation=sr.rotation_about("x", np.pi / 2))
    np.testing.assert_allclose(turned.frame[:, 2], (0, -1, 0), atol=EPS)


def test_two_numbers_are_x_and_z():
    np.testing.assert_array_equal(sr.point_on("crank", (1, 2)).at, (1, 0, 2))


def test_wrong_features_keep_their_problem_for_finalize():
    assert "revolute_on('crank'): unknown axis 'q'" in sr.revolute_on("crank", (0, 0, 0), "q").problem
    assert "point_on('crank')" in sr.point_on("crank", (1, 2, 3, 4)).problem
    assert "curve_on('crank')" in sr.curve_on("crank", 3.0).problem  # type: ignore[arg-type]
