"""Named parameters: arithmetic with numbers, with each other and with NumPy arrays."""

import operator

import numpy as np
import pytest

import sarrus as sr
from sarrus.model.expression import Scalar, as_array, as_number, as_scalar, numeric, parameters_of

A, B = 2.5, -0.75
VALUES = {"a": A, "b": B}
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]
UFUNCS = [np.sin, np.cos, np.tan, np.sqrt, np.exp, np.arctan, np.arcsin, np.arccos]


@pytest.fixture
def a() -> Scalar:
    return sr.parameter("a", A)


@pytest.fixture
def b() -> Scalar:
    return sr.parameter("b", B)


@pytest.mark.parametrize("op", OPERATORS)
def test_two_parameters(op, a, b):
    x = op(a, b)
    assert isinstance(x, Scalar)
    assert x.evaluate() == op(A, B)
    assert x.evaluate({"a": 7.0, "b": 3.0}) == op(7.0, 3.0)
    assert x.defaults == VALUES


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("number", [3, 0.125, np.float64(-4.5), np.int64(2)])
def test_number_on_either_side(op, number, a):
    assert op(a, number).evaluate() == op(A, float(number))
    assert op(number, a).evaluate() == op(float(number), A)
    assert op(number, a).evaluate({"a": -1.5}) == op(float(number), -1.5)
    assert isinstance(op(number, a), Scalar)


def test_powers(a, b):
    assert (a**b).evaluate() == A**B
    assert (a**2).evaluate() == A**2
    assert (2**a).evaluate() == 2.0**A
    assert (2**a).evaluate({"a": 5.0}) == 32.0


def test_signs(a):
    assert (-a).evaluate() == -A
    assert (-a).evaluate({"a": 4.0}) == -4.0
    assert (+a).evaluate() == A


@pytest.mark.parametrize("op", [*OPERATORS, operator.pow])
def test_arrays_go_element_by_element(op, a):
    array = np.array([1.0, 2.0, 4.0])
    for left, right, expected in ((array, a, op(array, A)), (a, array, op(A, array))):
        out = op(left, right)
        assert out.shape == (3,)
        assert all(isinstance(x, Scalar) for x in out)
        np.testing.assert_array_equal(numeric(out), expected)


def test_matrix_times_parameter_evaluates_with_other_values(a, b):
    matrix = np.arange(6.0).reshape(2, 3) * a + b * np.eye(2, 3)
    assert matrix.shape == (2, 3)
    np.testing.assert_allclose(numeric(matrix), np.arange(6.0).reshape(2, 3) * A + B * np.eye(2, 3), rtol=1e-15)
    other = numeric(matrix, {"a": 10.0})  # b keeps its default
    np.testing.assert_allclose(other, np.arange(6.0).reshape(2, 3) * 10.0 + B * np.eye(2, 3), rtol=1e-15)


@pytest.mark.parametrize("ufunc", UFUNCS)
def test_ufuncs(ufunc):
    x = sr.parameter("x", 0.5)
    out = ufunc(x)
    assert isinstance(out, Scalar)
    assert out.evaluate() == ufunc(0.5)
    assert out.evaluate({"x": 0.25}) == ufunc(0.25)
    assert repr(out) == f"{ufunc.__name__}(x)"


@pytest.mark.parametrize("ufunc", UFUNCS)
def test_ufuncs_on_object_arrays(ufunc):
    out = ufunc(np.array([sr.parameter("x", 0.5), sr.parameter("y", 0.75)], dtype=object))
    np.testing.assert_array_equal(numeric(out), ufunc(np.array([0.5, 0.75])))


def test_nested_expression_and_its_text(a, b):
    x = (a * a + 2 * np.sin(b)) / (1 - b)
    assert x.evaluate() == pytest.approx((A * A + 2 * np.sin(B)) / (1 - B), rel=1e-15)
    assert repr(x) == "(((a * a) + (2.0 * sin(b))) / (1.0 - b))"
    assert float(x) == x.evaluate()


def test_texts_of_different_expressions_differ(a, b):
    """The text is the cache key of a description."""
    expressions = [a + b, b + a, a - b, b - a, a * b, a / b, b / a, a**b, -a, a - (b - a), (a - b) - a, np.sin(a) + b]
    texts = [repr(x) for x in expressions]
    assert len(set(texts)) == len(texts)


def test_a_function_can_be_evaluated_with_symbols(a, b):
    import casadi as ca

    import sarrus.symbolic  # noqa: F401  (sets CasADi up for NumPy's functions, as compiling does)

    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    value = (a * np.sin(b) + 2 / a).evaluate({"a": x, "b": y})
    f = ca.Function("f", [x, y], [value])
    assert float(f(A, B)) == pytest.approx(A * np.sin(B) + 2 / A, rel=1e-15)


@pytest.mark.parametrize("name", ["L 1", "1L", "", "a-b"])
def test_parameter_names_are_identifiers(name):
    with pytest.raises(ValueError, match=f"parameter name {name!r}"):
        sr.parameter(name, 1.0)


@pytest.mark.parametrize("wrong", ["text", None, [1.0], 1j])
def test_arithmetic_with_other_things_is_refused(a, wrong):
    if isinstance(wrong, list):  # NumPy or Python decide what a list means, but never silently a Scalar
        assert not isinstance(_try(lambda: a + wrong), Scalar)
    else:
        with pytest.raises(TypeError):
            a + wrong


def _try(function):
    try:
        return function()
    except TypeError as error:
        return error


@pytest.mark.parametrize("wrong", [True, "3", None, 1j, [1.0]])
def test_as_number_refuses(wrong):
    with pytest.raises(TypeError, match="expected a number, got"):
        as_number(wrong)


def test_as_number_and_as_scalar(a):
    assert as_number(3) == 3.0 and isinstance(as_number(3), float)
    assert as_number(a) is a
    assert as_scalar(a) is a
    assert as_scalar(0.1).evaluate() == 0.1
    assert as_scalar(0.1).defaults == {}


def test_as_array(a):
    plain = as_array((1, 2, 3), (3,))
    assert plain.dtype == float
    mixed = as_array((1, a, 3), (3,))
    assert mixed.dtype == object and mixed[1] is a
    np.testing.assert_array_equal(numeric(mixed), [1, A, 3])
    with pytest.raises(ValueError, match=r"expected shape \(3,\), got \(2,\)"):
        as_array((1, 2), (3,))
    with pytest.raises(TypeError, match="expected a number, got 'x'"):
        as_array((1, "x", 3), (3,))


def test_numeric_completes_partial_values(a, b):
    assert numeric(a * b, {"b": 2.0}) == A * 2.0
    assert numeric(3.5) == 3.5
    array = np.array([1.0, 2.0])
    assert numeric(array) is array


def test_parameters_of(a, b):
    assert parameters_of(1.0, np.array([a, 1.0], dtype=object), b * 2) == VALUES
    assert parameters_of(1.0, np.eye(3)) == {}
