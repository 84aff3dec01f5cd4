"""What joints and constraints really carry: which part is certain, and how the rest is shared under a stated rule.

The multipliers that solve the equations of motion are λ₀ + Z y, the columns of Z the dependences of the rows. They give
the same motion and the same Aᵀλ, but other forces in the joints. What does not change with y is certain. The rest is
shared so that a quadratic measure of all joint forces is smallest:

- "minimum-norm": Σ |force|² + |moment / ℓ|² over all joints and closures, each moment about the joint's own place,
  ℓ the length of the machine. It does not depend on which joint of a loop was cut.
- "mass": Σ (dᵢ λᵢ)² over the rows, what `System.constraint_forces` returns (see its `metric`).
- "stiffness": the elastic energy ½ Σ (c_F |force|² + c_M |moment|²) of joints that give a little, with your compliances
  (the theorem of least work). It is what the real machine does, as far as the compliances are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.analysis.dependence import Dependence, dependence
from sarrus.analysis.joints import Bodies, Connection, Place
from sarrus.dynamics.rubbing import refuse
from sarrus.dynamics.solution import METRIC, Solution
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError, StateError, UnknownNameError
from sarrus.model.parts import Model

METRICS = ("minimum-norm", "mass", "stiffness")
SAME = 1e-6  # a change below this part of the internal forces is none
ROW_UNITS = {"m": "N", "rad": "N m"}


@dataclass(frozen=True, eq=False)
class JointReaction:
    """What one joint or closure does to its child; the opposite acts on its parent.

    Attributes:
        name: of the joint or closure.
        child: the body it acts on.
        parent: the body on the other side.
        point: the joint's place on the child, about which moments are taken, world axes [m].
        force: world axes [N].
        moment: about `point`, world axes [N m].
        certain_force: the part of the force that every solution has in common [N].
        certain_moment: the same of the moment [N m].
        unique_force: for each component of the force whether it is certain.
        unique_moment: for each component of the moment whether it is certain.
    """

    name: str
    child: str
    parent: str
    point: np.ndarray
    force: np.ndarray
    moment: np.ndarray
    certain_force: np.ndarray
    certain_moment: np.ndarray
    unique_force: np.ndarray
    unique_moment: np.ndarray

    @property
    def unique(self) -> bool:
        """Whether the whole reaction is certain."""
        return bool(np.all(self.unique_force) and np.all(self.unique_moment))

    def __str__(self) -> str:
        """Force and moment with units; what is not certain is marked."""

        def row(values: np.ndarray, known: np.ndarray) -> str:
            return ", ".join(f"{x:.6g}{'' if ok else ' (?)'}" for x, ok in zip(values, known, strict=True))

        force, moment = row(self.force, self.unique_force), row(self.moment, self.unique_moment)
        return f"{self.name} on {self.child}: force [{force}] N, moment [{moment}] N m"


@dataclass(frozen=True, eq=False)
class Reactions:
    """Constraint forces and joint reactions under one rule; `+ Σ yₖ internal[k]` is as good a solution for any y.

    Attributes:
        metric: the rule by which indeterminate forces are shared, in words.
        length: ℓ of that rule [m].
        multipliers: λ by constraint name; their units are in `units`.
        units: unit of each row's multiplier, by row name.
        generalised: Aᵀλ, always certain.
        determinate: by constraint name, whether all its multipliers are certain (those of a planar machine's rows out
            of its plane are not looked at).
        certain: the multipliers that are certain, by row name.
        joints: the reaction of every joint and closure between two bodies, by name.
        internal: one multiplier vector by constraint name for each way of loading the machine against itself.
    """

    metric: str
    length: float
    multipliers: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    generalised: np.ndarray
    determinate: Mapping[str, bool]
    certain: Mapping[str, float]
    joints: Mapping[str, JointReaction]
    internal: tuple[Mapping[str, np.ndarray], ...]

    def __getitem__(self, name: str) -> JointReaction:
        """Reaction of one joint or closure."""
        if name not in self.joints:
            raise UnknownNameError("joint or closure", name, tuple(self.joints))
        return self.joints[name]

    def __str__(self) -> str:
        """All reactions, the rule, and what is not certain."""
        lines = [str(x) for x in self.joints.values()]
        placed = set(self.joints)
        lines += [
            f"{g}: multipliers {np.array2string(np.asarray(x), precision=6)}"
            for g, x in self.multipliers.items()
            if g not in placed
        ]
        if not self.internal:
            return "\n".join([*lines, "all certain"])
        lines.append(f"(?) not certain: {len(self.internal)} independent way(s) to load the machine against itself;")
        return "\n".join([*lines, f"shared by: {self.metric}"])


def reactions(
    system: System, state: State, u: Any = None, f: Any = None, *, metric: str = "minimum-norm",
    compliance: Mapping[str, Any] | None = None, active: Mapping[str, bool] | None = None,
) -> Reactions:  # fmt: skip
    """Forces of all constraints and joints, the certain part apart from the part that a rule must share.

    Args:
        system: the machine.
        state: one state.
        u: inputs; zero if not given.
        f: further generalised forces.
        metric: "minimum-norm", "mass" or "stiffness": the rule for what rigid bodies do not determine.
        compliance: for "stiffness": joint or closure name -> how much it gives [m/N], or a pair ([m/N], [rad/(N m)]);
            or row name -> how much that row gives [m/N or rad/(N m)]. Joints not named are rigid.
        active: constraint name -> False for those switched off.

    Returns:
        Multipliers and joint reactions, each with its unit and whether it is certain.
    """
    if metric not in METRICS:
        raise SarrusError(f"reactions: unknown metric {metric!r}; use {', '.join(map(repr, METRICS))}")
    if (compliance is None) == (metric == "stiffness"):
        raise SarrusError("reactions: compliance={name: m/N, ...} belongs to metric='stiffness'; give both or neither")
    if state.count is not None:
        raise StateError("reactions: give one state (state.row(i) picks one from an array of states)")
    refuse(system, active, "reactions")
    found = dependence(system, system.rank(state, active))
    solution = system.solve(state, u, f, active)
    bodies = Bodies.of(system) if isinstance(system.description, Model) else None
    place = None if bodies is None else bodies.at(state)
    connections = place.connections() if place else []
    fixed = {} if place is None else _fixed(place, solution, u, f)
    G, g, rule = _measure(system, found, connections, fixed, solution.lam, metric, compliance)
    y = np.linalg.lstsq(G, -g, rcond=1e-10)[0] if found.null.shape[1] else np.zeros(0)
    lam = solution.lam + found.multipliers @ y
    return _record(system, state, lam, found, connections, fixed, rule)


def _fixed(place: Place, solution: Solution, u: Any, f: Any) -> dict[str, np.ndarray]:
    """The wrench of each tree joint on its child at λ = 0."""
    layout = place.bodies.system.layout
    inputs = np.zeros(layout.nu) if u is None else np.asarray(u, dtype=float)
    pushed = place.inputs.T @ inputs + place.push
    on_bodies = place.needs(solution.vdot) - pushed
    across = pushed[: layout.nv] + (0.0 if f is None else np.asarray(f, dtype=float)) - place.rotors * solution.vdot
    out = {}
    for edge in place.bodies.tree.edges:
        joint = edge.joint
        if joint.kind == "free":
            continue
        R, p = place.pose[joint.child]
        point = p + R @ place.number(joint.child_at)
        where, own = place.own_part(joint, point)
        whole = place.wrench(on_bodies[None, :], place.beyond(joint), point)[:, 0]
        out[joint.name] = place.sign(joint) * (whole - own @ across[where])
    return out


def _measure(
    system: System, found: Dependence, connections: list[Connection], fixed: dict[str, np.ndarray], lam: np.ndarray,
    metric: str, compliance: Mapping[str, Any] | None,
) -> tuple[np.ndarray, np.ndarray, str]:  # fmt: skip
    """G and g such that |G y + g|² is what the rule makes smallest, and the rule in words."""
    Z, length = found.multipliers, system.layout.length
    weights = np.zeros(system.layout.m)
    if metric == "mass":
        weights[list(system.kept)] = system.norms
        weights[weights == 0] = 1.0  # rows that cannot push get no share
        return weights[:, None] * Z, weights * lam, METRIC
    if metric == "stiffness":
        assert compliance is not None
        parts, weights = _compliances(system, connections, compliance)
        rule = "smallest elastic energy for the compliances given"
    else:
        parts = {c.name: (1.0, 1.0 / length) for c in connections}
        apart = [i for i, row in enumerate(system.layout.rows) if row.group not in parts]
        weights[apart] = row_sizes(system)[apart]
        rule = f"smallest Σ |force|² + |moment / ℓ|² over all joints, ℓ = {length:.6g} m"
    G, g = [weights[:, None] * Z], [weights * lam]
    for c in connections:
        if c.name in parts:
            scale = np.repeat(parts[c.name], 3)
            G.append(scale[:, None] * (c.spread @ Z))
            g.append(scale * (fixed.get(c.name, np.zeros(6)) + c.spread @ lam))
    whole = np.vstack(G)
    if metric == "stiffness" and Z.shape[1]:
        _check_compliance(system, connections, found, whole)
    return whole, np.concatenate(g), rule


def row_sizes(system: System) -> np.ndarray:
    """Unit of each multiplier as a force: 1 N for rows in metres, 1/ℓ for radians, and by reference for others."""
    length = system.layout.length
    known = [system.norms[k] for k, i in enumerate(system.kept) if system.layout.rows[i].unit == "m"]
    typical = max(known, default=1.0)
    units = {"m": 1.0, "rad": 1.0 / length}
    return np.array([units.get(row.unit, system.references[i] / typical) for i, row in enumerate(system.layout.rows)])


def _compliances(
    system: System, connections: list[Connection], compliance: Mapping[str, Any]
) -> tuple[dict[str, tuple[float, float]], np.ndarray]:
    """Square roots of compliances, of joints by name and of rows."""
    names, rows = {c.name for c in connections}, [row.name for row in system.layout.rows]
    parts: dict[str, tuple[float, float]] = {}
    weights = np.zeros(len(rows))
    for name, value in compliance.items():
        try:
            pair = np.broadcast_to(np.atleast_1d(np.asarray(value, dtype=float)), (2,)) if np.ndim(value) else None
            both = np.array([float(value), 0.0]) if pair is None else pair
        except (TypeError, ValueError):
            both = np.array([np.nan, np.nan])
        if not np.all(np.isfinite(both)) or np.any(both < 0):
            raise SarrusError(f"compliance {name!r}: expected a number [m/N] or a pair with [rad/(N m)], got {value!r}")
        if name in names:
            parts[name] = (float(np.sqrt(both[0])), float(np.sqrt(both[1])))
        elif name in rows:
            weights[rows.index(name)] = np.sqrt(both[0])
        else:
            raise UnknownNameError("joint, closure or constraint row", name, [*sorted(names), *rows])
    return parts, weights


def _check_compliance(system: System, connections: list[Connection], found: Dependence, G: np.ndarray) -> None:
    """Every way of loading the machine against itself must deform something."""
    Z, length = found.multipliers, system.layout.length
    sizes = np.array([_strain(connections, Z[:, k], length, row_sizes(system)) for k in range(Z.shape[1])])
    _, s, Vt = np.linalg.svd(G / sizes)
    missing = int(np.sum(s <= 1e-9 * s.max(initial=0.0))) + max(0, Z.shape[1] - len(s))
    if not missing:
        return
    way = Z @ (Vt[-1] / sizes)
    scale = _strain(connections, way, length, row_sizes(system))
    unit = np.repeat([1.0, 1.0 / length], 3)
    loaded = [c.name for c in connections if np.max(np.abs(unit * (c.spread @ way))) > SAME * scale]
    loaded += [row.name for i, row in enumerate(system.layout.rows) if abs(way[i]) > 0 and row.group not in loaded]
    raise SarrusError(
        f"{system.name}: the compliances leave {missing} internal force(s) open. "
        f"Give one for at least one of {', '.join(loaded[:12])} (moments need the second number of a pair)"
    )


def _strain(connections: list[Connection], z: np.ndarray, length: float, sizes: np.ndarray) -> float:
    """How large an internal load is, as a force: over all joints, and the rows themselves."""
    unit = np.repeat([1.0, 1.0 / length], 3)
    joints = [float(np.max(np.abs(unit * (c.spread @ z)))) for c in connections]
    return max([*joints, float(np.max(np.abs(sizes * z), initial=0.0))])


def _record(
    system: System, state: State, lam: np.ndarray, found: Dependence, connections: list[Connection],
    fixed: dict[str, np.ndarray], rule: str,
) -> Reactions:  # fmt: skip
    layout = system.layout
    slices = {g: layout.group_rows(g) for g in system.groups}
    free = certain_rows(found)
    units = {row.name: ROW_UNITS.get(row.unit, "J per unit of the row") for row in layout.rows}
    spread = indeterminate(connections, found, layout.length, row_sizes(system))
    joints = {}
    for c in connections:
        w = fixed.get(c.name, np.zeros(6)) + c.spread @ lam
        ways = spread[c.name]
        joints[c.name] = JointReaction(
            c.name, c.child, c.parent, c.point, w[:3], w[3:], _outside(ways[:3], w[:3]), _outside(ways[3:], w[3:]),
            *(np.all(part == 0.0, axis=1) for part in (ways[:3], ways[3:])),
        )  # fmt: skip
    return Reactions(
        rule, layout.length, {g: lam[s] for g, s in slices.items()}, units, system.terms(state).A.T @ lam,
        {g: determinate_group(system, free, g) for g in system.groups},
        {row.name: float(lam[i]) for i, row in enumerate(layout.rows) if free[i]},
        joints,
        tuple({g: z[s] for g, s in slices.items()} for z in found.multipliers.T),
    )  # fmt: skip


def certain_rows(found: Dependence) -> np.ndarray:
    """For each row whether its multiplier is the same in every solution."""
    return ~np.any(np.abs(found.null) > SAME, axis=1)


def determinate_group(system: System, certain: np.ndarray, group: str) -> bool:
    """Whether the multipliers of a constraint are certain."""
    return bool(np.all(certain[system.layout.group_rows(group)]))


def indeterminate(
    connections: list[Connection], found: Dependence, length: float, sizes: np.ndarray
) -> dict[str, np.ndarray]:
    """By joint, the wrenches (6, d) of the internal loads, each load of size 1; rounding becomes zero."""
    out = {}
    Z = found.multipliers
    unit = np.repeat([1.0, 1.0 / length], 3)[:, None]
    scale = np.array([_strain(connections, z, length, sizes) for z in Z.T])
    for c in connections:
        ways = c.spread @ Z / scale if Z.shape[1] else np.zeros((6, 0))
        out[c.name] = np.where(np.abs(unit * ways) > SAME, ways, 0.0)
    return out


def _outside(ways: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The part of a vector at right angles to all columns."""
    if not ways.size or not np.any(ways):
        return w.copy()
    U, s, _ = np.linalg.svd(ways, full_matrices=False)
    basis = U[:, s > SAME * s[0]]
    return w - basis @ (basis.T @ w)
