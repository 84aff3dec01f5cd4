"""A formulation as an object: what it is, what problem it makes, which options it takes, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sarrus.dynamics.formulations.point import Point
from sarrus.errors import SarrusError

# what an evaluation returns: accelerations v̇ and the generalised constraint force Aᵀλ
Evaluation = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Option:
    """A choice that a formulation leaves open.

    Attributes:
        default: its value unless given.
        text: what it means, with its unit.
        check: whether a value is acceptable.
        wanted: what is acceptable, in words.
    """

    default: Any
    text: str
    check: Callable[[Any], bool]
    wanted: str


@dataclass(frozen=True, eq=False)
class Formulation:
    """One way to write the motion of a constrained machine. Made by `sarrus.formulation`.

    n velocities, m active rows of rank r. All formulations describe the same motion; they differ in what they solve
    for, how large it is, how well conditioned, and how far it drifts from the constraints.

    Attributes:
        name: by which it is asked for.
        equation: its equation of motion.
        sheet: where the equation sheet has it.
        index: differential index of the problem it makes; 0 for an ordinary differential equation.
        sizes: what is solved at each evaluation, in words.
        evaluate: (point, options) -> accelerations and generalised constraint force.
        choices: the options it takes.
        options: their values.
        stabilised: whether it corrects drift by itself, so that nothing is projected.
    """

    name: str
    equation: str
    sheet: str
    index: int
    sizes: str
    evaluate: Callable[[Point, Mapping[str, Any]], Evaluation] = field(repr=False)
    choices: Mapping[str, Option] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    stabilised: bool = False

    @property
    def problem(self) -> str:
        """What it asks a solver for: "ODE" or "DAE of index 1", 2 or 3."""
        return f"DAE of index {self.index}" if self.index else "ODE"

    def __str__(self) -> str:
        """Name, problem, equation and options, a line each."""
        lines = [f"{self.name}: {self.problem}", f"  {self.equation}  (sheet {self.sheet})", f"  solves {self.sizes}"]
        for key, choice in self.choices.items():
            lines.append(f"  {key} = {_shown(self.options[key])}: {choice.text}")
        return "\n".join(lines)

    def with_options(self, **values: Any) -> Formulation:
        """The same formulation with other options.

        Args:
            values: option name -> value; the others stay.
        """
        for key, value in values.items():
            if key not in self.choices:
                known = ", ".join(self.choices) or "none"
                raise SarrusError(f"formulation {self.name!r} has no option {key!r}; it has: {known}")
            choice = self.choices[key]
            if not choice.check(value):
                raise SarrusError(f"formulation {self.name!r}, {key}={value!r}: expected {choice.wanted}")
        return replace(self, options={**self.options, **values})


def _shown(value: Any) -> str:
    return repr(value) if value is None or np.ndim(value) == 0 else "given"


def defaults(choices: Mapping[str, Option]) -> dict[str, Any]:
    """Options as they are if nobody asks for anything else."""
    return {key: choice.default for key, choice in choices.items()}


def is_positive(value: Any) -> bool:
    """Whether a value is a finite number above zero."""
    return _is_number(value) and 0 < float(value) < np.inf


def is_automatic_or_positive(value: Any) -> bool:
    """Whether a value is "auto" or a finite number above zero."""
    return (isinstance(value, str) and value == "auto") or is_positive(value)


def is_automatic_or_nonzero(value: Any) -> bool:
    """Whether a value is "auto" or a finite number other than zero."""
    if isinstance(value, str):
        return value == "auto"
    return _is_number(value) and np.isfinite(float(value)) and float(value) != 0


def is_not_negative(value: Any) -> bool:
    """Whether a value is a finite number, zero or more."""
    return _is_number(value) and 0 <= float(value) < np.inf


def is_metric(value: Any) -> bool:
    """Whether a value is None, positive weights, or a symmetric positive definite matrix."""
    if value is None:
        return True
    try:
        W = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return False
    if W.ndim == 1:
        return bool(np.isfinite(W).all() and (W > 0).all())
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not np.isfinite(W).all() or not np.allclose(W, W.T):
        return False
    return bool(np.linalg.eigvalsh(W)[0] > 0)


def inverse_root(W: Any, n: int) -> np.ndarray:
    """W^-½ of weights or of a symmetric matrix."""
    W = np.asarray(W, dtype=float)
    if len(W) != n:
        raise SarrusError(f"metric W: expected {n} weights or an {n} x {n} matrix, got shape {W.shape}")
    if W.ndim == 1:
        return np.diag(W**-0.5)
    w, X = np.linalg.eigh(W)
    return (X / np.sqrt(w)) @ X.T


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
