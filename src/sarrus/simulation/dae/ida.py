"""SUNDIALS IDA (the successor of DASSL) through scikit-sundae: exact derivatives, and weights that fit the index.

As they come, IDA's error and convergence tests see multipliers too, and it stops where these grow. Here they see
positions, and velocities unless they are of index 2 (sheet 10).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sarrus.errors import SarrusError
from sarrus.kernel.dae import Dae

UNTESTED = 1e50  # absolute tolerance of what stays out of the tests


class Failed(Exception):
    """A function of the user's failed, or Ctrl-C was pressed again, while SUNDIALS was at work."""


class Ida:
    """IDA at work on one form: `start`, then one `step` after another; after a jump, `start` again."""

    def __init__(self, dae: Dae, rtol: float, atol: np.ndarray, free: int, max_step: float):
        """Prepare it.

        Args:
            dae: the equations.
            rtol: relative tolerance.
            atol: absolute tolerances, infinite for what is not tested.
            free: how many unknowns have derivatives in the equations; the others follow them.
            max_step: longest step [s].
        """
        try:
            import sksundae
        except ImportError:
            raise SarrusError("method 'ida' needs SUNDIALS: pip install sarrus[sundials]") from None
        self._make, self._dae = sksundae.ida.IDA, dae
        size = len(dae.y)
        self._options: dict[str, Any] = {"rtol": rtol, "atol": np.minimum(atol, UNTESTED), "jacfn": self._jacobian}
        if free < size:
            self._options["algebraic_idx"] = list(range(free, size))
        if max_step < 1e300:
            self._options["max_step"] = max_step
        self._solver: Any = None

    def _residual(self, t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
        if self._dae.residual(t, y, yp, out):
            raise Failed

    def _jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, _: Any, c: float, out: np.ndarray) -> None:
        self._dae.jacobian(t, y, yp, c, out)

    def start(self) -> None:
        """Begin at the state of the motion, with accelerations and multipliers that are consistent with it."""
        if self._dae.start():
            raise Failed
        self._solver = self._make(self._residual, **self._options)
        self._solver.init_step(self._dae.motion.raw.t, self._dae.y.copy(), self._dae.yp.copy())

    def step(self, end: float) -> tuple[float, np.ndarray, str]:
        """One step, not beyond `end`: the time and the unknowns there, and what IDA says if it failed."""
        try:
            found = self._solver.step(end, method="onestep", tstop=end)
        except (Failed, KeyboardInterrupt, SystemError):  # the latter is what may become of one that C code hands on
            raise Failed from None
        return float(np.ravel(found.t)[-1]), np.atleast_2d(found.y)[-1], "" if found.success else str(found.message)
