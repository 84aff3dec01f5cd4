"""One run of a solver for differential-algebraic equations, and the trajectory that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sarrus.dynamics.formulations.mobility import independent_rows
from sarrus.dynamics.formulations.point import point_at
from sarrus.dynamics.manifold import normalise
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.dae import Dae
from sarrus.kernel.motion import Motion
from sarrus.simulation.callbacks import Shared, numeric_moment
from sarrus.simulation.contacts import Contacts
from sarrus.simulation.dae.forms import Problem, compiled_problem, start_values
from sarrus.simulation.dae.ida import run_ida
from sarrus.simulation.endings import raised
from sarrus.simulation.events import Event
from sarrus.simulation.inputs import Law
from sarrus.simulation.mode import Mode, shape_of
from sarrus.simulation.plan import Plan
from sarrus.simulation.progress import Progress
from sarrus.simulation.run import Keyboard, Make
from sarrus.simulation.settings import Settings
from sarrus.simulation.status import Stats, Status, where
from sarrus.simulation.trajectory import Segment, Trajectory

_OWN = {"radau": "radau", "generalized-alpha": "alpha"}


class DaeRun:
    """A run like `simulation.run.Run`, by a solver for differential-algebraic equations."""

    def __init__(
        self, mode: Mode, state: State, settings: Settings, make: Make, events: Sequence[Event],
        contacts: Contacts, held: np.ndarray | None, plan: Plan,
    ):  # fmt: skip
        """Prepare the solver; no events, contacts or sampled inputs, hence none `held`."""
        assert plan.form is not None and held is None
        _refuse(settings, events, contacts)
        self.mode, self.start, self.settings, self.plan = mode, state, settings, plan
        system = mode.system
        self.shared = Shared(system)
        self.law = make(state, settings, self.shared)
        if self.law.drive is not None:
            raise StateError("control: differential-algebraic forms take inputs; use a formulation that gives an ODE")
        self.problem = problem = compiled_problem(system, plan.form.name)
        self.dae = dae = Dae(problem.library, problem.size, problem.nq + problem.nv)
        on, u0 = _independent(mode, state), _inputs(mode, self.law, state)
        dae.array("u", u0 if self.law.callback is None else np.zeros(len(u0)))
        dae.array("p", system.p)
        dae.array("on", on)
        dae.array("scale", 1 / system.norms)
        dae.call(self.law.callback and self.law.callback.function)
        dae.y[:], dae.yp[:] = start_values(system, problem, state, u0, on)
        _tolerances(dae, mode, problem, settings, state)
        raw, t0 = dae.raw, float(state.t)
        raw.t, raw.t_end, raw.max_step, raw.fixed = t0, settings.t_end, min(settings.max_step, 1e300), settings.dt
        raw.max_steps = settings.max_steps
        raw.h = min(1e-2 / raw.pace * min(settings.rtol, 1e-2) ** 0.25, settings.t_end - t0, raw.max_step)
        self.rows = np.concatenate([[t0], state.q, state.v])[None]
        self.status = Status("interrupted", "before the first step", t0)

    def go(self, progress: bool | None) -> None:
        """Integrate to the end, or as far as possible."""
        name, t0 = self.mode.system.layout.name, float(self.start.t)
        with Keyboard(self.shared), Progress(name, t0, self.settings.t_end, progress) as bar:

            def look(t: float) -> bool:
                bar.show(t)
                return self.shared.pressed

            if self.settings.method == "ida":
                self.rows, code, text = run_ida(self.dae, self.problem, self.settings, look)
            else:
                self.rows, code, text = _run_own(self.dae, _OWN[self.settings.method], look)
        self.status = _status(code, text, self.rows, self.mode, self.shared, self.settings)

    def result(self, seconds: float, system: System) -> Trajectory:
        """The trajectory; accelerations come from the default formulation at each row."""
        return _trajectory(self, system, seconds)


def _refuse(settings: Settings, events: Sequence[Event], contacts: Contacts) -> None:
    """What these solvers do not do."""
    asked = [
        ("events", bool(events)), ("one-sided constraints", bool(contacts.sides)),
        ("sample", settings.sample is not None),
        (f"crossing={settings.crossing!r}", settings.crossing != "continue"),
        (f"drift={settings.drift!r}", settings.drift != "project"),
    ]  # fmt: skip
    for what, there in asked:
        if there:
            raise StateError(
                f"{what}: not with a differential-algebraic form, whose solver keeps the constraints itself and goes "
                "through without stops; leave it out, or take a formulation that makes an ODE"
            )


def _independent(mode: Mode, state: State) -> np.ndarray:
    """Flags of rows that suffice: a redundant row makes the equations singular (sheet 10)."""
    system = mode.system
    kept = list(system.kept)
    point = point_at(system, state, None, None, mode.active)
    assert system.library is not None
    motion = Motion(shape_of(system), system.library.path, row_room=2)
    mode.enter(motion, state)
    rank = int(motion.raw.rank)
    if point.rank < rank:
        raise StateError(
            f"the start is a singular position (rank {point.rank} instead of {rank}), where no multipliers follow from "
            "the equations; start beside it, or take a formulation that makes an ODE"
        )
    flags = np.zeros(system.layout.m)
    flags[independent_rows(point)] = 1.0
    return flags[kept]


def _inputs(mode: Mode, law: Law, state: State) -> np.ndarray:
    moment = numeric_moment(mode.system, float(state.t), state.q, state.v, None)
    return law.initial if law.callback is None else np.array(law.callback.call(moment), dtype=float)


def _tolerances(dae: Dae, mode: Mode, problem: Problem, settings: Settings, state: State) -> None:
    """Positions to atol, velocities at the machine's own pace; all else stays out of the test (sarrus_dae.h)."""
    shape, scales = shape_of(mode.system), np.array(mode.system.layout.scales)
    acceleration = dae.yp[problem.part("v")]
    paces = [*np.abs(state.v) / scales, *np.sqrt(np.abs(acceleration) / scales)]
    dae.raw.pace = max([*paces, 1 / (settings.t_end - float(state.t))])
    atol, rtol, power = np.zeros(problem.size), np.zeros(problem.size), np.zeros(problem.size)
    for q, v in shape.plain:
        atol[q] = settings.atol[v]
    for q, v in shape.turns:
        atol[q : q + 4] = np.min(settings.atol[v : v + 3]) / 2
    speeds = problem.part("v")
    atol[speeds], rtol[speeds] = settings.atol * dae.raw.pace, settings.rtol
    if problem.form == "index-3":
        power[speeds] = 1.0
    dae.tolerances(atol, rtol, power)


def _run_own(dae: Dae, method: str, look: Callable[[float], bool]) -> tuple[np.ndarray, str, str]:
    parts = []
    while True:
        code = dae.run(method)
        parts.append(dae.take_rows())
        if code != "more":
            return np.concatenate(parts), code, ""
        if look(float(dae.raw.t)):
            return np.concatenate(parts), "interrupted", ""


def _status(code: str, text: str, rows: np.ndarray, mode: Mode, shared: Shared, settings: Settings) -> Status:
    """How it ended."""
    layout, t = mode.system.layout, float(rows[-1, 0])
    place = f"at {where(layout, rows[-1, 1 : 1 + layout.nq])}"
    if shared.error is not None:
        return raised(shared, t, place)
    if code == "interrupted":
        return Status("interrupted", place, t)
    if code == "done":
        return Status("finished", "", t)
    if code == "too many":
        return Status("too many steps", f"{settings.max_steps} steps, {place}", t)
    reason = "the equations of a step have no solution that the iteration finds, " if code == "no convergence" else ""
    return Status("step too small", f"{reason}{text}{place}", t)


def _trajectory(run: DaeRun, system: System, seconds: float) -> Trajectory:
    mode, rows, law, settings, raw = run.mode, run.rows, run.law, run.settings, run.dae.raw
    layout = system.layout
    t, q, v = np.split(rows, [1, 1 + layout.nq], axis=1)
    t, q = t[:, 0].copy(), normalise(layout, q)
    if law.callback is None:
        u = np.tile(law.initial, (len(t), 1))
    else:
        u = np.stack([law.callback.call(numeric_moment(system, float(t[k]), q[k], v[k], None)) for k in range(len(t))])
    a = system.acceleration(system.state(q, v, t), u, active=mode.active)
    steps = int(raw.steps)
    lengths = np.diff(t)
    stats = Stats(
        settings.method, float("nan") if settings.fixed else settings.rtol, steps, int(raw.rejected),
        int(raw.evaluations), 0, 0, float(lengths.min()) if steps else float("nan"),
        (float(t[-1]) - float(t[0])) / steps if steps else float("nan"), seconds,
    )  # fmt: skip
    record = settings.to_dict() | run.plan.to_dict() | {"compiled inputs": law.compiled}
    segment = Segment(0, dict(mode.active), system.p.copy())
    out = Trajectory(system, t, q, v.copy(), a, u, run.status, stats, (segment,), (), (), record)
    if settings.every > 1:
        from dataclasses import replace

        keep = np.unique([*range(0, len(t), settings.every), len(t) - 1])
        return replace(out, t=t[keep], q=q[keep], v=out.v[keep], a=a[keep], u=u[keep])
    if not settings.every and len(t) > 1:
        inside = settings.times[settings.times <= t[-1]]
        return out.sample(inside) if len(inside) else out
    return out
