"""The demonstration of `sarrus demo`: a slider-crank that turns through its singular positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.analysis.check import Check, check
from sarrus.cli import records
from sarrus.cli.simulate import limits, write
from sarrus.dynamics.compile import compile
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.model import library
from sarrus.simulation.audit import Audit
from sarrus.simulation.driver import simulate
from sarrus.simulation.trajectory import Trajectory

START, PUSH = np.pi / 4, 2.0  # crank angle [rad] and speed [rad/s] at the start: enough to turn over
SECONDS, RTOL = 10.0, 1e-9


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


@dataclass(frozen=True, eq=False)
class Demo:
    """The check of the machine, two of its positions, and its motion with the audit and the files made from it.

    Attributes:
        check: counts and rank.
        ordinary: at 45 degrees.
        singular: at 90 degrees.
        motion: through many singular positions.
        audit: of the motion.
        branch: largest |A + B/2 - π| along the motion: 0 on the branch on which the slider moves.
        files: written, by what they are.
        failed: a sentence for each file that could not be written.
    """

    check: Check
    ordinary: Position
    singular: Position
    motion: Trajectory
    audit: Audit
    branch: float
    files: Mapping[str, Path]
    failed: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the run ended as it should and the audit found no errors."""
        return self.motion.status.ok and self.audit.ok(limits(self.motion))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        positions = {"ordinary": asdict(self.ordinary), "singular": asdict(self.singular)}
        audit = records.of_audit(self.audit) | {"ok": self.audit.ok(limits(self.motion))}
        motion = records.of_trajectory(self.motion) | {"audit": audit, "branch": self.branch}
        files = {"files": {name: str(path) for name, path in self.files.items()}, "errors": list(self.failed)}
        return {"check": self.check.to_dict(), **positions, "motion": motion, **files}

    def __str__(self) -> str:
        """The whole demonstration."""
        passed = "\n".join(f"  {crossing}" for crossing in self.motion.crossings)
        text = f"""\
{self.check}

{self.ordinary}

{self.singular}

At the singular position both links stand upright, the slider's row vanishes and the rank drops to 0. There two
branches of motion meet: on one the slider goes on, on the other the folded links turn as one.

Now {SECONDS:g} s of motion, started at 45 degrees with {PUSH:g} rad/s and left alone; each half turn of the crank
passes a singular position, upright or hanging:
{passed}
{self.motion.status}
{self.motion.stats}
Departure from the branch on which the slider moves: {self.branch:.1e} rad.

Is it right? All equations again, from the recorded motion alone:
{self.audit}
"""
        lines = [f"Written: {path} ({ABOUT[name]})" for name, path in self.files.items()]
        return "\n".join([text, *lines, *(f"Note: {reason}" for reason in self.failed)])


ABOUT = {"animate": "the motion in three dimensions; open it in a browser", "plot": "its curves"}


def _row(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:+.6f}" for name, value in values.items())


def demo(folder: str | Path = ".") -> Demo:
    """Assemble, solve, simulate, audit, and write `sarrus-demo.html` and `sarrus-demo.png`.

    Args:
        folder: where the files go.
    """
    system = compile(library.build("slider_crank"))
    ordinary = system.assemble({"A": START}, velocities={"A": 1.0})
    singular = system.state(q=[np.pi / 2, np.pi], v=[1.0, -2.0])
    start = system.assemble({"A": START}, velocities={"A": PUSH})
    motion = simulate(system, start, SECONDS, rtol=RTOL)
    stem = Path(folder) / "sarrus-demo"
    files, failed = write(motion, {"animate": stem.with_suffix(".html"), "plot": stem.with_suffix(".png")})
    return Demo(
        check(system),
        _position("At 45 degrees, turning at 1 rad/s:", system, ordinary),
        _position("Exactly at the singular position, 90 degrees, passing through at 1 rad/s:", system, singular),
        motion,
        motion.audit(),
        float(np.max(np.abs(motion["A"] + motion["B"] / 2 - np.pi))),
        files,
        tuple(failed),
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
