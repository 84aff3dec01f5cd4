"""Motions by each formulation that makes an ODE, and its compiled form against the readable one."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

import sarrus as sr
from oracles import motion
from sarrus.dynamics.formulations.compiled import choice, right_hand_side
from sarrus.kernel.motion import _Setup
from sarrus.simulation.plan import ACCEPTS, fits

from .machines import force_size, library, mass_size, place

ODES = [x.name for x in sr.formulations() if not x.index]
COMPILED = [name for name in ODES if name != "baumgarte"]
EXACT = [name for name in COMPILED if name != "regularised"]


def compiled(system: sr.System, form: sr.Formulation, state: sr.State, u, f):
    """Acceleration, multipliers and report of the compiled form, with the integrators' own arguments."""
    x, square = system.layout, system.norms**2
    rows = np.concatenate([square, 1 / square, 1 / system.norms, choice(system, form)])
    on, p = np.ones(len(system.kept)), system.p.copy()
    setup = _Setup()
    setup.p, setup.active, setup.rowdata = p.ctypes.data, on.ctypes.data, rows.ctypes.data
    setup.options.tolerance, setup.options.max_rank = system.tolerance, -1
    out = [np.zeros(x.nv), np.zeros(x.m), np.zeros(5)]
    inputs = [np.array([float(state.t)]), state.q.copy(), state.v.copy(), np.array(u), np.array(f)]
    function = right_hand_side(system)
    function.restype = None
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in inputs]
    function(*pointers, ctypes.byref(setup), *(ctypes.c_void_p(a.ctypes.data) for a in out))
    return out


@pytest.mark.parametrize("name", ["sarrus", "rolling", "random-12"])
def test_compiled_forms_agree_with_the_readable_ones(name, rng):
    _, system, state, u, f = place(name, rng)
    M = system.terms(state).M
    wanted = system.solve(state, u, f)
    size = mass_size(M, wanted.vdot) + force_size(M, f)
    for form in COMPILED:
        vdot, lam, report = compiled(system, sr.formulation(form), state, u, f)
        if form == "regularised":
            readable = system.acceleration(state, u, f, formulation=form)
        else:
            readable = wanted.vdot
            np.testing.assert_allclose(lam, wanted.lam, rtol=0, atol=1e-8 * np.max(np.abs(wanted.lam)), err_msg=form)
        assert mass_size(M, vdot - readable) <= 1e-9 * size, form
        assert report[0] == wanted.rank and report[4] > 0


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("virtual-mass", {"mu": 0.3}), ("projection-scaled", {"gamma": -2.0}), ("projection", {"W": "drawn"}),
        ("projection-symmetric", {"W": "drawn"}), ("virtual-mass", {"W": "drawn"}),
        ("regularised", {"eps": 1e-3, "h": 0.1}),
    ],
)  # fmt: skip
def test_options_reach_the_compiled_form(form, options, rng):
    """A wrong option would show: regularised differs from the default one, the others must not."""
    _, system, state, u, f = place("rolling", rng)
    n = system.layout.nv
    root = rng.normal(size=(n, n))
    options = {k: root @ root.T + n * np.eye(n) if isinstance(v, str) else v for k, v in options.items()}
    chosen = sr.formulation(form, **options)
    M = system.terms(state).M
    readable = system.acceleration(state, u, f, formulation=chosen)
    vdot = compiled(system, chosen, state, u, f)[0]
    assert mass_size(M, vdot - readable) <= 1e-9 * (mass_size(M, readable) + force_size(M, f))
    if form == "regularised":
        assert mass_size(M, vdot - system.acceleration(state, u, f)) > 1e-6 * mass_size(M, vdot)


@cache
def crank() -> motion.Motion:
    """The slider-crank of sheet 12.1 from rest at π/4, by its one coordinate."""
    return motion.slider_crank().run(np.pi / 4, 0.0, 10.0)


@pytest.mark.parametrize("form", EXACT)
def test_motion_through_singular_positions(form):
    """The equal-length slider-crank of sheet 12.1: four passages in 10 s, reference of one coordinate."""
    system = library("slider_crank")
    start = system.assemble()
    traj = sr.simulate(system, start, 10.0, formulation=form, rtol=1e-10, output=[1.0, 2.0, 5.0, 10.0])
    assert traj.status.ok, str(traj.status)
    assert traj.settings["formulation"] == form
    assert len(traj.crossings) == 4
    wanted = crank().q
    np.testing.assert_allclose(traj.q, [wanted(t) for t in traj.t], rtol=0, atol=1e3 * 1e-10)


@pytest.mark.parametrize("form", [*EXACT, "baumgarte"])
def test_motion_of_a_redundant_machine(form):
    """Three cranks under one coupler, one row too many; it goes to and fro below its singular positions."""
    system = library("parallelogram")
    names = system.layout.q_names
    start = system.assemble({names[0]: -0.3})
    wanted = sr.simulate(system, start, 2.0, rtol=1e-11, output=[1.0, 2.0])
    traj = sr.simulate(system, start, 2.0, formulation=form, rtol=1e-9, output=[1.0, 2.0])
    assert traj.status.ok, str(traj.status)
    np.testing.assert_allclose(traj.q, wanted.q, rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", ["virtual-mass", "null-space"])
@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_motion_of_a_machine_with_a_quaternion_and_inputs(form, method):
    system = library("stewart")
    start = system.assemble()
    options = {"inputs": [3000.0 + 50 * i for i in range(6)], "output": [0.1, 0.2]}
    wanted = sr.simulate(system, start, 0.2, rtol=1e-11, **options)
    traj = sr.simulate(system, start, 0.2, formulation=form, method=method, rtol=1e-9, **options)
    np.testing.assert_allclose(traj.q, wanted.q, rtol=0, atol=1e-7)
    assert traj.audit().ok()


@pytest.mark.parametrize("method", ["rk4", "euler"])
def test_fixed_steps_converge_with_their_order(method):
    system = library("four_bar")
    start = system.assemble(velocities={system.layout.v_names[0]: 1.0})
    wanted = sr.simulate(system, start, 1.0, rtol=1e-12, output=[1.0]).q
    errors = [
        np.max(np.abs(sr.simulate(system, start, 1.0, formulation="projection", method=method, dt=dt).q[-1] - wanted))
        for dt in (1 / 100, 1 / 200)
    ]
    order = 4 if method == "rk4" else 1
    assert 0.7 * 2**order < errors[0] / errors[1] < 1.4 * 2**order


def test_regularised_motion_with_automatic_options():
    system = library("arm_on_curve", curve="x=0")
    traj = sr.simulate(system, system.assemble(), 5.0, formulation="regularised", method="rk4", dt=1e-3, output=[5.0])
    np.testing.assert_allclose(traj.q[-1], [-4.03510433, 11.21180131], rtol=0, atol=1e-5)
    assert traj.settings["formulation options"]["h"] == 1e-3


def test_baumgarte_is_the_correction_of_the_integrators():
    system = library("four_bar")
    start = system.assemble(velocities={system.layout.v_names[0]: 1.0})
    one = sr.simulate(system, start, 1.0, formulation=sr.formulation("baumgarte", alpha=5.0, beta=7.0))
    two = sr.simulate(system, start, 1.0, drift="baumgarte", baumgarte=(5.0, 7.0))
    np.testing.assert_array_equal(one.q, two.q)


def press() -> sr.System:
    """A crank-rocker whose rocker hits a stop."""
    mech = sr.Mechanism("press", planar=True)
    sizes = {"crank": (1.0, 0.4), "coupler": (2.0, 1.1), "rocker": (1.5, 0.9)}
    bodies = {
        name: mech.body(name, mass, com=(length / 2, 0), inertia=sr.rod(mass, length))
        for name, (mass, length) in sizes.items()
    }
    mech.revolute("A", mech.ground, bodies["crank"], initial=2.6, damping=0.02)
    mech.revolute("B", bodies["crank"], bodies["coupler"], at=(0.4, 0), initial=-2.2)
    mech.revolute("D", mech.ground, bodies["rocker"], at=(1.2, 0), initial=1.2, stiffness=40.0, rest=0.4)
    mech.close("C", sr.point_on(bodies["coupler"], (1.1, 0)), sr.point_on(bodies["rocker"], (0.9, 0)))
    mech.stop("stop", "D", 1.8, "low", restitution=0.6)
    return sr.compile(mech)


@pytest.mark.parametrize("form", ["projection", "virtual-mass", "quasi-velocity", "null-space", "multiplier"])
def test_impacts_and_changes_are_those_of_the_default_form(form):
    system = press()
    start = system.assemble({"A": 2.6}, velocities={"A": 3.0})

    def heavier(t, x):
        return sr.Change(velocities={"A": 1.5 * x["A.v"]})

    events = [sr.Event("kick", lambda t: t - 0.25, action=heavier)]
    one = sr.simulate(system, start, 1.5, rtol=1e-10, events=events)
    two = sr.simulate(system, start, 1.5, rtol=1e-10, events=events, formulation=form)
    assert one.status.ok and two.status.ok
    assert [e.name for e in one.events] == [e.name for e in two.events]
    assert {"kick", "stop"} <= {e.name for e in two.events} and len(two.events) > 3
    np.testing.assert_allclose([e.t for e in two.events], [e.t for e in one.events], rtol=0, atol=1e-7)
    np.testing.assert_allclose(two.q[-1], one.q[-1], rtol=0, atol=1e-6)


# --- what does not fit ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("formulation", "options", "text"),
    [
        ("regularised", {}, "formulation 'regularised' makes an ODE, which method 'dop853' does not take.\n"
         "  methods that do: 'rk4', 'euler'"),
        ("projection", {"method": "variational", "dt": 0.1}, "formulation 'projection' makes an ODE, which method "
         "'variational' does not take"),
        ("projection", {"method": "variational", "dt": 0.1}, "formulations that 'variational' takes: only the default"),
        ("index-3", {}, "formulation 'index-3' makes a DAE of index 3, which method 'dop853' does not take"),
        ("index-3", {}, "formulations that 'dop853' takes: projection, projection-symmetric"),
        ("baumgarte", {"drift": "free"}, "formulation 'baumgarte' corrects drift by itself; leave out drift='free'"),
        (sr.formulation("null-space", basis="orthonormal"), {}, "basis='orthonormal': simulations are compiled with "
         "basis='coordinates'"),
    ],
)  # fmt: skip
def test_a_mismatch_is_refused_with_what_fits(formulation, options, text):
    system = library("four_bar")
    with pytest.raises(sr.SarrusError) as caught:
        sr.simulate(system, system.assemble(), 1.0, formulation=formulation, **options)
    assert text in str(caught.value)


def test_every_method_says_what_it_takes():
    from sarrus.kernel.motion import METHODS

    assert set(METHODS) <= set(ACCEPTS)
    for form in sr.formulations():
        if not form.index:
            assert any(fits(form, method) for method in ACCEPTS)
