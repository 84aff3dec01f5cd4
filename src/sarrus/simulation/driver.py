"""`sarrus.simulate`: prepares a run, goes through it and returns what was computed, whatever happens."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.formulations.record import Formulation
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError, UnknownNameError
from sarrus.simulation.access import append, check_machine
from sarrus.simulation.contacts import Contacts
from sarrus.simulation.events import Event, checked_events
from sarrus.simulation.loop import prepared
from sarrus.simulation.mode import Mode
from sarrus.simulation.plan import make_plan
from sarrus.simulation.run import Run
from sarrus.simulation.settings import Settings, begun, checked_settings
from sarrus.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from sarrus.simulation.dae.run import IdaRun

log = logging.getLogger("sarrus")


def simulate(
    system: System, start: State | Trajectory, t_end: float, *,
    formulation: str | Formulation | None = None,
    method: str = "dop853", rtol: float = 1e-8, atol: float | Mapping[str, float] | None = None,
    dt: float | None = None, max_step: float = math.inf, inputs: Any = None, control: Any = None,
    sample: float | None = None, events: Sequence[Event] | Event = (), output: Any = "steps",
    crossing: str = "continue", window: float = 1e-3, drift: str = "project", loop_error: float = 1e-12,
    baumgarte: tuple[float, float] = (10.0, 10.0), active: Mapping[str, bool] | None = None,
    max_steps: int = 10_000_000, settle: float = 1e-8, progress: bool | None = None,
    save: str | PathLike[str] | None = None,
) -> Trajectory:  # fmt: skip
    """Integrate the motion of a constrained machine, exactly and through singular positions, by compiled code.

    Args:
        system: the compiled machine.
        start: a state that satisfies the constraints (`system.assemble`), or a trajectory to be continued, with the
            constraints and parameters that hold at its end, unless `system` has other parameters than its own.
        t_end: when to stop [s].
        formulation: another way to write the motion (a name, or `sarrus.formulation(name, ...)`); it must make a
            problem that the method takes.
        method: "dop853" (order 8, the default), "dopri5" (order 5), "radau" (implicit, order 5, for stiff machines), or
            with fixed steps "rk4", "euler" (semi-implicit), "variational" (order 2, energy error bounded for ever).
            For differential-algebraic forms: "radau", "ida" (SUNDIALS), "generalized-alpha" (fixed steps).
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the coordinates' motion (a number, or by name); rtol of a radian or of the machine's
            length if not given.
        dt: length of fixed steps [s].
        max_step: longest step [s].
        inputs: constants, a `Series` of samples, functions f(t), f(t, x) or f(t, q, v), or a mapping from input names
            to these. Functions are compiled if they can be; x gives everything by name (see `Moment`). What a function
            returns must follow from its arguments alone; one that remembers things needs `sample`.
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
        settle: rebounds of one-sided constraints lower than this part of the machine's length are taken as none.
        progress: show a progress bar; None: on a terminal, if the run takes more than two seconds.
        save: file in which the trajectory is saved at the end, however it ends.

    Returns:
        The trajectory. If the run fails, what was computed, with a status that says when, where, why and what to do.

    Raises:
        StateError: if what was asked for makes no sense; nothing is computed then. What a function of the user's
            raises at the very start is passed on; later errors end the run with a status.
    """
    given = locals()
    return Simulation(**{name: value for name, value in given.items() if name != "start"})(start)


class Simulation:
    """A simulation that is set up once and run from many starts.

    What `simulate` checks and prepares before the first step is done when this is made, or on the first run, and is
    not repeated: for parameter studies, shooting methods and learning, where runs are short and many. Threads may
    share it.
    """

    def __init__(self, system: System, t_end: float, **options: Any):
        """Check what was asked for.

        Args:
            system: the compiled machine.
            t_end: when to stop [s].
            **options: all others of `simulate`.
        """
        usual: dict[str, Any] = dict(simulate.__kwdefaults__ or {})
        for name in options:
            if name not in usual:
                raise UnknownNameError("option of a simulation", name, list(usual))
        if not isinstance(system, System):
            text = f"simulate: expected a compiled machine, got {type(system).__name__}; use sr.compile(machine)"
            raise StateError(text)
        x = usual | options
        self.system, self._options = system, x
        if x["save"] is not None:
            Trajectory.check_target(x["save"])
        self._plan = plan = make_plan(x["formulation"], x["method"], x["drift"], x["baumgarte"], x["dt"])
        self._events = checked_events(system, x["events"])
        period = prepared(x["inputs"], x["control"], x["sample"], None)[1]
        self._settings = checked_settings(
            system.layout, t_end, x["method"], x["rtol"], x["atol"], x["dt"], x["max_step"], period, x["output"],
            x["crossing"], x["window"], plan.drift, x["loop_error"], plan.baumgarte, x["max_steps"], x["settle"],
        )  # fmt: skip
        for name in x["active"] or {}:
            system.layout.group_rows(name)
        self._left_out = [name for name, on in (x["active"] or {}).items() if not on]
        self._ready: list[Run] = []  # runs that are over and can be used again

    def __call__(self, start: State | Trajectory) -> Trajectory:
        """Run it.

        Args:
            start: as for `simulate`.
        """
        began, previous = time.perf_counter(), None
        run = None if isinstance(start, Trajectory) else self._used()
        if run is not None and not isinstance(start, Trajectory):
            begun(self._settings, _single(self.system, start).t, None)
            run.again(start)
        else:
            run, previous = self._new(start)
        system = run.mode.system
        run.go(self._options["progress"])
        trajectory = run.result(time.perf_counter() - began, system)
        if isinstance(run, Run) and run.is_plain and previous is None:
            self._ready.append(run)
        return _finished(trajectory if previous is None else append(previous, trajectory), self._options["save"])

    def _used(self) -> Run | None:
        try:
            return self._ready.pop()
        except IndexError:  # none, or another thread has it
            return None

    def _new(self, start: Any) -> tuple[Run | IdaRun, Trajectory | None]:
        """A run from a start, and the trajectory that it continues."""
        x = self._options
        mode, state, previous = _beginning(self.system, start, x["active"])
        make, _ = prepared(x["inputs"], x["control"], x["sample"], previous)
        settings, held = begun(self._settings, float(state.t), previous)
        state = mode.require(state, settings.drift, settings.loop_error)
        contacts = Contacts(mode.system, settings.settle, self._left_out)
        kind = _kind(settings)
        return kind(mode, state, settings, make, self._events, contacts, held, self._plan), previous


def _finished(trajectory: Trajectory, save: str | PathLike[str] | None) -> Trajectory:
    """The trajectory, with a word in the log if it ended badly, and saved if that was asked for."""
    if not trajectory.status.ok:
        log.warning("%s: %s", trajectory.system.name, trajectory.status)
    if save is not None:
        _save(trajectory, save)
    return trajectory


def _save(trajectory: Trajectory, path: str | PathLike[str]) -> None:
    try:
        trajectory.save(path)
    except (Exception, KeyboardInterrupt) as error:  # what was computed matters more than where it was to go
        log.error("%s: not saved: %s", trajectory.system.name, str(error) or type(error).__name__)


def _beginning(system: System, start: Any, active: Mapping[str, bool] | None) -> tuple[Mode, State, Trajectory | None]:
    """Machine and state at the start, and the trajectory that is to be continued."""
    flags, previous, state = {name: name not in system.layout.one_sided for name in system.groups}, None, start
    if isinstance(start, Trajectory):
        check_machine(start.system.layout, system.layout)
        previous, last, state = start, start.segments[-1], start.final
        flags |= last.active
        unchanged = np.array_equal(system.p, start.system.p)  # by the user: then those in force at the end hold
        if unchanged and not np.array_equal(system.p, last.p):
            system = system.with_parameters(**dict(zip(system.layout.parameters, last.p.tolist(), strict=True)))
    _single(system, state)
    for name, on in (active or {}).items():
        system.layout.group_rows(name)
        flags[name] = bool(on) and (name not in system.layout.one_sided or flags[name])
    return Mode(system, flags), state, previous


def _single(system: System, state: State) -> State:
    """A state of this machine, one and not many."""
    system._own(state)
    if state.count is not None:
        raise StateError("simulate: give one state (states.row(i) picks one from an array of states)")
    return state


def _kind(settings: Settings) -> type[Run] | type[IdaRun]:
    """The compiled integrators, or SUNDIALS."""
    if settings.method != "ida":
        return Run
    from sarrus.simulation.dae.run import IdaRun

    return IdaRun
