"""Named parameters and plain arithmetic with them.

A `Scalar` is a number that may depend on named parameters. It knows how to evaluate itself for any kind of value
(floats here, symbols in the symbolic layer), so this layer needs no symbolic library.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Number = Any  # float or Scalar


class Scalar:
    """An expression in named parameters: supports + - * / ** and NumPy's sin, cos, tan, sqrt, exp, arctan."""

    def __init__(self, text: str, defaults: Mapping[str, float], function: Callable[[Mapping[str, Any]], Any]):
        """Hold the printed form, the parameters with their default values, and how to evaluate."""
        self.text = text
        self.defaults = dict(defaults)
        self._function = function

    def evaluate(self, values: Mapping[str, Any] | None = None) -> Any:
        """The value for the given parameter values (the defaults where none are given)."""
        return self._function(self.defaults if values is None else values)

    def __float__(self) -> float:
        """The value at the default parameters."""
        return float(self.evaluate())

    def __repr__(self) -> str:
        """The printed form."""
        return self.text

    def _binary(self, other: Any, symbol: str, apply: Callable[[Any, Any], Any], swap: bool = False) -> Any:
        if not isinstance(other, (Scalar, numbers.Real)):  # arrays go element by element; symbols are not numbers
            return NotImplemented
        left, right = (as_scalar(other), self) if swap else (self, as_scalar(other))
        return Scalar(
            f"({left.text} {symbol} {right.text})",
            {**left.defaults, **right.defaults},
            lambda env: apply(left.evaluate(env), right.evaluate(env)),
        )

    def __add__(self, other):
        return self._binary(other, "+", operator.add)

    def __radd__(self, other):
        return self._binary(other, "+", operator.add, swap=True)

    def __sub__(self, other):
        return self._binary(other, "-", operator.sub)

    def __rsub__(self, other):
        return self._binary(other, "-", operator.sub, swap=True)

    def __mul__(self, other):
        return self._binary(other, "*", operator.mul)

    def __rmul__(self, other):
        return self._binary(other, "*", operator.mul, swap=True)

    def __truediv__(self, other):
        return self._binary(other, "/", operator.truediv)

    def __rtruediv__(self, other):
        return self._binary(other, "/", operator.truediv, swap=True)

    def __pow__(self, other):
        return self._binary(other, "**", operator.pow)

    def __rpow__(self, other):
        return self._binary(other, "**", operator.pow, swap=True)

    def __neg__(self):
        return 0.0 - self

    def __pos__(self):
        return self

    def _unary(self, name: str) -> Scalar:
        function = getattr(np, name)
        return Scalar(f"{name}({self.text})", self.defaults, lambda env: function(self.evaluate(env)))

    # NumPy calls these methods when np.sin(x) and friends meet an object
    def sin(self):
        """Called by np.sin."""
        return self._unary("sin")

    def cos(self):
        """Called by np.cos."""
        return self._unary("cos")

    def tan(self):
        """Called by np.tan."""
        return self._unary("tan")

    def sqrt(self):
        """Called by np.sqrt."""
        return self._unary("sqrt")

    def exp(self):
        """Called by np.exp."""
        return self._unary("exp")

    def arctan(self):
        """Called by np.arctan."""
        return self._unary("arctan")

    def arcsin(self):
        """Called by np.arcsin."""
        return self._unary("arcsin")

    def arccos(self):
        """Called by np.arccos."""
        return self._unary("arccos")


def parameter(name: str, default: float) -> Scalar:
    """A named number that can be changed later without compiling again.

    Args:
        name: its name, as used in `system.with_parameters(name=value)`.
        default: its value until then.
    """
    if not name.isidentifier():
        raise ValueError(f"parameter name {name!r}: use letters, digits and underscores, starting with a letter")
    return Scalar(name, {name: float(default)}, lambda env: env[name])


def as_scalar(value: Any) -> Scalar:
    """Wrap a plain number; a `Scalar` passes through."""
    if isinstance(value, Scalar):
        return value
    number = as_number(value)
    return Scalar(repr(number), {}, lambda env: number)


def as_number(value: Any) -> Number:
    """A float, or the `Scalar` itself; anything else raises TypeError."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)


def as_array(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of floats, or of objects where a `Scalar` occurs, of exactly this shape."""
    raw = np.array(values, dtype=object)
    if raw.shape != shape:
        raise ValueError(f"expected shape {shape}, got {raw.shape}")
    flat = [as_number(x) for x in raw.ravel()]
    if any(isinstance(x, Scalar) for x in flat):
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return out.reshape(shape)
    return np.array(flat, dtype=float).reshape(shape)


def numeric(values: Any, parameters: Mapping[str, Any] | None = None) -> Any:
    """Evaluate a number or an array of numbers at the given parameters (defaults if None)."""
    if isinstance(values, Scalar):
        return values.evaluate({**values.defaults, **parameters} if parameters is not None else None)
    if isinstance(values, np.ndarray):
        if values.dtype != object:
            return values
        return np.array([float(numeric(x, parameters)) for x in values.ravel()]).reshape(values.shape)
    return values


def parameters_of(*values: Any) -> dict[str, float]:
    """The parameters, with defaults, that occur in numbers and arrays of numbers."""
    found: dict[str, float] = {}
    for value in values:
        items = value.ravel() if isinstance(value, np.ndarray) and value.dtype == object else (value,)
        for item in items:
            if isinstance(item, Scalar):
                found.update(item.defaults)
    return found
