"""N four-bar linkages in a row."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def n_four_bar(n: int = 2) -> Mechanism:
    """N equal parallelograms side by side (IFToMM benchmark A02: n = 2, LIM-UDC: n = 40).

    2n + 1 uniform bars, 1 m, 1 kg: uprights on ground pivots 1 m apart, couplers between their tops. 2n + 1
    coordinates, 2n rows, mobility 1, but n + 1 each time the bars are horizontal. Starts with the uprights
    vertical; the benchmark gives them the velocity "A0" = -1 rad/s. Joints: "A0" … on the ground ("A0" has a
    motor), "B1" … couplers on the tops of the uprights before. Closures: "C1" … couplers on the tops of the
    uprights after. Frame: "B0", the first top.

    Args:
        n: number of four-bars.
    """
    mech = Mechanism(f"{n} four-bars", planar=True)

    def bar(name: str):
        return mech.body(name, 1.0, com=(0.5, 0), inertia=rod(1.0, 1.0))

    before = bar("upright0")
    mech.revolute("A0", mech.ground, before, initial=np.pi / 2)
    mech.frame("B0", point_on(before, (1, 0)))
    mech.motor("A0")
    for i in range(1, n + 1):
        upright, coupler = bar(f"upright{i}"), bar(f"coupler{i}")
        mech.revolute(f"A{i}", mech.ground, upright, at=(i, 0), initial=np.pi / 2)
        mech.revolute(f"B{i}", before, coupler, at=(1, 0), initial=-np.pi / 2)
        mech.close(f"C{i}", point_on(coupler, (1, 0)), point_on(upright, (1, 0)))
        before = upright
    return mech
