"""Events: when guards pass zero, what their actions do, and that the motion goes on cleanly."""

import numpy as np
import pytest
from driving import G, ball, carts, flywheels, library
from scipy.special import ellipk, ellipkinc

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError

TIME = 1e-10  # how exactly an event is found, at rtol 1e-12
FALL = np.sqrt(2 / G)  # from 1 m


def fall(events, t_end=1.0, height=1.0, system=None, **options):
    """The ball without its floor."""
    system = system or ball()
    options.setdefault("rtol", 1e-12)
    start = system.state([height])
    return sr.simulate(system, start, t_end, events=events, active={"floor": False}, **options)


def bounce(restitution, direction=-1):
    def turn(t, x):
        return sr.Change(velocities={"z": -restitution * x["z.v"]})

    return sr.Event("floor", lambda t, x: x["z"], direction, action=turn)


def double_rows(traj):
    """Indices of rows that have the same time as the next."""
    return np.flatnonzero(np.diff(traj.t) == 0)


# --- when ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
def test_a_pendulum_passes_its_lowest_point(method):
    system = library("pendulum")
    k = np.sin(np.pi / 4)  # released at 90 degrees
    quarter = ellipk(k * k) / np.sqrt(G)
    traj = sr.simulate(
        system, system.assemble({"A": 0.0}), 5.0, rtol=1e-13 if method == "dopri5" else 1e-12, method=method,
        events=sr.Event("lowest", lambda t, x: x["A"] + np.pi / 2),
    )  # fmt: skip
    expected = quarter * np.array([1, 3, 5, 7])
    np.testing.assert_allclose([e.t for e in traj.events], expected, rtol=0, atol=TIME)
    assert [e.direction for e in traj.events] == [-1, 1, -1, 1]
    for event in traj.events:
        np.testing.assert_allclose(event.q[0], -np.pi / 2, rtol=0, atol=1e-12)
        np.testing.assert_allclose(abs(event.v[0]), np.sqrt(2 * G), rtol=1e-9)
        assert event.t in traj.t  # with a row of its own
    assert "lowest (falling)" in str(traj)


def test_guards_of_time_angle_speed_and_pose_against_the_elliptic_integral():
    system, k = library("pendulum"), np.sin(np.pi / 4)
    traj = sr.simulate(
        system, system.assemble({"A": 0.0}), 0.55, rtol=1e-12,
        events=[
            sr.Event("angle", lambda t, q, v: q[0] + 1.0),
            sr.Event("depth", lambda t, x: x["tip.position"][2] + 0.5),
            sr.Event("speed", lambda t, x: x["A.v"] ** 2 - G),
            sr.Event("clock", lambda t: t - 0.123),
        ],
    )  # fmt: skip

    def when(angle):  # time from the release to an angle (from the vertical), sin(angle/2) = k sin(phi)
        return (ellipk(k * k) - ellipkinc(np.arcsin(np.sin(angle / 2) / k), k * k)) / np.sqrt(G)

    found = {event.name: event.t for event in traj.events}
    assert next(iter(found)) == "clock" and set(found) == {"clock", "depth", "speed", "angle"}
    np.testing.assert_allclose(found["angle"], when(np.pi / 2 - 1.0), rtol=0, atol=TIME)
    np.testing.assert_allclose(found["depth"], when(np.pi / 3), rtol=0, atol=TIME)
    np.testing.assert_allclose(found["speed"], found["depth"], rtol=0, atol=TIME)  # v² = 2 g depth
    np.testing.assert_allclose(found["clock"], 0.123, rtol=0, atol=1e-15)


@pytest.mark.parametrize("convert", [lambda x: x, float], ids=["compiled", "python"])
@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau", "rk4", "variational"])
def test_a_ball_hits_the_ground(convert, method):
    options = {"method": method, "dt": 0.01} if method in ("rk4", "variational") else {"method": method}
    traj = fall(sr.Event("hit", lambda t, x: convert(x["z"]), terminal=True), **options)
    assert traj.status.code == "event" and traj.status.ok and "'hit'" in traj.status.text
    np.testing.assert_allclose(traj.t[-1], FALL, rtol=0, atol=1e-13)
    np.testing.assert_allclose([traj["z"][-1], traj["z.v"][-1]], [0, -G * FALL], rtol=1e-13, atol=1e-14)
    assert traj.status.t == traj.t[-1] == traj.events[0].t


def test_a_guard_of_a_constraint_force():
    """A pendulum released at 90 degrees: the pull of its rod is 3 m g sin(depth angle)."""
    system = library("particle_on_circle")
    pull = sr.Event("pull", lambda t, x: x[f"{system.groups[0]}.force"] ** 2 - 1.5**2 * G**2)
    traj = sr.simulate(system, system.assemble({}), 0.6, rtol=1e-12, events=pull)
    (event,) = traj.events
    angle = np.arctan2(-event.q[1], event.q[0])
    np.testing.assert_allclose(np.sin(angle), 0.5, rtol=1e-9)
    np.testing.assert_allclose(np.sum(event.v**2), 2 * G * 0.5, rtol=1e-9)


@pytest.mark.parametrize("convert", [lambda x: x, float], ids=["compiled", "python"])
def test_a_guard_of_an_input(convert):
    traj = sr.simulate(
        carts(), carts().assemble({}), 2.0, inputs={"y": lambda t: 3 * t},
        events=sr.Event("strong", lambda t, x: convert(x["y.u"]) - 4.5),
    )  # fmt: skip
    np.testing.assert_allclose([e.t for e in traj.events], [1.5], rtol=1e-12)


@pytest.mark.parametrize("direction, expected", [(0, 4), (1, 2), (-1, 2)])
def test_only_the_direction_asked_for(direction, expected):
    start = carts().assemble({"x": 1.0})
    traj = sr.simulate(
        carts(), start, 6.0, inputs={"x": lambda t, x: -8 * x["x"]}, rtol=1e-10,
        events=sr.Event("middle", lambda t, x: x["x"], direction),
    )  # fmt: skip
    times = (np.pi / 4) + (np.pi / 2) * np.arange(4)
    falling = np.array([-1, 1, -1, 1])
    kept = np.ones(4, bool) if direction == 0 else falling == direction
    assert len(traj.events) == expected
    np.testing.assert_allclose([e.t for e in traj.events], times[kept], rtol=0, atol=1e-8)
    assert [e.direction for e in traj.events] == falling[kept].tolist()


def test_several_guards_in_one_step_fire_in_order():
    heights = [0.9, 0.31, 0.3, 0.299999, 0.0]
    events = [sr.Event(f"at {h}", lambda t, x, h=h: x["z"] - h) for h in np.random.default_rng(2).permutation(heights)]
    traj = fall(events, rtol=1e-6)
    assert [e.name for e in traj.events] == [f"at {h}" for h in heights]
    np.testing.assert_allclose([e.t for e in traj.events], np.sqrt(2 * (1 - np.array(heights)) / G), rtol=0, atol=1e-11)


def test_guards_that_pass_together_all_fire_once():
    events = [
        sr.Event("height", lambda t, x: x["z"]),
        sr.Event("scaled", lambda t, x: 1e6 * x["z"] * (2 + x["z"] ** 2)),
        sr.Event("rising", lambda t, x: -1e-6 * x["z"], direction=1),
        sr.Event("clock", lambda t: t - FALL),
        sr.Event("speed", lambda t, x: x["z.v"] + G * FALL),
        sr.Event("not this way", lambda t, x: x["z"], direction=1),
    ]
    traj = fall(events)
    assert sorted(e.name for e in traj.events) == ["clock", "height", "rising", "scaled", "speed"]
    np.testing.assert_allclose([e.t for e in traj.events], FALL, rtol=0, atol=1e-13)


def test_a_guard_that_starts_at_zero_does_not_fire_there():
    events = [
        sr.Event("leaves downward", lambda t, x: x["z"] - 1),
        sr.Event("leaves upward", lambda t: t),
        sr.Event("comes back", lambda t: t * (t - 0.6), direction=1),
        sr.Event("always zero", lambda t: 0.0 * t),
    ]
    traj = fall(events)
    assert [(e.name, round(e.t, 12)) for e in traj.events] == [("comes back", 0.6)]


def test_an_event_at_the_very_end_is_seen_and_one_at_the_start_is_not():
    traj = fall([sr.Event("start", lambda t: t - 0.0), sr.Event("end", lambda t: t - 1.0)])
    assert [(e.name, e.t) for e in traj.events] == [("end", 1.0)]
    assert traj.status.code == "finished"
    changed = fall(sr.Event("end", lambda t: t - 1.0, action=sr.Change(velocities={"z": 5.0})))
    assert changed.status.code == "finished" and changed["z.v"][-1] == 5.0
    assert changed.t[-2:].tolist() == [1.0, 1.0]


def test_a_guard_that_passes_zero_twice_in_one_step():
    dip = sr.Event("dip", lambda t: (t - 0.4) * (t - 0.7))
    traj = fall(dip, method="rk4", dt=1.0)
    np.testing.assert_allclose([e.t for e in traj.events], [0.4, 0.7], rtol=1e-14)
    assert [e.direction for e in traj.events] == [-1, 1]


def test_events_do_not_disturb_a_motion_that_they_only_record():
    plain, watched = fall(()), fall(sr.Event("mark", lambda t, x: x["z"] - 0.5))
    np.testing.assert_allclose(watched["z"], 1 - G / 2 * watched.t**2, rtol=0, atol=1e-13)
    assert watched.stats.steps <= plain.stats.steps + 2
    assert double_rows(watched).size == 0
    assert watched.audit().ok(1e-12)


# --- velocity jumps --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("direction", [-1, 0])
def test_a_bouncing_ball(direction):
    e = 0.8
    traj = fall(bounce(e, direction), 3.0)
    flights = FALL * np.r_[1, 2 * e ** np.arange(1, 20)]
    expected = np.cumsum(flights)
    expected = expected[expected < 3.0]
    assert len(traj.events) == len(expected) == 6  # none twice
    np.testing.assert_allclose([event.t for event in traj.events], expected, rtol=0, atol=1e-11)
    rows = double_rows(traj)
    np.testing.assert_allclose(traj.t[rows], expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj["z.v"][rows + 1], -e * traj["z.v"][rows], rtol=1e-14)
    np.testing.assert_array_equal(traj["z"][rows + 1], traj["z"][rows])
    total = traj["energy.total"]
    np.testing.assert_allclose(total[rows + 1], total[rows] * e * e, rtol=1e-10)
    audit = traj.audit()
    assert audit.ok(1e-11), audit
    np.testing.assert_allclose([jump.energy for jump in audit.jumps], (total[rows + 1] - total[rows]), rtol=1e-9)
    assert {jump.event for jump in audit.jumps} == {"floor"}
    assert all("velocities changed" in event.action for event in traj.events)


def test_bounces_far_shorter_than_a_step_are_not_lost():
    """Restitution 0.5: each flight is half as long; down to a hundred-thousandth of a step the ball stays above."""
    traj = fall(bounce(0.5), 3 * FALL * (1 - 1e-5))
    expected = 3 * FALL - 2 * FALL * 0.5 ** np.arange(0, 18)
    expected = expected[expected < traj.t[-1]]
    np.testing.assert_allclose([event.t for event in traj.events], expected, rtol=0, atol=1e-10)
    assert traj["z"].min() > -1e-12


def test_a_jump_is_made_to_agree_with_the_constraints():
    """Only the velocity that the constraints allow, with the least change of kinetic energy."""
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    kick = sr.Event("kick", lambda t: t - 0.2, action=sr.Change(velocities={"A": 3.0}))
    traj = sr.simulate(system, start, 0.4, events=kick, rtol=1e-10)
    (row,) = double_rows(traj)
    before, after = traj.state(row), traj.state(row + 1)
    terms = system.terms(before)
    wanted = before.v.copy()
    wanted[0] = 3.0
    A = terms.A[[0, 2]]  # x and z
    W = np.linalg.inv(terms.M)
    expected = wanted - W @ A.T @ np.linalg.solve(A @ W @ A.T, A @ wanted)
    np.testing.assert_allclose(after.v, expected, rtol=1e-10)
    np.testing.assert_allclose(terms.A @ after.v, 0, atol=1e-12)
    assert traj.audit().ok(1e-8)


def test_a_full_vector_and_two_jumps_at_once():
    events = [
        sr.Event("first", lambda t: t - 0.5, action=lambda t, q, v: sr.Change(velocities=v + np.array([1.0, 0.0]))),
        sr.Event("second", lambda t: 0.5 - t, action=lambda t, q, v: sr.Change(velocities=v + np.array([0.5, 2.0]))),
    ]
    traj = sr.simulate(carts(), carts().assemble({}), 1.0, events=events)
    np.testing.assert_allclose(traj.q[-1], [0.75, 1.0], rtol=1e-12)
    assert double_rows(traj).size == 1 and len(traj.events) == 2
    np.testing.assert_array_equal(traj.events[1].v, [1.0, 0.0])  # it found what the first had left


# --- constraints on and off ------------------------------------------------------------------------------------------
def test_a_clutch_conserves_the_angular_momentum():
    system = flywheels()
    start = system.state([0.0, 0.0], [5.0, 1.0])
    grip = sr.Event("grip", lambda t, x: x["a"] - x["b"] - 0.5, action=sr.Change(active={"clutch": True}))
    traj = sr.simulate(system, start, 0.4, events=grip, active={"clutch": False}, rtol=1e-10)
    (row,) = double_rows(traj)
    np.testing.assert_allclose(traj.t[row], 0.125, rtol=1e-13)
    common = (0.3 * 5 + 0.7 * 1) / 1.0
    np.testing.assert_allclose(traj.v[row + 1 :], common, rtol=1e-12)
    np.testing.assert_allclose(traj["a"][-1], 5 * 0.125 + common * 0.275, rtol=1e-12)
    loss = 0.5 * (0.3 * 0.7 / 1.0) * (5 - 1) ** 2  # of two masses that stick together
    np.testing.assert_allclose(np.diff(traj["energy.total"])[row], -loss, rtol=1e-12)
    audit = traj.audit()
    assert audit.ok(1e-12), audit
    assert [segment.active["clutch"] for segment in traj.segments] == [False, True]
    assert traj.segments[1].start == row + 1
    np.testing.assert_allclose(traj["a"][row:] - traj["b"][row:], 0.5, rtol=0, atol=1e-12)
    assert traj.events[0].action == "clutch switched on"


def test_closing_a_loop_follows_the_plastic_impact_of_the_sheet():
    """Sheet 2.9: v+ = Theta v-, M (v+ - v-) in the range of Aᵀ, loss ½ (A v-)ᵀ (A M⁻¹ Aᵀ)⁺ A v-."""
    system = library("parallelogram")  # one row is redundant
    start = system.assemble({"A0": 1.0})
    free = {name: False for name in system.groups}
    rng = np.random.default_rng(4)
    start = system.state(start.q, rng.normal(size=system.layout.nv))
    close = sr.Event("close", lambda t: t - 1e-7, action=sr.Change(active={name: True for name in system.groups}))
    traj = sr.simulate(system, start, 0.2, events=close, active=free, rtol=1e-10)
    (row,) = double_rows(traj)
    before, after = traj.state(row), traj.state(row + 1)
    terms = system.terms(before)
    push = terms.M @ (after.v - before.v)
    lam = np.linalg.lstsq(terms.A.T, push, rcond=1e-9)[0]
    np.testing.assert_allclose(terms.A.T @ lam, push, atol=1e-6)  # the loop moved 1e-7 s before it closed
    np.testing.assert_allclose(system.terms(after).A @ after.v, 0, atol=1e-12)
    slip = terms.A @ before.v
    loss = 0.5 * slip @ np.linalg.pinv(terms.A @ np.linalg.solve(terms.M, terms.A.T), rcond=1e-6) @ slip
    np.testing.assert_allclose(-np.diff(traj["energy.kinetic"])[row], loss, rtol=1e-5)
    audit = traj.audit()
    assert audit.ok(1e-7), audit
    assert audit.loop.relative < 1e-12 or audit.by_group  # loops that were open do not count
    rows = slice(row + 1, None)
    assert traj.residuals.loop[rows].max() < 1e-12


def test_a_broken_string_lets_the_particle_fly():
    system = library("particle_on_circle")
    (rod,) = system.groups
    start = system.assemble({})
    cut = sr.Event("cut", lambda t, x: x["x"] - 0.6, direction=-1, action=sr.Change(active={rod: False}))
    traj = sr.simulate(system, start, 1.0, events=cut, rtol=1e-12)
    (row,) = double_rows(traj)
    np.testing.assert_array_equal(traj.v[row + 1], traj.v[row])  # nothing jumps but the acceleration
    t = traj.t[row:] - traj.t[row]
    q, v = traj.q[row], traj.v[row]
    np.testing.assert_allclose(q, [0.6, -0.8], rtol=1e-10)
    np.testing.assert_allclose(traj.q[row:], q + np.outer(t, v) - np.outer(t * t, [0, G / 2]), rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj["energy.total"], traj["energy.total"][0], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(traj.lam[row + 1 :], 0.0)
    assert traj.audit().ok(1e-9)


def test_caught_by_the_floor_and_released_again():
    events = [
        sr.Event("land", lambda t, x: x["z"], direction=-1, action=sr.Change(active={"floor": True})),
        sr.Event("trap door", lambda t: t - 0.8, action=sr.Change(active={"floor": False})),
        sr.Event("deep", lambda t, x: x["z"] + 0.3, terminal=True),
    ]
    traj = fall(events, 5.0)
    assert [e.name for e in traj.events] == ["land", "trap door", "deep"]
    np.testing.assert_allclose([e.t for e in traj.events], [FALL, 0.8, 0.8 + np.sqrt(0.6 / G)], rtol=1e-12)
    held = (traj.t > FALL + 1e-9) & (traj.t < 0.8)
    np.testing.assert_allclose(traj["floor.force"][held], 2 * G, rtol=1e-12)
    np.testing.assert_allclose(traj["z"][held], 0.0, atol=1e-12)
    assert traj.audit().ok(1e-11)
    assert [s.active["floor"] for s in traj.segments] == [False, True, False]


def test_a_floor_lets_go_when_it_would_have_to_pull():
    """A ball on the floor is pulled up by a growing force: it leaves when this exceeds the weight."""
    mech = sr.Mechanism("lift")
    mech.prismatic("z", mech.ground, mech.body("ball", 2.0), "z")
    mech.lock("floor", "z")
    mech.motor("z")
    system = sr.compile(mech)
    leave = sr.Event("leave", lambda t, x: x["floor.force"], -1, action=sr.Change(active={"floor": False}))
    traj = sr.simulate(system, system.assemble(), 3.0, inputs=lambda t: 10 * t, events=leave, rtol=1e-11)
    (event,) = traj.events
    np.testing.assert_allclose(event.t, 0.2 * G, rtol=1e-10)
    np.testing.assert_allclose(traj["z"][-1], 10 / 12 * (3.0 - 0.2 * G) ** 3, rtol=1e-9)
    assert traj.audit().ok(1e-9)


def test_switched_off_from_the_start():
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    open_chain = sr.simulate(system, start, 0.5, active={"D": False}, rtol=1e-10)
    np.testing.assert_array_equal(open_chain.lam, 0.0)
    assert open_chain.segments[0].active == {"D": False}
    assert open_chain.audit().ok(1e-9)
    a = system.acceleration(start, active={"D": False})
    np.testing.assert_allclose(open_chain.a[0], a, rtol=1e-14)
    broken = system.state(start.q + 0.1, start.v)  # need not hold what is off
    assert sr.simulate(system, broken, 0.1, active={"D": False}).status.ok


# --- parameters ------------------------------------------------------------------------------------------------------
def test_a_parameter_changes_on_the_way():
    system = library("pendulum")
    shorten = sr.Event("shorten", lambda t, x: x["A"] + np.pi / 2, -1, action=sr.Change(parameters={"L": 0.5}))
    traj = sr.simulate(system, system.assemble({"A": -np.pi / 2 + 0.05}), 2.0, events=shorten, rtol=1e-12)
    k1 = np.sin(0.025)
    first = ellipk(k1**2) / np.sqrt(G)
    np.testing.assert_allclose(traj.events[0].t, first, rtol=0, atol=TIME)
    rate = 2 * k1 * np.sqrt(G)  # at the lowest point; it stays, the length halves
    k2 = rate / 2 / np.sqrt(G / 0.5)
    np.testing.assert_allclose(traj["A.v"][double_rows(traj)], -rate, rtol=1e-9)
    swing = sr.simulate(traj.system, traj, 2.5, rtol=1e-12, events=sr.Event("turn", lambda t, x: x["A.v"]))
    quarter = ellipk(k2**2) / np.sqrt(G / 0.5)
    expected = first + quarter * np.array([1, 3, 5])
    assert swing.segments[-1].p.tolist() == [1.0, 0.5] or swing.segments[-1].p.tolist() == [0.5, 1.0]
    after = [e.t for e in swing.events if e.name == "turn"]
    np.testing.assert_allclose(after, [t for t in expected if 2.0 < t < 2.5], rtol=0, atol=1e-9)
    assert swing.audit().ok(1e-9)


def test_a_parameter_that_opens_a_loop_is_refused_and_the_motion_kept():
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    stretch = sr.Event("stretch", lambda t: t - 0.2, action=sr.Change(parameters={"L1": 1.1}))
    traj = sr.simulate(system, start, 1.0, events=stretch)
    assert traj.status.code == "callback failed" and traj.t[-1] == 0.2
    for part in ("action of event 'stretch'", "constraint 'D' is broken by", "after the change (L1 = 1.1)"):
        assert part in traj.status.text
    assert traj.audit().ok()


# --- together with other things --------------------------------------------------------------------------------------
def test_events_between_samples_of_an_input_keep_its_clock():
    calls = []

    def law(t, x):
        calls.append(t)
        return -5 * x["x"] - x["x.v"]

    def once(events):
        calls.clear()
        start = carts().assemble({"x": 1.0})
        return sr.simulate(carts(), start, 2.0, inputs={"x": law}, sample=0.1, events=events, rtol=1e-11)

    plain = once(())
    times = list(calls)
    marked = once([sr.Event("mark", lambda t, x: x["x"] - 0.5), sr.Event("at a sample", lambda t: t - 0.5)])
    assert calls == times and len(times) == 20
    assert len(marked.events) >= 2
    np.testing.assert_allclose(marked.q[-1], plain.q[-1], rtol=1e-9)
    kicked = once(sr.Event("kick", lambda t: t - 0.5, action=sr.Change(velocities={"y": 1.0})))
    np.testing.assert_allclose(calls, times, rtol=0, atol=1e-14)
    np.testing.assert_allclose(kicked.q[-1, 0], plain.q[-1, 0], rtol=1e-9)
    np.testing.assert_allclose(kicked["y"][-1], 1.5, rtol=1e-12)


def test_outputs_at_times_pass_over_events():
    times = np.array([0.1, 0.4, 0.5, 0.9, 1.2])
    traj = fall(bounce(0.8), 1.5, output=times)
    np.testing.assert_array_equal(traj.t, times)
    full = fall(bounce(0.8), 1.5)
    np.testing.assert_allclose(traj["z"], full.at(times).q[:, 0], rtol=0, atol=1e-12)
    assert len(traj.events) == len(full.events)


def test_thinned_outputs_keep_both_rows_of_an_event():
    traj = fall(bounce(0.8), 1.5, output=1000)
    assert list(traj.t) == [0.0, *np.repeat([e.t for e in traj.events], 2), 1.5]


def test_a_terminal_event_with_a_change_ends_after_the_change():
    stop = sr.Event("stop", lambda t, x: x["z"], -1, terminal=True, action=sr.Change(active={"floor": True}))
    for output in ("steps", [0.1, 0.9], 50):
        traj = fall(stop, output=output)
        assert traj.status.code == "event" and traj["z.v"][-1] == 0.0
        assert traj.segments[-1].active["floor"]
        on = sr.simulate(ball(), traj, 1.0)
        np.testing.assert_allclose([on["z"][-1], on["floor.force"][-1, 0]], [0, 2 * G], rtol=1e-12, atol=1e-12)
        assert on.audit().ok(1e-10) or output != "steps"


def test_a_function_decides_whether_to_stop():
    seen = []

    def action(t, x):
        seen.append(float(x["z.v"]))
        return sr.Change(stop=True) if len(seen) == 3 else sr.Change(velocities={"z": -x["z.v"]})

    traj = fall(sr.Event("hit", lambda t, x: x["z"], -1, action=action), 10.0)
    assert traj.status.code == "event" and len(traj.events) == 3
    np.testing.assert_allclose(traj.t[-1], 5 * FALL, rtol=1e-12)
    np.testing.assert_allclose(seen, -G * FALL, rtol=1e-12)


def test_an_action_sees_forces_inputs_and_poses():
    system, found = library("pendulum"), {}

    def look(t, x):
        found.update(u=x["A.u"], tip=x["tip.position"], rate=x["A.v"], t=t)

    sr.simulate(
        system, system.assemble({"A": 0.0}), 1.0, inputs=2.0, rtol=1e-11,
        events=sr.Event("look", lambda t, x: x["A"] + 1.0, action=look),
    )  # fmt: skip
    assert found["u"] == 2.0 and found["rate"] < 0
    np.testing.assert_allclose(found["tip"], [np.cos(1), 0, -np.sin(1)], atol=1e-10)


def test_guards_follow_a_variable_that_an_action_changes():
    limit = {"now": 0.5}

    def lower(t, x):
        limit["now"] = 0.2

    traj = fall(sr.Event("limit", lambda t, x: x["z"] - limit["now"], -1, action=lower))
    np.testing.assert_allclose([e.t for e in traj.events], np.sqrt(2 * np.array([0.5, 0.8]) / G), rtol=1e-12)


# --- in space --------------------------------------------------------------------------------------------------------
def test_events_of_a_body_that_turns_freely():
    """Quaternions: poses as guards, jumps of both velocities; the mass centre falls as a ball does."""
    mech = sr.Mechanism("thrown brick")
    inertia = np.diag([1.0, 2.0, 3.0])
    mech.free("f", mech.body("brick", 1.0, inertia=inertia))
    system = sr.compile(mech)
    start = system.assemble(velocities={"f.omega": (0.0, 0.0, 2.0)})  # about a principal axis: turns evenly
    events = [
        sr.Event("quarter", lambda t, x: x["brick.rotation"][0, 0]),
        sr.Event("deep", lambda t, x: x["brick.position"][2] + 1, action=sr.Change(velocities={"f.velocity.z": 3.0})),
        sr.Event("slower", lambda t: t - 1.0, action=sr.Change(velocities={"f.omega": (0.0, 0.0, 1.0)})),
    ]
    traj = sr.simulate(system, start, 2.0, rtol=1e-12, events=events)
    found = {name: [e.t for e in traj.events if e.name == name] for name in ("quarter", "deep", "slower")}
    np.testing.assert_allclose(found["quarter"], [np.pi / 4], rtol=0, atol=TIME)
    np.testing.assert_allclose(found["deep"], [FALL, FALL + 6.0 / G, FALL + 12.0 / G], rtol=0, atol=TIME)
    assert found["slower"] == [1.0]
    angle = 2.0 + (traj.t[-1] - 1.0)
    np.testing.assert_allclose(np.abs(traj["f.quat_wxyz"][-1]), np.abs([np.cos(angle / 2), 0, 0, np.sin(angle / 2)]),
                               rtol=0, atol=1e-10)  # fmt: skip
    assert traj.audit().ok(1e-10)


# --- at singular positions -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("offset", [0.0, 1e-6, -1e-6, 1e-3, -1e-3, 0.05, -0.05])
def test_events_in_and_near_a_singular_position(offset):
    """The crank of equal links points down, where the row vanishes; energy tells the speed (sheet 12.1)."""
    system = library("slider_crank")
    start, low = system.assemble(), -np.pi / 2
    plain = sr.simulate(system, start, 5.0, rtol=1e-11)
    mark = sr.Event("mark", lambda t, x: x["A"] - low - offset)
    traj = sr.simulate(system, start, 5.0, rtol=1e-11, events=mark)
    assert [e.direction for e in traj.events] == [-1, 1, -1][: len(traj.events)] and len(traj.events) >= 2
    for event in traj.events:
        np.testing.assert_allclose(event.q, [low + offset, 3 * np.pi - 2 * offset], rtol=0, atol=1e-9)
        state = system.state(event.q, event.v)
        np.testing.assert_allclose(system.energy(state).total, system.energy(start).total, rtol=1e-8)
    assert len(traj.crossings) == len(plain.crossings) == 2  # none twice, though a step was taken twice
    np.testing.assert_allclose([c.t for c in traj.crossings], [c.t for c in plain.crossings], rtol=0, atol=1e-7)
    np.testing.assert_allclose(traj.q[-1], plain.q[-1], rtol=0, atol=1e-7)


def test_turning_back_just_before_a_singular_position():
    system = library("slider_crank")
    near = -np.pi / 2 + 1e-3
    back = sr.Event("back", lambda t, x: x["A"] - near, -1, action=lambda t, q, v: sr.Change(velocities=-v))
    traj = sr.simulate(system, system.assemble(), 4.0, rtol=1e-11, events=back)
    assert traj.crossings == () and len(traj.events) >= 1
    first = traj.events[0].t
    np.testing.assert_allclose(traj.at(2 * first).q, traj.q[0], rtol=0, atol=1e-8)  # back where it came from
    assert traj.audit().ok(1e-7)


def test_a_run_that_stopped_at_a_singular_position_goes_on():
    system = library("slider_crank")
    whole = sr.simulate(system, system.assemble(), 5.0, rtol=1e-11)
    traj = sr.simulate(system, system.assemble(), 5.0, rtol=1e-11, crossing="stop")
    stops = []
    while traj.status.code == "crossing":
        stops.append(traj.t[-1])
        traj = sr.simulate(system, traj, 5.0, rtol=1e-11, crossing="stop")
    np.testing.assert_allclose(stops, [c.t for c in whole.crossings], rtol=0, atol=1e-8)
    assert [c.t for c in traj.crossings] == stops
    np.testing.assert_allclose(traj.q[-1], whole.q[-1], rtol=0, atol=1e-7)


# --- what goes wrong -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: sr.Event(abs, abs), StateError, "event: expected a name, got <built-in function abs>"),
        (lambda: sr.Event("e", 3.0), StateError, r"event 'e': guard must be a function of \(t\), \(t, x\)"),
        (lambda: sr.Event("e", abs, direction=2), StateError, "event 'e': direction must be -1, 0 or"),
        (lambda: sr.Event("e", abs, action="stop"), StateError, "event 'e': action must be a Change"),
        (lambda: sr.Change(active=["floor"]), StateError, r"Change: active must map names to values, got \['floor'\]"),
        (lambda: fall("hit"), StateError, r"events: expected sr.Event\(name, guard\), got 'h'"),
        (lambda: fall([sr.Event("e", lambda t: t)] * 2), StateError, "the name 'e' is used 2 times; names must differ"),
        (lambda: fall(sr.Event("e", lambda: 1)), StateError, "guard of event 'e'.*this one takes 0 arguments"),
        (
            lambda: fall(sr.Event("e", lambda t: t, action=lambda: 1)), StateError,
            "action of event 'e'.*this one takes 0",
        ),
        (lambda: fall(sr.Event("e", lambda t, x: x["y"])), UnknownNameError, "unknown value 'y'.*Known: 'z', 'z.v'"),
        (lambda: fall(sr.Event("e", lambda t, x: x["floors.force"])), UnknownNameError, "Did you mean 'floor.force'"),
        (
            lambda: fall(sr.Event("e", lambda t, x: [x["z"], t])), StateError,
            r"guard of event 'e' \(.*test_events.py, line \d+\): expected 1 number\(s\) from the function, got 2",
        ),
        (
            lambda: fall(sr.Event("e", lambda t: t, action=sr.Change(active={"flor": True}))), UnknownNameError,
            "unknown constraint 'flor'. Did you mean 'floor'",
        ),
        (
            lambda: fall(sr.Event("e", lambda t: t, action=sr.Change(parameters={"m": 1.0}))), UnknownNameError,
            "unknown parameter 'm'",
        ),
        (
            lambda: fall(sr.Event("e", lambda t: t, action=sr.Change(velocities={"y": 1.0}))), UnknownNameError,
            "unknown velocity 'y'",
        ),
        (
            lambda: fall(sr.Event("e", lambda t: t, action=sr.Change(velocities=[1.0, 2.0]))), StateError,
            r"velocities: expected 1 values \(z\), got shape \(2,\)",
        ),
    ],
)  # fmt: skip
def test_bad_events_are_refused_before_the_first_step(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    "action, text",
    [
        (lambda t, x: 1 / 0, "action of event 'half' raised ZeroDivisionError: division by zero (FILE, line"),
        (lambda t, x: 3, "action of event 'half': expected an sr.Change or None, got 3"),
        (lambda t, x: x["q"], "action of event 'half' raised UnknownNameError: unknown value 'q'"),
        (lambda t, x: sr.Change(active={"roof": True}), "unknown constraint 'roof'"),
        (lambda t, x: sr.Change(velocities={"z": np.nan}), "action of event 'half' raised StateError"),
        (sr.Change(active={"floor": True}), "constraint 'floor' is broken by"),
    ],
)
def test_an_action_that_fails_ends_the_run_and_keeps_it(action, text):
    traj = fall(sr.Event("half", lambda t, x: x["z"] - 0.5, action=action))
    assert traj.status.code == "callback failed"
    assert text.replace("FILE", __file__) in traj.status.text
    np.testing.assert_allclose(traj.t[-1], np.sqrt(1 / G), rtol=1e-12)
    assert traj.audit().ok(1e-10)
    traj = sr.simulate(ball(), traj, 1.0)  # and it can be continued
    np.testing.assert_allclose(traj["z"][-1], 1 - G / 2, rtol=1e-11)


def test_a_guard_that_fails_or_is_no_number_names_itself():
    def guard(t, x):
        return 1 / 0 if t > 0.4 else 1.0

    traj = fall([sr.Event("fine", lambda t, x: x["z"]), sr.Event("sick", guard)])
    assert traj.status.code == "callback failed"
    assert "guard of event 'sick'" in traj.status.text and "ZeroDivisionError" in traj.status.text
    assert f"{__file__}, line {guard.__code__.co_firstlineno + 1})" in traj.status.text
    for event in (lambda t, x: np.sqrt(0.5 - t), lambda t, x: float("nan") if t > 0.5 else 1.0):
        with np.errstate(invalid="ignore"):
            traj = fall([sr.Event("fine", lambda t, x: x["z"]), sr.Event("sick", event)])
        assert traj.status.code == "not finite"
        assert "the guard of event 'sick' is nan" in traj.status.text and "test_events.py" in traj.status.text
        assert traj.audit().ok(1e-10)
