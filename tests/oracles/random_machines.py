"""Random machines with loops that close exactly at a known configuration: `random_machine(seed)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from sarrus.model import features as on
from sarrus.model.expression import parameter
from sarrus.model.mechanism import Mechanism
from sarrus.model.parts import GROUND, JOINT_SIZES, Model

from .constraints import row_scale, stacked
from .dense import constrained_solve
from .pinocchio_tree import PinocchioTree, joint_transform, random_coordinates

ONE_DOF = ("revolute", "prismatic", "helical")
KINDS = ("fixed", *ONE_DOF, "cylindrical", "universal", "planar", "spherical", "free")
ODDS = np.array([1, 6, 3, 2, 2, 2, 2, 2, 2]) / 22.0

# independent rows of each kind of loop closure between bodies that could move freely
CLOSURE_ROWS = {
    "point": 3, "revolute": 5, "prismatic": 5, "cylindrical": 4, "universal": 4, "weld": 6, "planar": 3,
    "distance": 1, "point-on-line": 2, "point-on-plane": 1,
}  # fmt: skip
CUT_KINDS = ("revolute", "prismatic", "cylindrical", "universal", "planar", "spherical")
LOOP_ROWS = {
    **CLOSURE_ROWS,
    "coupling": 1,
    **{f"joint:{kind}": 6 - JOINT_SIZES[kind][1] for kind in CUT_KINDS},
}


@dataclass
class Case:
    """A machine and a configuration; `q` is in Sarrus order and closes all loops if `assembled`."""

    name: str
    mechanism: Mechanism
    model: Model
    tree: PinocchioTree
    q: np.ndarray
    loops: list[tuple[str, str]] = field(default_factory=list)  # (name, kind)
    rows: int = 0  # rows of this package's oracle, in which nothing is left out
    rank: int = 0
    redundant: bool = False
    assembled: bool = True
    t: float = 0.0

    @property
    def freedom(self) -> int:
        """Degrees of freedom left at q."""
        return self.tree.nv - self.rank

    @property
    def kinds(self) -> set[str]:
        """Joint kinds of the machine."""
        return {j.kind for j in self.model.joints}


def make_case(
    name: str, mechanism: Mechanism, values: dict[str, float] | None = None, loops=(), assembled=True, t=0.0,
    rng: np.random.Generator | None = None,
) -> Case:  # fmt: skip
    """Freeze a mechanism; q from named values (of the tree's joints at least), or random."""
    model = mechanism.finalize()
    tree = PinocchioTree(model)
    q = tree.pack(values) if values is not None else tree.random_configuration(rng or np.random.default_rng(0))
    _, A, _, _ = stacked(tree, q, np.zeros(tree.nv), t)
    none = np.zeros(tree.nv)
    found = constrained_solve(tree.mass_matrix(q), none, none, A, np.zeros(len(A)), row_scale(A))
    return Case(name, mechanism, model, tree, q, list(loops), len(A), found.rank, found.rank < len(A), assembled, t)


# --- random parts ------------------------------------------------------------------------------------------
def random_unit(rng: np.random.Generator) -> np.ndarray:
    """A unit vector, sometimes a coordinate axis."""
    if rng.random() < 0.3:
        return rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)]
    d = rng.normal(size=3)
    return d / np.linalg.norm(d)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A rotation matrix, sometimes the identity."""
    quat = rng.normal(size=4)
    w, x, y, z = quat / np.linalg.norm(quat)
    return np.eye(3) if rng.random() < 0.3 else pin.Quaternion(w, x, y, z).toRotationMatrix()


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Inertia of a random cloud of mass: positive definite, obeys the triangle rule."""
    cloud = rng.normal(size=(3, 3)) * rng.uniform(0.05, 0.25)
    second = cloud @ cloud.T + 1e-3 * np.eye(3)
    tensor = mass * (np.trace(second) * np.eye(3) - second)
    return 0.5 * (tensor + tensor.T)


def add_body(mech: Mechanism, name: str, rng: np.random.Generator, named: bool = False) -> None:
    """A random body; with `named` its mass is a parameter."""
    mass = float(10.0 ** rng.uniform(-1.0, 1.0))
    inertia = random_inertia(rng, mass)
    mech.body(name, parameter(f"mass_{name}", mass) if named else mass, rng.uniform(-0.2, 0.2, 3), inertia)


def add_joint(mech: Mechanism, kind: str, name: str, parent: str, child: str, rng, plain=False, **more) -> None:
    """A random joint; unless `plain`, perhaps with a spring, damper or rotor of its own."""
    options = {
        "rotation": random_rotation(rng),
        "child_at": rng.uniform(-0.3, 0.3, 3),
        "child_rotation": random_rotation(rng),
    }
    axis = random_unit(rng)
    if kind == "universal":
        second = np.cross(axis, random_unit(rng) + np.array([0.013, 0.017, 0.011]))
        second = second / np.linalg.norm(second)
        options["axis2"] = second + (axis * rng.uniform(-0.5, 0.5) if rng.random() < 0.3 else 0.0)
    if kind == "helical":
        options["pitch"] = rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.5)
    if kind in ONE_DOF and not plain:
        if rng.random() < 0.3:
            options |= {"stiffness": rng.uniform(1.0, 50.0), "rest": rng.uniform(-0.5, 0.5)}
        if rng.random() < 0.2:
            options["rotor_inertia"] = rng.uniform(0.01, 0.5)
    if kind != "fixed" and not plain and rng.random() < 0.25:
        options["damping"] = rng.uniform(0.1, 2.0)
    mech.joint(kind, name, parent, child, axis, rng.uniform(-0.3, 0.3, 3), **options | more)


def random_tree(rng: np.random.Generator, bodies: int) -> Mechanism:
    """A tree of random joints, about a third of them written against the direction of the tree."""
    mech = Mechanism("random", gravity=rng.uniform(-10.0, 10.0, 3))
    first = rng.choice(KINDS[1:], size=2, replace=False)  # two moving joints that differ
    names = [f"B{i}" for i in range(bodies)]
    for i, name in enumerate(names):
        add_body(mech, name, rng, named=rng.random() < 0.15)
        inner = GROUND if i == 0 or rng.random() < 0.15 else names[rng.integers(max(0, i - 3), i)]
        kind = str(first[i]) if i < 2 else str(rng.choice(KINDS, p=ODDS))
        ends = (name, inner) if rng.random() < 0.35 else (inner, name)
        add_joint(mech, kind, f"J{i}", *ends, rng)
    return mech


# --- loops -------------------------------------------------------------------------------------------------
class Places:
    """World poses of the bodies at q*, to put features where they coincide."""

    def __init__(self, tree: PinocchioTree, q: np.ndarray):
        names = [GROUND, *(b.name for b in tree.model.bodies)]
        self.pose = {n: tree.body_pose(q, n) for n in names}

    def world(self, body: str, at) -> np.ndarray:
        """World position of a point of a body."""
        R, p = self.pose[body]
        return R @ np.asarray(at, dtype=float) + p

    def at(self, body: str, world) -> np.ndarray:
        """The same point in the body's axes."""
        R, p = self.pose[body]
        return R.T @ (world - p)

    def turn(self, body: str, directions) -> np.ndarray:
        """World directions (vector or columns of a matrix) in the body's axes."""
        return self.pose[body][0].T @ directions


def _square(d: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A unit vector at a right angle to d."""
    e = np.cross(d, rng.normal(size=3))
    return e / np.linalg.norm(e)


def hold(mech: Mechanism, name: str, kind: str, a: str, b: str, where: Places, rng: np.random.Generator) -> Callable:
    """Add a closure of this kind that holds at q*; returns a function that adds a copy under another name."""
    p, n, slide = where.world(a, rng.uniform(-0.3, 0.3, 3)), random_unit(rng), rng.uniform(-0.3, 0.3)

    def both(make, p_b=p, n_b=n):
        return make(a, where.at(a, p), where.turn(a, n)), make(b, where.at(b, p_b), where.turn(b, n_b))

    if kind == "distance":
        p_b = where.world(b, rng.uniform(-0.3, 0.3, 3))
        if np.linalg.norm(p_b - p) < 0.1:
            p_b = p + 0.5 * n
        ends = on.point_on(a, where.at(a, p)), on.point_on(b, where.at(b, p_b))
        length = float(np.linalg.norm(p_b - p))
        return _added(lambda name: mech.distance(name, *ends, length), name)
    if kind == "point":
        pair = on.point_on(a, where.at(a, p)), on.spherical_on(b, where.at(b, p))
    elif kind == "revolute":
        pair = both(on.revolute_on)
    elif kind == "cylindrical":
        pair = both(on.cylindrical_on, p + slide * n)
    elif kind == "universal":
        pair = both(on.universal_on, p, _square(n, rng))
    elif kind == "planar":
        pair = both(on.planar_on, p + slide * _square(n, rng))
    elif kind in ("weld", "prismatic"):
        R = random_rotation(rng)
        turns = where.turn(a, R), where.turn(b, R)
        if kind == "weld":
            pair = on.weld_on(a, where.at(a, p), turns[0]), on.weld_on(b, where.at(b, p), turns[1])
        else:
            p_b = p + slide * R[:, 2]
            pair = (
                on.prismatic_on(a, where.at(a, p), "z", turns[0]),
                on.prismatic_on(b, where.at(b, p_b), "z", turns[1]),
            )
    elif kind == "point-on-line":
        pair = on.line_on(a, where.at(a, p), where.turn(a, n)), on.point_on(b, where.at(b, p + slide * n))
    elif kind == "point-on-plane":
        p_b = p + slide * _square(n, rng)
        pair = on.plane_on(a, where.at(a, p), where.turn(a, n)), on.point_on(b, where.at(b, p_b))
    else:
        raise ValueError(kind)
    if rng.random() < 0.3:
        pair = pair[::-1]
    return _added(lambda name: mech.close(name, *pair), name)


def _added(add: Callable[[str], None], name: str) -> Callable[[str], None]:
    add(name)
    return add


def hold_joint(mech: Mechanism, name: str, kind: str, a: str, b: str, where: Places, rng, values: dict) -> Callable:
    """Add a joint that fits between two bodies at q*, at random coordinates, noted in `values`."""
    draft = Mechanism("draft")
    draft.body(a if a != GROUND else "a", 1.0, inertia=np.eye(3))
    draft.body(b if b != GROUND else "b", 1.0, inertia=np.eye(3))
    add_joint(draft, kind, name, a, b, rng, plain=True)
    joint = draft._parts["joints"][0]
    q = random_coordinates(kind, rng)
    R, shift = joint_transform(joint, q)
    world = where.pose[a][0] @ joint.rotation
    p = where.world(a, joint.at) + world @ shift
    child = {"child_at": where.at(b, p), "child_rotation": where.turn(b, world @ R)}

    def add(name: str) -> None:
        mech.joint(kind, name, a, b, joint.axis, joint.at, rotation=joint.rotation, axis2=joint.axis2, **child)
        values.update(zip(mech._parts["joints"][-1].position_names, q, strict=True))

    return _added(add, name)


def hold_coupling(mech: Mechanism, name: str, tree: PinocchioTree, values: dict, rng) -> Callable | None:
    """Couple two (or three) scalar coordinates, with the constant that holds at q*."""
    scalar = [n for n in tree.names_q if ".quat_wxyz." not in n]
    if len(scalar) < 2:
        return None
    chosen = rng.choice(scalar, size=min(len(scalar), int(rng.integers(2, 4))), replace=False)
    c = {str(n): float(rng.choice([-1, 1]) * rng.uniform(0.3, 2.0)) for n in chosen}
    constant = sum(x * values[n] for n, x in c.items())
    return _added(lambda name: mech.couple(name, c, constant), name)


def path_freedom(tree: PinocchioTree, a: str, b: str) -> int:
    """Degrees of freedom of the joints on the tree's path between two bodies."""
    inner = {e.outer: e for e in tree.tree.edges}

    def chain(name):
        return {} if name == GROUND else {name: inner[name].joint.nv, **chain(inner[name].inner)}

    x, y = chain(a), chain(b)
    return sum(n for k, n in {**x, **y}.items() if (k in x) != (k in y))


def _pick(tree: PinocchioTree, budget: int, rng) -> tuple[str, str, str] | None:
    """A kind of loop and two bodies: few enough rows for the machine and, if possible, for the bodies."""
    kinds = [k for k, rows in LOOP_ROWS.items() if rows <= budget]
    names = [GROUND, *(b.name for b in tree.model.bodies)]
    for attempt in range(40 if kinds else 0):
        kind = str(rng.choice(kinds))
        a, b = map(str, rng.choice(names, size=2, replace=False))
        freedom = path_freedom(tree, a, b)
        if kind == "coupling" or freedom > LOOP_ROWS[kind] or (attempt > 20 and freedom > 0):
            return kind, a, b
    return None


def _repeat(mech, name: str, made: tuple, where: Places, budget: int, rng) -> str:
    """Add rows that follow from those that are there (or three points for a weld); returns what was done."""
    kind, a, b, copy = made
    if kind == "weld" or (kind == "point" and budget >= 3 and rng.random() < 0.5):
        for i in range(1 if kind == "weld" else 2):  # a weld plus a point; or three points between two bodies
            hold(mech, f"{name}.{i}", "point", a, b, where, rng)
        return "points"
    copy(name)
    return "copy"


def _attempt(seed: int, attempt: int) -> Case | None:
    rng = np.random.default_rng([seed, attempt])
    mech = random_tree(rng, int(rng.integers(2, 13)))
    tree = PinocchioTree(mech.finalize())
    q = tree.random_configuration(rng)
    values, where = tree.unpack(q), Places(tree, q)
    budget, made, loops = tree.nv - 1, [], []
    for i in range(int(rng.integers(1, 5))):
        picked = _pick(tree, budget, rng)
        if picked is None:
            break
        kind, a, b = picked
        name = f"L{i}"
        if kind == "coupling":
            copy = hold_coupling(mech, name, tree, values, rng)
        elif kind.startswith("joint:"):
            copy = hold_joint(mech, name, kind.removeprefix("joint:"), a, b, where, rng, values)
        else:
            copy = hold(mech, name, kind, a, b, where, rng)
        if copy is None:
            continue
        budget -= LOOP_ROWS[kind]
        made.append((kind, a, b, copy))
        loops.append((name, kind))
    if not made:
        return None
    if seed % 2:
        firm = [m for m in made if m[0] in ("weld", "point")]
        again = (firm or made)[rng.integers(len(firm or made))]
        loops.append(("R", _repeat(mech, "R", again, where, budget, rng)))
    case = make_case(f"random-{seed}", mech, values, loops)
    return case if _well_posed(case) else None


def _well_posed(case: Case) -> bool:
    """Whether the rank at q* is beyond doubt and the mass matrix is not close to singular."""
    M = case.tree.mass_matrix(case.q)
    _, A, _, _ = stacked(case.tree, case.q, np.zeros(case.tree.nv))
    none = np.zeros(case.tree.nv)
    s = constrained_solve(M, none, none, A, np.zeros(len(A)), row_scale(A)).values
    gap = s[case.rank - 1] > 1e-4 * s[0] and np.all(s[case.rank :] < 1e-11 * s[0])
    return bool(gap and case.freedom > 0 and np.linalg.cond(M) < 1e8)


def random_machine(seed: int) -> Case:
    """A random machine of 2 to 12 bodies with 1 to 4 loops; odd seeds get redundant rows on top."""
    for attempt in range(50):
        case = _attempt(seed, attempt)
        if case is not None:
            return case
    raise RuntimeError(f"no well-posed machine found for seed {seed}")
