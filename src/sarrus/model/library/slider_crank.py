"""A slider-crank of equal links, which passes through singular positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sarrus.model.expression import parameter
from sarrus.model.features import plane_on, point_on
from sarrus.model.mechanism import Mechanism


def slider_crank(
    L1: float = 1.0, L2: float = 1.0, m1: float = 1.0, m2: float = 1.0, motors: Sequence[str] = ("A", "B")
) -> Mechanism:
    """Crank and coupler with point masses at their ends, the coupler's end on the x axis (sheet 12.1).

    Two coordinates, one row, mobility 1. With equal links the row vanishes when the crank points along z, and
    there the slider branch q2 = 2π - 2 q1 meets the branch q2 = π; starts on the slider branch at q1 = π/4.
    Joints: "A" (crank), "B" (coupler, relative). Closure: "slider". Named parameters: L1, L2, m1, m2.

    Args:
        L1: length of the crank [m].
        L2: length of the coupler [m].
        m1: point mass at the end of the crank [kg].
        m2: point mass at the end of the coupler [kg].
        motors: which of the joints have one.
    """
    l1, l2 = parameter("L1", L1), parameter("L2", L2)
    start = np.pi / 4
    mech = Mechanism("slider-crank", planar=True)
    crank = mech.body("crank", parameter("m1", m1), com=(l1, 0))
    coupler = mech.body("coupler", parameter("m2", m2), com=(l2, 0))
    mech.revolute("A", mech.ground, crank, initial=start)
    lean = np.arcsin(min(1.0, L1 * np.sin(start) / L2))  # of the coupler below the x axis
    mech.revolute("B", crank, coupler, at=(l1, 0), initial=2 * np.pi - start - lean)
    mech.close("slider", plane_on(mech.ground, (0, 0), "z"), point_on(coupler, (l2, 0)))
    for joint in motors:
        mech.motor(joint)
    return mech
