"""A flyball governor with stiff springs."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.inertia import box
from sarrus.model.mechanism import Mechanism


def flyball(stiffness: float = 8e5, damping: float = 4e4) -> Mechanism:
    """A shaft, a slider on it and two rods with balls, tied by stiff spring-dampers (IFToMM benchmark A05).

    A tree: four coordinates, no closure, mobility 4. The benchmark starts as built, with "shaft" = 2π rad/s.
    Joints: "shaft" (turns about z), "slider" (height of its centre), "rod1", "rod2" (angles below the
    horizontal). Springs: "spring1", "spring2", at their rest length when it starts. No motors.

    Args:
        stiffness: [N/m].
        damping: [N s/m].
    """
    mech = Mechanism("flyball governor")
    shaft = mech.body("shaft", 0.3, com=(0, 0, 0.5), inertia=box(0.3, (0.01, 0.01, 1)))
    slider = mech.body("slider", 3.0, inertia=box(3.0, (0.1, 0.1, 0.1)))
    mech.revolute("shaft", mech.ground, shaft, "z", initial=0.0)
    mech.prismatic("slider", shaft, slider, "z", initial=0.5)
    for i, side, axis in ((1, 1.0, "y"), (2, -1.0, "-y")):
        rod = mech.body(f"rod{i}", 0.3, com=(side * 0.5, 0, 0), inertia=box(0.3, (1, 0.01, 0.01)))
        ball = mech.body(f"ball{i}", 5.0)
        mech.revolute(f"rod{i}", shaft, rod, axis, at=(side * 0.05, 0, 1), initial=np.pi / 6)
        mech.fixed(f"ball{i}", rod, ball, at=(side, 0, 0))
        mech.spring(
            f"spring{i}", point_on(slider, (side * 0.05, 0, 0)), point_on(rod, (side * 0.5, 0, 0)),
            stiffness, length=0.5, damping=damping,
        )  # fmt: skip
    return mech
