"""Check a description as a whole and freeze it: every problem is found before anything is raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sarrus.errors import ModelError
from sarrus.model.expression import as_array, numeric, parameters_of
from sarrus.model.geometry import perpendiculars, rotation_about
from sarrus.model.parts import GROUND, JOINT_SIZES, Body, Feature, Joint, Model
from sarrus.model.tree import span


def freeze(
    name: str,
    gravity: Any,
    planar: bool,
    parts: Mapping[str, list[Any]],
    frames: Mapping[str, Feature],
    groups: Sequence[str],
    problems: Sequence[str],
) -> Model:
    """Turn collected parts into a `Model`, or raise `ModelError` with every problem."""
    found = list(problems)
    try:
        field = as_array(gravity, (3,))
    except (ValueError, TypeError) as error:
        field = np.zeros(3)
        found.append(f"gravity: {error}")
    values = {key: tuple(items) for key, items in parts.items()}
    model = Model(name, field, planar, **values, frames=dict(frames), parameters={}, groups=tuple(groups))
    found += _names(model)
    found += _numbers(model)
    found += _bodies(model)
    found += _joints(model)
    found += _references(model)
    found += _one_sided(model)
    parameters, clashes = _parameters(model)
    found += clashes
    found += _structure(_sound_part(model))
    if found:
        raise ModelError(name, list(dict.fromkeys(found)))
    return Model(name, field, planar, **values, frames=dict(frames), parameters=parameters, groups=tuple(groups))


def _names(model: Model) -> Iterator[str]:
    spaces = {
        "body": [b.name for b in model.bodies],
        "joint or constraint": [j.name for j in model.joints] + list(model.groups),
        "force element": [p.name for p in (*model.springs, *model.joint_springs, *model.loads)],
        "actuator": [a.name for a in model.actuators],
    }
    known = [j for j in model.joints if j.kind in JOINT_SIZES]
    clashes = Counter(n for j in known for n in {*j.position_names, *j.velocity_names})
    for name, count in clashes.items():
        if count > 1 and name not in {j.name for j in known}:
            yield f"coordinate {name!r}: two joints have a coordinate of this name; rename one of them"
    for what, names in spaces.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{what} {name!r}: the name is taken {count} times; names must be unique"
            if not isinstance(name, str) or not name.strip():
                yield f"{what} {name!r}: a name must be a text that is not empty"
    for name in set(model.frames) & {GROUND, *spaces["body"]}:
        yield f"frame {name!r}: a body has this name, and is a frame already; choose another"
    if GROUND in spaces["body"]:
        yield f"body {GROUND!r}: this name belongs to the fixed world; choose another"


def _parts(model: Model) -> Iterator[tuple[str, Any]]:
    """Every part with the words that name it in a message."""
    kinds = {
        "body": model.bodies,
        "joint": model.joints,
        "closure": model.closures,
        "coupling": model.couplings,
        "rolling": model.rollings,
        "contact": model.touches,
        "one-sided constraint": model.one_sided,
        "constraint": model.customs,
        "spring": model.springs,
        "joint spring": model.joint_springs,
        "load": model.loads,
        "actuator": model.actuators,
    }
    for kind, items in kinds.items():
        for item in items:
            yield f"{kind} {item.name!r}", item
    for name, feature in model.frames.items():
        yield f"frame {name!r}", feature


def _fields(part: Any) -> Iterator[tuple[str, Any]]:
    """The numeric fields of a part, features and coefficient tables opened up."""
    for key, value in vars(part).items():
        if isinstance(value, Feature):
            yield f"{key}.at", value.at
        elif isinstance(value, Mapping):
            yield from ((f"{key}[{k!r}]", v) for k, v in value.items())
        elif not isinstance(value, (str, bool)) and not callable(value) and value is not None:
            yield key, value


def _numbers(model: Model) -> Iterator[str]:
    if not np.all(np.isfinite(np.asarray(numeric(model.gravity), dtype=float))):
        yield f"gravity is {model.gravity}; expected finite numbers [m/s²]"
    for label, part in _parts(model):
        for key, value in _fields(part):
            try:
                raw = tuple(numeric(x) for x in value) if isinstance(value, tuple) else numeric(value)
                finite = np.all(np.isfinite(np.asarray(raw, dtype=float)))
            except ZeroDivisionError:
                finite = False
            if key == "limits":  # an open side is written as infinity
                finite = not np.any(np.isnan(np.asarray(value, dtype=float)))
            if not finite:
                yield f"{label}: {key} is {value}; expected a finite number"
            elif key in ("mass", "damping", "rotor_inertia", "friction") and float(numeric(value)) < 0:
                yield f"{label}: {key} is {value}; it must not be negative"


def _bodies(model: Model) -> Iterator[str]:
    for body in model.bodies:
        tensor = np.asarray(numeric(body.inertia), dtype=float)
        mass = float(numeric(body.mass))
        if not (np.all(np.isfinite(tensor)) and np.isfinite(mass)):
            continue  # already reported
        scale = np.abs(tensor).max()
        if scale == 0.0:
            continue
        if np.abs(tensor - tensor.T).max() > 1e-9 * scale:
            yield f"body {body.name!r}: its inertia matrix is not symmetric"
            continue
        low, mid, high = np.linalg.eigvalsh(tensor)
        if low < -1e-9 * scale:
            yield f"body {body.name!r}: its inertia has the negative principal moment {low:.4g} kg m²"
        elif high > (low + mid) * (1 + 1e-9):
            yield (
                f"body {body.name!r}: no rigid body has principal moments {low:.4g}, {mid:.4g}, {high:.4g} kg m² "
                "(each must be at most the sum of the other two); is the inertia taken about the centre of mass?"
            )


def _joints(model: Model) -> Iterator[str]:
    known = {GROUND, *(b.name for b in model.bodies)}
    for joint in model.joints:
        label = f"joint {joint.name!r}"
        if joint.kind not in JOINT_SIZES:
            yield f"{label}: unknown kind {joint.kind!r}; kinds: {', '.join(JOINT_SIZES)}"
            continue
        for side in (joint.parent, joint.child):
            if side not in known:
                yield f"{label}: {side!r} is not a body of this machine; bodies: {', '.join(sorted(known))}"
        if joint.parent == joint.child:
            yield f"{label}: it joins {joint.parent!r} to itself"
        if joint.kind == "helical" and float(numeric(joint.pitch)) == 0.0:
            yield f"{label}: a helical joint needs a pitch other than 0 (use revolute)"
        if joint.kind == "universal" and np.linalg.norm(np.cross(joint.axis, joint.axis2)) < 1e-6:
            yield f"{label}: the two axes of a universal joint must not be parallel"
        if joint.limits is not None and not joint.limits[0] < joint.limits[1]:
            yield f"{label}: limits {joint.limits} must be (low, high) with low < high"
        if joint.limits is not None and joint.nv != 1:
            yield f"{label}: limits are for joints with one coordinate, not {joint.kind}"
        if joint.kind in ("spherical", "free") and joint.initial is not None and not np.any(joint.initial[-4:]):
            yield f"{label}: initial has a quaternion of length 0"
        if joint.initial is not None and joint.initial.shape != (joint.nq,):
            yield f"{label}: initial has {joint.initial.size} values, its kind {joint.kind} has {joint.nq}"
        one_dof = joint.nv == 1
        for key in ("stiffness", "rest", "rotor_inertia"):
            if not one_dof and np.any(np.asarray(getattr(joint, key) != 0.0)):
                yield f"{label}: {key} is for joints with one coordinate, not {joint.kind}; use joint_spring or spring"


def _references(model: Model) -> Iterator[str]:
    bodies = {GROUND, *(b.name for b in model.bodies)}
    coordinates = scalar_coordinates(model)
    for label, part in _parts(model):
        features = [part] if isinstance(part, Feature) else [v for v in vars(part).values() if isinstance(v, Feature)]
        for feature in features:
            if feature.problem:
                yield f"{label}: {feature.problem}"
            if feature.flat and not model.planar:
                yield f"{label}: a point has two numbers; expected three (two are for planar machines)"
            if feature.body not in bodies:
                yield f"{label}: {feature.body!r} is not a body of this machine; bodies: {', '.join(sorted(bodies))}"
        if len(features) == 2 and features[0].body == features[1].body:
            yield f"{label}: both sides are on {features[0].body!r}"
        for name in getattr(part, "coefficients", {}):
            if name not in coordinates:
                yield f"{label}: {name!r} is not a scalar joint coordinate; coordinates: {', '.join(coordinates)}"
    for rolling in model.rollings:
        if float(numeric(rolling.radius)) <= 0:
            yield f"rolling {rolling.name!r}: radius {rolling.radius} must be positive"
    for closure in model.closures:
        if closure.kind == "distance":
            kinds = (closure.a.kind, closure.b.kind)
            if kinds != ("point", "point"):
                yield f"distance {closure.name!r}: both sides must be point_on, got {kinds[0]}_on and {kinds[1]}_on"
            if float(numeric(closure.length)) <= 0:
                yield f"distance {closure.name!r}: length {closure.length} must be positive (close the points instead)"


def _one_sided(model: Model) -> Iterator[str]:
    free = {c.name for c in model.customs if not c.holonomic}
    for name, count in Counter(x.name for x in model.one_sided).items():
        if name not in model.groups:
            yield f"one-sided constraint {name!r}: there is no such constraint; constraints: {', '.join(model.groups)}"
        elif name in free:
            yield f"one-sided constraint {name!r}: it is written in velocities; only holonomic ones have two sides"
        if count > 1:
            yield f"one-sided constraint {name!r}: declared {count} times; once is enough"


def scalar_coordinates(model: Model) -> tuple[str, ...]:
    """Names of all coordinates that are plain numbers with a plain rate (everything but quaternions)."""
    return tuple(n for j in model.joints if j.kind in JOINT_SIZES for n in j.position_names if ".quat_wxyz." not in n)


def _parameters(model: Model) -> tuple[dict[str, float], list[str]]:
    found: dict[str, float] = {}
    clashes = []
    sources = [value for _, part in _parts(model) for _, value in _fields(part)] + [model.gravity]
    for value in sources:
        for name, default in parameters_of(value).items():
            if found.setdefault(name, default) != default:
                clashes.append(f"parameter {name!r}: has two defaults, {found[name]} and {default}; define it once")
    return found, clashes


def _sound_part(model: Model) -> Model:
    """The machine with every joint that cannot be read replaced by a fixed one: one mistake is reported once."""
    bodies = {b.name: b for b in model.bodies if b.name != GROUND}
    joints = []
    for joint in model.joints:
        ends = [name for name in (joint.parent, joint.child) if name in bodies or name == GROUND]
        if joint.kind in JOINT_SIZES and len(ends) == 2 and ends[0] != ends[1]:
            joints.append(joint)
            continue
        pairs = [ends] if joint.kind not in JOINT_SIZES and len(set(ends)) == 2 else [[GROUND, e] for e in set(ends)]
        joints += [replace(joint, kind="fixed", parent=a, child=b) for a, b in pairs if a != b]
    return replace(model, bodies=tuple(bodies.values()), joints=tuple(joints))


def _structure(model: Model) -> Iterator[str]:
    """Problems that need the whole graph: unreachable bodies, massless subtrees, joints that cannot be cut."""
    tree = span(model)
    for island in tree.islands:
        names = ", ".join(map(repr, island))
        inside = sum(1 for j in model.joints if j.parent in island and j.child in island)
        cycle = " (their joints form a cycle)" if inside >= len(island) > 1 else ""
        yield (
            f"bodies {names}: no chain of joints leads to the ground{cycle}; "
            "join one of them to it, or add mech.free(name, body)"
        )
    yield from tree.problems
    mass: dict[str, Any] = {b.name: b for b in model.bodies}
    children: dict[str, list[str]] = {}
    for edge in tree.edges:
        children.setdefault(edge.inner, []).append(edge.outer)

    heavy: dict[str, bool] = {}
    for edge in reversed(tree.edges):  # outer bodies first
        body = mass[edge.outer]
        own = float(numeric(body.mass)) > 0 or np.any(np.asarray(numeric(body.inertia), dtype=float))
        heavy[edge.outer] = bool(own) or any(heavy[child] for child in children.get(edge.outer, ()))
    for edge in tree.edges:
        joint = edge.joint
        if not joint.nv or joint.stand_in or float(numeric(joint.rotor_inertia)) != 0:
            continue
        if not heavy[edge.outer]:
            yield f"body {edge.outer!r}: it moves on joint {joint.name!r} but has no mass; give it mass and inertia"
        elif edge.outer not in children and _singular_leaf(mass[edge.outer], joint, joint.child == edge.outer):
            yield (
                f"body {edge.outer!r}: singular inertia for joint {joint.name!r} ({joint.kind}): some motion of the "
                "joint moves no mass (a point mass at the joint, or a rod or point that can spin about itself)"
            )


def _singular_leaf(body: Body, joint: Joint, outer_is_child: bool) -> bool:
    """Whether the last body of a chain lets some motion of its joint cost nothing, in every configuration."""
    at = joint.child_at if outer_is_child else joint.at
    turn = joint.child_rotation if outer_is_child else joint.rotation
    arm = turn.T @ (np.asarray(numeric(body.com), dtype=float) - np.asarray(numeric(at), dtype=float))
    mass = float(numeric(body.mass))
    tensor = turn.T @ np.asarray(numeric(body.inertia), dtype=float) @ turn
    if not all(np.all(np.isfinite(x)) for x in (arm, mass, tensor)) or np.linalg.eigvalsh(tensor)[0] < -1e-9:
        return False  # reported already
    if joint.kind == "universal" and np.linalg.norm(np.cross(joint.axis, joint.axis2)) < 1e-6:
        return False
    skew = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
    spatial = np.block([[tensor - mass * skew @ skew, mass * skew], [-mass * skew, mass * np.eye(3)]])
    size = np.sqrt(np.diag(spatial).max())
    for angle in (0.3, 1.2):  # the subspace of a universal joint depends on its second angle
        S = _subspace(joint, angle)
        M = S.T @ spatial @ S
        scale = np.sqrt(np.where(np.diag(M) > 0, np.diag(M), 1.0))
        if np.linalg.eigvalsh(M / np.outer(scale, scale))[0] > 1e-13 and np.all(np.diag(M) > 1e-26 * size**2):
            return False
    return True


def _subspace(joint: Joint, angle: float) -> np.ndarray:
    """Velocity columns (angular, linear) of a joint, at the joint, in the axes of its frame."""
    a, none = joint.axis, np.zeros(3)
    turn, shift = np.r_[a, none], np.r_[none, a]
    if joint.kind == "revolute":
        columns = [turn]
    elif joint.kind == "prismatic":
        columns = [shift]
    elif joint.kind == "helical":
        columns = [turn + shift * float(numeric(joint.pitch)) / (2 * np.pi)]
    elif joint.kind == "cylindrical":
        columns = [turn, shift]
    elif joint.kind == "universal":
        columns = [np.r_[rotation_about(joint.axis2, -angle) @ a, none], np.r_[joint.axis2, none]]
    elif joint.kind == "planar":
        columns = [np.r_[none, t] for t in perpendiculars(a)] + [turn]
    else:
        columns = list(np.eye(6)[: 3 if joint.kind == "spherical" else 6])
    return np.column_stack(columns)
