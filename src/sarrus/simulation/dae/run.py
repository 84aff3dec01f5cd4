"""One run of IDA, and the trajectory that it makes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sarrus.dynamics.formulations.mobility import independent_rows
from sarrus.dynamics.formulations.point import point_at
from sarrus.dynamics.manifold import normalise
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import METHODS, Motion
from sarrus.simulation.callbacks import Shared, numeric_moment
from sarrus.simulation.contacts import Contacts
from sarrus.simulation.dae.forms import bound, compiled_problem
from sarrus.simulation.dae.ida import Failed, Ida
from sarrus.simulation.endings import failure, pass_on, raised
from sarrus.simulation.events import Event
from sarrus.simulation.mode import Mode, shape_of
from sarrus.simulation.plan import Plan
from sarrus.simulation.progress import Progress
from sarrus.simulation.run import Keyboard, Make, crossing_of
from sarrus.simulation.settings import Settings
from sarrus.simulation.status import Crossing, Stats, Status, where
from sarrus.simulation.trajectory import Segment, Trajectory

DRIFTING = ("index-1", "index-2")  # forms that do not say Φ = 0
ALLOWED = 10.0  # drift in tolerances at which the machine is closed again
OPEN = 1e-2  # SR_OPEN of sarrus_motion.h
STUCK = 1e-14  # steps shorter than this part of the time are none


class IdaRun:
    """A run like `simulation.run.Run`, by SUNDIALS IDA."""

    def __init__(
        self, mode: Mode, state: State, settings: Settings, make: Make, events: Sequence[Event],
        contacts: Contacts, held: np.ndarray | None, plan: Plan,
    ):  # fmt: skip
        """Prepare the solver; no events, contacts or sampled inputs, so none are `held`."""
        assert plan.form is not None
        self.form = plan.form.name
        self.mode, self.start, self.settings, self.plan = mode, state, settings, plan
        self.system = system = mode.system
        self.shared = Shared(system)
        self.law = law = make(state, settings, self.shared)
        plan.suits(system, settings)
        _refuse(settings, events, contacts, self.form)
        assert system.library is not None
        self.motion = motion = Motion(shape_of(system), system.library.path, row_room=64)
        raw = motion.raw
        mode.enter(motion, state)
        motion.put("v", state.v)
        raw.drift, raw.rtol, raw.pivot = settings.loop_error, settings.rtol, 1e-12
        raw.method, raw.max_steps, raw.every, raw.chunk = METHODS.index("dopri5"), settings.max_steps, 1, 1
        raw.max_step, raw.s_floor = min(settings.max_step, 1e300), min(settings.t_end - float(state.t), 1.0)
        motion.fill("atol", settings.atol)
        motion.call("law", law.callback and law.callback.function)
        raw.loop = law.drive and law.drive.address
        motion.u[: len(law.initial)] = law.initial
        self.stops = [t for t in law.stops if state.t < t < settings.t_end]
        motion.array("stops", self.stops)
        raw.stop_count = len(self.stops)
        self.dae = bound(system, self.form, motion)
        self.on = _independent(mode, state, int(raw.rank))
        self.dae.choose(self.on)
        self.rows = [self._row(float(state.t), np.concatenate([state.q, state.v]))]
        self.steps = 0
        self.events: tuple[Event, ...] = ()
        self.crossings: list[Crossing] = []
        self.status = Status("interrupted", "before the first step", float(state.t))

    def go(self, progress: bool | None) -> None:
        """Integrate to the end, or as far as possible."""
        name, t0 = self.system.layout.name, float(self.start.t)
        with Keyboard(self.shared), Progress(name, t0, self.settings.t_end, progress) as bar:
            try:
                self.status = self._advance(bar)
            except (Failed, KeyboardInterrupt):
                self.status = self._failed()
        pass_on(self)

    def _advance(self, bar: Progress) -> Status:
        raw, solver = self.motion.raw, self._solver()
        for number, end in enumerate([*self.stops, self.settings.t_end]):
            raw.next_stop = number
            solver.start()
            while raw.t < end:
                if self.steps >= self.settings.max_steps:
                    return Status("too many steps", f"{self.settings.max_steps} steps, {self._place()}", raw.t)
                before = raw.t
                t, y, said = solver.step(end)
                if not said and t - before < STUCK * (abs(t) + raw.s_floor):
                    said = f"a step of {t - before:.2g} s"
                if said:
                    return Status("step too small", f"IDA says: {said}; {self._place()}", before)
                self.steps += 1
                self._put(t, y)
                self.rows.append(self._row(t, y))
                bar.show(t)
                if self.shared.pressed:
                    return Status("interrupted", self._place(), t)
                status = self._look(solver, y, end)
                if status is not None:
                    return status
        return Status("finished", "", self.settings.t_end)

    def _look(self, solver: Ida, y: np.ndarray, end: float) -> Status | None:
        """Go over a singular position nearby, and close the machine again if it has drifted too far."""
        raw, settings, name = self.motion.raw, self.settings, self.form
        error, support = self.dae.open(raw.t, y)
        raw.s_ref = max(raw.s_ref, support)
        part = support / raw.s_ref
        if settings.drift == "free":
            if error <= OPEN * part**2:
                return None
            text = f"loops are open by {error:.2g} of the machine's size and carry {part:.2g} of what they can"
            return Status("assembly lost", f"{text}, {self._place()}; {name!r} does not keep the positions", raw.t)
        if self._passed():
            self.rows.pop()
            self._put(self.rows[-1][0], self.rows[-1][1:])
            return self._cross(solver, end)
        if part < max(0.1, min(0.5, 1e-3 / raw.s_ref)):  # sr_near
            return self._cross(solver, end)
        if name in DRIFTING and error > ALLOWED * settings.rtol * part:
            self.dae.close()
            self.rows[-1] = self._row(raw.t, np.concatenate([self.motion.get("q"), self.motion.get("v")]))
            solver.start()
        return None

    def _passed(self) -> bool:
        """Whether the last step went over a singular position: rows that pass zero come out the other way round."""
        (t0, q0), (t, q) = ((row[0], row[1 : 1 + self.system.layout.nq]) for row in self.rows[-2:])
        before, after = (self._directions(*place) for place in ((t0, q0), (t, q)))
        return bool(np.linalg.det(before @ after.T) < 0)

    def _directions(self, t: float, q: np.ndarray) -> np.ndarray:
        """The rows that are on, in the mass metric."""
        system = self.system
        assert system.library is not None
        return system.library.rows(t, q, system._constants, self.mode.flags)[self.on > 0]

    def _cross(self, solver: Ida, end: float) -> Status | None:
        """Over a singular position as the compiled integrators do (sarrus_bridge.h); IDA goes on behind it."""
        raw, motion, near = self.motion.raw, self.motion, 0.1 * self.motion.raw.s_ref
        raw.t_end, raw.started, raw.has_old, raw.h = end, 0, 0, 0.0
        self.dae.close()
        width, code, first = self.rows[-1].size, "go on", True
        while code == "go on" and (first or raw.s < near) and not self.shared.pressed:
            code, first = motion.run(), False
            self.rows += list(motion.take_rows()[:, :width])
            self.steps += 1
        self.crossings += [crossing_of(self.mode, motion, self.settings.rtol, x) for x in motion.take_passages(True)]
        if code not in ("go on", "finished"):
            return failure(self, code)
        if raw.t < end:
            solver.start()
        return None

    def state(self) -> State:
        """Where the run is."""
        return State(self.system.layout, self.motion.get("q"), self.motion.get("v"), self.motion.raw.t)

    def _failed(self) -> Status:
        t = self.motion.raw.t
        if self.shared.pressed:
            return Status("interrupted", self._place(), t)
        if self.shared.error is None:
            return Status("not finite", f"an input or acceleration shortly after is not finite, {self._place()}", t)
        return raised(self.shared, t, self._place())

    def _put(self, t: float, y: np.ndarray) -> None:
        nq, nv = self.system.layout.nq, self.system.layout.nv
        self.motion.raw.t = t
        self.motion.put("q", normalise(self.system.layout, y[:nq]))
        self.motion.put("v", y[nq : nq + nv])

    def _row(self, t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([[t], y[: self.system.layout.nq + self.system.layout.nv]])

    def _place(self) -> str:
        return f"at {where(self.system.layout, self.motion.get('q'))}"

    def _solver(self) -> Ida:
        """IDA with tolerances: positions to atol, velocities at the machine's own pace; all else untested."""
        settings, state, name = self.settings, self.start, self.form
        if self.dae.start():
            raise Failed
        places, shape = compiled_problem(self.system, name).places, shape_of(self.system)
        speeds = slice(places["v"], places["v"] + shape.nv)
        scales = np.array(self.system.layout.scales)
        paces = [*np.abs(state.v) / scales, *np.sqrt(np.abs(self.dae.yp[speeds]) / scales)]
        pace = max([*paces, 1 / (settings.t_end - float(state.t))])
        rtol, atol = settings.rtol, np.full(places["end"], np.inf)
        for q, v in shape.plain:
            atol[q] = settings.atol[v]
        for q, v in shape.turns:
            atol[q : q + 4] = np.min(settings.atol[v : v + 3]) / 2
        if name == "index-3":  # speeds are untested, and err as positions do over a step: this bounds them
            rtol = max(rtol**1.5, 1e-13)
            atol *= rtol / settings.rtol
        else:
            atol[speeds] = settings.atol * pace
        return Ida(self.dae, rtol, atol, speeds.stop, settings.max_step)

    def result(self, seconds: float, system: System) -> Trajectory:
        """The trajectory; accelerations come from the default formulation at each row."""
        mode, law, settings = self.mode, self.law, self.settings
        layout = system.layout
        t, q, v = np.split(np.array(self.rows), [1, 1 + layout.nq], axis=1)
        t, q = t[:, 0].copy(), normalise(layout, q)
        if law.callback is None:
            u = np.tile(law.initial, (len(t), 1))
        else:
            moments = [numeric_moment(system, float(t[k]), q[k], v[k], None) for k in range(len(t))]
            u = np.stack([law.at(x, law.initial) for x in moments])
        a = system.acceleration(system.state(q, v, t), u, active=mode.active)
        lengths = np.diff(t)
        nan, some = float("nan"), len(lengths) > 0
        stats = Stats(
            settings.method, settings.rtol, self.steps, 0, int(self.motion.raw.evaluations),
            int(self.motion.raw.projections), int(self.motion.raw.bridges), float(lengths.min()) if some else nan,
            float(lengths.mean()) if some else nan, seconds,
        )  # fmt: skip
        record = settings.to_dict() | self.plan.to_dict() | {"compiled inputs": law.compiled}
        segment = Segment(0, dict(mode.active), system.p.copy())
        out = Trajectory(
            system, t, q, v.copy(), a, u, self.status, stats, (segment,), tuple(self.crossings), (), record
        )
        if settings.every > 1:
            from dataclasses import replace

            keep = np.unique([*range(0, len(t), settings.every), len(t) - 1])
            return replace(out, t=t[keep], q=q[keep], v=out.v[keep], a=a[keep], u=u[keep])
        if not settings.every and len(t) > 1:
            inside = settings.times[settings.times <= t[-1]]
            return out.sample(inside) if len(inside) else out
        return out


def _refuse(settings: Settings, events: Sequence[Event], contacts: Contacts, form: str) -> None:
    """What IDA does not do."""
    keeps = settings.drift == "free" and form not in DRIFTING
    asked = [
        ("events", bool(events)), ("one-sided constraints", bool(contacts.sides)),
        ("sample", settings.sample is not None), (f"crossing={settings.crossing!r}", settings.crossing != "continue"),
        (f"drift='free' with {form!r}, which keeps the constraints itself", keeps),
    ]  # fmt: skip
    for what, there in asked:
        if there:
            raise StateError(
                f"{what}: not with method 'ida', which goes through without stops; leave it out, or use method='radau' "
                "with the same formulation"
            )


def _independent(mode: Mode, state: State, rank: int) -> np.ndarray:
    """Flags of rows that suffice: a redundant row makes the equations singular (sheet 10)."""
    system = mode.system
    point = point_at(system, state, None, None, mode.active)
    if point.rank < rank:
        raise StateError(
            f"the start is a singular position (rank {point.rank} instead of {rank}), where no multipliers follow from "
            "the equations; start beside it, or use method='radau'"
        )
    flags = np.zeros(system.layout.m)
    flags[independent_rows(point)] = 1.0
    return flags[list(system.kept)]
