"""Machines and states that the tests of formulations share."""

from __future__ import annotations

from functools import cache

import numpy as np

import sarrus as sr
from physics.support import closure_case, consistent, random_case
from sarrus.kernel.dae import Dae
from sarrus.kernel.motion import Motion
from sarrus.simulation.dae.forms import bound
from sarrus.simulation.mode import Mode, shape_of

RANDOM = (2, 3, 5, 8, 9, 12, 15)  # odd seeds have redundant rows
CLOSURES = ("parallelogram", "sarrus", "rolling", "knife_edge", "prescribe", "constrain_velocity")
EVERY = (*(f"random-{seed}" for seed in RANDOM), *CLOSURES)


# sheet 12.7: joint angles of the arm on each curve, from the moment on when it is let go (0.5 s)
COURSES = {
    "x=1": {
        0.5: (-1.52010152, 1.83981057), 1.0: (0.03268059, -1.60294295), 2.0: (-1.02849684, 2.09419531),
        5.0: (-1.02657286, 2.09415234),
    },
    "circle": {
        t: (x, 2 * np.pi / 3)
        for t, x in ((0.5, -1.11817183), (1.0, -3.32142972), (2.0, -1.88126702), (5.0, -0.45982715))
    },
    "x=0": {
        0.5: (0.25700373, 2.62758519), 1.0: (-2.49527627, 8.13214519), 2.0: (-3.95456429, 11.05072124),
        5.0: (-4.03510433, 11.21180131),
    },
}  # fmt: skip


@cache
def machine(name: str):
    """A case of the oracles with its compiled machine, once per process."""
    return random_case(int(name.split("-")[1])) if name.startswith("random-") else closure_case(name, 0)


@cache
def library(name: str, **parameters) -> sr.System:
    """A machine of the library, once per process."""
    return sr.compile(sr.library.build(name, **parameters))


def place(name: str, rng: np.random.Generator):
    """A machine with a consistent state, inputs and forces of random sizes."""
    case, system = machine(name)
    state = system.state(case.q, consistent(case, rng), case.t)
    u = rng.normal(size=system.layout.nu)
    f = 10.0 ** rng.uniform(-1, 2) * rng.normal(size=system.layout.nv)
    return case, system, state, u, f


def moving(name: str, rng: np.random.Generator) -> tuple[sr.System, sr.State]:
    """A machine of the library on its way."""
    system = library(name)
    state = system.assemble()
    return system, system.state(state.q, system.projector(state) @ rng.normal(size=system.layout.nv))


def mass_size(M: np.ndarray, vector: np.ndarray) -> float:
    """|Lᵀ v| of a velocity or acceleration."""
    return float(np.linalg.norm(np.linalg.cholesky(M).T @ vector))


def force_size(M: np.ndarray, force: np.ndarray) -> float:
    """|L⁻¹ f| of a generalised force."""
    return float(np.linalg.norm(np.linalg.solve(np.linalg.cholesky(M), force)))


def started(system: sr.System, form: str, state: sr.State, u: np.ndarray, on: np.ndarray) -> Dae:
    """A differential-algebraic form with consistent values at a state, some rows being on."""
    assert system.library is not None
    motion = Motion(shape_of(system), system.library.path, row_room=2)
    Mode(system, dict.fromkeys(system.groups, True)).enter(motion, state)
    motion.put("v", state.v)
    motion.u[: len(u)] = u
    dae = bound(system, form, motion)
    dae.choose(on)
    assert dae.start() == 0
    return dae
