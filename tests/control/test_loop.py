"""The loop between law and machine: sampling, hold, delay, limits, noise, and a model that is not the machine."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .support import machine


def cart() -> sr.System:
    """A unit mass on a slider with a drive: q'' = u."""
    mech = sr.Mechanism("cart", gravity=(0, 0, 0))
    for name in ("x", "y"):
        body = mech.body(name, 1.0)
        mech.prismatic(name, mech.ground, body, name)
        mech.motor(name, limits=(-4.0, 5.0))
    return sr.compile(mech)


def law(t, q, v):
    return [2.0 - 3.0 * q[0] - v[0], -1.0 - q[1] + 0.5 * v[0]]


def held(steps, period, delay=0.0, law=law, start=((0, 0), (0, 0)), change=lambda before, u: u, initial=(0.0, 0.0)):
    """The exact motion of the carts under a sampled law: between changes of u they move on parabolas."""
    q, v = (np.array(x, dtype=float) for x in start)
    u, queue, t, out = np.array(initial, dtype=float), [], 0.0, []
    ticks = [k * period for k in range(steps + 1)]
    times = sorted({round(x, 9) for x in (*ticks, *(x + delay for x in ticks))})
    for now in times:
        if now > steps * period + 1e-12:
            break
        h = now - t
        q, v, t = q + h * v + h * h / 2 * u, v + h * u, now
        if abs(now / period - round(now / period)) < 1e-9:
            queue.append((now + delay, np.array(law(now, q, v), dtype=float)))
        while queue and queue[0][0] <= now + 1e-12:
            u = change(u, queue.pop(0)[1])
        if abs(now / period - round(now / period)) < 1e-9:
            out.append((q.copy(), v.copy(), u.copy()))
    return out


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.13])
@pytest.mark.parametrize("compiled", [True, False])
def test_sampled_and_delayed_law_moves_the_carts_on_parabolas(delay, compiled):
    system = cart()
    control = sr.control.Law(system, law) if compiled else law
    loop = sr.control.Loop(control, period=0.05, delay=delay)
    traj = sr.simulate(system, system.assemble(), 2.0, control=loop, method="rk4", dt=0.01, output=np.arange(41) * 0.05)
    expected = held(40, 0.05, delay)
    np.testing.assert_allclose(traj.q, [x[0] for x in expected], atol=1e-12)
    np.testing.assert_allclose(traj.v, [x[1] for x in expected], atol=1e-12)


def test_limits_of_effort_and_rate():
    system = cart()
    loop = sr.control.Loop(
        sr.control.Law(system, law),
        period=0.02,
        effort={"x": 1.2, "y": (-0.4, 0.1)},
        rate={"x": 10.0},
        initial=[0.5, 0.0],
    )
    traj = sr.simulate(system, system.assemble(), 1.0, control=loop, method="rk4", dt=0.02)

    def change(before, u):
        x = np.clip(np.clip(u[0], before[0] - 0.2, before[0] + 0.2), -1.2, 1.2)
        return np.array([x, np.clip(u[1], -0.4, 0.1)])

    expected = held(50, 0.02, change=change, initial=(0.5, 0.0))
    np.testing.assert_allclose(traj.q, [x[0] for x in expected], atol=1e-12)
    u = np.array([x[2] for x in expected])
    np.testing.assert_allclose(traj.u[1:-1], u[:-2], atol=1e-12)  # rows are written before the tick at their end
    assert u[:, 0].max() == 1.2
    assert u[:, 1].min() == -0.4
    # without a period: limits at every evaluation; and those of the description
    free = sr.simulate(
        system, system.assemble(), 1.0, control=sr.control.Loop(lambda t: [40 * ca.sin(9 * t), 50.0], effort=True)
    )
    assert free.u[:, 0].max() == 5.0
    assert free.u[:, 0].min() == -4.0
    np.testing.assert_array_equal(free.u[1:, 1], 5.0)


def splitmix(seed):
    """The generator of the kernel, written again from its definition (Steele, Lea and Flood 2014)."""
    state = seed
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) * 2.0**-53


def test_noise_is_repeatable_and_has_the_distribution_asked_for():
    system = cart()
    seen = []

    def watch(t, q, v):
        seen.append((*q, *v))
        return [0.0, 0.0]

    noise = {"x": 0.3, "y.v": 0.02}
    runs = []
    for seed in (7, 7, 8):
        seen.clear()
        loop = sr.control.Loop(watch, period=1e-3, noise=noise, seed=seed)
        sr.simulate(system, system.assemble(), 5.0, control=loop, method="rk4", dt=1e-3)
        runs.append(np.array(seen))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    x, y, vx, vy = runs[0].T
    np.testing.assert_array_equal(y, 0)
    np.testing.assert_array_equal(vx, 0)
    for sample, sigma in ((x, 0.3), (vy, 0.02)):
        count = len(sample)
        assert abs(sample.mean()) < 4 * sigma / np.sqrt(count)
        assert abs(sample.std() / sigma - 1) < 4 / np.sqrt(2 * count)
        z = np.sort(sample / sigma)
        from scipy.stats import kstest

        assert kstest(z, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(x, vy)[0, 1]) < 4 / np.sqrt(len(x))
    # the first numbers, by the polar method on the generator's own stream
    stream = splitmix(7)
    while True:
        b, a = 2 * next(stream) - 1, 2 * next(stream) - 1
        if 0 < a * a + b * b < 1:
            break
    first = a * np.sqrt(-2 * np.log(a * a + b * b) / (a * a + b * b))
    assert runs[0][0, 0] == pytest.approx(0.3 * first, rel=1e-12)


def test_noise_on_a_quaternion_is_a_turn():
    system = machine("stewart")
    home = system.assemble()
    seen = []

    def watch(t, q, v):
        seen.append(np.array(q[3:7]))
        return np.zeros(6)

    held = sr.gravity_compensation(system, home)
    loop = sr.control.Loop(watch, period=1e-3, noise={"platform.omega": 0.01}, seed=3)
    del held
    sr.simulate(system, home, 0.05, control=loop, method="rk4", dt=1e-3)
    sizes = np.linalg.norm(seen, axis=1)
    np.testing.assert_allclose(sizes, 1, atol=1e-14)
    turns = 2 * np.array(seen)[:10, 1:]
    assert 0.003 < turns.std() < 0.03


def test_model_of_other_parameters_and_of_another_machine():
    """A controller that believes in lighter bars; and one that does not know of a passive pendulum on the cart."""
    plant = machine("four_bar")
    model = plant.with_parameters(m2=2.0)
    control = sr.control.ProjectedInverseDynamics(model, "A", 1.2, 100, 20)
    exact = sr.control.ProjectedInverseDynamics(plant, "A", 1.2, 100, 20)
    start = plant.assemble()
    errors = [abs(sr.simulate(plant, start, 3.0, control=c).q[-1, 0] - 1.2) for c in (control, exact)]
    assert errors[1] < 1e-8
    assert errors[0] > 1e-3  # gravity that the model does not carry
    state = plant.assemble({"A": 1.1}, {"A": 0.3})
    np.testing.assert_allclose(
        control(0.0, state.q, state.v), exact.__class__(model, "A", 1.2, 100, 20)(0.0, state.q, state.v), rtol=0
    )
    assert not np.allclose(control(0.0, state.q, state.v), exact(0.0, state.q, state.v))

    mech = sr.Mechanism("cart with a load", gravity=(0, 0, 0))
    bodies = {}
    for name in ("y", "x"):  # in another order
        bodies[name] = mech.body(name, 1.0)
        mech.prismatic(name, mech.ground, bodies[name], name)
        mech.motor(name)
    load = mech.body("load", 0.3, com=(0, 0, -0.5))
    mech.revolute("swing", bodies["x"], load, "y", stiffness=2.0, damping=0.1)
    loaded = sr.compile(mech)
    light = cart()
    control = sr.control.ProjectedInverseDynamics(light, ["x", "y"], [0.5, -0.2], 25, 10)
    for sample in (None, 1e-3):
        traj = sr.simulate(loaded, loaded.assemble(), 12.0, control=control, sample=sample)
        final = traj.final
        assert final["x"] == pytest.approx(0.5, abs=1e-4)
        assert final["y"] == pytest.approx(-0.2, abs=1e-8)
    with pytest.raises(sr.UnknownNameError, match="unknown coordinate 'x'"):
        sr.simulate(plant, plant.assemble(), 1.0, control=control)
    table = sr.Mechanism("table")
    table.planar_joint("x", table.ground, table.body("x", 1.0, inertia=np.eye(3)), axis="z")
    for name in ("x.x", "x.y", "x.angle"):
        table.motor(name)
    mech = sr.Mechanism("rail")
    mech.prismatic("x", mech.ground, mech.body("x", 1.0), "x")
    mech.motor("x")
    control = sr.control.ProjectedInverseDynamics(sr.compile(mech), "x", 0.5)
    flat = sr.compile(table)
    with pytest.raises(sr.StateError, match="'x' is one coordinate of rail, but 3 of table"):
        sr.simulate(flat, flat.assemble(), 1.0, control=control)


def test_measured_forces_are_those_of_the_rows_that_were_meant():
    """One more constraint means other rows: a controller that measures forces is for the same rows only."""

    def chain(*names):
        mech = sr.Mechanism("carts", gravity=(0, 0, 0))
        for name in ("x", "y", "z"):
            mech.prismatic(name, mech.ground, mech.body(name, 1.0), name)
            mech.motor(name)
        for name, pair in names:
            mech.couple(name, pair)
        return sr.compile(mech)

    belt = ("belt", {"x": 1.0, "y": -1.0})
    one, two = chain(belt), chain(("rope", {"y": 1.0, "z": -1.0}), belt)
    control = sr.control.HybridMotionForce(one, ["x", "z"], [0.1, 0.1], {"belt": 2.0}, ki=1.0)
    loop = sr.control.Loop(control, period=0.01)
    assert sr.simulate(one, one.assemble(), 0.1, control=loop).status.ok
    with pytest.raises(
        sr.SarrusError, match="measures forces: it needs a machine with the same coordinates and constr"
    ):
        sr.simulate(two, two.assemble(), 0.1, control=loop)
    plain = sr.control.HybridMotionForce(one, ["x", "z"], [0.1, 0.1], {"belt": 2.0})
    assert sr.simulate(two, two.assemble(), 0.1, control=plain).status.ok  # measures nothing


def test_compiled_and_called_law_are_the_same():
    system = machine("planar_platform")
    control = sr.control.TaskSpace(system, ["platform.x", "platform.z"], [0.05, 0.04], formulation="partitioned")
    start = system.assemble()
    traj = sr.simulate(system, start, 0.5, control=control)
    python = sr.simulate(system, start, 0.5, control=lambda t, x: control(float(t), x.q, x.v))
    assert traj.settings["compiled inputs"]
    assert not python.settings["compiled inputs"]
    np.testing.assert_allclose(traj.q[-1], python.q[-1], atol=1e-9)
    for k in (0, len(traj.t) // 2, -1):
        np.testing.assert_allclose(traj.u[k], control(traj.t[k], traj.q[k], traj.v[k]), rtol=1e-12)


def two_runs_and_one(system, loop, split, t_end, **options):
    """A run to the end, and the same in two pieces of which the second continues the first."""
    start = system.assemble()
    whole = sr.simulate(system, start, t_end, control=loop, method="rk4", dt=0.005, **options)
    first = sr.simulate(system, start, split, control=loop, method="rk4", dt=0.005, **options)
    return whole, sr.simulate(system, first, t_end, control=loop, method="rk4", dt=0.005, **options)


@pytest.mark.parametrize("split", [0.5, 0.51, 0.535])
def test_a_continued_run_keeps_clock_commands_memory_and_noise(split):
    system = cart()
    loop = sr.control.Loop(
        sr.control.Law(system, law), period=0.05, delay=0.13, noise={"x": 0.01, "y.v": 0.02}, seed=5, rate=20.0
    )
    whole, both = two_runs_and_one(system, loop, split, 1.0)
    np.testing.assert_allclose(both.final.q, whole.final.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.final.v, whole.final.v, rtol=0, atol=1e-12)
    other = sr.simulate(system, both.final, 1.2, control=loop, method="rk4", dt=0.005)
    assert other.settings["first sample"] == 1.0  # a state has no clock
    circle = machine("cartesian_on_circle")
    force = sr.control.HybridMotionForce(circle, "x", 0.3, {"circle": -2.0}, ki=5.0, kf=0.1)
    whole, both = two_runs_and_one(circle, sr.control.Loop(force, period=0.02, delay=0.005), split, 1.0)
    np.testing.assert_allclose(both.final.q, whole.final.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(both.u[-1], whole.u[-1], rtol=1e-9)


def test_a_controller_whose_inputs_are_not_finite_ends_the_run():
    system = cart()
    control = sr.control.Law(system, lambda t, q, v: [ca.sqrt(0.5 - t), 0.1])
    for sample in (None, 0.01):
        traj = sr.simulate(system, system.assemble(), 1.0, control=control, sample=sample)
        assert traj.status.code == "not finite"
        assert "the controller's inputs" in str(traj.status)
        assert traj.t[-1] == pytest.approx(0.5, abs=0.02)


def test_what_makes_no_sense_is_refused():
    system = cart()
    start = system.assemble()
    for options, text in (
        ({"period": -1.0}, "expected a positive period"),
        ({"delay": 0.1}, "delay needs a period"),
        ({"rate": 1.0}, "rate needs a period"),
        ({"noise": {"x": 0.1}}, "noise needs a period"),
        ({"noise": {"x": 0.1}, "period": 0.1}, "noise needs a seed"),
        ({"delay": -0.1, "period": 1.0}, "delay in seconds that is not negative"),
        ({"delay": 1e3, "period": 1e-4}, r"a delay of 1000.0 s is more than a million periods of 0.0001 s"),
        ({"noise": ["x"], "period": 0.1, "seed": 1}, "noise: expected a mapping from names to standard deviations"),
    ):
        with pytest.raises(sr.StateError, match=text):
            sr.control.Loop(law, **options)
    for loop, text in (
        (sr.control.Loop(law, effort={"x": (2, 1)}), "effort of 'x': expected a positive number or"),
        (sr.control.Loop(law, period=0.1, rate={"x": -1}), "rate of 'x': expected a positive number"),
        (sr.control.Loop(law, period=0.1, noise={"x": -1}, seed=1), "noise of 'x': expected a standard deviation"),
        (sr.control.Loop(law, initial=[1.0]), "initial: expected 2 finite inputs"),
        (sr.control.Loop(law, initial={"x": 1.0}), "initial: expected 2 finite inputs"),
        (sr.control.Loop(7), "expected a controller of sarrus.control, a function or a Loop"),
        (sr.control.TaskSpace, "expected a controller of sarrus.control, a function or a Loop, got <class"),
    ):
        with pytest.raises(sr.StateError, match=text):
            sr.simulate(system, start, 1.0, control=loop)
    with pytest.raises(sr.StateError, match="inputs or control, not both"):
        sr.simulate(system, start, 1.0, control=law, inputs=[0, 0])
    with pytest.raises(sr.StateError, match=r"as control=\.\.\., not as inputs="):
        sr.simulate(system, start, 1.0, inputs=sr.control.Loop(law, period=0.1))
    with pytest.raises(sr.StateError, match="contradicts the loop's period"):
        sr.simulate(system, start, 1.0, control=sr.control.Loop(law, period=0.1), sample=0.2)
    bad = sr.control.Law(system, lambda t, q, v: [1 / q[0], 0.0])
    with pytest.raises(sr.StateError, match=r"Law of cart: the inputs are not finite at t = 0.5 s"):
        bad(0.5, [0, 0], [0, 0])
    with pytest.raises(sr.StateError, match="cannot be turned into an expression"):
        sr.control.Law(system, lambda t, q, v: [1.0 if q[0] > 0 else 2.0, 0.0])
