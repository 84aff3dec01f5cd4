"""A two-link arm whose tip follows a curve."""

from __future__ import annotations

import numpy as np

from sarrus.errors import UnknownNameError
from sarrus.model.features import curve_on, point_on
from sarrus.model.library._dyad import dyad
from sarrus.model.mechanism import Mechanism

# each curve: the function that is zero on it, and the tip's starting point x + i z
_CURVES = {
    "x=1": (lambda p: p[0] - 1.0, 1.0 + 0.5j),
    "x=0": (lambda p: p[0], np.sqrt(3.0) * 1j),
    "circle": (lambda p: p[0] ** 2 + p[2] ** 2 - 1.0, np.exp(1j * np.pi / 3)),
}


def arm_on_curve(curve: str = "x=1") -> Mechanism:
    """Two links, 1 m, 5 kg, 1 kg m² about their centres, the tip on a curve in the x-z plane (sheet 12.7).

    Two coordinates, one row, mobility 1. On x = 0 the row vanishes where the arm is folded (elbow at π) and
    level; there two branches of motion meet. Joints and motors: "A" (shoulder), "B" (elbow, relative).
    Closure: "curve". Frame: "tip".

    Args:
        curve: "x=1", "x=0" or "circle" (unit circle about the shoulder).
    """
    if curve not in _CURVES:
        raise UnknownNameError("curve", curve, tuple(_CURVES))
    expression, start = _CURVES[curve]
    shoulder, elbow = dyad(start, 1.0, 1.0, bend=1)
    mech = Mechanism(f"arm on {curve}", planar=True)
    upper, lower = (mech.body(name, 5.0, com=(0.5, 0), inertia=1.0) for name in ("upper", "lower"))
    mech.revolute("A", mech.ground, upper, initial=shoulder)
    mech.revolute("B", upper, lower, at=(1, 0), initial=elbow)
    tip = point_on(lower, (1, 0))
    mech.close("curve", curve_on(mech.ground, expression), tip)
    mech.motor("A")
    mech.motor("B")
    mech.frame("tip", tip)
    return mech
