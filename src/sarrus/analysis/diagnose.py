"""`sr.diagnose`: look at a machine from all sides and say what is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sarrus.analysis import findings as say
from sarrus.analysis.actuation import actuation
from sarrus.analysis.dependence import Dependence, Family, dependence, idle_rows
from sarrus.analysis.diagnosis import SEVERITIES, Diagnosis, Finding, JointVerdict
from sarrus.analysis.figures import figures
from sarrus.analysis.joints import Bodies
from sarrus.analysis.misalignment import misalignment
from sarrus.analysis.mobility import allowed, mobility
from sarrus.analysis.reactions import certain_rows, determinate_group, indeterminate, reactions, row_sizes
from sarrus.analysis.relax import Relaxation, plans
from sarrus.dynamics.compile import compile
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.dynamics.tasks import Task
from sarrus.errors import AssemblyError, CompilerError, ModelError, StateError
from sarrus.model.parts import Model

LOOSE = 1e-8  # residuals above this, relative to the machine, are an open loop


def diagnose(
    system: Any, state: State | None = None, *, u: Any = None, active: Mapping[str, bool] | None = None,
    tasks: Mapping[str, Task] | None = None,
) -> Diagnosis:  # fmt: skip
    """Say what is wrong, redundant, singular or indeterminate about a machine, and what to change.

    Problems are returned as findings, not raised.

    Args:
        system: a compiled machine, or a `Mechanism`, `Model` or `Lagrangian`.
        state: where; the assembly nearest to the initial guess if None. It need not be assembled.
        u: inputs, for the reactions reported; zero if not given.
        active: constraint name -> False for those switched off.
        tasks: by name, what else the inputs should drive: `{"tip": system.task("point", ...)}`.

    Returns:
        A report that prints itself.
    """
    name = str(getattr(system, "name", system))
    try:
        system = system if isinstance(system, System) else compile(system)
    except ModelError as error:
        return Diagnosis(name, findings=tuple(say.bad_description(text) for text in error.problems))
    except CompilerError as error:
        return Diagnosis(name, findings=(say.bad_description(str(error)),))
    if state is not None and state.count is not None:
        raise StateError("diagnose: give one state (state.row(i) picks one from an array of states)")
    found: list[Finding] = []
    if state is None:
        state, found = _assembled(system, active)
    return _Examination(system, state, active, tasks or {}, found, u).report()


def _assembled(system: System, active: Mapping[str, bool] | None) -> tuple[State, list[Finding]]:
    """The assembly nearest to the initial guess, or the best attempt and why it failed."""
    try:
        return system.assemble(active=active), []
    except AssemblyError as error:
        q = error.q if isinstance(error.q, np.ndarray) else np.array(system.layout.initial)
        return State(system.layout, q), [say.cannot_assemble(error)]


class _Examination:
    """One look at one state; each method adds its findings."""

    def __init__(
        self, system: System, state: State, active: Mapping[str, bool] | None, tasks: Mapping[str, Task],
        found: list[Finding], u: Any,
    ):  # fmt: skip
        """Evaluate what everything else is read from."""
        self.system, self.state, self.active, self.tasks, self.u = system, state, active, tasks, u
        self.found, self.failed = found, bool(found)
        self.flags = system.active_rows(active)
        self.values = system.terms(state)
        self.rank = system.rank(state, active)
        self.dependence = dependence(system, self.rank)
        self.bodies = Bodies.of(system) if isinstance(system.description, Model) else None
        self.connections = self.bodies.at(state).connections() if self.bodies else []
        self.connections = [c for c in self.connections if (active or {}).get(c.name, True)]
        self.mobilities, self.near = mobility(system, state, active)
        self.planar = isinstance(system.description, Model) and system.description.planar

    def report(self) -> Diagnosis:
        """Everything together."""
        system, rank, dep = self.system, self.rank, self.dependence
        error, assembled = self._assembly()
        misfit = self._misfit(assembled)
        self._contradictions(assembled)
        loops = self._loops()
        joints = self._joints()
        certain = certain_rows(dep)
        on = [g for g in system.groups if (self.active or {}).get(g, True)]
        determinate = {g: determinate_group(system, certain, g) for g in on}
        sums = _sums(dep, determinate)
        self._mobility()
        self._redundant(loops, assembled and (misfit is None or misfit.posture))
        self._forces(determinate, sums, joints)
        drive = self._actuation()
        forces = reactions(system, self.state, self.u, active=self.active) if assembled else None
        numbers = figures(system, self.state, rank, self.flags)
        self.found += say.numbers(system, rank, numbers, error)
        order = sorted(self.found, key=lambda f: SEVERITIES.index(f.severity))
        return Diagnosis(
            system.name, system.layout.nv, rank.rows, rank.rank, rank.mobility, self.mobilities, rank.redundant,
            idle_rows(system, on),
            tuple(row for family in dep.families for row in family.spare), dep.families, loops,
            tuple(map(float, rank.singular_values)), rank.tolerance, determinate, sums, joints, drive, numbers, misfit,
            forces, error, assembled, tuple(order),
        )  # fmt: skip

    # --- is it put together? ---------------------------------------------------------------------------------------
    def _assembly(self) -> tuple[float, bool]:
        layout = self.system.layout
        phi = np.abs(self.values.phi) * self.flags
        unit = np.array([layout.length if row.unit == "m" else 1.0 for row in layout.rows])
        error = float(np.max(phi, initial=0.0))
        closed = bool(np.all(phi <= LOOSE * unit))
        if not closed and not self.failed:
            near = None
            try:
                near = self.system.assemble(near=self.state, t=self.state.t, active=self.active)
            except AssemblyError:
                self.failed = True
            self.found.append(say.open_loop(self.system, self.state, phi, near))
        if closed and not self.failed:
            self._velocities()
            self._sides()
        return error, closed

    def _velocities(self) -> None:
        x, layout = self.values, self.system.layout
        slip = np.abs(x.A @ self.state.v - x.a) * self.flags
        size = np.abs(x.A) @ np.abs(self.state.v) + np.abs(x.a)
        pace = np.max(np.abs(self.state.v) / np.array(layout.scales), initial=0.0)
        unit = np.array([layout.length if row.unit == "m" else 1.0 for row in layout.rows])
        bad = np.flatnonzero(slip > 1e-7 * size + 1e-9 * pace * unit)
        if len(bad):
            self.found.append(say.velocities_do_not_fit(layout, slip, bad))

    def _sides(self) -> None:
        """Axes that are held parallel but point opposite ways."""
        system, s = self.system, self.state
        guards = system.functions("guards", s.t, s.q, system.p)[0]
        rows = [r for g, r in zip(guards, system.guard_rows, strict=True) if g <= 0 and self.flags[r]]
        groups = tuple(dict.fromkeys(system.layout.rows[r].group for r in rows))
        if groups:
            self.found.append(say.wrong_way_round(groups))

    def _misfit(self, assembled: bool):
        s = self.state
        misfit = misalignment(self.system, s.q, float(s.t), self.flags, self.bodies, assembled)
        if misfit is not None and not (misfit.posture and not assembled):
            self.found.append(say.misfit(misfit))
        return misfit

    def _contradictions(self, assembled: bool) -> None:
        """Dependent rows that ask for different things: positions, then velocities, then accelerations."""
        system, x = self.system, self.values
        unit = np.array([system.layout.length if row.unit == "m" else 1.0 for row in system.layout.rows])
        turns = float(np.max(np.abs(self.state.v) / np.array(system.layout.scales), initial=0.0))
        pace = {"position": 1.0, "velocity": turns, "acceleration": turns**2}
        asks = [] if assembled else [("position", x.phi * self.flags, LOOSE)]
        asks.append(("velocity", x.a * self.flags, 1e-6))
        if assembled:
            asks.append(("acceleration", x.gamma * self.flags, 1e-6))
        for what, values, limit in asks:
            for circuit in _circuits(self.dependence):
                z = circuit_multipliers(system, self.dependence, circuit)
                parts = np.abs(z * values)
                miss = abs(float(z @ values))
                scale = float(np.sum(np.abs(z) * unit)) * pace[what] + float(np.sum(parts))
                if miss > limit * scale > 0:
                    largest = float(np.max(np.abs(z)))
                    self.found.append(say.contradiction(system, self.state, what, circuit, miss / largest))
                    return

    # --- redundancy and forces -------------------------------------------------------------------------------------
    def _loops(self) -> tuple[tuple[str, ...], ...]:
        """For each family, the joints that its internal loads go through."""
        system, out = self.system, []
        sizes = row_sizes(system)
        for family in self.dependence.families:
            inside = _restricted(system, self.dependence, family.rows)
            ways = indeterminate(self.connections, inside, system.layout.length, sizes)
            out.append(tuple(name for name, w in ways.items() if np.any(w)))
        return tuple(out)

    def _joints(self) -> dict[str, JointVerdict]:
        system = self.system
        ways = indeterminate(self.connections, self.dependence, system.layout.length, row_sizes(system))
        known = {name: ~np.any(w != 0.0, axis=1) for name, w in ways.items()}
        return {n: JointVerdict(tuple(map(bool, k[:3])), tuple(map(bool, k[3:]))) for n, k in known.items()}

    def _redundant(self, loops: tuple[tuple[str, ...], ...], sound: bool) -> None:
        system, dep = self.system, self.dependence
        idle = idle_rows(system, [g for g in system.groups if (self.active or {}).get(g, True)])
        if self.planar and idle:
            self.found.append(say.out_of_plane(idle))
        if not dep.families:
            return
        if self.mobilities.singular:
            return  # said as a singular position
        for families, loop in _together(dep.families, loops):
            self.found.append(say.redundant(families, loop, self._plans(families, loop) if sound else []))

    def _plans(self, families: list[Family], loop: tuple[str, ...]) -> list[tuple[Relaxation, ...]]:
        """What could be relaxed instead, tried at this state and along its motion."""
        system, dep = self.system, self.dependence
        if self.bodies is None:
            return []
        rows = tuple(row for family in families for row in family.rows)
        looked = [(self.connections, _restricted(system, dep, rows).multipliers)]
        for s in self.near:
            other = dependence(system, system.rank(s, self.active))
            there = {c.name: c for c in self.bodies.at(s).connections()}
            if other.multipliers.shape == dep.multipliers.shape:
                inside = _restricted(system, other, rows).multipliers
                looked.append(([there[c.name] for c in self.connections], inside))
        mine = [g for family in families for g in family.groups]
        busy = _needed(system) | ({c.name for c in self.connections if c.in_tree} if self.planar else set())
        order = [name for name in dict.fromkeys([*mine[::-1], *loop[::-1]]) if name in loop and name not in busy]
        return plans(looked, order, system.layout.length, self.planar)

    def _forces(
        self, determinate: dict[str, bool], sums: tuple[tuple[str, ...], ...], joints: dict[str, JointVerdict]
    ) -> None:
        if self.dependence.null.shape[1]:
            self.found.append(say.indeterminate(determinate, sums, joints, self.dependence.null.shape[1]))

    def _mobility(self) -> None:
        self.found += say.mobility(self.system, self.mobilities, self.rank, self.dependence.null.shape[1])

    # --- inputs ----------------------------------------------------------------------------------------------------
    def _actuation(self):
        Z = allowed(self.system, self.state, self.active)
        nearby = tuple(allowed(self.system, s, self.active) for s in self.near)
        drive = actuation(self.system, self.state, Z, self.near, nearby, self.tasks)
        generic = [actuation(self.system, s, z).driven for s, z in zip(self.near, nearby, strict=True)]
        self.found += say.actuation(drive, max(generic, default=drive.driven), self.mobilities)
        return drive


def _together(
    families: Sequence[Family], loops: Sequence[tuple[str, ...]]
) -> list[tuple[list[Family], tuple[str, ...]]]:  # fmt: skip
    """Families that share constraints or load the same joints: what is said of one has to fit the others."""
    sets: list[tuple[list[Family], tuple[str, ...]]] = []
    for family, loop in zip(families, loops, strict=True):
        mine, way = [family], loop
        for other in list(sets):
            if other[1] == loop or any(set(x.groups) & set(family.groups) for x in other[0]):
                mine, way = [*other[0], *mine], tuple(dict.fromkeys([*other[1], *way]))
                sets.remove(other)
        sets.append((mine, way))
    return sets


def _circuits(dep: Dependence) -> list[tuple[str, ...]]:
    return [circuit for family in dep.families for circuit in family.circuits]


def circuit_multipliers(system: System, dep: Dependence, circuit: tuple[str, ...]) -> np.ndarray:
    """The dependence of a circuit, in multipliers of the rows as written."""
    names = [row.name for row in system.layout.rows]
    outside = [i for i, name in enumerate(names) if name not in circuit]
    _, _, Vt = np.linalg.svd(dep.null[outside])
    z = dep.null @ Vt[-1]
    z[outside] = 0.0
    return z / system.references


def _needed(system: System) -> set[str]:
    """Joints that a motor, coupling or joint spring uses: not to be changed lightly."""
    model = system.description
    if not isinstance(model, Model):
        return set()
    used = {n for part in (*model.couplings, *model.joint_springs, *model.actuators) for n in part.coefficients}
    return {joint.name for joint in model.joints if used & set(joint.position_names)}


def _restricted(system: System, dep: Dependence, rows: tuple[str, ...]) -> Dependence:
    """The dependences of one family."""
    inside = np.array([row.name in rows for row in system.layout.rows])
    U, s, _ = np.linalg.svd(np.where(inside[:, None], dep.null, 0.0), full_matrices=False)
    null = U[:, s > 0.5]  # families have nothing to do with each other: the values are 1 or 0
    return Dependence(null, null / system.references[:, None], ())


def _sums(dep: Dependence, determinate: Mapping[str, bool]) -> tuple[tuple[str, ...], ...]:
    """Constraints tied together by dependences: only their forces together are certain."""
    sets: list[list[str]] = []
    for family in dep.families:
        groups = [g for g in determinate if g in family.groups]
        for other in [x for x in sets if set(x) & set(groups)]:
            groups = list(dict.fromkeys([*other, *groups]))
            sets.remove(other)
        sets.append(groups)
    return tuple(tuple(g for g in determinate if g in x) for x in sets)
