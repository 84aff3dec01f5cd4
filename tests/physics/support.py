"""What the physics tests share: compiled machines, finite differences, distances that do not depend on units."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import sarrus as sr
from oracles.cases import CLOSURE_CASES, FORCE_CASES
from oracles.constraints import project_velocity
from oracles.random_machines import Case, random_machine

EPS = float(np.finfo(float).eps)
FIRST = {1: 45.0 / 60.0, 2: -9.0 / 60.0, 3: 1.0 / 60.0}
SECOND = {0: -490.0 / 180.0, 1: 270.0 / 180.0, 2: -27.0 / 180.0, 3: 2.0 / 180.0}


@cache
def closure_case(name: str, seed: int) -> tuple[Case, sr.System]:
    """A machine for one closure type, compiled once per process."""
    case = CLOSURE_CASES[name](seed)
    return case, sr.compile(case.model)


@cache
def force_case(name: str) -> tuple[Case, sr.System]:
    """A machine for one force type, compiled once per process."""
    case = next(c for c in FORCE_CASES if c.name == name)
    return case, sr.compile(case.model)


@cache
def random_case(seed: int) -> tuple[Case, sr.System]:
    """A random machine, compiled once per process."""
    case = random_machine(seed)
    return case, sr.compile(case.model)


def derivative(f: Callable[[float], Any], h: float = 1e-3) -> Any:
    """Central difference of sixth order at 0: error h⁶ f⁽⁷⁾/140 + 3 eps |f| / h."""
    return sum(w * (np.asarray(f(k * h)) - np.asarray(f(-k * h))) for k, w in FIRST.items()) / h


def second_derivative(f: Callable[[float], Any], h: float = 1e-2) -> Any:
    """Central second difference of sixth order at 0: error h⁶ f⁽⁸⁾/560 + 6 eps |f| / h²."""
    middle = SECOND[0] * np.asarray(f(0.0))
    return (middle + sum(w * (np.asarray(f(k * h)) + f(-k * h)) for k, w in SECOND.items() if k)) / h**2


def consistent(case: Case, rng: np.random.Generator, size: float = 1.0) -> np.ndarray:
    """A random velocity with A v = a(t) at the case's configuration, by the oracle's projector."""
    return project_velocity(case.tree, case.q, size * rng.normal(size=case.tree.nv), case.t)


def path(case: Case, q: np.ndarray, v: np.ndarray, vdot: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity at s of a motion that starts with q, v and v̇ (right to s²), by the oracle's flow."""
    return case.tree.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot


def elsewhere(case: Case, rng: np.random.Generator, size: float = 0.15) -> np.ndarray:
    """A configuration off the constraint manifold."""
    return case.tree.integrate(case.q, rng.uniform(-size, size, case.tree.nv), 1.0)


def largest(*arrays: Any) -> float:
    """Largest magnitude in any of the arrays; 0 if all are empty."""
    return max((float(np.max(np.abs(a), initial=0.0)) for a in arrays), default=0.0)


def force_size(L: np.ndarray, force: np.ndarray) -> float:
    """Length of a generalised force in the mass metric, |L⁻¹ f| with M = L Lᵀ: independent of units."""
    return float(np.linalg.norm(np.linalg.solve(L, force)))


def velocity_size(L: np.ndarray, velocity: np.ndarray) -> float:
    """Length of a velocity or acceleration in the mass metric, |Lᵀ v|."""
    return float(np.linalg.norm(L.T @ velocity))


def row_space(A: np.ndarray, tolerance: float = 1e-8) -> np.ndarray:
    """The orthogonal projector on the span of the rows, each row scaled to length 1 first."""
    length = np.linalg.norm(A, axis=1, keepdims=True)
    rows = A / np.maximum(length, 1e-3 * np.max(length, initial=1e-300))
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    V = Vt[s > tolerance * np.max(s, initial=1e-300)]
    return V.T @ V
