"""The Bennett linkage: four hinges, neither parallel nor meeting in a point, that move."""

from __future__ import annotations

import numpy as np

from sarrus.model.geometry import rotation_about
from sarrus.model.inertia import rod
from sarrus.model.mechanism import Mechanism


def bennett(a: float = 1.0, alpha: float = 0.6, beta: float = 1.1, angle: float = 1.0) -> Mechanism:
    """Bars a, b, a, b with hinges twisted by alpha, beta, alpha, beta, and a/sin(alpha) = b/sin(beta).

    Three coordinates after one hinge is cut, five rows of rank 2: mobility 1 (Grübler's count says -2).
    Joints: "A" (ground; has the motor), "B", "C", "D" (ground), all written as joints. The hinge angles
    satisfy A + C = B + D = 0 and tan(A/2) tan(B/2) = sin((beta + alpha)/2) / sin((beta - alpha)/2).

    Args:
        a: length of the first and third bar [m]; b follows. All bars have 1 kg per metre.
        alpha: angle between the hinges of these bars [rad].
        beta: angle between the hinges of the other two, the ground among them [rad].
        angle: of hinge A at the start [rad].
    """
    b = a * np.sin(beta) / np.sin(alpha)
    second = 2 * np.arctan2(np.sin((beta + alpha) / 2), np.sin((beta - alpha) / 2) * np.tan(angle / 2))
    mech = Mechanism("Bennett linkage")
    one, two, three = (
        mech.body(f"bar{i}", l, com=(l / 2, 0, 0), inertia=rod(l, l)) for i, l in ((1, a), (2, b), (3, a))
    )
    twist_a, twist_b = rotation_about("x", alpha), rotation_about("x", beta)
    mech.revolute("A", mech.ground, one, "z", initial=angle)
    mech.revolute("B", one, two, "z", at=(a, 0, 0), rotation=twist_a, initial=second)
    mech.revolute("C", two, three, "z", at=(b, 0, 0), rotation=twist_b, initial=-angle)
    mech.revolute(
        "D", three, mech.ground, "z", at=(a, 0, 0), rotation=twist_a,
        child_at=(-b, 0, 0), child_rotation=twist_b.T, initial=-second,
    )  # fmt: skip
    mech.motor("A")
    return mech
