"""Machines written twice: as bodies and joints, and as a Lagrangian whose energies are derived here from positions.

Both routes are exact, so they agree to rounding: 1e-11 relative allows k eps cond with k cond about 5e4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .support import largest, row_space

TOLERANCE = 1e-11
SX = ca.SX


@dataclass(frozen=True)
class Pair:
    """The same machine by both routes, coordinates in the same order."""

    bodies: sr.System
    energies: sr.System


class Plane:
    """Coordinates for a machine in the x-z plane, and the energies of its bodies; angles count from x towards z."""

    def __init__(self, names: str):
        self.t = SX.sym("t")
        self.q = ca.vertcat(*[SX.sym(n) for n in names])
        self.v = ca.vertcat(*[SX.sym(f"v{n}") for n in names])
        self.T = self.V = SX(0)

    def rate(self, x):
        return ca.jtimes(x, self.q, self.v) + ca.jacobian(x, self.t)

    def add(self, mass, place, angle=0.0, inertia=0.0):
        """A body by the position of its centre of mass and its angle."""
        speed, spin = self.rate(ca.vertcat(*place)), self.rate(SX(angle))
        self.T += 0.5 * mass * ca.dot(speed, speed) + 0.5 * inertia * spin**2
        self.V += 9.81 * mass * place[1]


def ray(length, angle):
    return ca.vertcat(length * ca.cos(angle), length * ca.sin(angle))


# --- the machines ------------------------------------------------------------------------------------------
def slider_crank() -> Pair:
    """Sheet 12.1: equal links l = 1, point masses at their ends, Φ = l (sin q1 + sin(q1 + q2))."""
    x = Plane("AB")
    a, b = x.q[0], x.q[0] + x.q[1]
    m1, m2, u = SX.sym("m1"), SX.sym("m2"), SX.sym("u", 2)
    x.add(m1, ray(1.0, a))
    x.add(m2, ray(1.0, a) + ray(1.0, b))
    energies = sr.Lagrangian(
        "slider-crank", coordinates=x.q, velocities=x.v, kinetic=x.T, potential=x.V, inputs=u,
        parameters={m1: 1.0, m2: 1.0}, holonomic={"slider": ca.sin(a) + ca.sin(b)},
    )  # fmt: skip
    return Pair(sr.compile(sr.library.build("slider_crank")), sr.compile(energies))


def four_bar_mechanism() -> sr.Mechanism:
    mech = sr.Mechanism("four-bar", planar=True)
    mech.body("crank", 1.2, (0.3, 0.05), 0.11)
    mech.body("coupler", 0.7, (0.5, -0.1), 0.08)
    mech.body("rocker", 1.6, (0.45, 0.0), 0.2)
    mech.revolute("A", mech.ground, "crank", damping=0.3)
    mech.revolute("B", "crank", "coupler", at=(0.6, 0.0), stiffness=5.0, rest=0.2)
    mech.revolute("C", mech.ground, "rocker", at=(1.1, 0.1))
    mech.close("pin", sr.point_on("rocker", (0.9, 0.0)), sr.point_on("coupler", (1.0, 0.0)))
    mech.motor("A", gear=2.0)
    return mech


def four_bar_lagrangian(rows) -> sr.Lagrangian:
    """The same machine; `rows` turns the two rows of the pin into what is given as Φ."""
    x = Plane("ABC")
    a, b, c = x.q[0], x.q[0] + x.q[1], x.q[2]

    def at(angle, dx, dz):
        return ray(dx, angle) + ray(dz, angle + np.pi / 2)

    x.add(1.2, at(a, 0.3, 0.05), a, 0.11)
    x.add(0.7, ray(0.6, a) + at(b, 0.5, -0.1), b, 0.08)
    x.add(1.6, SX([1.1, 0.1]) + at(c, 0.45, 0.0), c, 0.2)
    V = x.V + 0.5 * 5.0 * (x.q[1] - 0.2) ** 2
    pin = ray(0.6, a) + ray(1.0, b) - SX([1.1, 0.1]) - ray(0.9, c)
    return sr.Lagrangian(
        "four-bar", coordinates=x.q, velocities=x.v, kinetic=x.T, potential=V, dissipation=0.15 * x.v[0] ** 2,
        inputs={SX.sym("A"): SX([2.0, 0.0, 0.0])}, holonomic={"pin": rows(pin)},
    )  # fmt: skip


def four_bar() -> Pair:
    return Pair(sr.compile(four_bar_mechanism()), sr.compile(four_bar_lagrangian(lambda pin: pin)))


def four_bar_redundant() -> Pair:
    """Four rows for two: the pin, one row again in other units, and a sum that depends on the configuration."""

    def rows(pin):
        return ca.vertcat(pin, 1000.0 * pin[0], pin[0] + (2.0 + pin[1]) * pin[1])

    return Pair(sr.compile(four_bar_mechanism()), sr.compile(four_bar_lagrangian(rows)))


def turn(axis, angle):
    """Rodrigues' formula."""
    K = SX(np.cross(np.eye(3), np.asarray(axis) / np.linalg.norm(axis)).T)
    return SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * (K @ K)


def spatial_chain() -> Pair:
    """Two pendulums in space on universal joints, a slider between; rotations and spins by differentiation alone."""
    mech = sr.Mechanism("chain", gravity=(1.0, -2.0, -9.0))
    inertias = [np.diag([0.03, 0.05, 0.06]) + 0.005, np.diag([0.08, 0.07, 0.03]) - 0.004]
    coms, masses = [(0.1, 0.02, -0.4), (-0.05, 0.1, -0.3)], [1.5, 0.8]
    names = ["P.first", "P.second", "S", "Q.first", "Q.second"]
    mech.body("upper", masses[0], coms[0], inertias[0])
    mech.body("carriage", 0.3, (0.0, 0.0, 0.0), 0.01 * np.eye(3))
    mech.body("lower", masses[1], coms[1], inertias[1])
    mech.universal("P", mech.ground, "upper", ("x", "y"))
    mech.prismatic("S", "upper", "carriage", (0.0, 0.6, -0.8), at=(0.1, 0.0, -0.7))
    mech.universal("Q", "carriage", "lower", ((1.0, 1.0, 0.0), "z"), child_at=(0.0, 0.05, 0.2))
    q = ca.vertcat(*[SX.sym(n) for n in names])
    v = ca.vertcat(*[SX.sym(f"d{n}") for n in names])
    R1 = turn((1, 0, 0), q[0]) @ turn((0, 1, 0), q[1])
    p2 = R1 @ (SX([0.1, 0.0, -0.7]) + SX([0.0, 0.6, -0.8]) * q[2])
    R3 = R1 @ turn((1, 1, 0), q[3]) @ turn((0, 0, 1), q[4])
    p3 = p2 - R3 @ SX([0.0, 0.05, 0.2])
    T, V = SX(0), SX(0)
    places = [(masses[0], inertias[0], R1, R1 @ SX(coms[0])), (0.3, 0.01 * np.eye(3), R1, p2),
              (masses[1], inertias[1], R3, p3 + R3 @ SX(coms[1]))]  # fmt: skip
    for mass, inertia, R, centre in places:
        spin = R.T @ ca.reshape(ca.jtimes(ca.vec(R), q, v), 3, 3)
        w = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        speed = ca.jtimes(centre, q, v)
        T += 0.5 * mass * ca.dot(speed, speed) + 0.5 * ca.dot(w, SX(inertia) @ w)
        V -= mass * ca.dot(SX([1.0, -2.0, -9.0]), centre)
    energies = sr.Lagrangian("chain", coordinates=q, velocities=v, kinetic=T, potential=V)
    return Pair(sr.compile(mech), sr.compile(energies))


def skate() -> Pair:
    """A skate on an incline: the blade, off the centre of mass, may not move sideways."""
    mech = sr.Mechanism("skate", gravity=(3.0, 0.5, -9.0))
    mech.body("skate", 2.0, (0.1, 0.05, 0.0), np.diag([0.1, 0.2, 0.3]))
    mech.planar_joint("J", mech.ground, "skate", axis="z")
    mech.knife_edge("blade", sr.point_on("skate", (-0.3, 0.1, 0.0)), "y")
    x, y, a = q = [SX.sym(n) for n in ("J.x", "J.y", "J.angle")]
    v = [SX.sym(n) for n in ("vx", "vy", "va")]
    centre = ca.vertcat(x, y) + ray(0.1, a) + ray(0.05, a + np.pi / 2)
    speed = ca.jtimes(centre, ca.vertcat(*q), ca.vertcat(*v))
    T = 0.5 * 2.0 * ca.dot(speed, speed) + 0.5 * 0.3 * v[2] ** 2
    blade = ca.horzcat(-ca.sin(a), ca.cos(a), -0.3)  # velocity of (-0.3, 0.1) along the body's y
    energies = sr.Lagrangian(
        "skate", coordinates=q, velocities=v, kinetic=T, potential=-2.0 * ca.dot(SX([3.0, 0.5]), centre),
        pfaffian={"blade": (blade, 0.0)},
    )  # fmt: skip
    return Pair(sr.compile(mech), sr.compile(energies))


def spin_angle(t):
    """How the hoop turns: not at constant speed, so that every term with time counts."""
    return 1.5 * t + 0.3 * ca.sin(2.0 * t)


def hoop(reduced: bool = False) -> sr.Lagrangian:
    """A bead on a hoop that is turned about a vertical diameter; `reduced` has the turn in T(q, v, t) instead."""
    t, a, b, va, vb = (SX.sym(n) for n in ("t", "hoop", "bead", "va", "vb"))
    turned = spin_angle(t) if reduced else a
    place = ca.vertcat(0.7 * ca.cos(turned) * ca.sin(b), 0.7 * ca.sin(turned) * ca.sin(b), -0.7 * ca.cos(b))
    q, v = ca.vertcat(a, b), ca.vertcat(va, vb)
    speed = ca.jtimes(place, q, v) + ca.jacobian(place, t)
    T, V = 0.5 * 0.4 * ca.dot(speed, speed), 9.81 * 0.4 * place[2]
    if reduced:
        return sr.Lagrangian("bead", time=t, coordinates=b, velocities=vb, kinetic=T, potential=V)
    T += 0.5 * 0.2 * va**2
    return sr.Lagrangian(
        "hoop", time=t, coordinates=q, velocities=v, kinetic=T, potential=V, holonomic={"drive": a - spin_angle(t)}
    )


def rotating_hoop() -> Pair:
    mech = sr.Mechanism("hoop")
    mech.body("ring", 3.0, inertia=np.diag([0.1, 0.1, 0.2]))
    mech.body("bead", 0.4, (0.0, 0.0, -0.7))
    mech.revolute("hoop", mech.ground, "ring", "z")
    mech.revolute("bead", "ring", "bead", "-y")
    mech.prescribe("drive", "hoop", spin_angle)
    return Pair(sr.compile(mech), sr.compile(hoop()))


MACHINES = {
    f.__name__: cache(f) for f in (slider_crank, four_bar, four_bar_redundant, spatial_chain, skate, rotating_hoop)
}
EVERY_PAIR = pytest.mark.parametrize("name", MACHINES)


def states(name: str, count: int = 3):
    """Random states with closed loops: assembled by one route, used by both."""
    pair = MACHINES[name]()
    x = pair.bodies.layout
    rng = np.random.default_rng(list(MACHINES).index(name))
    for _ in range(count):
        t = rng.uniform(0.0, 2.0)
        near = dict(zip(x.q_names, np.array(x.initial) + rng.uniform(0.1, 0.9, x.nq), strict=True))
        start = pair.bodies.assemble(near=near, t=t)
        terms = pair.bodies.terms(start)
        v = rng.normal(size=x.nv)
        v -= np.linalg.pinv(terms.A, rcond=1e-10) @ (terms.A @ v - terms.a)
        yield pair, pair.bodies.state(start.q, v, t), pair.energies.state(start.q, v, t), rng


def close(got, expected, *sizes):
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * (largest(expected, *sizes) + 1e-3))


# --- both routes -------------------------------------------------------------------------------------------
@EVERY_PAIR
def test_names_and_sizes(name):
    pair = MACHINES[name]()
    a, b = pair.bodies.layout, pair.energies.layout
    assert a.q_names == b.q_names and a.v_names == b.q_names
    assert a.groups == b.groups
    assert [r.holonomic for r in b.rows] == [name != "skate"] * b.m


@EVERY_PAIR
def test_mass_matrix_bias_and_energies(name):
    for pair, a, b, _ in states(name):
        x, y = pair.bodies.terms(a), pair.energies.terms(b)
        close(x.M, y.M)
        close(x.h, y.h)
        np.testing.assert_array_equal(x.N, y.N)
        e, f = pair.bodies.energy(a), pair.energies.energy(b)
        still = pair.bodies.state(np.array(pair.bodies.layout.initial)), pair.energies.state(0 * b.q + 0.1)
        assert still[0].q.shape == still[1].q.shape
        for key in ("kinetic", "dissipated", "applied"):
            close(getattr(e, key), getattr(f, key))
        close(e.potential, f.potential, 1.0)
    assert pair.bodies.inputs == pair.energies.inputs or name == "slider_crank"
    close(x.B, y.B)


@EVERY_PAIR
def test_constraints(name):
    """The same residual, velocities and accelerations, whichever rows they are written with."""
    for pair, a, b, rng in states(name):
        for q in (a.q, a.q + 0.1 * rng.normal(size=a.q.shape)):  # off the manifold too
            v = rng.normal(size=a.v.shape)
            x, y = pair.bodies.terms(pair.bodies.state(q, v, a.t)), pair.energies.terms(pair.energies.state(q, v, b.t))
            if name == "four_bar_redundant" and q is not a.q:
                continue  # where the loop is open its rows contradict each other
            if len(y.A):
                close(row_space(x.A), row_space(y.A))
            for key in ("phi", "a", "gamma"):  # A⁺Φ is the same for all ways to write consistent rows
                inverse_x, inverse_y = (np.linalg.pinv(z.A, rcond=1e-10) for z in (x, y))
                close(inverse_x @ getattr(x, key), inverse_y @ getattr(y, key), 1.0)


@EVERY_PAIR
def test_acceleration_and_constraint_force(name):
    for pair, a, b, rng in states(name):
        u, f = rng.normal(size=len(pair.bodies.inputs)), rng.normal(size=a.v.shape)
        x, y = pair.bodies.solve(a, u, f), pair.energies.solve(b, u, f)
        close(x.vdot, y.vdot)
        assert x.rank == y.rank
        one, two = (s.constraint_forces(z, u, f).generalised for s, z in ((pair.bodies, a), (pair.energies, b)))
        close(one, two)


# --- what is known besides ---------------------------------------------------------------------------------
def test_redundant_rows_are_counted_and_share_the_force():
    """Rank 2 of 4; the pin and its copy in other units carry the force together, in the stated metric."""
    pair = MACHINES["four_bar_redundant"]()
    for _, _, b, rng in states("four_bar_redundant"):
        found = pair.energies.solve(b, f=rng.normal(size=3))
        assert (found.rank, found.rows, found.path) == (2, 4, "rank-revealing")
        scaled = found.lam * pair.energies.norms
        assert scaled[0] == pytest.approx(scaled[2], rel=1e-9), "the same row in other units, the same share"


def test_slider_crank_is_that_of_the_sheet():
    """M of sheet 12.1 and its reduced equation (1 + 4 s²) q̈ + 4 s c q̇² + g c = 0 on the branch q2 = 2π - 2 q1."""
    pair = MACHINES["slider_crank"]()
    for q1, w in ((0.3, 1.1), (np.pi / 4, 0.0), (2.0, -0.7)):
        q, v = np.array([q1, 2 * np.pi - 2 * q1]), np.array([w, -2 * w])
        s, c, c2 = np.sin(q1), np.cos(q1), np.cos(q[1])
        expected = -(4 * s * c * w**2 + 9.81 * c) / (1 + 4 * s**2)
        for system in (pair.bodies, pair.energies):
            state = system.state(q, v)
            close(system.terms(state).M, np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1.0]]))
            close(system.terms(state).phi, 0.0)
            close(system.acceleration(state), np.array([expected, -2 * expected]))


def test_bead_on_a_hoop_with_the_turn_in_the_kinetic_energy():
    """T(q, v, t) with explicit time: b̈ = Ω² sin b cos b - (g/r) sin b, and the same from the driven machine."""
    driven, reduced = MACHINES["rotating_hoop"]().bodies, sr.compile(hoop(reduced=True))
    rng = np.random.default_rng(3)
    for t, b, w in rng.uniform(-1.5, 1.5, (4, 3)):
        omega = 1.5 + 0.6 * np.cos(2 * t)
        expected = omega**2 * np.sin(b) * np.cos(b) - 9.81 / 0.7 * np.sin(b)
        angle = 1.5 * t + 0.3 * np.sin(2 * t)
        close(reduced.acceleration(reduced.state([b], [w], t)), [expected])
        found = driven.acceleration(driven.state([angle, b], [omega, w], t))
        close(found, [-1.2 * np.sin(2 * t), expected])
