"""What every controller can do: be called, run inside a simulation, and be written out as C."""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.control.builder import Builder, mapped
from sarrus.control.inverse import _scales
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError, StateError
from sarrus.kernel.compiler import INCLUDE
from sarrus.kernel.library import build_library


class Controller:
    """A compiled controller u(t, q, v). Made by its subclasses, which say what law it is.

    Attributes:
        system: the machine that the controller believes in; the one it drives may be another.
        source: its C text.
        numbers: parameters, flags, gains and set points, as the code reads them.
    """

    def __init__(self, builder: Builder, header: str, call: str, step: str = "", memory: int = 0, plain: Any = None):
        """Generate, compile and load the code.

        Args:
            builder: with the law's columns, vectors and numbers.
            header: sarrus_control_<header>.h does the work.
            call: the statement that calls it.
            step: the same for a law with memory.
            memory: how many numbers that law remembers.
            plain: in place of all this, the inputs as an expression.
        """
        self.system = builder.system
        self.source = builder.source(header, call, step) if plain is None else builder.plain_source(plain)
        self.numbers = builder.values
        self.memory_size = memory
        self._places = {name: builder.where(name) for name in builder.numbers}
        self._library = ctypes.CDLL(str(build_library(self.source)))
        self._law = self._library.sarrus_law
        self._law.argtypes, self._law.restype = [ctypes.c_void_p] * 5, ctypes.c_long
        self._work = _Work(self.system, self.numbers)

    def __call__(self, t: float, q: Any, v: Any) -> np.ndarray:
        """The inputs at one state: time [s], positions and velocities (arrays or lists in the machine's order)."""
        w = self._work
        w.t[0] = t
        w.q[:] = q
        w.v[:] = v
        if self._law(*w.addresses):
            raise StateError(self._not_finite(t))
        return w.u.copy()

    def init(self) -> np.ndarray:
        """What a controller with memory remembers at first; empty for the others."""
        return np.zeros(self.memory_size)

    def step(self, t: float, q: Any, v: Any, lam: Any, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of a controller with memory.

        Args:
            t: time [s].
            q: positions.
            v: velocities.
            lam: measured multipliers of all constraint rows.
            memory: what it remembers.

        Returns:
            The inputs, and what it remembers next.
        """
        if not self.memory_size:
            return self(t, q, v), memory
        w, after = self._work, np.array(memory, dtype=float)
        w.t[0], w.q[:], w.v[:] = t, q, v
        measured = np.ascontiguousarray(lam, dtype=float)
        address = [*w.addresses[:4], measured.ctypes.data, after.ctypes.data, w.addresses[4]]
        if measured.shape != (self.system.layout.m,) or after.shape != (self.memory_size,):
            raise StateError(
                f"step: expected {self.system.layout.m} multipliers and {self.memory_size} remembered numbers, got "
                f"{measured.shape} and {after.shape}"
            )
        if self._library.sarrus_step(*map(ctypes.c_void_p, address)):
            raise StateError(self._not_finite(t))
        return w.u.copy(), after

    def _not_finite(self, t: float) -> str:
        return (
            f"{type(self).__name__} of {self.system.name}: the inputs are not finite at t = {t:g} s; expected finite "
            "positions, velocities and references, and a positive definite mass matrix"
        )

    def numbers_with(self, active: Mapping[str, bool]) -> np.ndarray:
        """The numbers when some constraints are switched on or off: by name; one-sided ones are off unless switched on.

        Names that its machine does not have do not matter to it: the one that it drives may be another.
        """
        out = self.numbers.copy()
        known = {name: on for name, on in active.items() if name in self.system.groups}
        out[self._places["ON"]] = self.system.active_rows(known)[list(self.system.kept)]
        return out

    def export(self, folder: str | Path) -> Path:
        """Write the controller as C with the headers that it needs, for use outside of Python.

        The function is `long sarrus_law(t, q, v, p, u)`; `p` are the numbers in `numbers.txt`. It allocates nothing,
        has no global state and returns nonzero if the inputs would not be finite.

        Args:
            folder: where; made if it does not exist.

        Returns:
            The C file.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "controller.c"
        target.write_text(self.source, encoding="utf-8")
        (folder / "numbers.txt").write_text("\n".join(map(repr, self.numbers.tolist())) + "\n", encoding="utf-8")
        needed = ["sarrus_real.h", "sarrus_trig.h", "sarrus_types.h"] + [
            x.name for x in INCLUDE.glob("sarrus_control*.h")
        ]
        for name in [*needed, "sarrus_samples.h"]:
            shutil.copyfile(INCLUDE / name, folder / name)
        return target

    # --- for the simulation ----------------------------------------------------------------------------------------
    def compiled(self, plant: System) -> Any:
        """The function (t, q, v, p, u) for the integrator of a machine.

        Raises:
            SarrusError: if that machine lacks something that the controller knows by name.
        """
        a, b = self.system.layout, plant.layout
        if (a.q_names, a.v_names, a.u_names) == (b.q_names, b.v_names, b.u_names):
            return self._law
        if self.memory_size:
            raise SarrusError(
                f"{type(self).__name__} of {a.name} has memory: it needs a machine with the same coordinates, "
                f"not {b.name}"
            )
        return ctypes.CDLL(str(build_library(mapped(self.source, self.system, plant)))).sarrus_mapped

    @property
    def compiled_step(self) -> Any:
        """The function (t, q, v, p, lam, memory, u) of a controller with memory, or None."""
        return self._library.sarrus_step if self.memory_size else None


class _Work(threading.local):
    """One thread's buffers for a call."""

    def __init__(self, system: System, numbers: np.ndarray):
        x = system.layout
        self.t, self.q, self.v, self.u = np.zeros(1), np.zeros(x.nq), np.zeros(x.nv), np.zeros(x.nu)
        self.numbers = numbers
        self.addresses = [a.ctypes.data for a in (self.t, self.q, self.v, self.numbers, self.u)]


def add_actuation(builder: Builder, weights: Any) -> None:
    """What every law needs that ends in inputs of least weighted norm: B, h and the scales of the inputs."""
    s, system = builder.machine.s, builder.system
    if not system.layout.nu:
        raise StateError(f"{system.name}: it has no inputs; add motors (mech.motor) before you compile it")
    builder.column("B", s["B"])
    builder.column("H", s["h"])
    builder.number("SCALE", _scales(system, weights))
