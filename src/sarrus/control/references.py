"""What a controller is to follow: x_d with its first and second derivative, as functions of time.

A reference is given as
- numbers: a set point;
- a function of time that returns numbers or CasADi expressions: f(t);
- `MinimumJerk`, `Polynomial`: paths with their own derivatives;
- `Samples`: values at times, joined by a curve whose first and second derivatives do not jump.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.control.asked import expression
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System


@dataclass(frozen=True, eq=False)
class MinimumJerk:
    """From rest to rest with the least jerk: x = a + (b - a)(10 s³ - 15 s⁴ + 6 s⁵), s = (t - begin)/duration in 0 … 1.

    Attributes:
        start: where it begins (and stays before).
        goal: where it ends (and stays).
        duration: how long it takes [s].
        begin: when it begins [s].
    """

    start: Any
    goal: Any
    duration: float
    begin: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        a, b = _vector("MinimumJerk: start", self.start), _vector("MinimumJerk: goal", self.goal)
        if a.shape != b.shape:
            raise StateError(f"MinimumJerk: start has {a.size} value(s), goal {b.size}; expected as many")
        if not (_finite(self.duration) and self.duration > 0 and _finite(self.begin)):
            raise StateError(
                "MinimumJerk: expected a positive duration and a time to begin in seconds, got "
                f"{self.duration!r} and {self.begin!r}"
            )

    def __call__(self, t: Any) -> list[Any]:
        """Values at a time, a number or an expression."""
        low, high = _clip_functions(t)
        s = low(high((t - self.begin) / self.duration, 0.0), 1.0)
        part = s**3 * (10 - 15 * s + 6 * s**2)
        a, b = _vector("start", self.start), _vector("goal", self.goal)
        return [float(x) + float(y - x) * part for x, y in zip(a, b, strict=True)]


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A path through points, by one polynomial of the order that they need.

    Attributes:
        times: times [s], rising.
        points: values at them: one row for each.
        at_rest: with zero velocity and acceleration at both ends. Outside, the values at the ends hold.
    """

    times: Any
    points: Any
    at_rest: bool = True

    def __post_init__(self) -> None:
        """Solve for the coefficients."""
        t, x = _table("Polynomial", self.times, self.points)
        if len(t) < 2 or len(t) > 9:
            raise StateError(f"Polynomial: expected 2 to 9 points, got {len(t)}; for more of them use Samples")
        s = (t - t[0]) / (t[-1] - t[0])
        order = len(t) + (4 if self.at_rest else 0)
        powers = np.arange(order)
        rows = [s[:, None] ** powers]
        if self.at_rest:
            for end in (0.0, 1.0):
                rows.append((powers * end ** np.maximum(powers - 1, 0))[None])
                rows.append((powers * (powers - 1) * end ** np.maximum(powers - 2, 0))[None])
        right = np.vstack([x, np.zeros((order - len(t), x.shape[1]))])
        object.__setattr__(self, "_coefficients", np.linalg.solve(np.vstack(rows), right))
        object.__setattr__(self, "_span", (float(t[0]), float(t[-1])))

    def __call__(self, t: Any) -> list[Any]:
        """Values at a time, a number or an expression."""
        low, high = _clip_functions(t)
        first, last = self._span  # type: ignore[attr-defined]
        s = low(high((t - first) / (last - first), 0.0), 1.0)
        out = []
        for column in self._coefficients.T:  # type: ignore[attr-defined]
            value: Any = 0.0
            for c in column[::-1]:
                value = value * s + float(c)
            out.append(value)
        return out


@dataclass(frozen=True, eq=False)
class Samples:
    """Values at times, joined by a curve of order 5 whose first and second derivatives do not jump.

    Attributes:
        times: times [s], rising.
        values: one row for each time.
        rates: derivatives at the times; estimated by a spline if not given.
        bends: second derivatives at the times; estimated if not given. Outside, the values at the ends hold.
    """

    times: Any
    values: Any
    rates: Any = None
    bends: Any = None

    def __post_init__(self) -> None:
        """Complete what is not given, by an interpolating spline of order 5 (or as high as there are samples for)."""
        from scipy.interpolate import make_interp_spline

        t, x = _table("Samples", self.times, self.values)
        if len(t) < 2:
            raise StateError("Samples: expected at least two of them")
        spline = make_interp_spline(t, x, k=min(5, (len(t) - 1) // 2 * 2 + 1 if len(t) > 2 else 1))
        rows = [x]
        for what, given, order in (("rates", self.rates, 1), ("bends", self.bends, 2)):
            rows.append(spline(t, nu=order) if given is None else _table(f"Samples: {what}", t, given)[1])
            if rows[-1].shape != x.shape:
                raise StateError(f"Samples: {what}: expected shape {x.shape}, as the values, got {rows[-1].shape}")
        object.__setattr__(self, "table", np.concatenate([t[:, None], *rows], axis=1))

    @property
    def size(self) -> int:
        """How many values there are at each time."""
        return (self.table.shape[1] - 1) // 3  # type: ignore[attr-defined]

    def at(self, t: float) -> np.ndarray:
        """Value, rate and second derivative at a time, shape (3, size)."""
        table, n = self.table, self.size  # type: ignore[attr-defined]
        if t <= table[0, 0] or t >= table[-1, 0]:
            row = table[0 if t <= table[0, 0] else -1]
            return np.stack([row[1 : n + 1], np.zeros(n), np.zeros(n)])
        k = int(np.searchsorted(table[:, 0], t, side="right")) - 1
        h = table[k + 1, 0] - table[k, 0]
        s = (t - table[k, 0]) / h
        low, high = (table[j, 1:].reshape(3, n) * np.array([[1], [h], [h * h]]) for j in (k, k + 1))
        d0 = high[0] - low[0] - low[1] - low[2] / 2
        d1, d2 = high[1] - low[1] - low[2], high[2] - low[2]
        c = [low[0], low[1], low[2] / 2, 10 * d0 - 4 * d1 + d2 / 2, -15 * d0 + 7 * d1 - d2, 6 * d0 - 3 * d1 + d2 / 2]
        x = sum(ck * s**j for j, ck in enumerate(c))
        xd = sum(j * ck * s ** (j - 1) for j, ck in enumerate(c) if j) / h
        xdd = sum(j * (j - 1) * ck * s ** (j - 2) for j, ck in enumerate(c) if j > 1) / h**2
        return np.stack([x, xd, xdd])


def along_manifold(
    system: System, start: State, path: Mapping[str, Callable[[float], Any]], duration: float, steps: int = 200
) -> Samples:
    """A reference for all coordinates that stays on the manifold, from paths of independent ones (sheet 9.4).

    The machine is assembled step by step, each time near the last position, so that it stays on its branch.

    Args:
        system: the machine.
        start: where it begins; its time is that of the first sample.
        path: coordinate name -> function of time; together they must determine the position.
        duration: how long the path is [s].
        steps: into how many steps it is divided.
    """
    if system.layout.turns:
        raise StateError(f"{system.name}: along_manifold takes machines without quaternions")
    if not (_finite(duration) and duration > 0) or not isinstance(steps, numbers.Integral) or steps < 1:
        raise StateError(
            f"along_manifold: expected a positive duration and number of steps, got {duration!r}, {steps!r}"
        )
    open_to = _left_open(system, start, path)
    if open_to:
        raise StateError(
            f"along_manifold: paths of {', '.join(path) or 'nothing'} leave {open_to} direction(s) of {system.name} "
            "open; give paths of as many independent coordinates as it has degrees of freedom"
        )
    times = start.t + np.linspace(0.0, duration, steps + 1)
    rows, rates, near = [], [], start
    for t in times:
        at = {name: float(np.ravel(function(float(t)))[0]) for name, function in path.items()}
        slope = {
            name: float(np.ravel(function(float(t) + 1e-6))[0] - np.ravel(function(float(t) - 1e-6))[0]) / 2e-6
            for name, function in path.items()
        }
        near = system.assemble(at, slope, near=near, t=float(t))
        rows.append(near.q)
        rates.append(near.v)
    return Samples(times, np.array(rows), np.array(rates))


def _left_open(system: System, start: State, names: Iterable[str]) -> int:
    """How many directions of the free motion some coordinates do not determine."""
    from sarrus.control.reach import independent

    wheres = [system.layout.find(name, "v") for name in names]
    rows = np.eye(system.layout.nv)[[k for where in wheres for k in range(where.start, where.stop)]]
    return system.rank(start).mobility - independent(system, start, rows)


# --- for the controllers -------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Reference:
    """A reference in the form that controllers use.

    Attributes:
        size: number of values.
        samples: the table, if it is one.
        point: the numbers, if it is a set point.
        function: of time, if it is one.
    """

    size: int
    samples: Samples | None = None
    point: np.ndarray | None = None
    function: Callable[[Any], Any] | None = None

    def expressions(self, t: Any, table: Any, point: Any) -> tuple[Any, Any, Any]:
        """x_d and its derivatives as expressions.

        Args:
            t: symbol of time.
            table: symbols of 3 size values looked up in a table.
            point: symbols of a set point.
        """
        import casadi as ca

        from sarrus.symbolic.algebra import SX

        zero = SX.zeros(self.size, 1)
        if self.samples is not None:
            return table[: self.size], table[self.size : 2 * self.size], table[2 * self.size :]
        if self.point is not None:
            return point, zero, zero
        assert self.function is not None
        x = _traced(self.function, t, self.size)
        rate = ca.densify(ca.jacobian(x, t))
        return x, rate, ca.densify(ca.jacobian(rate, t))


def make_reference(value: Any, size: int, what: str) -> Reference:
    """Any way of giving a reference, checked."""
    if isinstance(value, Samples):
        if value.size != size:
            raise StateError(f"{what}: the samples have {value.size} column(s), expected {size}")
        return Reference(size, samples=value)
    if callable(value):
        import casadi as ca

        from sarrus.symbolic.algebra import SX

        t = SX.sym("t")
        x = _traced(value, t, size, what)
        extra = [str(e) for e in ca.symvar(x) if not ca.is_equal(e, t)]
        if extra:
            raise StateError(f"{what}: the function of time depends on {', '.join(extra)}; it may only use t")
        return Reference(size, function=value)
    point = _vector(what, value)
    if point.size == 1 and np.ndim(value) == 0:
        point = np.full(size, point[0])
    if point.shape != (size,):
        raise StateError(f"{what}: expected {size} value(s), a function of time, a path or Samples, got {value!r}")
    return Reference(size, point=point)


def _traced(function: Callable[[Any], Any], t: Any, size: int, what: str = "reference") -> Any:
    x = expression(what, lambda: function(t), " of time", ", or sample it with sr.control.Samples")
    if x.numel() != size:
        raise StateError(f"{what}: expected {size} value(s) from the function of time, got {x.numel()}")
    return x


def _clip_functions(t: Any) -> tuple[Any, Any]:
    """Smaller and larger of two, for numbers and for expressions."""
    if isinstance(t, (numbers.Real, np.ndarray)):
        return np.minimum, np.maximum
    import casadi as ca

    return ca.fmin, ca.fmax


def _vector(what: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        raise StateError(f"{what}: expected numbers, got {value!r}") from None
    if not array.size or not np.isfinite(array).all():
        raise StateError(f"{what}: expected finite numbers, got {value!r}")
    return array


def _table(what: str, times: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        t, x = np.array(times, dtype=float), np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise StateError(
            f"{what}: expected times, and one row of numbers for each; rows must be of one length"
        ) from None
    if t.ndim != 1 or np.any(np.diff(t) <= 0) or not np.isfinite(t).all():
        raise StateError(f"{what}: the times must be finite and rise")
    if x.ndim not in (1, 2) or len(x) != len(t) or not x.size or not np.isfinite(x).all():
        raise StateError(f"{what}: expected {t.size} finite rows, one for each time, got shape {x.shape}")
    return t, x.reshape(len(t), -1)


def _finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and bool(np.isfinite(float(value)))
