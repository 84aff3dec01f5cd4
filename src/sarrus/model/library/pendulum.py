"""A simple pendulum, as a point mass or as a uniform rod."""

from __future__ import annotations

from sarrus.model.expression import parameter
from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def pendulum(L: float = 1.0, m: float = 1.0, uniform: bool = False) -> Mechanism:
    """A pendulum that starts horizontal (IFToMM benchmark A01 in joint coordinates). Mobility 1, no closure.

    Joint and motor: "A", the angle from x towards z. Frame: "tip". Named parameters: L, m.

    Args:
        L: length [m].
        m: mass [kg].
        uniform: a uniform rod, instead of a point mass at its end.
    """
    length, mass = parameter("L", L), parameter("m", m)
    mech = Mechanism("pendulum", planar=True)
    if uniform:
        arm = mech.body("arm", mass, com=(length / 2, 0), inertia=rod(mass, length))
    else:
        arm = mech.body("arm", mass, com=(length, 0))
    mech.revolute("A", mech.ground, arm, initial=0.0)
    mech.motor("A")
    mech.frame("tip", point_on(arm, (length, 0)))
    return mech
