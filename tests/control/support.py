"""Machines and states for the tests of control."""

from __future__ import annotations

import functools

import numpy as np

import sarrus as sr


@functools.cache
def machine(name: str, motors: tuple[str, ...] = (), **options) -> sr.System:
    """A machine of the library, with further motors."""
    mech = sr.library.build(name, **options)
    for joint in motors:
        mech.motor(joint)
    return sr.compile(mech)


def moving(system: sr.System, rng: np.random.Generator, spread: float = 0.1) -> sr.State:
    """A consistent state near home, in motion."""
    home = system.assemble()
    q = system.retract(home.q, spread * np.array(system.layout.scales) * rng.uniform(-1, 1, system.layout.nv))
    place = system.assemble(near=system.state(q))
    v = system.projector(place) @ rng.uniform(-1, 1, system.layout.nv)
    return system.state(place.q, v, rng.uniform(0, 2))
