"""Joint reactions and the ways of sharing what is not determined, each against a route of its own."""

import numpy as np
import pytest
import scipy.linalg as sl

import sarrus as sr
from sarrus.errors import SarrusError, StateError, UnknownNameError

from .machines import FRAME, NODES, braced_frame, maximal, spatial_four_bar

REVOLUTE = ["bennett", "bricard", "sarrus", "spherical_four_bar"]


def moving(system, rng):
    start = system.assemble()
    v = system.projector(start) @ rng.normal(size=system.layout.nv)
    return system.state(start.q, v)


def test_pendulum():
    """A rod let go from the horizontal: a quarter of its weight at first, m (g + ω² l/2) at the bottom."""
    mech = sr.Mechanism("rod", planar=True)
    bar = mech.body("bar", 2.0, com=(0.5, 0), inertia=sr.rod(2.0, 1.0))
    mech.revolute("A", mech.ground, bar, at=(0.3, 0.4))
    system = sr.compile(mech)
    level = sr.reactions(system, system.state([0.0]))["A"]
    np.testing.assert_allclose(level.force, [0, 0, 2.0 * 9.81 / 4], atol=1e-12)
    np.testing.assert_allclose(level.point, [0.3, 0, 0.4], atol=1e-15)
    rate = np.sqrt(3 * 9.81)  # from the horizontal: ½ (m l²/3) ω² = m g l/2
    bottom = sr.reactions(system, system.state([-np.pi / 2], [rate]))["A"]
    np.testing.assert_allclose(bottom.force, [0, 0, 2.0 * (9.81 + 0.5 * rate**2)], atol=1e-11)
    np.testing.assert_allclose(bottom.moment, 0, atol=1e-11)


def test_motor_torque_is_not_part_of_the_reaction():
    mech = sr.Mechanism("held", planar=True)
    bar = mech.body("bar", 2.0, com=(0.5, 0), inertia=sr.rod(2.0, 1.0))
    mech.revolute("A", mech.ground, bar, initial=0.0)
    mech.motor("A")
    system = sr.compile(mech)
    r = sr.reactions(system, system.state([0.0]), [2.0 * 9.81 * 0.5])["A"]  # the motor carries the weight's moment
    np.testing.assert_allclose(r.force, [0, 0, 2.0 * 9.81], atol=1e-12)
    np.testing.assert_allclose(r.moment, 0, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["stewart", "delta", "four_bar", "five_bar", "two_arms", "planar_platform", "rolling_disc"]
)
def test_every_body_is_in_balance(name, rng):
    """The reactions on each body, with gravity, motors and springs, make its momentum change as it does."""
    from sarrus.analysis.joints import Bodies

    system = sr.compile(sr.library.build(name))
    state, u = moving(system, rng), rng.normal(size=system.layout.nu)
    found = sr.reactions(system, state, u)
    h = 1e-6
    vdot = system.acceleration(state, u)
    frames = {}
    for s in (-1, 0, 1):  # along the true motion to second order
        v = state.v + s * h * vdot
        q = system.retract(state.q, s * h * (state.v + 0.5 * s * h * vdot))
        place = Bodies.of(system).at(system.state(q, v))
        frames[s] = place
    now = frames[0]
    lam = np.concatenate([np.atleast_1d(found.multipliers[g]) for g in system.groups] or [np.zeros(0)])
    nv = system.layout.nv
    for k, body in enumerate(system.description.bodies):
        R, p = now.pose[body.name]
        rate = (momentum(frames[1], k, p) - momentum(frames[-1], k, p)) / (2 * h)
        force = -_gravity(system, body, R, p)
        for r in found.joints.values():
            for sign, who in ((1, r.child), (-1, r.parent)):
                if who == body.name:
                    force[3:] -= sign * r.force
                    force[:3] -= sign * (r.moment + np.cross(r.point - p, r.force))
        rest = rate + force
        # what is left is carried by motors, springs on coordinates, and rows without two bodies: along joint axes only
        own = np.zeros(6)
        grips = now.inputs.T @ u + now.push
        others = [i for i, row in enumerate(system.layout.rows) if row.group not in found.joints]
        grips = grips + now.rows[others].T @ lam[others]
        part = grips[nv + 6 * k : nv + 6 * k + 6]
        own[:3], own[3:] = R @ part[:3], R @ part[3:]
        for edge in now.bodies.tree.edges:
            joint = edge.joint
            if joint.kind == "free" or joint.nv == 0 or body.name not in (joint.parent, joint.child):
                continue
            where, unit = now.own_part(joint, found[joint.name].point)
            across = unit @ (grips[where])
            sign = 1 if body.name == edge.outer else -1
            own[3:] += sign * across[:3]
            own[:3] += sign * (across[3:] + np.cross(found[joint.name].point - p, across[:3]))
        size = np.abs(rate).max() + np.abs(force).max() + 1.0
        np.testing.assert_allclose(rest, own, atol=1e-6 * size, err_msg=body.name)


def momentum(place, k, about):
    """Angular momentum about a fixed point, and linear momentum, of one body, world axes."""
    body = place.bodies.model.bodies[k]
    R, p = place.pose[body.name]
    nv = place.bodies.system.layout.nv
    twist = place.J[:, nv * k : nv * (k + 1)] @ place.state.v
    local = place.inertia[:, 6 * k : 6 * k + 6] @ twist
    linear = R @ local[3:]
    return np.concatenate([R @ local[:3] + np.cross(p - about, linear), linear])


def _gravity(system, body, R, p):
    from sarrus.model.expression import numeric

    weight = float(numeric(body.mass, system.parameters)) * np.asarray(system.description.gravity, dtype=float)
    com = R @ np.asarray(numeric(body.com, system.parameters), dtype=float)
    return np.concatenate([np.cross(com, weight), weight])


def test_against_pinocchio(rng):
    """Forces through the joints of a tree, from the motion of Pinocchio's bodies at our accelerations."""
    import pinocchio as pin

    from oracles.pinocchio_tree import PinocchioTree

    mech = sr.Mechanism("arm", gravity=(1.0, -2.0, -9.0))
    before, joints = mech.ground, []
    for i, axis in enumerate(([0.3, 1.0, 0.2], "z", [1.0, 0.1, -0.4])):
        link = mech.body(f"link{i}", 1.0 + i, com=(0.2, 0.1 * i, -0.1), inertia=np.diag([0.3, 0.4, 0.5]))
        mech.revolute(f"J{i}", before, link, axis, at=(0.1, 0.5, -0.2), child_at=(0.05, 0.0, 0.1))
        mech.motor(f"J{i}")
        before = link
        joints.append(f"J{i}")
    system = sr.compile(mech)
    state = system.state(rng.normal(size=3), rng.normal(size=3))
    u = rng.normal(size=3)
    found = sr.reactions(system, state, u)
    tree = PinocchioTree(mech.finalize())
    x = system.terms(state)
    vdot = system.acceleration(state, u)
    np.testing.assert_allclose(x.M @ vdot + x.h, u, atol=1e-11)
    for i, name in enumerate(joints):
        total = np.zeros(6)
        for body in [f"link{k}" for k in range(i, 3)]:
            total += _inertia_wrench(tree, pin, body, state, vdot, found[name].point)
        axis = system.frames(state)[f"link{i}"][1] @ mech.finalize().joints[i].axis
        np.testing.assert_allclose(found[name].force, total[:3], atol=1e-9)
        np.testing.assert_allclose(found[name].moment, total[3:] - u[i] * axis, atol=1e-9)
        assert abs(found[name].moment @ axis) < 1e-9


def _inertia_wrench(tree, pin, name, state, vdot, about):
    """What a body's motion takes, less gravity, about a point, by differences of Pinocchio's poses."""
    h = 1e-4
    body = next(b for b in tree.model.bodies if b.name == name)

    def com_and_spin(s):
        q = state.q + s * h * state.v + 0.5 * (s * h) ** 2 * vdot
        R, p = tree.body_pose(q, name)
        return p + R @ body.com, R

    (x0, R0), (x1, R1), (x2, R2) = (com_and_spin(s) for s in (-1.0, 0.0, 1.0))
    a = (x2 - 2 * x1 + x0) / h**2
    w_ahead, w_back = pin.log3(R2 @ R1.T) / h, pin.log3(R1 @ R0.T) / h
    w, alpha = (w_ahead + w_back) / 2, (w_ahead - w_back) / h
    I = R1 @ body.inertia @ R1.T
    force = body.mass * (a - np.asarray(tree.model.gravity))
    return np.concatenate([force, I @ alpha + np.cross(w, I @ w) + np.cross(x1 - about, force)])


# --- the choice of the cut -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cut", ["A", "B", "C"])
@pytest.mark.parametrize("tilt", [0.0, 0.02])
def test_the_cut_does_not_matter(cut, tilt, rng):
    """Reactions, what is certain in them, and what is shared: the same whichever joint closes the loop."""
    systems = [sr.compile(_without_motor(spatial_four_bar(tilt, cut=c))) for c in ("D", cut)]
    found = []
    for system in systems:
        start = system.assemble()
        v = system.projector(start) @ np.ones(system.layout.nv)
        rate = system.task("orientation", "crank").evaluate(start)[1] @ v
        state = system.state(start.q, v / np.linalg.norm(rate) * np.sign(-rate[1]) if tilt == 0 else 0 * v)
        found.append(sr.reactions(system, state))
    size = max(np.abs(r.force).max() for r in found[0].joints.values())
    for name, one in found[0].joints.items():
        other = found[1][name]
        flip = 1.0 if one.child == other.child else -1.0
        np.testing.assert_allclose(flip * other.force, one.force, atol=1e-8 * size, err_msg=name)
        np.testing.assert_allclose(flip * other.moment, one.moment, atol=1e-8 * size, err_msg=name)
        np.testing.assert_allclose(flip * other.certain_force, one.certain_force, atol=1e-8 * size)
        np.testing.assert_array_equal(one.unique_force, other.unique_force)
        np.testing.assert_array_equal(one.unique_moment, other.unique_moment)
    assert len(found[0].internal) == len(found[1].internal) == (3 if tilt == 0 else 2)


def _without_motor(mech):
    mech._parts["actuators"].clear()
    return mech


@pytest.mark.parametrize("name", REVOLUTE)
def test_against_bodies_in_pieces(name):
    """Every body free and every joint a closure: the multipliers are the reactions, tree or not."""
    system = sr.compile(sr.library.build(name))
    state = system.assemble()
    d = sr.diagnose(system, state)
    pieces = sr.compile(maximal(system.description, system.frames(state)))
    whole = sr.diagnose(pieces, pieces.assemble())
    assert whole.mobility == d.mobility
    assert whole.mobilities.finite == d.mobilities.finite
    assert len(whole.spare) == len(d.spare)
    assert {j: x.unique for j, x in d.joints.items()} == dict(whole.determinate)
    for joint, verdict in d.joints.items():
        assert whole.joints[joint] == verdict
    one, other = (sr.reactions(s, at) for s, at in ((system, state), (pieces, pieces.assemble())))
    size = max(np.abs(r.force).max() for r in one.joints.values())
    for joint in one.joints:
        for key in ("force", "moment", "certain_force", "certain_moment"):
            a, b = getattr(one[joint], key), getattr(other[joint], key)
            np.testing.assert_allclose(a, b, atol=1e-7 * size, err_msg=f"{joint} {key}")


# --- which values are certain ----------------------------------------------------------------------------------------
FLAGGED = ["parallelogram", "bricard", "bennett", "sarrus", "spherical_four_bar", "four_bar", "stewart", "two_arms"]


@pytest.mark.parametrize("name", [*FLAGGED, "spatial", "frame"])
def test_flags_by_moving_in_the_null_space(name, rng):
    """Adding to λ what A' does not see changes exactly what is flagged: multipliers, groups and joint reactions."""
    mech = {"spatial": spatial_four_bar, "frame": braced_frame}.get(name, lambda: sr.library.build(name))()
    system = sr.compile(mech)
    state = system.assemble()
    found, d = sr.reactions(system, state), sr.diagnose(system, state)
    A = system.terms(state).A
    null = sl.null_space(A.T, rcond=1e-9)
    if system.description.planar:  # rows out of the plane are not looked at
        null = sl.null_space(np.vstack([A.T, np.eye(len(A))[[i for i in range(len(A)) if i not in system.kept]]]), 1e-9)
    change = null @ rng.normal(size=null.shape[1])
    changed = np.abs(change) > 1e-9
    rows = [row.name for row in system.layout.rows]
    assert set(found.certain) == {r for r, x in zip(rows, changed, strict=True) if not x}
    for group in system.groups:
        assert found.determinate[group] == d.determinate[group] == (not changed[system.layout.group_rows(group)].any())
    from sarrus.analysis.joints import Bodies

    for c in Bodies.of(system).at(state).connections():
        moved = np.abs(c.spread @ change) > 1e-9
        np.testing.assert_array_equal(found[c.name].unique_force, ~moved[:3])
        np.testing.assert_array_equal(found[c.name].unique_moment, ~moved[3:])
        assert d.joints[c.name].unique == found[c.name].unique == (not moved.any())
    np.testing.assert_allclose(A.T @ change, 0, atol=1e-9)


@pytest.mark.parametrize("name", ["parallelogram", "bricard", "spherical_four_bar"])
def test_certain_parts_are_the_same_under_every_rule(name, rng):
    system = sr.compile(sr.library.build(name))
    state = moving(system, rng)
    joints = list(sr.reactions(system, state).joints)
    soft = {j: (1e-6 * (k + 1) ** 2, 1e-5 * (k + 2)) for k, j in enumerate(joints)}
    found = [
        sr.reactions(system, state),
        sr.reactions(system, state, metric="mass"),
        sr.reactions(system, state, metric="stiffness", compliance=soft),
    ]
    size = max(np.abs(r.force).max() for r in found[0].joints.values())
    for j in joints:
        for other in found[1:]:
            np.testing.assert_allclose(other[j].certain_force, found[0][j].certain_force, atol=1e-9 * size)
            np.testing.assert_allclose(other[j].certain_moment, found[0][j].certain_moment, atol=1e-9 * size)
    assert max(np.abs(found[0][j].force - found[2][j].force).max() for j in joints) > 1e-3 * size
    for other in found:
        np.testing.assert_allclose(other.generalised, found[0].generalised, atol=1e-9 * size)
    np.testing.assert_allclose(
        np.concatenate([found[1].multipliers[g] for g in system.groups]), system.solve(state).lam, atol=1e-9 * size
    )


def test_minimum_norm_is_least(rng):
    """No internal load added makes Σ |force|² + |moment/ℓ|² smaller."""
    system = sr.compile(sr.library.build("bennett"))
    state = moving(system, rng)
    found = sr.reactions(system, state)
    from sarrus.analysis.joints import Bodies

    spread = {c.name: c.spread for c in Bodies.of(system).at(state).connections()}

    def size(change):
        total = 0.0
        for name, r in found.joints.items():
            w = np.concatenate([r.force, r.moment]) + spread[name] @ change
            total += w[:3] @ w[:3] + w[3:] @ w[3:] / found.length**2
        return total

    for way in found.internal:
        z = np.concatenate([way[g] for g in system.groups])
        for step in (1e-3, -1e-3):
            assert size(step * z) > size(0 * z)
    assert "ℓ = " in found.metric


# --- compliances -----------------------------------------------------------------------------------------------------
def test_stiffness_of_a_frame():
    """Bar forces of a truss with one bar too many, against the displacement method with the same bars as springs."""
    load = {"P": (300.0, 0.0, -120.0), "Q": (0.0, 0.0, -500.0)}
    system = sr.compile(braced_frame(load=load))
    state = system.assemble()
    compliance = {name: 1e-6 * (1 + k) for k, name in enumerate(FRAME)}
    found = sr.reactions(system, state, metric="stiffness", compliance=compliance)
    forces = {name: float(found.multipliers[name][0]) for name in FRAME}  # along the row's growth: compression positive
    free = {"P": 0, "Q": 2}
    K, f = np.zeros((4, 4)), np.zeros(4)
    for n, at in free.items():
        f[at], f[at + 1] = load[n][0], load[n][2] - 2.0 * 9.81
    rows = {}
    for name, (a, b) in FRAME.items():
        along = np.subtract(NODES[b], NODES[a]) / np.linalg.norm(np.subtract(NODES[b], NODES[a]))
        g = np.zeros(4)
        for n, sign in ((a, -1.0), (b, 1.0)):
            if n in free:
                g[free[n] : free[n] + 2] = sign * along
        rows[name] = g
        K += np.outer(g, g) / compliance[name]
    moved = np.linalg.solve(K, f)
    for name, g in rows.items():
        assert forces[name] == pytest.approx(-(g @ moved) / compliance[name], rel=1e-8)
    for name in FRAME:  # the same by the names of rows
        by_row = sr.reactions(
            system, state, metric="stiffness", compliance={f"{n}.length": c for n, c in compliance.items()}
        )
        assert by_row.multipliers[name][0] == pytest.approx(forces[name], rel=1e-8)


def test_stiffness_of_a_door_on_three_hinges():
    """A door on three hinges along a line: axial load shared by their compliances alone."""
    mech = sr.Mechanism("door")
    door = mech.body("door", 30.0, com=(0.5, 0, 1.0), inertia=sr.box(30.0, (1.0, 0.04, 2.0)))
    mech.revolute("low", mech.ground, door, "z", at=(0, 0, 0.2), child_at=(0, 0, 0.2))
    for name, z in (("middle", 1.0), ("high", 1.8)):
        mech.close(name, sr.point_on(mech.ground, (0, 0, z)), sr.point_on(door, (0, 0, z)))
    system = sr.compile(mech)
    soft = {"low": (1e-6, 1e3), "middle": 2e-6, "high": 4e-6}  # the low hinge's own moment stiffness is nothing
    found = sr.reactions(system, system.assemble(), metric="stiffness", compliance=soft)
    lift = np.array([found[n].force[2] for n in soft])
    assert lift.sum() == pytest.approx(30.0 * 9.81, rel=1e-9)
    np.testing.assert_allclose(lift / lift.sum(), np.array([4, 2, 1]) / 7, rtol=1e-6)
    # sideways: three springs in a line carry the moment of the weight, about their stiff centre
    k, z = 1 / np.array([1e-6, 2e-6, 4e-6]), np.array([0.2, 1.0, 1.8])
    centre = (k @ z) / k.sum()
    turn = 30.0 * 9.81 * 0.5 / (k @ (z - centre) ** 2)
    expected = k * turn * (z - centre)
    side = np.array([found[n].force[0] for n in soft])
    np.testing.assert_allclose(np.abs(side), np.abs(expected), rtol=1e-6)
    assert abs(side.sum()) < 1e-6


def test_wrong_calls():
    system = sr.compile(sr.library.build("parallelogram"))
    state = system.assemble()
    with pytest.raises(SarrusError, match=r"unknown metric 'least'; use 'minimum-norm', 'mass', 'stiffness'"):
        sr.reactions(system, state, metric="least")
    with pytest.raises(SarrusError, match=r"compliance=\{name: m/N, ...\} belongs to metric='stiffness'"):
        sr.reactions(system, state, metric="stiffness")
    with pytest.raises(SarrusError, match="give both or neither"):
        sr.reactions(system, state, compliance={"C1": 1.0})
    with pytest.raises(UnknownNameError, match="unknown joint, closure or constraint row 'C9'"):
        sr.reactions(system, state, metric="stiffness", compliance={"C9": 1e-6})
    with pytest.raises(SarrusError, match="compliance 'C1': expected a number"):
        sr.reactions(system, state, metric="stiffness", compliance={"C1": -1.0})
    with pytest.raises(SarrusError, match=r"leave 1 internal force\(s\) open. Give one for at least one of A0"):
        sr.reactions(system, state, metric="stiffness", compliance={"C1.y": 1e-6})
    with pytest.raises(StateError, match=r"reactions: give one state"):
        sr.reactions(system, system.state(np.stack([state.q, state.q])))
    with pytest.raises(UnknownNameError, match="unknown joint or closure 'Z'"):
        sr.reactions(system, state)["Z"]


def test_prints():
    system = sr.compile(sr.library.build("parallelogram"))
    found = sr.reactions(system, system.assemble())
    text = str(found)
    assert "C1 on crank1: force [" in text and "(?)" in text and "N m" in text
    assert "1 independent way(s) to load the machine against itself" in text and "shared by: smallest" in text
    assert found.units["C1.x"] == "N"
    clear = sr.compile(sr.library.build("four_bar"))
    assert str(sr.reactions(clear, clear.assemble())).endswith("all certain")
