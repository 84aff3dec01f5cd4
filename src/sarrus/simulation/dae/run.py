"""One run of a solver for differential-algebraic equations, and the trajectory that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarrus.dynamics.formulations.mobility import independent_rows
from sarrus.dynamics.formulations.point import point_at
from sarrus.dynamics.manifold import normalise
from sarrus.dynamics.state import State
from sarrus.errors import StateError
from sarrus.kernel.dae import Dae
from sarrus.simulation.callbacks import Called, numeric_moment
from sarrus.simulation.dae.forms import Problem, compiled_problem, start_values
from sarrus.simulation.dae.ida import run_ida
from sarrus.simulation.events import Event
from sarrus.simulation.inputs import Law, make_law
from sarrus.simulation.mode import Mode, shape_of
from sarrus.simulation.plan import Plan
from sarrus.simulation.settings import Settings
from sarrus.simulation.status import Stats, Status, where
from sarrus.simulation.trajectory import Segment, Trajectory

_OWN = {"radau": "radau", "generalized-alpha": "alpha"}


def run_dae(
    mode: Mode, state: State, settings: Settings, inputs: Any, events: Sequence[Event], plan: Plan, seconds: Any
) -> Trajectory:
    """Integrate a form from a state.

    Args:
        mode: the machine and which of its constraints are on.
        state: a consistent start.
        settings: how to integrate.
        inputs: as for `simulate`.
        events: must be empty.
        plan: with the form.
        seconds: function that gives the time spent so far [s].
    """
    assert plan.form is not None
    system = mode.system
    _refuse(settings, events)
    called = Called()
    law = make_law(system, inputs, None, state, settings.t_end, called)
    on = _independent(mode, state)
    problem = compiled_problem(system, plan.form.name)
    dae = Dae(problem.library, problem.size, problem.nq + problem.nv)
    u0 = _inputs(mode, law, state)
    dae.array("u", u0 if law.callback is None else np.zeros(len(u0)))
    dae.array("p", system.p)
    dae.array("on", on)
    dae.array("scale", 1 / system.norms)
    dae.call(law.callback)
    dae.y[:], dae.yp[:] = start_values(system, problem, state, u0, on)
    _tolerances(dae, mode, problem, settings, state)
    raw = dae.raw
    raw.t, raw.t_end, raw.max_step, raw.fixed = (
        float(state.t),
        settings.t_end,
        min(settings.max_step, 1e300),
        settings.dt,
    )
    raw.max_steps = settings.max_steps
    raw.h = min(1e-2 / raw.pace * min(settings.rtol, 1e-2) ** 0.25, settings.t_end - float(state.t), raw.max_step)
    if settings.method == "ida":
        rows, code, text = run_ida(dae, problem, settings)
    else:
        rows, code, text = _run_own(dae, _OWN[settings.method])
    status = _status(code, text, rows, mode, called, settings)
    return _trajectory(mode, rows, law, status, settings, plan, dae, float(state.t), seconds)


def _refuse(settings: Settings, events: Sequence[Event]) -> None:
    """What these solvers do not do."""
    asked = [
        ("events", bool(events)), ("sample", settings.sample is not None),
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
    rank = mode.generic_rank(state) if kept else 0
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
    return np.array(law.call(moment), dtype=float) if law.callback is not None else law.initial


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


def _run_own(dae: Dae, method: str) -> tuple[np.ndarray, str, str]:
    parts = []
    while True:
        code = dae.run(method)
        parts.append(dae.take_rows())
        if code != "more":
            return np.concatenate(parts), code, ""


def _status(code: str, text: str, rows: np.ndarray, mode: Mode, called: Called, settings: Settings) -> Status:
    """How it ended."""
    layout, t = mode.system.layout, float(rows[-1, 0])
    place = f"at {where(layout, rows[-1, 1 : 1 + layout.nq])}"
    if called.error is not None:
        return Status("callback failed", f"a function of yours raised {type(called.error).__name__}: {called.error}", t)
    if code == "done":
        return Status("finished", "", t)
    if code == "too many":
        return Status("too many steps", f"{settings.max_steps} steps, {place}", t)
    reason = "the equations of a step have no solution that the iteration finds, " if code == "no convergence" else ""
    return Status("step too small", f"{reason}{text}{place}", t)


def _trajectory(
    mode: Mode, rows: np.ndarray, law: Law, status: Status, settings: Settings, plan: Plan, dae: Dae, t0: float,
    seconds: Any,
) -> Trajectory:  # fmt: skip
    """Accelerations come from the default formulation at each row."""
    system, raw = mode.system, dae.raw
    layout = system.layout
    t, q, v = np.split(rows, [1, 1 + layout.nq], axis=1)
    t, q = t[:, 0].copy(), normalise(layout, q)
    if law.callback is None:
        u = np.tile(law.initial, (len(t), 1))
    else:
        u = np.stack([law.call(numeric_moment(system, float(t[k]), q[k], v[k], None)) for k in range(len(t))])
    a = system.acceleration(system.state(q, v, t), u, active=mode.active)
    steps = int(raw.steps)
    lengths = np.diff(t)
    stats = Stats(
        settings.method, float("nan") if settings.fixed else settings.rtol, steps, int(raw.rejected),
        int(raw.evaluations), 0, 0, float(lengths.min()) if steps else float("nan"),
        (float(t[-1]) - t0) / steps if steps else float("nan"), seconds(),
    )  # fmt: skip
    record = settings.to_dict() | plan.to_dict() | {"compiled inputs": law.compiled}
    segment = Segment(0, dict(mode.active), system.p.copy())
    out = Trajectory(system, t, q, v.copy(), a, u, status, stats, (segment,), (), (), record)
    if settings.every > 1:
        from dataclasses import replace

        keep = np.unique([*range(0, len(t), settings.every), len(t) - 1])
        return replace(out, t=t[keep], q=q[keep], v=out.v[keep], a=a[keep], u=u[keep])
    if not settings.every and len(t) > 1:
        inside = settings.times[settings.times <= t[-1]]
        return out.sample(inside) if len(inside) else out
    return out
