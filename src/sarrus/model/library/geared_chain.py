"""A redundant chain with gears between its first joints."""

from __future__ import annotations

from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def geared_chain(length: float = 0.3, mass: float = 1.0) -> Mechanism:
    """Six uniform links in the vertical plane, q2 = q1/3 and q3 = 2 q1/3 held by gears (sheet 12.4).

    Six coordinates, two rows, mobility 4. Joints and motors: "q1" … "q6", relative angles. Couplings:
    "gear2", "gear3". Frame: "tip".

    Args:
        length: of each link [m].
        mass: of each link [kg].
    """
    mech = Mechanism("geared chain", planar=True)
    before, at = mech.ground, (0, 0)
    for i, start in enumerate((0.6, 0.2, 0.4, -0.4, -0.5, -0.6), start=1):
        link = mech.body(f"link{i}", mass, com=(length / 2, 0), inertia=rod(mass, length))
        mech.revolute(f"q{i}", before, link, at=at, initial=start)
        mech.motor(f"q{i}")
        before, at = link, (length, 0)
    mech.couple("gear2", {"q2": 1.0, "q1": -1.0 / 3.0})
    mech.couple("gear3", {"q3": 1.0, "q1": -2.0 / 3.0})
    mech.frame("tip", point_on(before, at))
    return mech
