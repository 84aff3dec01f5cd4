"""Two arms that hold one object."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import weld_on
from sarrus.model.geometry import rotation_about
from sarrus.model.inertia import rod
from sarrus.model.library._dyad import dyad
from sarrus.model.mechanism import Mechanism


def two_arms(base: float = 1.0, width: float = 0.4, height: float = 0.6) -> Mechanism:
    """Two planar arms of three links grasp one bar rigidly, one at each end; every joint has a motor.

    Nine coordinates, six rows, mobility 3 with six motors: redundantly actuated, so that the arms can squeeze
    the object. Joints: "left1" … "left3", "right1" … "right3" (relative angles, all with motors), and the
    object's own "object.x", "object.z", "object.angle". Closures: "left grip", "right grip" (welds).

    Args:
        base: distance of the shoulders [m].
        width: of the object [m].
        height: of the object above the shoulders at the start, where it is level [m].
    """
    lengths = (0.5, 0.5, 0.2)
    mech = Mechanism("two arms", planar=True)
    thing = mech.body("object", 2.0, inertia=rod(2.0, width))
    mech.planar_joint("object", mech.ground, thing, initial=(0.0, height, 0.0))
    for name, side in (("left", -1), ("right", 1)):
        facing = 0.0 if side < 0 else np.pi  # hands point inwards
        reach = side * (width / 2 + lengths[2] - base / 2) + 1j * height
        first, second = dyad(reach, *lengths[:2], bend=side)
        before, at = mech.ground, (side * base / 2, 0)
        starts = (first, second, facing - first - second)
        for i, (length, start) in enumerate(zip(lengths, starts, strict=True), start=1):
            link = mech.body(f"{name}{i}", 2 * length, com=(length / 2, 0), inertia=rod(2 * length, length))
            mech.revolute(f"{name}{i}", before, link, at=at, initial=start)
            mech.motor(f"{name}{i}")
            before, at = link, (length, 0)
        grip = weld_on(thing, (side * width / 2, 0), rotation_about("y", facing))
        mech.close(f"{name} grip", weld_on(before, at), grip)
    return mech
