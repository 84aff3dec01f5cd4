"""What is special about one position of a machine: the kind of singularity, with evidence and in plain words.

With velocities v, constraints A v = 0, input rates K v and output rates J v, the ranks of A, [A; K] and [A; J] are
compared with those at assembled positions around it. After Gosselin and Angeles (1990), Zlatanov, Fenton and Benhabib
(1994) and Müller (2016); the definitions stand in `docs/singularities.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarrus.analysis.branches import solve_many
from sarrus.analysis.roles import KINDS, Roles, evidence, find_roles
from sarrus.analysis.surface import Surface, make_surface
from sarrus.dynamics.manifold import retract
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError

SIZES = (0.03, 0.1, 0.3, 0.6)  # of steps to neighbours, in units of the scales
NEAR = 1.0  # distances by extrapolation beyond this say nothing


@dataclass(frozen=True, eq=False)
class Singularity:
    """The outcome of `classify`; prints itself.

    Attributes:
        name: of the machine.
        kinds: "constraint", "output", "input", "toggle": those that apply; empty at a regular position.
        judged: kinds that could be judged (without outputs there are no input singularities).
        inputs: names of the inputs.
        outputs: names of the outputs.
        mobility: in how many ways the machine can move at this instant.
        ordinary: in how many ways it can move around here.
        locked: in how many ways it can move at this instant with the inputs locked.
        ranks: (rank here, rank around here) of A, [A; K] and [A; J], by kind.
        measures: by kind the singular value that reaches zero where the singularity is; no unit.
        gaps: by kind the singular value above it.
        distances: by kind how far away the singularity is by straight extrapolation of the measure: radians, or
            lengths of the machine. Good when small; above 1 it only means "not near".
        motions: by kind the velocities that are possible here beyond what is ordinary, one column for each, the
            largest entry 1 in units of the coordinates' scales.
        branches: at a constraint singularity how many branches of motion meet; 0 if it cannot move at all beyond the
            first order; None if it takes more than second derivatives to tell.
        finite: with the inputs locked, whether the extra motion goes on (True) or is one of first order (False); None
            where there is none, or inputs are not coordinates.
        turning: kinds at which the inputs ("output") or outputs ("input") turn back; for mobility 1.
        tolerance: singular values below it count as zero.
    """

    name: str
    kinds: tuple[str, ...]
    judged: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mobility: int
    ordinary: int
    locked: int
    ranks: Mapping[str, tuple[int, int]]
    measures: Mapping[str, float]
    gaps: Mapping[str, float]
    distances: Mapping[str, float]
    motions: Mapping[str, np.ndarray] = field(default_factory=dict)
    branches: int | None = None
    finite: bool | None = None
    turning: tuple[str, ...] = ()
    tolerance: float = 1e-6

    @property
    def kind(self) -> str:
        """The weightiest kind, or "regular"."""
        return self.kinds[0] if self.kinds else "regular"

    @property
    def words(self) -> tuple[str, ...]:
        """One sentence for each kind; one that says so if the position is regular."""
        said = {"constraint": _constraint, "output": _output, "input": _input, "toggle": _toggle}
        return tuple(said[kind](self) for kind in self.kinds) or (_regular(self),)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        data = {**vars(self), "kind": self.kind, "words": list(self.words)}
        data["motions"] = {kind: motion.tolist() for kind, motion in self.motions.items()}
        for key in ("measures", "gaps", "distances"):  # infinite where there is nothing that could vanish
            data[key] = {k: (x if np.isfinite(x) else None) for k, x in data[key].items()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in data.items()}

    def __str__(self) -> str:
        """Kind, words and evidence."""
        lines = [f"{self.name}: {' and '.join(self.kinds) + ' singularity' if self.kinds else 'regular position'}"]
        lines += [f"  {text}" for text in self.words]
        for kind in self.judged:
            here, around = self.ranks[kind]
            text = f"  {kind}: rank {here}, {around} around here; measure {self.measures[kind]:.3g}"
            far = self.distances[kind]
            lines.append(text + (f", about {far:.2g} away" if kind not in self.kinds and far < NEAR else ""))
        if "input" not in self.judged:
            lines.append("  input singularities were not looked for: name the outputs")
        return "\n".join(lines)


def classify(
    system: System,
    state: State,
    inputs: Sequence[str] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    active: Mapping[str, bool] | None = None,
) -> Singularity:
    """Find out what kind of position a state is.

    Args:
        system: the machine.
        state: an assembled state; only its positions and time count.
        inputs: what drives it, names of motors or coordinates; all motors if None.
        outputs: what it is for, names of coordinates, bodies or frames. If None, the named frames; if there are none,
            the coordinates of a body on a free or planar joint without motors.
        active: constraint name -> False for those switched off.
    """
    if not isinstance(state, State) or state.count is not None:
        raise StateError("classify: give one state (state.row(i) picks one from an array of states)")
    surface = make_surface(system, {}, state.t, active)
    return judge(surface, find_roles(system, inputs, outputs), state.q)


def judge(surface: Surface, roles: Roles, q: np.ndarray, around: Mapping[str, int] | None = None) -> Singularity:
    """What `classify` does, with its parts at hand.

    Args:
        surface: all configurations of the machine.
        roles: its inputs and outputs.
        q: where.
        around: ordinary ranks by kind, if they are known.
    """
    system, nv = surface.system, surface.system.layout.nv
    spot = surface.look(q)
    _must_be_assembled(surface, q)
    found = {kind: evidence(roles.rows(kind, spot, surface.t)) for kind in roles.kinds}
    here = {kind: int(np.sum(found[kind][0] > system.tolerance)) for kind in found}
    neighbours = _neighbours(surface, q)
    ordinary = dict(around or ordinary_ranks(surface, roles, neighbours))
    ranks = {kind: (here[kind], max(here[kind], ordinary.get(kind, 0))) for kind in found}
    stuck = nv - here["constraint"] > 0 and not neighbours
    kinds = [kind for kind in KINDS if kind in ranks and ranks[kind][0] < ranks[kind][1]]
    if stuck and "constraint" not in kinds:
        kinds.insert(0, "constraint")
    motions = {k: _sized(surface, spot.back @ found[k][2][here[k] :].T) for k in kinds}
    free = nv - ranks["constraint"][1]
    turning = _turning(surface, roles, q, [k for k in kinds if k != "constraint"]) if free == 1 else ()
    if "input" in turning:
        kinds.append("toggle")
    measures = {k: _at(found[k][0], ranks[k][1]) for k in found}
    singular = "constraint" in kinds
    return Singularity(
        system.name, tuple(kinds), roles.kinds, roles.inputs, roles.outputs,
        nv - here["constraint"], 0 if stuck else free, nv - here.get("output", here["constraint"]), ranks, measures,
        {k: _at(found[k][0], ranks[k][1] - 1) for k in found},
        {k: 0.0 if k in kinds else _distance(surface, roles, spot, k, ranks[k][1], measures[k]) for k in found},
        motions, (0 if stuck else _tangent_branches(surface, q, here["constraint"])) if singular else None,
        _goes_on(surface, roles, q, motions["output"]) if "output" in kinds else None, turning, system.tolerance,
    )  # fmt: skip


def ordinary_ranks(surface: Surface, roles: Roles, places: Sequence[np.ndarray]) -> dict[str, int]:
    """The largest rank of each kind's matrix over some assembled configurations."""
    best = dict.fromkeys(roles.kinds, 0)
    for q in places:
        spot = surface.look(q)
        for kind in best:
            sigma = evidence(roles.rows(kind, spot, surface.t))[0]
            best[kind] = max(best[kind], int(np.sum(sigma > surface.system.tolerance)))
    return best


def _must_be_assembled(surface: Surface, q: np.ndarray) -> None:
    layout = surface.system.layout
    phi = surface.system.functions("position", surface.t, q, surface.system.p)[0] * surface.flags
    units = [layout.length if row.unit == "m" else 1.0 for row in layout.rows]
    bad = np.abs(phi) > 1e-6 * np.array(units)
    if bad.any():
        worst = int(np.argmax(np.abs(phi) * bad))
        text = f"{layout.name}: constraint {layout.rows[worst].name!r} is open by {abs(phi[worst]):.3g} at this state; "
        raise StateError(text + "singularities are judged at assembled ones: see system.assemble")


def _neighbours(surface: Surface, q: np.ndarray) -> list[np.ndarray]:
    """Assembled configurations around q; none if it cannot get away."""
    spot = surface.look(q)
    tangents = surface.tangents(spot, surface.rank(q))
    if not tangents.shape[1]:
        return []
    directions = np.random.default_rng(2).normal(size=(2 * len(SIZES), tangents.shape[1])) @ tangents.T
    sizes = np.tile(SIZES, 2)
    starts = retract(surface.system.layout, q, (sizes / surface.size(directions))[:, None] * directions)
    # by damped steps: rows that depend on each other on the surface contradict each other beside it
    reached = solve_many(surface, starts, np.broadcast_to(surface.values, (len(starts), len(surface.values))))
    return [x for x, size in zip(reached, sizes, strict=True) if surface.distance(q, x) > 0.2 * size]


def _at(sigma: np.ndarray, rank: int) -> float:
    return float(sigma[rank - 1]) if rank > 0 else float("inf")


def _sized(surface: Surface, columns: np.ndarray) -> np.ndarray:
    return columns / np.maximum(surface.size(columns.T), 1e-300)


def _distance(surface: Surface, roles: Roles, spot: Any, kind: str, rank: int, measure: float) -> float:
    """Measure divided by its steepest rate of change along the surface, in units of the scales."""
    tangents = surface.tangents(spot, surface.rank(spot.q))
    if rank == 0 or not tangents.shape[1]:
        return float("inf")
    across = np.linalg.qr(tangents / surface.scales[:, None])[0] * surface.scales[:, None]
    slopes = []
    for direction in across.T:
        ends = [evidence(roles.rows(kind, surface.look(surface.move(spot.q, h * direction)), surface.t))[0]
                for h in (1e-5, -1e-5)]  # fmt: skip
        slopes.append((_at(ends[0], rank) - _at(ends[1], rank)) / 2e-5)
    steepest = float(np.linalg.norm(slopes))
    return measure / steepest if steepest > 1e-6 * measure else float("inf")


def _tangent_branches(surface: Surface, q: np.ndarray, rank: int) -> int | None:
    """How many branches meet, from the second derivatives of one dependence on two free directions."""
    directions = branch_directions(surface, q, rank)
    return None if directions is None else len(directions)


def branch_directions(surface: Surface, q: np.ndarray, rank: int) -> list[np.ndarray] | None:
    """Velocities along which branches leave a configuration where two free directions meet one dependence.

    A branch needs wᵀ(d/dt A) v = 0 for the left null vector w of A: a quadratic equation between two directions.

    Args:
        surface: with what is held, if anything.
        q: where.
        rank: of the rows there.
    """
    spot = surface.look(q)
    _, U, Vt = evidence(spot.rows)
    if len(Vt) - rank != 2 or not len(spot.rows):
        return None
    one, two = (spot.back @ x for x in Vt[rank:])
    kept, holonomic, factor = surface.row_index
    kept, factor = kept[holonomic], factor[holonomic]
    system, still = surface.system, np.zeros(surface.system.layout.nv)

    def bent(v: np.ndarray) -> np.ndarray:
        gamma = system.functions("terms", surface.t, q, v, system.p)[3]
        return U[: len(kept), rank:].T @ (factor * gamma[kept])

    rest = bent(still)
    a, c = bent(one) - rest, bent(two) - rest
    b = (bent(one + two) - rest - a - c) / 2
    _, sizes, forms = np.linalg.svd(np.stack([a, b, c], axis=1), full_matrices=False)
    typical = np.linalg.norm(one) * np.linalg.norm(two) * np.abs(spot.back).max()
    if not len(sizes) or sizes[0] < 1e-7 * typical:
        return None
    first, *others = forms[sizes > 1e-6 * sizes[0]]
    roots = _roots(*first)
    if roots is None:
        return None
    return [x * one + y * two for x, y in roots if all(abs(f @ (x * x, 2 * x * y, y * y)) < 1e-6 for f in others)]


def _roots(a: float, b: float, c: float) -> list[tuple[float, float]] | None:
    """Directions (x, y) of length 1 with a x² + 2 b x y + c y² = 0; None if they almost coincide."""
    inside = b * b - a * c
    if abs(inside) < 1e-9 * (b * b + abs(a * c)):
        return None
    if inside < 0:
        return []
    big = -(b + np.copysign(np.sqrt(inside), b))  # nothing is divided by what may vanish
    return [(x / np.hypot(x, y), y / np.hypot(x, y)) for x, y in ((big, a), (c, big))]


def _goes_on(surface: Surface, roles: Roles, q: np.ndarray, motions: np.ndarray) -> bool | None:
    """Whether a motion with all inputs locked leads anywhere."""
    if not set(roles.inputs) <= set(surface.system.layout.q_names):
        return None
    names = {name: q[surface.system.layout.find(name)][0] for name in roles.inputs}
    locked = make_surface(surface.system, names, surface.t)
    for direction in motions.T:
        for size in (0.02, -0.02):
            spot = locked.onto(locked.move(q, size * direction / locked.size(direction)), tolerance=1e-9, tries=40)
            if spot is not None and locked.distance(q, spot.q) > 0.01:
                return True
    return False


def _turning(surface: Surface, roles: Roles, q: np.ndarray, kinds: list[str]) -> tuple[str, ...]:
    """Kinds whose rates change sign on the way through q, for a machine that can only go to and fro."""
    rank = surface.rank(q)
    tangents = surface.tangents(surface.look(q), rank)
    if tangents.shape[1] != 1:
        return ()
    direction = tangents[:, 0] / surface.size(tangents[:, 0])
    ends = [surface.onto(surface.move(q, h * direction), rank) for h in (1e-3, -1e-3)]
    turning = []
    for kind in kinds:
        rates = []
        for end in ends:
            if end is None:
                return ()
            ahead = surface.tangents(end, rank)[:, 0]
            sign = np.sign(ahead @ np.linalg.solve(end.back @ end.back.T, direction))
            rates.append(roles.rates[kind](end.q, surface.t) @ (sign * ahead) / roles.units[kind])
        if rates[0] @ rates[1] < 0:
            turning.append(kind)
    return tuple(turning)


# --- words -----------------------------------------------------------------------------------------------------------


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _ways(count: int) -> str:
    return "1 way" if count == 1 else f"{count} ways"


def _regular(x: Singularity) -> str:
    if not x.mobility:
        return "It cannot move: a structure."
    text = f"It can move in {_ways(x.mobility)}"
    if not x.inputs:
        return text + "; it has no inputs."
    held = f"in {_ways(x.locked)} with them locked" if x.locked else "not at all with them locked"
    return text + f"; the inputs ({_list(x.inputs)}) decide: {held}."


def _constraint(x: Singularity) -> str:
    if x.branches == 0:
        return (
            f"Constraint singularity: at this instant it can move in {_ways(x.mobility)}, but only to first order: it "
            "is shaky, and stands."
        )
    text = f"Constraint singularity: at this instant it can move in {_ways(x.mobility)}, around here in {x.ordinary}."
    if x.branches == 1:
        return text + " Only one branch of motion passes."
    return text + (f" {x.branches} branches of motion meet." if x.branches else "")


def _output(x: Singularity) -> str:
    usual = x.locked - (x.ranks["output"][1] - x.ranks["output"][0])
    text = f"Output singularity: with the inputs ({_list(x.inputs)}) locked it can still move in {_ways(x.locked)}"
    text += f" (around here in {usual})" if usual else ""
    if x.finite is not None:
        text += ", and goes on moving" if x.finite else ", to first order"
    text += "; the inputs cannot resist a load in that direction."
    return text + (" A dead point: the inputs turn back here." if "output" in x.turning else "")


def _input(x: Singularity) -> str:
    return (
        f"Input singularity: the inputs can move while the outputs ({_list(x.outputs)}) stand still; "
        "the outputs have lost a direction."
    )


def _toggle(x: Singularity) -> str:
    return "Toggle: the outputs turn back here, and a finite load on them needs no effort of the inputs."
