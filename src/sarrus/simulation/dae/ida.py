"""SUNDIALS IDA (the successor of DASSL) through scikit-sundae: exact derivatives, and weights that fit the index.

As they come, IDA's error and convergence tests see multipliers too, and it stops where these grow. Here they see what
`run` says: positions, and velocities unless they are of index 2 (sheet 10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sarrus.errors import SarrusError
from sarrus.kernel.dae import Dae
from sarrus.simulation.dae.forms import Problem
from sarrus.simulation.settings import Settings

UNTESTED = 1e50  # absolute tolerance of what stays out of the tests


def run_ida(
    dae: Dae, problem: Problem, settings: Settings, look: Callable[[float], bool]
) -> tuple[np.ndarray, str, str]:
    """Rows (t, q, v) of all steps, how it ended (as `kernel.dae.CODES`, or "interrupted"), and IDA's own words.

    Args:
        dae: the equations at the start.
        problem: what the unknowns are.
        settings: how to integrate.
        look: called with the time after each step; whether to stop there.
    """
    try:
        import sksundae
    except ImportError:
        raise SarrusError("method 'ida' needs SUNDIALS: pip install sarrus[sundials]") from None
    raw, rtol = dae.raw, settings.rtol
    if np.any(dae.power):  # speeds are untested, and err as positions do over a step: this bounds them
        rtol = max(rtol**1.5, 1e-13)
    tested = (dae.atol > 0) & (dae.power == 0)
    atol = np.where(tested, dae.atol * (rtol / settings.rtol), UNTESTED)

    def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
        if dae.residual(t, y, yp, out):
            raise _Stopped

    def jacobian(t: float, y: np.ndarray, yp: np.ndarray, _: Any, c: float, out: np.ndarray) -> None:
        dae.jacobian(t, y, yp, c, out)

    start = problem.nq + problem.nv
    options: dict[str, Any] = {"algebraic_idx": list(range(start, problem.size))} if start < problem.size else {}
    if raw.max_step < 1e300:
        options["max_step"] = raw.max_step
    solver: Any = sksundae.ida.IDA(residual, jacfn=jacobian, rtol=rtol, atol=atol, **options)
    wanted = problem.nq + problem.nv
    rows = [np.r_[raw.t, dae.y[:wanted]]]
    code, text = "done", ""
    try:
        solver.init_step(raw.t, dae.y.copy(), dae.yp.copy())
        while rows[-1][0] < raw.t_end:
            if raw.steps >= settings.max_steps:
                code = "too many"
                break
            found = solver.step(raw.t_end, method="onestep", tstop=raw.t_end)
            if not found.success:
                code, text = "too small", f"IDA says: {found.message}; "
                break
            raw.steps += 1
            rows.append(np.r_[np.ravel(found.t)[-1], np.atleast_2d(found.y)[-1, :wanted]])
            if look(float(rows[-1][0])):
                code = "interrupted"
                break
    except _Stopped:
        code = "call failed"
    return np.array(rows), code, text


class _Stopped(Exception):
    """A function of the user failed."""
