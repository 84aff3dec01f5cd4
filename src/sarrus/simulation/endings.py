"""Why a run failed, in words: when, where, why and (see `status`) what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sarrus.simulation.callbacks import numeric_moment
from sarrus.simulation.status import Status, where

if TYPE_CHECKING:
    from sarrus.simulation.run import Run

WILD = 1e7  # speeds this many times the fastest at the start, or of one radian or length per second, are no motion
FINEST = 1e-13  # tolerances below this are out of reach of numbers with sixteen digits


def failure(run: Run, code: str, culprit: str = "") -> Status:
    """The status for a return code of the kernel that means failure."""
    raw, system = run.motion.raw, run.mode.system
    layout, t, q, v = system.layout, float(raw.t), run.motion.get("q"), run.motion.get("v")
    place = f"at {where(layout, q)}"
    if code == "call failed":
        return _called(run, t, culprit)
    speed = np.abs(v) / np.array(layout.scales)
    usual = max(float(np.max(np.abs(run.start.v) / np.array(layout.scales), initial=0)), 1.0)
    if speed.size and not float(speed.max()) < WILD * usual:
        fastest = layout.v_names[int(np.argmax(speed))]
        return Status("diverged", f"the speed of {fastest} reached {v[int(np.argmax(speed))]:.3g} {place}", t)
    if code == "not finite":
        return Status("not finite", f"{_what_is_not_finite(run, t, q, v)} {place}", t)
    if code == "lost":
        return Status("assembly lost", f"{_worst_group(run)} {place}", t)
    if code == "too many":
        return Status("too many steps", f"{run.settings.max_steps} steps, the last {raw.h_old:.3g} s long, {place}", t)
    if code == "no convergence":
        return Status("step too small", f"the implicit equations of a step of {run.settings.dt or raw.h:.3g} s have no "
                      f"solution that the iteration finds, {place}; a shorter step helps", t)  # fmt: skip
    if run.settings.rtol < FINEST:
        text = f"rtol = {run.settings.rtol:g} with numbers of 16 digits; the step came down to {raw.h:.2g} s {place}"
        return Status("tolerance unreachable", text, t)
    return Status("step too small", f"{raw.h:.2g} s {place}", t)


def _called(run: Run, t: float, culprit: str) -> Status:
    error = run.called.error
    if isinstance(error, KeyboardInterrupt):
        return Status("interrupted", f"at {where(run.mode.system.layout, run.motion.get('q'))}", t)
    whose = culprit or "a function of yours"
    if error is None:  # compiled code has no exceptions: it returns nonzero
        return Status(
            "not finite", f"the controller's inputs at {where(run.mode.system.layout, run.motion.get('q'))}", t
        )
    line = ""
    trace = error.__traceback__ if error else None
    while trace is not None:
        line = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return Status("callback failed", f"{whose} raised {type(error).__name__}: {error}{line}", t)


def _what_is_not_finite(run: Run, t: float, q: np.ndarray, v: np.ndarray) -> str:
    """Which input is not finite now or a little later; else it is a term of the machine itself."""
    names = run.mode.system.layout.u_names
    for ahead in (0.0, float(run.motion.raw.h), float(run.motion.raw.h_old), 1e-6 * run.settings.t_end):
        try:
            u = run.law.call(numeric_moment(run.mode.system, t + ahead, q, v, None))
        except Exception:  # then it is not this input that stopped the run
            break
        bad = [name for name, value in zip(names, u, strict=True) if not np.isfinite(value)]
        if bad:
            return f"input {bad[0]!r} is {u[names.index(bad[0])]} shortly after"
    try:
        a = run.mode.system.acceleration(run.mode.system.state(q, v, t), run._u(), active=run.mode.active)
        bad = [name for name, value in zip(run.mode.system.layout.v_names, a, strict=True) if not np.isfinite(value)]
    except Exception as error:
        return f"{error}:"
    return f"the acceleration of {bad[0]} is not finite" if bad else "a value shortly after this is not finite"


def _worst_group(run: Run) -> str:
    errors = run.mode.errors(run.state())
    if not errors:
        return "the constraints cannot be satisfied"
    worst = max(errors, key=lambda g: errors[g][0])
    moving = np.any(run.mode.system.terms(run.state()).a[run.mode.system.layout.group_rows(worst)])
    why = " (it is moved by time; its target may be out of reach)" if moving else ""
    return f"constraint {worst!r} cannot be satisfied by the next step{why}"
