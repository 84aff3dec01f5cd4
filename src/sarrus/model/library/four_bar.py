"""A planar four-bar linkage."""

from __future__ import annotations

import numpy as np

from sarrus.model.expression import parameter
from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.library._dyad import dyad
from sarrus.model.mechanism import Mechanism


def four_bar(
    L1: float = 1.0, L2: float = 1.0, L3: float = 1.0, L4: float = 1.5,
    m1: float = 1.0, m2: float = 1.0, m3: float = 1.0, angle: float = 1.0,
) -> Mechanism:  # fmt: skip
    """Three uniform bars hinged in a row between two ground pivots, coupler above.

    Three coordinates, two rows, mobility 1. Joints: "A" (crank on the ground, has the motor), "B" (coupler),
    "C" (rocker), each relative to the bar before. Closure: "D" (rocker on the ground). Named parameters: L1 …
    L4, m1 … m3.

    Args:
        L1: length of the crank [m].
        L2: length of the coupler [m].
        L3: length of the rocker [m].
        L4: distance of the ground pivots [m].
        m1: mass of the crank [kg].
        m2: mass of the coupler [kg].
        m3: mass of the rocker [kg].
        angle: where the crank starts, from x towards z [rad].
    """
    lengths = [parameter("L1", L1), parameter("L2", L2), parameter("L3", L3)]
    masses = [parameter("m1", m1), parameter("m2", m2), parameter("m3", m3)]
    second, third = dyad(L4 - L1 * np.exp(1j * angle), L2, L3, bend=-1)

    mech = Mechanism("four-bar", planar=True)
    crank, coupler, rocker = (
        mech.body(name, m, com=(l / 2, 0), inertia=rod(m, l))
        for name, m, l in zip(("crank", "coupler", "rocker"), masses, lengths, strict=True)
    )
    mech.revolute("A", mech.ground, crank, initial=angle)
    mech.revolute("B", crank, coupler, at=(lengths[0], 0), initial=second - angle)
    mech.revolute("C", coupler, rocker, at=(lengths[1], 0), initial=third)
    mech.close("D", point_on(rocker, (lengths[2], 0)), point_on(mech.ground, (parameter("L4", L4), 0)))
    mech.motor("A")
    return mech
