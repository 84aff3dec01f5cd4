"""Motion in reduced quasi-velocities: equations, smooth bases, orders, and what it keeps by construction."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

import sarrus as sr
from oracles import motion
from sarrus.dynamics.formulations.compiled import quasi_velocities
from sarrus.dynamics.formulations.factors import FACTORS
from sarrus.kernel.motion import _Setup

from .machines import force_size, library, moving, place

STEADY = ("random-5", "random-9", "random-12", "parallelogram", "sarrus", "rolling", "knife_edge")
MOVING = ("prescribe", "constrain_velocity")
P = ctypes.c_void_p


class Table(ctypes.Structure):
    """`sr_quasi` of sarrus_quasi.h."""

    _fields_ = [
        ("locate", ctypes.CFUNCTYPE(ctypes.c_int, P, P, P, ctypes.c_int, P, P)),
        ("reduce", ctypes.CFUNCTYPE(None, P, P, P)),
        ("spread", ctypes.CFUNCTYPE(None, P, P, ctypes.c_int, P)),
        ("rate", ctypes.CFUNCTYPE(None, P, P, P, P, P, P, P, P)),
    ]


class Kernel:
    """The compiled functions of one machine, called as the integrators call them."""

    def __init__(self, system: sr.System, kind: str):
        self.system, self.nv = system, system.layout.nv
        made = quasi_velocities(system, sr.formulation("quasi-velocity", factor=kind))
        self.table, self.section, self.library = Table.from_address(made.functions), made.section, made.library
        square = system.norms**2
        self.arrays = [
            system.p.copy(),
            np.ones(len(system.kept)),
            np.concatenate([square, 1 / square, 1 / system.norms]),
        ]
        self.setup = _Setup()
        self.setup.p, self.setup.active, self.setup.rowdata = (x.ctypes.data for x in self.arrays)
        self.setup.options.tolerance, self.setup.options.max_rank = system.tolerance, -1

    def locate(self, state: sr.State, fresh: bool) -> np.ndarray:
        """Go there; the report."""
        self.t, self.q = np.array([float(state.t)]), np.array(state.q)
        report = np.zeros(5)
        self.table.locate(self.t.ctypes.data, self.q.ctypes.data, ctypes.addressof(self.setup), int(fresh),
                          self.section.ctypes.data, report.ctypes.data)  # fmt: skip
        return report

    def reduce(self, v: np.ndarray) -> np.ndarray:
        v, out = np.array(v, dtype=float), np.full(self.nv, np.nan)
        self.table.reduce(self.section.ctypes.data, v.ctypes.data, out.ctypes.data)
        return out

    def spread(self, reduced: np.ndarray, moving: bool) -> np.ndarray:
        reduced, out = np.array(reduced, dtype=float), np.full(self.nv, np.nan)
        self.table.spread(self.section.ctypes.data, reduced.ctypes.data, int(moving), out.ctypes.data)
        return out

    def basis(self, free: int) -> np.ndarray:
        """Z at the place, columns one by one."""
        return np.column_stack([self.spread(np.eye(self.nv)[i], False) for i in range(free)])

    def rate(self, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        v, u, out, report = np.array(v), np.array(u, dtype=float), np.full(self.nv, np.nan), np.ones(5)
        self.table.rate(self.t.ctypes.data, self.q.ctypes.data, v.ctypes.data, u.ctypes.data,
                        ctypes.addressof(self.setup), self.section.ctypes.data, out.ctypes.data,
                        report.ctypes.data)  # fmt: skip
        assert report[4] > 0
        return out


def neighbour(system: sr.System, state: sr.State, time: float) -> sr.State:
    """Where the machine comes to a little later: a place whose basis is not the one here."""
    end = float(state.t) + time
    traj = sr.simulate(system, state, end, rtol=1e-11, output=[end])
    assert traj.status.ok and not traj.crossings, str(traj)
    return traj.final


def size_of(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


# --- equations -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", STEADY)
def test_compiled_rate_is_that_of_the_sheet(name, kind, rng):
    """6: v̇r = ur - Γr vr with the skew Γr = Zᵀ(M Ż + C Z) of Christoffel symbols, section about another place."""
    _, system, state, u, _ = place(name, rng)
    kernel = Kernel(system, kind)
    away = neighbour(system, state, 0.05 / max(1.0, size_of(state.v)))
    report = kernel.locate(away, fresh=True)
    free = system.layout.nv - int(report[0])
    there = system.matrices(away, factor=kind)
    reference = there.W.T @ kernel.basis(free)
    np.testing.assert_allclose(reference.T @ reference, np.eye(free), atol=1e-12)

    assert kernel.locate(state, fresh=False)[0] == report[0]
    x = system.matrices(state, u, factor=kind, reference=reference)
    assert size_of(x.V2w - reference) > 1e-4  # the section is not the trivial one
    scale = np.max(np.linalg.norm(x.Z, axis=0))
    np.testing.assert_allclose(kernel.basis(free), x.Z, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(kernel.reduce(state.v)[:free], x.vr, rtol=0, atol=1e-11 * np.linalg.norm(x.vr))
    assert np.all(kernel.reduce(state.v)[free:] == 0)
    wanted = x.Z.T @ (x.point.f - (x.point.h - x.C @ state.v)) - x.Gr @ x.vr
    size = force_size(x.M, x.point.f - x.point.h) + np.linalg.norm(x.Gr) * np.linalg.norm(x.vr)
    found = kernel.rate(state.v, u)
    np.testing.assert_allclose(found[:free], wanted, rtol=0, atol=1e-10 * size)
    assert np.all(found[free:] == 0)
    np.testing.assert_allclose(x.Gr, -x.Gr.T, rtol=0, atol=1e-9 * (np.linalg.norm(x.Gr) + 1))


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", [*MOVING, "random-12", "rolling"])
def test_compiled_rate_is_the_slope_along_the_motion(name, kind, rng):
    """Also where constraints move: v = Z vr + vn, and finite differences of vr along the motion computed in v."""
    _, system, state, u, _ = place(name, rng)
    kernel = Kernel(system, kind)
    t, e = float(state.t), 2e-3 / max(1.0, size_of(state.v))
    report = kernel.locate(state, fresh=True)
    free = system.layout.nv - int(report[0])
    times, inputs = t + e * np.arange(1, 9), list(u) if len(u) else None
    run = sr.simulate(system, state, times[-1], inputs=inputs, rtol=1e-13, output=times)
    path, values = [state, *(run.state(i) for i in range(8))], []
    for here in path:
        kernel.locate(here, fresh=False)
        values.append(kernel.reduce(here.v)[:free])
        moved = kernel.spread(kernel.reduce(here.v), True)
        np.testing.assert_allclose(moved, here.v, rtol=0, atol=1e-10 * size_of(here.v))
    middle = path[4]
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    slope = weights @ np.array(values) / e
    kernel.locate(middle, fresh=False)
    terms = system.terms(middle)
    size = np.linalg.norm(slope) + np.linalg.norm(values[4]) ** 2 + force_size(terms.M, terms.h)
    np.testing.assert_allclose(kernel.rate(middle.v, u)[:free], slope, rtol=0, atol=1e-8 * size)


# --- motions ---------------------------------------------------------------------------------------------------------
def given(name: str) -> tuple[sr.System, sr.State, float]:
    """A machine, where it starts, and how long its motion is followed."""
    if name in (*MOVING, "rolling"):
        _, system, state, _, _ = place(name, np.random.default_rng(5))
        return system, state, float(state.t) + 1.0
    system, state = moving(name, np.random.default_rng(5))
    return system, state, 1.0


@cache
def wanted(name: str, until: float) -> np.ndarray:
    """Where the default formulation comes to, with a far tighter tolerance."""
    system, start, _ = given(name)
    return np.concatenate([(run := sr.simulate(system, start, until, rtol=1e-12)).q[-1], run.v[-1]])


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize(
    "name",
    ["four_bar", "n_four_bar", "planar_platform", "bricard", "stewart", "spherical_four_bar", *MOVING, "rolling"],
)
def test_motion_is_that_of_the_default_form(name, kind):
    """Two loops and more, planar and spatial, redundant rows, quaternions, moving and nonholonomic rows."""
    system, start, until = given(name)
    form = sr.formulation("quasi-velocity", factor=kind)
    traj = sr.simulate(system, start, until, rtol=1e-9, formulation=form)
    assert traj.status.ok, str(traj.status)
    end = wanted(name, until)
    size = 1 + np.abs(end)
    assert np.max(np.abs(np.concatenate([traj.q[-1], traj.v[-1]]) - end) / size) < 50 * 1e-9
    assert traj.audit().ok()


def test_factors_give_one_motion_by_different_numbers():
    system, start, until = given("planar_platform")
    ends = [
        sr.simulate(system, start, until, formulation=sr.formulation("quasi-velocity", factor=kind), rtol=1e-6).q[-1]
        for kind in FACTORS
    ]
    for other in ends[1:]:
        assert 0 < size_of(other - ends[0]) < 1e-5


def test_a_machine_without_free_directions_follows_its_drive():
    """A driven crank: n - r = 0, the motion is vn alone."""
    mech = sr.Mechanism("driven", planar=True)
    crank, arm = (mech.body(name, 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0)) for name in ("crank", "arm"))
    mech.revolute("A", mech.ground, crank)
    mech.revolute("B", crank, arm, at=(1, 0))
    mech.prescribe("drive", "A", lambda t: t + 0.2 * t**2)
    mech.prescribe("other", "B", lambda t: -0.5 * t)
    system = sr.compile(mech)
    traj = sr.simulate(system, system.assemble(), 1.0, formulation="quasi-velocity", rtol=1e-9)
    np.testing.assert_allclose(traj.q[-1], [1.2, -0.5], rtol=0, atol=1e-9)
    np.testing.assert_allclose(traj.v[-1], [1.4, -0.5], rtol=0, atol=1e-9)
    assert traj.quasi_velocities().shape == (len(traj), 0)


@pytest.mark.parametrize("crossing", ["continue", "stop", "release"])
def test_singular_positions(crossing):
    """12.1: the equal-length slider-crank loses its row at q1 = -π/2 after less than a second."""
    system = library("slider_crank")
    start = system.assemble()
    options = {"rtol": 1e-10, "crossing": crossing, "formulation": "quasi-velocity", "output": [0.5, 2.0]}
    traj = sr.simulate(system, start, 2.0, **options)
    twin = motion.slider_crank().run(np.pi / 4, 0.0, 2.0)
    if crossing == "stop":
        assert traj.status.code == "crossing"
        np.testing.assert_allclose(traj.final.q[0], -np.pi / 2, rtol=0, atol=1e-6)
        np.testing.assert_allclose(traj.final.q, twin.q(traj.t[-1]), rtol=0, atol=1e-6)
        return
    assert traj.status.ok and len(traj.crossings) == 1
    # releasing the row in the window costs accuracy (2.6, window of 1e-3)
    np.testing.assert_allclose(
        traj.q, [twin.q(t) for t in traj.t], rtol=0, atol=1e-7 if crossing == "continue" else 1e-5
    )


ORDERS = [
    ("four_bar", "euler", 1, {"dt": (0.01, 0.005, 0.0025)}),
    ("two_arms", "euler", 1, {"dt": (0.01, 0.005, 0.0025)}),
    ("stewart", "euler", 1, {"dt": (0.01, 0.005, 0.0025)}),
    ("four_bar", "rk4", 4, {"dt": (0.01, 0.005, 0.0025)}),
    ("two_arms", "rk4", 4, {"dt": (0.01, 0.005, 0.0025)}),
    ("stewart", "rk4", 4, {"dt": (0.01, 0.005, 0.0025)}),
    ("four_bar", "dopri5", 5, {"max_step": (0.02, 0.01, 0.005)}),
    ("two_arms", "dopri5", 5, {"max_step": (0.01, 0.005, 0.0025)}),
    ("four_bar", "dop853", 8, {"max_step": (0.1, 0.0625, 0.05)}),
    ("stewart", "dop853", 8, {"max_step": (0.125, 0.1, 0.0625, 0.05)}),
]


END = {"four_bar": 0.5, "two_arms": 0.25, "stewart": 0.5}  # seconds


def swinging(name: str) -> tuple[sr.System, sr.State]:
    """Machines away from singular positions: one, several and six free directions, numbers and a quaternion."""
    if name == "four_bar":
        system = library(name, L1=0.4, L2=1.2, L3=1.0, L4=1.3)
        return system, system.assemble(velocities={"A": 3.0})
    if name == "two_arms":
        system = library(name)
        return system, system.assemble()
    return moving(name, np.random.default_rng(5))


@cache
def sharp(name: str) -> sr.Trajectory:
    """The motion in the default form."""
    system, start = swinging(name)
    return sr.simulate(system, start, END[name], rtol=1e-13, max_step=0.002, output=END[name] * np.arange(1, 51) / 50)


def coarse(name: str, method: str, key: str, step: float, **options: Any) -> sr.Trajectory:
    """The motion with steps of one length, without error control."""
    system, start = swinging(name)
    loose = {} if key == "dt" else {"rtol": 1e3}
    traj = sr.simulate(
        system, start, END[name], method=method, formulation="quasi-velocity", **{key: step}, **loose, **options
    )
    assert traj.status.ok and not traj.stats.bridges, str(traj)
    return traj


@pytest.mark.parametrize(("name", "method", "nominal", "choices"), ORDERS)
def test_each_method_keeps_its_order(name, method, nominal, choices):
    (key, lengths), steps, errors = next(iter(choices.items())), [], []
    for step in lengths:
        traj = coarse(name, method, key, step)
        steps.append(traj.stats.steps)
        errors.append([size_of(getattr(traj, x)[-1] - getattr(sharp(name), x)[-1]) for x in ("q", "v")])
    assert np.min(errors) > 1e-13  # out of rounding
    found = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    within = 0.1 * nominal  # what is left of the next power of the step
    assert np.all(np.abs(found - nominal) <= within), f"orders of q and v: {np.round(found, 2)}, nominally {nominal}"


@pytest.mark.parametrize(
    ("name", "method", "nominal", "choices"),
    [
        ("four_bar", "dop853", (7, 7), {"max_step": (0.0625, 0.05, 0.025)}),
        ("stewart", "dop853", (7, 7), {"max_step": (0.1, 0.0625, 0.05)}),
        ("four_bar", "dopri5", (5, 4), {"max_step": (0.08, 0.04, 0.02)}),
        ("four_bar", "rk4", (4, 4), {"dt": (0.0325, 0.0165, 0.0082)}),
    ],
)
def test_motion_inside_steps_keeps_its_order(name, method, nominal, choices):
    """The polynomial of the method of order 8 has degree 7 in v_r; the others' is cubic in v."""
    (key, lengths), steps, errors = next(iter(choices.items())), [], []
    for step in lengths:
        traj = coarse(name, method, key, step, output=sharp(name).t)
        steps.append(traj.stats.steps)
        errors.append([size_of(getattr(traj, x) - getattr(sharp(name), x)) for x in ("q", "v")])
        slip = [system_slip(traj.state(i), traj.system) for i in range(len(traj))]
        assert max(slip) < 1e-12 * (1 + size_of(traj.v))
    found = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert np.all(found >= 0.9 * np.array(nominal)), f"orders of q and v: {np.round(found, 2)}, nominally {nominal}"


def test_long_fixed_steps_pass_where_the_directions_turn_fast():
    """The delta robot falls through a singular position; a stage before it sees directions at right angles."""
    system = library("delta")
    start = system.assemble()
    times = np.array([0.2, 0.4, 0.5])
    end = sr.simulate(system, start, 0.5, rtol=1e-11, output=times)
    traj = sr.simulate(system, start, 0.5, method="rk4", dt=0.0325, formulation="quasi-velocity", output=times)
    assert traj.status.ok and traj.stats.bridges > 0, str(traj)
    assert size_of(traj.q - end.q) < 1e-4


# --- what it keeps by construction -----------------------------------------------------------------------------------
def system_slip(state: sr.State, system: sr.System) -> float:
    """|A v - a| of the scaled rows."""
    x = system.terms(state)
    return float(np.max(np.abs(x.A @ state.v - x.a)[list(system.kept)] / system.norms, initial=0.0))


def stages(name: str, form: str | None, **options: Any) -> tuple[float, float]:
    """Worst velocity and position errors at any stage, with large steps and no error control."""
    system, start, until = given(name)
    seen = []

    def watch(t, q, v):
        seen.append((float(t), np.array(q, dtype=float), np.array(v, dtype=float)))
        return np.zeros(system.layout.nu)

    sr.simulate(system, start, until, inputs=watch, formulation=form, rtol=1e3, max_step=0.02, **options)
    states = [system.state(q, v, t) for t, q, v in seen]
    kept, places = list(system.kept), [system.terms(state) for state in states]
    loops = [np.max(np.abs(x.phi)[kept] / system.norms) for x in places]
    return max(system_slip(state, system) for state in states), float(max(loops))


@pytest.mark.parametrize("method", ["dop853", "dopri5"])
@pytest.mark.parametrize("name", ["planar_platform", "stewart"])
def test_every_stage_satisfies_the_velocity_constraint(name, method):
    """Rounding in v_r; in v the stages of a step miss it by as much as they miss the loops."""
    slip, loop = stages(name, "quasi-velocity", method=method)
    ordinary, _ = stages(name, None, method=method)
    speed = 1 + size_of(given(name)[1].v)
    assert slip < 1e-12 * speed
    assert loop > 1e-9 and ordinary > 1e3 * slip


@pytest.mark.parametrize("name", ["four_bar", "planar_platform", "prescribe", "constrain_velocity"])
def test_velocities_need_no_projection(name):
    """drift="free": nothing is ever projected; loops drift, velocities do not, in contrast to the other forms."""
    system, start, until = given(name)
    free = {"drift": "free", "rtol": 1e-5}
    traj = sr.simulate(system, start, until, formulation="quasi-velocity", **free)
    assert traj.status.ok and traj.stats.projections == 0
    slips = [system_slip(traj.state(i), system) for i in range(len(traj))]
    assert max(slips) < 1e-12 * (1 + size_of(traj.v))
    other = sr.simulate(system, start, until, formulation="generalised", **free)
    drifted = [system_slip(other.state(i), system) for i in range(len(other))]
    if name in ("four_bar", "planar_platform"):  # the others' rows hardly depend on the position
        assert max(drifted) > 1e3 * max(slips)


@pytest.mark.parametrize("name", ["four_bar", "bricard", "stewart"])
@pytest.mark.parametrize(("method", "stage_count"), [("dop853", 11), ("dopri5", 6), ("rk4", 3), ("euler", 0)])
def test_work_of_a_step(name, method, stage_count):
    """One evaluation where the step begins, its stages, one at its end; three before the first step, or one."""
    system, start, _ = given(name)
    options = {"dt": 0.005} if method in ("rk4", "euler") else {"rtol": 1e-6}
    stats = sr.simulate(system, start, 0.1, method=method, formulation="quasi-velocity", **options).stats
    assert stats.bridges == 0 and stats.steps > 1
    first = 3 if "rtol" in options else 1
    wanted = first + (stage_count + 2) * stats.steps + (stage_count + 1) * stats.rejected
    assert stats.evaluations == wanted


@pytest.mark.parametrize("method", ["dop853", "dopri5"])
def test_events_are_found_inside_steps(method):
    """An angle is passed where the motion, computed in v with a tight tolerance, passes it."""
    system, start = swinging("four_bar")
    event = sr.Event("there", lambda t, x: x["A"] - start["A"] - 0.7, terminal=True)
    options: dict[str, Any] = {"events": [event], "rtol": 1e-10, "method": method}
    one = sr.simulate(system, start, 2.0, formulation="quasi-velocity", **options)
    two = sr.simulate(system, start, 2.0, **(options | {"rtol": 1e-13, "method": "dop853"}))
    assert one.status.code == two.status.code == "event"
    np.testing.assert_allclose(one.t[-1], two.t[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.v[-1], two.v[-1], rtol=0, atol=1e-8 * size_of(two.v[-1]))


@pytest.mark.parametrize("kind", FACTORS)
def test_inputs_that_are_held_and_inputs_that_follow_the_state(kind):
    """A sampled law and one asked for at every stage move the machine as in the default form."""
    system = library("planar_platform")
    start, count = system.assemble(), system.layout.nu

    def damper(t, q, v):
        return [-0.3 * v[0] + 0.1 * t] * count

    for options in ({"inputs": damper, "sample": 0.01}, {"inputs": damper}):
        form = sr.formulation("quasi-velocity", factor=kind)
        one = sr.simulate(system, start, 0.3, rtol=1e-9, formulation=form, **options)
        two = sr.simulate(system, start, 0.3, rtol=1e-11, **options)
        assert one.status.ok and two.status.ok
        np.testing.assert_allclose(one.q[-1], two.q[-1], rtol=0, atol=1e-7)
        np.testing.assert_allclose(one.u[-1], two.u[-1], rtol=0, atol=1e-6)


# --- what does not fit -----------------------------------------------------------------------------------------------
def test_what_does_not_fit_is_refused():
    system = library("four_bar")
    with pytest.raises(sr.SarrusError) as caught:
        sr.simulate(system, system.assemble(), 1.0, formulation="quasi-velocity", method="radau")
    assert "'quasi-velocity' makes an ODE, which method 'radau' does not take" in str(caught.value)
    assert "methods that do: 'dop853', 'dopri5', 'rk4', 'euler'" in str(caught.value)
    with pytest.raises(sr.SarrusError) as caught:
        sr.simulate(system, system.assemble(), 1.0, formulation="quasi-velocity", drift="baumgarte")
    assert "has velocities that keep the constraints by themselves" in str(caught.value)
    assert "expected drift='project' or 'free'" in str(caught.value)
