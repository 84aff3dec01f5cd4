"""Machines and states that the tests of formulations share."""

from __future__ import annotations

from functools import cache

import numpy as np

import sarrus as sr
from physics.support import closure_case, consistent, random_case

RANDOM = (2, 3, 5, 8, 9, 12, 15)  # odd seeds have redundant rows
CLOSURES = ("parallelogram", "sarrus", "rolling", "knife_edge", "prescribe", "constrain_velocity")
EVERY = (*(f"random-{seed}" for seed in RANDOM), *CLOSURES)


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
