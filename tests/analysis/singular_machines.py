"""Machines of unequal dimensions whose singular positions are known in closed form."""

import functools

import numpy as np

import sarrus as sr

FOUR_BAR = (0.5, 1.2, 1.0, 1.4)  # crank, coupler, rocker, ground: Grashof, the crank goes round
ROCKERS = (1.0, 0.7, 1.1, 1.9)  # not Grashof: neither end goes round
FIVE_BAR = (0.4, 0.3, 0.5, 0.45, 0.35)  # base, left crank, left rod, right rod, right crank


@functools.cache
def library(name, **build):
    return sr.compile(sr.library.build(name, **build))


def bars(mech, names, lengths, unit=1.0):
    return [
        mech.body(name, 1.0 + k, com=(unit * l / 2, 0), inertia=(1.0 + k) * (unit * l) ** 2 / 12)
        for k, (name, l) in enumerate(zip(names, lengths, strict=True))
    ]


def four_bar_mechanism(lengths=FOUR_BAR, unit=1.0, cut="D", twice=False, limits=None):
    """A four-bar whose loop is cut at the rocker's ground pivot ("D") or between coupler and rocker ("C")."""
    a, b, c, d = (unit * x for x in lengths)
    limits = limits or {}
    mech = sr.Mechanism("four-bar", planar=True)
    crank, coupler, rocker = bars(mech, ("crank", "coupler", "rocker"), lengths[:3], unit)
    mech.revolute("A", mech.ground, crank, initial=1.0, limits=limits.get("A"))
    mech.revolute("B", crank, coupler, at=(a, 0), initial=-0.6, limits=limits.get("B"))
    if cut == "D":
        mech.revolute("C", coupler, rocker, at=(b, 0), initial=-1.2, limits=limits.get("C"))
        ends = sr.point_on(rocker, (c, 0)), sr.point_on(mech.ground, (d, 0))
    else:  # the rocker's own axis still points from the coupler to the ground pivot
        mech.revolute("D", mech.ground, rocker, at=(d, 0), initial=1.5)
        ends = sr.point_on(coupler, (b, 0)), sr.point_on(rocker, (c, 0))
    mech.close("loop", *ends)
    if twice:
        mech.close("again", *ends)
    mech.motor("A")
    return mech


@functools.cache
def four_bar(lengths=FOUR_BAR, unit=1.0, cut="D", twice=False):
    return sr.compile(four_bar_mechanism(lengths, unit, cut, twice))


def four_bar_dead_points(lengths, turn=0.0):
    """Crank angles at which coupler and rocker are in line (turn 0 stretched, π folded), both signs, if there are."""
    a, b, c, d = lengths
    reach = abs(b + c * np.cos(turn))
    return _both((a * a + d * d - reach * reach) / (2 * a * d))


def four_bar_toggles(lengths, turn=0.0):
    """Crank angles at which crank and coupler are in line (turn 0 stretched, π folded), both signs, if there are."""
    a, b, c, d = lengths
    reach = a + b * np.cos(turn)
    return [x if reach > 0 else _wrap(x + np.pi) for x in _both((reach**2 + d * d - c * c) / (2 * abs(reach) * d))]


def _both(cosine):
    return [] if abs(cosine) > 1 else [float(np.arccos(cosine)), -float(np.arccos(cosine))]


def _wrap(x):
    return float(np.pi - (np.pi - x) % (2 * np.pi))


@functools.cache
def five_bar(lengths=FIVE_BAR):
    base, l1, l2, l3, l4 = lengths
    mech = sr.Mechanism("unequal five-bar", planar=True)
    names = ("left crank", "left rod", "right rod", "right crank")
    left, rod, other, right = bars(mech, names, lengths[1:])
    mech.revolute("A", mech.ground, left, at=(-base / 2, 0), initial=2.2)
    mech.revolute("B", left, rod, at=(l1, 0), initial=-1.4)
    mech.revolute("E", mech.ground, right, at=(base / 2, 0), initial=0.9)
    mech.revolute("D", right, other, at=(l4, 0), initial=1.4)
    mech.close("C", sr.point_on(rod, (l2, 0)), sr.point_on(other, (l3, 0)))
    mech.frame("tip", sr.point_on(rod, (l2, 0)))
    mech.motor("A")
    mech.motor("E")
    return sr.compile(mech)


def meeting(centre, radius, other, span):
    """Points at a distance `radius` from a centre and `span` from another one, as complex numbers."""
    gap = other - centre
    along = (abs(gap) ** 2 + radius**2 - span**2) / (2 * abs(gap))
    if abs(along) > radius:
        return []
    aside = np.sqrt(radius**2 - along**2)
    unit = gap / abs(gap)
    return [centre + unit * (along + 1j * s * aside) for s in (1, -1)]


# the planar platform of the library: feet, corners and lengths of both links of each leg
PLATFORM = np.exp(1j * np.radians([210, 330, 90]))
FEET, CORNERS, LINK = 0.6 * PLATFORM, 0.2 * PLATFORM, 0.5


def line_determinant(starts, ends):
    """Of three lines in a plane, by the coordinates (direction, moment) of each: zero if they meet or are parallel."""
    directions = (ends - starts) / abs(ends - starts)
    moments = starts.real * directions.imag - starts.imag * directions.real
    return float(np.linalg.det(np.stack([directions.real, directions.imag, moments], axis=1)))
