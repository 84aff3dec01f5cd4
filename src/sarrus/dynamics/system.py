"""The compiled machine: one object that answers for one state or for an array of states."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics import assembly, formulations, linear, manifold, rank
from sarrus.dynamics.formulations.record import Formulation
from sarrus.dynamics.functions import Functions
from sarrus.dynamics.linear import Linear
from sarrus.dynamics.positions import Request
from sarrus.dynamics.reference import row_norms
from sarrus.dynamics.solution import ConstraintForces, Energy, Rank, Solution, TermValues
from sarrus.dynamics.state import State, checked_array
from sarrus.dynamics.tasks import Task, build_task
from sarrus.errors import SarrusError, StateError, UnknownNameError
from sarrus.kernel.library import Constants, MachineLibrary
from sarrus.model.lagrangian import Lagrangian
from sarrus.model.layout import Layout
from sarrus.model.parts import Model

if TYPE_CHECKING:
    from sarrus.dynamics.formulations.matrices import Matrices


@dataclass(frozen=True, eq=False)
class System:
    """A compiled machine. Made by `sarrus.compile`; all its fields are fixed.

    Attributes:
        layout: names, sizes and slices.
        description: what it was made from.
        library: the compiled kernel.
        functions: terms, energies and poses, evaluated by CasADi.
        kept: rows that are not identically zero.
        y_index: pattern of L⁻¹Aᵀ.
        p: parameter values.
        norms: reference norms of the kept rows.
        guard_rows: the constraint row that each guard of the assembly belongs to.
        redundant: its rows were dependent where it was assembled first: the fast path is not even tried.
        tolerance: singular values of the scaled rows below this are zero.
        fast_pivot: smallest pivot at which the generated fast path is trusted.
    """

    layout: Layout
    description: Model | Lagrangian
    library: MachineLibrary | None
    functions: Functions
    kept: tuple[int, ...]
    y_index: np.ndarray
    p: np.ndarray
    norms: np.ndarray
    guard_rows: tuple[int, ...] = ()
    redundant: bool = False
    tolerance: float = 1e-6
    fast_pivot: float = 1e-4

    # --- names -----------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """Name of the machine."""
        return self.layout.name

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return self.layout.groups

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.layout.u_names

    @property
    def parameters(self) -> dict[str, float]:
        """Parameter values by name."""
        return dict(zip(self.layout.parameters, self.p.tolist(), strict=True))

    def __repr__(self) -> str:
        """Name and sizes."""
        x = self.layout
        return f"<System {x.name!r}: {x.nq} positions, {x.nv} velocities, {x.m} constraint rows, {x.nu} inputs>"

    def with_parameters(self, **values: float) -> System:
        """The same machine with other parameter values; nothing is compiled again.

        Args:
            values: new values by parameter name; the others stay.
        """
        names = list(self.layout.parameters)
        p = self.p.copy()
        for name, value in values.items():
            if name not in names:
                raise UnknownNameError("parameter", name, names)
            if not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
                raise StateError(f"parameter {name!r}: expected a finite number, got {value!r}")
            p[names.index(name)] = float(value)
        return replace(self, p=p, norms=row_norms(self.layout, self.functions, self.kept, self.y_index, p))

    def __reduce__(self) -> Any:
        """Refuse to be pickled: compiled code belongs to a process, and descriptions may hold the user's functions."""
        raise SarrusError(
            f"{self.name}: a compiled machine cannot be pickled or copied; let each process describe and compile it "
            "(it then comes from the cache), or use threads: the compiled code runs in parallel in them. Trajectories "
            "travel as files (save, load), states as they are"
        )

    # --- states ----------------------------------------------------------------------------------------------------
    def state(self, q: Any, v: Any = None, t: Any = 0.0) -> State:
        """An exact state from full vectors, checked but not corrected.

        Args:
            q: positions, shape (nq,) or (count, nq).
            v: velocities of the matching shape; zero if not given.
            t: time [s].
        """
        return State(self.layout, q, v, t)

    def assemble(
        self,
        positions: Mapping[str, Any] | None = None,
        velocities: Mapping[str, Any] | None = None,
        *,
        near: State | Mapping[str, Any] | None = None,
        signs: Mapping[str, Any] | None = None,
        t: float = 0.0,
        active: Mapping[str, bool] | None = None,
        tolerance: float = 1e-12,
    ) -> State:
        """A consistent state from a partial guess: the one nearest to the guess that satisfies every constraint.

        Args:
            positions: coordinates that must have exactly these values, by name.
            velocities: velocities that must have exactly these values, by name; the rest moves as little as it can
                (least kinetic energy).
            near: where to look: a state to stay close to (which follows a branch), or guesses by name.
            signs: coordinate name -> +1 or -1, to choose among assemblies.
            t: time [s], for moving constraints.
            active: constraint name -> False to leave it out.
            tolerance: largest residual accepted, relative to the machine's length.

        Returns:
            A state whose closures hold to rounding.

        Raises:
            AssemblyError: naming the closure that cannot be satisfied, its residual and what to change.
        """
        request = Request(positions or {}, velocities or {}, near, signs or {}, t, active or {}, tolerance)
        return assembly.assemble(self, request)

    def retract(self, q: Any, step: Any) -> np.ndarray:
        """Move positions along a velocity times a time, staying on the manifold of configurations."""
        x = self.layout
        q = checked_array("positions q", q, x.nq, x.q_names)
        return manifold.retract(x, q, checked_array("step", step, x.nv, x.v_names))

    # --- terms -----------------------------------------------------------------------------------------------------
    def terms(self, state: State) -> TermValues:
        """The arrays M, h, A, γ, Φ, a, B, N at a state."""
        return TermValues(*self._each("terms", state, state.v))

    def energy(self, state: State) -> Energy:
        """Energies and powers at a state."""
        return Energy(*np.moveaxis(self._each("energy", state, state.v)[0], -1, 0))

    def frames(self, state: State) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """World position and rotation matrix of every body and named frame."""
        values = self._each("frames", state)
        return {name: (values[2 * k], values[2 * k + 1]) for k, name in enumerate(self.layout.frames)}

    def frame(self, state: State, name: str) -> tuple[np.ndarray, np.ndarray]:
        """World position and rotation matrix of one body or named frame."""
        if name not in self.layout.frames:
            raise UnknownNameError("frame", name, self.layout.frames)
        return self.frames(state)[name]

    def task(self, kind: str, target: Any) -> Task:
        """A task map with its Jacobian.

        Args:
            kind: "point" (position of a feature), "orientation" (of a body) or "coordinate" (by name).
            target: the feature, body or coordinate name.
        """
        if not isinstance(self.description, Model):
            raise SarrusError(f"{self.name}: tasks need a machine described by bodies, not by a Lagrangian")
        return build_task(self.description, kind, target, self.p, self.layout.q_names)

    def _each(self, name: str, state: State, *more: np.ndarray) -> list[np.ndarray]:
        self._own(state)
        if state.count is None:
            return self.functions(name, state.t, state.q, *more, self.p)
        times = np.broadcast_to(state.t, (state.count,))
        rows = [self.functions(name, times[i], state.q[i], *(x[i] for x in more), self.p) for i in range(state.count)]
        return [np.stack(parts) for parts in zip(*rows, strict=True)]

    def _own(self, state: State) -> None:
        if not isinstance(state, State):
            raise StateError(f"expected a state of {self.name}, got {type(state).__name__}; make one with system.state")
        if state.layout is not self.layout and state.layout.q_names != self.layout.q_names:
            raise StateError(f"this state belongs to {state.layout.name!r}, not to {self.name!r}")

    # --- the constrained acceleration ------------------------------------------------------------------------------
    def acceleration(
        self,
        state: State,
        u: Any = None,
        f: Any = None,
        active: Mapping[str, bool] | None = None,
        formulation: str | Formulation | None = None,
    ) -> np.ndarray:
        """Accelerations v̇ of the constrained machine, by compiled code.

        Args:
            state: one state or an array of states.
            u: inputs, shape (nu,) or (count, nu); zero if not given.
            f: further generalised forces, shape (nv,) or (count, nv).
            active: constraint name -> False for those switched off.
            formulation: another way to compute them (a name, or `sarrus.formulation(name, ...)`), in plain NumPy; the
                result is the same.
        """
        if formulation is not None:
            return formulations.solve_with(self, state, u, f, active, formulation)[0]
        return self._solve(state, u, f, active)[0]

    def matrices(
        self,
        state: State,
        u: Any = None,
        f: Any = None,
        active: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> Matrices:
        """The papers' matrices at one state, by name: `matrices(state).P`, `["Mb"]`; print it for the list.

        Args:
            state: one state.
            u: inputs.
            f: further generalised forces.
            active: constraint name -> False for those switched off.
            options: `mu` and `gamma` ("auto" or a number), `factor` ("cholesky", "root", "innovation"), `reference`
                (V2w of another state: V2w and all that follows from it is then the smooth basis nearest to it).
        """
        from sarrus.dynamics.formulations.matrices import matrices

        return matrices(self, state, u, f, active, **options)

    def solve(self, state: State, u: Any = None, f: Any = None, active: Mapping[str, bool] | None = None) -> Solution:
        """Accelerations and multipliers together with the rank decision; arguments as for `acceleration`."""
        vdot, lam, report = self._solve(state, u, f, active)
        flags = self.active_rows(active)
        ranks, path, accepted, rejected, _ = np.moveaxis(report, -1, 0)
        accepted = rank.accepted_values(self, state, active, ranks, path, accepted)
        names = np.where(path > 0, "rank-revealing", "fast")
        if state.count is None:
            kept = int(flags.sum())
            return Solution(vdot, lam, int(ranks), kept, str(names), self.tolerance, float(accepted), float(rejected))
        return Solution(vdot, lam, ranks.astype(int), int(flags.sum()), names, self.tolerance, accepted, rejected)

    def constraint_forces(
        self,
        state: State,
        u: Any = None,
        f: Any = None,
        active: Mapping[str, bool] | None = None,
        formulation: str | Formulation | None = None,
    ) -> ConstraintForces:
        """Multipliers by name, Aᵀλ, each constraint's share of it and whether that share is unique.

        Args:
            state: one state (or an array of states, for which shares are judged at each).
            u: inputs.
            f: further generalised forces.
            active: constraint name -> False for those switched off.
            formulation: as for `acceleration`.
        """
        if formulation is not None:
            lam = formulations.solve_with(self, state, u, f, active, formulation)[1]
        else:
            lam = self._solve(state, u, f, active)[1]
        return rank.constraint_forces(self, state, lam, active)

    def rank(self, state: State, active: Mapping[str, bool] | None = None) -> Rank:
        """Rank of the constraints at one state with all singular values.

        Args:
            state: one state.
            active: constraint name -> False for those switched off.
        """
        return rank.analyse(self, state, active)

    def projector(self, state: State, metric: str = "mass", active: Mapping[str, bool] | None = None) -> np.ndarray:
        """Projector onto the velocities that the constraints allow.

        Args:
            state: one state or an array of states.
            metric: "mass" for Θ, orthogonal in the kinetic energy; "plain" for P = I - A⁺A.
            active: constraint name -> False for those switched off.
        """
        return rank.projector(self, state, metric, active)

    def linearise(self, state: State, u: Any = None, active: Mapping[str, bool] | None = None) -> Linear:
        """Small motions about a state, on the manifold, with exact derivatives: eigenmodes, and ẋ = A x + B u.

        Args:
            state: one state; an equilibrium, if eigenvalues are to mean stability.
            u: inputs there.
            active: constraint name -> False for those switched off.
        """
        return linear.linearise(self, state, u, active)

    def active_rows(self, active: Mapping[str, bool] | None) -> np.ndarray:
        """One flag for each row: 1 active, 0 switched off. Unless said otherwise, one-sided constraints are off."""
        if active is not None and not isinstance(active, Mapping):
            raise StateError(f"active: expected a mapping from constraint names to True or False, got {active!r}")
        flags = np.ones(self.layout.m)
        for name in self.layout.one_sided:
            flags[self.layout.group_rows(name)] = 0.0
        for name, value in (active or {}).items():
            if value and name in self.layout.groups and name not in self.layout.one_sided:
                continue  # it is on already
            flags[self.layout.group_rows(name)] = float(bool(value))
        return flags

    @cached_property
    def units(self) -> np.ndarray:
        """What a residual of each row is measured in: the machine's length, or 1 rad."""
        return np.array([self.layout.length if row.unit == "m" else 1.0 for row in self.layout.rows])

    @cached_property
    def references(self) -> np.ndarray:
        """The reference norm of every row, 1 where it is identically zero."""
        out = np.ones(self.layout.m)
        out[list(self.kept)] = self.norms
        return out

    @cached_property
    def kept_index(self) -> np.ndarray:
        """The kept rows, to pick them from an array."""
        return np.array(self.kept, dtype=int)

    @cached_property
    def scales(self) -> np.ndarray:
        """Typical size of each velocity coordinate's motion."""
        return np.array(self.layout.scales, dtype=float)

    @cached_property
    def _constants(self) -> Constants:
        return Constants(self.p, self.norms, self.tolerance, self.fast_pivot)

    @cached_property
    def _all_rows(self) -> np.ndarray:
        return self.active_rows(None)

    @cached_property
    def _zeros(self) -> dict[str, np.ndarray]:
        return {"u": np.zeros(self.layout.nu), "f": np.zeros(self.layout.nv)}

    def _not_solvable(self, inputs: tuple[Any, ...], report: np.ndarray) -> StateError:
        """What to say when the mass matrix is not usable: bad inputs first, they are the commoner cause."""
        for what, values, names in (
            ("inputs u", inputs[3], self.layout.u_names),
            ("forces f", inputs[4], self.layout.v_names),
        ):
            try:
                checked_array(what, values, len(names), names)
            except StateError as error:
                return error
        if np.any(np.isneginf(report[..., 4])):
            return StateError(
                f"{self.name}: with this friction no contact forces belong to this state (Painlevé's paradox); "
                f"expected a smaller coefficient at {', '.join(map(repr, self.layout.rubbing))}, or contacts that stick"
            )
        return StateError(
            f"{self.name}: the mass matrix is not positive definite, or a term is not finite, at this state "
            f"(smallest pivot {np.min(report[..., 4]):.3g}); check masses, inertias, parameters and forces"
        )

    def _solve(self, state: State, u: Any, f: Any, active: Mapping[str, bool] | None) -> tuple[np.ndarray, ...]:
        self._own(state)
        x = self.layout
        inputs: tuple[Any, ...] = (
            (state.t,) if state.count is None else _time_column(state.t),
            state.q,
            state.v,
            self._zeros["u"] if u is None else _fitting("inputs u", u, x.u_names, state),
            self._zeros["f"] if f is None else _fitting("forces f", f, x.v_names, state),
        )
        assert self.library is not None
        vdot, lam, report = self.library.accelerate(
            inputs, self._constants, self.active_rows(active) if active else self._all_rows, self.redundant
        )
        if not (report[4] > 0 if report.ndim == 1 else np.all(report[:, 4] > 0)):
            raise self._not_solvable(inputs, report)
        return vdot, lam, report


def _time_column(t: Any) -> np.ndarray:
    return np.array([t]) if np.ndim(t) == 0 else np.ascontiguousarray(t, dtype=float).reshape(-1, 1)


def _fitting(what: str, values: Any, names: tuple[str, ...], state: State) -> np.ndarray:
    """An input array of the right shape; whether it is finite shows in the result."""
    ready = isinstance(values, np.ndarray) and values.dtype == float and values.shape == (len(names),)
    array = np.ascontiguousarray(values) if ready else checked_array(what, values, len(names), names)
    if array.ndim == 2 and array.shape[0] != state.count:
        raise StateError(f"{what}: {array.shape[0]} rows for {state.count or 'a single'} state(s)")
    return array
