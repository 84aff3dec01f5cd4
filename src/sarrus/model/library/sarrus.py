"""The Sarrus linkage: hinges only, yet it moves in an exact straight line."""

from __future__ import annotations

from sarrus.model.inertia import box, rod
from sarrus.model.mechanism import Mechanism


def sarrus(length: float = 0.5, half_width: float = 0.2, lean: float = 0.6) -> Mechanism:
    """Two chains of three parallel hinges, at right angles to each other, lift a platform.

    Five coordinates after one hinge is cut, five rows of rank 4: mobility 1 (Grübler's count says 0). Joints:
    "A1" (ground; has the motor), "B1" (middle), "C1" (platform) of the first chain, "A2", "B2", "C2" of the
    second, all written as joints.

    Args:
        length: of each of the four links [m].
        half_width: distance of the chains from the axis of the motion [m].
        lean: of the lower links from the vertical at the start, outwards [rad].
    """
    mech = Mechanism("Sarrus linkage")
    platform = mech.body("platform", 1.0, inertia=box(1.0, (2 * half_width, 2 * half_width, 0.02)))
    for i, axis, at in ((1, "y", (half_width, 0, 0)), (2, "-x", (0, half_width, 0))):
        lower, upper = (
            mech.body(f"{name}{i}", 0.5, com=(0, 0, length / 2), inertia=rod(0.5, length, "z"))
            for name in ("lower", "upper")
        )
        mech.revolute(f"A{i}", mech.ground, lower, axis, at=at, initial=lean)
        mech.revolute(f"B{i}", lower, upper, axis, at=(0, 0, length), initial=-2 * lean)
        mech.revolute(f"C{i}", upper, platform, axis, at=(0, 0, length), child_at=at, initial=lean)
    mech.motor("A1")
    return mech
