"""What a code brings to a problem: its methods, each with settings from coarse to fine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.workprec.problems import Observed


@dataclass(frozen=True)
class Run:
    """One setting, ready to go.

    Attributes:
        solve: integrates once from the start; this alone is timed. May be called again.
        observe: what `solve` returned, in the problem's terms; raises `Failed` if there is nothing to observe.
        fresh: makes what each call of `solve` is given, where a run uses that up; not timed.
    """

    solve: Callable[..., Any]
    observe: Callable[[Any], Observed]
    fresh: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Method:
    """One way in which a code solves one problem.

    Attributes:
        code: name of the package, as in the table.
        name: of the method.
        knob: what the settings are: "rtol" or "step [s]".
        settings: from coarse to fine.
        prepare: builds and compiles for one setting; not timed with the solution.
    """

    code: str
    name: str
    knob: str
    settings: Sequence[float]
    prepare: Callable[[float], Run]


@dataclass(frozen=True)
class Declined:
    """A code that cannot do a problem, and why."""

    code: str
    reason: str


class Failed(RuntimeError):
    """A solver gave up; the text is its own."""


def tolerances(coarse: int, fine: int, per_decade: int = 1) -> list[float]:
    """Powers of ten from 10^-coarse to 10^-fine."""
    count = (fine - coarse) * per_decade
    return [10.0 ** -(coarse + k / per_decade) for k in range(count + 1)]


def steps(t_end: float, intervals: int, first: int = 1, factor: int = 2, count: int = 14) -> list[float]:
    """Steps that divide each of the output intervals: `first`, `first` · `factor`, ... of them in one interval."""
    return [t_end / intervals / (first * factor**k) for k in range(count)]
