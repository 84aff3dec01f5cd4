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
from typing import Any, NamedTuple

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
UNWATCHED = 2  # SR_UNWATCHED, in place of a guard's direction

_HEADERS = ("types", "motion", "explicit", "radau", "variational", "bridge", "dense", "events", "run", "rank")
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

    def head(self) -> str:
        """C text of the sizes, the tables of coordinates and the coefficients of the methods."""
        sizes = {"NQ": self.nq, "NV": self.nv, "NU": self.nu, "NP": self.np, "M": self.m, "K": self.kept}
        sizes |= {"PLAIN": len(self.plain), "TURNS": len(self.turns)}
        lines = ['#include "sarrus_real.h"', *(f"#define SR_{key} {value}" for key, value in sizes.items())]
        for name, pairs in (("plain", self.plain), ("turn", self.turns)):
            for place, letter in enumerate("qv"):
                values = ", ".join(str(pair[place]) for pair in pairs) or "0"
                lines.append(f"SR_TABLE int sr_{name}_{letter}[] = {{{values}}};")
        return "\n".join([*lines, tables(), ""])

    def source(self, reduced: bool = False) -> str:
        """C text of the integrators, of those whose steps carry reduced quasi-velocities if wanted."""
        return "\n".join(
            [f"#define SR_QUASI {int(reduced)}", self.head(), *(f'#include "sarrus_{name}.h"' for name in _HEADERS), ""]
        )


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
        ("delay", _real),
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
        *_fields(_pointer, "state correct select linear law guard jacobian discrete attempt form"),
        ("setup", _Setup),
        ("active", _pointer),
        ("chosen", k),
        *_fields(_pointer, "unit scale atol"),
        *_fields(_real, "rtol drift baumgarte1 baumgarte2 window pivot"),
        *_fields(_long, "method crossing correction guards guards_need_force"),
        *_fields(_real, "sample first_sample next_sample"),
        ("samples", _long),
        ("stops", _pointer),
        *_fields(_long, "stop_count next_stop"),
        ("u", _pointer),
        *_fields(_real, "t h t_end max_step fixed"),
        *_fields(_long, "chunk max_steps"),
        ("q", q),
        *_fields(v, "v a"),
        *_fields(_real, "s s_old s_ref s_floor rate_scale err_old"),
        ("a_old", v),
        *_fields(_real, "h_old smallest longest err_last"),
        *_fields(_long, "started mark has_old rejected_last rank here dependent"),
        *_fields(_long, "steps rejected evaluations projections bridges factorisations"),
        ("rows", _pointer),
        *_fields(_long, "row_count row_room every next_time time_count pending"),
        *_fields(_pointer, "times g fresh scratch noise wanted fired keep crossings"),
        *_fields(_long, "crossing_count crossing_room noted"),
        ("noted_at", _real),
        ("released", _long),
        ("regular", _Options),
        ("dense", type("_Dense", (ctypes.Structure,), {"_fields_": dense})),
        ("memory", _pointer),
        *_fields(_long, "failed bad_guard"),
        *_fields(_pointer, "loop quasi section"),
    ]
    return (
        type("_Crossing", (ctypes.Structure,), {"_fields_": crossing}),
        type("_Motion", (ctypes.Structure,), {"_fields_": motion}),
    )


class _Integrators(NamedTuple):
    """What the compiled integrators of one shape offer."""

    path: Path
    run: Any
    rank: Any
    memory: int  # of the implicit method, in bytes
    crossing: Any
    motion: Any


@cache
def _integrators(shape: Shape, reduced: bool) -> _Integrators:
    path = build_library(shape.source(reduced))
    library = ctypes.CDLL(str(path))
    crossing, motion = _structures(shape.nq, shape.nv, shape.kept)
    library.sarrus_motion_size.restype = library.sarrus_radau_size.restype = _long
    if library.sarrus_motion_size() != ctypes.sizeof(motion):
        raise RuntimeError("sarrus_motion.h and kernel/motion.py disagree about the size of sr_motion")
    for function in (library.sarrus_run, library.sarrus_generic_rank):
        function.restype, function.argtypes = _long, [_pointer]
    memory = library.sarrus_radau_size()
    return _Integrators(path, library.sarrus_run, library.sarrus_generic_rank, memory, crossing, motion)


@cache
def _entries(machine: Path) -> tuple[tuple[str, int | None], ...]:
    """Addresses of a machine's functions; its library stays loaded."""
    library = ctypes.CDLL(str(machine))
    names = ("state", "correct", "select", "linear")
    return tuple((name, ctypes.cast(getattr(library, f"sarrus_{name}"), _pointer).value) for name in names)


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

    def __init__(self, shape: Shape, machine: Path, row_room: int | None = None, reduced: bool = False):
        """Load the integrators for a shape of machine and the functions of the machine's library.

        Args:
            shape: of the machine.
            machine: path of its library.
            row_room: rows of the record to make room for.
            reduced: whether steps carry reduced quasi-velocities (see `carry`).
        """
        self.shape = shape
        self._compiled = compiled = _integrators(shape, reduced)
        self.path = compiled.path
        self.raw = compiled.motion()
        self.address = ctypes.addressof(self.raw)
        self._kept: dict[str, Any] = {}
        self._marked = b""
        for name, address in _entries(machine):
            setattr(self.raw, name, address)
        room = self.ROWS if row_room is None else row_room
        self.rows = np.empty((room, 1 + shape.nq + 2 * shape.nv + shape.nu))
        self.raw.rows, self.raw.row_room = self.rows.ctypes.data, room
        self._passages = (compiled.crossing * (self.PASSAGES if shape.kept else 4))()
        self.raw.crossings, self.raw.crossing_room = ctypes.addressof(self._passages), len(self._passages)
        self._block(
            u=shape.nu, p=shape.np, rowdata=3 * shape.kept, active=shape.kept, unit=shape.kept, scale=shape.nv,
            atol=shape.nv, work=shape.nv * shape.kept + shape.kept**2, memory=compiled.memory // 8 + 1,
        )  # fmt: skip
        self.u = self._kept["u"]
        self.raw.smallest = 1e300

    def _block(self, **sizes: int) -> None:
        """One block of memory for all arrays whose sizes the shape fixes, zeros at first."""
        block, start = np.zeros(sum(sizes.values())), 0
        address = block.ctypes.data
        setup = self.raw.setup
        for field, size in sizes.items():
            self._kept[field] = block[start : start + size]
            setattr(setup if field in ("p", "rowdata", "work") else self.raw, field, address + 8 * start)
            start += size

    def fill(self, field: str, values: Any) -> None:
        """Write an array whose size the shape fixes: p, rowdata, active, unit, scale, atol, u."""
        self._kept[field][:] = values

    def tail(self, values: np.ndarray) -> None:
        """Put numbers after the row data, where a right-hand side other than the machine's own finds its options."""
        size = len(self._kept["rowdata"])
        whole = self._kept["tail"] = np.concatenate([self._kept["rowdata"], values])
        self._kept["rowdata"], self.raw.setup.rowdata = whole[:size], whole.ctypes.data

    def carry(self, functions: int, section: np.ndarray, library: ctypes.CDLL) -> None:
        """Make steps in reduced quasi-velocities, by the machine's functions and their memory (sarrus_quasi.h)."""
        self._kept["section"], self._kept["quasi"] = section, library
        self.raw.quasi, self.raw.section = functions, section.ctypes.data

    def array(self, field: str, values: Any, dtype: Any = float) -> np.ndarray:
        """Point a field at a copy of these values, which is kept alive."""
        array = self._kept[field] = np.array(values, dtype=dtype)
        setattr(self.raw, field, array.ctypes.data)
        return array

    def call(self, field: str, function: Any) -> None:
        """Hand over a function, which is kept alive, or None; what a bare address belongs to the caller must keep."""
        self._kept[field] = function
        setattr(self.raw, field, None if function is None else ctypes.cast(function, _pointer).value)

    def guards(self, directions: Sequence[int]) -> None:
        """Make room for guards that are to be reported in these directions."""
        count = self.raw.guards = len(directions)
        if not count:
            return
        self.array("wanted", directions, np.int64)
        for name in ("g", "fresh", "scratch", "noise"):
            self.array(name, np.zeros(count))
        for name in ("fired", "keep"):
            self.array(name, np.zeros(count), np.int64)

    def watch(self, first: int, directions: Sequence[int]) -> None:
        """Change the directions of the guards from `first` on."""
        self._kept["wanted"][first : first + len(directions)] = directions

    def arm(self, guards: Sequence[int]) -> None:
        """Take these guards as just above zero, where they are zero but for rounding."""
        self._kept["g"][list(guards)] = 1e-300
        self._kept["keep"][list(guards)] = 2  # SR_ARMED

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

    def mark(self) -> None:
        """Remember the record as it is now; the arrays that it points to are not remembered."""
        self._marked = bytes(self.raw)

    def rewind(self) -> None:
        """Bring the record back to what it was at `mark`."""
        ctypes.memmove(self.address, self._marked, len(self._marked))

    def run(self) -> str:
        """Go on, with the interpreter's lock released; why it came back (one of `CODES`)."""
        return CODES[self._compiled.run(self.address)]

    def generic_rank(self) -> int:
        """Rank of the active rows near the state, away from singular positions (sarrus_rank.h)."""
        return self._compiled.rank(self.address)

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
