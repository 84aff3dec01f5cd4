"""SUNDIALS IDA through scikit-sundae, with compiled residual and Jacobian."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import sksundae

from bench.workprec import equations, forms
from bench.workprec.contestant import Declined, Failed, Method, Run, tolerances
from bench.workprec.problems import Observed, Problem

CODE = "IDA"
VERSION = sksundae.__version__
IGNORED = 1e8  # absolute tolerance of what is to stay out of the error test


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """The forms of stabilised index; for trees without loops their equations as they are."""
    for form in forms.choices(problem):
        yield Method(CODE, form.title, "rtol", tolerances(3, 14), functools.partial(prepare, problem, form))


def prepare(problem: Problem, form: forms.Form, rtol: float) -> Run:
    """One tolerance: relative, and absolute for positions and velocities; multipliers stay out of the error test."""
    dae, function, sparse = forms.compiled(problem.name, form)
    n, m = dae.n, dae.m
    residual, iteration = dae.residual, dae.derivative
    (y_in, yp_in), (out,) = residual.inputs, residual.outputs
    (jy, jp, jc), (matrix,) = iteration.inputs, iteration.outputs
    call, call_jacobian = residual.call, iteration.call
    filled = matrix if sparse else matrix.T

    def fun(_t, y, yp, res):
        y_in[:] = y
        yp_in[:] = yp
        call()
        res[:] = out

    def jac(_t, y, yp, _res, c, result):
        jy[:] = y
        jp[:] = yp
        jc[0] = c
        call_jacobian()
        result[:] = filled

    atol = np.full(2 * n + 2 * m, rtol)
    atol[2 * n :] = IGNORED
    options = {"rtol": rtol, "atol": atol, "max_num_steps": 10**7}
    if m and form.kind == "ggl":
        options["algebraic_idx"] = list(range(2 * n, 2 * n + 2 * m))
    if sparse:
        options |= {"linsolver": "sparse", "sparsity": equations.to_scipy(dae.patterns[0])}
    solver = sksundae.ida.IDA(fun, jacfn=jac, **options)

    def solve():
        return solver.solve(problem.grid, dae.y0, dae.yp0)

    def observe(solution) -> Observed:
        if not solution.success:
            raise Failed(f"stopped at t = {solution.t[-1]:.3g} s: {solution.message}")
        return equations.observe(problem, solution.y[:, :n], solution.y[:, n : 2 * n], function)

    return Run(solve, observe)
