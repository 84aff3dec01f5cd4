"""Machines with motions known in closed form, for the tests of inputs, events and failures."""

from __future__ import annotations

from functools import cache

import casadi as ca

import sarrus as sr
from sarrus.model.features import point_on
from sarrus.model.inertia import rod

G = 9.81


@cache
def library(name: str) -> sr.System:
    """A machine of the library with its own parameters."""
    return sr.compile(sr.library.build(name))


@cache
def carts() -> sr.System:
    """Two carts "x" (2 kg) and "y" (0.5 kg) on rails of their own, each with a motor: m x'' = u."""
    mech = sr.Mechanism("two carts")
    mass = sr.parameter("m", 2.0)
    for name, kilograms in (("x", mass), ("y", 0.5)):
        mech.prismatic(name, mech.ground, mech.body(f"cart {name}", kilograms), name)
        mech.motor(name)
    return sr.compile(mech)


@cache
def ball() -> sr.System:
    """A ball of 2 kg that falls along "z"; the constraint "floor" holds it at z = 0 while it is on."""
    mech = sr.Mechanism("ball")
    mech.prismatic("z", mech.ground, mech.body("ball", 2.0), "z")
    mech.lock("floor", "z")
    return sr.compile(mech)


@cache
def flywheels() -> sr.System:
    """Wheels "a" (0.3 kg m²) and "b" (0.7 kg m²) on one axle; the constraint "clutch" holds a - b = 1/2."""
    mech = sr.Mechanism("flywheels")
    for name, inertia in (("a", 0.3), ("b", 0.7)):
        wheel = mech.body(f"wheel {name}", 1.0, inertia=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, inertia]])
        mech.revolute(name, mech.ground, wheel, "z")
    mech.couple("clutch", {"a": 1.0, "b": -1.0}, 0.5)
    return sr.compile(mech)


@cache
def oscillator(m: float = 2.0, k: float = 50.0, c: float = 3.0) -> sr.System:
    """A mass on a spring and a damper along x, with a motor."""
    mech = sr.Mechanism("oscillator")
    mech.prismatic("x", mech.ground, mech.body("block", m), "x")
    mech.joint_spring("spring", "x", stiffness=k, damping=c)
    mech.motor("x")
    return sr.compile(mech)


@cache
def truss() -> sr.System:
    """Two bars of 1 m hinged together above two pivots: no mobility at all."""
    mech = sr.Mechanism("truss", planar=True)
    left, right = (mech.body(name, 1.0, com=(0.5, 0), inertia=rod(1.0, 1.0)) for name in ("left", "right"))
    mech.revolute("A", mech.ground, left, initial=1.0)
    mech.revolute("B", mech.ground, right, at=(1.2, 0), initial=2.0)
    mech.close("C", point_on(left, (1, 0)), point_on(right, (1, 0)))
    mech.motor("A")
    return sr.compile(mech)


@cache
def pushed_arm() -> sr.System:
    """Two bars of 1 m from the origin to a slide "S" on the x axis that "push" moves to 1.5 + t: they reach 2 m."""
    mech = sr.Mechanism("pushed arm", planar=True)
    first, second = (mech.body(name, 1.0, com=(0.5, 0), inertia=rod(1.0, 1.0)) for name in ("first", "second"))
    slide = mech.body("slide", 1.0)
    mech.revolute("A", mech.ground, first, initial=0.72)
    mech.revolute("B", first, second, at=(1, 0), initial=-1.44)
    mech.prismatic("S", mech.ground, slide, "x", initial=1.5)
    mech.close("C", point_on(second, (1, 0)), point_on(slide, (0, 0)))
    mech.prescribe("push", "S", lambda t: 1.5 + t)
    return sr.compile(mech)


@cache
def driven_crank() -> sr.System:
    """A four-bar whose crank "A" is moved by time alone, with a spring and a damper on the rocker."""
    mech = sr.library.build("four_bar", L1=0.4, L2=1.1, L3=0.9, L4=1.2)
    mech.prescribe("drive", "A", lambda t: 1.0 + 2.0 * t + 0.3 * ca.sin(3 * t))
    mech.joint_spring("spring", "C", stiffness=4.0, rest=1.0, damping=0.3)
    return sr.compile(mech)


@cache
def runaway(power: int) -> sr.System:
    """x'' = 20 x' (power 1: grows for ever), or x'' = x'² (power 2: infinite at t = 1 / x'(0))."""
    x, v = ca.SX.sym("x"), ca.SX.sym("vx")
    force = 20 * v if power == 1 else v * v
    return sr.compile(
        sr.Lagrangian(f"runaway {power}", coordinates=[x], velocities=[v], kinetic=v * v / 2, forces=force)
    )
