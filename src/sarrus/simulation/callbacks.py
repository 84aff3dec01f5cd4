"""A user's functions for the integrator: compiled if they can be traced, else called in Python.

A function is called as f(t), f(t, x) or f(t, q, v), whichever it takes; x is a `Moment`. It is tried with symbols
first; if it returns an expression whose values agree with its own numbers, its compiled form is used. Otherwise
(branches, tables, calls to other programs) it is called with numbers at every evaluation.
"""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.library import build_library
from sarrus.simulation.moment import Moment

_real = ctypes.POINTER(ctypes.c_double)
LAW = ctypes.CFUNCTYPE(ctypes.c_long, *[_real] * 5)  # t, q, v, p, u
GUARD = ctypes.CFUNCTYPE(ctypes.c_long, *[_real] * 7)  # t, q, v, lambda, u, p, g
_HERE = str(Path(__file__).parents[1])


class Shared:
    """What the integrator's calls into Python share.

    Attributes:
        system: the machine, with the parameters that hold now.
        pressed: Ctrl-C was pressed: the next call ends the run.
        error: what a user's function raised.
        what: which function that was.
        t: the time at which it was called [s].
    """

    def __init__(self, system: System):
        """Nothing was called yet."""
        self.system = system
        self.pressed = False
        self.error: BaseException | None = None
        self.what = ""
        self.t = float("nan")


def place_of(error: BaseException | None) -> str:
    """File and line of the user's code that an error comes from: the innermost that is no installed package."""
    lines = []
    trace = error.__traceback__ if error else None
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [x for x in lines if not x[0].startswith(_HERE) and "site-packages" not in x[0]]
    return " ({}, line {})".format(*own[-1]) if own else ""


def defined_at(function: Any) -> str:
    """Where a user's function is written."""
    code = getattr(function, "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def arity(function: Callable[..., Any], what: str) -> int:
    """How many arguments a user's function takes: 1 (t), 2 (t, x) or 3 (t, q, v)."""
    of_casadi = getattr(function, "n_in", None)
    if of_casadi is not None:
        return int(of_casadi())
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1  # a built-in function
    free = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in free)
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return max(needed, 2)
    if needed in (1, 2, 3):
        return needed
    if needed == 0 and free:
        return min(len(free), 3)
    raise StateError(f"{what}: a function must take (t), (t, x) or (t, q, v), this one takes {needed} arguments")


def apply(function: Callable[..., Any], count: int, x: Moment) -> Any:
    """Call a user's function with what it takes."""
    return function(*((x.t,), (x.t, x), (x.t, x.q, x.v))[count - 1])


def numbers(value: Any, size: int, what: str) -> np.ndarray:
    """What a user's function returned, as `size` numbers."""
    try:
        array = None if value is None else np.asarray(value, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        array = None
    if array is None or array.size != size:
        got = repr(value) if array is None else array.size
        raise StateError(f"{what}: expected {size} number(s) from the function, got {got}")
    return array


def numeric_moment(system: System, t: float, q: Any, v: Any, u: Any, lam: Any = None) -> Moment:
    """A moment made of numbers."""

    def frames() -> Any:
        return system.frames(system.state(q, v, t))

    def residuals() -> Any:
        return system.functions("position", t, q, system.p)[0]

    return Moment(system.layout, t, q, v, u, system.p, None if lam is None else (lambda: lam), frames, residuals)


class Symbols:
    """Symbols for everything a function may ask for, and the compiled form of expressions in them."""

    def __init__(self, system: System, with_forces: bool):
        """Make the symbols; guards may also ask for inputs and constraint forces."""
        from sarrus.symbolic.algebra import SX

        x = system.layout
        self.system = system
        sizes = {"t": 1, "q": x.nq, "v": x.nv}
        sizes |= {"lam": x.m, "u": x.nu} if with_forces else {}
        self.inputs = {name: SX.sym(name, n) for name, n in {**sizes, "p": len(x.parameters)}.items()}
        s = self.inputs
        lam = (lambda: s["lam"]) if with_forces else None
        self.moment = Moment(x, s["t"], s["q"], s["v"], s.get("u"), s["p"], lam, self._frames, self._residuals)

    def _frames(self) -> dict[str, tuple[Any, Any]]:
        s = self.inputs
        values = self.system.functions.function("frames").call([s["t"], s["q"], s["p"]])
        return {name: (values[2 * k], values[2 * k + 1]) for k, name in enumerate(self.system.layout.frames)}

    def _residuals(self) -> Any:
        s = self.inputs
        return self.system.functions.function("position").call([s["t"], s["q"], s["p"]])[0]

    def trace(self, call: Callable[[Moment], Any], size: int, probes: Sequence[Sequence[np.ndarray]]) -> Any:
        """The expression a function returns for symbols, or None if it has none that is right at the probes."""
        import casadi as ca

        from sarrus.symbolic.algebra import SX, Function

        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # CasADi comments on NumPy functions of its symbols
                value = call(self.moment)
                parts = list(value) if isinstance(value, (list, tuple)) else value
                parts = parts.ravel().tolist() if isinstance(parts, np.ndarray) else parts
                column = ca.densify(SX(ca.vertcat(*parts) if isinstance(parts, list) else parts))
                if column.numel() != size:
                    return None
                column = ca.reshape(column, size, 1)
                function = Function("traced", list(self.inputs.values()), [column])
                for probe in probes:
                    got = np.array(function.call(list(probe))[0].full()).ravel()
                    names = dict(zip(self.inputs, probe, strict=True))
                    lam = names.get("lam")
                    x = numeric_moment(self.system, float(names["t"][0]), names["q"], names["v"], names.get("u"), lam)
                    want = np.asarray(call(x), dtype=float).reshape(-1)
                    if not np.allclose(got, want, rtol=1e-12, atol=1e-300, equal_nan=True):
                        return None
        except Exception:  # whatever a function does with symbols it was not made for
            return None
        return column

    def text(self, expression: Any) -> str:
        """The same for the same expression."""
        from sarrus.symbolic.algebra import Function

        return Function("text", list(self.inputs.values()), [expression]).serialize()

    def library(self, name: str, expression: Any) -> Any:
        """Compiled code for an expression, as a function of the library that ctypes loads."""
        import casadi as ca

        from sarrus.kernel.printer import c_function
        from sarrus.symbolic.algebra import Function

        names = list(self.inputs)
        function = Function("sr_user", list(self.inputs.values()), [ca.cse(expression)])
        arguments = ", ".join(f"const real *{k}" for k in names)
        text = [
            '#include "sarrus_real.h"',
            '#include "sarrus_types.h"',
            c_function(function, names, ["out"]),
            f"SR_EXPORT long sarrus_{name}({arguments}, real *out) {{ sr_user({', '.join(names)}, out); return 0; }}",
            "",
        ]
        return getattr(ctypes.CDLL(str(build_library("\n".join(text)))), f"sarrus_{name}")


def python_callback(kind: Any, call: Callable[[Moment], np.ndarray], shared: Shared) -> Any:
    """A function for the integrator that calls back into Python; an error stops the run and is kept in `shared`."""
    layout = shared.system.layout
    sizes = (1, layout.nq, layout.nv, layout.m, layout.nu)

    def read(pointer: Any, count: int) -> np.ndarray:
        return np.array(pointer[:count])

    def run(*pointers: Any) -> int:
        try:
            if shared.pressed:
                raise KeyboardInterrupt
            shared.t = pointers[0][0]
            q, v = (read(p, n) for p, n in zip(pointers[1:3], sizes[1:3], strict=True))
            lam, u = (read(pointers[k], sizes[k]) for k in (3, 4)) if kind is GUARD else (None, None)
            x = numeric_moment(shared.system, shared.t, q, v, u, lam)
            for k, value in enumerate(call(x)):
                pointers[-1][k] = value
        except BaseException as error:  # nothing may pass through the integrator's frames, not even Ctrl-C
            shared.error = error
            return 1
        return 0

    return kind(run)


class Callback:
    """Functions of a user's as one function for the integrator: compiled if they can be, else called in Python."""

    def __init__(
        self, name: str, call: Callable[[Moment], np.ndarray], trace: Callable[[Symbols], Any] | None, shared: Shared
    ):
        """Prepare it.

        Args:
            name: "law" or "guard".
            call: the values at a moment.
            trace: the expression that the functions are for symbols, or None; not given: always call in Python.
            shared: what all calls share.
        """
        self.call = call
        self._name, self._trace, self._shared = name, trace, shared
        self._symbols = Symbols(shared.system, with_forces=name == "guard") if trace else None
        self.expression = self._traced()
        self.function: Any = None
        if self.expression is not None and self._symbols is not None:
            try:
                self.function = self._symbols.library(name, self.expression)
            except ValueError:  # constants that are not finite, which C has no name for
                self.expression = None
        if self.expression is None:
            self.function = self._python()

    @property
    def compiled(self) -> bool:
        """Whether it runs without Python."""
        return self.expression is not None

    def depends_on(self, name: str) -> bool:
        """Whether the values depend on t, q, v, lam, u or p; what Python does nobody knows."""
        import casadi as ca

        if self.expression is None or self._symbols is None:
            return True
        return bool(ca.depends_on(self.expression, self._symbols.inputs[name]))

    def is_outdated(self) -> bool:
        """Whether the functions say something else than when they were compiled; from then on Python is called.

        A user's action may change a variable that they read.
        """
        if self.expression is None or self._symbols is None:
            return False
        now = self._traced()
        if now is not None and self._symbols.text(now) == self._symbols.text(self.expression):
            return False
        self.expression, self.function = None, self._python()
        return True

    def _traced(self) -> Any:
        return self._trace(self._symbols) if self._trace and self._symbols else None

    def _python(self) -> Any:
        return python_callback(GUARD if self._name == "guard" else LAW, self.call, self._shared)
