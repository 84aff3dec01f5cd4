"""Small motions against differences of the motion itself, closed forms, and what a controller makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr

from .support import machine, moving


def flow(system, linear, x, u, active=None):
    """Rates of (θ, ω) at a small x, through assembled states: nothing of `linearise` but its coordinates."""
    state, k = linear.state, linear.Zq.shape[1]
    q = system.retract(state.q, linear.Zq @ x[:k])
    place = system.assemble(near=system.state(q), t=state.t)
    delta = delta_of(system, state.q, place.q)
    # the velocity with this ω that satisfies the constraints there
    terms = system.terms(place)
    guess = state.v + linear.Zv @ x[k:]
    v = guess
    for _ in range(30):
        miss = terms.A @ v - terms.a
        v = v - np.linalg.pinv(terms.A, rcond=1e-9) @ miss
        v = v + linear.Zv @ (x[k:] - linear.Tv @ (v - state.v))
    now = system.state(place.q, v, state.t)
    rate = rates(system, delta, v)
    theta = linear.Tq @ delta
    return theta, np.concatenate([linear.Tq @ rate, linear.Tv @ system.acceleration(now, u, active=active)])


def delta_of(system, start, end):
    from sarrus.dynamics.manifold import difference

    return difference(system.layout, start, end)


def rates(system, delta, v):
    """δ' for small δ: v + δ x v / 2 + δ x (δ x v) / 12 on turns."""
    out = v.copy()
    for turn in system.layout.turns:
        part = slice(turn.v, turn.v + 3)
        d, w = delta[part], v[part]
        out[part] += np.cross(d, w) / 2 + np.cross(d, np.cross(d, w)) / 12
    return out


@pytest.mark.parametrize(
    ("name", "motors"),
    [("four_bar", ()), ("slider_crank", ()), ("parallelogram", ("A1",)), ("planar_platform", ()), ("stewart", ()),
     ("rolling_disc", ())],
)  # fmt: skip
def test_linearised_motion_is_the_derivative_of_the_motion(name, motors, rng):
    system = machine(name, motors)
    state = moving(system, rng)
    u = rng.uniform(-1, 1, system.layout.nu)
    linear = system.linearise(state, u)
    h = 1e-5
    columns = []
    for k in range(linear.size):
        e = np.zeros(linear.size)
        e[k] = h
        (tu, up), (td, down) = (flow(system, linear, s * e, u) for s in (1, -1))
        assert np.linalg.norm((tu - td) / (2 * h) - e[: len(tu)] / h) < 1e-7  # θ is what it says
        columns.append((up - down) / (2 * h))
    found = np.array(columns).T
    size = np.abs(linear.A).max()
    # second order differences with h = 1e-5, states assembled to 1e-12: errors of 1e-10 plus 1e-12 / 1e-5
    np.testing.assert_allclose(linear.A, found, atol=3e-6 * size)
    for k in range(system.layout.nu):
        e = np.eye(system.layout.nu)[k]
        change = system.acceleration(state, u + e) - system.acceleration(state, u)
        np.testing.assert_allclose(
            linear.B[:, k], np.concatenate([0 * linear.Tq @ change, linear.Tv @ change]), atol=1e-9
        )
    np.testing.assert_allclose(
        linear.drift, np.concatenate([linear.Tq @ state.v, linear.Tv @ system.acceleration(state, u)]), atol=1e-9
    )


def test_modes_of_two_coupled_pendulums_are_those_of_the_textbook():
    """Equal pendulums of length l with a joint spring k between them: ω² = g/l and g/l + 2k/(m l²); damping known."""
    mech = sr.Mechanism("two pendulums", planar=True)
    for name, x in (("a", 0.0), ("b", 1.0)):
        body = mech.body(name, 2.0, com=(0, -0.5))
        mech.revolute(name, mech.ground, body, at=(x, 0), damping=0.1)
    mech.joint_spring("spring", {"a": 1.0, "b": -1.0}, 3.0)
    system = sr.compile(mech)
    modes = system.linearise(system.assemble()).modes()
    inertia = 2.0 * 0.25
    expected = [9.81 / 0.5, 9.81 / 0.5 + 2 * 3.0 / inertia]
    assert len(modes) == 2
    for mode, square, sign in zip(modes, expected, (1, -1), strict=True):
        root = np.roots([1, 0.1 / inertia, square])
        assert mode.eigenvalue == pytest.approx(root[np.argmax(root.imag)], rel=1e-10)
        assert mode.damping == pytest.approx(0.1 / inertia / (2 * np.sqrt(square)), rel=1e-9)
        assert mode.frequency == pytest.approx(np.sqrt(square) / (2 * np.pi), rel=1e-9)
        np.testing.assert_allclose(mode.shape[0], sign * mode.shape[1], atol=1e-9)
        assert "Hz, damping" in str(mode)


def test_closed_loop_frequency_agrees_with_the_simulated_one():
    """Parallelogram hanging down: a pendulum of known inertia; and the same by the period of a small swing."""
    system = machine("parallelogram", angle=-np.pi / 2)
    state = system.assemble()
    linear = system.linearise(state)
    assert linear.size == 2
    (mode,) = linear.modes()
    # cranks 1 kg each on length 1, coupler 2 kg moves like a point at the end
    inertia, torque = 3 * (1 / 3) + 2.0, 9.81 * (3 * 0.5 + 2.0)
    assert abs(mode.eigenvalue.imag) == pytest.approx(np.sqrt(torque / inertia), rel=1e-10)
    start = system.assemble({"A0": -np.pi / 2 + 1e-3})
    period = 2 * np.pi / abs(mode.eigenvalue.imag)
    traj = sr.simulate(system, start, period, rtol=1e-11)
    assert traj.q[-1, 0] == pytest.approx(start.q[0], abs=1e-9)  # (1e-3)³: what is not small about the swing


def test_what_inputs_cannot_reach_and_outputs_do_not_show():
    mech = sr.Mechanism("three carts")
    for k in range(3):
        body = mech.body(f"cart{k}", 1.0)
        mech.prismatic(f"x{k}", mech.ground, body, "x", stiffness=4.0 + 5.0 * (k == 2))
    mech.joint_spring("link", {"x0": 1.0, "x1": -1.0}, 2.0)
    mech.actuator("both", {"x0": 1.0, "x1": 1.0})
    system = sr.compile(mech)
    linear = system.linearise(system.assemble())
    lost = sr.control.uncontrollable(linear)
    assert sorted(round(abs(m.eigenvalue), 9) for m in lost) == pytest.approx(sorted([np.sqrt(8.0), 3.0]))
    hidden = sr.control.unobservable(linear, ["x0"])
    assert [abs(m.eigenvalue) for m in hidden] == pytest.approx([3.0])
    assert sr.control.unobservable(linear, ["x0", "x2.v"]) == []


def test_regulator_balances_a_machine_with_loops_and_passive_joints():
    """Upright parallelogram: unstable without control; closed-loop eigenvalues show in the simulated motion."""
    system = machine("parallelogram", angle=np.pi / 2)
    top = system.assemble()
    linear = system.linearise(top)
    assert linear.eigenvalues.real.max() > 1
    control = sr.control.LinearQuadratic(linear, {"A0": 10.0, "A0.v": 1.0}, inputs=0.1)
    assert control.eigenvalues.real.max() < 0
    start = system.assemble({"A0": np.pi / 2 + 1e-4})
    traj = sr.simulate(system, start, 4.0, control=control, rtol=1e-11, atol=1e-16)
    assert traj.settings["compiled inputs"]
    from scipy.linalg import expm

    delta = delta_of(system, top.q, start.q)
    x0 = np.concatenate([linear.Tq @ delta, np.zeros(1)])
    for t in (0.3, 1.0, 2.0):
        k = int(np.argmin(np.abs(traj.t - t)))
        x = expm((linear.A - linear.B @ control.gain) * traj.t[k]) @ x0
        now = linear.Tq @ delta_of(system, top.q, traj.q[k])
        assert now[0] == pytest.approx(x[0], abs=1e-6 * abs(x0[0]) + 1e-12)


def test_regulator_refuses_what_it_cannot_do():
    system = machine("parallelogram", angle=1.0)
    with pytest.raises(sr.StateError, match="no equilibrium"):
        sr.control.LinearQuadratic(system.linearise(system.assemble()))
    mech = sr.Mechanism("upright and free", planar=True)
    for name, x in (("a", 0.0), ("b", 1.0)):
        mech.revolute(name, mech.ground, mech.body(name, 1.0, com=(0, 0.5)), at=(x, 0))
    mech.motor("a")
    system = sr.compile(mech)
    with pytest.raises(sr.StateError, match="no input has a part in this mode, which does not decay"):
        sr.control.LinearQuadratic(system.linearise(system.assemble()))
    upright = machine("parallelogram", angle=np.pi / 2)
    linear = upright.linearise(upright.assemble())
    for options, text in (
        (dict(states={"A0": -1.0}), "weight of 'A0': expected a non-negative number"),
        (dict(states={"A0": np.nan}), "weight of 'A0': expected a non-negative number"),
        (dict(states={"A0": "much"}), "weight of 'A0': expected a non-negative number"),
        (dict(inputs=0.0), "weight of the input 'A0': expected a positive number"),
        (dict(inputs={"A0": np.nan}), "weight of the input 'A0': expected a positive number"),
        (dict(inputs=[1.0, 2.0]), "weight of the input 'A0': expected a positive number"),
    ):
        with pytest.raises(sr.StateError, match=text):
            sr.control.LinearQuadratic(linear, **options)
    with pytest.raises(sr.StateError, match=r"expected what system\.linearise.* returns, got System"):
        sr.control.LinearQuadratic(upright)
    with pytest.raises(sr.UnknownNameError, match="unknown input 'A1'"):
        sr.control.LinearQuadratic(linear, inputs={"A1": 1.0})
    hanging = sr.Mechanism("no motor", planar=True)
    hanging.revolute("a", hanging.ground, hanging.body("a", 1.0, com=(0, -0.5)), damping=0.2)
    system = sr.compile(hanging)
    with pytest.raises(sr.StateError, match="no motor has no inputs: add motors"):
        sr.control.LinearQuadratic(system.linearise(system.assemble()))
    hanging.motor("a")
    hanging.lock("stop", "a")
    system = sr.compile(hanging)
    with pytest.raises(sr.StateError, match="no motor has no free motion"):
        sr.control.LinearQuadratic(system.linearise(system.assemble()))


@pytest.mark.parametrize(("length", "mass"), [(1e3, 1e3), (1e3, 1e6), (1e-3, 1e-6), (1.0, 1e6)])
def test_regulator_does_not_depend_on_units(length, mass):
    """A pendulum on a cart in mm and g and other units: the same closed loop, gains in the new units."""

    def regulator(length, mass):
        mech = sr.Mechanism("cart", planar=True, gravity=(0, 0, -9.81 * length))
        cart = mech.body("cart", 2.0 * mass)
        mech.prismatic("x", mech.ground, cart, "x")
        pole = mech.body("pole", mass, com=(0, 0.5 * length), inertia=0.1 * mass * length**2)
        mech.revolute("pole", cart, pole)
        mech.motor("x")
        system = sr.compile(mech)
        weights = {"x": 3.0 / length**2, "pole": 5.0, "x.v": 1.0 / length**2}
        return sr.control.LinearQuadratic(system.linearise(system.assemble()), weights, 0.1 / (mass * length) ** 2)

    a, b = regulator(1.0, 1.0), regulator(length, mass)
    for found in b.eigenvalues:
        assert np.abs(a.eigenvalues - found).min() < 1e-7 * abs(found)
    u = a(0.0, [0.2, 0.1], [0.3, -0.4])
    w = b(0.0, [0.2 * length, 0.1], [0.3 * length, -0.4])
    np.testing.assert_allclose(w / (mass * length), u, rtol=1e-7)


def test_stewart_platform_is_held_on_soft_legs():
    """Quaternions in the reduced state: a platform disturbed in all six directions comes back."""
    system = machine("stewart")
    home = system.assemble()
    held = sr.gravity_compensation(system, home)
    linear = system.linearise(home, held.u)
    assert linear.size == 12
    assert sr.control.uncontrollable(linear) == []
    control = sr.control.LinearQuadratic(linear, {"platform": 1e8, "platform.v": 1e6}, inputs=1e-2)
    q = system.retract(home.q, np.concatenate([[0.02, -0.01, 0.03, 0.03, -0.02, 0.04], np.zeros(18)]))
    start = system.assemble(near=system.state(q))
    traj = sr.simulate(system, start, 1.5, control=control)
    assert traj.status.ok
    slow = -control.eigenvalues.real.max()
    # e-folds of the slowest mode, some room for modes that meet, and the accuracy of the run
    assert np.abs(delta_of(system, home.q, traj.q[-1])).max() < 0.5 * np.exp(-slow * 1.5) + 1e-7


def test_modes_of_one_frequency_are_told_apart():
    """Two equal pendulums pushed alike: only their difference is out of reach, and only their sum is hidden."""
    mech = sr.Mechanism("twins", planar=True)
    for name, x in (("a", 0.0), ("b", 1.0)):
        mech.revolute(name, mech.ground, mech.body(name, 1.0, com=(0, -0.5)), at=(x, 0))
    mech.actuator("both", {"a": 1.0, "b": 1.0})
    system = sr.compile(mech)
    linear = system.linearise(system.assemble())
    assert len(linear.modes()) == 2
    (lost,) = sr.control.uncontrollable(linear)
    np.testing.assert_allclose(lost.shape[0], -lost.shape[1], atol=1e-12)
    assert lost.frequency == pytest.approx(np.sqrt(9.81 / 0.5) / (2 * np.pi), rel=1e-9)
    (hidden,) = sr.control.unobservable(linear, ["a"])
    assert dict(zip(hidden.names, hidden.shape, strict=True)) == pytest.approx({"a": 0.0, "b": 1.0}, abs=1e-12)
    assert sr.control.unobservable(linear, ["a", "b.v"]) == []


def test_what_a_blade_keeps_from_the_inputs():
    """A sledge at rest: what it cannot slide to is out of reach to first order, and nothing else."""
    mech = sr.Mechanism("sledge")
    body = mech.body("sledge", 2.0, inertia=sr.box(2.0, (0.6, 0.3, 0.2)))
    mech.planar_joint("sledge", mech.ground, body, axis="z")
    mech.knife_edge("runner", sr.point_on(body), direction="y")
    mech.thruster("pull", sr.point_on(body), "x")
    mech.motor("sledge.angle")
    system = sr.compile(mech)
    (lost,) = sr.control.uncontrollable(system.linearise(system.assemble()))
    assert abs(lost.eigenvalue) < 1e-9
    np.testing.assert_allclose(lost.shape, [0, 1, 0], atol=1e-9)


def test_nothing_driven_is_all_out_of_reach():
    """A free cart, whose position and speed no input changes: one mode, its drift."""
    mech = sr.Mechanism("carts", gravity=(0, 0, 0))
    for name in ("x", "y"):
        mech.prismatic(name, mech.ground, mech.body(name, 1.5), name)
    mech.motor("x")
    system = sr.compile(mech)
    (lost,) = sr.control.uncontrollable(system.linearise(system.assemble()))
    np.testing.assert_allclose(lost.shape, [0, 1], atol=1e-9)
