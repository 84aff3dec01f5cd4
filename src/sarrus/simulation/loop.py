"""What stands between a control law and the machine: sampling, noise, delay and limits (kernel: sarrus_loop.h)."""

from __future__ import annotations

import ctypes
import logging
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import LoopRecord
from sarrus.simulation.callbacks import Shared
from sarrus.simulation.inputs import Law, make_law
from sarrus.simulation.moment import Moment
from sarrus.simulation.settings import Settings

if TYPE_CHECKING:
    from sarrus.simulation.trajectory import Trajectory

log = logging.getLogger("sarrus")


@dataclass(frozen=True, eq=False)
class Loop:
    """A control law with what a real loop does to it.

    Attributes:
        control: a controller of `sarrus.control`, or a function f(t), f(t, x) or f(t, q, v) that returns the inputs.
        period: time between two looks at the machine [s]; the inputs are held meanwhile. Not given: at every
            evaluation.
        delay: from the look to the moment when its inputs take effect [s]; needs a period.
        effort: limits of the inputs: True for those of the description, a number, (low, high), or by name.
        rate: largest change of each input in a second: a number, or by name; needs a period.
        noise: standard deviation of what is measured: coordinate name -> that of its position, name.v -> of its
            velocity (for a quaternion: of a small turn about each axis of the body [rad]); needs a period and a seed.
        seed: of the noise, a whole number.
        initial: inputs until the first ones take effect; zero if not given.
    """

    control: Any
    period: float | None = None
    delay: float = 0.0
    effort: Any = None
    rate: Any = None
    noise: Mapping[str, float] | None = None
    seed: int | None = None
    initial: Any = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.period is not None and not _positive(self.period):
            raise StateError(f"Loop: expected a positive period in seconds, got {self.period!r}")
        if not (isinstance(self.delay, numbers.Real) and 0 <= float(self.delay) < math.inf):
            raise StateError(f"Loop: expected a delay in seconds that is not negative, got {self.delay!r}")
        if self.period is not None and self.delay > 1e6 * self.period:
            raise StateError(
                f"Loop: a delay of {self.delay!r} s is more than a million periods of {self.period!r} s; expected "
                "commands that arrive sooner"
            )
        if self.noise is not None and not isinstance(self.noise, Mapping):
            raise StateError(f"Loop: noise: expected a mapping from names to standard deviations, got {self.noise!r}")
        for name, wanted in (("delay", self.delay > 0), ("rate", self.rate is not None), ("noise", bool(self.noise))):
            if wanted and self.period is None:
                raise StateError(f"Loop: {name} needs a period (it belongs to a sampled loop); give period=... seconds")
        if self.noise and (isinstance(self.seed, bool) or not isinstance(self.seed, numbers.Integral)):
            raise StateError("Loop: noise needs a seed, a whole number, so that the run can be repeated")


@dataclass(frozen=True, eq=False)
class Compiled:
    """A controller's code in the place of a `Callback`.

    Attributes:
        function: for the integrator.
        values: what it is given in place of the machine's parameters.
        nu: inputs of the machine.
    """

    function: Any
    values: np.ndarray
    nu: int
    compiled = True

    def call(self, x: Moment) -> np.ndarray:
        """The inputs at a moment."""
        u = np.zeros(max(self.nu, 1))
        given = [np.ascontiguousarray(a, dtype=float) for a in ([x.t], x.q, x.v)]
        if self.function(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, self.values, u))):
            u[:] = np.nan
        return u[: self.nu]

    def is_outdated(self) -> bool:
        """Never: it depends on its numbers alone."""
        return False


class Drive:
    """A loop around a law, for the kernel; `address` is that of its `sr_loop`."""

    def __init__(self, system: System, loop: Loop, values: np.ndarray | None, before: Mapping[str, Any] | None):
        """Prepare it.

        Args:
            system: the machine.
            loop: what was asked for.
            values: what the law is given in place of the machine's parameters, or None.
            before: what `record` said when a run ended that this one continues, or None.
        """
        self._loop, self._raw, self._size = loop, LoopRecord(), 1 + system.layout.nu
        room = 4 + (math.ceil(loop.delay / loop.period) if loop.period else 0)
        step = getattr(loop.control, "compiled_step", None)
        self._low, self._high = input_limits(system, loop.effort, "effort")
        self._rate = _rates(system, loop.rate)
        arrays = {"low": self._low, "high": self._high, "rate": self._rate, "queue": np.zeros(room * self._size)}
        if values is not None:
            arrays["numbers"] = values
        if step is not None:
            self._raw.step = ctypes.cast(step, ctypes.c_void_p).value
            arrays["memory"] = np.array(loop.control.init())
        if loop.noise:
            arrays["noise"] = _noise(system, loop.noise)
            self._raw.random = int(loop.seed or 0) % 2**64
        self._kept = {name: np.ascontiguousarray(a if a.size else np.zeros(1)) for name, a in arrays.items()}
        for name, array in self._kept.items():
            setattr(self._raw, name, array.ctypes.data)
        self._raw.delay, self._raw.room = loop.delay, room
        self.address = ctypes.addressof(self._raw)
        if before is not None:
            self._go_on(before)

    def _go_on(self, before: Mapping[str, Any]) -> None:
        """Take over what the same loop left: commands on their way, memory, and the generator of the noise."""
        alike = all(before.get(key) == value for key, value in self._about().items())
        state = before.get("loop")
        if not alike or state is None:
            return
        queue = np.array(state["commands"], dtype=float).reshape(-1)
        self._kept["queue"][: len(queue)] = queue
        self._raw.count = len(queue) // self._size
        if "memory" in self._kept and len(state["memory"]) == len(self._kept["memory"]):
            self._kept["memory"][:] = state["memory"]
        self._raw.random = int(state["random"])

    @property
    def due(self) -> float:
        """When the next command on its way takes effect [s]; infinite if there is none."""
        return float(self._kept["queue"][self._raw.head * self._size]) if self._raw.count else math.inf

    def tell(self, active: Mapping[str, bool]) -> None:
        """Tell a controller which constraints are on."""
        if "numbers" in self._kept:
            values = self._loop.control.numbers_with(active)
            self._kept["numbers"][: len(values)] = values

    def passed(self, before: np.ndarray, u: np.ndarray) -> np.ndarray:
        """What becomes of the law's answer now, if `before` held until now (sr_tick, sr_limit)."""
        if self._raw.delay > 0:
            return before
        if self._loop.period:
            u = np.clip(u, before - self._rate * self._loop.period, before + self._rate * self._loop.period)
        return np.clip(u, self._low, self._high)

    def _about(self) -> dict[str, Any]:
        loop = self._loop
        out = {"control": type(loop.control).__name__, "delay": float(loop.delay)}
        if loop.noise:
            out |= {"noise": {name: float(x) for name, x in loop.noise.items()}, "seed": int(loop.seed or 0)}
        return out

    def record(self) -> dict[str, Any]:
        """The loop in plain data, with what a run that continues this one has to know."""
        raw = self._raw
        queue = np.roll(self._kept["queue"].reshape(raw.room, self._size), -raw.head, axis=0)[: raw.count]
        memory = self._kept["memory"].tolist() if "memory" in self._kept else []
        loop = {"commands": queue.tolist(), "memory": memory, "random": str(raw.random)}
        return self._about() | {"loop": loop}


def prepared(
    inputs: Any, control: Any, sample: float | None, previous: Trajectory | None
) -> tuple[Callable[[State, Settings, Shared], Law], float | None]:  # fmt: skip
    """What makes the law of a run from its start, settings and calls, and the law's period."""
    if control is None:
        if isinstance(inputs, Loop):
            raise StateError("simulate: a Loop drives the machine as control=..., not as inputs=...")
        return lambda start, s, shared: make_law(inputs, s.sample, start, s.t_end, shared), sample
    if inputs is not None:
        raise StateError("simulate: give inputs or control, not both")
    loop = control if isinstance(control, Loop) else Loop(control)
    if sample is not None:
        if loop.period is not None and loop.period != sample:
            raise StateError(f"sample={sample!r} contradicts the loop's period={loop.period!r}; give one of them")
        loop = replace(loop, period=sample)

    def make(start: State, settings: Settings, shared: Shared) -> Law:
        same = previous is not None and bool(settings.sample) and previous.settings.get("sample") == settings.sample
        return _law(loop, previous.settings if previous is not None and same else None, start, settings.t_end, shared)

    return make, loop.period


def _law(loop: Loop, before: Mapping[str, Any] | None, start: State, t_end: float, shared: Shared) -> Law:
    """A controller, a function, or a loop around one of them."""
    system, control = shared.system, loop.control
    nu, values = system.layout.nu, None
    if hasattr(control, "compiled") and not isinstance(control, type):
        values = np.array(control.numbers if len(control.numbers) else [0.0])
        law = Law(np.zeros(nu), Compiled(control.compiled(system), values, nu), float(loop.period or 0.0))
    elif callable(control) and not isinstance(control, type):
        law = make_law(control, loop.period, start, t_end, shared)
    else:
        raise StateError(f"control: expected a controller of sarrus.control, a function or a Loop, got {control!r}")
    if getattr(control, "compiled_step", None) is not None:
        if loop.period is None:
            raise StateError(
                f"{type(control).__name__} has memory, so it works at given times: put it into a Loop with a period"
            )
        if not loop.control.stable(loop.period):
            log.warning("%s: with this period the loop of the force is unstable (kf + ki T / 2 >= 1)", system.name)
    initial = np.zeros(nu) if loop.initial is None else _initial(system, loop.initial)
    return replace(law, initial=initial, drive=Drive(system, loop, values, before))


def _positive(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < math.inf


def input_limits(system: System, limits: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value of each input: True for those of the description, a number, (low, high), or by name."""
    layout = system.layout
    low, high = np.full(layout.nu, -np.inf), np.full(layout.nu, np.inf)
    if limits is None or limits is False:
        return low, high
    given: Any = dict(layout.u_limits) if limits is True else limits
    given = given if isinstance(given, Mapping) else dict.fromkeys(layout.u_names, given)
    for name, value in given.items():
        where = layout.find(name, "u")
        pair: Any = (-value, value) if _positive(value) else value
        try:
            a, b = (float(x) for x in pair)
        except (TypeError, ValueError):
            a, b = 1.0, 0.0
        if not a <= b:
            raise StateError(f"{what} of {name!r}: expected a positive number or (low, high), got {value!r}")
        low[where], high[where] = a, b
    return low, high


def _rates(system: System, rate: Any) -> np.ndarray:
    layout = system.layout
    out = np.full(layout.nu, np.inf)
    if rate is None:
        return out
    given: Any = rate if isinstance(rate, Mapping) else dict.fromkeys(layout.u_names, rate)
    for name, value in given.items():
        if not _positive(value):
            raise StateError(f"rate of {name!r}: expected a positive number for each second, got {value!r}")
        out[layout.find(name, "u")] = float(value)
    return out


def _noise(system: System, noise: Mapping[str, float]) -> np.ndarray:
    layout = system.layout
    out = np.zeros(2 * layout.nv)
    for name, value in noise.items():
        if not (isinstance(value, numbers.Real) and 0 <= float(value) < math.inf):
            raise StateError(f"noise of {name!r}: expected a standard deviation, got {value!r}")
        rate = name.endswith(".v")
        where = layout.find(name.removesuffix(".v"), "v")
        out[where.start + rate * layout.nv : where.stop + rate * layout.nv] = float(value)
    return out


def _initial(system: System, values: Any) -> np.ndarray:
    try:
        array = np.array(values, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (system.layout.nu,) or not np.isfinite(array).all():
        raise StateError(f"Loop: initial: expected {system.layout.nu} finite inputs, got {values!r}")
    return array
