"""The papers' simulation examples, as scripts of the manual: the numbers of the sheet (12), to the digits it prints.

The control examples are in `tests/control/test_examples.py`. A number that depends on rounding is a bound.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from oracles import motion_data as data

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
CONTROL = Path(__file__).resolve().parents[1] / "control" / "test_examples.py"
PAGE = (FOLDER.parent / "examples.md").read_text(encoding="utf-8")


@cache
def example(name: str):
    """The script and what its `main` returns."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.main()


SIMULATIONS = (
    "slider_crank_simulation", "circle_simulation", "quasi_velocities", "arm_on_curve_simulation",
    "platform_simulation", "switching_chain",
)  # fmt: skip


def test_every_script_is_tested_and_shown():
    control = CONTROL.read_text(encoding="utf-8")
    for path in FOLDER.glob("*.py"):
        assert path.stem in SIMULATIONS or f'"{path.stem}"' in control, path.stem
        assert f"{path.stem}.txt" in PAGE, path.stem
        assert ("def draw(" in path.read_text(encoding="utf-8")) == (f"{path.stem}.svg" in PAGE), path.stem


@pytest.mark.parametrize("name", SIMULATIONS)
def test_figure(name, tmp_path):
    module, results = example(name)
    figure = module.draw(results)
    figure.savefig(tmp_path / "figure.svg")
    for ax in figure.axes:
        assert ax.get_xlabel() or ax.get_ylabel(), "an axis without a name"
        assert ax.lines


def test_slider_crank():
    """Sheet 12.1."""
    _, x = example("slider_crank_simulation")
    np.testing.assert_allclose(x["angles"], list(data.SLIDER_CRANK.values()), rtol=0, atol=5.1e-9)
    assert x["turns back at"] == pytest.approx(data.SLIDER_CRANK_TURNS, abs=5.1e-9)
    assert x["there at"] == pytest.approx(-5 * np.pi / 4, abs=1e-9)
    assert len(x["passages"]) == 4
    for form in ("projection", "projection-symmetric", "projection-scaled", "virtual-mass"):
        assert x[form]["error"] < 2.6e-9 and x[form]["height"] < 8e-13 and x[form]["energy"] < 1e-9
    free = x["free"]  # would be off by more than 3 rad sooner or later: stopped before a passage
    assert free.status.code == "assembly lost" and min(abs(np.array(x["passages"]) - free.t[-1])) < 0.1
    np.testing.assert_allclose(free["A"], x["motion"].at(free.t)["A"], atol=1e-5)


def test_particle_on_a_circle():
    """Sheet 12.2."""
    _, x = example("circle_simulation")
    np.testing.assert_allclose(x["force"], 4, atol=1e-9)
    np.testing.assert_allclose(x["pull"], (0, 29.43), atol=5e-6)  # rows are 5e-4 s from the lowest place at most
    assert x["energy"] < 1e-12
    assert x["energy of the pendulum"] < 3.5e-11
    assert x["energy, not corrected"] == pytest.approx(4e-8, rel=0.1)
    assert x["distance, not corrected"] == pytest.approx(2.9e-9, rel=0.02)


def test_quasi_velocities():
    """Sheet 12.3; |q̇| = g θ̇ and all matrices in closed form."""
    _, x = example("quasi_velocities")
    assert x["worst"] < 1e-14
    assert x["spread of vr"] < 1e-11
    assert x["error of the force"] < 1e-11
    assert np.ptp(x["rate"]) > 0.5  # the angle's rate is far from constant


def test_arm_on_curves():
    """Sheet 12.7, its table of methods."""
    _, results = example("arm_on_curve_simulation")
    for curve, angles in data.ARM.items():
        np.testing.assert_allclose(results[curve]["angles"], list(angles.values()), rtol=0, atol=5.5e-9)
    line, singular, circle = (results[curve] for curve in ("x=1", "x=0", "circle"))
    assert line["kappa"] == pytest.approx(0.138, abs=5e-4)
    assert line["lowest tip"] == pytest.approx(-np.sqrt(3), abs=1e-3)
    assert not line["crossings"] and not circle["crossings"] and len(singular["crossings"]) == 6
    assert singular["crossings"][0] == pytest.approx(1.081, abs=5e-4)

    def check(x, name, curve, energy, angles):
        for key, value in (("curve", curve), ("energy", energy), ("angles", angles)):
            assert x[name][key] == pytest.approx(value, rel=0.06), (name, key)

    check(line, "RK4, reduced ODE, no correction", 5.6e-9, 2.2e-7, 7.6e-9)
    check(line, "RK4, regularised, eps = 1e-06", 2.4e-6, 3.6e-4, 7.4e-5)
    check(singular, "RK4, regularised, eps = 1e-04", 7.6e-5, 0.63, 0.15)
    check(singular, "RK4, regularised, eps = 1e-06", 6.9e-6, 0.1, 0.025)
    check(singular, "RK4, regularised, eps = 1e-08", 6e-7, 0.016, 0.0039)
    for name in ("RK4, projection", "RK4, reduced ODE, no correction"):
        assert circle[name]["curve"] < 1e-14 and circle[name]["energy"] < 4e-11 and circle[name]["angles"] < 1e-9
    assert line["RK4, projection"]["curve"] < 1e-13
    assert line["RK4, projection"]["energy"] < 2.8e-8 and line["RK4, projection"]["angles"] < 1.6e-9
    # better than holding the last row in a window, which is the best of the sheet
    assert singular["RK4, projection"]["energy"] < 1e-7 and singular["RK4, projection"]["angles"] < 5e-6
    # what would be thrown onto another branch is stopped before, at one of the passages
    lost = singular["RK4, reduced ODE, no correction"]
    assert lost["end"] == "assembly lost" and min(abs(np.array(singular["crossings"]) - lost["at"])) < 0.1
    assert lost["angles"] < 1e-6 and not line["RK4, reduced ODE, no correction"]["end"]
    errors = [singular[f"RK4, released in a window of {w:g}"]["angles"] for w in (1e-1, 1e-2, 1e-3)]
    assert errors[0] > 1e-3 and errors[1] < 1e-3 and errors[2] < 1e-5
    # how far off is a matter of rounding: the passages spread errors
    assert singular["IDA, w form, 1e-06"]["angles"] < 1e-2 and singular["IDA, w form, 1e-03"]["angles"] > 0.1


def test_platform():
    """Sheet 12.5, free swing."""
    _, x = example("platform_simulation")
    assert x["steps of 1 ms"]["energy"] < 1.5e-5
    assert x["steps of 1 ms"]["loop error"] < 1e-13
    assert x["default"]["energy"] < 1e-6 and x["default"]["steps"] < 1000
    assert x["smallest singular value"] == pytest.approx(0.116, abs=5e-4)


def test_switching_chain():
    """Sheet 12.9."""
    module, x = example("switching_chain")
    for name in ("default", "M'c", "Mb", "multipliers"):
        np.testing.assert_allclose(x[name]["q"], data.SWITCHING_Q, rtol=0, atol=5.1e-7)
        np.testing.assert_allclose(x[name]["v"], data.SWITCHING_V, rtol=0, atol=5.1e-7)
        losses = -np.array(x[name]["jumps"])
        np.testing.assert_allclose(losses[:2], data.SWITCHING_LOSSES, rtol=0, atol=5.1e-9)
        np.testing.assert_allclose(losses[2:], 0, atol=1e-12)
        assert x[name]["audit"].ok(1e-9)
    np.testing.assert_allclose(module.expected(x["default"]["motion"]), x["default"]["jumps"][:2], rtol=1e-9)
