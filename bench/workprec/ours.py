"""Sarrus: `sarrus.Simulation` on the machines of its library."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import sarrus as sr
from bench.workprec import equations
from bench.workprec.contestant import Declined, Failed, Method, Run, tolerances
from bench.workprec.problems import Observed, Problem
from bench.workprec.trees import Tree, build

CODE = "Sarrus"
VERSION = sr.__version__
MACHINES = {
    "A01": "pendulum",
    "A03": "andrews",
    "B1": "andrews",
    "A04": "bricard",
    "A05": "flyball",
    "SC": "slider_crank",
}


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """The explicit method; where springs are stiff the implicit one too."""
    names = ["dop853"] + (["radau"] if any(s.damping for s in build(problem).springs) else [])
    for name in names:
        yield Method(CODE, name, "rtol", tolerances(3, 13), functools.partial(prepare, problem, name))


@functools.cache
def system_of(name: str) -> sr.System:
    """The compiled machine of a problem."""
    if name.startswith("A02"):
        return sr.compile(sr.library.build("n_four_bar", n=int(name.split("-")[1])))
    return sr.compile(sr.library.build(MACHINES[name]))


def start_of(system: sr.System, tree: Tree) -> sr.State:
    """The problem's initial state; the library's joints have the names of the tree's links."""
    home = system.assemble()
    if not _same_joints(system, tree):
        return home  # the Bricard mechanism, which starts as built and at rest
    q, v = home.q.copy(), np.zeros(system.layout.nv)
    for link in tree.links:
        q[system.layout.find(link.name)] = link.q0
        v[system.layout.find(link.name, "v")] = link.v0
    return system.state(q, v)


def prepare(problem: Problem, method: str, rtol: float) -> Run:
    """One tolerance."""
    system, tree = system_of(problem.name), build(problem)
    state = start_of(system, tree)
    _compile(system, state, method)
    run = sr.Simulation(system, problem.t_end, method=method, rtol=rtol, output=problem.grid, progress=False)

    def solve() -> sr.Trajectory:
        return run(state)

    def observe(trajectory: sr.Trajectory) -> Observed:
        if not trajectory.status.ok:
            raise Failed(str(trajectory.status))
        if not _same_joints(system, tree):
            loop = np.abs(trajectory.residuals.loop).max(axis=1)
            return Observed(trajectory["P3.position"], loop, trajectory.energy.total)
        index = [system.layout.find(link.name).start for link in tree.links]
        return equations.observe(problem, trajectory.q[:, index], trajectory.v[:, index])

    return Run(solve, observe)


def _compile(system: sr.System, state: sr.State, method: str) -> None:
    """What a first run compiles."""
    sr.simulate(system, state, 1e-9, method=method, progress=False)


def _same_joints(system: sr.System, tree: Tree) -> bool:
    """Whether the coordinates are those of the tree; a loop may have been cut at another joint."""
    return {link.name for link in tree.links} == set(system.layout.q_names)
