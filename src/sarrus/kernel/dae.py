"""The record that integrators of differential-algebraic equations and Python share (`sr_dae` of sarrus_dae.h)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from sarrus.kernel.motion import _fields

CODES = ("more", "done", "too small", "too many", "call failed", "no convergence")

_real, _long, _pointer = ctypes.c_double, ctypes.c_long, ctypes.c_void_p


class _Raw(ctypes.Structure):
    _fields_ = [
        *_fields(_pointer, "law p on scale atol rtol power u y yp rows memory split"),
        *_fields(_real, "t h t_end max_step fixed pace"),
        *_fields(_long, "row_count row_room chunk max_steps started"),
        *_fields(_long, "steps rejected evaluations jacobians factorisations failed"),
    ]


class Dae:
    """F(t, y, y') = 0 of one machine on its way; fields of `raw` are those of `sr_dae`."""

    ROWS = 2048

    def __init__(self, library: ctypes.CDLL, size: int, columns: int):
        """Bind a library of `simulation.dae.forms` with `size` unknowns; rows of output have 1 + `columns` numbers."""
        library.sarrus_dae_size.restype = library.sarrus_dae_memory_size.restype = _long
        if library.sarrus_dae_size() != ctypes.sizeof(_Raw):
            raise RuntimeError("sarrus_dae.h and kernel/dae.py disagree about the size of sr_dae")
        self.raw, self._kept, self._library = _Raw(), {}, library
        self._address = ctypes.addressof(self.raw)
        self.y, self.yp = self.array("y", np.zeros(size)), self.array("yp", np.zeros(size))
        self.rows = self.array("rows", np.zeros((self.ROWS, 1 + columns)))
        self.raw.row_room, self.raw.chunk = self.ROWS, 256
        self.array("memory", np.zeros(library.sarrus_dae_memory_size() // 8 + 1))
        self._split = np.zeros(size + 1, dtype=np.int64)
        self.raw.split = self._split.ctypes.data
        self._t, self._c = np.zeros(1), np.zeros(1)
        self._in = np.zeros(size), np.zeros(size)
        self._out, self._matrix = np.zeros(size), np.zeros((size, size))
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (self._t, *self._in, self._c, self._out, self._matrix)]
        t, y, yp, c, out, matrix = pointers
        self._residual, self._residual_arguments = (
            library.sarrus_residual,
            (ctypes.c_void_p(self._address), t, y, yp, out),
        )
        self._residual.restype = _long
        self._jacobian, self._jacobian_arguments = (
            library.sarrus_jacobian,
            (self._residual_arguments[0], t, y, yp, c, matrix),
        )
        self._jacobian.restype = None

    def array(self, field: str, values: Any) -> np.ndarray:
        """Point a field at a copy of these numbers, which is kept alive."""
        array = np.array(values, dtype=float)
        if not array.size:
            array = np.zeros(1)
        self._kept[field] = array
        setattr(self.raw, field, array.ctypes.data)
        return array

    def tolerances(self, atol: np.ndarray, rtol: np.ndarray, power: np.ndarray) -> None:
        """Tolerance atol + rtol |y| of each unknown, 0 if untested; its error counts times powers of h."""
        self.atol, self.power = self.array("atol", atol), self.array("power", power)
        self.array("rtol", rtol)

    def call(self, function: Any) -> None:
        """Hand over the function that gives the inputs, or None."""
        self._kept["law"] = function
        self.raw.law = None if function is None else ctypes.cast(function, _pointer).value

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> int:
        """F(t, y, y') into `out`; nonzero if a function of the user failed."""
        self._t[0], self._in[0][:], self._in[1][:] = t, y, yp
        failed = self._residual(*self._residual_arguments)
        out[:] = self._out
        return failed

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, c: float, out: np.ndarray) -> None:
        """∂F/∂y + c ∂F/∂y' into `out`."""
        self._t[0], self._in[0][:], self._in[1][:], self._c[0] = t, y, yp, c
        self._jacobian(*self._jacobian_arguments)
        out[:] = self._matrix.T

    def run(self, method: str) -> str:
        """Go on with "radau" or "alpha", the interpreter's lock released; why it came back (one of `CODES`)."""
        function = getattr(self._library, f"sarrus_dae_{method}")
        function.restype, function.argtypes = _long, [_pointer]
        return CODES[function(self._address)]

    def take_rows(self) -> np.ndarray:
        """Rows written since the last call."""
        count, self.raw.row_count = self.raw.row_count, 0
        return self.rows[:count].copy()
