"""A delta robot."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.geometry import rotation_about
from sarrus.model.inertia import cylinder, rod
from sarrus.model.mechanism import Mechanism


def delta(
    base_radius: float = 0.2, platform_radius: float = 0.05, arm: float = 0.3, forearm: float = 0.8,
    half_width: float = 0.05, angle: float = 0.5,
) -> Mechanism:  # fmt: skip
    """Three arms with motors carry a platform that stays level, by pairs of parallel rods.

    21 velocities, 18 rows, mobility 3, nothing redundant: each rod has a universal joint on its arm (so that
    it cannot spin about itself) and a ball joint on the platform. Hangs below its base and starts level, all
    arms at `angle`. Joints: "platform" (free), "arm0" … "arm2" (motors; angles below the horizontal),
    "rod0l", "rod0r" … (universal). Closures: "ball0l", "ball0r" …

    Args:
        base_radius: of the circle of the motors [m].
        platform_radius: of the circle of the ball joints' middles [m].
        arm: length of the arms [m].
        forearm: length of the rods [m].
        half_width: half the distance of the rods of a pair [m].
        angle: of the arms at the start [rad].
    """
    gap = base_radius + arm * np.cos(angle) - platform_radius
    drop = np.sqrt(max(0.0, forearm**2 - gap**2))
    mech = Mechanism("delta robot")
    platform = mech.body("platform", 0.3, inertia=cylinder(0.3, platform_radius, 0.01))
    mech.free("platform", platform, initial=(0, 0, -arm * np.sin(angle) - drop, 1, 0, 0, 0))
    for i in range(3):
        turn = rotation_about("z", i * 2 * np.pi / 3)
        upper = mech.body(f"arm{i}", 0.5, com=(arm / 2, 0, 0), inertia=cylinder(0.5, 0.02, arm, "x"))
        mech.revolute(f"arm{i}", mech.ground, upper, "y", at=turn @ (base_radius, 0, 0), rotation=turn, initial=angle)
        mech.motor(f"arm{i}")
        for side, y in (("l", half_width), ("r", -half_width)):
            lower = mech.body(f"rod{i}{side}", 0.1, com=(forearm / 2, 0, 0), inertia=rod(0.1, forearm))
            bend = np.arctan2(drop, -gap) - angle  # from the arm down and back to the platform
            mech.universal(f"rod{i}{side}", upper, lower, ("y", "z"), at=(arm, y, 0), initial=(bend, 0.0))
            corner = point_on(platform, turn @ (platform_radius, y, 0))
            mech.close(f"ball{i}{side}", point_on(lower, (forearm, 0, 0)), corner)
    return mech
