"""A particle held on a circle: the smallest constrained machine."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import curve_on, point_on
from sarrus.model.mechanism import Mechanism


def particle_on_circle(radius: float = 1.0, mass: float = 1.0, gravity: float = 9.81, angle: float = 0.0) -> Mechanism:
    """A particle on two sliders, x and z, held on a circle about the origin (sheet 12.2).

    Two coordinates, one row, mobility 1. Joints: "x", "z". Closure: "circle", Φ = |p| - radius. No motors.

    Args:
        radius: [m].
        mass: [kg].
        gravity: along -z [m/s²].
        angle: where on the circle it starts, from x towards z [rad].
    """
    mech = Mechanism("particle on a circle", gravity=(0, 0, -gravity), planar=True)
    carriage = mech.body("carriage")  # massless: what it carries has the mass
    particle = mech.body("particle", mass)
    mech.prismatic("x", mech.ground, carriage, "x", initial=radius * np.cos(angle))
    mech.prismatic("z", carriage, particle, "z", initial=radius * np.sin(angle))
    circle = curve_on(mech.ground, lambda p: (p[0] ** 2 + p[2] ** 2) ** 0.5 - radius)
    mech.close("circle", circle, point_on(particle))
    return mech
