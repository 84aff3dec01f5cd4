"""Another system of units changes neither rank decisions nor accelerations: millimetres, grams, both."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarrus as sr
from sarrus.model.parts import Feature, Joint, JointSpring, Model

SHIFTS = {
    "revolute": (0,), "prismatic": (1,), "helical": (0,), "cylindrical": (0, 1), "universal": (0, 0),
    "planar": (1, 1, 0), "spherical": (0, 0, 0), "free": (1, 1, 1, 0, 0, 0), "fixed": (),
}  # fmt: skip


def scale_model(model: Model, length: float, mass: float) -> Model:
    """The same machine with every number in units `length` and `mass` times smaller; time and angles stay."""

    def place(feature: Feature) -> Feature:
        expression = feature.expression
        if expression is not None:  # a user's function of metres now gets what it expects
            expression = _of_smaller(expression, length)
        return replace(feature, at=feature.at * length, expression=expression)

    def on_joint(joint: Joint) -> Joint:
        shift = 1 in SHIFTS[joint.kind]
        per = mass if shift else mass * length**2  # stiffness, damping and rotor inertia of its coordinate
        factors = np.array([length if x else 1.0 for x in SHIFTS[joint.kind]])
        if joint.kind in ("spherical", "free"):
            factors = np.append(factors[:-3], np.ones(4))
        return replace(
            joint, at=joint.at * length, child_at=joint.child_at * length, pitch=joint.pitch * length,
            stiffness=joint.stiffness * per, damping=joint.damping * per, rotor_inertia=joint.rotor_inertia * per,
            rest=joint.rest * (length if shift else 1.0),
            initial=None if joint.initial is None else joint.initial * factors,
        )  # fmt: skip

    def on_angles(spring: JointSpring) -> JointSpring:
        return replace(spring, stiffness=spring.stiffness * mass * length**2, damping=spring.damping * mass * length**2)

    def load(value: Any, kind: str) -> Any:
        return value * mass * length * (length if kind == "torque" else 1.0)

    return replace(
        model, name=f"{model.name} ({length:g}, {mass:g})", gravity=model.gravity * length,
        bodies=tuple(
            replace(b, mass=b.mass * mass, com=b.com * length, inertia=b.inertia * mass * length**2)
            for b in model.bodies
        ),
        joints=tuple(map(on_joint, model.joints)),
        closures=tuple(
            replace(c, a=place(c.a), b=place(c.b), length=c.length * (length if c.kind == "distance" else 1.0))
            for c in model.closures
        ),
        rollings=tuple(
            replace(r, hub=place(r.hub), plane=place(r.plane), radius=r.radius * length) for r in model.rollings
        ),
        springs=tuple(
            replace(s, a=place(s.a), b=place(s.b), stiffness=s.stiffness * mass, length=s.length * length,
                    damping=s.damping * mass)
            for s in model.springs
        ),
        joint_springs=tuple(map(on_angles, model.joint_springs)),
        loads=tuple(replace(x, at=place(x.at), value=load(x.value, x.kind)) for x in model.loads),
        frames={name: place(f) for name, f in model.frames.items()},
    )  # fmt: skip


def _of_smaller(expression: Callable[[Any], Any], length: float) -> Callable[[Any], Any]:
    return lambda p: expression(p / length)


def coordinate_units(system: sr.System, length: float) -> tuple[np.ndarray, np.ndarray]:
    """By how much positions and velocities grow."""
    joints = {j.name: j for j in system.description.joints}
    q, v = [], []
    for names, out in ((system.layout.q_names, q), (system.layout.v_names, v)):
        for name in names:
            joint = next(j for j in joints.values() if name in j.position_names + j.velocity_names)
            own = joint.velocity_names if out is v else joint.position_names
            kinds = SHIFTS[joint.kind]
            k = own.index(name)
            out.append(length if k < len(kinds) and kinds[k] and "quat" not in name else 1.0)
    return np.array(q), np.array(v)


# machines of every sort: redundant, spatial, planar, with named parameters, springs, quaternions, curves, rolling
NAMES = (
    "bricard", "parallelogram", "sarrus", "bennett", "stewart", "delta", "slider_crank", "four_bar", "two_arms",
    "planar_platform", "rolling_disc", "andrews", "flyball", "cartesian_on_circle", "particle_on_circle",
    "spherical_four_bar", "arm_on_curve",
)  # fmt: skip
UNITS = {"millimetres": (1e3, 1.0), "grams": (1.0, 1e3), "millimetres and tonnes": (1e3, 1e-3)}
# roundings grow with the conditions of M and of the rows, both below 1e4 in these machines
RTOL = 1e4 * 100 * np.finfo(float).eps


def states(system: sr.System, count: int = 3) -> list[sr.State]:
    rng = np.random.default_rng(4)
    scales, out = np.array(system.layout.scales), []
    start = system.assemble()
    for k in range(count):
        guess = system.retract(start.q, 0.1 * k * (system.projector(start) @ (scales * rng.normal(size=len(scales)))))
        state = system.assemble(near=system.state(guess))
        out.append(system.state(state.q, system.projector(state) @ (scales * rng.normal(size=len(scales)))))
    return out


def pair(name: str, units: str) -> tuple[sr.System, sr.System, np.ndarray, np.ndarray]:
    length, mass = UNITS[units]
    model = sr.library.build(name).finalize()
    system, other = sr.compile(model), sr.compile(scale_model(model, length, mass))
    return system, other, *coordinate_units(system, length)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", NAMES)
def test_same_rank_and_accelerations(name, units):
    length, mass = UNITS[units]
    system, other, q_unit, v_unit = pair(name, units)
    assert other.layout.q_names == system.layout.q_names and other.redundant == system.redundant
    for state in states(system):
        there = other.state(state.q * q_unit, state.v * v_unit)
        assert other.energy(there).kinetic == pytest.approx(system.energy(state).kinetic * mass * length**2, rel=1e-11)
        ours, theirs = system.solve(state), other.solve(there)
        assert (ours.rank, ours.path, ours.rows) == (theirs.rank, theirs.path, theirs.rows)
        ranks = system.rank(state), other.rank(there)
        assert ranks[0].rank == ranks[1].rank == ours.rank
        assert ranks[0].redundant == ranks[1].redundant
        expected = ours.vdot
        size = np.abs(expected / np.array(system.layout.scales)).max() * np.array(system.layout.scales)
        np.testing.assert_array_less(np.abs(theirs.vdot / v_unit - expected), RTOL * size + 1e-300)
        forces = system.constraint_forces(state), other.constraint_forces(there)
        assert dict(forces[0].determinate) == dict(forces[1].determinate)
        moments = forces[1].generalised / (mass * length**2) * v_unit
        np.testing.assert_allclose(
            moments, forces[0].generalised, atol=RTOL * np.abs(system.terms(state).h).max() + 1e-9
        )


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", NAMES)
def test_same_singular_values(name, units):
    """The evidence of the decision has no unit."""
    system, other, q_unit, v_unit = pair(name, units)
    for state in states(system):
        ours = system.rank(state).singular_values
        theirs = other.rank(other.state(state.q * q_unit, state.v * v_unit)).singular_values
        np.testing.assert_allclose(theirs, ours, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("offset", [0.0, 1e-9, 3e-7, 3e-6, 1e-3])
def test_same_decision_at_and_next_to_a_singular_position(offset, units):
    system, other, _, _ = pair("slider_crank", units)
    a = np.pi / 2 - offset
    q, v = [a, 2 * np.pi - 2 * a], [1.0, -2.0]
    ours, theirs = system.solve(system.state(q, v)), other.solve(other.state(q, v))
    assert (ours.rank, ours.path) == (theirs.rank, theirs.path)
    assert ours.rank == system.rank(system.state(q)).rank == other.rank(other.state(q)).rank
    # the row is a difference of order one, so it has lost a factor 1 / offset of its digits
    np.testing.assert_allclose(theirs.vdot, ours.vdot, rtol=RTOL * max(1.0, 1e-2 / max(offset, 1e-6)))


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("given", [{"arm0": 0.7, "arm1": 0.3, "arm2": 0.4}, {"arm0": 0.7, "arm1": 0.3}])
def test_assembly(given, units):
    """Also where it has a choice: the smallest change in the mass metric has no unit either."""
    length, _ = UNITS[units]
    system, other, q_unit, _ = pair("delta", units)
    assert other.layout.length == pytest.approx(system.layout.length * length, rel=1e-14)
    ours, theirs = (s.assemble(given) for s in (system, other))
    np.testing.assert_allclose(theirs.q / q_unit, ours.q, rtol=0, atol=1e-11)
