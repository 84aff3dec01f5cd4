"""Pinocchio: constraintDynamics from Python under SciPy's integrators.

Its accelerations keep Φ̈ = 0 and nothing pulls a drift back, as in its examples; with accurate integrators that is
enough. Springs are compiled functions of the coordinates, faster than what a user could write with frames.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import casadi as ca
import numpy as np
import pinocchio as pin
from scipy.integrate import odeint, solve_ivp

from bench.workprec import equations
from bench.workprec.contestant import Declined, Failed, Method, Run, tolerances
from bench.workprec.problems import Observed, Problem
from bench.workprec.trees import GROUND, Tree, build

CODE = "Pinocchio"
VERSION = pin.__version__
PROXIMAL = (1e-12, 1e-12, 1e-8, 10)  # accuracies, mu, iterations: 1e-14 of the exact solution away from singularities


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """Dormand-Prince of order 8 and LSODA, which turns to BDF when the problem is stiff.

    LSODA runs in `odeint`, whose loop is compiled: half the time of `solve_ivp`, whose DOP853 has no such form.
    """
    tree = build(problem)
    for scheme in ("DOP853", "LSODA"):
        name = f"{_algorithm(tree)}, {scheme}"
        yield Method(CODE, name, "rtol", tolerances(3, 13), functools.partial(prepare, problem, scheme))


def prepare(problem: Problem, scheme: str, rtol: float) -> Run:
    """One tolerance."""
    tree = build(problem)
    accelerate, order = accelerations(problem, tree)
    n = len(order)
    start = np.concatenate([tree.q0[order], tree.v0[order]])
    out = np.zeros(2 * n)
    grid = problem.grid

    def fun(_t, y):
        out[:n] = y[n:]
        out[n:] = accelerate(y[:n], y[n:])
        return out

    def step_by_step():
        solution = solve_ivp(lambda t, y: fun(t, y).copy(), (0.0, grid[-1]), start, scheme, grid, rtol=rtol, atol=rtol)
        return solution.y.T, "" if solution.success else solution.message

    def compiled():
        rows, facts = odeint(fun, start, grid, full_output=True, rtol=rtol, atol=rtol, mxstep=10**7, tfirst=True)
        return rows, "" if facts["message"] == "Integration successful." else facts["message"]

    def observe(found) -> Observed:
        rows, failure = found
        if failure:
            raise Failed(failure)
        q, v = np.empty((2, len(rows), n))
        q[:, order], v[:, order] = rows[:, :n], rows[:, n:]
        return equations.observe(problem, q, v)

    solve = compiled if scheme == "LSODA" else step_by_step
    return Run(solve, observe)


def accelerations(problem: Problem, tree: Tree) -> tuple[Callable, list[int]]:
    """v̇ of (q, v) in Pinocchio's order of joints, and that order."""
    model, index, order = to_model(tree)
    data = model.createData()
    tau = _forces(problem.name, tree, order)
    if not tree.loops:
        return (lambda q, v: pin.aba(model, data, q, v, tau(q, v))), order
    if any(x.meets != (0, 1, 2) for x in tree.loops):
        return _in_a_plane(model, data, tree, index, tau), order
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for x in tree.loops:
        a, b = ((index[k], pin.SE3(np.eye(3), np.array(at))) for k, at in ((x.a, x.at_a), (x.b, x.at_b)))
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *a, *b, pin.LOCAL))
        datas.append(models[len(models) - 1].createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(*PROXIMAL)
    return (lambda q, v: pin.constraintDynamics(model, data, q, v, tau(q, v), models, datas, settings)), order


def to_model(tree: Tree) -> tuple[pin.Model, dict[int, int], list[int]]:
    """The tree as a model, the joint of each link, and the links in the order of joints: depth first, as it must be."""
    model = pin.Model()
    model.gravity.linear = np.array(tree.gravity)
    index, order = {GROUND: 0}, []

    def visit(parent: int) -> None:
        for k, link in enumerate(tree.links):
            if link.parent == parent:
                kind = pin.JointModelRevoluteUnaligned if link.kind == "R" else pin.JointModelPrismaticUnaligned
                place = pin.SE3(np.eye(3), np.array(link.at))
                index[k] = model.addJoint(index[parent], kind(np.array(link.axis)), place, link.name)
                inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
                model.appendBodyToJoint(index[k], inertia, pin.SE3.Identity())
                order.append(k)
                visit(k)

    visit(GROUND)
    return model, index, order


def _in_a_plane(model, data, tree: Tree, index: dict[int, int], tau: Callable) -> Callable:
    """Single rows are no constraint of Pinocchio's: its M, h and frame Jacobian, solved by its `forwardDynamics`."""
    (loop,) = tree.loops
    (row,) = loop.axes
    frame = model.addFrame(pin.Frame("end", index[loop.a], pin.SE3(np.eye(3), np.array(loop.at_a)), pin.OP_FRAME))
    data = model.createData()
    zero, aligned = np.zeros(model.nv), pin.LOCAL_WORLD_ALIGNED

    def accelerate(q, v):
        pin.forwardKinematics(model, data, q, v, zero)
        gamma = pin.getFrameClassicalAcceleration(model, data, frame, aligned).linear[row]
        J = pin.computeFrameJacobian(model, data, q, frame, aligned)[row : row + 1]
        return pin.forwardDynamics(model, data, q, v, tau(q, v), J, np.array([gamma]), PROXIMAL[2])

    return accelerate


def _forces(name: str, tree: Tree, order: list[int]) -> Callable:
    """Springs and torques as joint forces of (q, v), zeros where there are none."""
    n = len(order)
    if not tree.springs and not tree.torques:
        zero = np.zeros(n)
        return lambda q, v: zero
    weightless = [replace(x, mass=0.0, inertia=np.zeros((3, 3))) for x in tree.links]
    eq = equations.derive(replace(tree, links=weightless, gravity=np.zeros(3)))
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    back = [order.index(k) for k in range(n)]
    tau = ca.substitute([eq.f], [eq.q, eq.v], [q[back], v[back]])[0][order]
    function = equations.Compiled(ca.Function("tau", [q, v], [ca.densify(tau)]))

    def forces(q, v):
        function.inputs[0][:] = q
        function.inputs[1][:] = v
        function.call()
        return function.outputs[0]

    return forces


def _algorithm(tree: Tree) -> str:
    if not tree.loops:
        return "aba"
    return "constraintDynamics" if all(x.meets == (0, 1, 2) for x in tree.loops) else "forwardDynamics"
