"""A planar platform on three two-link legs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.library._dyad import dyad
from sarrus.model.mechanism import Mechanism


def planar_platform(angle: float = 0.6, motors: Sequence[str] = ("elbow1", "elbow2", "elbow3")) -> Mechanism:
    """A platform in the vertical plane on three legs of two links (3-RRR, sheet 12.5).

    Nine coordinates, six rows, mobility 3. At platform angle 0 the three leg lines meet and the elbows lose
    control. Joints: "hip1", "elbow1" (relative) … "elbow3", and the platform's own "platform.x",
    "platform.z", "platform.angle". Closures: "leg1" … "leg3".

    Args:
        angle: where the platform starts, from x towards z [rad].
        motors: which of the coordinates have one.
    """
    mech = Mechanism("planar platform", planar=True)
    platform = mech.body("platform", 2.0, inertia=0.05)
    mech.planar_joint("platform", mech.ground, platform, initial=(0.0, 0.0, angle))
    directions = np.exp(1j * np.radians([210, 330, 90])).round(15)  # an exact zero keeps the equations short
    for i, direction in enumerate(directions, start=1):
        foot, corner = 0.6 * direction, 0.2 * direction
        hip, elbow = dyad(corner * np.exp(1j * angle) - foot, 0.5, 0.5, bend=1)
        thigh, shank = (
            mech.body(f"{name}{i}", 1.0, com=(0.25, 0), inertia=rod(1.0, 0.5)) for name in ("thigh", "shank")
        )
        mech.revolute(f"hip{i}", mech.ground, thigh, at=(foot.real, foot.imag), initial=hip)
        mech.revolute(f"elbow{i}", thigh, shank, at=(0.5, 0), initial=elbow)
        mech.close(f"leg{i}", point_on(shank, (0.5, 0)), point_on(platform, (corner.real, corner.imag)))
    for coordinate in motors:
        mech.motor(coordinate)
    return mech
