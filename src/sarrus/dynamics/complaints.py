"""The texts of failed assemblies: which closure, by how much, and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.positions import Attempt, Request, find_positions, sign_requests
from sarrus.dynamics.state import State
from sarrus.errors import AssemblyError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System


def cannot_close(system: System, request: Request, attempt: Attempt) -> AssemblyError:
    """No assembly was found for the positions."""
    layout = system.layout
    if attempt.accepted:
        wanted = sign_requests(system, request)
        chosen = ", ".join(f"{layout.q_names[k]} {'> 0' if s > 0 else '< 0'}" for k, s in wanted.items())
        text = f"{system.name}: the closures can be satisfied, but not with "
        text += f"the signs asked for ({chosen})." if wanted else "all axes pointing the right way; guess better."
        return AssemblyError(text, _residuals(system, request, attempt.q)[1], attempt.q)
    q, alone = _culprit(system, request, attempt)
    phi, residuals = _residuals(system, request, q)
    worst = alone or max(residuals, key=lambda g: residuals[g])
    rows = sorted(range(layout.m), key=lambda i: -phi[i])[:4]
    unit = {"m": " m", "rad": " rad", "": ""}
    listed = ", ".join(f"{layout.rows[i].name} {phi[i]:.3g}{unit[layout.rows[i].unit]}" for i in rows if phi[i] > 0)
    lines = [
        f"{system.name}: constraint {worst!r} cannot be satisfied.",
        f"  residual {residuals[worst]:.3g} after {attempt.iterations} Newton iterations from each of many guesses",
        f"  largest rows: {listed}",
    ]
    fine = [g for g, x in residuals.items() if x <= 1e-9 * layout.length]
    if fine:
        lines.append(f"  satisfied: {', '.join(fine)}" + (f" (all, once {alone!r} is left out)" if alone else ""))
    lines.append("  " + _hint(system, request, attempt))
    return AssemblyError("\n".join(lines), residuals, q)


def _residuals(system: System, request: Request, q: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """|Φ| by row and the largest of each constraint."""
    layout = system.layout
    phi = np.abs(system.functions("position", request.t, q, system.p)[0]) * system.active_rows(request.active)
    return phi, {g: float(np.max(phi[layout.group_rows(g)], initial=0.0)) for g in layout.groups}


def _culprit(system: System, request: Request, attempt: Attempt) -> tuple[np.ndarray, str | None]:
    """The constraint without which the rest can be put together, and where; the nearest to closing if several."""
    found = []
    active = [g for g in system.groups if request.active.get(g, g not in system.layout.one_sided)]
    for group in active if 1 < len(active) <= 12 else []:
        without = replace(request, active={**request.active, group: False})
        q, _ = find_positions(system, without, attempts=6)
        if q is not None:
            found.append((_residuals(system, request, q)[1][group], group, q))
    if not found:
        return attempt.q, None
    _, group, q = min(found, key=lambda item: item[0])
    return q, group


def _hint(system: System, request: Request, attempt: Attempt) -> str:
    """What to change: for positions that were held, values near by that can be reached, tried out."""
    held = ", ".join(f"{name} = {value}" for name, value in request.positions.items())
    if not held:
        return "hint: check lengths and attachment points, or give a guess with near={...} closer to an assembly."
    near = State(system.layout, attempt.q, t=request.t)
    free = replace(request, positions={}, near=near)
    q, _ = find_positions(system, free)
    if q is None:
        return f"hint: held at {held}; it does not close without holding them either: check lengths and points."
    relaxed = State(system.layout, q, t=request.t)
    for inside in (0.0, 0.01, 0.03, 0.1, 0.3):  # a value at the limit itself may not survive rounding
        values = {
            name: np.round(relaxed[name] + inside * (relaxed[name] - np.asarray(value, dtype=float)), 4)
            for name, value in request.positions.items()
        }
        if find_positions(system, replace(request, positions=values, near=relaxed), attempts=0)[0] is not None:
            near_by = ", ".join(f"{name} = {value}" for name, value in values.items())
            return f"hint: held at {held}, which cannot be reached; it can be put together with {near_by}."
    return f"hint: held at {held}, which cannot be reached; hold fewer of them."


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
