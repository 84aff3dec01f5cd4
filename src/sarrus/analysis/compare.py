"""Formulations and solvers side by side on one motion: accuracy, drift, cost and conditioning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from sarrus.dynamics.formulations import chosen, formulations
from sarrus.dynamics.formulations.matrices import Matrices
from sarrus.dynamics.formulations.record import Formulation
from sarrus.dynamics.manifold import difference
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError
from sarrus.simulation.driver import simulate
from sarrus.simulation.plan import ACCEPTS, fits
from sarrus.simulation.settings import FIXED
from sarrus.simulation.trajectory import Trajectory

DEFAULT = "default"
POINTS = 40  # times at which motions are compared
PLACES = 8  # of them at which condition numbers are looked at


@dataclass(frozen=True)
class Entry:
    """One formulation with one solver.

    Attributes:
        formulation: its name; "default" for the one that is used if nobody asks.
        solver: method of `sarrus.simulate`.
        problem: what it solves: "ODE" or "DAE of index ...".
        status: how the run ended ("finished" if all is well).
        error: largest difference of a position from the reference, relative to the coordinate's scale.
        drift: largest |Φ| met at a step, relative to the machine's length (or in rad).
        energy: largest error of the energy balance, relative as in `Trajectory.audit`.
        steps: accepted steps.
        evaluations: evaluations of the equations.
        seconds: time on the clock, compilation left out [s].
        condition: largest condition number of the matrix it solves with, along the motion.
    """

    formulation: str
    solver: str
    problem: str
    status: str
    error: float
    drift: float
    energy: float
    steps: int
    evaluations: int
    seconds: float
    condition: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found; prints itself as a table.

    Attributes:
        machine: its name.
        t_end: end of the motion [s].
        rtol: relative tolerance of the adaptive solvers.
        dt: step of those with fixed steps [s].
        entries: one for each formulation and solver.
    """

    machine: str
    t_end: float
    rtol: float
    dt: float
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        """A table, a line for each pair."""
        head = ("formulation", "solver", "problem", "error", "drift", "energy", "steps", "evals", "ms", "cond")
        lines: list[tuple[str, ...]] = [head]
        for e in self.entries:
            names, numbers = (
                (e.formulation, e.solver, e.problem),
                (f"{e.error:.1e}", f"{e.drift:.1e}", f"{e.energy:.1e}"),
            )
            cost = (str(e.steps), str(e.evaluations), f"{1e3 * e.seconds:.1f}", f"{e.condition:.1e}")
            lines.append((*names, *numbers, *cost) if e.status == "finished" else (*names, e.status))
        whole = [line for line in lines if len(line) == len(head)]  # a status may run on as far as it likes
        widths = [max(len(line[k]) for line in (lines if k < 3 else whole)) for k in range(len(head))]
        text = ["  ".join(part.ljust(w) for part, w in zip(line, widths, strict=False)).rstrip() for line in lines]
        return "\n".join([f"{self.machine}, {self.t_end:g} s, rtol {self.rtol:g}, dt {self.dt:g} s", *text])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as for JSON; a number that does not exist is None."""
        entries = [
            {k: None if isinstance(x, float) and not math.isfinite(x) else x for k, x in asdict(e).items()}
            for e in self.entries
        ]
        return {"machine": self.machine, "t_end": self.t_end, "rtol": self.rtol, "dt": self.dt, "entries": entries}

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw error against cost, and the condition numbers, as an image.

        Args:
            path: image file to write.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise SarrusError("plots need matplotlib: pip install sarrus[plot]") from None
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        good = [e for e in self.entries if e.status == "finished"]
        for solver in dict.fromkeys(e.solver for e in good):
            mine = [e for e in good if e.solver == solver]
            left.loglog([e.evaluations for e in mine], [max(e.error, 1e-16) for e in mine], "o", label=solver)
        for e in good:
            left.annotate(e.formulation, (e.evaluations, max(e.error, 1e-16)), fontsize=6)
        left.set(xlabel="evaluations", ylabel="error", title=self.machine)
        left.legend(fontsize=7)
        names = list(dict.fromkeys(e.formulation for e in self.entries))
        right.barh(names, [next(e.condition for e in self.entries if e.formulation == n) for n in names])
        right.set(xscale="log", xlabel="condition number")
        figure.savefig(path)


def compare(
    system: System,
    state: State,
    t_end: float,
    formulations: Iterable[str | Formulation] | None = None,
    solvers: Iterable[str] | None = None,
    *,
    rtol: float = 1e-6,
    dt: float | None = None,
    inputs: Any = None,
) -> Comparison:
    """Run formulations and solvers on one motion and put accuracy, drift, cost and conditioning side by side.

    The reference is a run of the default formulation with a tolerance 1e-5 times tighter. Pairs that do not fit are
    left out; what this machine cannot have is listed with the reason.

    Args:
        system: the machine.
        state: a consistent start.
        t_end: end of the motion [s].
        formulations: names or formulations, "default" for the one used if nobody asks; all if not given.
        solvers: methods of `sarrus.simulate`; for each formulation those that suit it best if not given.
        rtol: relative tolerance of the adaptive solvers.
        dt: step of those with fixed steps [s]; a 2000th of the motion if not given.
        inputs: as for `simulate`.

    Returns:
        The table, which prints itself.
    """
    asked = _formulations() if formulations is None else formulations
    forms = [None if form == DEFAULT else chosen(form) for form in asked]
    for solver in solvers or ():
        if solver not in ACCEPTS:
            raise SarrusError(f"unknown solver {solver!r}; use {', '.join(map(repr, ACCEPTS))}")
    step = (t_end - float(state.t)) / 2000 if dt is None else dt
    times = np.linspace(float(state.t), t_end, POINTS + 1)[1:]
    reference = simulate(system, state, t_end, rtol=max(1e-5 * rtol, 1e-13), inputs=inputs, output=times)
    if reference.status.code != "finished":
        raise SarrusError(f"the reference run failed, there is nothing to compare with: {reference.status}")
    entries = []
    for form in forms:
        condition = _condition(system, reference, form)
        for solver in _solvers(form, solvers):
            options: dict[str, Any] = {"dt": step} if solver in FIXED else {"rtol": rtol}
            options |= {"method": solver, "formulation": form, "inputs": inputs}
            try:
                simulate(system, state, float(state.t) + 1e-3 * (t_end - float(state.t)), **options)  # compiles
                traj = simulate(system, state, t_end, **options)
                dense = solver == "ida"  # whose runs are sampled from their steps anyway
                shown = traj if dense or not traj.status.ok else simulate(system, state, t_end, output=times, **options)
            except SarrusError as error:
                entries.append(_refused(form, solver, error, condition))
                continue
            entries.append(_entry(form, solver, traj, shown, reference, condition))
    return Comparison(system.name, t_end, rtol, step, tuple(entries))


def _formulations() -> list[str]:
    return [DEFAULT, *(form.name for form in formulations())]


def _solvers(form: Formulation | None, asked: Iterable[str] | None) -> list[str]:
    """Solvers that fit; without a wish dop853 for ODEs, every solver for differential-algebraic forms."""
    if form is None:
        fitting = [name for name, indices in ACCEPTS.items() if 0 in indices or not indices]
    else:
        fitting = [name for name in ACCEPTS if fits(form, name)]
    if asked is not None:
        return [name for name in asked if name in fitting]
    return fitting if form is not None and form.index else fitting[:1]


def _entry(
    form: Formulation | None, solver: str, traj: Trajectory, shown: Trajectory, reference: Trajectory, condition: float
) -> Entry:
    """Cost and drift of the steps; the error where the reference is known, not that of interpolating between steps."""
    error = drift = energy = float("nan")
    if traj.status.code == "finished":
        scales = np.array(traj.system.layout.scales)
        q = shown.q if shown is not traj else traj.at(reference.t).q
        error = float(np.max(np.abs(difference(traj.system.layout, reference.q, q)) / scales))
        audit = traj.audit()
        drift, energy = audit.loop.relative, audit.energy.relative
    name, problem = (DEFAULT, "ODE") if form is None else (form.name, form.problem)
    stats = traj.stats
    return Entry(
        name, solver, problem, traj.status.code, error, drift, energy, stats.steps, stats.evaluations, stats.seconds,
        condition,
    )  # fmt: skip


def _refused(form: Formulation | None, solver: str, error: SarrusError, condition: float) -> Entry:
    nan = float("nan")
    name, problem = (DEFAULT, "ODE") if form is None else (form.name, form.problem)
    return Entry(name, solver, problem, f"refused: {str(error).splitlines()[0]}", nan, nan, nan, 0, 0, nan, condition)


# --- conditioning ----------------------------------------------------------------------------------------------------
def _delassus(x: Matrices) -> float:
    w = x.point.delassus[1]
    return float(w[0] / w[-1]) if len(w) else 1.0


def _saddle(x: Matrices) -> float:
    rows = x.point.svd[0].T @ x.A  # as many as the rank says
    zero = np.zeros((len(rows), len(rows)))
    return float(np.linalg.cond(np.block([[x.M, rows.T], [rows, zero]])))


def _split(x: Matrices) -> float:
    return float(np.linalg.cond(np.vstack([x.Cn.T @ x.M, x.point.svd[0].T @ x.A])))


_CONDITIONS: Mapping[str, Callable[[Matrices], float]] = {
    "projection": lambda x: float(np.linalg.cond(x.Mc)),
    "projection-symmetric": lambda x: float(np.linalg.cond(x.Mp)),
    "projection-scaled": lambda x: float(np.linalg.cond(x.Mpp)),
    "virtual-mass": lambda x: float(np.linalg.cond(x.Mb)),
    "quasi-velocity": lambda x: float(np.linalg.cond(x.W)),
    "null-space": lambda x: float(np.linalg.cond(x.Cn.T @ x.M @ x.Cn)),
    "gauss": lambda x: float(np.sqrt(_delassus(x))),
    "coordinate-split": _split,
    **dict.fromkeys(("generalised", "multiplier", "reduction", "baumgarte", "regularised"), _delassus),
}


def _condition(system: System, reference: Trajectory, form: Formulation | None) -> float:
    """Largest condition number along the reference; the default and the forms of an index solve the saddle point."""
    measure = _saddle if form is None else _CONDITIONS.get(form.name, _saddle)
    options = {} if form is None else {k: v for k, v in form.options.items() if k in ("mu", "gamma", "factor")}
    places = np.unique(np.linspace(0, len(reference) - 1, PLACES).astype(int))
    return max(measure(system.matrices(reference.state(int(k)), **options)) for k in places)
