"""What a user may ask of a simulation, checked before the first step."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.errors import StateError
from sarrus.kernel.motion import CORRECTIONS, CROSSINGS
from sarrus.kernel.motion import METHODS as ODE_METHODS
from sarrus.model.layout import Layout

if TYPE_CHECKING:
    from sarrus.simulation.trajectory import Trajectory

# those of the compiled integrators, and those that only solve differential-algebraic forms
METHODS = (*ODE_METHODS, "ida", "generalized-alpha")
FIXED = ("rk4", "euler", "variational", "generalized-alpha")
SMALLEST = 1e-15  # relative tolerances below this cannot even be written into the digits of a number


@dataclass(frozen=True, eq=False)
class Settings:
    """How to integrate; see `sarrus.simulate` for the meaning of each. `begun` completes them with a start."""

    t_end: float
    method: str
    rtol: float
    atol: np.ndarray
    dt: float
    max_step: float
    sample: float | None
    first_sample: float
    every: int  # 0: at `times`
    times: np.ndarray
    crossing: str
    window: float
    drift: str
    loop_error: float
    baumgarte: tuple[float, float]
    max_steps: int
    settle: float = 1e-8

    @property
    def fixed(self) -> bool:
        """Whether steps have a fixed length."""
        return self.method in FIXED

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record."""
        return dict(self._record)

    @functools.cached_property
    def _record(self) -> dict[str, Any]:
        kept = ("t_end", "method", "crossing", "drift", "loop_error", "max_steps")
        out: dict[str, Any] = {"version": _version()} | {key: getattr(self, key) for key in kept}
        out |= {"dt": self.dt} if self.fixed else {"rtol": self.rtol, "atol": self.atol.tolist()}
        out |= {"max_step": self.max_step} if math.isfinite(self.max_step) else {}
        out |= {"sample": self.sample, "first sample": self.first_sample} if self.sample else {}
        out |= {"baumgarte": list(self.baumgarte)} if self.drift == "baumgarte" else {}
        return out | ({"window": self.window} if self.crossing == "release" else {})


def _real(value: Any) -> float:
    """A real number, or an array without dimensions that holds one; nan for anything else."""
    if type(value) is float:
        return value
    if isinstance(value, (bool, str, bytes)) or np.shape(value) != ():
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


@functools.cache
def _version() -> str:
    """Of this package; looked up once, which takes longer than a short run."""
    return version("sarrus")


def _choice(what: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise StateError(f"{what}: unknown choice {value!r}; use {', '.join(map(repr, known))}")
    return value


def _positive(what: str, value: Any, unit: str = "", infinite: bool = False) -> float:
    if type(value) is float and 0 < value < math.inf:
        return value
    number = _real(value)
    if not number > 0 or (math.isinf(number) and not infinite):
        raise StateError(f"{what}: expected a positive number{unit}, got {value!r}")
    return number


def checked_settings(
    layout: Layout, t_end: Any, method: Any, rtol: Any, atol: Any, dt: Any, max_step: Any, sample: Any, output: Any,
    crossing: Any, window: Any, drift: Any, loop_error: Any, baumgarte: Any, max_steps: Any, settle: Any,
) -> Settings:  # fmt: skip
    """Settings, or an error that names what is wrong with them whatever the start."""
    _choice("method", method, METHODS)
    end = _real(t_end)
    if not math.isfinite(end):
        raise StateError(f"t_end: expected a finite time after the start, got {t_end!r}")
    if method in FIXED and dt is None:
        raise StateError(f"method {method!r} takes fixed steps: give their length, dt=... in seconds")
    if method not in FIXED and dt is not None:
        raise StateError(
            f"method {method!r} chooses its own steps: limit them with max_step, or use one of {', '.join(FIXED)} "
            "with dt"
        )
    every, times = _outputs(output)
    whole = type(max_steps) is int or (isinstance(max_steps, numbers.Integral) and not isinstance(max_steps, bool))
    if not whole or max_steps < 1:
        raise StateError(f"max_steps: expected a positive whole number, got {max_steps!r}")
    rtol, loop_error = _positive("rtol", rtol), _positive("loop_error", loop_error)
    for what, value in (("rtol", rtol), ("loop_error", loop_error)):
        if value < SMALLEST:
            raise StateError(f"{what}: expected {SMALLEST:g} or more, got {value:g}; numbers have 16 digits")
    return Settings(
        end, method, rtol, _tolerances(layout, rtol, atol),
        0.0 if dt is None else _positive("dt", dt, " of seconds"),
        _positive("max_step", max_step, " of seconds", infinite=True),
        None if sample is None else _positive("sample", sample, " of seconds"), math.nan,
        every, times, _choice("crossing", crossing, CROSSINGS), _positive("window", window),
        _choice("drift", drift, CORRECTIONS), loop_error, _gains(baumgarte), int(max_steps),
        _positive("settle", settle),
    )  # fmt: skip


def begun(settings: Settings, t: float, previous: Trajectory | None) -> tuple[Settings, np.ndarray | None]:
    """The settings of a run from time t, and the inputs that it goes on with.

    Args:
        settings: checked.
        t: start [s].
        previous: a trajectory that the run continues, so that both are like one, or None.
    """
    end, times, held = settings.t_end, settings.times, None
    if not end > t:
        raise StateError(f"t_end: expected a finite time after the start at t = {t:g} s, got {end!r}")
    if not settings.every and (times[0] < t or times[-1] > end):
        raise StateError(
            f"output: times from {times[0]:g} to {times[-1]:g} s reach beyond the run from {t:g} to {end:g} s"
        )
    if settings.sample:
        settings = replace(settings, first_sample=t)
    if previous is None:
        return settings, None
    before = previous.settings
    if settings.sample and before.get("sample") == settings.sample:  # the same clock, not another that starts now
        settings, held = replace(settings, first_sample=float(before["first sample"])), previous.u[-1]
    if not settings.every and times[0] > previous.t[-1]:  # nothing may be left out between both records
        settings = replace(settings, times=np.append(previous.t[-1], times))
    return settings, held


def _outputs(output: Any) -> tuple[int, np.ndarray]:
    if isinstance(output, str):
        _choice("output", output, ("steps",))
        return 1, np.zeros(0)
    if isinstance(output, numbers.Integral) and not isinstance(output, bool):
        if output < 1:
            raise StateError(f"output={output}: expected every how many steps a row is kept, 1 or more")
        return int(output), np.zeros(0)
    try:
        times = np.array(output, dtype=float)
    except (TypeError, ValueError):
        times = np.array([[np.nan]])
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise StateError(f"output: expected 'steps', a whole number, or an array of times in seconds, got {output!r}")
    if (times[1:] <= times[:-1]).any():
        raise StateError("output: the times must rise")
    return 0, times


def _tolerances(layout: Layout, rtol: float, atol: Any) -> np.ndarray:
    """Absolute tolerance of each velocity coordinate's motion: rtol of its typical size unless given."""
    out = rtol * np.array(layout.scales, dtype=float)
    if atol is None:
        return out
    if isinstance(atol, Mapping):
        for name, value in atol.items():
            out[layout.find(name.removesuffix(".v"), "v")] = _positive(f"atol of {name!r}", value)
        return out
    return np.full(layout.nv, _positive("atol", atol))


def _gains(values: Any) -> tuple[float, float]:
    try:
        alpha, beta = (float(x) for x in values)
    except (TypeError, ValueError):
        raise StateError(f"baumgarte: expected two gains (alpha, beta) in 1/s, got {values!r}") from None
    if not (alpha >= 0 and beta >= 0 and math.isfinite(alpha + beta)):
        raise StateError(f"baumgarte: gains must not be negative, got {values!r}")
    return alpha, beta
