"""Exudyn: a kinematic tree with its closures, and for planar machines also bodies with every hinge a constraint."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import exudyn as exu
import numpy as np

from bench.workprec import equations, exudyn_models
from bench.workprec.contestant import Declined, Failed, Method, Run, steps
from bench.workprec.problems import Observed, Problem
from bench.workprec.trees import Tree, build

CODE = "Exudyn"
VERSION = exu.__version__
SPARSE = 30  # more coordinates than this are solved with sparse matrices
MODELS = {"joints": "in joint coordinates", "bodies": "as bodies in the plane"}


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """Its implicit integrators; for trees without loops also its Runge-Kutta method of highest order."""
    tree = build(problem)
    intervals = len(problem.grid) - 1
    lengths = steps(problem.t_end, intervals, first=4, factor=4, count=9)
    pairs = [("joints", "GeneralizedAlpha"), ("bodies" if tree.planar else "joints", "TrapezoidalIndex2")]
    if tree.planar:
        pairs.append(("bodies", "GeneralizedAlpha"))
    for model, solver in pairs:
        call = functools.partial(prepare, problem, model, solver)
        yield Method(CODE, f"{solver}, {MODELS[model]}", "step [s]", lengths, call)
    if not tree.loops:
        call = functools.partial(prepare, problem, "joints", "RK67")
        yield Method(CODE, "RK67, in joint coordinates", "step [s]", steps(problem.t_end, intervals, count=18), call)


def prepare(problem: Problem, model: str, solver: str, step: float) -> Run:
    """One step length."""
    tree = build(problem)
    bodies = model == "bodies"

    def fresh():
        mbs, sensors = (exudyn_models.in_bodies if bodies else exudyn_models.in_joints)(tree)
        mbs.Assemble()
        return mbs, sensors, _settings(problem, tree, step, bodies)

    def solve(given):
        mbs, sensors, settings = given
        done = mbs.SolveDynamic(settings, solverType=getattr(exu.DynamicSolverType, solver), showHints=False)
        return done, mbs, sensors

    def observe(found) -> Observed:
        done, mbs, sensors = found
        first = mbs.GetSensorStoredData(sensors[0][0] if bodies else sensors[0])
        if not done:
            raise Failed(f"stopped at t = {first[-1, 0] if len(first) else 0:.3g} s")
        if len(first) != len(problem.grid) or np.abs(first[:, 0] - problem.grid).max() > 1e-9 * problem.t_end:
            raise Failed(f"{len(first)} outputs, not at the times asked for")
        if bodies:
            angles = (np.stack([mbs.GetSensorStoredData(x)[:, 3] for x in group], axis=1) for group in sensors)
            q, v = (exudyn_models.relative(tree, x) for x in angles)
        else:
            q, v = (mbs.GetSensorStoredData(x)[:, 1:] * exudyn_models.signs(tree) for x in sensors)
        return equations.observe(problem, q, v)

    return Run(solve, observe, fresh)


def _settings(problem: Problem, tree: Tree, step: float, bodies: bool) -> exu.SimulationSettings:
    settings = exu.SimulationSettings()
    time = settings.timeIntegration
    time.endTime = problem.t_end
    time.numberOfSteps = round(problem.t_end / step)
    time.verboseMode = 0
    time.automaticStepSize = False
    time.adaptiveStep = False
    time.newton.useModifiedNewton = True
    time.newton.relativeTolerance = 1e-10
    time.newton.absoluteTolerance = 1e-12
    time.generalizedAlpha.spectralRadius = 0.9
    out = settings.solutionSettings
    out.writeSolutionToFile = False
    out.sensorsWritePeriod = problem.t_end / (len(problem.grid) - 1)
    settings.parallel.numberOfThreads = 1
    settings.displayComputationTime = False
    sparse = (5 if bodies else 1) * len(tree.links) > SPARSE
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse if sparse else exu.LinearSolverType.EXUdense
    return settings
