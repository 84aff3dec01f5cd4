"""The arm on curves of sheet 12.7 (the last paper's example) with its table: x = 1, x = 0 and x² + y² = 1."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import sarrus as sr
from oracles import motion
from sarrus.simulation.dae.forms import PARTS, compiled_problem
from sarrus.simulation.dae.ida import UNTESTED, Ida

from .machines import COURSES, library, started

CURVES = tuple(COURSES)
WAYS = [(form, method) for form in PARTS for method in ("radau", "ida")] + [("index-3", "generalized-alpha")]


@cache
def crossings() -> np.ndarray:
    """When the tip is at the base on x = 0, from the equation of one coordinate: first at 1.081 s of the sheet."""
    return motion.arm_on_line().run(np.pi / 3, 0.0, 5.0).roots(lambda y: np.sin(y[0]))


@pytest.mark.parametrize(("form", "method"), WAYS)
@pytest.mark.parametrize("curve", CURVES)
def test_every_form_and_solver_follows_the_table(curve, form, method):
    """Default options (fixed steps where the method takes no others): joint angles, determinant, singular positions."""
    system = library("arm_on_curve", curve=curve)
    steps = {"dt": 5e-4} if method == "generalized-alpha" else {}
    traj = sr.simulate(system, system.assemble(), 5.0, formulation=form, method=method, **steps)
    assert traj.status.ok, str(traj.status)
    times, wanted = list(COURSES[curve]), np.array(list(COURSES[curve].values()))
    found = traj.at(times).q
    # measured: at most 5e-8 by radau, 2e-5 by ida (rtol 1e-8), 5e-4 by generalized-alpha, whose error is of order dt²
    limit = {"radau": 1e-6, "ida": 3e-5, "generalized-alpha": 2e-3}[method]
    assert np.max(np.abs(found - wanted)) <= limit, found
    determinant, exact = np.sin(found[:, 1]), np.sin(wanted[:, 1])  # of the arm's Jacobian, with links of 1 m
    assert np.max(np.abs(determinant - exact)) <= limit
    if curve == "circle":  # ±120 degrees all the time
        assert np.max(np.abs(np.abs(np.sin(traj.q[:, 1])) - np.sqrt(3) / 2)) <= limit
    passed = crossings() if curve == "x=0" else []
    for crossing, t in zip(traj.crossings, passed, strict=True):  # at (0, π) and (π, π)
        assert abs(crossing.t - t) <= limit and crossing.rank == 0
        assert np.max(np.abs(np.sin(crossing.q))) <= 10 * limit and np.cos(crossing.q[1]) < 0


def test_a_stretched_arm_is_no_singular_position_of_the_constraint():
    """On x = 1 the determinant passes zero at y = -√3, but n' J M^-1 J' n stays above 0.138 (12.7)."""
    system = library("arm_on_curve", curve="x=1")
    traj = sr.simulate(system, system.assemble(), 5.0, formulation="ggl", method="radau")
    determinant = np.sin(traj.q[:, 1])
    assert determinant.min() < -0.5 and determinant.max() > 0.5
    terms = [system.terms(traj.state(k)) for k in range(len(traj))]
    kappa = [float(x.A[0] @ np.linalg.solve(x.M, x.A[0])) for x in terms]
    assert 0.138 <= min(kappa) < 0.14


@pytest.mark.parametrize(
    ("curve", "eps", "loop", "energy", "deviation"),
    [
        ("x=1", 1e-6, 2.4e-6, 3.6e-4, 7.4e-5), ("x=0", 1e-4, 7.6e-5, 0.63, 0.154),
        ("x=0", 1e-6, 6.9e-6, 0.10, 0.0248), ("x=0", 1e-8, 6.0e-7, 0.0157, 0.0039),
    ],
)  # fmt: skip
def test_regularised_motion_has_the_errors_of_the_sheet(curve, eps, loop, energy, deviation):
    """10, 12.7: RK4 with h = dt = 1e-3, rows as they are written, on x = 0 through six singular positions."""
    system = library("arm_on_curve", curve=curve)
    form = sr.formulation("regularised", eps=eps / system.norms[0] ** 4)
    traj = sr.simulate(system, system.assemble(), 5.0, formulation=form, method="rk4", dt=1e-3)
    assert traj.status.ok, str(traj.status)
    exact = sr.simulate(system, system.assemble(), 5.0, rtol=1e-12, output=traj.t).q
    if curve == "x=0":
        reference = motion.arm_on_line().run(np.pi / 3, 0.0, 5.0)
        exact = np.array([reference.q(t) for t in traj.t])
    audit = traj.audit()
    assert 0.95 * loop < np.max(np.abs(traj.residuals.loop)) < 1.05 * loop
    assert 0.95 * energy < audit.energy.value < 1.05 * energy
    assert 0.95 * deviation < np.max(np.abs(traj.q - exact)) < 1.05 * deviation


@pytest.mark.parametrize("max_step", [1e300, 1e-4])
@pytest.mark.parametrize("form", ["ggl-implicit", "ggl"])
def test_ida_as_the_paper_used_it_stops_before_the_singular_position(form, max_step):
    """Multipliers in the error test, its tolerances: "the simulation cannot go on" at 1.081 s; without them it does."""
    system = library("arm_on_curve", curve="x=0")
    reached = []
    for tested in (True, False):
        dae = started(system, form, system.assemble(), np.zeros(0), np.ones(1))
        dae.scale[:] = 1.0  # rows as the paper has them
        places = compiled_problem(system, form).places
        atol = np.full(places["end"], 5e-5)
        atol[places["v"] + 2 :] = 5e-5 if tested else UNTESTED
        solver, t = Ida(dae, 5e-3, atol, places["v"] + 2, max_step), 0.0
        solver.start()
        while t < 0.7:
            before = t
            t, _, said = solver.step(0.7)
            if said or t - before < 1e-14:
                break
        reached.append(0.5 + t)
    assert 1.0 < reached[0] < 0.5 + crossings()[0] + 1e-4 and reached[1] == 1.2, reached
