"""SUNDIALS IDA (the successor of DASSL) through scikit-sundae: exact derivatives, and weights that fit the index.

As they come, IDA's error and convergence tests see multipliers too, and it stops where these grow. Here they see what
`run` says: positions, and velocities unless they are of index 2 (sheet 10).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarrus.errors import SarrusError
from sarrus.kernel.dae import Dae
from sarrus.simulation.dae.forms import Problem
from sarrus.simulation.settings import Settings

UNTESTED = 1e50  # absolute tolerance of what stays out of the tests


def run_ida(dae: Dae, problem: Problem, settings: Settings) -> tuple[np.ndarray, str, str]:
    """Rows (t, q, v) of all steps, how it ended (as `kernel.dae.CODES`), and IDA's own words."""
    try:
        import sksundae
    except ImportError:
        raise SarrusError("method 'ida' needs SUNDIALS: pip install sarrus[sundials]") from None
    raw = dae.raw
    tested = (dae._kept["atol"] > 0) & (dae._kept["power"] == 0)
    atol = np.where(tested, dae._kept["atol"], UNTESTED)

    def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
        if dae.residual(t, y, yp, out):
            raise _Stopped

    def jacobian(t: float, y: np.ndarray, yp: np.ndarray, _: Any, c: float, out: np.ndarray) -> None:
        dae.jacobian(t, y, yp, c, out)

    start = problem.part("lam").start
    options: dict[str, Any] = {"max_num_steps": settings.max_steps, "algebraic_idx": list(range(start, problem.size))}
    if raw.max_step < 1e300:
        options["max_step"] = raw.max_step
    solver = sksundae.ida.IDA(residual, jacfn=jacobian, rtol=settings.rtol, atol=atol, **options)
    span = np.array([raw.t, raw.t_end])
    try:
        found: Any = solver.solve(span, dae.y.copy(), dae.yp.copy())
    except _Stopped:
        return np.r_[raw.t, dae.y[: problem.nq + problem.nv]][None], "call failed", ""
    rows = np.column_stack([found.t, found.y[:, : problem.nq + problem.nv]])
    raw.steps = len(rows) - 1
    if found.success:
        return rows, "done", ""
    return rows, "too many" if raw.steps >= settings.max_steps else "too small", f"IDA says: {found.message}; "


class _Stopped(Exception):
    """A function of the user failed."""
