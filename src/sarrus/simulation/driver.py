"""`sarrus.simulate`: prepares a run, goes through it and returns what was computed, whatever happens."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError, StateError
from sarrus.simulation.events import Event, checked_events
from sarrus.simulation.mode import Mode
from sarrus.simulation.run import Run
from sarrus.simulation.settings import checked_settings
from sarrus.simulation.trajectory import Trajectory

log = logging.getLogger("sarrus")


def simulate(
    system: System,
    start: State | Trajectory,
    t_end: float,
    *,
    method: str = "dop853",
    rtol: float = 1e-8,
    atol: float | Mapping[str, float] | None = None,
    dt: float | None = None,
    max_step: float = math.inf,
    inputs: Any = None,
    control: Any = None,
    sample: float | None = None,
    events: Sequence[Event] | Event = (),
    output: Any = "steps",
    crossing: str = "continue",
    window: float = 1e-3,
    drift: str = "project",
    loop_error: float = 1e-12,
    baumgarte: tuple[float, float] = (10.0, 10.0),
    active: Mapping[str, bool] | None = None,
    max_steps: int = 10_000_000,
    progress: bool | None = None,
    save: str | PathLike[str] | None = None,
) -> Trajectory:
    """Integrate the motion of a constrained machine, exactly and through singular positions, by compiled code.

    Args:
        system: the compiled machine.
        start: a state that satisfies the constraints (`system.assemble`), or a trajectory to be continued.
        t_end: when to stop [s].
        method: "dop853" (order 8, the default), "dopri5" (order 5), "radau" (implicit, order 5, for stiff machines), or
            with fixed steps "rk4", "euler" (semi-implicit), "variational" (order 2, energy error bounded for ever).
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the coordinates' motion (a number, or by name); rtol of a radian or of the machine's
            length if not given.
        dt: length of fixed steps [s].
        max_step: longest step [s].
        inputs: constants, a `Series` of samples, functions f(t), f(t, x) or f(t, q, v), or a mapping from input names
            to these. Functions are compiled if they can be; x gives everything by name (see `Moment`).
        control: in place of `inputs`: a controller of `sarrus.control`, a function as for `inputs`, or a `Loop` around
            one of these with sampling, delay, noise and limits.
        sample: period [s] at which `inputs` or `control` is asked for, its value being held meanwhile (a digital
            controller); a function is then always called in Python, once for each period.
        events: guards whose passing through zero is located (see `Event`).
        output: "steps" for every step, a number n for every n-th, or an array of times [s].
        crossing: at a singular position "continue" on the branch that the velocity chooses, "stop", or "release" the
            constraints that are nearly lost.
        window: for "release": part of their usual support below which constraints are dropped.
        drift: "project" positions and velocities back to the constraints at each step, "baumgarte" (damp errors), or
            "free" (do nothing).
        loop_error: largest loop error left by the projection, relative to the machine's size.
        baumgarte: gains alpha, beta [1/s] of Φ'' + 2 alpha Φ' + beta² Φ = 0.
        active: constraint name -> False for those switched off at the start.
        max_steps: most steps of the run.
        progress: show a progress bar; None: on a terminal, if the run takes more than two seconds.
        save: file in which the trajectory is saved at the end, however it ends.

    Returns:
        The trajectory. If the run fails, what was computed, with a status that says when, where, why and what to do.

    Raises:
        StateError: if what was asked for makes no sense; nothing is computed then.
    """
    began = time.perf_counter()
    previous = start if isinstance(start, Trajectory) else None
    mode, state = _beginning(system, start, active)
    settings = checked_settings(
        system.layout, state.t, t_end, method, rtol, atol, dt, max_step, sample, output, crossing, window, drift,
        loop_error, baumgarte, max_steps,
    )  # fmt: skip
    state = mode.require(state, settings.drift)
    run = Run(mode, state, settings, inputs, control, checked_events(events), progress)
    return _finished(run.result(time.perf_counter() - began, system), previous, save)


def _finished(trajectory: Trajectory, previous: Trajectory | None, save: str | PathLike[str] | None) -> Trajectory:
    """The whole motion, with a word in the log if it ended badly, and saved if that was asked for."""
    if previous is not None:
        from sarrus.simulation.trajectory import join

        trajectory = join(previous, trajectory)
    if not trajectory.status.ok:
        log.warning("%s: %s", trajectory.system.name, trajectory.status)
    if save is not None:
        _save(trajectory, save)
    return trajectory


def _save(trajectory: Trajectory, path: str | PathLike[str]) -> None:
    try:
        trajectory.save(path)
    except (SarrusError, OSError) as error:  # what was computed matters more than where it was to go
        log.error("%s: not saved: %s", trajectory.system.name, error)


def _beginning(system: System, start: Any, active: Mapping[str, bool] | None) -> tuple[Mode, State]:
    """Machine and state at the start."""
    if not isinstance(system, System):
        raise StateError(f"simulate: expected a compiled machine, got {type(system).__name__}; use sr.compile(machine)")
    flags = dict.fromkeys(system.groups, True)
    if isinstance(start, Trajectory):
        if start.system.layout.q_names != system.layout.q_names:
            raise StateError(f"this trajectory belongs to {start.system.name!r}, not to {system.name!r}")
        last = start.segments[-1]
        flags |= last.active
        system = system.with_parameters(**dict(zip(system.layout.parameters, map(float, last.p), strict=True)))
        start = start.final
    system._own(start)
    if start.count is not None:
        raise StateError("simulate: give one state (states.row(i) picks one from an array of states)")
    for name, on in (active or {}).items():
        system.layout.group_rows(name)
        flags[name] = bool(on)
    return Mode(system, flags), start
