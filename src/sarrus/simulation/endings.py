"""Why a run failed, in words: when, where, why and (see `status`) what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.dynamics.rubbing import closed, grip
from sarrus.simulation.callbacks import Shared, defined_at, place_of
from sarrus.simulation.status import Status, where

if TYPE_CHECKING:
    from sarrus.simulation.dae.run import IdaRun
    from sarrus.simulation.run import Run

WILD = 1e7  # speeds this many times the fastest at the start, or of one radian or length per second, are no motion
FINEST = 1e-13  # tolerances below this are out of reach of numbers with sixteen digits


def failure(run: Run | IdaRun, code: str) -> Status:
    """The status for a return code of the kernel that means failure."""
    raw, system = run.motion.raw, run.mode.system
    layout, t, q, v = system.layout, float(raw.t), run.motion.get("q"), run.motion.get("v")
    place = f"at {where(layout, q)}"
    if code == "call failed":
        return _called(run, t, place)
    if layout.rubbing and code in ("not finite", "too small") and closed(system, run.mode.active):
        grips = grip(system, run.state(), run.mode.active)
        if not grips > 0.05:
            names = ", ".join(map(repr, closed(system, run.mode.active)))
            return Status("jammed", f"contact {names} {place} (determinant {grips:.2g}; it is 1 without friction)", t)
    speed = np.abs(v) / np.array(layout.scales)
    usual = max(float(np.max(np.abs(run.start.v) / np.array(layout.scales), initial=0)), 1.0)
    if speed.size and not float(speed.max()) < WILD * usual:
        fastest = layout.v_names[int(np.argmax(speed))]
        return Status("diverged", f"the speed of {fastest} reached {v[int(np.argmax(speed))]:.3g} {place}", t)
    if code == "not finite":
        return Status("not finite", f"{_what_is_not_finite(run, t, q, v)} {place}", t)
    if code == "lost" or (code == "too small" and _is_pushed(run)):
        return Status("assembly lost", f"{_adrift(run) or _worst_group(run)} {place}", t)
    if code == "too many":
        return Status("too many steps", f"{run.settings.max_steps} steps, the last {raw.h_old:.3g} s long, {place}", t)
    if code == "no convergence":
        return Status("step too small", f"the implicit equations of a step of {run.settings.dt or raw.h:.3g} s have no "
                      f"solution that the iteration finds, {place}; a shorter step helps", t)  # fmt: skip
    finest = min(run.settings.rtol, *(run.settings.atol / np.array(layout.scales)))
    if not run.settings.fixed and finest < FINEST:
        text = f"{finest:.2g} with numbers of 16 digits; the step came down to {raw.h:.2g} s {place}"
        return Status("tolerance unreachable", text, t)
    return Status("step too small", f"{raw.h:.2g} s {place}", t)


def _called(run: Run | IdaRun, t: float, place: str) -> Status:
    """A user's function failed."""
    if run.shared.error is None and not run.motion.raw.bad_guard:  # a compiled controller, which has no exceptions
        return Status("not finite", f"the controller's inputs, {place}", t)
    if run.shared.error is None:  # the kernel itself found a guard that is not a number
        event = run.events[run.motion.raw.bad_guard - 1]
        return Status("not finite", f"the guard of event {event.name!r} is nan shortly after{defined_at(event.guard)}, "
                      f"{place}", t)  # fmt: skip
    return raised(run.shared, t, place)


def raised(shared: Shared, t: float, place: str) -> Status:
    """The status for what a user's function raised, or for Ctrl-C while it was running."""
    error, whose = shared.error, shared.what
    if isinstance(error, KeyboardInterrupt):
        return Status("interrupted", place, t)
    text = str(error) if str(error).startswith(whose) else f"{whose} raised {type(error).__name__}: {error}"
    return Status("callback failed", f"{text}{place_of(error)}", t)


def pass_on(run: Run | IdaRun) -> None:
    """Raise what a function of the user's raised at the very start, where there is nothing to return."""
    shared = run.shared
    if run.status.code == "callback failed" and shared.error is not None and shared.t == float(run.start.t):
        shared.error.add_note(f"raised by {shared.what} at the start of the simulation; nothing was computed")
        raise shared.error


def _what_is_not_finite(run: Run | IdaRun, t: float, q: np.ndarray, v: np.ndarray) -> str:
    """Which input is not finite, or which acceleration."""
    layout = run.mode.system.layout
    for name, value in zip(layout.u_names, run.motion.u, strict=False):
        if not np.isfinite(value):
            return f"input {name!r} is {value} shortly after"
    try:
        with np.errstate(all="ignore"):
            u = run.motion.u[: layout.nu]
            a = run.mode.system.acceleration(run.mode.system.state(q, v, t), u, active=run.mode.active)
    except Exception as error:
        return f"{error}:"
    bad = [name for name, value in zip(layout.v_names, a, strict=True) if not np.isfinite(value)]
    return f"the acceleration of {bad[0]} is not finite" if bad else "a value shortly after this is not finite"


def _is_pushed(run: Run | IdaRun) -> bool:
    """Whether constraints that move with time bring the machine to the end of their reach, a singular position."""
    raw, mode = run.motion.raw, run.mode
    moving = mode.system.terms(run.state()).a * mode.flags
    return bool(np.any(moving)) and raw.s < 0.01 * raw.s_ref


def _adrift(run: Run | IdaRun) -> str:
    """What is lost where nothing brings the machine back to its constraints, which another drift does."""
    if run.settings.drift == "project":
        return ""
    worst, error = max(((g, e[0]) for g, e in run.mode.errors(run.state()).items()), key=lambda x: x[1])
    part = run.motion.raw.s / run.motion.raw.s_ref
    drift = f"drift={run.settings.drift!r}"
    if part < 0.5:
        return (
            f"{drift} does not keep constraint {worst!r} closed as passing the singular position ahead takes (open by "
            f"{error:.2g} of the machine's size here, where its rows carry {part:.2g} of what they can),"
        )
    return f"{drift} has let constraint {worst!r} open by {error:.2g} of the machine's size,"


def _worst_group(run: Run | IdaRun) -> str:
    errors = run.mode.errors(run.state())
    if not errors:
        return "the constraints cannot be satisfied"
    worst = max(errors, key=lambda g: errors[g][0])
    moving = np.any(run.mode.system.terms(run.state()).a[run.mode.system.layout.group_rows(worst)])
    why = " (it is moved by time; its target may be out of reach)" if moving else ""
    return f"constraint {worst!r} cannot be satisfied by the next step{why}"
