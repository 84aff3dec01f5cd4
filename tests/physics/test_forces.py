"""Every force type: power balance, potentials, actuation, damping; Ṁ - 2C; moving constraints that do work.

Rates are central differences of sixth order along a motion that starts with the right velocity and acceleration. With
the step h = 0.02 / rate, rate the fastest of the motion: truncation about 0.02⁶/140 = 5e-13 of the derivative,
rounding 3 eps |E| / h = 3e-14 rate |E|. The tolerances leave a factor of 100 on either.
"""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr
from oracles.cases import FORCE_CASES
from oracles.constraints import stacked
from oracles.forces import actuation, applied_force, spring_energy
from oracles.random_machines import add_body, add_joint

from .support import closure_case, consistent, derivative, force_case, largest, path

NAMES = [case.name for case in FORCE_CASES]
LOADED = {case.name for case in FORCE_CASES if case.model.loads}
TIED = {case.name for case in FORCE_CASES if case.loops}
EVERY_FORCE = pytest.mark.parametrize("name", NAMES)
UNLOADED = pytest.mark.parametrize("name", [n for n in NAMES if n not in LOADED])


def states(name: str, count: int = 3):
    """Random states of a force case: anywhere for trees, at the closed configuration for machines with loops."""
    case, system = force_case(name)
    rng = np.random.default_rng([NAMES.index(name), 3])
    for _ in range(count):
        if case.loops:
            yield case, system, case.q, consistent(case, rng), rng
        else:
            yield case, system, case.tree.random_configuration(rng), rng.normal(size=case.tree.nv), rng


def rate_along(case, system, q, v, vdot) -> tuple[float, float]:
    """(dE/dt, its error) along the motion with this velocity and acceleration."""
    rate = 1.0 + largest(v) * case.tree.nv + np.sqrt(largest(vdot) * case.tree.nv)
    h = 0.02 / rate

    def energy(s):
        Q, V = path(case, q, v, vdot, s)
        return system.energy(system.state(Q, V, case.t + s)).total

    here = system.energy(system.state(q, v, case.t))
    size = abs(here.kinetic) + abs(here.potential) + abs(energy(3 * h) - energy(-3 * h))
    return derivative(energy, h), 3e-12 * rate * size + 1e-12


# --- energy ------------------------------------------------------------------------------------------------
@EVERY_FORCE
def test_power_balance(name):
    """dE/dt = applied - dissipated + v·B u + v·f + λ·a, at random states with random inputs and forces."""
    for case, system, q, v, rng in states(name):
        u, f = rng.normal(size=system.layout.nu), rng.normal(size=system.layout.nv)
        state = system.state(q, v, case.t)
        x, energy, found = system.terms(state), system.energy(state), system.solve(state, u=u, f=f)
        change, error = rate_along(case, system, q, v, found.vdot)
        terms = [energy.applied, -energy.dissipated, v @ x.B @ u, v @ f, found.lam @ x.a]
        assert abs(change - sum(terms)) < error + 1e-11 * sum(map(abs, terms))


@EVERY_FORCE
def test_acceleration_of_the_oracle(name):
    """M v̇ + h = B u + f with the oracle's forces: magnitude and direction of every element."""
    for case, system, q, v, rng in states(name):
        if case.loops:
            continue  # test_closures and test_random_machines
        u, f = rng.normal(size=system.layout.nu), rng.normal(size=system.layout.nv)
        force = f + applied_force(case.tree, q, v, case.t) + actuation(case.tree, q) @ u
        expected = case.tree.aba(q, v, force)
        got = system.acceleration(system.state(q, v, case.t), u=u, f=f)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * largest(expected))


@EVERY_FORCE
def test_kinetic_energy(name):
    """½ vᵀ M v, and the oracle's sum over bodies."""
    for case, system, q, v, _ in states(name):
        state = system.state(q, v, case.t)
        kinetic, _ = case.tree.energy(q, v)
        assert system.energy(state).kinetic == pytest.approx(0.5 * v @ system.terms(state).M @ v, rel=1e-12)
        assert system.energy(state).kinetic == pytest.approx(kinetic, rel=1e-11)


@EVERY_FORCE
def test_potential_energy(name):
    """Gravity and springs as the oracle adds them, springs of cut joints apart."""
    for case, system, q, v, _ in states(name):
        state = system.state(q, v, case.t)
        expected = case.tree.energy(q, v)[1] + spring_energy(case.tree, q, case.t)
        for joint in case.tree.tree.cuts:  # a hinge at the closed loop: its angle is minus the sum of the others
            expected += 0.5 * joint.stiffness * (cut_angle(case, joint, q) - joint.rest) ** 2
        assert system.energy(state).potential == pytest.approx(expected, rel=1e-11, abs=1e-11)
        assert system.energy(system.state(q, 0 * v, case.t)).potential == system.energy(state).potential


def cut_angle(case, joint, q) -> float:
    """Angle of a cut hinge whose joint frames are the bodies' own: from the trace and the skew part of the turn."""
    assert np.allclose(joint.rotation, np.eye(3)) and np.allclose(joint.child_rotation, np.eye(3))
    R = case.tree.body_pose(q, joint.parent)[0].T @ case.tree.body_pose(q, joint.child)[0]
    axial = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return float(np.arctan2(joint.axis @ axial, 0.5 * (np.trace(R) - 1.0)))


@UNLOADED
def test_static_force_is_the_gradient_of_the_potential(name):
    """h(q, 0) = ∂V/∂q N, direction by direction: gravity and springs."""
    for case, system, q, v, _ in states(name):
        none = 0 * v
        force = system.terms(system.state(q, none, case.t)).h

        def potential(s, e, case=case, system=system, q=q, none=none):
            return system.energy(system.state(case.tree.integrate(q, e, s), none, case.t)).potential

        gradient = [derivative(lambda s, e=e: potential(s, e), 5e-3) for e in np.eye(len(v))]
        size = 1 + largest(force) + abs(potential(0.0, none))
        np.testing.assert_allclose(force, gradient, atol=1e-10 * size)


@EVERY_FORCE
def test_passive_damping_never_adds_energy(name):
    """Dissipated power is not negative, and is what the oracle's dampers take out; loads are what they put in."""
    for case, system, q, v, _ in states(name, 5):
        tree, state = case.tree, system.state(q, v, case.t)
        energy, x = system.energy(state), system.terms(state)
        assert energy.dissipated >= 0
        total = (applied_force(tree, q, v, case.t) - tree.joint_forces(q, v)) @ v
        if name in LOADED:  # load cases have no dampers
            assert energy.dissipated == 0
            assert energy.applied == pytest.approx(total, rel=1e-10, abs=1e-12)
            continue
        still = (applied_force(tree, q, 0 * v, case.t) - tree.joint_forces(q, 0 * v)) @ v
        assert energy.applied == 0
        scale = abs(total) + abs(still)
        assert energy.dissipated == pytest.approx(still - total, rel=1e-10, abs=1e-12 + 1e-12 * scale)
        back = system.terms(system.state(q, -v, case.t)).h
        assert energy.dissipated == pytest.approx(0.5 * v @ (x.h - back), rel=1e-9, abs=1e-11 * largest(x.h))


@EVERY_FORCE
def test_actuation_matrix(name):
    for case, system, q, v, _ in states(name):
        B = system.terms(system.state(q, v, case.t)).B
        np.testing.assert_allclose(B, actuation(case.tree, q), atol=1e-13)
        assert system.inputs == tuple(a.name for a in case.model.actuators)


# --- Ṁ - 2C ------------------------------------------------------------------------------------------------
@EVERY_FORCE
def test_coriolis_forces_do_the_work_of_the_changing_mass_matrix(name):
    """v·c = ½ vᵀ Ṁ v with c the part of h even in v, less that at rest (springs, gravity; dampers are odd)."""
    for case, system, q, v, _ in states(name):

        def terms(q, v, case=case, system=system):
            return system.terms(system.state(q, v, case.t))

        coriolis = 0.5 * (terms(q, v).h + terms(q, -v).h) - terms(q, 0 * v).h
        h = 0.02 / (1.0 + largest(v) * case.tree.nv)
        rate = derivative(lambda s, q=q, v=v, terms=terms, case=case: terms(case.tree.integrate(q, v, s), v).M, h)
        size = np.abs(v) @ np.abs(coriolis) + 0.5 * np.abs(v) @ np.abs(rate) @ np.abs(v)
        rounding = 1e-14 / h * np.abs(v) @ np.abs(terms(q, v).M) @ np.abs(v)
        assert abs(v @ coriolis - 0.5 * v @ rate @ v) < 1e-10 * size + 10 * rounding


def test_without_gravity_and_springs_the_bias_is_coriolis_alone():
    """All joint kinds, nothing but inertia: v·h = ½ vᵀ Ṁ v, h quadratic in v, and kinetic energy is conserved."""
    rng = np.random.default_rng(12)
    mech = sr.Mechanism("inert", gravity=(0, 0, 0))
    previous = "ground"
    for i, kind in enumerate(("universal", "helical", "spherical", "planar", "cylindrical", "free", "prismatic")):
        add_body(mech, f"B{i}", rng)
        add_joint(mech, kind, f"J{i}", *((previous, f"B{i}") if i % 2 else (f"B{i}", previous)), rng, plain=True)
        previous = f"B{i}"
    system = sr.compile(mech)
    q0 = np.array(system.layout.initial)
    q = system.retract(q0, rng.uniform(-1, 1, system.layout.nv))
    for v in rng.normal(size=(3, system.layout.nv)):
        state = system.state(q, v)
        h = system.terms(state).h
        double = system.terms(system.state(q, 2 * v)).h
        np.testing.assert_allclose(double, 4 * h, rtol=0, atol=1e-12 * largest(double))
        step = 0.02 / (1.0 + largest(v) * len(v))
        M = derivative(lambda s, v=v: system.terms(system.state(system.retract(q, s * v), v)).M, step)
        assert v @ h == pytest.approx(0.5 * v @ M @ v, rel=1e-9, abs=1e-10 * (np.abs(v) @ np.abs(h)))
        vdot = system.acceleration(state)
        assert abs(v @ system.terms(state).M @ vdot + 0.5 * v @ M @ v) < 1e-9 * (np.abs(v) @ np.abs(h))


# --- moving constraints ------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["prescribe", "constrain", "constrain_velocity"])
def test_moving_constraints_do_the_work_lambda_times_a(name, seed):
    """dE/dt = -dissipated + v·f + λ·a, with a(t) not zero and v satisfying A v = a."""
    case, system = closure_case(name, seed)
    rng = np.random.default_rng([seed, 15])
    v, f = consistent(case, rng), rng.normal(size=case.tree.nv)
    state = system.state(case.q, v, case.t)
    x, energy, found = system.terms(state), system.energy(state), system.solve(state, f=f)
    change, error = rate_along(case, system, case.q, v, found.vdot)
    moving = found.lam @ x.a
    _, A, a, _ = stacked(case.tree, case.q, v, case.t)
    shift = np.linalg.lstsq(A, a, rcond=None)[0]  # the constraint force does the work of any v that moves with it
    assert moving == pytest.approx((x.A.T @ found.lam) @ shift, rel=1e-9)
    assert abs(moving) > 1e-3
    terms = [energy.applied, -energy.dissipated, v @ f, moving]
    assert abs(change - sum(terms)) < error + 1e-11 * sum(map(abs, terms))
    left_out = abs(change - sum(terms) + moving)
    assert left_out > 100 * (error + 1e-11 * sum(map(abs, terms))), "the test could not tell"


def test_dry_friction_brakes_uniformly_and_its_power_is_dissipated():
    """A slider of 2 kg on which friction of 3 N acts slows down by 1.5 m/s²; a second one feels a combination."""
    mech = sr.Mechanism("sliders", gravity=(0, 0, 0))
    for name, mass in (("a", 2.0), ("b", 5.0)):
        body = mech.body(name, mass)
        mech.prismatic(name, mech.ground, body, "x")
    mech.friction("rail", "a", 3.0, speed=1e-3)
    mech.friction("between", {"a": 1.0, "b": -1.0}, 4.0, speed=1e-3)
    system = sr.compile(mech)
    state = system.state((0, 0), (1.0, 0.4))
    np.testing.assert_allclose(system.acceleration(state), [-(3.0 + 4.0) / 2.0, 4.0 / 5.0], rtol=1e-12)
    assert system.energy(state).dissipated == pytest.approx(3.0 * 1.0 + 4.0 * 0.6)
    traj = sr.simulate(system, state, 3.0, rtol=1e-10, method="radau")
    assert abs(traj["a.v"][-1]) < 1e-3
    assert abs(traj["b.v"][-1] - traj["a.v"][-1]) < 1e-3
    traj.audit(raise_above=1e-6)


def test_friction_that_makes_no_sense_is_refused():
    mech = sr.Mechanism("slider")
    mech.prismatic("a", mech.ground, mech.body("a", 1.0), "x")
    mech.friction("rail", "a", -3.0, speed=1e-3)
    mech.friction("other", "a", 3.0, speed=0.0)
    with pytest.raises(sr.ModelError) as caught:
        mech.finalize()
    assert "joint spring 'rail': friction is -3.0; it must not be negative" in str(caught.value)
    assert "friction 'other': speed is 0.0; expected a positive number" in str(caught.value)
