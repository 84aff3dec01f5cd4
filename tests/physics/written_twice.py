"""The machines of test_lagrangian, each written as bodies and joints and as a Lagrangian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np

import sarrus as sr

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
        speed, spin = self.rate(place), self.rate(SX(angle))
        self.T += 0.5 * mass * ca.dot(speed, speed) + 0.5 * inertia * spin**2
        self.V += 9.81 * mass * place[1]


def ray(length, angle):
    return ca.vertcat(length * ca.cos(angle), length * ca.sin(angle))


# --- the machines ------------------------------------------------------------------------------------------
def slider_crank() -> Pair:
    """Sheet 12.1: equal links l = 1, point masses at their ends, Φ = l (sin q1 + sin(q1 + q2))."""
    x = Plane("AB")
    a, b = x.q[0], x.q[0] + x.q[1]
    m1, m2, u = SX.sym("m1"), SX.sym("m2"), [SX.sym("A"), SX.sym("B")]
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
    K = SX(np.cross(np.eye(3), np.asarray(axis) / np.linalg.norm(axis)))
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
