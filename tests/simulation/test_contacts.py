"""One-sided constraints: impacts, rebounds, coming to rest, opening, changing feet, grasping; sizes never change.

Routes that share no code with the package: closed forms, the textbook equations of the compass walker integrated by
SciPy, momentum balance, and linear complementarity problems solved by trying all sets.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import sarrus as sr
from sarrus.dynamics.impact import _complementary

G = 9.81


def ball(restitution: float, **options) -> sr.System:
    mech = sr.Mechanism("ball")
    body = mech.body("ball", 0.7)
    mech.prismatic("z", mech.ground, body, "z", initial=1.0)
    floor = sr.plane_on(mech.ground, (0, 0, 0), "z")
    mech.contact("floor", floor, sr.point_on(body), restitution=restitution, **options)
    return sr.compile(mech)


def bar(law: str, restitution: float) -> sr.System:
    """A uniform bar of 1.2 m and 3 kg in the vertical plane over a floor, with a contact at each end."""
    mech = sr.Mechanism("bar", planar=True)
    body = mech.body("bar", 3.0, inertia=3.0 * 1.2**2 / 12)
    mech.planar_joint("bar", mech.ground, body, initial=(0.0, 0.5, 0.0))
    for name, x in (("left", -0.6), ("right", 0.6)):
        floor = sr.plane_on(mech.ground, (0, 0), "z")
        mech.contact(name, floor, sr.point_on(body, (x, 0)), restitution=restitution, law=law)
    return sr.compile(mech)


def four_bar_with_stop(restitution: float) -> sr.System:
    """A crank-rocker whose rocker hits a stop."""
    mech = sr.Mechanism("press", planar=True)
    sizes = {"crank": (1.0, 0.4), "coupler": (2.0, 1.1), "rocker": (1.5, 0.9)}
    bodies = {
        name: mech.body(name, mass, com=(length / 2, 0), inertia=sr.rod(mass, length))
        for name, (mass, length) in sizes.items()
    }
    mech.revolute("A", mech.ground, bodies["crank"], initial=2.6, damping=0.02)
    mech.revolute("B", bodies["crank"], bodies["coupler"], at=(0.4, 0), initial=-2.2)
    mech.revolute("D", mech.ground, bodies["rocker"], at=(1.2, 0), initial=1.2, stiffness=40.0, rest=0.4)
    mech.close("C", sr.point_on(bodies["coupler"], (1.1, 0)), sr.point_on(bodies["rocker"], (0.9, 0)))
    mech.stop("stop", "D", 1.8, "low", restitution=restitution)
    return sr.compile(mech)


def jumps(traj: sr.Trajectory) -> list[tuple[int, int]]:
    """Pairs of rows with the same time, before and after a change."""
    return [(int(k), int(k) + 1) for k in np.flatnonzero(np.diff(traj.t) == 0)]


def check_impacts(traj: sr.Trajectory) -> int:
    """Momentum balance and energy of every impact; returns how many there were."""
    rows: dict[float, list[tuple[int, int]]] = {}
    for i, k in jumps(traj):  # an opening may follow at the same time, which changes no velocity
        if np.any(traj.v[i] != traj.v[k]):
            rows.setdefault(float(traj.t[i]), []).append((i, k))
    count = 0
    for event in traj.events:
        if not event.impulses:
            continue
        i, k = rows[event.t].pop(0)
        terms = traj.system.terms(traj.state(i))
        push = np.concatenate([np.atleast_1d(event.impulses[g]) for g in traj.system.groups])
        change = terms.M @ (traj.v[k] - traj.v[i])
        np.testing.assert_allclose(change, terms.A.T @ push, atol=1e-9 * np.abs(terms.M @ traj.v[i]).max())
        kinetic = [0.5 * v @ terms.M @ v for v in (traj.v[i], traj.v[k])]
        assert abs(kinetic[1] - kinetic[0] - event.energy) <= 1e-9 * kinetic[0]
        assert event.energy <= 1e-12 * kinetic[0], "an impact does not give energy"
        count += 1
    return count


# --- one contact -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8])
def test_a_ball_falls_rebounds_and_comes_to_rest(restitution):
    traj = sr.simulate(ball(restitution), ball(restitution).assemble({"z": 1.0}), 6.0, rtol=1e-11)
    assert traj.status.ok
    fall = np.sqrt(2 / G)
    times = [fall, *(fall * (1 + 2 * np.cumsum(restitution ** np.arange(1.0, 60))))] if restitution else [fall]
    for event, t in zip(traj.events[:12], times, strict=False):
        assert event.t == pytest.approx(t, rel=1e-9)
    loss = [0.7 * G * restitution ** (2 * k) * (1 - restitution**2) for k in range(12)]
    np.testing.assert_allclose([-e.energy for e in traj.events[:12]][: len(times)], loss[: len(traj.events)], rtol=1e-8)
    assert "rest" in traj.events[-1].action or not restitution
    assert abs(traj["z"][-1]) < 1e-11
    assert traj["floor.force"][-1] == pytest.approx(0.7 * G)
    assert check_impacts(traj) == len(traj.events)
    lost = sum(e.energy for e in traj.events)
    assert traj["energy.total"][-1] - traj["energy.total"][0] == pytest.approx(lost, rel=1e-9)
    traj.audit(raise_above=1e-8)


def test_elastic_rebounds_keep_the_energy_and_never_settle():
    system = ball(1.0)
    traj = sr.simulate(system, system.assemble({"z": 1.0}), 20.0, rtol=1e-11)
    assert len(traj.events) == int((20.0 / np.sqrt(2 / G) + 1) / 2)
    np.testing.assert_allclose(traj["energy.total"], 0.7 * G, rtol=1e-8)


def test_a_floor_that_is_left_opens_by_itself():
    """A ball on the floor, pulled up by a force 2 sin t m g: it leaves where the force exceeds the weight."""
    mech = sr.Mechanism("ball")
    body = mech.body("ball", 0.7)
    mech.prismatic("z", mech.ground, body, "z")
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0, 0), "z"), sr.point_on(body))
    mech.motor("z")
    system = sr.compile(mech)
    traj = sr.simulate(system, system.assemble({"z": 0.0}), 1.5, inputs=lambda t: 2 * 0.7 * G * np.sin(t), rtol=1e-10)
    (event,) = traj.events
    assert event.action == "floor opens"
    assert event.t == pytest.approx(np.pi / 6, abs=1e-9)
    t = 1.5 - np.pi / 6  # z'' = g (2 sin t - 1)
    z = G * (2 * (np.sin(np.pi / 6) - np.sin(1.5) + t * np.cos(np.pi / 6)) - t * t / 2)
    assert traj["z"][-1] == pytest.approx(z, rel=1e-8)
    inside = traj.t < event.t
    np.testing.assert_allclose(traj["floor.force"][inside, 0], 0.7 * G * (1 - 2 * np.sin(traj.t[inside])), atol=1e-9)


def test_a_rope_only_pulls():
    """A pendulum on a rope of 1 m, let go above its pivot: it falls freely until the rope is taut, then swings."""
    mech = sr.Mechanism("rope", planar=True)
    bob = mech.body("bob", 0.5)
    carriage = mech.body("carriage")
    mech.prismatic("x", mech.ground, carriage, "x", initial=0.6)
    mech.prismatic("z", carriage, bob, "z", initial=0.5)
    mech.distance("rope", sr.point_on(mech.ground), sr.point_on(bob), 1.0)
    mech.one_sided("rope", "below")
    system = sr.compile(mech)
    traj = sr.simulate(system, system.assemble({"x": 0.6, "z": 0.5}), 3.0, rtol=1e-11)
    first = traj.events[0]
    assert first.t == pytest.approx(np.sqrt(2 * (0.5 + 0.8) / G), rel=1e-9)
    speed = np.sqrt(2 * G * 1.3)
    assert first.energy == pytest.approx(-0.25 * (0.8 * speed) ** 2, rel=1e-9)  # the radial part goes
    reach = np.hypot(traj["x"], traj["z"])
    assert reach.max() <= 1 + 1e-10
    assert np.all(traj["rope.force"] <= 1e-9), "a rope cannot push"
    check_impacts(traj)


# --- several at once -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_a_flat_bar_lands_on_both_ends(law):
    system = bar(law, 0.6)
    traj = sr.simulate(system, system.assemble({"bar.z": 0.5}), 0.5, rtol=1e-10)
    event = traj.events[0]
    assert event.name == "left and right"
    assert event.t == pytest.approx(np.sqrt(2 * 0.5 / G), rel=1e-9)
    assert event.energy == pytest.approx(-3.0 * G * 0.5 * (1 - 0.36), rel=1e-9)
    assert check_impacts(traj) >= 1


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_the_end_that_is_already_down_takes_its_part(law):
    """The left end rests, the right one is hit at speed w: the bar turns about the left end, (m/3) is felt at the right
    one, and half its impulse is needed at the left one to keep it down."""
    w, system = 2.0, bar(law, 0.5)
    traj = sr.simulate(system, system.state((0.0, 0.0, 0.0), (0.0, -w / 2, -w / 1.2)), 1e-3, rtol=1e-10)
    event = traj.events[0]
    assert event.impulses["right"][0] == pytest.approx(3.0 / 3 * 1.5 * w, rel=1e-9)
    assert event.impulses["left"][0] == pytest.approx(3.0 / 6 * 1.5 * w, rel=1e-9)


def test_where_the_laws_differ():
    """Both ends touch, the left one leaves at 0.2 m/s, the right one is hit at 3 m/s, e = 0.5. Newton: 0 and 1.5 m/s.
    Poisson: the impulses of compression grow by half, which would press the left end down at 0.1 m/s;
    m/40 more stops that and leaves 1.45 m/s on the right."""
    for law, expected in (("newton", 1.5), ("poisson", 1.45)):
        system = bar(law, 0.5)
        start = system.state((0.0, 0.0, 0.0), (0.0, (0.2 - 3.0) / 2, (-3.0 - 0.2) / 1.2))
        traj = sr.simulate(system, start, 1e-4, rtol=1e-10)
        _, vz, w = traj.v[0]
        assert vz - 0.6 * w == pytest.approx(0.0, abs=1e-12)
        assert vz + 0.6 * w == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_complementarity_against_all_sets(count, size, seed):
    rng = np.random.default_rng(seed)
    N = rng.normal(size=(count, size))
    if seed % 3 == 0 and count > 1:
        N[-1] = N[0]  # redundant contacts
    q = N @ rng.normal(size=size)
    p = _complementary(N, q)
    scale = 1e-9 * (1 + np.abs(q).max() + np.abs(p).max())
    u = N @ (N.T @ p) + q
    assert np.all(p >= 0)
    assert np.all(u >= -scale)
    assert abs(p @ u) <= scale * (1 + np.abs(p).sum())
    best = None  # u is unique: find it by trying every set
    for chosen in itertools.product((False, True), repeat=count):
        on = np.flatnonzero(chosen)
        x = np.zeros(count)
        x[on] = np.linalg.lstsq(N[on] @ N[on].T, -q[on], rcond=1e-10)[0] if len(on) else 0.0
        y = N @ (N.T @ x) + q
        if np.all(x >= -scale) and np.all(y >= -scale) and np.all(np.abs(y[on]) <= scale):
            best = y
    if best is not None:
        np.testing.assert_allclose(u, best, atol=10 * scale)


# --- machines --------------------------------------------------------------------------------------------------------
def test_a_four_bar_bounces_on_its_stop_and_comes_to_rest():
    system = four_bar_with_stop(0.5)
    start = system.assemble({"D": 2.1}, velocities={"D": -2.0})
    traj = sr.simulate(system, start, 8.0, rtol=1e-10)
    assert traj.status.ok, str(traj.status)
    assert {segment.active["stop"] for segment in traj.segments} == {False, True}
    assert check_impacts(traj) >= 5
    assert traj["D"].min() >= 1.8 - 1e-9
    for i, k in jumps(traj):
        if traj["D.v"][k] > 1e-9 * abs(traj["D.v"][i]):  # it rebounds: less is the rounding of coming to rest
            assert traj["D.v"][k] == pytest.approx(-0.5 * traj["D.v"][i], rel=1e-9)
    assert np.abs(traj.v[-1]).max() < 1e-9
    assert len(traj.events) < 60, "no chattering"
    assert len({len(traj.q[k]) for k in range(len(traj))}) == 1
    assert np.all(traj["stop.force"] >= -1e-9)
    traj.audit(raise_above=1e-7)


class Walker:
    """The compass walker of Goswami, Thuilot and Espiau (1998): legs of 1 m, 5 kg each, 10 kg at the hip, slope 3 deg.

    Their equations, angles from the vertical, s of the support leg and n of the swinging one.
    """

    m, mh, a, b, slope = 5.0, 10.0, 0.5, 0.5, np.radians(3.0)

    def rates(self, t, y):
        n, s, dn, ds = y
        m, mh, a, b, L = self.m, self.mh, self.a, self.b, self.a + self.b
        c, sn = np.cos(s - n), np.sin(s - n)
        M = np.array([[m * b * b, -m * L * b * c], [-m * L * b * c, (mh + m) * L * L + m * a * a]])
        N = np.array([m * L * b * ds * ds * sn, -m * L * b * dn * dn * sn])
        g = G * np.array([m * b * np.sin(n), -(mh * L + m * a + m * L) * np.sin(s)])
        return np.r_[dn, ds, np.linalg.solve(M, -N - g)]

    def impact(self, y):
        n, s, dn, ds = y
        m, mh, a, b, L = self.m, self.mh, self.a, self.b, self.a + self.b
        c = np.cos(s - n)
        before = np.array([[-m * a * b, -m * a * b + (mh * L * L + 2 * m * a * L) * c], [0.0, -m * a * b]])
        after = np.array(
            [
                [m * b * (b - L * c), m * L * (L - b * c) + m * a * a + mh * L * L],
                [m * b * b, -m * b * L * c],
            ]
        )
        swing, support = np.linalg.solve(after, before @ (dn, ds))
        return np.array([s, n, swing, support])

    def steps(self, y, count):
        def touch(t, y):
            return np.cos(y[0] + self.slope) - np.cos(y[1] + self.slope)

        touch.terminal, touch.direction = True, 1
        times, t = [], 0.0
        for _ in range(count):
            # the legs pass each other first, where the foot would scuff: start after that
            passed = solve_ivp(self.rates, (0, 0.45), y, method="DOP853", rtol=1e-12, atol=1e-12)
            run = solve_ivp(
                self.rates, (0.45, 3), passed.y[:, -1], method="DOP853", rtol=1e-12, atol=1e-12, events=touch
            )
            t += run.t[-1]
            times.append(t)
            y = self.impact(run.y[:, -1])
        return np.array(times), y


def walker() -> sr.System:
    w = Walker()
    down = (G * np.sin(w.slope), 0.0, -G * np.cos(w.slope))  # x along the slope, downwards
    mech = sr.Mechanism("compass walker", gravity=down, planar=True)
    hip = mech.body("hip", w.mh, inertia=1.0)
    mech.planar_joint("hip", mech.ground, hip, initial=(0.0, 0.95, 0.0))
    mech.lock("upright", "hip.angle")
    ground = sr.plane_on(mech.ground, (0, 0), "z")
    for name in ("left", "right"):
        leg = mech.body(f"{name} leg", w.m, com=(0, -w.b))
        mech.revolute(name, hip, leg)
        mech.contact(f"{name} foot", ground, sr.point_on(leg, (0, -1.0)), sticking=True, lifts=False)
    return sr.compile(mech)


def test_a_walker_changes_feet_for_twenty_steps():
    """Each touch-down is an event that puts one foot down and takes the other up: the impact is the machine's own."""
    w, system = Walker(), walker()
    y = np.array([-0.3234, 0.2187, -0.3772, -1.0918])  # near the limit cycle: swing leg behind
    times, last = w.steps(y, 20)
    start = system.assemble(
        {"left": y[0] + w.slope, "right": y[1] + w.slope},
        {"left": y[2], "right": y[3]},
        near={"hip.z": 0.95},
        active={"left foot": False, "right foot": True},
    )
    events = [step(*names) for names in (("left", "right"), ("right", "left"))]
    traj = sr.simulate(
        system, start, float(times[-1]) + 0.05, rtol=1e-11, events=events, active={"left foot": False}
    )  # fmt: skip
    assert traj.status.ok, str(traj.status)
    down = [e for e in traj.events if "switched" in e.action]
    assert [e.name for e in down] == ["left down", "right down"] * 10
    np.testing.assert_allclose([e.t for e in down], times, atol=1e-8)
    final = traj.state(jumps(traj)[-1][1])
    np.testing.assert_allclose([final["left"], final["right"]], last[:2] + w.slope, atol=1e-8)
    np.testing.assert_allclose([final["left.v"], final["right.v"]], last[2:], atol=1e-7)
    assert {sum(s.active[f"{foot} foot"] for foot in ("left", "right")) for s in traj.segments} == {1}
    traj.audit(raise_above=1e-7)


def step(swing: str, support: str) -> sr.Event:
    """The swinging foot comes down in front; where the legs pass each other straight legs scuff."""

    def action(t, x):
        in_the_air = not np.any(x[f"{swing} foot.force"])
        if in_the_air and x[swing] - x[support] > 0.1:
            return sr.Change(active={f"{swing} foot": True, f"{support} foot": False})
        return None

    return sr.Event(f"{swing} down", lambda t, x: np.cos(x[support]) - np.cos(x[swing]), -1, action=action)


def gripper() -> sr.System:
    """Two fingers on a lift over a floor, and a box of 0.4 x 0.4 m; every contact sticks."""
    mech = sr.Mechanism("gripper", planar=True)
    lift = mech.body("lift", 2.0)
    mech.prismatic("lift", mech.ground, lift, "z", initial=0.3)
    mech.motor("lift")
    for name, x in (("left", -0.4), ("right", 0.4)):
        finger = mech.body(f"{name} finger", 0.5)
        mech.prismatic(name, lift, finger, "x", initial=x)
        mech.motor(name)
    box = mech.body("box", 1.5, inertia=0.04)
    mech.planar_joint("box", mech.ground, box, initial=(0.03, 0.2, 0.0))
    for i, x in enumerate((-0.2, 0.2)):
        floor = sr.plane_on(mech.ground, (0, 0), "z")
        mech.contact(f"floor{i}", floor, sr.point_on(box, (x, -0.2)), sticking=True)
        for j, z in enumerate((-0.1, 0.1)):  # the fingers are higher than that
            name, normal = ("left", "x") if x < 0 else ("right", "-x")
            pad = sr.plane_on(f"{name} finger", (0, 0), normal)
            mech.contact(f"{name}{j}", pad, sr.point_on(box, (x, z)), sticking=True)
    return sr.compile(mech)


def test_a_gripper_closes_lifts_and_releases():
    """The fingers close on the box, lift it, hold it and let it go; it falls on the floor."""
    system = gripper()

    def law(t, x):
        close = 1.0 if t < 2.5 else -1.0
        goal = 0.3 if t < 0.8 else min(0.3 + 0.25 * (t - 0.8), 0.5)
        weight = (2.0 + 2 * 0.5 + 1.5) * G
        force = weight + 400 * (goal - x["lift"]) - 60 * x["lift.v"]
        return [force, 12.0 * close - 2 * x["left.v"], -12.0 * close - 2 * x["right.v"]]

    start = system.assemble({"lift": 0.3, "left": -0.4, "right": 0.4, "box.x": 0.03, "box.z": 0.2, "box.angle": 0.0})
    traj = sr.simulate(system, start, 3.2, inputs=law, sample=1e-3, rtol=1e-9)
    assert traj.status.ok, str(traj.status)
    assert check_impacts(traj) >= 3
    lifted = traj.at(2.4)
    closed = traj.segments[np.searchsorted([s.start for s in traj.segments], np.searchsorted(traj.t, 2.4)) - 1].active
    for side, on in (("floor", False), ("left", True), ("right", True)):
        assert (closed[f"{side}0"] or closed[f"{side}1"]) == on
    before = traj.at(0.9)
    assert lifted["lift"] - before["lift"] > 0.15
    for name in ("box.z", "box.x", "box.angle"):  # it moves with the fingers
        rides = 1.0 if name == "box.z" else 0.0
        side = lifted["left"] - before["left"] if name == "box.x" else 0.0
        shift = rides * (lifted["lift"] - before["lift"]) + side
        assert lifted[name] - before[name] == pytest.approx(shift, abs=1e-7), name
    normal = sum(traj.sample([2.4])[f"left{j}.force"][0, 0] for j in (0, 1))
    assert normal == pytest.approx(12.0, rel=1e-3), "the fingers press with what their motors push"
    end = traj.final
    assert end["box.z"] == pytest.approx(0.2, abs=1e-9)
    assert end["box.angle"] == pytest.approx(0.0, abs=1e-9)
    assert traj.segments[-1].active["floor0"] and traj.segments[-1].active["floor1"]
    assert len(traj.events) < 60, "no chattering"
    after = np.setdiff1d(np.arange(len(traj)), [i for i, _ in jumps(traj)])  # an input jumps where the fingers open
    for name in system.groups:
        assert np.all(traj[f"{name}.force"][after, 0] >= -1e-6), name
    traj.audit(raise_above=1e-6)


def test_a_joint_locks_where_it_arrives_and_is_released():
    """Two links fall; the second joint locks at zero by an event, and is released 0.4 s later."""
    mech = sr.Mechanism("two links", planar=True)
    before, at = mech.ground, (0, 0)
    for i, angle in enumerate((-0.4, 1.1), 1):
        link = mech.body(f"link{i}", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
        mech.revolute(f"q{i}", before, link, at=at, initial=angle)
        before, at = link, (1, 0)
    mech.lock("lock", "q2")
    system = sr.compile(mech)
    lock = sr.Event(
        "arrives", lambda t, x: x["q2"], -1, action=lambda t, x: sr.Change(active={"lock": True}) if t < 0.8 else None
    )
    free = sr.Event("released", lambda t, x: t - 0.9, 1, action=sr.Change(active={"lock": False}))
    start = system.assemble({"q1": -0.4, "q2": 1.1}, active={"lock": False})
    traj = sr.simulate(system, start, 1.5, rtol=1e-11, events=[lock, free], active={"lock": False})
    assert [e.name for e in traj.events][:2] == ["arrives", "released"]
    i, k = jumps(traj)[0]
    M = system.terms(traj.state(i)).M
    # one rigid body about the first joint: the momentum about it stays
    assert traj.v[k, 1] == pytest.approx(0.0, abs=1e-12)
    assert M[0] @ traj.v[i] == pytest.approx(M[0] @ traj.v[k], rel=1e-12)
    loss = 0.5 * traj.v[i] @ M @ traj.v[i] - 0.5 * traj.v[k] @ M @ traj.v[k]
    A = system.terms(traj.state(i)).A
    formula = 0.5 * (A @ traj.v[i]) @ np.linalg.solve(A @ np.linalg.solve(M, A.T), A @ traj.v[i])  # sheet 2.9
    assert loss == pytest.approx(formula, rel=1e-9)
    assert traj.events[0].energy == pytest.approx(-formula, rel=1e-9)
    locked = (traj.t > traj.events[0].t) & (traj.t < 0.9)
    assert np.abs(traj["q2"][locked]).max() < 1e-10
    assert abs(traj["q2"][-1]) > 1e-3
    traj.audit(raise_above=1e-8)


def test_a_table_on_four_legs_is_redundant_and_stands():
    """Four contacts under a rigid table: their forces are not determinate, the motion is; pushed at an edge it tips."""
    mech = sr.Mechanism("table")
    table = mech.body("table", 8.0, inertia=sr.box(8.0, (1.0, 0.8, 0.1)))
    mech.free("table", table, initial=(0, 0, 0.5, 1, 0, 0, 0))
    for i, (x, y) in enumerate(itertools.product((-0.5, 0.5), (-0.4, 0.4))):
        floor = sr.plane_on(mech.ground, (0, 0, 0), "z")
        mech.contact(f"leg{i}", floor, sr.point_on(table, (x, y, -0.5)), sticking=True)
    mech.force("push", sr.point_on(table, (0, 0, 0)), lambda k: [40.0 * k.t, 0, 0])
    system = sr.compile(mech)
    start = system.assemble({"table.position.z": 0.5}, active={f"leg{i}": True for i in range(4)})
    traj = sr.simulate(system, start, 2.2, rtol=1e-9)
    assert traj.status.ok, str(traj.status)
    assert all(traj.segments[0].active.values())
    left = [e for e in traj.events if "leg0" in e.name or "leg1" in e.name]
    # it tips when the push's moment about the edge exceeds the weight's: F 0.5 = m g 0.5; the forces of the two legs
    # are not determinate, so one of them may be left out before
    assert max(e.t for e in left) == pytest.approx(8.0 * G / 40.0, rel=1e-6)
    assert [traj.segments[-1].active[f"leg{i}"] for i in range(4)] == [False, False, True, True]
    weight = sum(traj[f"leg{i}.force"][1, 0] for i in range(4))
    assert weight == pytest.approx(8.0 * G, rel=1e-9)


# --- bad descriptions ------------------------------------------------------------------------------------------------
def test_faults_of_the_description_are_named_together():
    mech = sr.Mechanism("faults", planar=True)
    body = mech.body("body", 1.0, inertia=1.0)
    mech.revolute("A", mech.ground, body)
    mech.contact("c", sr.point_on(body), sr.point_on(mech.ground))
    mech.contact("d", sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(body, (1, 0)), restitution=1.5)
    mech.stop("s", "A", 0.0, "left")
    mech.knife_edge("k", sr.point_on(body), "x")
    mech.one_sided("k")
    mech.one_sided("nowhere")
    mech.one_sided("s2", "above")
    mech.stop("s2", "A", 1.0, "low")
    with pytest.raises(sr.ModelError) as caught:
        mech.finalize()
    text = str(caught.value)
    for part in (
        "contact 'c': needs plane=plane_on(body, at, normal)",
        "restitution is 1.5; expected a number from 0 to 1",
        "stop 's': side is 'left'; expected 'low' or 'high'",
        "one-sided constraint 'k': it is written in velocities",
        "one-sided constraint 'nowhere': there is no such constraint",
        "one-sided constraint 's2': declared 2 times",
    ):
        assert part in text, text


def test_a_start_on_the_wrong_side_is_refused():
    system = ball(0.5)
    with pytest.raises(sr.StateError, match=r"one-sided constraint 'floor' is passed by 0\.2"):
        sr.simulate(system, system.state([-0.2]), 1.0)
    free = sr.simulate(system, system.state([-0.2]), 1.0, active={"floor": False}, rtol=1e-10)
    assert free["z"][-1] == pytest.approx(-0.2 - G / 2, rel=1e-9)


def test_one_sided_constraints_are_off_until_they_touch():
    system = ball(0.5)
    state = system.assemble({"z": 0.3})
    assert system.acceleration(state) == pytest.approx([-G])
    assert system.rank(state).mobility == 1
    assert system.rank(state, active={"floor": True}).mobility == 0
    assert system.acceleration(system.state([0.0]), active={"floor": True}) == pytest.approx([0.0])


def test_a_lagrangian_can_have_one_sided_constraints():
    import casadi as ca

    z, vz = ca.SX.sym("z"), ca.SX.sym("vz")
    system = sr.compile(
        sr.Lagrangian(
            "bead", coordinates=[z], velocities=[vz], kinetic=vz**2, potential=2 * G * z,
            holonomic={"floor": z}, one_sided={"floor": 0.5}, initial={"z": 1.0},
        )
    )  # fmt: skip
    traj = sr.simulate(system, system.assemble({"z": 1.0}), 1.0, rtol=1e-10)
    fall = np.sqrt(2 / G)
    assert [e.t for e in traj.events] == pytest.approx([fall, 2 * fall], rel=1e-9)
    assert traj.events[0].energy == pytest.approx(-2 * G * 0.75, rel=1e-8)


def test_saved_and_continued_runs_keep_their_contacts(tmp_path):
    system = ball(0.5)
    whole = sr.simulate(system, system.assemble({"z": 1.0}), 2.0, rtol=1e-11)
    half = sr.simulate(system, system.assemble({"z": 1.0}), 1.0, rtol=1e-11)
    half.save(tmp_path / "half.nc")
    again = sr.Trajectory.load(tmp_path / "half.nc", system)
    assert [e.energy for e in again.events] == [e.energy for e in half.events]
    assert again.events[0].impulses["floor"] == half.events[0].impulses["floor"]
    joined = sr.simulate(system, again, 2.0, rtol=1e-11)
    assert len(joined.events) == len(whole.events)
    np.testing.assert_allclose([e.t for e in joined.events], [e.t for e in whole.events], rtol=1e-9)


def test_a_sampled_law_at_a_closed_contact():
    """Accelerations right after each look at the machine are those with the contact closed."""
    system = sr.compile(_pressed())
    traj = sr.simulate(system, system.state([0, 0]), 0.1, inputs=lambda t: [np.cos(9 * t), -2.0], sample=0.01)
    assert traj.audit().ok() and not traj.events
    np.testing.assert_allclose(traj["z.a"], 0, atol=1e-12)
    np.testing.assert_allclose(traj.setting_out[:, 1], 0, atol=1e-12)
    np.testing.assert_allclose(traj["floor.force"][1:, 0], 0.7 * G + 2.0)


def _pressed() -> sr.Mechanism:
    """A puck on a floor, pushed along it and onto it."""
    mech = sr.Mechanism("puck", planar=True)
    carriage, puck = mech.body("carriage"), mech.body("puck", 0.7)
    mech.prismatic("x", mech.ground, carriage, "x")
    mech.prismatic("z", carriage, puck, "z")
    mech.contact("floor", sr.plane_on(mech.ground, (0, 0), "z"), sr.point_on(puck))
    mech.motor("x")
    mech.motor("z")
    return mech
