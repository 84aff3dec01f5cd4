"""A disc that rolls on a plane without slipping."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import plane_on, point_on, revolute_on
from sarrus.model.inertia import cylinder
from sarrus.model.mechanism import Mechanism


def rolling_disc(radius: float = 0.5, mass: float = 1.0, thickness: float = 0.02, lean: float = 0.2) -> Mechanism:
    """A disc that rolls, leans and steers on the plane z = 0, its edge sharp (nonholonomic).

    Six velocities, one holonomic row (height) and two nonholonomic ones: three velocities are free. Starts
    with its axis near y, so that it rolls along x. Joint: "disc" (free). Constraint: "rolling". Frame:
    "centre". No motors.

    Args:
        radius: [m].
        mass: [kg].
        thickness: [m]; for its inertia only.
        lean: from the vertical at the start, about x [rad].
    """
    mech = Mechanism("rolling disc")
    disc = mech.body("disc", mass, inertia=cylinder(mass, radius, thickness, "y"))
    mech.free("disc", disc, initial=(0, 0, radius * np.cos(lean), np.cos(lean / 2), np.sin(lean / 2), 0, 0))
    mech.rolling("rolling", revolute_on(disc, (0, 0, 0), "y"), radius, plane_on(mech.ground, (0, 0, 0), "z"))
    mech.frame("centre", point_on(disc))
    return mech
