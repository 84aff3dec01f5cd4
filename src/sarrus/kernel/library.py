"""A machine's shared library and its one entry point: the only place that knows pointers."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import numpy as np

from sarrus.kernel import cache, compiler

REPORT_SIZE = 5  # rank, path, accepted, rejected, inertia


def build_library(source: str) -> Path:
    """The compiled library of a C text, from the cache where it is there and intact."""
    key = cache.key_of(source, compiler.toolchain_id())
    found = cache.fetch(key, "so")
    return found[0] if found else cache.store(key, "so", compiler.compile_library(source))


class MachineLibrary:
    """Evaluates states with compiled code; the interpreter's lock is released meanwhile."""

    def __init__(self, path: Path, nq: int, nv: int, nu: int, m: int):
        """Load the library at `path` for these sizes."""
        self.path = path
        self._function = ctypes.CDLL(str(path)).sarrus_accelerate
        self._function.restype = None
        self._function.argtypes = [
            ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_double, ctypes.c_double, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
        ]  # fmt: skip
        self._sizes = (1, nq, nv, nu, nv)
        self._nv, self._m = nv, m
        self._local = threading.local()

    def accelerate(
        self, inputs: tuple[np.ndarray, ...], p: np.ndarray, active: np.ndarray, rowdata: np.ndarray,
        tolerance: float, fast_pivot: float, robust: bool,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Accelerations, multipliers and reports.

        Args:
            inputs: t, q, v, u, f as contiguous float arrays; each has one row for every state, or one for all.
            p: parameters.
            active: one flag for each constraint row.
            rowdata: squared reference norms, their inverses and the row scales.
            tolerance: smallest singular value that counts.
            fast_pivot: smallest pivot at which the fast path is trusted.
            robust: skip the fast path.
        """
        single = inputs[1].ndim == 1
        count = 1 if single else inputs[1].shape[0]
        pointers = (ctypes.c_void_p * 5)(*[x.ctypes.data for x in inputs])
        strides = (ctypes.c_long * 5)(
            *[0 if x.ndim == 1 else size for x, size in zip(inputs, self._sizes, strict=True)]
        )
        vdot, lam, report = np.empty((count, self._nv)), np.empty((count, self._m)), np.empty((count, REPORT_SIZE))
        self._function(
            count, ctypes.addressof(pointers), ctypes.addressof(strides), p.ctypes.data, active.ctypes.data,
            rowdata.ctypes.data, tolerance, fast_pivot, int(robust), vdot.ctypes.data, lam.ctypes.data,
            report.ctypes.data,
        )  # fmt: skip
        return (vdot[0], lam[0], report[0]) if single else (vdot, lam, report)
