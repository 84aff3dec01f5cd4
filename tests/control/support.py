"""Machines and states for the tests of control."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

import sarrus as sr


@functools.cache
def machine(name: str, motors: tuple[str, ...] = (), **options) -> sr.System:
    """A machine of the library, with further motors."""
    mech = sr.library.build(name, **options)
    for joint in motors:
        mech.motor(joint)
    return sr.compile(mech)


LAWS = (
    "projected", "projected, six", "redundant", "hybrid", "task", "pose", "posture", "passive", "tracking",
    "regulation", "dependent", "law", "regulator",
)  # fmt: skip


@functools.cache
def laws() -> dict[str, sr.control.Controller]:
    """One of every kind of controller, by the names above."""
    circle, chain, bar = machine("cartesian_on_circle"), machine("geared_chain"), machine("four_bar")
    stewart = machine("stewart")
    legs = [f"leg{i}" for i in range(6)]
    upright = machine("parallelogram", angle=np.pi / 2)
    return {
        "projected": sr.control.ProjectedInverseDynamics(bar, "A", sr.control.MinimumJerk(1.0, 1.4, 0.5)),
        "projected, six": sr.control.ProjectedInverseDynamics(stewart, legs, [2.0] * 6),
        "redundant": sr.control.ProjectedInverseDynamics(machine("parallelogram", ("A1", "A2")), "A0", 1.0),
        "hybrid": sr.control.HybridMotionForce(
            circle, "x", sr.control.Samples([0, 1], [0.1, 0.2]), {"circle": ca.cos}, ki=1.0
        ),
        "task": sr.control.TaskSpace(chain, "q4", 0.0),
        "pose": sr.control.TaskSpace(
            stewart, stewart.task("orientation", "platform"), [1, 0, 0, 0], formulation="minimal"
        ),
        "posture": sr.control.TaskSpace(
            chain, "q4", 0.0, formulation="partitioned", posture=sr.control.Posture(), then=[("q5", 0.1)]
        ),
        "passive": sr.control.TaskSpace(machine("underactuated_chain"), ["q2", "q3"], [0, 0]),
        "tracking": sr.control.QuasiVelocityTracking(circle, [1.0, 0.0], forces={"circle": 2.0}),
        "regulation": sr.control.QuasiVelocityRegulation(circle, [1.0, 0.0]),
        "dependent": sr.control.DependentCoordinates(circle, [1.0, 0.0], sigma=1.2),
        "law": sr.control.Law(circle, lambda t, q, v: [0.5, 0.1]),
        "regulator": sr.control.LinearQuadratic(upright.linearise(upright.assemble())),
    }


def moving(system: sr.System, rng: np.random.Generator, spread: float = 0.1) -> sr.State:
    """A consistent state near home, in motion."""
    home = system.assemble()
    q = system.retract(home.q, spread * np.array(system.layout.scales) * rng.uniform(-1, 1, system.layout.nv))
    place = system.assemble(near=system.state(q))
    v = system.projector(place) @ rng.uniform(-1, 1, system.layout.nv)
    return system.state(place.q, v, rng.uniform(0, 2))
