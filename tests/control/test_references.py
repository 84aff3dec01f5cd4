"""References: end conditions, derivatives, samples, and that the compiled table agrees with the plain one."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr
from sarrus.control.references import make_reference

from .support import machine


def derivatives(path, t, h=1e-4):
    x = np.array([np.ravel(path(t + k * h)) for k in (-2, -1, 0, 1, 2)], dtype=float)
    first = (x[0] - 8 * x[1] + 8 * x[3] - x[4]) / (12 * h)
    second = (-x[0] + 16 * x[1] - 30 * x[2] + 16 * x[3] - x[4]) / (12 * h * h)
    return x[2], first, second


def symbolic(reference, size, t):
    r = make_reference(reference, size, "reference")
    s = ca.SX.sym("t")
    f = ca.Function(
        "f", [s], list(r.expressions(s, ca.SX(3 * size, 1), ca.SX(r.point) if r.point is not None else None))
    )
    return [np.array(x).ravel() for x in f(t)]


def test_minimum_jerk_goes_from_rest_to_rest():
    path = sr.control.MinimumJerk([0.0, 1.0], [2.0, -1.0], 1.5, begin=0.5)
    for t, x in ((0.0, [0, 1]), (0.5, [0, 1]), (2.0, [2, -1]), (9.0, [2, -1]), (1.25, [1, 0])):
        np.testing.assert_allclose(path(t), x, atol=1e-14)
        values = symbolic(path, 2, t)
        np.testing.assert_allclose(values[0], x, atol=1e-14)
    for t in (0.7, 1.1, 1.9):
        for a, b, tol in zip(symbolic(path, 2, t), derivatives(path, t), (1e-14, 1e-10, 1e-6), strict=True):
            np.testing.assert_allclose(a, b, atol=tol)
    # least jerk among paths from rest to rest: the sixth derivative vanishes, so the jerk is a parabola
    jerk = [
        np.diff([symbolic(path, 2, t + d)[2][0] for d in (-1e-3, 1e-3)])[0] / 2e-3 for t in np.linspace(0.6, 1.9, 6)
    ]
    assert np.abs(np.diff(jerk, 3)).max() < 1e-6 * np.abs(jerk).max()


@pytest.mark.parametrize("at_rest", [True, False])
def test_polynomial_passes_its_points(at_rest):
    times, points = [0.0, 0.7, 1.0, 2.0], np.array([[0, 1], [0.5, 2], [0.4, 0], [1, 1]])
    path = sr.control.Polynomial(times, points, at_rest)
    for t, x in zip(times, points, strict=True):
        np.testing.assert_allclose(path(t), x, atol=1e-11)
    for t in (0.3, 1.5):
        for a, b, tol in zip(symbolic(path, 2, t), derivatives(path, t), (1e-11, 1e-8, 1e-5), strict=True):
            np.testing.assert_allclose(a, b, atol=tol)
    if at_rest:
        for t in (1e-9, 2 - 1e-9):
            np.testing.assert_allclose(symbolic(path, 2, t)[1], 0, atol=1e-6)
            np.testing.assert_allclose(symbolic(path, 2, t)[2], 0, atol=1e-5)


def test_samples_interpolate_smoothly():
    t = np.linspace(0, 3, 61)
    x = np.stack([np.sin(2 * t), np.cos(t)], axis=1)
    samples = sr.control.Samples(t, x)
    for at in (0.13, 1.111, 2.9):
        value, rate, bend = samples.at(at)
        # a spline of order 5 with h = 0.05: (2 h)^6 of the value, two powers less for the second derivative
        np.testing.assert_allclose(value, [np.sin(2 * at), np.cos(at)], atol=1e-7)
        np.testing.assert_allclose(rate, [2 * np.cos(2 * at), -np.sin(at)], atol=1e-5)
        np.testing.assert_allclose(bend, [-4 * np.sin(2 * at), -np.cos(at)], atol=5e-4)
    for k in (20, 40):  # nothing jumps at a sample
        for a, b in zip(samples.at(t[k] - 1e-9), samples.at(t[k] + 1e-9), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_array_equal(samples.at(-1.0)[0], x[0])
    np.testing.assert_array_equal(samples.at(9.0)[1], 0)


def test_compiled_table_is_the_plain_one():
    """A controller that follows samples commands what one that follows the sampled function commands."""
    system = machine("planar_platform")
    home = system.assemble()
    names = ["platform.x", "platform.z"]
    t = np.linspace(0, 1, 41)
    x = np.stack([0.05 * np.sin(3 * t), 0.04 * t**2], axis=1)
    samples = sr.control.Samples(t, x)
    tabled = sr.control.TaskSpace(system, names, samples, 30, 7)
    for at in (-0.5, 0.0, 0.31, 0.5, 0.999, 2.0):
        value, rate, bend = samples.at(at)
        u = tabled(at, home.q, home.v)
        a = system.acceleration(system.state(home.q, home.v, at), u)
        where = [system.layout.v_names.index(n) for n in names]
        command = bend + 7 * rate + 30 * (value - home.q[[system.layout.q_names.index(n) for n in names]])
        np.testing.assert_allclose(a[where], command, atol=1e-9)


def test_along_manifold_stays_on_the_manifold():
    system = machine("four_bar")
    start = system.assemble()
    path = sr.control.MinimumJerk(start["A"], start["A"] - 0.6, 2.0)
    samples = sr.control.along_manifold(system, start, {"A": path}, 2.0, steps=100)
    for t in (0.0, 0.333, 1.27, 2.0):
        q, v, _ = samples.at(t)
        assert q[0] == pytest.approx(path(t)[0], abs=1e-7)
        terms = system.terms(system.state(q, v))
        assert np.abs(terms.phi).max() < 1e-7  # fifth order between samples 0.02 s apart
        assert np.abs(terms.A @ v).max() < 1e-5


def test_references_are_refused_by_name():
    for make, text in (
        (lambda: sr.control.MinimumJerk([0, 1], [1], 1.0), r"start has 2 value\(s\), goal 1"),
        (lambda: sr.control.MinimumJerk(0, 1, -1.0), "expected a positive duration"),
        (lambda: sr.control.MinimumJerk(0, 1, np.inf), "expected a positive duration"),
        (lambda: sr.control.MinimumJerk(0, 1, "long"), "expected a positive duration"),
        (lambda: sr.control.MinimumJerk(0, 1, 1.0, begin=np.nan), "and a time to begin in seconds, got 1.0 and nan"),
        (lambda: sr.control.Polynomial(0, 1), "the times must be finite and rise"),
        (lambda: sr.control.Polynomial("ab", [1, 2]), "expected times, and one row of numbers for each"),
        (lambda: sr.control.Samples([0, 1], [[1], [2, 3]]), "rows must be of one length"),
        (lambda: sr.control.Samples([0, 1], np.zeros((2, 2, 2))), "expected 2 finite rows"),
        (lambda: sr.control.Samples([0, 1], [1, 2], rates=[[1, 2], [3, 4]]), r"rates: expected shape \(2, 1\)"),
        (lambda: sr.control.Samples([0, 1], [1, 2], bends=[[1, 2], [3, 4]]), r"bends: expected shape \(2, 1\)"),
        (lambda: make_reference(lambda t: None, 1, "path"), "path: the function cannot be turned into an expression"),
        (lambda: make_reference(lambda t: [1 / 0.0 if t is None else np.inf], 1, "path"), "number that is not finite"),
        (lambda: sr.control.Polynomial([0], [1]), "expected 2 to 9 points, got 1; for more of them use Samples"),
        (lambda: sr.control.Samples([0, 0], [1, 2]), "the times must be finite and rise"),
        (lambda: sr.control.Samples([0, 1], [1, np.nan]), "expected 2 finite rows"),
        (
            lambda: make_reference(lambda t: [t, t], 3, "path"),
            r"path: expected 3 value\(s\) from the function of time, got 2",
        ),
        (lambda: make_reference(lambda t: [1.0 if t > 0 else 2.0], 1, "path"), "sample it with sr.control.Samples"),
        (
            lambda: make_reference([1, 2], 3, "path"),
            r"path: expected 3 value\(s\), a function of time, a path or Samples",
        ),
        (lambda: make_reference(sr.control.Samples([0, 1], [1, 2]), 3, "path"), r"the samples have 1 column\(s\)"),
    ):
        with pytest.raises(sr.StateError, match=text):
            make()


def test_paths_must_determine_the_motion():
    bar = machine("five_bar")
    start = bar.assemble()
    one = {"A": lambda t: start["A"] + 0.1 * t}
    with pytest.raises(
        sr.StateError, match=r"paths of A leave 1 direction\(s\) of five-bar open; give paths of as many"
    ):
        sr.control.along_manifold(bar, start, one, 1.0)
    both = {**one, "E": lambda t: start["E"] - 0.2 * t}
    samples = sr.control.along_manifold(bar, start, both, 1.0)
    assert samples.at(1.0)[0][bar.layout.q_names.index("E")] == pytest.approx(start["E"] - 0.2, abs=1e-9)
    for duration, steps in ((-1.0, 10), (np.nan, 10), (1.0, 0), (1.0, 2.5)):
        with pytest.raises(sr.StateError, match="along_manifold: expected a positive duration and number of steps"):
            sr.control.along_manifold(bar, start, both, duration, steps)
