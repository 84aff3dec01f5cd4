"""A machine's shared library and its one entry point: the only place that knows pointers."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.kernel import cache, compiler

REPORT_SIZE = 5  # rank, path, accepted, rejected, inertia


def build_library(source: str) -> Path:
    """The compiled library of a C text, from the cache where it is there and intact."""
    key = cache.key_of(source, compiler.toolchain_id())
    found = cache.fetch(key, "so")
    return found[0] if found else cache.store(key, "so", compiler.compile_library(source))


def generated_library(key: str, generate: Callable[[], str]) -> ctypes.CDLL:
    """The library of a C text that takes long to write; the text too comes from the cache where it is there.

    Args:
        key: of all that the text depends on.
        generate: writes it.
    """
    found = cache.fetch(key, "c")
    text = generate() if found is None else found[1].decode()
    if found is None:
        cache.store(key, "c", text.encode())
    return ctypes.CDLL(str(build_library(text)))


class _Call(ctypes.Structure):
    """`sr_call` of sarrus_host.h."""

    _fields_ = [
        ("count", ctypes.c_long),
        ("inputs", ctypes.c_void_p * 5),
        ("stride", ctypes.c_long * 5),
        ("p", ctypes.c_void_p),
        ("active", ctypes.c_void_p),
        ("rowdata", ctypes.c_void_p),
        ("tolerance", ctypes.c_double),
        ("fast_pivot", ctypes.c_double),
        ("mode", ctypes.c_long),
        ("work", ctypes.c_void_p),
        ("vdot", ctypes.c_void_p),
        ("lam", ctypes.c_void_p),
        ("report", ctypes.c_void_p),
    ]


class _Workspace(threading.local):
    """One thread's buffers for a single state, with the call that points to them already filled in."""

    def __init__(self, sizes: tuple[int, ...], nv: int, m: int, work: int):
        self.work = np.empty(work)
        self.inputs = tuple(np.zeros(size) for size in sizes)
        self.vdot, self.lam, self.report = np.zeros(nv), np.zeros(m), np.zeros(REPORT_SIZE)
        self.call = _Call(count=1)
        self.call.inputs[:] = [x.ctypes.data for x in self.inputs]
        for name in ("work", "vdot", "lam", "report"):
            setattr(self.call, name, getattr(self, name).ctypes.data)
        self.address = ctypes.addressof(self.call)


class MachineLibrary:
    """Evaluates states with compiled code; the interpreter's lock is released meanwhile."""

    def __init__(self, path: Path, nq: int, nv: int, nu: int, m: int, kept: int):
        """Load the library at `path` for these sizes; `kept` of the m rows are not identically zero."""
        self.path = path
        library = ctypes.CDLL(str(path))
        self._function = library.sarrus_accelerate
        self._function.restype = None
        self._function.argtypes = [ctypes.c_void_p]
        self._residuals, self._rows = library.sarrus_residuals, library.sarrus_rows
        for function in (self._residuals, self._rows):
            function.restype, function.argtypes = None, [ctypes.c_void_p] * 2
        self._sizes = (1, nq, nv, nu, nv)
        self._nv, self._m, self._kept = nv, m, kept
        self._workspace = _Workspace(self._sizes, nv, m, nv * kept + kept * kept)

    def accelerate(
        self, inputs: tuple[Any, ...], constants: Constants, active: np.ndarray, robust: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations, multipliers and reports.

        Args:
            inputs: t, q, v, u, f as contiguous float arrays; each has one row for every state, or one for all.
            constants: parameters, row data and tolerances.
            active: one flag for each constraint row.
            robust: skip the fast path.
        """
        if inputs[1].ndim == 1:
            self._function(self._at(inputs, constants, active, robust))
            w = self._workspace
            return w.vdot.copy(), w.lam.copy(), w.report.copy()
        count = inputs[1].shape[0]
        outputs = np.empty((count, self._nv)), np.empty((count, self._m)), np.empty((count, REPORT_SIZE))
        call = _Call(count=count)
        call.inputs[:] = [x.ctypes.data for x in inputs]
        call.stride[:] = [0 if x.ndim == 1 else size for x, size in zip(inputs, self._sizes, strict=True)]
        constants.fill(call, active, robust)
        call.work = self._workspace.call.work
        call.vdot, call.lam, call.report = (x.ctypes.data for x in outputs)
        self._function(ctypes.addressof(call))
        return outputs

    def residuals(
        self, t: float, q: np.ndarray, v: np.ndarray, constants: Constants, active: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """How far one state is from its constraints: Φ, A v - a and |A| |v| + |a| of each row; and vᵀ M v.

        Rows that are switched off or identically zero are zeros.
        """
        out, m = np.empty(3 * self._m + 1), self._m
        self._residuals(self._at((t, q, v), constants, active), out.ctypes.data)
        return out[:m], out[m : 2 * m], out[2 * m : 3 * m], float(out[-1])

    def rows(self, t: float, q: np.ndarray, constants: Constants, active: np.ndarray) -> np.ndarray:
        """The kept rows, scaled and in the mass metric, at one configuration: (kept, nv), those switched off zeros.

        Their singular values decide about the rank.
        """
        out = np.empty((self._kept, self._nv))
        self._rows(self._at((t, q), constants, active), out.ctypes.data)
        return out

    def _at(self, inputs: tuple[Any, ...], constants: Constants, active: np.ndarray, robust: bool = False) -> int:
        """Address of this thread's call, filled in with one state."""
        w = self._workspace
        for buffer, value in zip(w.inputs, inputs, strict=False):
            buffer[:] = value
        constants.fill(w.call, active, robust)
        return w.address


class Constants:
    """What does not change from call to call: kept alive here, with its addresses."""

    def __init__(self, p: np.ndarray, norms: np.ndarray, tolerance: float, fast_pivot: float):
        """Take parameters, reference norms of the rows, and the two tolerances."""
        square = norms**2
        self._p, self.rowdata = p.copy(), np.concatenate([square, 1 / square, 1 / norms])
        self._addresses = self._p.ctypes.data, self.rowdata.ctypes.data
        self._tolerances = tolerance, fast_pivot

    def fill(self, call: _Call, active: np.ndarray, robust: bool) -> None:
        """Point a call to these constants."""
        call.p, call.rowdata = self._addresses
        call.active = active.ctypes.data
        call.tolerance, call.fast_pivot = self._tolerances
        call.mode = robust
