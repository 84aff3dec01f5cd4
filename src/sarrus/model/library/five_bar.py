"""A symmetric five-bar: the planar parallel robot with two motors."""

from __future__ import annotations

from collections.abc import Sequence

from sarrus.model.expression import parameter
from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.library._dyad import dyad
from sarrus.model.mechanism import Mechanism


def five_bar(
    L0: float = 0.4, L1: float = 0.3, L2: float = 0.5, m1: float = 0.5, m2: float = 0.5,
    motors: Sequence[str] = ("A", "E"),
) -> Mechanism:  # fmt: skip
    """Two equal two-link arms that share their tip, elbows outwards, tip above the base.

    Four coordinates, two rows, mobility 2. Joints: "A" and "E" (motors, on the ground, left and right), "B"
    and "D" (elbows, relative). Closure: "C", the tip; also the name of its frame. Named parameters: L0, L1,
    L2, m1, m2.

    Args:
        L0: distance of the motors [m].
        L1: length of the cranks [m].
        L2: length of the rods to the tip [m].
        m1: mass of each crank [kg].
        m2: mass of each rod [kg].
        motors: which of the joints have one.
    """
    base, l1, l2 = parameter("L0", L0), parameter("L1", L1), parameter("L2", L2)
    p1, p2 = parameter("m1", m1), parameter("m2", m2)
    mech = Mechanism("five-bar", planar=True)
    tips = []
    for motor, elbow, side, sign in (("A", "B", "left", -1), ("E", "D", "right", 1)):
        crank = mech.body(f"{side} crank", p1, com=(l1 / 2, 0), inertia=rod(p1, l1))
        link = mech.body(f"{side} rod", p2, com=(l2 / 2, 0), inertia=rod(p2, l2))
        reach = -sign * L0 / 2 + 0.7j * (L1 + L2)
        first, second = dyad(reach, L1, L2, bend=sign)
        mech.revolute(motor, mech.ground, crank, at=(sign * base / 2, 0), initial=first)
        mech.revolute(elbow, crank, link, at=(l1, 0), initial=second)
        tips.append(point_on(link, (l2, 0)))
    mech.close("C", *tips)
    mech.frame("C", tips[0])
    for joint in motors:
        mech.motor(joint)
    return mech
