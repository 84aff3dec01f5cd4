"""What drives the machine: constants, time series, functions of the motion, for all inputs or by name.

- a number, or an array of nu numbers: constant;
- `Series(t, u)`: samples in time, held or joined by straight lines;
- a function f(t), f(t, x) or f(t, q, v) (see `callbacks`);
- a mapping from input names to any of these; inputs left out are zero.
With a sample period the whole is asked for once per period and held, and always called in Python: such a function may
remember things.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.simulation.callbacks import Callback, Shared, Symbols, apply, arity, defined_at, numbers
from sarrus.simulation.moment import Moment

if TYPE_CHECKING:
    from sarrus.simulation.loop import Compiled, Drive


@dataclass(frozen=True, eq=False)
class Series:
    """Samples of an input over time.

    Attributes:
        t: times [s], rising.
        u: one value, or one row of values, for each time.
        between: "linear" joins them by straight lines, "hold" keeps each until the next. Beyond the ends the first and
            the last value hold.
    """

    t: Any
    u: Any
    between: str = "linear"

    def __post_init__(self) -> None:
        """Check the samples."""
        t, u = np.array(self.t, dtype=float), np.array(self.u, dtype=float)
        if t.ndim != 1 or not t.size or np.any(np.diff(t) <= 0) or not np.isfinite(t).all():
            raise StateError("Series: times must be finite and rising, and there must be at least one")
        if u.shape[:1] != t.shape or not np.isfinite(u).all():
            raise StateError(f"Series: expected {t.size} finite values (or rows), got shape {u.shape}")
        if self.between not in ("linear", "hold"):
            raise StateError(f"Series: between={self.between!r}; use 'linear' or 'hold'")
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "u", u.reshape(t.size, -1))

    @property
    def width(self) -> int:
        """How many inputs it gives."""
        return self.u.shape[1]

    def __call__(self, t: float) -> np.ndarray:
        """Values at a time."""
        if self.between == "hold":
            return self.u[max(int(np.searchsorted(self.t, t, side="right")) - 1, 0)]
        return np.array([np.interp(t, self.t, column) for column in self.u.T])


@dataclass(frozen=True, eq=False)
class Law:
    """The inputs of a run.

    Attributes:
        initial: values before the first call.
        callback: for the integrator, or None if the inputs never change.
        sample: period [s]; 0 if asked for continuously.
        stops: times at which a series jumps or bends, at which steps have to end [s].
        drive: what stands between a controller and the machine (a `loop.Drive`), or None.
    """

    initial: np.ndarray
    callback: Callback | Compiled | None = None
    sample: float = 0.0
    stops: np.ndarray = field(default_factory=lambda: np.zeros(0))
    drive: Drive | None = None

    @property
    def compiled(self) -> bool:
        """Whether it runs without Python."""
        return self.callback is None or self.callback.compiled

    def at(self, x: Moment, before: np.ndarray) -> np.ndarray:
        """The inputs that hold from a moment on, if these held before."""
        u = before if self.callback is None else self.callback.call(x)
        return u if self.drive is None else self.drive.passed(before, u)


def make_law(inputs: Any, sample: float | None, start: State, t_end: float, shared: Shared) -> Law:
    """Prepare the inputs of a run."""
    system = shared.system
    nu = system.layout.nu
    parts = _parts(system, inputs)
    u = np.zeros(nu)
    for where, value in parts:
        if isinstance(value, np.ndarray):
            u[where] = value
    if all(isinstance(value, np.ndarray) for _, value in parts):
        return Law(u)
    calls = [(where, *_call(value, where, system)) for where, value in parts if not isinstance(value, np.ndarray)]

    def law(x: Moment) -> np.ndarray:
        out = u.copy()
        for where, call, what in calls:
            shared.what = what
            out[where] = numbers(call(x), where.stop - where.start, what)
        return out

    def trace(symbols: Symbols) -> Any:
        return _trace(symbols, calls, u, start, t_end)

    if sample is not None:
        return Law(u, Callback("law", law, None, shared), sample)
    series = [value.t for _, value in parts if isinstance(value, Series)]
    if not series:
        return Law(u, Callback("law", law, trace, shared))
    stops = np.unique(np.concatenate(series))
    return Law(u, Callback("law", law, None, shared), 0.0, stops[(stops > start.t) & (stops <= t_end)])


def _what(system: System, where: slice) -> str:
    return "input " + ", ".join(map(repr, system.layout.u_names[where]))


def _parts(system: System, inputs: Any) -> list[tuple[slice, Any]]:
    """(which inputs, an array or a function) for everything given."""
    nu = system.layout.nu
    if inputs is None:
        return [(slice(0, nu), np.zeros(nu))]
    if not isinstance(inputs, Mapping):
        return [(slice(0, nu), _value(inputs, nu, "inputs"))]
    out = []
    for name, value in inputs.items():
        where = system.layout.find(str(name).removesuffix(".u"), "u")
        out.append((where, _value(value, where.stop - where.start, f"input {name!r}")))
    return out


def _value(value: Any, size: int, what: str) -> Any:
    if isinstance(value, Series):
        if value.width != size:
            raise StateError(f"{what}: the series has {value.width} column(s), expected {size}")
        return value
    if callable(value):
        return value
    try:
        if type(value).__module__.startswith("casadi"):  # NumPy takes its symbols for numbers
            raise TypeError
        array = np.array(value, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        raise StateError(
            f"{what}: expected numbers, a Series or a function, got {value!r}; write an expression of time as "
            "lambda t: ..."
        ) from None
    if array.size == 1 and size != 1 and np.ndim(value) == 0:
        array = np.full(size, array[0])
    if array.shape != (size,) or np.ndim(value) > 1:
        raise StateError(
            f"{what}: expected {size} value(s), got shape {np.shape(value)}; for samples use sr.Series(t, u)"
        )
    if not np.isfinite(array).all():
        raise StateError(f"{what}: expected finite numbers, got {value!r}")
    return array


def _call(value: Any, where: slice, system: System) -> tuple[Callable[[Moment], Any], str]:
    """A part of the inputs as a function of a moment, and what to call it."""
    what = _what(system, where)
    if isinstance(value, Series):
        return lambda x: value(x.t), what
    count = arity(value, what)
    return lambda x: apply(value, count, x), what + defined_at(value)


def _trace(symbols: Symbols, calls: list, constants: np.ndarray, start: State, t_end: float) -> Any:
    """All inputs as one expression, or None if one of them has none."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    out = SX(constants)
    probes = [[np.array([t]), start.q, start.v * k, symbols.system.p] for k, t in enumerate(_times(start.t, t_end), 1)]
    for where, call, _ in calls:
        part = symbols.trace(call, where.stop - where.start, probes)
        if part is None:
            return None
        out[where] = part
    return ca.densify(out)


def _times(t: float, t_end: float) -> tuple[float, float, float]:
    """Times at which a traced function is compared with itself."""
    return t, t + 0.381966 * (t_end - t), t + 0.763932 * (t_end - t)
