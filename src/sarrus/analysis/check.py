"""A first check of a machine: counts, mobility, rank, redundant rows by name, and everything that is wrong with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sarrus.analysis.dependence import idle_rows
from sarrus.analysis.mobility import neighbours
from sarrus.dynamics.compile import compile
from sarrus.dynamics.solution import Rank
from sarrus.dynamics.system import System
from sarrus.errors import AssemblyError, CompilerError, ModelError

STEPS = (0.05, 0.15, 0.3, 0.6)  # how far to look for ordinary positions, in radians or lengths of the machine


@dataclass(frozen=True)
class Check:
    """The outcome of `check`; prints itself.

    Attributes:
        name: of the machine.
        bodies: number of bodies.
        positions: number of position coordinates.
        velocities: number of velocity coordinates.
        inputs: names of the inputs.
        constraints: names of the constraints.
        rows: constraint rows.
        rank: independent rows at a generic assembled state.
        mobility: velocities minus rank: in how many ways it can move there.
        redundant: rows that take part in a dependence, by name.
        idle: rows that are identically satisfied (out of the plane of a planar machine, say), by name.
        singular_values: of the scaled rows in the mass metric, largest first.
        tolerance: singular values below it count as zero.
        loop_error: largest residual of the assembled state.
        problems: what is wrong; empty for a sound machine.
        notes: what is worth knowing.
    """

    name: str
    bodies: int = 0
    positions: int = 0
    velocities: int = 0
    inputs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    rows: int = 0
    rank: int = 0
    mobility: int = 0
    redundant: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    singular_values: tuple[float, ...] = ()
    tolerance: float = 0.0
    loop_error: float = 0.0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """A short report in plain text."""
        lines = [f"{self.name}"]
        if self.velocities:
            lines += [
                f"  bodies {self.bodies}, positions {self.positions}, velocities {self.velocities}, "
                f"inputs {len(self.inputs)}{_listed(self.inputs)}",
                f"  constraints {len(self.constraints)}{_listed(self.constraints)}",
                f"  rows {self.rows}, independent {self.rank}, "
                f"so mobility {self.velocities} - {self.rank} = {self.mobility}",
            ]
            kept = [s for s in self.singular_values if s > self.tolerance]
            lost = [s for s in self.singular_values if s <= self.tolerance]
            if self.rows:
                evidence = f"smallest accepted {min(kept):.3g}" if kept else "none accepted"
                evidence += f", largest rejected {max(lost):.2g}" if lost else ", none rejected"
                lines.append(f"  singular values (mass metric, tolerance {self.tolerance:g}): {evidence}")
            shared = [name for name in self.redundant if name not in self.idle]
            if shared:
                spare = self.rows - self.rank - len(self.idle)
                lines.append(f"  redundant: {spare} of these {len(shared)} rows can go: {', '.join(shared)}")
            if self.idle:
                lines.append(f"  always satisfied: {', '.join(self.idle)}")
            if not self.problems:
                lines.append(f"  assembled, loop error {self.loop_error:.1e}")
        lines += [f"  note: {text}" for text in self.notes]
        for text in self.problems:
            lines.append("  problem: " + text.replace("\n", "\n    "))
        return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> str:
    return f" ({', '.join(names[:12])}{', …' if len(names) > 12 else ''})" if names else ""


def check(machine: Any) -> Check:
    """Look a machine over; problems are returned, not raised.

    Args:
        machine: a `Mechanism`, `Model`, `Lagrangian` or compiled `System`.
    """
    name = str(getattr(machine, "name", machine))
    try:
        system = machine if isinstance(machine, System) else compile(machine)
    except ModelError as error:
        return Check(name, problems=error.problems)
    except CompilerError as error:
        return Check(name, problems=(str(error),))
    layout = system.layout
    counts: dict[str, Any] = dict(
        bodies=len(layout.bodies), positions=layout.nq, velocities=layout.nv, inputs=layout.u_names,
        constraints=layout.groups, rows=layout.m, tolerance=system.tolerance,
    )  # fmt: skip
    try:
        start = system.assemble()
    except AssemblyError as error:
        return Check(name, **counts, problems=(str(error),))
    ranks = [(system.rank(state), state) for state in (start, *neighbours(system, start, steps=STEPS))]
    generic, state = max(ranks, key=lambda pair: pair[0].rank)
    idle = idle_rows(system)
    residual = system.functions("position", state.t, state.q, system.p)[0]
    return Check(
        name, **counts, rank=generic.rank, mobility=generic.mobility, redundant=generic.redundant, idle=idle,
        singular_values=tuple(map(float, generic.singular_values)),
        loop_error=float(np.max(np.abs(residual), initial=0.0)),
        notes=tuple(_notes(system, ranks[0][0], generic)),
    )  # fmt: skip


def _notes(system: System, first: Rank, generic: Rank) -> list[str]:
    notes = []
    if first.rank < generic.rank:
        lost = generic.rank - first.rank
        notes.append(
            f"the starting assembly is a singular configuration: {lost} row(s) fewer are independent there, "
            "so it can move in more ways at that instant"
        )
    if generic.mobility == 0:
        notes.append("mobility 0: a structure, it cannot move")
    if generic.mobility and system.layout.nu > generic.mobility:
        notes.append(f"{system.layout.nu} inputs for mobility {generic.mobility}: redundantly actuated")
    return notes
