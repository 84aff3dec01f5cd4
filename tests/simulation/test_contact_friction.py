"""Coulomb friction that depends on the contact's own force, at the same instant.

Routes that share no code with the package: closed forms, Newton's equations written out by hand and solved by NumPy or
SciPy, and the energy that is lost.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sarrus as sr
from sarrus.dynamics.compile import _derive
from sarrus.dynamics.impact import _complementary

G = 9.81


def incline(slope: float, friction: float = 0.3, mass: float = 2.0, **options) -> sr.System:
    """A block on a plane whose axes are those of the world; gravity is inclined instead."""
    mech = sr.Mechanism("block", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)), planar=True)
    carriage, block = mech.body("carriage"), mech.body("block", mass)
    mech.prismatic("x", mech.ground, carriage, "x")
    mech.prismatic("z", carriage, block, "z")
    floor = sr.plane_on(mech.ground, (0, 0), "z")
    mech.contact("floor", floor, sr.point_on(block), friction=friction, **options)
    mech.motor("x")
    mech.motor("z")
    return sr.compile(mech)


# --- one block -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("speed", [1.0, -1.0])
def test_block_slides_on_an_incline(speed):
    system = incline(0.5)
    start = system.state([0, 0], [speed, 0])
    found = system.solve(start, active={"floor": True})
    np.testing.assert_allclose(found.vdot, [G * (np.sin(0.5) - np.sign(speed) * 0.3 * np.cos(0.5)), 0], atol=1e-13)
    np.testing.assert_allclose(found.lam, 2.0 * G * np.cos(0.5))
    np.testing.assert_allclose(system.acceleration(start), [G * np.sin(0.5), -G * np.cos(0.5)])  # open: none


@pytest.mark.parametrize("method", ["dop853", "radau", "dopri5"])
def test_block_comes_to_a_creep_below_the_angle_of_friction(method):
    """It stops like on dry friction, then creeps at slip_speed artanh(tan slope / μ)."""
    slope, mu = 0.2, 0.3
    system = incline(slope, mu)
    traj = sr.simulate(system, system.state([0, 0], [0.5, 0]), 2.0, method=method, rtol=1e-9)
    creep = 1e-3 * np.arctanh(np.tan(slope) / mu)
    assert traj["x.v"][-1] == pytest.approx(creep, rel=1e-6)
    stop = 0.5 / (G * (mu * np.cos(slope) - np.sin(slope)))
    assert traj["x"][-1] == pytest.approx(0.5 * 0.5 * stop + creep * (2.0 - stop), rel=2e-3)
    assert traj.audit().ok()
    if method == "radau":  # a stiff creep: explicit steps are bounded by m slip_speed / (μ N)
        assert traj.stats.steps < 100


def test_the_energy_lost_is_the_work_of_friction():
    system = incline(0.0, 0.4)
    traj = sr.simulate(system, system.state([0, 0], [3.0, 0]), 0.5, rtol=1e-10)
    lost = -np.ptp(traj["energy.total"])
    assert lost == pytest.approx(-0.4 * 2.0 * G * traj["x"][-1], rel=1e-9)
    audit = traj.audit()
    assert audit.ok(1e-9) and audit.work == pytest.approx(lost, rel=1e-9)
    np.testing.assert_allclose(traj["energy.dissipated"], 0.4 * 2.0 * G * traj["x.v"], rtol=1e-9)


def test_a_block_pulled_at_an_angle_presses_less():
    """N = m g - F sin, and the friction with it; pushed down it presses more."""
    mu = sr.parameter("mu", 0.3)
    system = incline(0.0, mu)
    for coefficient, pull, angle in ((0.3, 12.0, 0.6), (0.5, 15.0, -0.4)):
        other = system.with_parameters(mu=coefficient)
        u = pull * np.array([np.cos(angle), np.sin(angle)])
        found = other.solve(other.state([0, 0], [1.0, 0]), u, active={"floor": True})
        normal = 2.0 * G - u[1]
        np.testing.assert_allclose(found.lam, normal)
        np.testing.assert_allclose(found.vdot, [(u[0] - coefficient * normal) / 2.0, 0], atol=1e-13)


def test_a_block_falls_slides_and_is_lifted():
    """Impacts are without friction; the contact closes and opens by the force that friction has a part in."""
    system = incline(0.0, 0.5)

    def lift(t):
        return [0.0, 30.0 * t]

    traj = sr.simulate(system, system.state([0, 0.2], [2.0, 0]), 1.0, inputs=lift, rtol=1e-9)
    first, last = traj.events[0], traj.events[-1]
    assert first.action.startswith("floor closes") and last.action == "floor opens"
    np.testing.assert_allclose(first.v[0], 2.0)  # nothing slowed it in the air
    after = traj.at(first.t + 1e-6)
    np.testing.assert_allclose(after["x.v"], 2.0, atol=1e-4)  # nor in the impact
    assert last.t == pytest.approx(2.0 * G / 30.0, abs=1e-8)
    assert traj.audit().ok()


def test_a_sampled_law_at_a_closed_contact():
    """Accelerations right after each look at the machine are recorded with the contact closed."""
    system = incline(0.0, 0.5)
    traj = sr.simulate(
        system, system.state([0, 0], [1.0, 0]), 0.3, inputs=lambda t: [20.0 * np.cos(9 * t), 5.0], sample=0.01
    )
    assert traj.audit().ok() and len(traj.events) == 0
    assert np.ptp(traj["x.a"]) > 5 and np.abs(traj["z.a"]).max() < 1e-12


# --- several contacts, and friction that feeds back on the forces -----------------------------------------------------
def box(friction: float, height: float, speed: float = 1e-4) -> sr.System:
    """A box of 3 kg on two corners 0.8 m apart, its centre of mass above them."""
    mech = sr.Mechanism("box", planar=True)
    body = mech.body("box", 3.0, inertia=0.4)
    mech.planar_joint("box", mech.ground, body)
    for name, x in (("rear", -0.4), ("front", 0.4)):
        floor = sr.plane_on(mech.ground, (0, -height), "z")
        mech.contact(name, floor, sr.point_on(body, (x, -height)), friction=friction, slip_speed=speed)
    return sr.compile(mech)


def test_load_shifts_to_the_front_of_a_braking_box():
    mu, h = 0.5, 0.3
    system = box(mu, h)
    start = system.state([0, 0, 0], [2.0, 0, 0])
    found = system.solve(start, active={"rear": True, "front": True})
    shift = mu * h / 0.8
    np.testing.assert_allclose(found.lam, 3.0 * G * np.array([0.5 - shift, 0.5 + shift]), rtol=1e-12)
    np.testing.assert_allclose(found.vdot, [-mu * G, 0, 0], atol=1e-12)
    traj = sr.simulate(system, start, 0.3, rtol=1e-10)
    assert traj["box.x"][-1] == pytest.approx(2.0 * 0.3 - mu * G * 0.3**2 / 2, rel=1e-9)
    assert len(traj.events) == 0 and traj.audit().ok(1e-8)


def test_a_high_box_tips_over_its_front():
    """With μ h > half the base the rear would have to pull: it opens at once. Without friction it would stay."""
    mu, h = 1.2, 0.5
    system = box(mu, h)
    traj = sr.simulate(system, system.state([0, 0, 0], [2.0, 0, 0]), 0.05, rtol=1e-9)
    assert traj.segments[0].active == {"rear": False, "front": True}
    # about the centre of mass at the start: I α = -N (0.4 - μ h), m z'' = N - m g, z'' = -0.4 α, no slip of height
    normal = 3.0 * G / (1 + 3.0 * 0.4 * (0.4 - mu * h) / 0.4)
    assert traj["front.force"][0, 0] == pytest.approx(normal, rel=1e-6)
    assert traj["box.angle"][-1] < -0.001 and traj.audit().ok()
    smooth = box(0.0, h)
    calm = sr.simulate(smooth, smooth.state([0, 0, 0], [2.0, 0, 0]), 0.05)
    assert calm.segments[0].active == {"rear": True, "front": True}


def ladder() -> sr.System:
    """A uniform ladder of 2 m and 5 kg between a floor (μ 0.2) and a wall (μ 0.3)."""
    mech = sr.Mechanism("ladder", planar=True)
    body = mech.body("ladder", 5.0, inertia=5.0 * 4 / 12)
    mech.planar_joint("ladder", mech.ground, body)
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(body, (1, 0)), friction=0.2)
    mech.contact("wall", sr.plane_on(mech.ground, (0, 0), "x"), sr.point_on(body, (-1, 0)), friction=0.3)
    return sr.compile(mech)


def ladder_by_hand(t, y, floor=0.2, wall=0.3):
    """(angle to the vertical, its rate): Newton's equations of centre and turn with both normal forces as unknowns."""
    a, w = y
    s, c = np.sin(a), np.cos(a)
    d1, d2 = floor * np.tanh(2 * c * w / 1e-3), wall * np.tanh(2 * s * w / 1e-3)  # foot runs out, head runs down
    # unknowns a'', N1, N2; centre at (s, c): x'' = c a'' - s w², z'' = -s a'' - c w²
    rows = [
        [5.0 * c, d1, -1.0],
        [-5.0 * s, -1.0, -d2],
        [5.0 * 4 / 12, -s + d1 * c, c + d2 * s],
    ]
    return np.linalg.solve(rows, [5.0 * s * w**2, 5.0 * c * w**2 - 5.0 * G, 0.0])


def test_a_ladder_slides_down_between_floor_and_wall():
    """Friction at each end changes the force at the other, until the head leaves the wall."""
    system, a0 = ladder(), 0.6
    place = lambda a: [np.sin(a), np.cos(a), -(np.pi / 2 - a)]  # noqa: E731
    start = system.state(place(a0))
    traj = sr.simulate(
        system, start, 2.0, rtol=1e-10, events=sr.Event("flat", lambda t, x: x["ladder.z"], terminal=True)
    )

    def leaves(t, y):
        return ladder_by_hand(t, y)[2]

    leaves.terminal = True
    twin = solve_ivp(lambda t, y: [y[1], ladder_by_hand(t, y)[0]], (0, 2.0), [a0, 0.0], rtol=1e-11, atol=1e-13,
                     method="DOP853", events=leaves, dense_output=True)  # fmt: skip
    opened = traj.events[0]
    assert opened.action == "wall opens" and opened.t == pytest.approx(twin.t[-1], abs=1e-7)
    times = np.linspace(0.05, opened.t - 1e-3, 15)
    angle = np.pi / 2 + traj.at(times)["ladder.angle"]
    np.testing.assert_allclose(angle, twin.sol(times)[0], atol=1e-8)
    k = len(traj.t) // 4
    y = twin.sol(traj.t[k])
    np.testing.assert_allclose(
        [traj["floor.force"][k, 0], traj["wall.force"][k, 0]], ladder_by_hand(0, y)[1:], rtol=1e-6
    )
    assert traj.audit().ok(1e-6)


def test_a_belt_takes_a_block_along():
    """Slip is relative to the plane; the belt is driven, and the work of its drive is in the balance."""
    mu = 0.4
    mech = sr.Mechanism("belt", planar=True)
    belt, carriage, block = mech.body("belt", 5.0), mech.body("carriage"), mech.body("block", 2.0)
    mech.prismatic("belt", mech.ground, belt, "x")
    mech.prismatic("x", mech.ground, carriage, "x")
    mech.prismatic("z", carriage, block, "z")
    mech.prescribe("drive", "belt", lambda t: 1.5 * t)
    mech.contact("floor", sr.plane_on(belt, (0, 0), "z"), sr.point_on(block), friction=mu)
    system = sr.compile(mech)
    start = system.state([0, 0, 0], [1.5, -0.5, 0])
    found = system.solve(start, active={"floor": True})
    np.testing.assert_allclose(found.vdot, [0, mu * G, 0], atol=1e-12)
    np.testing.assert_allclose(found.lam, [mu * 2.0 * G, 2.0 * G])  # the drive holds against the friction
    traj = sr.simulate(system, start, 1.0, method="radau", rtol=1e-8)
    meet = 2.0 / (mu * G)
    assert traj["x.v"][-1] == pytest.approx(1.5, abs=1e-9)
    assert traj["x"][-1] == pytest.approx(1.5 - 2.0 * meet / 2, abs=1e-3)
    assert traj.audit().ok(1e-6)
    assert traj.audit().work == pytest.approx(0.5 * 2.0 * (1.5**2 - 0.5**2), rel=1e-6)


def test_friction_in_a_redundant_loop():
    """Three parallel cranks on a cart carry a rod whose end rubs on the floor: the rank-revealing path.

    The friction leans on the cranks and so on the normal force. The equations are checked with the Jacobian of the
    rubbing point, and the force by virtual work on the two ways that the machine can move.
    """
    mu, a = 0.35, 0.7
    mech = sr.Mechanism("cranks on a cart", planar=True)
    cart, rod = mech.body("cart", 2.0), mech.body("rod", 3.0, com=(1.0, 0), inertia=1.2)
    mech.prismatic("cart", mech.ground, cart, "x")
    cranks = [mech.body(f"crank{k}", 0.5, com=(0.5, 0), inertia=0.05) for k in range(3)]
    for k, crank in enumerate(cranks):
        mech.revolute(f"A{k}", cart, crank, at=(k, 0), initial=a)
    mech.revolute("B", cranks[0], rod, at=(1, 0), initial=-a)
    for k in (1, 2):
        mech.close(f"C{k}", sr.point_on(rod, (k, 0)), sr.point_on(cranks[k], (1, 0)))
    end = sr.point_on(rod, (2.5, 0))
    mech.contact("floor", sr.plane_on(mech.ground, (0, np.sin(a)), "z"), end, friction=mu)
    system, on = sr.compile(mech), {"floor": True}
    start = system.assemble({"A0": a, "cart": 0.0}, {"cart": 1.2}, active=on)
    found = system.solve(start, active=on)
    assert found.path == "rank-revealing" and found.rank == 4
    x, J = system.terms(start), system.task("point", end).evaluate(start)[1]
    normal = found.lam[system.layout.group_rows("floor")][0]
    balance = x.M @ found.vdot + x.h - x.A.T @ found.lam + mu * normal * J[0]
    np.testing.assert_allclose(balance, 0, atol=1e-11)
    np.testing.assert_allclose(x.A @ found.vdot, x.gamma, atol=1e-11)
    # cart: 6.5 x'' = -μ N; cranks: moment of the weights -(3 + 3/2) g cos a, of N, of the friction, of the cart's x''
    s, c = np.sin(a), np.cos(a)
    weight, inertia = (3.0 + 0.75) * G * c, (3.0 + 0.75) * s
    by_hand = weight / (c + mu * s - mu * inertia / 6.5)
    assert normal == pytest.approx(by_hand, rel=1e-9)
    traj = sr.simulate(system, start, 0.4, rtol=1e-9)
    assert traj["cart"][-1] == pytest.approx(1.2 * 0.4 - mu * by_hand / 6.5 * 0.4**2 / 2, rel=1e-6)
    assert traj.audit().ok(1e-6)


# --- in space ---------------------------------------------------------------------------------------------------------
def test_the_direction_of_friction_turns_with_the_slip():
    """A puck shot across a slope: a curved way, in the plane's own axes turned against those of the world."""
    slope, mu = 0.3, 0.25
    mech = sr.Mechanism("puck", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    first, second, puck = mech.body("a"), mech.body("b"), mech.body("puck", 0.5)
    mech.prismatic("x", mech.ground, first, "x")
    mech.prismatic("y", first, second, "y")
    mech.prismatic("z", second, puck, "z")
    mech.contact("floor", sr.plane_on(mech.ground, (1, 2, 0), "z"), sr.point_on(puck), friction=mu, slip_speed=0.01)
    system = sr.compile(mech)

    def by_hand(t, y):
        v = y[2:]
        size = np.hypot(*v)
        rub = mu * G * np.cos(slope) * v * (np.tanh(size / 0.01) / size if size else 100.0)
        return [*v, G * np.sin(slope) - rub[0], -rub[1]]

    twin = solve_ivp(by_hand, (0, 1.5), [0, 0, -1.0, 2.0], rtol=1e-11, atol=1e-13, dense_output=True, method="Radau")
    for method in ("dop853", "radau"):
        traj = sr.simulate(system, system.state([0, 0, 0], [-1.0, 2.0, 0]), 1.5, method=method, rtol=1e-9)
        np.testing.assert_allclose(traj.q[-1, :2], twin.y[:2, -1], atol=1e-6)
        assert traj.audit().ok()
    assert twin.y[2, -1] > 3 * abs(twin.y[3, -1])  # from uphill and across to nearly straight down


def tripod() -> tuple[sr.System, np.ndarray]:
    """A free plate on three feet with different friction."""
    feet = np.array([[0.3, 0.1, -0.2], [-0.25, 0.2, -0.2], [-0.1, -0.35, -0.2]])
    mech = sr.Mechanism("tripod")
    plate = mech.body("plate", 4.0, inertia=np.diag([0.1, 0.15, 0.2]))
    mech.free("plate", plate, initial=(0, 0, 0.2, 1, 0, 0, 0))
    for k, foot in enumerate(feet):
        mech.contact(f"foot{k}", sr.plane_on(mech.ground, (0, 0, 0), "z"), sr.point_on(plate, foot),
                     friction=0.1 * (k + 2))  # fmt: skip
    return sr.compile(mech), feet


def test_a_tripod_that_slides_and_spins():
    """Six equations of Newton and Euler and three of contact, written out; then the motion and its energy."""
    system, feet = tripod()
    start = system.state([0, 0, 0.2, 1, 0, 0, 0], [0.8, -0.3, 0, 0, 0, 2.0])
    spin, speed = np.array([0, 0, 2.0]), np.array([0.8, -0.3, 0])
    A, b = np.zeros((9, 9)), np.zeros(9)  # x'', ω', N
    A[:3, :3], A[3:6, 3:6] = 4.0 * np.eye(3), np.diag([0.1, 0.15, 0.2])
    b[2] = -4.0 * G
    for k, r in enumerate(feet):
        slip = speed + np.cross(spin, r)
        push = np.array([0, 0, 1.0]) - 0.1 * (k + 2) * slip / np.linalg.norm(slip)
        A[:3, 6 + k], A[3:6, 6 + k] = -push, -np.cross(r, push)
        A[6 + k, 2], A[6 + k, 3:6] = 1.0, [r[1], -r[0], 0]  # vertical acceleration of the foot
        b[6 + k] = -np.cross(spin, np.cross(spin, r))[2]
    by_hand = np.linalg.solve(A, b)
    on = {f"foot{k}": True for k in range(3)}
    found = system.solve(start, active=on)
    np.testing.assert_allclose(np.concatenate([found.vdot, found.lam]), by_hand, atol=1e-11)
    traj = sr.simulate(system, start, 0.2, rtol=1e-9)
    assert len(traj.events) == 0 and traj.audit().ok(1e-6)
    assert np.ptp(traj["energy.total"]) > 0.5


@pytest.mark.parametrize("spin", [0.0, 2.0])
def test_a_table_on_four_legs_slides(spin):
    """One leg too many: the run shares the forces as a single state does, so that motion, audit and energy agree."""
    mech = sr.Mechanism("table")
    table = mech.body("table", 4.0, com=(0.05, 0.02, 0), inertia=np.diag([0.1, 0.15, 0.2]))
    mech.free("table", table, initial=(0, 0, 0.2, 1, 0, 0, 0))
    names = {f"leg{k}": True for k in range(4)}
    for name, foot in zip(names, ((0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.2)), strict=True):
        floor = sr.plane_on(mech.ground, (0, 0, 0), "z")
        mech.contact(name, floor, sr.point_on(table, (*foot, -0.2)), friction=0.3)
    system = sr.compile(mech)
    start = system.state([0, 0, 0.2, 1, 0, 0, 0], [0.8, -0.3, 0, 0, 0, spin])
    traj = sr.simulate(system, start, 0.25, rtol=1e-9)
    assert traj.status.ok and not traj.events and traj.segments[0].active == names
    np.testing.assert_allclose(traj.a[0], system.acceleration(start, active=names), atol=1e-9)
    forces = system.solve(start, active=names).lam
    assert forces.sum() == pytest.approx(4.0 * G, rel=1e-9) and forces.min() > 5
    np.testing.assert_allclose(traj.lam[0], forces, atol=1e-9)
    assert traj.audit().ok(1e-6)
    if not spin:  # as a particle
        way = np.array([0.8, -0.3]) / np.hypot(0.8, 0.3)
        speed = np.hypot(0.8, 0.3)
        wanted = way * (speed * 0.25 - 0.3 * G * 0.25**2 / 2)
        np.testing.assert_allclose(traj.q[-1, :2], wanted, atol=1e-8)


# --- where friction and contact do not go together --------------------------------------------------------------------
def rod(friction: float) -> sr.System:
    """Painlevé's rod: 1 m, uniform, sliding on its lower end."""
    mech = sr.Mechanism("rod", planar=True)
    body = mech.body("rod", 1.0, inertia=1 / 12)
    mech.planar_joint("rod", mech.ground, body)
    mech.contact("tip", sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(body, (-0.5, 0)), friction=friction)
    return sr.compile(mech)


@pytest.mark.parametrize("direction", [-1, 1])
def test_painleve(direction):
    """N (1 + 3 cos (cos - μ sin)) = m g as the rod digs in: none beyond μ = 4/3 at tan = 2; dragged, always one."""
    angle = np.arctan(2.0)
    for mu in (0.5, 1.2, 1.34, 2.0):
        system = rod(mu)
        start = system.state([0, 0.5 * np.sin(angle), angle], [direction, 0, 0])
        share = 1 + 3 * np.cos(angle) * (np.cos(angle) + direction * mu * np.sin(angle))
        if share > 0:
            found = system.solve(start, active={"tip": True})
            np.testing.assert_allclose(found.lam, G / share, rtol=1e-6)
            continue
        with pytest.raises(
            sr.StateError, match=r"no contact forces belong to this state \(Painlevé's paradox\).*'tip'"
        ):
            system.solve(start, active={"tip": True})
        with pytest.raises(sr.StateError, match="no contact forces belong to this state"):
            sr.simulate(system, start, 0.1)


def test_a_jam_ends_the_run_and_says_so():
    """A weight in a guide that leans more and more, dragged over a floor: N = m g / (1 - μ cot β) until μ = tan β."""
    mech = sr.Mechanism("guide", planar=True)
    carriage, guide, weight = mech.body("carriage", 1.0), mech.body("guide", 1.0, inertia=0.1), mech.body("weight", 1.0)
    mech.prismatic("x", mech.ground, carriage, "x")
    mech.revolute("lean", carriage, guide, initial=1.2)
    mech.prismatic("s", guide, weight, "x")
    mech.prescribe("pull", "x", lambda t: 0.5 * t)
    mech.prescribe("fall", "lean", lambda t: 1.2 - 0.2 * t)
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(weight), friction=0.8)
    system = sr.compile(mech)
    start = system.state([0, 1.2, 0], [0.5, -0.2, 0])
    traj = sr.simulate(system, start, 4.0)
    assert traj.status.code == "jammed" and not traj.status.ok
    assert "friction jams a contact" in str(traj.status) and "'floor'" in str(traj.status)
    assert "take a smaller coefficient" in str(traj.status)
    assert traj.t[-1] == pytest.approx((1.2 - np.arctan(0.8)) / 0.2, abs=0.05)
    early = traj.t < 2.6  # tanh(0.5 m/s over slip_speed) is 1
    wanted = G / (1 - 0.8 / np.tan(traj["lean"][early]))
    assert wanted.max() > 5 * wanted.min()
    np.testing.assert_allclose(traj["floor.force"][early, 0], wanted, rtol=1e-6)


@pytest.mark.parametrize(("count", "size", "seed"), [(1, 3, 1), (2, 4, 2), (3, 4, 3), (4, 6, 4), (5, 6, 5)])
def test_who_pushes_against_all_sets(count, size, seed):
    """The complementarity problem with friction has one solution where it is determined: found by trying every set."""
    rng, tried = np.random.default_rng(seed), 0
    for _ in range(40):
        N, q = rng.normal(size=(count, size)), rng.normal(size=count)
        D = 0.3 / count * rng.normal(size=(size, count)) * np.linalg.norm(N, axis=1) * rng.integers(0, 2, count)
        W = N @ (N.T + D)
        subsets = [np.array(x, dtype=bool) for x in itertools.product((False, True), repeat=count)]
        if any(np.linalg.det(W[np.ix_(on, on)]) <= 1e-3 for on in subsets if on.any()):
            continue  # Painlevé
        tried += 1
        answers = []
        for on in subsets:
            p = np.zeros(count)
            p[on] = np.linalg.solve(W[np.ix_(on, on)], -q[on])
            if np.all(p >= 0) and np.all(W @ p + q >= -1e-12):
                answers.append(p)
        assert len(answers) == 1
        np.testing.assert_allclose(_complementary(N, q, D), answers[0], atol=1e-9)
    assert tried > 20


def test_machines_without_friction_have_no_code_for_it():
    source = [_derive(incline(0.0, friction).description)["source"] for friction in (0.0, 0.3)]
    assert "#define SR_RUBBING 0" in source[0] and "sr_drag" not in source[0]
    assert "#define SR_RUBBING 1" in source[1] and "sr_drag" in source[1]


# --- what is refused --------------------------------------------------------------------------------------------------
def test_combinations_that_are_not_covered_are_refused_by_name():
    system = incline(0.0, 0.3)
    start = system.state([0, 0], [1.0, 0])
    closed = {"floor": True}
    for call, name in (
        (lambda: system.acceleration(start, active=closed, formulation="virtual-mass"), "formulation 'virtual-mass'"),
        (lambda: system.matrices(start, active=closed), "System.matrices"),
        (lambda: system.linearise(start, active=closed), "System.linearise"),
        (lambda: sr.inverse_dynamics(system, start, [0.0, 0.0], active=closed), "inverse_dynamics"),
        (lambda: sr.reactions(system, start, active=closed), "reactions"),
        (lambda: sr.simulate(system, start, 1.0, formulation="null-space"), "formulation 'null-space'"),
        (lambda: sr.simulate(system, start, 1.0, formulation="ggl", method="radau"), "formulation 'ggl'"),
        (lambda: sr.simulate(system, start, 1.0, formulation="index-1", method="ida"), "formulation 'index-1'"),
        (lambda: sr.simulate(system, start, 1.0, method="variational", dt=1e-3), "method 'variational'"),
    ):
        with pytest.raises(sr.SarrusError) as caught:
            call()
        assert str(caught.value).startswith(f"{name} does not know friction that depends on the contact force, which")
        assert "'floor'" in str(caught.value)
    assert system.matrices(start).M.shape == (2, 2)  # open contacts do not rub


def test_faults_of_the_description():
    mech = sr.Mechanism("faults", planar=True)
    body = mech.body("body", 1.0)
    mech.prismatic("z", mech.ground, body, "z")
    floor, point = sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(body)
    mech.contact("holds", floor, point, friction=0.3, sticking=True)
    mech.contact("pulls", floor, point, friction=0.3, lifts=False)
    mech.contact("slow", floor, point, friction=0.3, slip_speed=0.0)
    mech.contact("drives", floor, point, friction=-0.3)
    with pytest.raises(sr.ModelError) as caught:
        mech.finalize()
    text = str(caught.value)
    assert "friction=0.3 does not go with sticking=True" in text
    assert "friction=0.3 does not go with lifts=False" in text
    assert "slip_speed is 0.0; expected a positive number" in text
    assert "friction is -0.3; it must not be negative" in text


def test_saved_and_continued_runs_rub_on(tmp_path):
    system = incline(0.1, 0.4)
    start = system.state([0, 0], [2.0, 0])
    whole = sr.simulate(system, start, 0.4, rtol=1e-10)
    half = sr.simulate(system, start, 0.2, rtol=1e-10)
    half.save(tmp_path / "half.csv")
    again = sr.simulate(system, sr.Trajectory.load(tmp_path / "half.csv", system), 0.4, rtol=1e-10)
    np.testing.assert_allclose(again.q[-1], whole.q[-1], atol=1e-9)
    assert again.audit().ok()
