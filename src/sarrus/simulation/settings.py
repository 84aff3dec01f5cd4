"""What a user may ask of a simulation, checked before the first step."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.errors import StateError
from sarrus.kernel.motion import CORRECTIONS, CROSSINGS, METHODS
from sarrus.model.layout import Layout

FIXED = ("rk4", "euler", "variational")


@dataclass(frozen=True, eq=False)
class Settings:
    """How to integrate; see `sarrus.simulate` for the meaning of each."""

    t_end: float
    method: str
    rtol: float
    atol: np.ndarray
    dt: float
    max_step: float
    sample: float | None
    every: int  # 0: at `times`
    times: np.ndarray
    crossing: str
    window: float
    drift: str
    loop_error: float
    baumgarte: tuple[float, float]
    max_steps: int

    @property
    def fixed(self) -> bool:
        """Whether steps have a fixed length."""
        return self.method in FIXED

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record."""
        out: dict[str, Any] = {
            key: getattr(self, key) for key in ("t_end", "method", "crossing", "drift", "loop_error")
        }
        out |= {"dt": self.dt} if self.fixed else {"rtol": self.rtol, "atol": self.atol.tolist()}
        out |= {"max_step": self.max_step} if math.isfinite(self.max_step) else {}
        out |= {"sample": self.sample} if self.sample else {}
        out |= {"baumgarte": list(self.baumgarte)} if self.drift == "baumgarte" else {}
        return out | ({"window": self.window} if self.crossing == "release" else {})


def _choice(what: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise StateError(f"{what}: unknown choice {value!r}; use {', '.join(map(repr, known))}")
    return value


def _positive(what: str, value: Any, unit: str = "", infinite: bool = False) -> float:
    if type(value) is float and 0 < value < math.inf:
        return value
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not float(value) > 0 or (math.isinf(float(value)) and not infinite):
        raise StateError(f"{what}: expected a positive number{unit}, got {value!r}")
    return float(value)


def checked_settings(
    layout: Layout, t: float, t_end: Any, method: Any, rtol: Any, atol: Any, dt: Any, max_step: Any, sample: Any,
    output: Any, crossing: Any, window: Any, drift: Any, loop_error: Any, baumgarte: Any, max_steps: Any,
) -> Settings:  # fmt: skip
    """Settings, or an error that names what is wrong."""
    _choice("method", method, METHODS)
    if not isinstance(t_end, numbers.Real) or not math.isfinite(float(t_end)) or not float(t_end) > t:
        raise StateError(f"t_end: expected a finite time after the start at t = {t:g} s, got {t_end!r}")
    if method in FIXED and dt is None:
        raise StateError(f"method {method!r} takes fixed steps: give their length, dt=... in seconds")
    if method not in FIXED and dt is not None:
        raise StateError(
            f"method {method!r} chooses its own steps: limit them with max_step, or use one of {', '.join(FIXED)} "
            "with dt"
        )
    every, times = _outputs(output, t, float(t_end))
    if isinstance(max_steps, bool) or not isinstance(max_steps, numbers.Integral) or max_steps < 1:
        raise StateError(f"max_steps: expected a positive whole number, got {max_steps!r}")
    rtol = _positive("rtol", rtol)
    return Settings(
        float(t_end), method, rtol, _tolerances(layout, rtol, atol),
        0.0 if dt is None else _positive("dt", dt, " of seconds"),
        _positive("max_step", max_step, " of seconds", infinite=True),
        None if sample is None else _positive("sample", sample, " of seconds"),
        every, times, _choice("crossing", crossing, CROSSINGS), _positive("window", window),
        _choice("drift", drift, CORRECTIONS), _positive("loop_error", loop_error), _gains(baumgarte), int(max_steps),
    )  # fmt: skip


def _outputs(output: Any, t: float, t_end: float) -> tuple[int, np.ndarray]:
    none = np.zeros(0)
    if isinstance(output, str):
        _choice("output", output, ("steps",))
        return 1, none
    if isinstance(output, numbers.Integral) and not isinstance(output, bool):
        if output < 1:
            raise StateError(f"output={output}: expected every how many steps a row is kept, 1 or more")
        return int(output), none
    try:
        times = np.array(output, dtype=float)
    except (TypeError, ValueError):
        times = np.array([[np.nan]])
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise StateError(f"output: expected 'steps', a whole number, or an array of times in seconds, got {output!r}")
    if (times[1:] <= times[:-1]).any():
        raise StateError("output: the times must rise")
    if times[0] < t or times[-1] > t_end:
        raise StateError(
            f"output: times from {times[0]:g} to {times[-1]:g} s reach beyond the run from {t:g} to {t_end:g} s"
        )
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
