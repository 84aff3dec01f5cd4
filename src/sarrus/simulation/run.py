"""One run of the integrator: calls the kernel until the end, and does what events ask for."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError, StateError
from sarrus.kernel.motion import CORRECTIONS, CROSSINGS, METHODS, Motion, Passage
from sarrus.simulation import derivatives
from sarrus.simulation.callbacks import Called, numeric_moment
from sarrus.simulation.endings import failure
from sarrus.simulation.events import Change, Event, change_of, describe, make_guards
from sarrus.simulation.inputs import make_law
from sarrus.simulation.loop import make_control
from sarrus.simulation.mode import LOOSE, Mode, shape_of
from sarrus.simulation.progress import Progress
from sarrus.simulation.settings import Settings
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status, where
from sarrus.simulation.trajectory import Segment, Trajectory

SLICE = 0.05  # seconds between looks at the clock and the keyboard


class Run:
    """A run from a state to its end; `result` makes the trajectory of what it found."""

    def __init__(
        self, mode: Mode, state: State, settings: Settings, inputs: Any, control: Any, events: Sequence[Event],
        progress: bool | None,
    ):  # fmt: skip
        """Prepare the kernel and go."""
        self.mode, self.settings, self.events = mode, settings, events
        self.called = Called()
        self.rows: list[np.ndarray] = []
        self.count = 0
        self.crossings: list[Crossing] = []
        self.records: list[EventRecord] = []
        self.segments = [self._segment()]
        system, t0 = mode.system, float(state.t)
        self.start = state
        self.motion = motion = Motion(shape_of(system), _path(system))
        if inputs is not None and control is not None:
            raise StateError("simulate: give inputs or control, not both")
        make, given = (make_law, inputs) if control is None else (make_control, control)
        self.law = make(system, given, settings.sample, state, settings.t_end, self.called)
        guards = make_guards(system, events, state, settings.t_end, self.called)
        motion.call("law", self.law.callback)
        motion.call("guard", guards.callback)
        motion.guards([event.direction for event in events])
        motion.raw.guards_need_force = guards.need_force
        if settings.method == "radau":
            motion.call("jacobian", derivatives.jacobian(system))
        if settings.method == "variational":
            motion.call("discrete", derivatives.discrete(system))
        mode.enter(motion, state)
        self._prepare(t0)
        self._place(state)
        self.progress = Progress(system.name, t0, settings.t_end, progress)
        with _Keyboard() as self.keyboard, self.progress:
            self.status = self._go()

    def _prepare(self, t0: float) -> None:
        """Everything in the kernel that does not depend on the mode."""
        s, motion, raw = self.settings, self.motion, self.motion.raw
        raw.method, raw.crossing = METHODS.index(s.method), CROSSINGS.index(s.crossing)
        raw.correction = CORRECTIONS.index(s.drift)
        raw.rtol, raw.drift, raw.window = s.rtol, s.loop_error, s.window
        raw.baumgarte1, raw.baumgarte2 = 2 * s.baumgarte[0], s.baumgarte[1] ** 2
        raw.pivot = 1e-12
        raw.sample, raw.next_sample = self.law.sample, t0
        raw.t_end, raw.max_step, raw.fixed = s.t_end, min(s.max_step, 1e300), s.dt
        raw.s_floor = s.t_end - t0
        raw.max_steps, raw.chunk = s.max_steps, 64
        motion.array("atol", s.atol)
        motion.array("scale", self.mode.system.layout.scales)
        motion.array("times", s.times)
        raw.every, raw.time_count = s.every, len(s.times)
        motion.u[: len(self.law.initial)] = self.law.initial
        raw.loop = None if self.law.loop is None else ctypes.addressof(self.law.loop)
        self._tell_law()

    def _tell_law(self) -> None:
        """Tell a controller which constraints are on."""
        if self.law.switch is not None:
            self.law.keep["numbers"][:] = self.law.switch(self.mode.active)

    def _place(self, state: State) -> None:
        """Put a state into the kernel, to start from there."""
        raw = self.motion.raw
        self.motion.put("q", state.q)
        self.motion.put("v", state.v)
        raw.t, raw.started, raw.mark, raw.h = float(state.t), 0, 1, 0.0
        raw.has_old = 0

    def _segment(self) -> Segment:
        return Segment(self.count, dict(self.mode.active), self.mode.system.p.copy())

    def state(self) -> State:
        """Where the kernel is."""
        return State(self.mode.system.layout, self.motion.get("q"), self.motion.get("v"), self.motion.raw.t)

    # --- going ----------------------------------------------------------------------------------------------------
    def _go(self) -> Status:
        raw = self.motion.raw
        while True:
            began = time.perf_counter()
            code = self.motion.run()
            spent = time.perf_counter() - began
            self._drain(code != "go on")
            if code == "finished":
                return Status("finished", "", float(raw.t))
            if code == "fired":
                status = self._events()
                if status is not None:
                    return status
            elif code == "crossed":
                return Status("crossing", str(self.crossings[-1]), float(raw.t))
            elif code != "go on":
                return failure(self, code)
            if self.keyboard.pressed:
                return Status("interrupted", f"at {where(self.mode.system.layout, self.motion.get('q'))}", float(raw.t))
            raw.chunk = int(min(max(raw.chunk * SLICE / max(spent, 1e-6), 16), 4 * raw.chunk, 10**6))
            self.progress.show(float(raw.t))

    def _drain(self, all_of_them: bool) -> None:
        rows = self.motion.take_rows()
        if len(rows):
            self.rows.append(rows)
            self.count += len(rows)
        for passage in self.motion.take_passages(all_of_them):
            self.crossings.append(self._crossing(passage))

    def _crossing(self, x: Passage) -> Crossing:
        system = self.mode.system
        layout = system.layout
        state = State(layout, x.q, x.v, x.t)
        rank = system.rank(state, self.mode.active)
        speed = x.v / np.array(layout.scales)
        size = float(np.linalg.norm(speed))
        direction = dict(zip(layout.v_names, (speed / size if size > 0 else speed).tolist(), strict=True))
        text = ""
        if x.dwell > 0 and x.dwell != 1e-300:
            text = f"constraints released for {x.dwell:.3g} s"
            if x.miss > 10 * self.settings.rtol:
                text += (
                    f"; on taking them up again the velocity broke them by {x.miss:.2g} of the machine's pace: the "
                    "motion in between was not that of the machine, use crossing='continue'"
                )
        return Crossing(
            x.t, x.q, x.v, rank.singular_values, rank.rank, int(self.motion.raw.rank), direction, text
        )  # fmt: skip

    # --- events ---------------------------------------------------------------------------------------------------
    def _events(self) -> Status | None:
        """Record the guards that fired and do what they ask for; a status if the run ends here."""
        state, stop, changed = self.state(), "", False
        system = self.mode.system
        for index, direction in self.motion.fired:
            event = self.events[index]
            lam = system._solve(state, self._u(), None, self.mode.active)[1]
            try:
                change = change_of(event, numeric_moment(system, float(state.t), state.q, state.v, self._u(), lam))
                mode, after = self._changed(change, state)
            except BaseException as error:
                self.called.error = error
                return failure(self, "call failed", f"the action of event {event.name!r}")
            self.records.append(EventRecord(event.name, float(state.t), state.q, state.v, direction, describe(change)))
            changed |= mode is not self.mode or after is not state
            self.mode, state, system = mode, after, mode.system
            stop = event.name if change.stop else stop
        raw = self.motion.raw
        if changed:
            self._change_over(state)
        else:
            raw.started, raw.mark = 0, 0
        return Status("event", f"{stop!r}", float(raw.t)) if stop else None

    def _u(self) -> np.ndarray:
        return self.motion.u[: self.mode.system.layout.nu].copy()

    def _changed(self, change: Change, state: State) -> tuple[Mode, State]:
        """Mode and state after a change; the same objects if nothing changes."""
        mode, system = self.mode, self.mode.system
        if change.parameters or change.active:
            for name in change.active:
                system.layout.group_rows(name)
            new = system.with_parameters(**change.parameters) if change.parameters else system
            mode = Mode(new, {**mode.active, **{k: bool(on) for k, on in change.active.items()}})
        after = state
        if change.velocities is not None:
            v = change.velocities
            if hasattr(v, "items"):
                from sarrus.dynamics.positions import hold

                v, _ = hold(system, state.v, v, "v")
            after = State(state.layout, state.q, v, state.t)
        if mode is self.mode and after is state:
            return mode, state
        for group, (error, _) in mode.errors(after).items():
            if error > LOOSE:
                raise SarrusError(
                    f"constraint {group!r} is broken by {error:.3g} of the machine's size after the change; expected a "
                    "position at which it holds: switch it on where it closes"
                )
        return mode, mode.corrected(after)

    def _change_over(self, state: State) -> None:
        """Start again after a change."""
        raw = self.motion.raw
        self.mode.enter(self.motion, state)
        self._tell_law()
        self._place(state)
        raw.next_sample = max(raw.next_sample, float(state.t)) if self.law.sample else raw.next_sample
        if self.settings.every:
            # the kernel writes the row after the change when it starts again
            self.segments.append(self._segment())
        elif self.segments[-1].start == self.count:
            self.segments[-1] = self._segment()
        else:
            self.segments.append(self._segment())

    # --- what was found -------------------------------------------------------------------------------------------
    def result(self, seconds: float, system: System) -> Trajectory:
        """The trajectory."""
        layout, raw = system.layout, self.motion.raw
        rows = np.concatenate(self.rows) if self.rows else np.zeros((0, self.motion.rows.shape[1]))
        ended_early = self.status.code != "finished"
        if not len(rows) or (ended_early and rows[-1, 0] < raw.t):
            rows = np.concatenate([rows, self._last_row()[None]])
        edges = np.cumsum([1, layout.nq, layout.nv, layout.nv])
        t, q, v, a, u = np.split(rows, edges, axis=1)
        segments = tuple(x for x in self.segments if x.start < len(rows))
        span = float(raw.t) - float(self.start.t)
        stats = Stats(
            self.settings.method, float("nan") if self.settings.fixed else self.settings.rtol, int(raw.steps),
            int(raw.rejected), int(raw.evaluations), int(raw.projections), int(raw.bridges),
            float(raw.smallest) if raw.steps else float("nan"), span / raw.steps if raw.steps else float("nan"),
            seconds,
        )  # fmt: skip
        settings = self.settings.to_dict() | {"compiled inputs": self.law.compiled} | dict(self.law.about)
        return Trajectory(
            system, t[:, 0].copy(), q.copy(), v.copy(), a.copy(), u.copy(), self.status, stats, segments,
            tuple(self.crossings), tuple(self.records), settings,
        )  # fmt: skip

    def _last_row(self) -> np.ndarray:
        a = self.motion.get("a")
        parts = [
            [self.motion.raw.t],
            self.motion.get("q"),
            self.motion.get("v"),
            np.nan_to_num(a),
            np.nan_to_num(self._u()),
        ]
        return np.concatenate(parts)


def _path(system: System) -> Any:
    assert system.library is not None
    return system.library.path


class _Keyboard:
    """Notes Ctrl-C instead of letting it break in anywhere; a second one breaks in."""

    pressed = False

    def __enter__(self) -> _Keyboard:
        self._old: Any = None
        if threading.current_thread() is threading.main_thread():
            self._old = signal.getsignal(signal.SIGINT)
            if self._old is not None:
                signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, *_: Any) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *_: Any) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
