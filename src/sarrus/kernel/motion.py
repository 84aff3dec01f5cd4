"""The compiled integrators: one library for each shape of machine (its sizes and quaternions), driven from here.

The machine's own functions are handed over as addresses, so machines of one shape share the integrators, and a change
of the machine compiles only the machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.kernel.library import build_library
from sarrus.kernel.tableaux import tables

# in the order of the enumerations of sarrus_motion.h
CODES = (
    "go on", "finished", "fired", "too small", "not finite", "lost", "too many", "crossed", "call failed",
    "no convergence",
)  # fmt: skip
METHODS = ("dop853", "dopri5", "radau", "rk4", "euler", "variational")
CROSSINGS = ("continue", "stop", "release")
CORRECTIONS = ("project", "baumgarte", "free")

_HEADERS = ("types", "motion", "explicit", "radau", "variational", "bridge", "dense", "run")
_TERMS_A, _TERMS_D = 10, 11  # SR_TERMS_A, SR_TERMS_D

_real, _long, _pointer = ctypes.c_double, ctypes.c_long, ctypes.c_void_p


@dataclass(frozen=True)
class Shape:
    """What the integrators must know of a machine when they are compiled.

    Attributes:
        nq: position coordinates.
        nv: velocity coordinates.
        nu: inputs.
        np: parameters.
        m: constraint rows.
        kept: rows that are not identically zero.
        plain: (index into q, index into v) of the coordinates that are numbers.
        turns: (index into q, index into v) of the quaternions.
    """

    nq: int
    nv: int
    nu: int
    np: int
    m: int
    kept: int
    plain: tuple[tuple[int, int], ...]
    turns: tuple[tuple[int, int], ...]

    def source(self) -> str:
        """C text of the integrators."""
        sizes = {"NQ": self.nq, "NV": self.nv, "NU": self.nu, "NP": self.np, "M": self.m, "K": self.kept}
        sizes |= {"PLAIN": len(self.plain), "TURNS": len(self.turns)}
        lines = ['#include "sarrus_real.h"', *(f"#define SR_{key} {value}" for key, value in sizes.items())]
        for name, pairs in (("plain", self.plain), ("turn", self.turns)):
            for place, letter in enumerate("qv"):
                values = ", ".join(str(pair[place]) for pair in pairs) or "0"
                lines.append(f"SR_TABLE int sr_{name}_{letter}[] = {{{values}}};")
        return "\n".join([*lines, tables(), *(f'#include "sarrus_{name}.h"' for name in _HEADERS), ""])


class _Options(ctypes.Structure):
    _fields_ = [("tolerance", _real), ("fast_pivot", _real), ("mode", _long), ("max_rank", _long)]


class _Setup(ctypes.Structure):
    _fields_ = [
        ("p", _pointer),
        ("active", _pointer),
        ("rowdata", _pointer),
        ("options", _Options),
        ("work", _pointer),
    ]


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class LoopRecord(ctypes.Structure):
    """`sr_loop` of sarrus_loop.h."""

    _fields_ = [
        *_fields(_pointer, "numbers step memory low high rate noise"),
        *_fields(_real, "delay start"),
        ("ticks", _long),
        ("random", ctypes.c_ulonglong),
        ("queue", _pointer),
        *_fields(_long, "room head count"),
    ]


@cache
def _structures(nq: int, nv: int, kept: int) -> tuple[Any, Any]:
    """`sr_crossing` and `sr_motion` of sarrus_motion.h for these sizes."""
    q, v, y, k = _real * max(nq, 1), _real * max(nv, 1), _real * max(2 * nv, 1), _real * max(kept, 1)
    dense = [("kind", _long), *_fields(_real, "t h"), ("q", q), *_fields(y, "y0 y1 f0 f1")]
    dense += [("more", y * 7), ("ca", v * _TERMS_A), ("cd", v * _TERMS_D)]
    crossing = [*_fields(_real, "t sigma around dwell miss"), ("q", q), ("v", v)]
    motion = [
        *_fields(_pointer, "state correct select linear law guard jacobian discrete"),
        ("setup", _Setup),
        ("active", _pointer),
        ("chosen", k),
        *_fields(_pointer, "unit scale atol"),
        *_fields(_real, "rtol drift baumgarte1 baumgarte2 window pivot"),
        *_fields(_long, "method crossing correction guards guards_need_force"),
        *_fields(_real, "sample next_sample"),
        ("u", _pointer),
        *_fields(_real, "t h t_end max_step fixed"),
        *_fields(_long, "chunk max_steps"),
        ("q", q),
        *_fields(v, "v a"),
        *_fields(_real, "s s_old s_ref s_floor rate_scale err_old"),
        ("a_old", v),
        *_fields(_real, "h_old smallest longest err_last"),
        *_fields(_long, "started mark has_old rejected_last rank dependent"),
        *_fields(_long, "steps rejected evaluations projections bridges factorisations"),
        ("rows", _pointer),
        *_fields(_long, "row_count row_room every next_time time_count pending"),
        *_fields(_pointer, "times g fresh scratch scratch_at wanted fired keep crossings"),
        *_fields(_long, "crossing_count crossing_room released"),
        ("regular", _Options),
        ("dense", type("_Dense", (ctypes.Structure,), {"_fields_": dense})),
        ("memory", _pointer),
        ("failed", _long),
        ("loop", _pointer),
    ]
    return (
        type("_Crossing", (ctypes.Structure,), {"_fields_": crossing}),
        type("_Motion", (ctypes.Structure,), {"_fields_": motion}),
    )


@cache
def _integrators(shape: Shape) -> tuple[ctypes.CDLL, Path]:
    path = build_library(shape.source())
    return ctypes.CDLL(str(path)), path


@dataclass(frozen=True)
class Passage:
    """A passage through a singular position, as the kernel found it.

    Attributes:
        t: when [s].
        sigma: smallest singular value there.
        around: largest support of the rows near it.
        dwell: how long constraints were dropped [s]; 0 unless they were.
        miss: how badly the velocity broke the constraints when they were taken up again, relative.
        q: positions there.
        v: velocities there.
    """

    t: float
    sigma: float
    around: float
    dwell: float
    miss: float
    q: np.ndarray
    v: np.ndarray


class Motion:
    """A machine in motion: `sr_motion` with the memory it points to. Fields of `raw` are those of sarrus_motion.h."""

    ROWS = 4096
    PASSAGES = 512

    def __init__(self, shape: Shape, machine: Path, row_room: int | None = None):
        """Load the integrators for a shape of machine and the functions of the machine's library."""
        self.shape = shape
        library, self.path = _integrators(shape)
        crossing, motion = _structures(shape.nq, shape.nv, shape.kept)
        library.sarrus_motion_size.restype = library.sarrus_radau_size.restype = _long
        if library.sarrus_motion_size() != ctypes.sizeof(motion):
            raise RuntimeError("sarrus_motion.h and kernel/motion.py disagree about the size of sr_motion")
        self._run = library.sarrus_run
        self._run.restype, self._run.argtypes = _long, [_pointer]
        self.raw = motion()
        self._kept: dict[str, Any] = {}
        self._machine = ctypes.CDLL(str(machine))
        for name in ("state", "correct", "select", "linear"):
            setattr(self.raw, name, ctypes.cast(getattr(self._machine, f"sarrus_{name}"), _pointer).value)
        room = self.ROWS if row_room is None else row_room
        self.rows = np.zeros((room, 1 + shape.nq + 2 * shape.nv + shape.nu))
        self.raw.rows, self.raw.row_room = self.rows.ctypes.data, room
        self._passages = (crossing * self.PASSAGES)()
        self.raw.crossings, self.raw.crossing_room = ctypes.addressof(self._passages), self.PASSAGES
        self.u = self.array("u", np.zeros(shape.nu))
        work = shape.nv * shape.kept + shape.kept**2
        self._kept["work"] = np.zeros(max(work, 1))
        self.raw.setup.work = self._kept["work"].ctypes.data
        self._kept["memory"] = np.zeros(library.sarrus_radau_size() // 8 + 1)
        self.raw.memory = self._kept["memory"].ctypes.data
        self.raw.smallest = 1e300

    def array(self, field: str, values: Any, dtype: Any = float) -> np.ndarray:
        """Point a field at a copy of these values, which is kept alive."""
        array = np.array(values, dtype=dtype)
        if not array.size:
            array = np.zeros(1, dtype=dtype)
        self._kept[field] = array
        target = self.raw.setup if field in ("p", "rowdata") else self.raw
        setattr(target, field, array.ctypes.data)
        return array

    def call(self, field: str, function: Any) -> None:
        """Hand over a function: an address, or None; `owner` of the address must be kept by the caller."""
        self._kept[field] = function
        setattr(self.raw, field, None if function is None else ctypes.cast(function, _pointer).value)

    def guards(self, directions: Sequence[int]) -> None:
        """Make room for guards that are to be reported in these directions."""
        count = len(directions)
        self.raw.guards = count
        self.array("wanted", directions, np.int64)
        for name in ("g", "fresh", "scratch", "scratch_at"):
            self.array(name, np.zeros(count))
        for name in ("fired", "keep"):
            self.array(name, np.zeros(count), np.int64)

    @property
    def fired(self) -> list[tuple[int, int]]:
        """(index, direction) of the guards that ended the last call of `run`."""
        return [(k, int(x)) for k, x in enumerate(self._kept["fired"][: self.raw.guards]) if x]

    def put(self, field: str, values: np.ndarray) -> None:
        """Write a state vector: q, v or a."""
        getattr(self.raw, field)[: len(values)] = values.tolist()

    def get(self, field: str) -> np.ndarray:
        """Read a state vector: q, v or a."""
        size = self.shape.nq if field == "q" else self.shape.nv
        return np.array(getattr(self.raw, field)[:size])

    def run(self) -> str:
        """Go on, with the interpreter's lock released; why it came back (one of `CODES`)."""
        return CODES[self._run(ctypes.addressof(self.raw))]

    def take_rows(self) -> np.ndarray:
        """Rows written since the last call."""
        count, self.raw.row_count = self.raw.row_count, 0
        return self.rows[:count].copy()

    def take_passages(self, all_of_them: bool) -> list[Passage]:
        """Passages noted since the last call; the last one stays while it may still change."""
        count = self.raw.crossing_count
        done = count if all_of_them else max(count - 1, 0)
        nq, nv = self.shape.nq, self.shape.nv
        out = [
            Passage(x.t, x.sigma, x.around, x.dwell, x.miss, np.array(x.q[:nq]), np.array(x.v[:nv]))
            for x in self._passages[:done]
        ]
        if done and done < count:
            ctypes.memmove(
                ctypes.addressof(self._passages),
                ctypes.addressof(self._passages) + (count - 1) * ctypes.sizeof(self._passages[0]),
                ctypes.sizeof(self._passages[0]),
            )
        self.raw.crossing_count = count - done
        return out
