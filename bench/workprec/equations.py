"""Equations of motion of the trees, derived by CasADi and compiled: what a user of a DAE solver writes for it.

With M v̇ = f + Aᵀ λ and Φ(q) = 0, two forms of stabilised index (Gear, Gupta, Leimkuhler 1985):

* "ggl": y = (q, v, λ, μ), F = (q̇ - v - Aᵀ μ, M v̇ - f - Aᵀ λ, Φ, A v), index 2;
* "gear": the same with λ = Λ̇, μ = Γ̇, y = (q, v, Λ, Γ), index 1 in what the solver sees.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.sparse import csc_matrix

from bench.workprec.problems import Observed, Problem
from bench.workprec.trees import GROUND, Tree, build
from sarrus.kernel import cache, compiler

# the flags hide all symbols that do not ask to be seen
EXPORTED = '#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))\n'


@dataclass(frozen=True)
class Equations:
    """Symbols and expressions of one machine."""

    q: ca.SX
    v: ca.SX
    M: ca.SX
    f: ca.SX
    phi: ca.SX
    A: ca.SX
    gamma: ca.SX
    closure: ca.SX
    values: ca.SX
    invariant: ca.SX


def kinematics(tree: Tree, q: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    """Position and rotation of every link's frame; of the ground at index -1."""
    ground = (ca.SX.zeros(3), ca.SX.eye(3))
    poses: list[tuple[ca.SX, ca.SX]] = []
    for link, x in zip(tree.links, ca.vertsplit(q), strict=True):
        p, R = ground if link.parent == GROUND else poses[link.parent]
        p = p + R @ link.at
        if link.kind == "P":
            poses.append((p + R @ (link.axis * x), R))
        else:
            u = link.axis
            K = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
            poses.append((p, R @ (np.outer(u, u) + ca.cos(x) * (np.eye(3) - np.outer(u, u)) + ca.sin(x) * K)))
    return [*poses, ground]


def derive(tree: Tree) -> Equations:
    """Lagrange's equations of a tree in its joint coordinates."""
    n = len(tree.links)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    poses = kinematics(tree, q)

    def point(index: int, at: np.ndarray) -> ca.SX:
        p, R = poses[index]
        return p + R @ at

    def rate(x: ca.SX) -> ca.SX:
        return ca.jtimes(x, q, v)

    kinetic, potential = ca.SX(0), ca.SX(0)
    omegas: list[ca.SX] = []
    for k, link in enumerate(tree.links):
        centre = point(k, link.com)
        outer = ca.SX.zeros(3) if link.parent == GROUND else omegas[link.parent]
        omegas.append(outer + (poses[k][1] @ link.axis * v[k] if link.kind == "R" else 0))
        w = poses[k][1].T @ omegas[k]
        kinetic += link.mass / 2 * ca.sumsqr(rate(centre)) + ca.dot(w, ca.SX(link.inertia) @ w) / 2
        potential -= link.mass * ca.dot(tree.gravity, centre)
    forces = ca.SX.zeros(n)
    for s in tree.springs:
        length = ca.norm_2(point(s.a, s.at_a) - point(s.b, s.at_b))
        potential += s.stiffness / 2 * (length - s.length) ** 2
        forces -= s.damping * ca.jacobian(length, q).T * rate(length)
    for k, torque in tree.torques.items():
        potential -= torque * q[k]
    momentum = ca.gradient(kinetic, v)
    M = ca.jacobian(momentum, v)
    f = forces - ca.gradient(potential, q) + ca.gradient(kinetic, q) - ca.jtimes(momentum, q, v)
    gaps = [(point(x.a, x.at_a) - point(x.b, x.at_b), x) for x in tree.loops]
    phi = ca.vertcat(*[gap[axis] for gap, x in gaps for axis in x.axes]) if gaps else ca.SX(0, 1)
    closure = ca.vertcat(*[gap[axis] for gap, x in gaps for axis in x.meets]) if gaps else ca.SX(0, 1)
    A = ca.jacobian(phi, q)
    gamma = -ca.jtimes(A @ v, q, v)
    M, f, phi, A, gamma = ca.cse([M, f, phi, A, gamma])  # else derivatives of these are far longer
    values, invariant = _observables(tree, point, rate, q, kinetic, potential, momentum)
    return Equations(q, v, M, f, phi, A, gamma, closure, values, invariant)


def _observables(tree, point, rate, q, kinetic, potential, momentum) -> tuple[ca.SX, ca.SX]:
    if tree.quantities == "coordinates":
        everything = q
    else:
        p = point(*tree.probe)
        everything = ca.vertcat(p, rate(p))
    values = everything[list(tree.pick)]
    return values, momentum[0] if tree.invariant == "spin" else kinetic + potential


def cartesian_pendulum() -> Equations:
    """A01 in x and y with (x² + y² - 1) / 2 = 0, as the problem is published."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    energy = ca.sumsqr(v) / 2 + 9.81 * q[1]
    phi = (ca.sumsqr(q) - 1) / 2
    A = ca.jacobian(phi, q)
    return Equations(q, v, ca.SX.eye(2), ca.SX([0, -9.81]), phi, A, -ca.jtimes(A @ v, q, v), phi, q, energy)


@functools.cache
def observer(tree_of: str) -> ca.Function:
    """(q, v) as columns of joint coordinates to (values, largest |Φ|, invariant), for the problem of that name."""
    from bench.workprec.problems import load

    return observer_of(derive(build(load()[tree_of])))


def observer_of(eq: Equations) -> ca.Function:
    """The same for any equations."""
    loop = ca.norm_inf(eq.closure) if eq.closure.numel() else ca.SX(0)
    return ca.Function("observe", [eq.q, eq.v], [eq.values, loop, eq.invariant])


def observe(problem: Problem, q: np.ndarray, v: np.ndarray, function: ca.Function | None = None) -> Observed:
    """A run in joint coordinates (times, n) in the problem's terms; not timed."""
    function = function or observer(problem.name)
    values, loop, invariant = (np.array(x.full()) for x in function.map(len(q))(q.T, v.T))
    return Observed(values.T, loop.ravel(), invariant.ravel())


def to_scipy(pattern: ca.Sparsity) -> csc_matrix:
    """A pattern as a matrix of ones."""
    return csc_matrix((np.ones(pattern.nnz()), pattern.row(), pattern.colind()), shape=pattern.shape)


class Compiled:
    """A CasADi function as machine code, called on fixed arrays without conversions.

    Attributes:
        inputs: arrays to fill before calling.
        outputs: arrays that a call fills: dense ones with columns as rows of `(columns, rows)`, sparse ones as the
            nonzeros in compressed column order.
    """

    def __init__(self, function: ca.Function):
        """Generate C, compile it as Sarrus compiles its own (or take it from the cache), and bind the arrays."""
        generator = ca.CodeGenerator(f"{function.name()}.c")
        generator.add(function)
        source = EXPORTED + generator.dump()
        key = cache.key_of("bench", source, compiler.toolchain_id())
        found = cache.fetch(key, "so")
        library = found[0] if found else cache.store(key, "so", compiler.compile_library(source))
        self._function = ca.external(function.name(), str(library))
        self._buffer, self.call = self._function.buffer()
        self.inputs = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]
        self.outputs = []
        for i in range(function.n_out()):
            r, c = function.size_out(i)
            shape = (c, r) if function.sparsity_out(i).is_dense() and c > 1 else (function.nnz_out(i),)
            self.outputs.append(np.zeros(shape))
        for i, x in enumerate(self.inputs):
            self._buffer.set_arg(i, memoryview(x))
        for i, x in enumerate(self.outputs):
            self._buffer.set_res(i, memoryview(x))


@dataclass(frozen=True)
class Dae:
    """F(y, ẏ) = 0 with its derivatives, compiled.

    Attributes:
        residual: of (y, ẏ).
        derivative: ∂F/∂y + c ∂F/∂ẏ of (y, ẏ, c); or, in parts, ∂F/∂y and ∂F/∂ẏ of (y, ẏ).
        patterns: of these matrices.
        y0: at the start.
        yp0: at the start.
        n: coordinates.
        m: constraint rows.
    """

    residual: Compiled
    derivative: Compiled
    patterns: tuple[ca.Sparsity, ...]
    y0: np.ndarray
    yp0: np.ndarray
    n: int
    m: int


def dae(
    eq: Equations, form: str, q0: Sequence[float], v0: Sequence[float], sparse: bool = False, parts: bool = False
) -> Dae:
    """One of the forms above as compiled functions.

    Args:
        eq: equations of motion.
        form: "ggl" or "gear".
        q0: positions at the start.
        v0: velocities at the start.
        sparse: keep zeros out of the derivatives.
        parts: two derivatives instead of their combination.
    """
    n, m = eq.q.numel(), eq.phi.numel()
    qd, a = ca.SX.sym("qd", n), ca.SX.sym("a", n)
    lam, mu, lamd, mud = (ca.SX.sym(x, m) for x in ("lam", "mu", "lamd", "mud"))
    y, yp = ca.vertcat(eq.q, eq.v, lam, mu), ca.vertcat(qd, a, lamd, mud)
    l, u = (lam, mu) if form == "ggl" else (lamd, mud)
    F = ca.vertcat(qd - eq.v - eq.A.T @ u, eq.M @ a - eq.f - eq.A.T @ l, eq.phi, eq.A @ eq.v)
    c = ca.SX.sym("c")
    Jy, Jp = ca.jacobian(F, y), ca.jacobian(F, yp)
    matrices = [Jy, Jp] if parts else [Jy + c * Jp]
    if not sparse:
        matrices = [ca.densify(x) for x in matrices]
    arguments = [y, yp] if parts else [y, yp, c]
    solve = ca.Function("start", [eq.q, eq.v], [eq.M, eq.f, eq.A, eq.gamma])
    M, f, A, gamma = (np.array(x.full()) for x in solve(q0, v0))
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    first = np.linalg.lstsq(K, np.vstack([f, gamma]), rcond=None)[0].ravel()
    y0, yp0 = np.zeros(2 * n + 2 * m), np.zeros(2 * n + 2 * m)
    y0[:n], y0[n : 2 * n] = q0, v0
    yp0[:n], yp0[n : 2 * n] = v0, first[:n]
    (y0 if form == "ggl" else yp0)[2 * n : 2 * n + m] = first[n:]
    return Dae(
        Compiled(ca.Function("F", [y, yp], ca.cse([ca.densify(F)]))),
        Compiled(ca.Function("J", arguments, ca.cse(matrices))),
        tuple(x.sparsity() for x in matrices), y0, yp0, n, m,
    )  # fmt: skip
