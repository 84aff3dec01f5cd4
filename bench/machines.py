"""The machines of the benchmark, and random consistent states for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import sarrus as sr


@dataclass(frozen=True)
class Machine:
    """One row of the table: how to build it, how many times faster than the peers it must be, how far states spread."""

    name: str
    build: Callable[[], sr.Mechanism]
    target: float = 5.0
    spread: float = 0.3  # of the guesses around the initial position, in units of each coordinate's scale


@dataclass(frozen=True)
class Samples:
    """Random consistent states with nonzero inputs and forces; `tau` = B u + f is what the peers get."""

    states: sr.State
    u: np.ndarray
    f: np.ndarray
    tau: np.ndarray

    def repeated(self, count: int) -> Samples:
        """The same states over and over, `count` rows or a few more."""
        times = -(-count // len(self.u))
        q, v = (np.tile(x, (times, 1)) for x in (self.states.q, self.states.v))
        states = sr.State(self.states.layout, q, v, 0.0)
        return Samples(states, *(np.tile(x, (times, 1)) for x in (self.u, self.f, self.tau)))


def nine_links() -> sr.Mechanism:
    """A planar loop of nine uniform rods and the ground: zigzag chain, its end pinned at (5.4, 0)."""
    mech = sr.Mechanism("nine links", planar=True)
    rods = [mech.body(f"rod{i}", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0)) for i in range(9)]
    slope = float(np.arccos(0.6))
    mech.revolute("J0", mech.ground, rods[0], initial=slope)
    for i in range(1, 9):
        mech.revolute(f"J{i}", rods[i - 1], rods[i], at=(1.0, 0), initial=2.0 * slope * (-1) ** i)
    # an odd number of rods ends above the ground by one rod's rise; assembly takes that up
    mech.close("end", sr.point_on(rods[-1], (1.0, 0)), sr.point_on(mech.ground, (5.4, 0)))
    mech.motor("J0")
    return mech


def _library(name: str) -> Callable[[], sr.Mechanism]:
    return lambda: sr.library.build(name)


MACHINES = {
    machine.name: machine
    for machine in (
        Machine("four_bar", _library("four_bar")),
        Machine("nine_links", nine_links),
        Machine("planar_platform", _library("planar_platform")),
        Machine("parallelogram", _library("parallelogram"), target=3.0),
        Machine("stewart", _library("stewart"), spread=0.1),
    )
}


def random_samples(system: sr.System, spread: float, count: int, seed: int) -> Samples:
    """Assemble near perturbed guesses; velocities are random ones projected on what the constraints allow.

    Inputs and forces are of the size of the bias h, coordinate by coordinate.
    """
    rng = np.random.default_rng(seed)
    home = system.assemble()
    scales = np.array(system.layout.scales)
    rows = []
    for _ in range(count):
        guess = system.retract(home.q, spread * scales * rng.uniform(-1, 1, system.layout.nv))
        near = system.assemble(near=system.state(guess))
        v = system.projector(near) @ (scales * rng.normal(size=system.layout.nv))
        rows.append((near.q, v))
    states = system.state(*(np.array(column) for column in zip(*rows, strict=True)))
    terms = system.terms(states)
    size = np.abs(terms.h).max(axis=0) + 0.1 * np.abs(terms.h).max()
    u = rng.normal(size=(count, system.layout.nu)) * np.abs(np.einsum("sij,i->sj", np.abs(terms.B), size))
    f = 0.5 * size * rng.normal(size=(count, system.layout.nv))
    return Samples(states, u, f, np.einsum("sij,sj->si", terms.B, u) + f)


def reference_accelerations(system: sr.System, samples: Samples) -> np.ndarray:
    """Dense KKT system by least squares, in NumPy: [M -Aᵀ; A 0] [v̇; λ] = [τ - h; γ], scaled to unit diagonal."""
    terms = system.terms(samples.states)
    out = []
    for M, h, A, gamma, tau in zip(terms.M, terms.h, terms.A, terms.gamma, samples.tau, strict=True):
        d = 1.0 / np.sqrt(np.diag(M))
        length = np.linalg.norm(A * d, axis=1)
        rows = np.flatnonzero(length > 0.0)
        G = (A * d)[rows] / length[rows, None]
        K = np.block([[M * np.outer(d, d), -G.T], [G, np.zeros((len(rows), len(rows)))]])
        right = np.concatenate([d * (tau - h), gamma[rows] / length[rows]])
        out.append(d * np.linalg.lstsq(K, right, rcond=1e-12)[0][: len(d)])
    return np.array(out)


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest |Δv̇| over the largest |v̇| of the same state, over all states."""
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.max(np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)))
