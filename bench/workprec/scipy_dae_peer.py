"""scipy-dae: Radau IIA of several stages, with compiled residual and derivatives."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csc_matrix
from scipy_dae.integrate import solve_dae

from bench.workprec import equations, forms
from bench.workprec.contestant import Declined, Failed, Method, Run, tolerances
from bench.workprec.problems import Observed, Problem

CODE = "scipy-dae"
VERSION = importlib.metadata.version("scipy-dae")


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """Order 5 and order 9 on each form."""
    for form in forms.choices(problem):
        if form.kind == "ggl":  # its error control is made for index 1, in which its own examples are written
            continue
        for stages in (3, 5):
            title = f"Radau, {stages} stages, {form.title}"
            call = functools.partial(prepare, problem, form, stages)
            yield Method(CODE, title, "rtol", tolerances(3, 12), call)


def prepare(problem: Problem, form: forms.Form, stages: int, rtol: float) -> Run:
    """One tolerance, the same for all unknowns."""
    dae, function, sparse = forms.compiled(problem.name, form, parts=True)
    residual, derivative = dae.residual, dae.derivative
    (y_in, yp_in), (out,) = residual.inputs, residual.outputs
    (jy, jp), (first, second) = derivative.inputs, derivative.outputs
    patterns = [equations.to_scipy(x) for x in dae.patterns]
    call, call_derivative = residual.call, derivative.call

    def fun(_t, y, yp):
        y_in[:] = y
        yp_in[:] = yp
        call()
        return out.copy()

    def jac(_t, y, yp):
        jy[:] = y
        jp[:] = yp
        call_derivative()
        if sparse:
            pairs = zip((first, second), patterns, strict=True)
            return tuple(csc_matrix((x.copy(), p.indices, p.indptr), shape=p.shape) for x, p in pairs)
        return first.T.copy(), second.T.copy()

    def solve():
        return solve_dae(
            fun, (0.0, problem.t_end), dae.y0, dae.yp0, "Radau", problem.grid, jac=jac, rtol=rtol, atol=rtol,
            stages=stages,
        )  # fmt: skip

    def observe(solution) -> Observed:
        if not solution.success:
            raise Failed(f"stopped at t = {solution.t[-1] if len(solution.t) else 0:.3g} s: {solution.message}")
        y, n = np.asarray(solution.y).T, dae.n
        return equations.observe(problem, y[:, :n], y[:, n : 2 * n], function)

    return Run(solve, observe)
