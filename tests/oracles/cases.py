"""Small machines, one for each closure type (`CLOSURE_CASES`) and for each force type (`FORCE_CASES`)."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from sarrus.model import features as on
from sarrus.model.geometry import frame_with_axis
from sarrus.model.mechanism import Mechanism
from sarrus.model.parts import GROUND

from .pinocchio_tree import PinocchioTree
from .random_machines import (
    CLOSURE_ROWS,
    CUT_KINDS,
    Case,
    Places,
    add_body,
    add_joint,
    hold,
    hold_coupling,
    hold_joint,
    make_case,
    random_unit,
)

Spot = tuple[Mechanism, PinocchioTree, np.ndarray, np.random.Generator]


def _chain(name: str, rng: np.random.Generator, joints: list[tuple[str, ...]], plain=False, **options) -> Spot:
    """Bodies for joints (kind, name, inner, outer), every second one reversed; a random configuration."""
    mech = Mechanism(name, gravity=rng.uniform(-10.0, 10.0, 3))
    for i, (kind, joint, inner, outer) in enumerate(joints):
        add_body(mech, outer, rng)
        add_joint(mech, kind, joint, *((outer, inner) if i % 2 else (inner, outer)), rng, plain, **options)
    tree = PinocchioTree(mech.finalize())
    return mech, tree, tree.random_configuration(rng), rng


def _two_arms(name: str, seed: int, plain: bool = False, **options) -> Spot:
    """Two arms on the ground, ending in the bodies B and D, with joints of many kinds and much freedom."""
    joints = [
        ("universal", "shoulder", GROUND, "A"),
        ("spherical", "ball", "A", "B"),
        ("free", "float", GROUND, "C"),
        ("helical", "screw", "C", "D"),
    ]
    return _chain(name, np.random.default_rng([seed, 7]), joints, plain, **options)


# --- closures ----------------------------------------------------------------------------------------------
def _held(kind: str, seed: int) -> Case:
    mech, tree, q, rng = _two_arms(f"{kind}-{seed}", seed)
    hold(mech, "loop", kind, "B", "D", Places(tree, q), rng)
    return make_case(mech.name, mech, tree.unpack(q), [("loop", kind)])


def _cut(kind: str, seed: int) -> Case:
    """A joint too many, which is cut because all others must be kept (they have a damper or are free)."""
    if kind in ("fixed", "free"):
        rng = np.random.default_rng([seed, 8])
        joints = [("free", "first", GROUND, "B"), ("free", "second", GROUND, "D")]
        mech, tree, q, rng = _chain(f"joint:{kind}-{seed}", rng, joints)
    else:
        mech, tree, q, rng = _two_arms(f"joint:{kind}-{seed}", seed, damping=0.2)
    values = tree.unpack(q)
    hold_joint(mech, "extra", kind, "B", "D", Places(tree, q), rng, values)
    return make_case(mech.name, mech, values, [("extra", f"joint:{kind}")])


def _coupling(seed: int) -> Case:
    mech, tree, q, rng = _two_arms(f"coupling-{seed}", seed)
    values = tree.unpack(q)
    hold_coupling(mech, "gear", tree, values, rng)
    return make_case(mech.name, mech, values, [("gear", "coupling")])


def _lock(seed: int) -> Case:
    mech, tree, q, _ = _two_arms(f"lock-{seed}", seed)
    values = tree.unpack(q)
    mech.lock("hold", "shoulder.second", values["shoulder.second"])
    return make_case(mech.name, mech, values, [("hold", "lock")])


def _prescribe(seed: int) -> Case:
    mech, tree, q, _ = _two_arms(f"prescribe-{seed}", seed)
    values, t = tree.unpack(q), 0.4
    start = values["screw"] - 0.3 * np.sin(2 * t)
    mech.prescribe("drive", "screw", lambda t: start + 0.3 * ca.sin(2.0 * t))
    return make_case(mech.name, mech, values, [("drive", "prescribe")], t=t)


def _on_expression(dimension: int, seed: int) -> Case:
    """A point of D on a surface (1 value) or on a curve (2 values) of B."""
    name = {1: "surface", 2: "curve"}[dimension]
    mech, tree, q, rng = _two_arms(f"{name}-{seed}", seed)
    where, at, tip = Places(tree, q), rng.uniform(-0.2, 0.2, 3), rng.uniform(-0.2, 0.2, 3)
    x, a = where.at("B", where.world("D", tip)) - at, rng.uniform(0.5, 2.0, 3)

    def shape(p):
        return [
            a[0] * p[0] ** 2 + a[1] * p[1] * p[2] + p[2],
            ca.sin(a[2] * p[1]) + p[0] * p[1] + 0.5 * p[2] ** 2,
        ]

    levels = shape(x)

    def curve(p):
        values = [f - level for f, level in zip(shape(p), levels, strict=True)]
        return values if dimension == 2 else values[0]

    make = on.curve_on if dimension == 2 else on.surface_on
    mech.close("track", make("B", curve, at), on.point_on("D", tip))
    return make_case(mech.name, mech, tree.unpack(q), [("track", name)])


def _planar_machine(name: str, seed: int) -> Spot:
    """A planar machine: a crank carrying a slider, and a rocker."""
    rng = np.random.default_rng([seed, 9])
    mech = Mechanism(name, planar=True)
    for body in ("crank", "slider", "rocker"):
        mech.body(body, rng.uniform(0.5, 3.0), rng.uniform(-0.2, 0.2, 2), rng.uniform(0.01, 0.2))
    mech.revolute("A", GROUND, "crank", at=rng.uniform(-0.3, 0.3, 2))
    mech.prismatic("S", "crank", "slider", (1.0, 0.0, rng.uniform(-1, 1)), at=rng.uniform(-0.3, 0.3, 2))
    mech.revolute("R", "rocker", GROUND, at=rng.uniform(-0.3, 0.3, 2), child_at=rng.uniform(-0.3, 0.3, 2), damping=0.3)
    tree = PinocchioTree(mech.finalize())
    return mech, tree, tree.random_configuration(rng), rng


def _planar_curve(seed: int) -> Case:
    """A pin of the slider in a curved slot of the rocker, in the plane: one value of (x, z)."""
    mech, tree, q, rng = _planar_machine(f"planar_curve-{seed}", seed)
    where, at, tip = Places(tree, q), rng.uniform(-0.2, 0.2, 2), rng.uniform(-0.2, 0.2, 2)
    x = where.at("rocker", where.world("slider", [tip[0], 0.0, tip[1]])) - [at[0], 0.0, at[1]]
    c = x[0] ** 2 + 2.0 * x[2] ** 2 + 0.7 * x[0]
    slot = on.curve_on("rocker", lambda p: p[0] ** 2 + 2.0 * p[2] ** 2 + 0.7 * p[0] - c, at)
    mech.close("slot", on.point_on("slider", tip), slot)
    return make_case(mech.name, mech, tree.unpack(q), [("slot", "curve")])


def _planar_point(seed: int) -> Case:
    """A pin between slider and rocker in the plane: 3 rows in space, 2 of them independent."""
    mech, tree, q, rng = _planar_machine(f"planar_point-{seed}", seed)
    where, tip = Places(tree, q), rng.uniform(-0.2, 0.2, 2)
    p = where.at("rocker", where.world("slider", [tip[0], 0.0, tip[1]]))
    mech.close("pin", on.point_on("slider", tip), on.point_on("rocker", p[[0, 2]]))
    return make_case(mech.name, mech, tree.unpack(q), [("pin", "point")])


def _rolling(seed: int) -> Case:
    """A disc hinged to a floating chassis rolls, leaning, on a tilted plane."""
    rng = np.random.default_rng([seed, 10])
    joints = [("free", "float", GROUND, "chassis"), ("revolute", "hub", "chassis", "disc")]
    mech, tree, q, rng = _chain(f"rolling-{seed}", rng, joints)
    where, centre, radius = Places(tree, q), rng.uniform(-0.2, 0.2, 3), rng.uniform(0.2, 0.6)
    axis = random_unit(rng)
    a = where.pose["disc"][0] @ axis
    n = np.cross(a, rng.normal(size=3))
    n = n / np.linalg.norm(n) + rng.uniform(-0.6, 0.6) * a  # not quite upright
    n = n / np.linalg.norm(n)
    up = n - (n @ a) * a
    contact = where.world("disc", centre) - radius * up / np.linalg.norm(up)
    plane = on.plane_on(GROUND, contact + np.cross(n, rng.normal(size=3)), n)
    mech.rolling("roll", on.revolute_on("disc", centre, axis), radius, plane)
    return make_case(mech.name, mech, tree.unpack(q), [("roll", "rolling")])


def _knife_edge(seed: int) -> Case:
    mech, tree, q, rng = _two_arms(f"knife_edge-{seed}", seed)
    mech.knife_edge("blade", on.point_on("D", rng.uniform(-0.2, 0.2, 3)), random_unit(rng))
    return make_case(mech.name, mech, tree.unpack(q), [("blade", "knife_edge")])


def _constrain(seed: int) -> Case:
    """Two rows of the user's own, with time: a product of positions, and a moving height."""
    mech, tree, q, rng = _two_arms(f"constrain-{seed}", seed)
    where, t = Places(tree, q), 0.7
    a, b = on.point_on("B", rng.uniform(-0.2, 0.2, 3)), on.point_on("D", rng.uniform(-0.2, 0.2, 3))
    x, y = where.world("B", a.at), where.world("D", b.at)
    c = x @ y + 0.1 * np.sin(t), x[2] + 0.5 * y[0] - 0.2 * t**2
    mech.constrain(
        "own",
        lambda k: [
            k.position(a).T @ k.position(b) + 0.1 * ca.sin(k.t) - c[0],
            k.position(a)[2] + 0.5 * k.position(b)[0] - 0.2 * k.t**2 - c[1],
        ],
    )
    return make_case(mech.name, mech, tree.unpack(q), [("own", "constrain")], t=t)


def _constrain_velocity(seed: int) -> Case:
    """One row linear in the velocities, its coefficients depending on position, and a part on time."""
    mech, tree, q, rng = _two_arms(f"constrain_velocity-{seed}", seed)
    a, b = on.point_on("B", rng.uniform(-0.2, 0.2, 3)), on.point_on("D", rng.uniform(-0.2, 0.2, 3))
    mech.constrain_velocity(
        "own", lambda k: k.position(b).T @ k.velocity(a) + k.velocity(b)[1] - 0.2 * ca.cos(3.0 * k.t)
    )
    return make_case(mech.name, mech, tree.unpack(q), [("own", "constrain_velocity")], t=0.3)


def fourbar(seed: int, close: str, springs: bool = False) -> Case:
    """An overconstrained four-bar in space, hinges parallel; closed by a joint or a revolute closure."""
    rng = np.random.default_rng([seed, 11])
    n = random_unit(rng)
    frame, mech = frame_with_axis(n), Mechanism(f"fourbar-{close}-{seed}", gravity=rng.uniform(-10, 10, 3))
    values = dict(zip("PQR", rng.uniform([0.3, -1.2, -1.2], [1.2, -0.3, -0.3]), strict=True))
    options = [
        {"stiffness": rng.uniform(1, 20), "rest": rng.uniform(-0.5, 0.5), "damping": rng.uniform(0.1, 1)}
        if springs else {} for _ in range(4)
    ]  # fmt: skip
    inner, at, end, angle = GROUND, rng.uniform(-0.3, 0.3, 3), np.zeros(3), 0.0
    for i, (joint, q) in enumerate(values.items()):
        add_body(mech, f"link{i}", rng)
        mech.revolute(joint, inner, f"link{i}", n, at, **options[i])
        end = end + (at if i == 0 else np.zeros(3))
        angle, length = angle + q, rng.uniform(0.4, 1.0)
        at, inner = length * frame[:, 0], f"link{i}"
        end = end + length * (np.cos(angle) * frame[:, 0] + np.sin(angle) * frame[:, 1])
    if close == "joint":
        mech.revolute("S", GROUND, inner, n, end, child_at=at, **options[3])
        values["S"] = angle
    else:
        mech.close("S", on.revolute_on(inner, at, n), on.revolute_on(GROUND, end, n))
    return make_case(mech.name, mech, values, [("S", "revolute")])


def _parallelogram(seed: int) -> Case:
    """One bar too many in a planar parallelogram: which rows are redundant depends on the configuration."""
    rng = np.random.default_rng([seed, 12])
    mech, angle, length = (
        Mechanism(f"parallelogram-{seed}", planar=True),
        rng.uniform(0.4, 1.2),
        rng.uniform(0.5, 1.0),
    )
    for i, x in enumerate((0.0, 0.6, 1.5)):
        mech.body(f"crank{i}", rng.uniform(0.5, 2.0), (0.5 * length, 0.0), rng.uniform(0.01, 0.2))
        mech.revolute(f"C{i}", GROUND, f"crank{i}", at=(x, 0.0))
    mech.body("coupler", 2.0, (0.7, 0.1), 0.5)
    mech.revolute("K", "crank0", "coupler", at=(length, 0.0))
    for i, x in ((1, 0.6), (2, 1.5)):
        mech.close(f"pin{i}", on.revolute_on("coupler", (x, 0.0)), on.revolute_on(f"crank{i}", (length, 0.0)))
    values = {"C0": angle, "C1": angle, "C2": angle, "K": -angle}
    return make_case(mech.name, mech, values, [("pin1", "revolute"), ("pin2", "revolute")])


def _sarrus(seed: int) -> Case:
    """The Sarrus linkage: two legs of three parallel hinges; the platform moves along a straight line."""
    rng = np.random.default_rng([seed, 13])
    mech, q, length, base = Mechanism(f"sarrus-{seed}"), rng.uniform(0.3, 1.2), rng.uniform(0.3, 0.6), 0.4
    for body in ("A1", "A2", "platform", "B1", "B2"):
        add_body(mech, body, rng)
    names = {"A": ("x", np.array([0.0, 1.0, 0.0])), "B": ("-y", np.array([1.0, 0.0, 0.0]))}
    for leg, (axis, out) in names.items():
        mech.revolute(f"{leg}1", GROUND, f"{leg}1", axis, base * out)
        mech.revolute(f"{leg}2", f"{leg}1", f"{leg}2", axis, length * out)
    mech.revolute("A3", "A2", "platform", "x", (0, length, 0), child_at=(0, base, 0))
    mech.revolute("B3", "B2", "platform", "-y", (length, 0, 0), child_at=(base, 0, 0))
    values = {f"{leg}{i}": x for leg in "AB" for i, x in ((1, q), (2, np.pi - 2 * q), (3, q - np.pi))}
    return make_case(mech.name, mech, values, [("loop", "joint:revolute")])


CLOSURE_CASES: dict[str, Callable[[int], Case]] = {
    **{kind: (lambda seed, kind=kind: _held(kind, seed)) for kind in CLOSURE_ROWS},
    **{f"joint:{kind}": (lambda seed, kind=kind: _cut(kind, seed)) for kind in (*CUT_KINDS, "fixed", "free")},
    "coupling": _coupling,
    "lock": _lock,
    "prescribe": _prescribe,
    "surface": lambda seed: _on_expression(1, seed),
    "curve": lambda seed: _on_expression(2, seed),
    "planar_curve": _planar_curve,
    "planar_point": _planar_point,
    "rolling": _rolling,
    "knife_edge": _knife_edge,
    "constrain": _constrain,
    "constrain_velocity": _constrain_velocity,
    "fourbar_joint": lambda seed: fourbar(seed, "joint"),
    "fourbar_closure": lambda seed: fourbar(seed, "closure"),
    "parallelogram": _parallelogram,
    "sarrus": _sarrus,
}


# --- forces ------------------------------------------------------------------------------------------------
def _pull(a, b):
    """A force that depends on everything a force may depend on."""
    return lambda k: (
        (1.5 + ca.sin(k.t)) * (k.position(b) - k.position(a)) - 0.8 * (k.velocity(a) - k.velocity(b)) * k.position(a)[2]
    )


def _force_elements() -> dict[str, Callable[[Mechanism], None]]:
    a, b = on.point_on("B", (0.1, -0.2, 0.15)), on.point_on("D", (-0.1, 0.05, 0.2))

    def actuators(m: Mechanism) -> None:
        m.motor("screw", gear=3.0)
        m.thruster("jet", a, (1.0, 2.0, -0.5))
        m.thruster("wind", b, (0.3, -1.0, 0.2), local=False)
        m.actuator("belt", {"shoulder.first": 1.0, "screw": -2.0, "float.position.y": 0.5})

    return {
        "gravity": lambda m: None,
        "spring": lambda m: m.spring("s", a, b, stiffness=30.0, length=0.4, damping=2.0),
        "spring_to_ground": lambda m: m.spring("s", on.point_on(GROUND, (0.5, 1, 0)), b, 30.0, 0.4, 2.0),
        "joint_spring": lambda m: m.joint_spring("s", "screw", stiffness=12.0, rest=0.3, damping=0.7),
        "joint_spring_on_two": lambda m: m.joint_spring(
            "s", {"screw": 1.0, "shoulder.second": -0.6}, stiffness=12.0, rest=0.3, damping=0.7
        ),
        "joint_spring_on_shift": lambda m: m.joint_spring(
            "s", {"float.position.x": 1.0, "shoulder.first": 0.4}, stiffness=12.0, rest=0.3, damping=0.7
        ),
        "force": lambda m: m.force("f", a, (3.0, -2.0, 5.0)),
        "force_local": lambda m: m.force("f", b, (3.0, -2.0, 5.0), local=True),
        "torque": lambda m: m.torque("f", "B", (3.0, -2.0, 5.0)),
        "torque_local": lambda m: m.torque("f", "D", (3.0, -2.0, 5.0), local=True),
        "force_function": lambda m: m.force("f", a, _pull(a, b)),
        "force_function_local": lambda m: m.force("f", b, _pull(b, a), local=True),
        "torque_function": lambda m: m.torque("f", "D", _pull(a, b)),
        "actuators": actuators,
    }


def _own_terms(seed: int) -> Case:
    """Springs, dampers and rotors written into joints, some of them reversed."""
    rng = np.random.default_rng([seed, 14])
    mech = Mechanism(f"joint_options-{seed}", gravity=rng.uniform(-10, 10, 3))
    one = {"stiffness": 8.0, "rest": 0.4, "damping": 0.9, "rotor_inertia": 0.2}
    kinds = ("revolute", "prismatic", "helical", "spherical", "planar", "cylindrical", "universal", "free")
    for i, kind in enumerate(kinds):
        add_body(mech, f"B{i}", rng)
        ends = (f"B{i - 1}" if i else GROUND, f"B{i}")
        options = dict(one) if i < 3 else {"damping": 0.5 + 0.1 * i}
        if kind == "helical":
            options["pitch"] = 0.3
        mech.joint(
            kind, f"J{i}", *(ends[::-1] if i % 2 else ends), random_unit(rng), rng.uniform(-0.3, 0.3, 3),
            child_at=rng.uniform(-0.3, 0.3, 3), axis2=(0.9, 0.1, 0.7), **options,
        )  # fmt: skip
    return make_case(mech.name, mech, rng=rng)


def force_cases(seed: int = 0) -> list[Case]:
    """One small machine for each type of force; all are trees but the last, with a spring on a cut joint."""
    cases = []
    for i, (name, add) in enumerate(_force_elements().items()):
        mech, tree, q, _ = _two_arms(name, seed + i, plain=True)
        add(mech)
        cases.append(make_case(name, mech, tree.unpack(q), t=0.6))
    return [*cases, _own_terms(seed), fourbar(seed, "joint", springs=True)]


FORCE_CASES: list[Case] = force_cases()
