"""The C printer: every operation it knows, compiled and run, against NumPy and CasADi's own interpreter."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.special import erf

from sarrus.kernel import printer
from sarrus.kernel.compiler import INCLUDE, compile_library

OPS = {**printer._INFIX, **printer._CALLS, **printer._ANGLES, **printer._FORMS}
NAMES = {getattr(ca, n): n for n in dir(ca) if n.startswith("OP_")}

# reference and the range of each argument
ANY, POSITIVE, UNIT, ABOVE_ONE = (-3.0, 3.0), (0.1, 3.0), (-0.95, 0.95), (1.1, 4.0)
REFERENCE = {
    "ADD": (np.add, ANY, ANY), "SUB": (np.subtract, ANY, ANY), "MUL": (np.multiply, ANY, ANY),
    "DIV": (np.divide, ANY, POSITIVE), "LT": (np.less, ANY, ANY), "LE": (np.less_equal, ANY, ANY),
    "EQ": (np.equal, ANY, ANY), "NE": (np.not_equal, ANY, ANY), "AND": (np.logical_and, ANY, ANY),
    "OR": (np.logical_or, ANY, ANY), "SQRT": (np.sqrt, POSITIVE), "SIN": (np.sin, ANY), "COS": (np.cos, ANY),
    "TAN": (np.tan, (-1.2, 1.2)), "ASIN": (np.arcsin, UNIT), "ACOS": (np.arccos, UNIT), "ATAN": (np.arctan, ANY),
    "ATAN2": (np.arctan2, ANY, ANY), "EXP": (np.exp, ANY), "LOG": (np.log, POSITIVE), "LOG1P": (np.log1p, UNIT),
    "EXPM1": (np.expm1, ANY), "POW": (np.power, POSITIVE, ANY), "CONSTPOW": (lambda x: x**1.7, POSITIVE),
    "FABS": (np.abs, ANY), "FMIN": (np.fmin, ANY, ANY), "FMAX": (np.fmax, ANY, ANY), "FMOD": (np.fmod, ANY, POSITIVE),
    "SINH": (np.sinh, ANY), "COSH": (np.cosh, ANY), "TANH": (np.tanh, ANY), "ASINH": (np.arcsinh, ANY),
    "ACOSH": (np.arccosh, ABOVE_ONE), "ATANH": (np.arctanh, UNIT), "FLOOR": (np.floor, ANY), "CEIL": (np.ceil, ANY),
    "HYPOT": (np.hypot, ANY, ANY), "COPYSIGN": (np.copysign, ANY, ANY), "ERF": (erf, ANY),
    "NEG": (np.negative, ANY), "SQ": (np.square, ANY), "TWICE": (lambda x: 2 * x, ANY),
    "INV": (np.reciprocal, POSITIVE),
    "NOT": (np.logical_not, ANY), "SIGN": (np.sign, ANY),
    "IF_ELSE_ZERO": (lambda c, x: np.where(c != 0, x, 0), ANY, ANY),
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0]  # signs, ties and switches
BINARY_EXACT = {"LT", "LE", "EQ", "NE", "AND", "OR", "FMIN", "FMAX", "COPYSIGN", "IF_ELSE_ZERO"}
UNARY_EXACT = {"FABS", "FLOOR", "CEIL", "NEG", "TWICE", "NOT", "SIGN"}


def run(function: ca.Function, inputs: np.ndarray, real=np.float64) -> np.ndarray:
    """Compile the printed function and evaluate it on the rows of `inputs`."""
    text = printer.c_function(function, ["in"], ["out"])
    flag = "#define SARRUS_FLOAT\n" if real == np.float32 else ""
    rows, width = len(inputs), function.numel_out(0)
    source = f"""{flag}#include "sarrus_real.h"
{text}
__attribute__((visibility("default"))) void evaluate(long n, const real *in, real *out) {{
  for (long i = 0; i < n; i++) {function.name()}(in + i * {inputs.shape[1]}, out + i * {width});
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printed.so"
        path.write_bytes(compile_library(source))
        library = ctypes.CDLL(str(path))
    x, out = np.ascontiguousarray(inputs, dtype=real), np.full((rows, width), np.nan, dtype=real)
    library.evaluate(ctypes.c_long(rows), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


def operation(op: int, x: ca.SX, y: ca.SX) -> ca.SX:
    name = NAMES[op][3:]
    if op == ca.OP_CONSTPOW:
        return x**1.7
    return ca.SX.binary(op, x, y) if len(REFERENCE[name]) == 3 else ca.SX.unary(op, x)


def samples(name: str, rng: np.random.Generator) -> np.ndarray:
    ranges = REFERENCE[name][1:]
    columns = [rng.uniform(*limits, 200) for limits in ranges]
    rows = np.stack([*columns, *[np.zeros(200)] * (2 - len(columns))], 1)
    corners = np.array([(a, b) for a in SPECIAL for b in SPECIAL])
    inside = np.ones(len(corners), dtype=bool)
    for k, (low, high) in enumerate(ranges):
        inside &= (corners[:, k] >= low) & (corners[:, k] <= high)
    return np.vstack([rows, corners[inside]])


def test_every_operation_of_the_printer_has_a_reference():
    known = {NAMES[op][3:] for op in OPS} - {"ASSIGN"}  # CasADi keeps no plain copies in an expression
    assert known == set(REFERENCE)
    assert len(OPS) == sum(map(len, (printer._INFIX, printer._CALLS, printer._ANGLES, printer._FORMS)))


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["double", "float"])
def evaluated(request):
    """All operations in one file (one compiler run for each number type): name -> (inputs, values, in the file)."""
    rng = np.random.default_rng(5)
    inputs = {name: samples(name, rng) for name in REFERENCE}
    stacked = max(len(v) for v in inputs.values())
    names = list(REFERENCE)
    symbols = ca.SX.sym("x", 2 * len(names))
    outputs = [operation(getattr(ca, f"OP_{n}"), symbols[2 * i], symbols[2 * i + 1]) for i, n in enumerate(names)]
    function = ca.Function("all_operations", [symbols], [ca.vertcat(*outputs)])
    kinds = {function.instruction_id(k) for k in range(function.n_instructions())}
    table = np.hstack([np.resize(inputs[n], (stacked, 2)) for n in names]).astype(request.param)
    values = run(function, table, request.param)
    return request.param, {
        name: (table[:, 2 * i : 2 * i + 2], values[:, i], getattr(ca, f"OP_{name}") in kinds)
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize("name", REFERENCE)
def test_operation(name, evaluated):
    real, results = evaluated
    rows, values, present = results[name]
    reference = REFERENCE[name][0]
    arguments = [rows[:, k] for k in range(len(REFERENCE[name]) - 1)]
    expected = np.asarray(reference(*[a.astype(np.float64) for a in arguments]), dtype=np.float64)
    assert values.dtype == real and np.all(np.isfinite(values))
    if name in BINARY_EXACT | UNARY_EXACT:
        np.testing.assert_array_equal(values, expected.astype(real))
    else:  # a few roundings of the value and of the argument's own size
        eps = np.finfo(real).eps
        size = np.maximum(np.abs(expected), np.abs(arguments[0]) if name in ("SUB", "ADD", "FMOD") else 0)
        assert np.all(np.abs(values - expected) <= 8 * eps * np.maximum(size, 1e-3))
    assert present, f"CasADi replaced {name} by something else: the printed form was not run"


def test_compound_expressions_agree_with_casadi(rng):
    x = ca.SX.sym("x", 4)
    inner = ca.if_else(x[0] > x[1], ca.sin(x[2]) - -x[3], x[2] / (1 + x[3] ** 2))
    out = ca.vertcat(
        inner - (x[0] - (x[1] - x[2])), -(-x[0]) ** 3, 2 - (-2.5) * x[1], ca.fmax(inner, 1e-30) * 1e22,
        x[0] / (x[1] * x[1] + 3) / 7, ca.sqrt(x[2] * x[2] + 1e-300) ** 0.7, ca.SX(0), ca.SX(-3), x[1],
    )  # fmt: skip
    function = ca.Function("compound", [x], [out])
    inputs = rng.normal(size=(300, 4))
    expected = np.array([function(row).full().ravel() for row in inputs])
    np.testing.assert_allclose(run(function, inputs), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("size", [1.0, 20.0, 1e4, 1e9])
def test_sine_and_cosine_keep_their_digits(size, rng):
    """Against 64 bit mantissas: next to multiples of pi/2, where digits cancel, and elsewhere."""
    x = ca.SX.sym("x")
    function = ca.Function("angles", [x], [ca.vertcat(ca.sin(x), ca.cos(x), ca.sin(x) * ca.cos(x))])
    multiples = np.round(rng.uniform(-size, size, 2000)) * (np.pi / 2)
    angles = np.concatenate([rng.uniform(-size, size, 20000), multiples, multiples * (1 + 1e-9), [0.0, -0.0, 1e-300]])
    found = run(function, angles[:, None])
    long = angles.astype(np.longdouble)
    # the long double functions reduce with 64 bits of pi: trust them where the angle is small, else the C library
    exact = [np.sin(long), np.cos(long)] if size <= 20 else [np.sin(angles), np.cos(angles)]
    for k in range(2):
        error = np.abs(found[:, k] - exact[k])
        spacing = np.spacing(np.maximum(np.abs(exact[k]).astype(float), 1e-300))
        assert np.all(error <= np.maximum(2.5 * spacing, size * 2e-33)), float((error / spacing).max())
    np.testing.assert_array_equal(found[:, 2], found[:, 0] * found[:, 1])


def test_angles_that_are_no_angles():
    x = ca.SX.sym("x")
    function = ca.Function("angles", [x], [ca.vertcat(ca.sin(x), ca.cos(x))])
    found = run(function, np.array([[np.nan], [np.inf], [-np.inf], [1e300], [-1e17]]))
    assert np.isnan(found[:3]).all() and np.all(np.abs(found[3:]) <= 1)


def test_sine_and_cosine_of_one_angle_are_found_together():
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [ca.vertcat(ca.sin(x[0]), ca.cos(x[1]), ca.cos(x[0]))])
    assert printer.c_function(function, ["x"], ["y"]).count("sr_sincos(") == 2


def test_several_arguments_and_sparse_outputs():
    a, b = ca.SX.sym("a", 2), ca.SX.sym("b", 3)
    matrix = ca.SX(3, 3)
    matrix[0, 0], matrix[2, 1] = a[0] * b[2], a[1] - b[0]
    function = ca.Function("sparse", [a, b], [matrix, b[1]])
    text = printer.c_function(function, ["first", "second"], ["m", "n"])
    assert "m[0] =" in text and "m[1] =" in text and "m[2]" not in text  # nonzeros only
    assert text.startswith("SR_FN void sparse(const real *SR_RESTRICT first, const real *SR_RESTRICT second, ")


def test_literals_keep_every_digit():
    x = ca.SX.sym("x")
    constants = [0.1, 1 / 3, -np.pi, 1e-300, 123456789.123456789, 5e-324, 1e300, 2.0]
    function = ca.Function("constants", [x], [ca.vertcat(*[ca.SX(c) for c in constants])])
    np.testing.assert_array_equal(run(function, np.zeros((1, 1)))[0], constants)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_constants_that_are_not_finite_are_refused(value):
    x = ca.SX.sym("x")
    function = ca.Function("f", [x], [x + ca.SX(value)])
    with pytest.raises(ValueError, match="constant that is not a finite number"):
        printer.c_function(function, ["x"], ["y"])


def test_operations_without_a_c_form_are_refused():
    x = ca.SX.sym("x")
    function = ca.Function("f", [x], [ca.erfinv(x)])
    with pytest.raises(ValueError, match=rf"CasADi code {ca.OP_ERFINV}\).* no C form"):
        printer.c_function(function, ["x"], ["y"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to ask for strict C99")
def test_printed_code_and_headers_are_strict_c99(tmp_path):
    import sarrus as sr
    from sarrus.dynamics.compile import _derive

    for name in ("parallelogram", "pendulum"):  # with and without rows
        source = tmp_path / f"{name}.c"
        source.write_text(_derive(sr.library.build(name).finalize())["source"])
        call = ["gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-fsyntax-only"]
        done = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to ask for its warnings")
@pytest.mark.parametrize("name", ["pendulum", "stewart"])
@pytest.mark.parametrize("reduced", [False, True])
def test_integrators_compile_without_warnings(name, reduced, tmp_path):
    import sarrus as sr
    from sarrus.simulation.mode import shape_of

    source = tmp_path / "integrators.c"
    source.write_text(shape_of(sr.compile(sr.library.build(name))).source(reduced))
    call = ["gcc", "-std=c99", "-O2", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{INCLUDE}"]
    done = subprocess.run(
        [*call, "-c", str(source), "-o", str(tmp_path / "o")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
