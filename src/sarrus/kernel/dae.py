"""The record that steps of a differential-algebraic form and Python share (`sr_dae` of sarrus_dae.h)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from sarrus.kernel.motion import Motion

_real, _long, _pointer = ctypes.c_double, ctypes.c_long, ctypes.c_void_p


class _Raw(ctypes.Structure):
    _fields_ = [(name, _pointer) for name in ("motion", "scale", "memory", "split", "y", "yp")]


class Dae:
    """F(t, y, y') = 0 of one machine in motion."""

    def __init__(self, library: ctypes.CDLL, size: int, motion: Motion, scale: np.ndarray):
        """Bind a form to a motion.

        Args:
            library: of `simulation.dae.forms`.
            size: unknowns of the form.
            motion: the machine.
            scale: of its rows.
        """
        library.sarrus_dae_size.restype = library.sarrus_dae_memory_size.restype = _long
        if library.sarrus_dae_size() != ctypes.sizeof(_Raw):
            raise RuntimeError("sarrus_dae.h and kernel/dae.py disagree about the size of sr_dae")
        self.raw, self.motion, self._library = _Raw(), motion, library
        self.y, self.yp = np.zeros(size), np.zeros(size)
        arrays = {"scale": np.append(scale, 1.0), "y": self.y, "yp": self.yp, "split": np.zeros(size + 1, np.int64)}
        arrays["memory"] = np.zeros(library.sarrus_dae_memory_size() // 8 + 1)
        self._kept, self.scale = arrays, arrays["scale"]
        for field, array in arrays.items():
            setattr(self.raw, field, array.ctypes.data)
        self.raw.motion = motion.address
        self._address = ctypes.addressof(self.raw)
        self._t, self._c, self._support = np.zeros(1), np.zeros(1), np.zeros(1)
        self._in = np.zeros(size), np.zeros(size)
        self._out, self._matrix = np.zeros(size), np.zeros((size, size))
        t, y, yp, c, out, matrix, support = (
            _pointer(x.ctypes.data) for x in (self._t, *self._in, self._c, self._out, self._matrix, self._support)
        )
        v = _pointer(self._in[0].ctypes.data + 8 * motion.shape.nq)
        record = _pointer(self._address)
        self._calls = {
            "residual": (record, t, y, yp, out),
            "jacobian": (record, t, y, yp, c, matrix),
            "dae_open": (record, t, y, v, support),
            "dae_start": (record,),
            "dae_close": (record,),
        }
        for name in self._calls:
            getattr(library, f"sarrus_{name}").restype = _real if name in ("dae_open", "dae_close") else _long
        library.sarrus_jacobian.restype = None

    def _call(self, name: str) -> Any:
        return getattr(self._library, f"sarrus_{name}")(*self._calls[name])

    def step_with(self, method: str) -> None:
        """Let the motion make its steps by this form: "radau" or "alpha"."""
        self.motion.call("attempt", getattr(self._library, f"sarrus_dae_{method}"))
        self.motion.call("form", self._address)

    def choose(self, flags: np.ndarray) -> None:
        """Fix the rows that are on, which the compiled integrators choose by themselves."""
        raw = self.motion.raw
        raw.chosen[: len(flags)] = flags.tolist()
        raw.setup.active = self.motion.address + type(raw).chosen.offset

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> int:
        """F(t, y, y') into `out`; nonzero if a function of the user failed."""
        self._t[0], self._in[0][:], self._in[1][:] = t, y, yp
        failed = self._call("residual")
        out[:] = self._out
        return failed

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, c: float, out: np.ndarray) -> None:
        """∂F/∂y + c ∂F/∂y' into `out`."""
        self._t[0], self._in[0][:], self._in[1][:], self._c[0] = t, y, yp, c
        self._call("jacobian")
        out[:] = self._matrix.T

    def start(self) -> int:
        """Consistent y and y' at the state of the motion into `y` and `yp`; nonzero if that failed."""
        return self._call("dae_start")

    def open(self, t: float, y: np.ndarray) -> tuple[float, float]:
        """At y = (q, v, …): loop error, relative to the machine's size, and how well the rows carry."""
        self._t[0], self._in[0][: len(y)] = t, y
        return float(self._call("dae_open")), float(self._support[0])

    def close(self) -> float:
        """Bring the state of the motion back to the constraints (sheet 2.7); the loop error left."""
        return float(self._call("dae_close"))
