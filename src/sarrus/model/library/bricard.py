"""The rectangular Bricard mechanism, which moves although Grübler's count says it cannot."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.inertia import box, rod
from sarrus.model.mechanism import Mechanism


def bricard(slender: bool = False) -> Mechanism:
    """Five bars, 1 m, 1 kg, and six hinges, drawn along the edges of a cube (IFToMM benchmark A04).

    Gravity along -y. Five coordinates after one hinge is cut, five rows of rank 4 everywhere: mobility 1.
    Starts as drawn, all angles zero. Joints: "J0" (ground; has the motor) … "J5" (ground), all written as
    joints. Frame: "P3", the centre of J2.

    Args:
        slender: bars without thickness, instead of a square section of 0.1 m.
    """
    centres = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    along = np.diff(centres, axis=0)
    mech = Mechanism("Bricard", gravity=(0, -9.81, 0))
    bars = [
        mech.body(f"bar{i}", 1.0, com=e / 2, inertia=rod(1, 1, e) if slender else box(1, np.where(e, 1, 0.1)))
        for i, e in enumerate(along)
    ]
    mech.revolute("J0", mech.ground, bars[0], "y", initial=0.0)
    for i, axis in enumerate("zxyz", start=1):
        mech.revolute(f"J{i}", bars[i - 1], bars[i], axis, at=along[i - 1], initial=0.0)
    mech.revolute("J5", bars[4], mech.ground, "x", at=along[4], child_at=centres[5], initial=0.0)
    mech.motor("J0")
    mech.frame("P3", point_on(bars[1], along[1]))
    return mech
