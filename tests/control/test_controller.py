"""Controllers as objects: called, exported, with memory, and refusing what makes no sense."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import sarrus as sr
from sarrus.kernel.compiler import INCLUDE, find_compiler

from .support import LAWS, laws, machine


@pytest.mark.parametrize("name", LAWS)
def test_exported_c_stands_alone_and_gives_the_same_inputs(name, tmp_path, rng):
    control = laws()[name]
    system = control.system
    source = control.export(tmp_path / "robot")
    library = tmp_path / "controller.so"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    call = [*find_compiler(), *strict, "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code = ctypes.CDLL(str(library))
    numbers = np.loadtxt(source.parent / "numbers.txt", ndmin=1)
    home = system.assemble()
    v = system.projector(home) @ rng.uniform(-1, 1, system.layout.nv)
    u = np.zeros(system.layout.nu)
    arrays = [np.array([0.3]), home.q.copy(), v, numbers, u]
    assert code.sarrus_law(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) == 0
    # another level of optimisation: sums in another order
    np.testing.assert_allclose(u, control(0.3, home.q, v), atol=1e-12 * (1 + np.abs(u).max()))
    arrays[1][0] = np.nan
    assert code.sarrus_law(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) == 1
    if control.memory_size:
        lam, memory = np.full(system.layout.m, 7.0), control.init()
        arrays = [np.array([0.3]), home.q.copy(), v, numbers, lam, memory, u]
        for _ in range(2):
            expected, after = control.step(arrays[0][0], home.q, v, lam, memory)
            assert code.sarrus_step(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) == 0
            np.testing.assert_allclose(u, expected, atol=1e-12 * (1 + np.abs(u).max()))
            np.testing.assert_allclose(memory, after, rtol=1e-12)
            arrays[0][0] += 0.1
    text = source.read_text()
    assert "malloc" not in text
    assert "static real" not in text


def test_memory_is_in_the_hands_of_the_caller():
    """init and step: the integral of the force error, once more by hand."""
    system = machine("cartesian_on_circle")
    control = sr.control.HybridMotionForce(system, "x", 0.3, {"circle": -2.0}, ki=5.0, kf=0.1)
    plain = {g: sr.control.HybridMotionForce(system, "x", 0.3, {"circle": g}) for g in (-2.0,)}[-2.0]
    state = system.assemble({"x": 0.4})
    memory = control.init()
    u, after = control.step(0.0, state.q, state.v, [7.0], memory)
    np.testing.assert_array_equal(memory, 0)  # not touched
    np.testing.assert_allclose(u, plain(0.0, state.q, state.v), rtol=1e-12)  # what was measured is not believed yet
    integral = 0.0
    for k in range(1, 5):
        measured = -2.0 + 0.5 / k
        error = -2.0 - measured
        integral += 0.01 * error
        u, after = control.step(0.01 * k, state.q, state.v, [measured], after)
        wanted = -2.0 + 0.1 * error + 5.0 * integral
        assert system.solve(state, u).lam[0] == pytest.approx(wanted, rel=1e-10)
    np.testing.assert_allclose(plain.step(0.0, state.q, state.v, [0.0], plain.init())[0], plain(0.0, state.q, state.v))
    assert control.stable(1e-3)
    assert not control.stable(1.0)
    with pytest.raises(sr.StateError, match="put it into a Loop with a period"):
        sr.simulate(system, state, 1.0, control=control)
    with pytest.raises(sr.StateError, match="expected 1 multipliers and 3 remembered numbers"):
        control.step(0.0, state.q, state.v, [0.0, 1.0], memory)


def test_controllers_share_code_and_differ_in_numbers():
    system = machine("four_bar")
    a = sr.control.ProjectedInverseDynamics(system, "A", 1.0, kp=10.0)
    b = sr.control.ProjectedInverseDynamics(system, "A", 1.5, kp=90.0)
    assert a.source == b.source
    assert not np.array_equal(a.numbers, b.numbers)
    state = system.assemble()
    assert a(0, state.q, state.v) != pytest.approx(b(0, state.q, state.v))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda s: sr.control.ProjectedInverseDynamics(s, ["q1", "q4"], [0, 0]), "mobility 4; expected a chart"),
        (lambda s: sr.control.TaskSpace(s, "q1", 0.0, kp=-1), "kp: expected a positive number"),
        (lambda s: sr.control.TaskSpace(s, "q1", 0.0, kp=[1, 2]), "kp: expected a positive number, or 1 of them"),
        (
            lambda s: sr.control.TaskSpace(s, "q1", 0.0, formulation="quick"),
            "formulation 'quick': use 'direct', 'minimal'",
        ),
        (lambda s: sr.control.TaskSpace(s, 7, 0.0), "expected a coordinate name, a Task or a function"),
        (lambda s: sr.control.TaskSpace(s, [], 0.0), "expected at least one coordinate"),
        (lambda s: sr.control.TaskSpace(s, lambda t, x: x["q1.v"], 0.0), "must depend on the position alone"),
        (lambda s: sr.control.TaskSpace(s, lambda t, x: x["q1"] if x["q1"] > 0 else 0, 0.0), "without branches"),
        (
            lambda s: sr.control.TaskSpace(s, "q1", 0.0, posture=sr.control.Posture("comfort")),
            "expected 'gravity effort' or a function",
        ),
        (lambda s: sr.control.QuasiVelocityTracking(s, [0, 0]), "reference: expected 6 value"),
        (
            lambda s: sr.control.ProjectedInverseDynamics(s, ["q1", "q2", "q4", "q5"], [0] * 4),
            r"q1, q2, q4, q5 are 4 value\(s\), of which geared chain can move 3 independently",
        ),
        (
            lambda s: sr.control.TaskSpace(s, machine("four_bar").task("orientation", "coupler"), [1, 0, 0, 0]),
            r"made for another machine, with the coordinates A, B, C; use system.task\(...\) of geared chain itself",
        ),
        (
            lambda s: sr.control.TaskSpace(s, "q1", 0.0, then=["q4"]),
            r"then: expected a list of pairs \(task, reference\)",
        ),
        (lambda s: sr.control.TaskSpace(s, "q1", 0.0, then=[("q4", 1, 2)]), "then: expected a list of pairs"),
        (
            lambda s: sr.control.TaskSpace(s, "q1", 0.0, posture="gravity effort"),
            "posture: expected a sr.control.Posture",
        ),
        (
            lambda s: sr.control.TaskSpace(s, "q1", 0.0, posture=sr.control.Posture(lambda t, x: t * x["q4"])),
            "not of time or velocities",
        ),
        (lambda s: sr.control.TaskSpace(s, "q1", lambda t: [np.nan]), "contains a number that is not finite"),
        (
            lambda s: sr.control.HybridMotionForce(s, ["q1", "q4", "q5", "q6"], [0] * 4, ["gear2"]),
            r"forces: expected a mapping from names of constraints to references, got \['gear2'\]",
        ),
        (
            lambda s: sr.control.HybridMotionForce(s, ["q1", "q4", "q5", "q6"], [0] * 4, {"gear2": 1.0}, kf="high"),
            "kf: expected a non-negative number",
        ),
        (
            lambda s: sr.control.TaskSpace(s.description, "q1", 0.0),
            "expected a compiled machine, got Model; use sr.compile",
        ),
        (
            lambda s: sr.control.HybridMotionForce(s, ["q1", "q4", "q5", "q6"], [0] * 4, {"gear2": 1.0, "gear2 ": 2.0}),
            "unknown constraint or row 'gear2 '",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises((sr.StateError, sr.UnknownNameError), match=text):
        make(machine("geared_chain"))


def test_machines_that_a_law_is_not_for():
    with pytest.raises(sr.StateError, match=r"quaternions .*: use TaskSpace with an orientation"):
        sr.control.QuasiVelocityRegulation(machine("stewart"), np.zeros(25))
    with pytest.raises(sr.StateError, match="a quaternion is no list of numbers"):
        sr.control.TaskSpace(machine("stewart"), "platform", np.zeros(7))
    with pytest.raises(sr.StateError, match="it has no inputs; add motors"):
        sr.control.TaskSpace(machine("andrews"), "q1", 0.0)
    mech = sr.Mechanism("driven", planar=True)
    for name in ("A", "B"):
        mech.revolute(name, mech.ground, mech.body(name, 1.0, com=(0, -1)))
        mech.motor(name)
    mech.prescribe("drive", "A", np.sin)
    with pytest.raises(sr.StateError, match="constraint 'drive' moves with time"):
        sr.control.QuasiVelocityTracking(sr.compile(mech), [0, 0])
    for law in (sr.control.QuasiVelocityRegulation, sr.control.DependentCoordinates):
        with pytest.raises(sr.StateError, match="constraint 'drive' moves with time; this law is for steady ones"):
            law(sr.compile(mech), [0, 0])
    assert machine("andrews").layout.nu == 0


def test_machines_too_large_for_a_stack_are_refused(monkeypatch):
    """The code allocates nothing. A limit of next to nothing stands for machines of some five hundred velocities."""
    monkeypatch.setattr("sarrus.control.builder.STACK", 1e-4)
    text = r"four-bar: a controller for 3 velocities and 2 constraint rows needs 0.000\d+ MB of stack, expected at most"
    with pytest.raises(sr.StateError, match=text):
        sr.control.TaskSpace(machine("four_bar"), "A", 0.0)
    system = machine("four_bar")
    state = system.assemble()
    assert sr.control.Law(system, lambda t, q, v: [q[0]])(0.0, state.q, state.v) == state.q[0]  # needs none


@pytest.mark.parametrize("name", ["planar_platform", "four_bar", "stewart"])
def test_short_cut_and_rank_revealing_path_agree(name, rng):
    """The generated sparse solve is used while its pivots carry; else the split decides, with equal results."""
    system = machine(name)
    home = system.assemble()
    task = {"planar_platform": ["platform.x", "platform.z", "platform.angle"], "four_bar": ["A"]}.get(
        name, [f"leg{i}" for i in range(6)]
    )
    control = sr.control.ProjectedInverseDynamics(
        system, task, [0.0] * len(task), weights=rng.uniform(1, 2, len(system.inputs))
    )
    assert "sr_fast_inputs" in control.source
    trust, apart = control._places["TRUST"], 0
    for _ in range(5):
        v = system.projector(home) @ rng.uniform(-1, 1, system.layout.nv)
        quick = control(0.0, home.q, v)
        control.numbers[trust] = np.inf
        careful = control(0.0, home.q, v)
        control.numbers[trust] = system.fast_pivot
        np.testing.assert_allclose(quick, careful, rtol=1e-8, atol=1e-8 * np.abs(careful).max())
        apart += not np.array_equal(quick, careful)
    assert apart  # two ways indeed


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++: the code cannot be read as C++ here")
@pytest.mark.parametrize("number", ["float", "double"])
def test_laws_are_valid_device_code(number, tmp_path):
    """CUDA reads the code as C++, with every function a device function and nothing exported."""
    chain, circle = machine("geared_chain"), machine("cartesian_on_circle")
    posture = sr.control.Posture()
    laws = [
        sr.control.TaskSpace(chain, "q4", 0.0),
        sr.control.TaskSpace(chain, "q4", 0.0, formulation="partitioned", posture=posture, then=[("q5", 0.1)]),
        sr.control.HybridMotionForce(circle, "x", sr.control.Samples([0, 1], [0.1, 0.2]), {"circle": 1.0}, ki=1.0),
        sr.control.QuasiVelocityTracking(circle, [1.0, 0.0]),
        sr.control.QuasiVelocityRegulation(circle, [1.0, 0.0]),
        sr.control.DependentCoordinates(circle, [1.0, 0.0], sigma=1.2),
        sr.control.Law(circle, lambda t, q, v: [q[0], v[1]]),
    ]
    for k, law in enumerate(laws):
        source = tmp_path / f"law{k}.cpp"
        source.write_text("#include <cmath>\nusing namespace std;\n" + law.source)
        call = ["g++", "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-D__CUDACC__"]
        call += ["-D__device__=", f"-I{INCLUDE}", str(source), *(["-DSARRUS_FLOAT"] if number == "float" else [])]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
