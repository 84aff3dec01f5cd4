"""What stands between a control law and the machine: sampling, noise, delay and limits (kernel: sarrus_loop.h)."""

from __future__ import annotations

import ctypes
import logging
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import LoopRecord
from sarrus.simulation.callbacks import Called
from sarrus.simulation.inputs import Law, make_law

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
        for name, wanted in (("delay", self.delay > 0), ("rate", self.rate is not None), ("noise", bool(self.noise))):
            if wanted and self.period is None:
                raise StateError(f"Loop: {name} needs a period (it belongs to a sampled loop); give period=... seconds")
        if self.noise and (isinstance(self.seed, bool) or not isinstance(self.seed, numbers.Integral)):
            raise StateError("Loop: noise needs a seed, a whole number, so that the run can be repeated")


def make_control(
    system: System, control: Any, sample: float | None, start: State, t_end: float, called: Called
) -> Law:  # fmt: skip
    """Prepare a control law for a run: a controller, a function, or a `Loop` around one of them."""
    loop = control if isinstance(control, Loop) else Loop(control)
    if sample is not None:
        if loop.period is not None and loop.period != sample:
            raise StateError(f"sample={sample!r} contradicts the loop's period={loop.period!r}; give one of them")
        loop = replace(loop, period=sample)
    law = _law(system, loop, start, t_end, called)
    record, keep = LoopRecord(), {}
    if law.numbers is not None:
        keep["numbers"] = law.numbers
    step = getattr(loop.control, "compiled_step", None)
    if step is not None:
        if loop.period is None:
            raise StateError(
                f"{type(loop.control).__name__} has memory, so it works at given times: put it into a Loop with a "
                "period"
            )
        record.step = ctypes.cast(step, ctypes.c_void_p).value
        keep["memory"] = np.zeros(loop.control.memory_size)
        if not loop.control.stable(loop.period):
            log.warning("%s: with this period the loop of the force is unstable (kf + ki T / 2 >= 1)", system.name)
    keep["low"], keep["high"] = input_limits(system, loop.effort, "effort")
    keep["rate"] = _rates(system, loop.rate)
    if loop.noise:
        keep["noise"] = _noise(system, loop.noise)
        record.random = int(loop.seed or 0) % 2**64
    record.delay, record.start = loop.delay, float(start.t)
    record.room = 4 + (math.ceil(loop.delay / loop.period) if loop.period else 0)
    keep["queue"] = np.zeros(record.room * (1 + system.layout.nu))
    for name, array in keep.items():
        keep[name] = np.ascontiguousarray(array if array.size else np.zeros(1))
        setattr(record, name, keep[name].ctypes.data)
    initial = np.zeros(system.layout.nu) if loop.initial is None else _initial(system, loop.initial)
    about = {"control": type(loop.control).__name__, "period": float(loop.period or 0.0), "delay": float(loop.delay)}
    about |= {"noise": {k: float(x) for k, x in loop.noise.items()}, "seed": int(loop.seed or 0)} if loop.noise else {}
    return replace(law, initial=initial, sample=float(loop.period or 0.0), loop=record, keep=keep, about=about)


def _law(system: System, loop: Loop, start: State, t_end: float, called: Called) -> Law:
    """The bare law."""
    control = loop.control
    if hasattr(control, "compiled"):
        function = control.compiled(system)
        return Law(
            np.zeros(system.layout.nu), function, 0.0, True, lambda x: control(x.t, x.q, x.v),
            numbers=control.numbers.copy(), switch=control.numbers_with,
        )  # fmt: skip
    if not callable(control):
        raise StateError(f"control: expected a controller of sarrus.control, a function or a Loop, got {control!r}")
    return make_law(system, control, loop.period, start, t_end, called)


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
    array = np.array(values, dtype=float).reshape(-1)
    if array.shape != (system.layout.nu,) or not np.isfinite(array).all():
        raise StateError(f"Loop: initial: expected {system.layout.nu} finite inputs, got {values!r}")
    return array
