"""Controllers and torque resolution on random spatial machines, with quaternions and redundant rows."""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr
from oracles.random_machines import random_machine

from .laws import Plant, master


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_machine_does_what_is_commanded(seed, rng):
    case = random_machine(seed)
    mech = case.mechanism
    for joint in case.model.joints:
        if joint.kind in ("revolute", "prismatic"):
            mech.motor(joint.name)
    system = sr.compile(mech)
    state = system.assemble(near=system.state(case.q))
    state = system.state(state.q, system.projector(state) @ rng.uniform(-1, 1, system.layout.nv))
    x = Plant(system, state)
    weights = rng.uniform(0.5, 2, system.layout.nu)
    # an acceleration that the inputs can give comes back with the least inputs
    vdot = system.acceleration(state, rng.uniform(-1, 1, system.layout.nu))
    found = sr.inverse_dynamics(system, state, vdot, weights=weights)
    assert found.feasible, found
    assert found.unique == (np.linalg.matrix_rank(x.V2.T @ x.B) == system.layout.nu)
    np.testing.assert_allclose(system.acceleration(state, found.u), vdot, atol=1e-6 * (1 + np.abs(vdot).max()))
    root = 1 / np.sqrt(weights)
    least = root * (np.linalg.pinv(x.V2.T @ x.B * root, rcond=1e-9) @ (x.V2.T @ (x.M @ vdot + x.h)))
    np.testing.assert_allclose(found.u, least, atol=1e-6 * (1 + np.abs(least).max()))
    # tasks of single coordinates, in all formulations
    named = [n for n in system.layout.q_names if n in system.inputs][:2]
    for count in (1, len(named)):
        task = named[:count]
        J = np.zeros((count, system.layout.nv))
        for k, name in enumerate(task):
            J[k, system.layout.find(name, "v").start] = 1.0
        K = J @ x.Mob @ x.B
        if np.linalg.matrix_rank(K, tol=1e-6 * np.linalg.norm(K)) < count:
            continue
        wanted = -9.0 * np.array([state[f"{n}.q"] for n in task]) - 5.0 * J @ state.v
        for formulation in ("direct", "minimal", "partitioned"):
            control = sr.control.TaskSpace(system, task, np.zeros(count), 9.0, 5.0, formulation)
            u = control(0.0, state.q, state.v)
            np.testing.assert_allclose(
                J @ system.acceleration(state, u), wanted, atol=1e-6 * (1 + np.abs(wanted).max())
            )
            if formulation != "partitioned":
                expected = master(x, J, np.zeros(count), wanted)
                np.testing.assert_allclose(u, expected, atol=1e-6 * (1 + np.abs(expected).max()))
