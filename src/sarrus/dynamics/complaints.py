"""The texts of failed assemblies: which closure, by how much, and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sarrus.errors import AssemblyError

if TYPE_CHECKING:
    from sarrus.dynamics.assembly import Attempt, Request
    from sarrus.dynamics.system import System


def cannot_close(system: System, request: Request, attempt: Attempt, wanted: dict[int, float]) -> AssemblyError:
    """No assembly was found for the positions."""
    layout = system.layout
    phi = np.abs(system.functions("position", request.t, attempt.q, system.p)[0]) * system.active_rows(request.active)
    residuals = {g: float(np.max(phi[layout.group_rows(g)], initial=0.0)) for g in layout.groups}
    if attempt.accepted:
        chosen = ", ".join(f"{layout.q_names[k]} {'> 0' if s > 0 else '< 0'}" for k, s in wanted.items())
        text = f"{system.name}: the closures can be satisfied, but not with "
        text += (
            f"the signs asked for ({chosen})." if wanted else "all axes pointing the right way; give a better guess."
        )
        return AssemblyError(text, residuals, attempt.q)
    worst = max(residuals, key=lambda g: residuals[g])
    rows = sorted(range(layout.m), key=lambda i: -phi[i])[:4]
    unit = {"m": " m", "rad": " rad", "": ""}
    lines = [
        f"{system.name}: constraint {worst!r} cannot be satisfied.",
        f"  residual {residuals[worst]:.3g} after {attempt.iterations} Newton iterations from each of many guesses",
        "  largest rows: " + ", ".join(f"{layout.rows[i].name} {phi[i]:.3g}{unit[layout.rows[i].unit]}" for i in rows),
    ]
    fine = [g for g, x in residuals.items() if x <= 1e-9 * layout.length]
    if fine:
        lines.append(f"  satisfied: {', '.join(fine)}")
    lines.append("  " + _hint(system, request, attempt))
    return AssemblyError("\n".join(lines), residuals, attempt.q)


def _hint(system: System, request: Request, attempt: Attempt) -> str:
    held = ", ".join(f"{name} = {value}" for name, value in request.positions.items())
    if not held:
        return "hint: check lengths and attachment points, or give a guess with near={...} closer to an assembly."
    try:
        relaxed = system.assemble(near=replace(request_state(system, attempt), t=request.t), t=request.t)
    except AssemblyError:
        return f"hint: held at {held}; it does not close without holding them either: check lengths and points."
    near = ", ".join(f"{name} = {np.round(relaxed[name], 4)}" for name in request.positions)
    return f"hint: held at {held}, which cannot be reached; close by it can be put together with {near}."


def request_state(system: System, attempt: Attempt):
    """The best positions found, as a state to start from."""
    return system.state(attempt.q)


def cannot_move(system: System, request: Request, slip: np.ndarray, allowed: np.ndarray) -> AssemblyError:
    """The velocities asked for contradict the constraints."""
    layout = system.layout
    bad = [i for i in np.argsort(-slip) if slip[i] > allowed[i]]
    groups = list(dict.fromkeys(layout.rows[i].group for i in bad))
    rows = ", ".join(f"{layout.rows[i].name} {slip[i]:.3g}" for i in bad[:4])
    held = ", ".join(f"{name} = {value}" for name, value in request.velocities.items())
    cure = (
        f"given: {held}; release one of them, or choose values that agree"
        if held
        else "a motion is prescribed that cannot be followed here"
    )
    text = f"{system.name}: no velocities satisfy constraint {groups[0]!r} (A v - a: {rows}).\n  {cure}."
    residuals = {g: float(np.max(slip[layout.group_rows(g)], initial=0.0)) for g in layout.groups}
    return AssemblyError(text, residuals)
