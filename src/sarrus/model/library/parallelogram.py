"""A parallelogram with more cranks than it needs."""

from __future__ import annotations

from sarrus.model.features import point_on
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def parallelogram(cranks: int = 3, spacing: float = 1.0, length: float = 1.0, angle: float = 1.0) -> Mechanism:
    """Equal parallel cranks joined by one coupler bar; every crank after the second is redundant.

    With three cranks: four coordinates, four rows of rank 3, mobility 1. In general `cranks` + 1 coordinates
    and 2 (`cranks` - 1) rows of rank `cranks`, less where the cranks lie along the coupler. Joints: "A0" …
    cranks on the ground ("A0" has the motor), "B" coupler on the first crank. Closures: "C1" … coupler on the
    other cranks.

    Args:
        cranks: how many.
        spacing: of the ground pivots [m].
        length: of the cranks [m]; all bars have 1 kg per metre.
        angle: where the cranks start, from x towards z [rad].
    """
    mech = Mechanism(f"parallelogram with {cranks} cranks", planar=True)

    def bar(name: str, size: float):
        return mech.body(name, size, com=(size / 2, 0), inertia=rod(size, size))

    bars = [bar(f"crank{i}", length) for i in range(cranks)]
    coupler = bar("coupler", (cranks - 1) * spacing)
    for i, crank in enumerate(bars):
        mech.revolute(f"A{i}", mech.ground, crank, at=(i * spacing, 0), initial=angle)
    mech.revolute("B", bars[0], coupler, at=(length, 0), initial=-angle)
    for i, crank in enumerate(bars[1:], start=1):
        mech.close(f"C{i}", point_on(coupler, (i * spacing, 0)), point_on(crank, (length, 0)))
    mech.motor("A0")
    return mech
