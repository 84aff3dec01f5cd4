"""One run of the integrator: calls the kernel until the end, and does what events ask for."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError
from sarrus.kernel.motion import CORRECTIONS, CROSSINGS, Motion, Passage
from sarrus.simulation import derivatives
from sarrus.simulation.callbacks import Shared, numeric_moment
from sarrus.simulation.contacts import Contacts, Outcome
from sarrus.simulation.endings import failure, pass_on
from sarrus.simulation.events import Change, Event, change_of, describe, make_guards, new_velocities
from sarrus.simulation.inputs import Law
from sarrus.simulation.mode import LOOSE, Mode, shape_of
from sarrus.simulation.moment import Moment
from sarrus.simulation.plan import Plan
from sarrus.simulation.progress import Progress
from sarrus.simulation.settings import Settings
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status, where
from sarrus.simulation.trajectory import Segment, Trajectory

Make = Callable[[State, Settings, Shared], Law]
SLICE = 0.05  # seconds between looks at the clock and the keyboard
FIRST = 256  # steps before the first look, where no function is called in Python


class Run:
    """A run from a state to its end: `go`, then `result` makes the trajectory of what it found."""

    def __init__(
        self, mode: Mode, state: State, settings: Settings, make: Make, events: Sequence[Event],
        contacts: Contacts, held: np.ndarray | None, plan: Plan,
    ):  # fmt: skip
        """Prepare the integrator; `make` makes the law, `held` are the inputs that a run before this one left."""
        self.mode, self.start, self.settings, self.events, self.plan = mode, state, settings, events, plan
        self.contacts, self.watched = contacts, (*events, *contacts.events)
        self.shared = Shared(mode.system)
        self._clear()
        self.law = make(state, settings, self.shared)
        self.guards = make_guards(self.watched, state, settings.t_end, self.shared)
        self.motion = Motion(shape_of(mode.system), _path(mode.system), _room(settings), self.plan.reduced)
        self.dae = self.plan.enter(self.motion, mode.system, settings)  # to which the motion points
        self._prepare(held)
        self._tell()
        found = contacts.resolve(mode, state, self._inputs(state)) if contacts.sides else Outcome(mode, state)
        self.mode, state = found.mode, found.state
        self.records += found.records
        self.segments = [self._segment()]
        self.mode.enter(self.motion, state)
        self._check_branch(state)
        if self.is_plain:
            self.motion.mark()
        self._tell()
        self._place(state)
        self._watch(found)

    def _clear(self) -> None:
        """Forget what was found."""
        self.rows: list[np.ndarray] = []
        self.count = 0
        self.crossings: list[Crossing] = []
        self.records: list[EventRecord] = []
        self.status = Status("interrupted", "before the first step", float(self.start.t))

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the integrator remembers anything, so that the run can be made again."""
        return (
            self.law.callback is None and not self.watched and not len(self.law.stops)
            and self.settings.method not in ("radau", "variational")
        )  # fmt: skip

    def again(self, start: State) -> None:
        """Get ready for the same run from another start."""
        state = self.start = self.mode.require(start, self.settings.drift, self.settings.loop_error)
        self.shared = Shared(self.mode.system)
        self._clear()
        self.segments = [self._segment()]
        self.motion.rewind()
        self.motion.raw.s_floor = min(self.settings.t_end - state.t, 1.0)
        self._place(state)
        self.mode.count(self.motion)
        self._check_branch(state)

    def _check_branch(self, state: State) -> None:
        raw = self.motion.raw
        if raw.here < raw.rank:
            self.mode.follow(state, raw.rank)

    def _prepare(self, held: np.ndarray | None) -> None:
        """Everything in the kernel that does not depend on the mode."""
        s, motion, raw, t0 = self.settings, self.motion, self.motion.raw, float(self.start.t)
        raw.crossing, raw.correction = CROSSINGS.index(s.crossing), CORRECTIONS.index(s.drift)
        raw.rtol, raw.drift, raw.window = s.rtol, s.loop_error, s.window
        raw.baumgarte1, raw.baumgarte2 = 2 * s.baumgarte[0], s.baumgarte[1] ** 2
        raw.pivot = 1e-12
        raw.t_end, raw.max_step, raw.fixed = s.t_end, min(s.max_step, 1e300), s.dt
        raw.s_floor = min(s.t_end - t0, 1.0)  # so that a t_end far away does not make short steps look stuck
        raw.max_steps, raw.chunk = s.max_steps, FIRST if self._is_compiled else 16
        motion.fill("atol", s.atol)
        motion.array("times", s.times)
        raw.every, raw.time_count = s.every, len(s.times)
        self._hand_over()
        motion.guards([event.direction for event in self.watched])
        motion.u[: len(self.law.initial)] = self.law.initial if held is None else held
        motion.array("stops", self.law.stops)
        raw.stop_count = len(self.law.stops)
        raw.sample, raw.first_sample = self.law.sample, s.first_sample
        if raw.sample > 0:
            raw.samples = math.ceil((t0 - s.first_sample) / raw.sample - 1e-9)
        raw.next_sample = raw.first_sample + raw.samples * raw.sample
        if self.law.drive is not None:
            raw.next_sample = min(raw.next_sample, self.law.drive.due)
        if s.method == "radau" and not self.plan.implicit:
            motion.call("jacobian", derivatives.jacobian(self.mode.system))
        if s.method == "variational":
            motion.call("discrete", derivatives.discrete(self.mode.system))

    def _hand_over(self) -> None:
        """The user's functions, for the kernel."""
        for name, callback in (("law", self.law.callback), ("guard", self.guards)):
            self.motion.call(name, callback and callback.function)
        self.motion.raw.guards_need_force = self.guards is not None and self.guards.depends_on("lam")
        self.motion.raw.loop = self.law.drive and self.law.drive.address

    def _tell(self) -> None:
        """Tell a controller which constraints are on."""
        if self.law.drive is not None:
            self.law.drive.tell(self.mode.active)

    def _place(self, state: State) -> None:
        """Put a state into the kernel, to start from there."""
        raw = self.motion.raw
        self.motion.put("q", state.q)
        self.motion.put("v", state.v)
        raw.t, raw.started, raw.mark, raw.h = float(state.t), 0, 1, 0.0
        raw.has_old = 0

    def _watch(self, found: Outcome) -> None:
        """The guards of contacts that matter now, and a step shorter than the next rebound."""
        if self.contacts.sides:
            self.motion.watch(len(self.events), self.contacts.directions(self.mode))
            self.motion.arm([len(self.events) + k for k in found.leaving])
            self.motion.raw.h = found.flight / 8 if np.isfinite(found.flight) else 0.0

    def _inputs(self, state: State) -> np.ndarray:
        """Inputs at the start, before the kernel asks for them."""
        u = self.motion.u[: state.layout.nu].copy()
        return self.law.at(numeric_moment(self.mode.system, float(state.t), state.q, state.v, None), u)

    def _segment(self) -> Segment:
        return Segment(self.count, dict(self.mode.active), self.mode.system.p.copy(), bool(self.law.sample))

    def state(self) -> State:
        """Where the kernel is."""
        return State(self.mode.system.layout, self.motion.get("q"), self.motion.get("v"), self.motion.raw.t)

    # --- going ----------------------------------------------------------------------------------------------------
    def go(self, progress: bool | None) -> None:
        """Integrate to the end, or as far as possible."""
        layout, t0 = self.mode.system.layout, float(self.start.t)
        try:
            status = self._slice() if self._is_compiled else None  # most short runs are over then
            if status is None:
                with Keyboard(self.shared), Progress(layout.name, t0, self.settings.t_end, progress) as bar:
                    while status is None:
                        status = self._slice()
                        bar.show(float(self.motion.raw.t))
            self.status = status
        except KeyboardInterrupt:  # pressed at the very start, or again while something was going on in Python
            self.status = Status("interrupted", f"at {where(layout, self.motion.get('q'))}", self.motion.raw.t)
        self._drain(all_of_them=True)
        pass_on(self)

    @property
    def _is_compiled(self) -> bool:
        """Whether no function is called in Python."""
        return self.law.compiled and (self.guards is None or self.guards.compiled)

    def _slice(self) -> Status | None:
        """Some steps, and what is to be done after them; a status if the run ends there."""
        raw = self.motion.raw
        began = time.perf_counter()
        code = self.motion.run()
        spent = time.perf_counter() - began
        code = "call failed" if self.shared.error else code
        self._drain(code != "go on")
        if code == "finished":
            return Status("finished", "", raw.t)
        if code == "fired":
            status = self._events()
            if status is not None:
                return status
        elif code == "crossed":
            return Status("crossing", str(self.crossings[-1]), raw.t)
        elif code != "go on":
            return failure(self, code)
        if self.shared.pressed:
            raise KeyboardInterrupt
        raw.chunk = int(min(max(raw.chunk * SLICE / max(spent, 1e-6), 1), 4 * raw.chunk, 10**6))
        return None

    def _drain(self, all_of_them: bool) -> None:
        rows = self.motion.take_rows()
        if len(rows):
            self._write(rows)
        for passage in self.motion.take_passages(all_of_them):
            self.crossings.append(crossing_of(self.mode, self.motion, self.settings.rtol, passage))

    # --- events ---------------------------------------------------------------------------------------------------
    def _events(self) -> Status | None:
        """Record the guards that fired and do what they ask for; a status if the run ends here."""
        state, stop, changed = self.state(), "", False
        fired, first = self.motion.fired, len(self.events)
        for index, direction in fired:
            if index >= first:
                continue
            event, self.shared.t = self.events[index], float(state.t)
            self.shared.what = f"action of event {event.name!r}"
            try:
                change = change_of(event, self._moment(state))
                mode, after = self._changed(change, state)
                if callable(event.action) and [x for x in (self.law.callback, self.guards) if x and x.is_outdated()]:
                    self._hand_over()
            except BaseException as error:
                self.shared.error = error
                return failure(self, "call failed")
            energy = 0.0 if after is state else _kinetic(mode.system, after) - _kinetic(self.mode.system, state)
            text = describe(change)
            self.records.append(EventRecord(event.name, float(state.t), state.q, state.v, direction, text, energy))
            # a function of the user's may have changed what the inputs depend on: then they jump
            changed |= mode is not self.mode or after is not state or callable(event.action)
            self.mode, state, self.shared.system = mode, after, mode.system
            stop = event.name if change.stop else stop
        found, mine = Outcome(self.mode, state), [index - first for index, _ in fired if index >= first]
        if self.contacts.sides and (changed or mine):
            try:
                found = self.contacts.resolve(self.mode, state, self.motion.u[: state.layout.nu].copy(), mine)
            except SarrusError as error:
                self.shared.error, self.shared.what = error, "a change of contacts"
                return failure(self, "call failed")
            changed |= found.mode is not self.mode
            self.mode, state = found.mode, found.state
            self.records += found.records
        if changed:
            self._change_over(state, found)
        else:
            self.motion.raw.started, self.motion.raw.mark = 0, 0
        if not stop:
            return None
        if changed:
            self._write(self._row())  # the kernel does so only when it goes on
        return Status("event", f"{stop!r}", float(state.t))

    def _moment(self, state: State) -> Moment:
        """A state with its inputs and constraint forces."""
        u = self.motion.u[: state.layout.nu].copy()
        lam = self.mode.system._solve(state, u, None, self.mode.active)[1]
        return numeric_moment(self.mode.system, float(state.t), state.q, state.v, u, lam)

    def _changed(self, change: Change, state: State) -> tuple[Mode, State]:
        """Mode and state after a change; the same objects if nothing changes."""
        mode, system, after = self.mode, self.mode.system, state
        if change.parameters or change.active:
            for name in change.active:
                system.layout.group_rows(name)
            new = system.with_parameters(**change.parameters) if change.parameters else system
            mode = Mode(new, {**mode.active, **{k: bool(on) for k, on in change.active.items()}})
        if change.velocities is not None:
            after = State(state.layout, state.q, new_velocities(system, state.v, change.velocities), state.t)
        if mode is self.mode and after is state:
            return mode, state
        for group, (error, _) in mode.errors(after).items():
            if error > LOOSE:
                cure = "switch it on where it closes" if change.active.get(group) else "leave it as it closes"
                raise SarrusError(
                    f"constraint {group!r} is broken by {error:.3g} of the machine's size after the change "
                    f"({describe(change)}); expected a position at which it holds: {cure}"
                )
        return mode, mode.settled(after, self.settings.loop_error)

    def _change_over(self, state: State, found: Outcome) -> None:
        """Start again after a change; the kernel writes the row after it then, if rows belong to steps."""
        self.mode.enter(self.motion, state)
        self._tell()
        self._place(state)
        self._watch(found)
        if self.segments[-1].start == self.count:
            self.segments.pop()
        self.segments.append(self._segment())

    # --- what was found -------------------------------------------------------------------------------------------
    def result(self, seconds: float, system: System) -> Trajectory:
        """The trajectory."""
        layout, raw = system.layout, self.motion.raw
        if not self.rows or (self.status.code != "finished" and self.rows[-1][-1, 0] < raw.t):
            self._write(self._row())
        rows = self.rows[0] if len(self.rows) == 1 else np.concatenate(self.rows)
        edges = list(accumulate([1, layout.nq, layout.nv, layout.nv, layout.nu]))
        q, v, a, u = (rows[:, start:stop].copy() for start, stop in pairwise(edges))
        segments = tuple([x for x in self.segments if x.start < len(rows)])
        span = float(raw.t) - float(self.start.t)
        stats = Stats(
            self.settings.method, float("nan") if self.settings.fixed else self.settings.rtol, int(raw.steps),
            int(raw.rejected), int(raw.evaluations), int(raw.projections), int(raw.bridges),
            float(raw.smallest) if raw.steps else float("nan"), span / raw.steps if raw.steps else float("nan"),
            seconds,
        )  # fmt: skip
        settings = self.settings.to_dict() | self.plan.to_dict() | {"compiled inputs": self.law.compiled}
        settings |= self.law.drive.record() if self.law.drive else {}
        return Trajectory(
            system, rows[:, 0].copy(), q, v, a, u, self.status, stats, segments, tuple(self.crossings),
            tuple(self.records), settings,
        )  # fmt: skip

    def _write(self, rows: np.ndarray) -> None:
        self.rows.append(rows)
        self.count += len(rows)

    def _row(self) -> np.ndarray:
        """Where the kernel is, as a row of the record; what cannot be computed there is zero."""
        t, q, v = float(self.motion.raw.t), self.motion.get("q"), self.motion.get("v")
        u, a, system = self.motion.u[: self.mode.system.layout.nu].copy(), 0 * v, self.mode.system
        with suppress(Exception), np.errstate(all="ignore"):
            if self.law.callback and not self.law.sample and not self.shared.error:
                u = self.law.at(numeric_moment(system, t, q, v, None), u)
        u = np.where(np.isfinite(u), u, 0.0)
        with suppress(Exception), np.errstate(all="ignore"):
            a = system.acceleration(system.state(q, v, t), u, active=self.mode.active)
        return np.concatenate([[t], q, v, a, u])[None]


def crossing_of(mode: Mode, motion: Motion, rtol: float, x: Passage) -> Crossing:
    """The record of a passage that the kernel found."""
    layout = mode.system.layout
    sigma, rank = mode.singular_values(x.t, x.q)
    speed = x.v / np.array(layout.scales)
    size = float(np.linalg.norm(speed))
    direction = dict(zip(layout.v_names, (speed / size if size > 0 else speed).tolist(), strict=True))
    text = ""
    if x.dwell > 0 and x.dwell != 1e-300:
        text = f"constraints released for {x.dwell:.3g} s"
        if x.miss > 10 * rtol:
            text += (
                f"; on taking them up again the velocity broke them by {x.miss:.2g} of the machine's pace: the motion "
                "in between was not that of the machine, use crossing='continue'"
            )
    return Crossing(x.t, x.q, x.v, sigma, rank, int(motion.raw.rank), direction, text)


def _kinetic(system: System, state: State) -> float:
    return float(system.energy(state).kinetic)


def _room(settings: Settings) -> int:
    """Rows to make room for: no more than there will be, if that is known."""
    return Motion.ROWS if settings.every else min(len(settings.times) + 2, Motion.ROWS)


def _path(system: System) -> Any:
    assert system.library is not None
    return system.library.path


class Keyboard:
    """Notes Ctrl-C instead of letting it break in anywhere; a second one breaks in."""

    def __init__(self, shared: Shared):
        self._shared = shared
        self._old: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            old = signal.getsignal(signal.SIGINT)
            if old not in (None, signal.SIG_IGN):
                self._old = old
                signal.signal(signal.SIGINT, self._press)

    def _press(self, *_: Any) -> None:
        if self._shared.pressed:
            raise KeyboardInterrupt
        self._shared.pressed = True

    def __exit__(self, *_: Any) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
