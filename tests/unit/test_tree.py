"""The spanning tree: which joints it takes, and that the motion does not depend on the choice."""

from dataclasses import replace

import numpy as np
import pytest

import sarrus as sr
from sarrus.model.parts import Joint, Model
from sarrus.model.tree import span

SPEED = 1.3


def ring(joints: list[tuple], motors: tuple[str, ...] = (), bodies: str = "abc", **options) -> Model:
    """Bodies on joints (kind, name, parent, child); places do not matter for the choice of the tree."""
    mech = sr.Mechanism("ring")
    for name in bodies:
        mech.body(name, 1.0, (0.1, 0.2, 0.3), np.eye(3))
    for kind, name, parent, child in joints:
        mech.joint(kind, name, parent, child, "y", **options.get(name, {}))
    for name in motors:
        mech.motor(name)
    return mech.finalize()


def taken(model: Model) -> tuple[set[str], set[str]]:
    tree = span(model)
    return {e.joint.name for e in tree.edges}, {j.name for j in tree.cuts}


LOOP = [
    ("revolute", n, p, c) for n, p, c in (("A", "ground", "a"), ("B", "a", "b"), ("C", "b", "c"), ("D", "c", "ground"))
]


def test_a_ring_is_cut_far_from_the_ground():
    """Both ground joints come first, so the tree is shallow."""
    tree = span(ring(LOOP))
    assert {e.joint.name for e in tree.edges} == {"A", "D", "B"}
    assert [j.name for j in tree.cuts] == ["C"]
    assert next(e for e in tree.edges if e.joint.name == "D").reversed
    assert not next(e for e in tree.edges if e.joint.name == "A").reversed


@pytest.mark.parametrize("name", "ABCD")
def test_motors_are_never_cut(name):
    assert name in taken(ring(LOOP, (name,)))[0]


@pytest.mark.parametrize("pair", ["AB", "BC", "CD", "AC"])
def test_several_motors_are_never_cut(pair):
    assert set(pair) <= taken(ring(LOOP, tuple(pair)))[0]


@pytest.mark.parametrize("option", [dict(stiffness=2.0), dict(damping=0.1), dict(rotor_inertia=0.1), dict(limits=1.0)])
def test_joints_with_own_terms_are_kept(option):
    for name in "ABCD":
        assert name in taken(ring(LOOP, **{name: option}))[0]


@pytest.mark.parametrize("place", range(4))
def test_of_free_choices_the_joint_with_most_freedom_is_cut(place):
    joints = [("spherical" if i == place else "revolute", *rest) for i, (_, *rest) in enumerate(LOOP)]
    assert taken(ring(joints))[1] == {"ABCD"[place]}


def test_written_order_breaks_ties():
    assert taken(ring(LOOP))[1] == {"C"}
    assert taken(ring(LOOP[::-1]))[1] == {"B"}


def test_edges_come_with_their_inner_body_first():
    tree = span(ring(LOOP[::-1]))
    seen = {"ground"}
    for edge in tree.edges:
        assert edge.inner in seen
        assert edge.outer not in seen
        seen.add(edge.outer)
    assert seen == {"ground", "a", "b", "c"}


def test_two_loops_cut_two_joints():
    joints = [*LOOP, ("revolute", "E", "b", "d"), ("revolute", "F", "d", "ground")]
    tree = span(ring(joints, ("B",), "abcd"))
    assert len(tree.edges) == 4 and len(tree.cuts) == 2
    assert "B" in {e.joint.name for e in tree.edges}


# --- the choice does not matter --------------------------------------------------------------------------------------
def spatial_loop(
    order: tuple[int, ...] = (0, 1, 2, 3, 4), swapped: str = "", closed: str = "", motor: str = ""
) -> sr.Mechanism:
    """An RSUR-like loop with a slider: ground -A- crank -B(ball)- rod -C(universal)- link -D- ground, E hangs on rod.

    The geometry is written so that each joint can be turned round (parent and child exchanged) or cut by hand.
    """
    mech = sr.Mechanism("spatial loop")
    crank = mech.body("crank", 1.0, (0.3, 0.1, 0), sr.box(1.0, (0.6, 0.2, 0.1)))
    rod = mech.body("rod", 1.5, (0.6, 0, 0.1), sr.box(1.5, (1.2, 0.1, 0.2)))
    link = mech.body("link", 0.8, (0, 0.1, 0.4), sr.box(0.8, (0.1, 0.2, 0.9)))
    weight = mech.body("weight", 0.4, (0.05, 0, -0.2), sr.box(0.4, (0.1, 0.1, 0.4)))
    tilt = sr.rotation_about("x", 0.4)
    joints = [
        ("revolute", "A", mech.ground, crank, "z", dict(at=(0, 0, 0), initial=0.4)),
        ("spherical", "B", crank, rod, "z", dict(at=(0.6, 0, 0))),
        ("spherical", "C", link, rod, "z", dict(at=(0, 0, 0.9), child_at=(1.2, 0, 0))),
        ("revolute", "D", mech.ground, link, "y", dict(at=(1.3, 0.3, -0.2), rotation=tilt, initial=0.1)),
        ("revolute", "E", rod, weight, "x", dict(at=(0.5, 0, 0))),
    ]
    for i in order:
        kind, name, parent, child, axis, options = joints[i]
        if name == closed:
            places = [sr.point_on(parent, options["at"]), sr.point_on(child, options.get("child_at", (0, 0, 0)))]
            mech.close(name, *places)
            continue
        if name in swapped:
            options = {k: v for k, v in options.items() if k != "initial"} | dict(
                at=options.get("child_at", (0, 0, 0)),
                child_at=options["at"],
                rotation=options.get("child_rotation"),
                child_rotation=options.get("rotation"),
            )
            parent, child = child, parent
        mech.joint(kind, name, parent, child, axis, **options)
    if motor:
        mech.motor(motor)
    for name in ("crank", "rod", "link", "weight"):
        mech.frame(f"on {name}", sr.point_on(name, (0.1, -0.2, 0.3)))
    return mech


POINTS = [np.zeros(3), *np.eye(3)]


def points(system: sr.System) -> dict[str, list]:
    """Position tasks of four points of each body."""
    return {b: [system.task("point", sr.point_on(b, at)) for at in POINTS] for b in system.layout.bodies}


def motion(system: sr.System, world: dict[str, tuple[np.ndarray, np.ndarray]], rates: dict[str, np.ndarray]):
    """The same physical state in this system's coordinates, by fitting positions and velocities of the points."""
    tasks = points(system)
    q = system.assemble().q
    for _ in range(50):  # Gauss-Newton
        state = system.state(q)
        residual, J = [], []
        for body, (p, R) in world.items():
            for at, task in zip(POINTS, tasks[body], strict=True):
                x, Jx, _ = task.evaluate(state)
                residual.append(p + R @ at - x)
                J.append(Jx)
        step = np.linalg.lstsq(np.vstack(J), np.concatenate(residual), rcond=None)[0]
        step *= min(1.0, 0.5 / max(np.max(np.abs(step)), 1e-300))
        q = system.retract(q, step)
        if np.max(np.abs(step)) < 1e-15:
            break
    state = system.state(q)
    J = [task.evaluate(state)[1] for body in world for task in tasks[body]]
    v = np.linalg.lstsq(np.vstack(J), np.concatenate([x for body in world for x in rates[body]]), rcond=None)[0]
    return system.state(q, v)


def body_motion(system: sr.System, state: sr.State, v: np.ndarray, bias: bool) -> dict[str, np.ndarray]:
    """Rates of four points of each body for generalised rate v (with J̇v: accelerations)."""
    out = {}
    for body, tasks in points(system).items():
        values = [task.evaluate(state) for task in tasks]
        out[body] = np.array([J @ v + b * bias for _, J, b in values])
    return out


def _energies(system: sr.System, state: sr.State) -> tuple[float, float]:
    energy = system.energy(state)
    return energy.total, energy.kinetic


@pytest.fixture(scope="module")
def reference():
    system = sr.compile(spatial_loop())
    rng = np.random.default_rng(3)
    state = system.assemble()
    v = system.projector(state) @ (SPEED * rng.normal(size=system.layout.nv))
    state = system.state(state.q, v)
    accelerations = body_motion(system, state, system.acceleration(state), True)
    world = {body: system.frame(state, body) for body in system.layout.bodies}
    return world, body_motion(system, state, v, False), accelerations, *_energies(system, state)


VARIANTS = {
    "joints in reverse order": dict(order=(4, 3, 2, 1, 0)),
    "another order": dict(order=(2, 4, 0, 3, 1)),
    "A turned round": dict(swapped="A"),
    "C and D turned round": dict(swapped="CD"),
    "all turned round": dict(swapped="ABCDE", order=(3, 1, 0, 4, 2)),
    "B as a closure": dict(closed="B"),
    "C as a closure": dict(closed="C"),
    "motor on D": dict(motor="D"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_cut_gives_the_same_accelerations(variant, reference):
    world, rates, accelerations, energy, kinetic = reference
    system = sr.compile(spatial_loop(**VARIANTS[variant]))
    state = motion(system, world, rates)
    for body, (p, R) in world.items():
        np.testing.assert_allclose(system.frame(state, body)[0], p, atol=1e-13)
        np.testing.assert_allclose(system.frame(state, body)[1], R, atol=1e-13)
    largest = max(np.max(np.abs(x)) for x in accelerations.values())
    assert largest > 1.0
    found = body_motion(system, state, system.acceleration(state), True)
    for body, expected in accelerations.items():
        np.testing.assert_allclose(found[body], expected, rtol=0, atol=1e-10 * largest, err_msg=body)
    assert system.energy(state).kinetic == pytest.approx(kinetic, rel=1e-11)
    assert system.energy(state).total == pytest.approx(energy, rel=1e-11)


def test_the_variants_do_differ_in_what_is_cut():
    cuts = {frozenset(j.name for j in span(spatial_loop(**options).finalize()).cuts) for options in VARIANTS.values()}
    assert {frozenset("C"), frozenset("B"), frozenset()} <= cuts


def test_every_hinge_of_a_planar_loop_can_be_the_cut_one():
    """The library's four-bar, its last hinge as a closure, against all hinges as joints in each order of motors."""
    library = sr.compile(sr.library.build("four_bar", L1=0.5, L2=1.2, L3=0.9, L4=1.1, m1=0.7, m3=1.3))
    start = library.assemble(velocities={"A": SPEED})
    expected = body_motion(library, start, library.acceleration(start), True)
    rates = body_motion(library, start, start.v, False)
    world = {body: library.frame(start, body) for body in library.layout.bodies}
    seen = set()
    for kept in ("A", "B", "C", "D", "AB", "CD", "ABC"):
        model = sr.library.build("four_bar", L1=0.5, L2=1.2, L3=0.9, L4=1.1, m1=0.7, m3=1.3)
        frozen = model.finalize()
        axis, zero, eye = np.array([0.0, -1.0, 0.0]), np.zeros(3), np.eye(3)
        closure = frozen.closures[0]
        last = Joint("D", "revolute", "rocker", "ground", axis, axis, closure.a.at, eye, closure.b.at + zero, eye)
        actuator = frozen.actuators[0]
        actuators = tuple(replace(actuator, name=n, coefficients={n: 1.0}) for n in kept)
        all_joints = replace(
            frozen, joints=(*frozen.joints, last), closures=(), groups=(), actuators=actuators, name=f"four-bar {kept}"
        )
        seen |= taken(all_joints)[1]
        system = sr.compile(all_joints)
        state = motion(system, world, rates)
        found = body_motion(system, state, system.acceleration(state), True)
        for body in world:
            np.testing.assert_allclose(found[body], expected[body], rtol=0, atol=1e-9)
        assert system.rank(state).mobility == 1
    assert {"C", "B", "D"} <= seen
