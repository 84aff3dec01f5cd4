"""A spherical four-bar linkage: four hinges whose axes meet in one point."""

from __future__ import annotations

import numpy as np

from sarrus.model.geometry import rotation_about
from sarrus.model.mechanism import Mechanism


def spherical_four_bar(
    crank: float = 0.6, coupler: float = 1.2, rocker: float = 1.0, ground: float = 1.3, angle: float = 1.0
) -> Mechanism:
    """Three arcs on the unit sphere, hinged in a row between two ground hinges; 1 kg at the middle of each.

    Three coordinates after one hinge is cut, five rows of rank 2: mobility 1 (Grübler's count says -2).
    Joints: "A" (crank on the ground, about z; has the motor), "B" (coupler), "C" (rocker), "D" (ground), all
    written as joints; all axes pass through the origin.

    Args:
        crank: angle of the arc between hinges A and B [rad].
        coupler: the same from B to C.
        rocker: the same from C to D.
        ground: the same from D to A.
        angle: of hinge A at the start [rad].
    """
    mech = Mechanism("spherical four-bar")
    arcs = {"crank": crank, "coupler": coupler, "rocker": rocker}
    one, two, three = (mech.body(k, 1.0, com=(np.sin(s / 2), 0, np.cos(s / 2))) for k, s in arcs.items())
    tilt = {s: rotation_about("y", s) for s in (crank, coupler, rocker, ground)}

    # The axes: c is on two cones, about b and about d.
    a, d = np.array([0.0, 0.0, 1.0]), tilt[ground].T[:, 2]
    b = (rotation_about("z", angle) @ tilt[crank])[:, 2]
    x, y = np.linalg.solve([[1.0, b @ d], [b @ d, 1.0]], [np.cos(coupler), np.cos(rocker)])
    flat, normal = x * b + y * d, np.cross(b, d)
    c = flat + normal * np.sqrt(max(0.0, 1.0 - flat @ flat)) / np.linalg.norm(normal)

    def turn(before: np.ndarray, axis: np.ndarray, after: np.ndarray) -> float:
        n1, n2 = np.cross(before, axis), np.cross(axis, after)
        return float(np.arctan2(axis @ np.cross(n1, n2), n1 @ n2))

    mech.revolute("A", mech.ground, one, "z", initial=angle)
    mech.revolute("B", one, two, "z", rotation=tilt[crank], initial=turn(a, b, c))
    mech.revolute("C", two, three, "z", rotation=tilt[coupler], initial=turn(b, c, d))
    mech.revolute(
        "D", three, mech.ground, "z", rotation=tilt[rocker], child_rotation=tilt[ground].T,
        initial=turn(c, d, a),
    )  # fmt: skip
    mech.motor("A")
    return mech
