"""A chain whose first joint has no motor."""

from __future__ import annotations

from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def underactuated_chain(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Three uniform links in the vertical plane, the first joint passive (sheet 12.6).

    A tree: three coordinates, no closure, mobility 3. Starts in a pose whose motion under a tip task stays
    bounded. Joints: "q1" (passive), "q2", "q3" (with motors), relative angles. Frame: "tip".

    Args:
        length: of each link [m].
        mass: of each link [kg].
    """
    mech = Mechanism("underactuated chain", planar=True)
    before, at = mech.ground, (0, 0)
    for i, start in enumerate((-1.745, 0.3, 2.5), start=1):
        link = mech.body(f"link{i}", mass, com=(length / 2, 0), inertia=rod(mass, length))
        mech.revolute(f"q{i}", before, link, at=at, initial=start)
        before, at = link, (length, 0)
    mech.motor("q2")
    mech.motor("q3")
    mech.frame("tip", point_on(before, at))
    return mech
