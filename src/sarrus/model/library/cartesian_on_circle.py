"""A Cartesian robot whose tool follows a circle."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import curve_on, point_on
from sarrus.model.mechanism import Mechanism


def cartesian_on_circle(
    m1: float = 1.0, m2: float = 2.0, radius: float = 1.0, tool: float = 0.5, angle: float = 0.5
) -> Mechanism:
    """A horizontal two-axis robot with M = diag(m1, m2), its tool held on a circle (sheet 12.3).

    Two coordinates, one row, mobility 1. Joints and motors: "x", "z". Closure: "circle", Φ = x² + z² -
    radius². The drives bring their own inertia, which is what makes the two axes differ.

    Args:
        m1: mass that the x drive moves, with its own [kg].
        m2: mass that the z drive moves, with its own [kg].
        radius: [m].
        tool: mass of the tool, a part of both [kg].
        angle: where on the circle it starts, from x towards z [rad].
    """
    mech = Mechanism("Cartesian robot on a circle", gravity=(0, 0, 0), planar=True)
    carriage, head = mech.body("carriage"), mech.body("tool", tool)
    mech.prismatic("x", mech.ground, carriage, "x", rotor_inertia=m1 - tool, initial=radius * np.cos(angle))
    mech.prismatic("z", carriage, head, "z", rotor_inertia=m2 - tool, initial=radius * np.sin(angle))
    mech.close("circle", curve_on(mech.ground, lambda p: p[0] ** 2 + p[2] ** 2 - radius**2), point_on(head))
    mech.motor("x")
    mech.motor("z")
    return mech
