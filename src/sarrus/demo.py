"""The demonstration of `sarrus demo`: a slider-crank at an ordinary and at its singular position."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sarrus.analysis.check import Check, check
from sarrus.dynamics.compile import compile
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.model import library


@dataclass(frozen=True)
class Position:
    """What the machine says of itself at one position, moving at crank speed 1 rad/s, motors off."""

    title: str
    positions: dict[str, float]
    velocities: dict[str, float]
    rank: int
    singular_values: tuple[float, ...]
    accelerations: dict[str, float]
    constraint_force: dict[str, float]
    determinate: bool
    energy: float
    loop_error: float

    def __str__(self) -> str:
        """A block of text."""
        return "\n".join(
            [
                self.title,
                f"  positions      {_row(self.positions)}",
                f"  velocities     {_row(self.velocities)}",
                f"  accelerations  {_row(self.accelerations)}",
                f"  constraint forces (generalised) {_row(self.constraint_force)}",
                f"  rank {self.rank}, singular values {', '.join(f'{s:.2e}' for s in self.singular_values)}",
                f"  energy {self.energy:.6f} J, loop error {self.loop_error:.1e} m",
            ]
        )


@dataclass(frozen=True)
class Demo:
    """The check of the machine and its two positions."""

    check: Check
    ordinary: Position
    singular: Position

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """The whole demonstration."""
        closing = (
            "At the singular position both links stand upright, the slider's row vanishes and the rank drops to 0;\n"
            "the accelerations stay finite, and the report says so instead of hiding it."
        )
        return f"{self.check}\n\n{self.ordinary}\n\n{self.singular}\n\n{closing}"


def _row(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:+.6f}" for name, value in values.items())


def demo() -> Demo:
    """Assemble, solve and report."""
    machine = library.build("slider_crank")
    system = compile(machine)
    ordinary = system.assemble({"A": np.pi / 4}, velocities={"A": 1.0})
    singular = system.state(q=[np.pi / 2, np.pi], v=[1.0, -2.0])
    return Demo(
        check(system),
        _position("At 45 degrees, turning at 1 rad/s:", system, ordinary),
        _position("Exactly at the singular position, 90 degrees, passing through at 1 rad/s:", system, singular),
    )


def _position(title: str, system: System, state: State) -> Position:
    layout = system.layout
    rank = system.rank(state)
    forces = system.constraint_forces(state)
    phi = system.terms(state).phi

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(layout.v_names, map(float, values), strict=True))

    return Position(
        title, named(state.q), named(state.v), rank.rank, tuple(map(float, rank.singular_values)),
        named(system.acceleration(state)), named(forces.generalised), all(forces.determinate.values()),
        float(system.energy(state).total), float(np.max(np.abs(phi))),
    )  # fmt: skip
