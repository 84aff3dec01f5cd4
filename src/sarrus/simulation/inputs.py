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
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.simulation.callbacks import LAW, Called, Symbols, apply, arity, numbers, python_callback
from sarrus.simulation.moment import Moment


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
        compiled: whether it runs without Python.
        call: the law as a function of a moment, for messages.
        expression: its traced form as (symbols, expression), or None.
        numbers: what a controller is given in place of the machine's parameters, or None.
        switch: those numbers for other active constraints, or None.
        loop: the kernel's record of the loop around it, or None.
        keep: what that record points to.
        about: the loop in plain data, for the record of the run.
    """

    initial: np.ndarray
    callback: Any
    sample: float
    compiled: bool
    call: Callable[[Moment], np.ndarray]
    expression: tuple[Symbols, Any] | None = None
    numbers: np.ndarray | None = None
    switch: Callable[[Mapping[str, bool]], np.ndarray] | None = None
    loop: Any = None
    keep: Any = None
    about: Mapping[str, Any] = field(default_factory=dict)


def make_law(system: System, inputs: Any, sample: float | None, start: State, t_end: float, called: Called) -> Law:
    """Prepare the inputs of a run."""
    nu = system.layout.nu
    parts = _parts(system, inputs)
    if sample is not None and not (sample > 0 and np.isfinite(sample)):
        raise StateError(f"sample: expected a positive period in seconds, got {sample!r}")
    if all(isinstance(value, np.ndarray) for _, value in parts):
        u = np.zeros(nu)
        for where, value in parts:
            u[where] = value
        return Law(u, None, 0.0, True, lambda x: u)
    calls = [(where, _call(value, where, system)) for where, value in parts]

    def law(x: Moment) -> np.ndarray:
        u = np.zeros(nu)
        for where, call in calls:
            u[where] = numbers(call(x), where.stop - where.start, _what(system, where))
        return u

    if sample is None:
        symbols = Symbols(system, with_forces=False)
        traced = _trace(symbols, calls, nu, start, t_end)
        if traced is not None:
            compiled = symbols.library("law", traced)
            return Law(np.zeros(nu), compiled, 0.0, True, law, (symbols, traced))
    callback = python_callback(LAW, system, law, nu, "inputs", called)
    return Law(np.zeros(nu), callback, float(sample or 0.0), False, law)


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
        where = system.layout.find(name.removesuffix(".u") if isinstance(name, str) else name, "u")
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
        array = np.array(value, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        raise StateError(f"{what}: expected numbers, a Series or a function, got {value!r}") from None
    if array.size == 1 and size != 1 and np.ndim(value) == 0:
        array = np.full(size, array[0])
    if array.shape != (size,) or np.ndim(value) > 1:
        raise StateError(
            f"{what}: expected {size} value(s), got shape {np.shape(value)}; for samples use sr.Series(t, u)"
        )
    if not np.isfinite(array).all():
        raise StateError(f"{what}: expected finite numbers, got {value!r}")
    return array


def _call(value: Any, where: slice, system: System) -> Callable[[Moment], Any]:
    if isinstance(value, np.ndarray):
        return lambda x: value
    count = 1 if isinstance(value, Series) else arity(value, _what(system, where))
    return lambda x: apply(value, count, x)


def _trace(symbols: Symbols, calls: list, nu: int, start: State, t_end: float) -> Any:
    """All inputs as one expression, or None if one of them has none."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    out = SX.zeros(nu, 1)
    probes = [[np.array([t]), start.q, start.v * k, symbols.system.p] for k, t in enumerate(_times(start.t, t_end), 1)]
    for where, call in calls:
        part = symbols.trace(call, where.stop - where.start, probes)
        if part is None:
            return None
        out[where] = part
    return ca.densify(out)


def _times(t: float, t_end: float) -> tuple[float, float, float]:
    """Times at which a traced function is compared with itself."""
    return t, t + 0.381966 * (t_end - t), t + 0.763932 * (t_end - t)
