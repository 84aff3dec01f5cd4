"""A Gough-Stewart platform."""

from __future__ import annotations

import numpy as np

from sarrus.model.features import point_on
from sarrus.model.inertia import cylinder
from sarrus.model.mechanism import Mechanism


def stewart(
    base_radius: float = 3.0, top_radius: float = 1.0, height: float = 2.0, base_spread: float = 2.5,
    top_spread: float = 10.0, density: float = 76e3 / 9.81,
) -> Mechanism:  # fmt: skip
    """A platform on six legs that change their length (6-UPS, the parameters of the benchmarks, c.2).

    24 velocities, 18 rows, mobility 6. Starts at home: platform level at `height`, all legs equal. Joints:
    "platform" (free), "base0" … (universal: "base0.first", "base0.second"), "leg0" … "leg5" (length of the
    leg; these have the motors). Closures: "top0" … "top5".

    Args:
        base_radius: of the circle of the lower joints [m].
        top_radius: of the circle of the upper joints and of the platform [m].
        height: of the platform at home [m].
        base_spread: half the angle between neighbours of a pair of lower joints [degrees].
        top_spread: the same for the upper joints [degrees].
        density: of all parts [kg/m³].
    """

    def on_circle(radius: float, degrees: float) -> np.ndarray:
        return radius * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), 0.0])

    mech = Mechanism("Stewart platform")
    mass = density * np.pi * top_radius**2 * 0.05
    platform = mech.body("platform", mass, inertia=cylinder(mass, top_radius, 0.05))
    mech.free("platform", platform, initial=(0, 0, height, 1, 0, 0, 0))
    for i in range(6):
        pair, side = 120.0 * (i // 2), (-1.0, 1.0)[i % 2]
        foot = on_circle(base_radius, pair + side * base_spread)
        top = on_circle(top_radius, pair + side * (60.0 - top_spread))
        reach = top - foot + np.array([0, 0, height])
        length = float(np.linalg.norm(reach))
        along = reach / length
        first = np.cross(along, (0, 0, 1)) / np.linalg.norm(along[:2])  # level axis across the leg
        part = 0.75 * length  # tube and rod, one inside the other
        outer = density * np.pi * (0.05**2 - 0.03**2) * part
        inner = density * np.pi * 0.03**2 * part
        hollow = cylinder(outer, 0.05, part, inner_radius=0.03)
        tube = mech.body(f"tube{i}", outer, com=(0, 0, part / 2), inertia=hollow)
        rod = mech.body(f"rod{i}", inner, com=(0, 0, -part / 2), inertia=cylinder(inner, 0.03, part))
        leg_frame = np.column_stack([first, np.cross(along, first), along])
        mech.universal(f"base{i}", mech.ground, tube, ("x", "y"), at=foot, rotation=leg_frame, initial=(0, 0))
        mech.prismatic(f"leg{i}", tube, rod, "z", initial=length)
        mech.close(f"top{i}", point_on(rod), point_on(platform, top))
        mech.motor(f"leg{i}")
    return mech
