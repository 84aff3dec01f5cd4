"""The audit: motions known in closed form pass it, and each kind of falsehood is found, named and placed."""

import dataclasses
import re

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sarrus as sr
from sarrus.errors import UnknownNameError
from sarrus.simulation.audit import AuditError
from sarrus.simulation.evaluate import corrected
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory

G = 9.81


def record(system, t, q, v, a=None, u=None, **fields) -> Trajectory:
    u = np.zeros((len(t), system.layout.nu)) if u is None else u
    a = system.acceleration(system.state(q, v, t), u) if a is None else a
    fields.setdefault("segments", (Segment(0, {}, system.p),))
    return Trajectory(system, t, q, v, a, u, Status("finished", "", t[-1]), Stats("exact"), **fields)


def integrated(system, state, times, law=None) -> Trajectory:
    """An accurate motion by SciPy, brought back onto the constraints."""
    n, law = system.layout.nq, law or (lambda t: np.zeros(system.layout.nu))

    def rate(t, y):
        return np.concatenate(
            [y[n:], system.acceleration(system.state(y[:n], y[n:], t), np.array(law(t), dtype=float))]
        )

    start = np.concatenate([state.q, state.v])
    y = solve_ivp(rate, (times[0], times[-1]), start, "DOP853", times, rtol=3e-13, atol=1e-13).y.T
    q, v, _ = corrected(system, times, y[:, :n].copy(), y[:, n:].copy(), 0 * y[:, n:], np.ones(system.layout.m))
    return record(system, times, q, v, u=np.array([law(t) for t in times], dtype=float).reshape(len(times), -1))


@pytest.fixture(scope="module")
def four_bar() -> Trajectory:
    system = sr.compile(sr.library.build("four_bar"))
    return integrated(system, system.assemble({"A": 0.3}, {"A": 2.0}), np.linspace(0, 1, 201))


@pytest.fixture(scope="module")
def driven() -> Trajectory:
    system = sr.compile(sr.library.build("four_bar"))
    start = system.assemble({"A": 0.3}, {"A": 2.0})
    return integrated(system, start, np.linspace(0, 1, 201), lambda t: [3 + 2 * np.sin(4 * t)])


def arm(**joint) -> sr.System:
    """A rod that turns about the y axis without weight: inertia 1/3."""
    mech = sr.Mechanism("arm", gravity=(0, 0, 0), planar=True)
    mech.revolute("A", mech.ground, mech.body("arm", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0)), **joint)
    mech.motor("A")
    return sr.compile(mech)


# --- true motions ----------------------------------------------------------------------------------------------------
def test_an_accurate_motion_passes(four_bar):
    audit = four_bar.audit()
    assert audit.loop.relative < 1e-14 and audit.velocity.relative < 1e-14
    assert audit.acceleration.relative < 1e-13 and audit.motion.relative < 1e-13
    assert audit.energy.relative < 1e-11
    assert audit.work == audit.resolution == 0.0  # nothing puts power in
    assert audit.rank.tolist() == [2] * 201 and audit.rank_changes == () and audit.singular == 0
    assert audit.ok() and audit.ok(1e-10)
    four_bar.audit(raise_above=1e-10)


def test_the_work_of_an_input(driven):
    audit = driven.audit()
    assert abs(audit.work) > 0.1
    change = driven["energy.total"][-1] - driven["energy.total"][0]
    assert audit.work == pytest.approx(change, abs=1e-8)
    assert audit.energy.value < audit.resolution < 1e-6
    assert audit.ok(1e-9)


def test_the_resolution_is_honest_when_rows_are_far_apart(driven):
    for step in (2, 4, 8):
        rows = slice(None, None, step)
        few = dataclasses.replace(driven, **{key: getattr(driven, key)[rows] for key in "tqvau"})
        audit = few.audit()
        error = abs(audit.work - (driven["energy.total"][-1] - driven["energy.total"][0]))
        assert error < audit.resolution
        assert audit.energy.value < audit.resolution


def test_the_work_of_a_constant_torque_in_closed_form():
    system = arm()
    t = np.linspace(0, 2, 6)
    a = np.full((6, 1), 1.5 / (1 / 3))
    traj = record(system, t, a * t[:, None] ** 2 / 2, a * t[:, None], a, np.full((6, 1), 1.5))
    audit = traj.audit()
    assert audit.work == pytest.approx(1.5 * 4.5 * 2**2 / 2, rel=1e-14)  # torque times angle
    assert audit.energy.relative < 1e-14 and audit.motion.relative < 1e-14


def test_damping_in_closed_form():
    system = arm(damping=0.2)
    t = np.linspace(0, 3, 61)
    decay = np.exp(-0.6 * t)[:, None]
    traj = record(system, t, (1 - decay) * 2 / 0.6, 2 * decay, -1.2 * decay)
    audit = traj.audit()
    assert audit.work == pytest.approx(2 / 3 * (np.exp(-3.6) - 1), rel=1e-9)
    assert audit.energy.value <= audit.resolution < 1e-8


@pytest.mark.parametrize("closed", [False, True])
def test_the_work_of_a_prescribed_motion(closed):
    """The drive lifts a rod, or a crank with a slider: its power is λᵀa."""
    mech = sr.library.build("slider_crank", L2=2.0) if closed else sr.library.build("pendulum")
    mech.prescribe("drive", "A", lambda t: 0.4 + t + 0.5 * t * t)
    system = sr.compile(mech)
    t = np.linspace(0, 0.8, 81)
    states = [system.assemble(near=system.assemble(), t=x) for x in t]
    traj = record(system, t, np.stack([s.q for s in states]), np.stack([s.v for s in states]))
    audit = traj.audit()
    change = traj["energy.total"][-1] - traj["energy.total"][0]
    assert abs(change) > 1.0
    assert audit.work == pytest.approx(change, abs=1e-7)
    assert audit.energy.relative < 1e-7 and audit.ok(1e-7)
    wrong = dataclasses.replace(traj, v=traj.v * 1.001)
    assert not wrong.audit().ok(1e-5)


def test_energy_of_a_lagrangian_whose_pivot_moves():
    """T contains time: J = vᵀ∂T/∂v - T + V changes by -∂L/∂t."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("theta"), ca.SX.sym("omega")
    pivot = -0.3 * 2 * ca.sin(2 * t)  # velocity of a pivot at 0.3 cos 2t
    T = ((pivot + ca.cos(q) * v) ** 2 + (ca.sin(q) * v) ** 2) / 2
    V = -G * ca.cos(q)
    system = sr.compile(sr.Lagrangian("swing", time=t, coordinates=q, velocities=v, kinetic=T, potential=V))
    traj = integrated(system, system.state([0.7], [0.1]), np.linspace(0, 2, 201))
    audit = traj.audit()
    assert abs(audit.work) > 0.1
    assert audit.energy.value < max(audit.resolution, 1e-9) < 1e-7
    assert audit.motion.relative < 1e-12


def test_inputs_held_between_samples():
    """Rows hold the input with which they were reached; a different one follows."""
    system = arm()
    torque = np.array([1.0, -2.0, 3.0, 0.5])
    t, q, v = [0.0], [0.0], [0.0]
    for u in torque:  # exact: constant accelerations of 3 u, one row per sample
        q.append(q[-1] + v[-1] * 0.5 + 3 * u * 0.125)
        v.append(v[-1] + 3 * u * 0.5)
        t.append(t[-1] + 0.5)
    u = np.concatenate([torque[:1], torque])[:, None]
    q, v = np.array(q)[:, None], np.array(v)[:, None]
    traj = record(system, np.array(t), q, v, 3 * u, u, segments=(Segment(0, {}, system.p, held=True),))
    audit = traj.audit()
    assert audit.work == pytest.approx(float(torque @ np.diff(q[:, 0])), rel=1e-13)
    assert audit.energy.relative < 1e-13
    assert dataclasses.replace(traj, segments=(Segment(0, {}, system.p),)).audit().energy.relative > 1e-3


def test_quaternions_and_rolling():
    system = sr.compile(sr.library.build("stewart"))
    state = system.assemble()
    x, t = system.layout, np.linspace(0, 0.1, 41)
    q, v, h = [state.q], [state.v], t[1] / 4
    for _ in range(4 * 40):  # Runge-Kutta with steps on the manifold (order 4 in h, h small)
        q0, v0 = q[-1], v[-1]
        speeds, bends = [v0], [system.acceleration(system.state(q0, v0))]
        for c in (0.5, 0.5, 1.0):
            speed = v0 + c * h * bends[-1]
            spot = system.retract(q0, c * h * speeds[-1])
            bends.append(system.acceleration(system.state(spot, speed)))
            speeds.append(speed)
        q.append(system.retract(q0, h / 6 * (speeds[0] + 2 * speeds[1] + 2 * speeds[2] + speeds[3])))
        v.append(v0 + h / 6 * (bends[0] + 2 * bends[1] + 2 * bends[2] + bends[3]))
    q, v, _ = corrected(system, t, np.array(q[::4]), np.array(v[::4]), np.zeros((41, x.nv)), np.ones(x.m))
    audit = record(system, t, q, v).audit()
    assert audit.ok(1e-6) and audit.loop.relative < 1e-13
    assert set(audit.by_group) == set(system.groups) and max(audit.by_group.values()) == audit.loop.relative


def test_a_machine_at_rest_passes():
    system = sr.compile(sr.library.build("pendulum"))
    q = np.full((5, 1), -np.pi / 2)  # hanging: the acceleration is rounding of cos(π/2)
    audit = record(system, np.linspace(0, 4, 5), q, q * 0).audit()
    assert audit.ok(1e-9)
    single = record(system, np.zeros(1), q[:1], q[:1] * 0).audit()
    assert single.ok() and single.rows == 1


def test_a_singular_row_is_set_apart():
    system = sr.compile(sr.library.build("slider_crank"))
    q1 = np.pi / 2 + np.linspace(0.3, -0.3, 41)
    q1[20] = np.pi / 2
    q = np.stack([q1, 2 * np.pi - 2 * q1], 1)
    rate = np.sqrt(2 * (40 - G * (np.sin(q1))) / (1 + 4 * np.sin(q1) ** 2))  # energy 40 J: (1 + 4 s²) ω²/2 + G s
    s, c = np.sin(q1), np.cos(q1)
    bend = -(4 * s * c * rate**2 + G * c) / (1 + 4 * s**2)
    v, a = (np.stack([-x, 2 * x], 1) for x in (rate, -bend))
    grid = np.linspace(q1[0], q1[-1], 20001)
    speed = np.sqrt(2 * (40 - G * np.sin(grid)) / (1 + 4 * np.sin(grid) ** 2))
    elapsed = np.concatenate([[0], np.cumsum(np.abs(np.diff(grid)) * (1 / speed[1:] + 1 / speed[:-1]) / 2)])
    t = np.interp(-q1, -grid, elapsed)
    crossing = Crossing(float(t[20]), q[20], v[20], np.zeros(1), 0, 1)
    audit = record(system, t, q, v, a, crossings=(crossing,)).audit()
    assert audit.singular == 1 and audit.crossings == 1
    assert audit.rank_changes == ((pytest.approx(t[20]), 1, 0), (pytest.approx(t[21]), 0, 1))
    assert audit.energy.relative < 1e-13 and audit.motion.relative < 1e-12
    assert "rank 0 to 1, 2 changes; 1 rows at singular positions" in str(audit)


# --- events ----------------------------------------------------------------------------------------------------------
def test_energy_lost_at_an_event_is_listed_and_not_blamed():
    system = sr.compile(sr.library.build("pendulum"))
    swing = integrated(system, system.state([0.2], [1.0]), np.linspace(0, 0.5, 51))
    again = integrated(system, system.state(swing.q[-1], -0.5 * swing.v[-1], 0.5), np.linspace(0.5, 1.0, 51))
    arrays = [np.concatenate([getattr(swing, key), getattr(again, key)]) for key in ("t", "q", "v", "a", "u")]
    event = EventRecord("stop", 0.5, swing.q[-1], swing.v[-1], 1, "thrown back")
    segments = (Segment(0, {}, system.p), Segment(51, {}, system.p))
    audit = record(system, *arrays, events=(event,), segments=segments).audit()
    (jump,) = audit.jumps
    assert (jump.t, jump.event) == (0.5, "stop")
    assert jump.energy == pytest.approx(-0.75 * swing.v[-1, 0] ** 2 / 2, rel=1e-12)
    assert audit.energy.relative < 1e-11 and audit.ok(1e-10)
    assert audit.events == 1
    assert re.search(r"energy -\d+\.\d+ J at t = 0.5 s stop", str(audit))


def test_an_event_without_rows_of_its_own_counts_as_a_jump(four_bar):
    """Outputs at given times only: the change happened somewhere between two rows."""
    v = four_bar.v.copy()
    v[100:] *= 0.5
    segments = (Segment(0, {}, four_bar.system.p), Segment(100, {}, four_bar.system.p))
    a = four_bar.system.acceleration(four_bar.system.state(four_bar.q, v, four_bar.t), four_bar.u)
    audit = dataclasses.replace(four_bar, v=v, a=a, segments=segments).audit()
    assert len(audit.jumps) == 1 and audit.jumps[0].t == four_bar.t[99]


# --- falsehoods ------------------------------------------------------------------------------------------------------
def spoil(traj, key, row, amount):
    array = getattr(traj, key).copy()
    array[row] = array[row] + amount
    return dataclasses.replace(traj, **{key: array})


FALSEHOODS = {
    "loop": (lambda x: spoil(x, "q", 70, np.array([0, 1e-4, 0])), r"loop error .* at t = 0.35 s in 'D\.[xz]'", "drift"),
    "velocity": (
        lambda x: spoil(x, "v", 70, np.array([0, 1e-3, 0])),
        r"velocity error .* at t = 0.35 s in 'D\.[xz]'",
        "system.assemble",
    ),
    "acceleration": (
        lambda x: spoil(x, "a", 70, np.array([0, 0.1, 0])),
        r"acceleration error .* at t = 0.35 s in 'D\.[xz]'",
        "singular position near this time",
    ),
    "motion": (
        lambda x: spoil(x, "u", 70, 0.1),
        r"equations of motion .* at t = 0.35 s, allowed",
        "parameters and the inputs",
    ),
}


@pytest.mark.parametrize("what", ["loop", "velocity", "acceleration", "motion"])
def test_each_falsehood_is_found_named_and_placed(driven, what):
    make, text, cure = FALSEHOODS[what]
    wrong = make(driven)
    audit = wrong.audit()
    assert not audit.ok() and driven.audit().ok()
    assert not audit.ok({what: 1e-6})
    with pytest.raises(AuditError, match=f"four-bar: {text}") as error:
        wrong.audit(raise_above={what: 1e-6})
    assert cure in str(error.value) and "allowed is 1e-06" in str(error.value)
    assert error.value.audit.rows == 201
    others = {"loop": "motion", "velocity": "loop", "acceleration": "loop", "motion": "loop"}
    assert audit.ok({others[what]: 0.1})


def test_energy_that_comes_from_nowhere_is_found(four_bar):
    """Every row is consistent with itself, but the machine speeds up slowly."""
    v = four_bar.v * (1 + 1e-4 * four_bar.t[:, None])
    a = four_bar.system.acceleration(four_bar.system.state(four_bar.q, v, four_bar.t), four_bar.u)
    wrong = dataclasses.replace(four_bar, v=v, a=a)
    audit = wrong.audit()
    assert audit.ok({"loop": 1e-12, "velocity": 1e-12, "acceleration": 1e-12, "motion": 1e-12})
    with pytest.raises(AuditError, match=r"four-bar: energy balance .* J\)\. Ask for a smaller rtol"):
        wrong.audit(raise_above=1e-6)
    drift = wrong["energy.total"] - wrong["energy.total"][0]
    assert audit.energy.value == pytest.approx(np.abs(drift).max(), rel=1e-9)


def test_the_wrong_input_is_found_by_the_energy_too(driven):
    audit = dataclasses.replace(driven, u=driven.u * 1.01).audit()
    assert audit.energy.value > 100 * audit.resolution
    assert not audit.ok({"energy": 1e-4}) and not audit.ok({"motion": 1e-4})


def test_the_worst_is_named_first_and_the_others_after_it(driven):
    wrong = spoil(spoil(driven, "q", 70, np.array([0, 1e-5, 0])), "a", 71, np.array([0, 10.0, 0]))
    with pytest.raises(AuditError, match=r"^four-bar: \w+ error .* Too large as well: .*loop error"):
        wrong.audit(raise_above=1e-7)


def test_unknown_quantities_are_refused(four_bar):
    with pytest.raises(UnknownNameError, match=r"unknown audit quantity 'loops'. Did you mean 'loop'"):
        four_bar.audit().ok({"loops": 1e-6})


def test_units_of_length_do_not_matter():
    """The same machine in millimetres' worth of metres has the same relative errors."""
    found = []
    for size in (1.0, 1e-3):
        system = sr.compile(sr.library.build("four_bar", L1=size, L2=size, L3=size, L4=1.5 * size))
        state = system.assemble({"A": 0.3}, {"A": 2.0})
        q = np.tile(state.q, (3, 1)) + np.array([[0.0], [1e-4], [0.0]])
        found.append(record(system, np.linspace(0, 1, 3), q, np.tile(state.v, (3, 1))).audit())
    assert found[0].loop.relative == pytest.approx(found[1].loop.relative, rel=1e-6)
    assert found[0].loop.value == pytest.approx(1e3 * found[1].loop.value, rel=1e-6)
    assert found[0].velocity.relative == pytest.approx(found[1].velocity.relative, rel=1e-6)


def test_the_table(driven):
    lines = str(driven.audit()).splitlines()
    assert lines[0] == "four-bar: audit of 201 rows from t = 0 to 1 s"
    assert [line.split("  ")[1] for line in lines[2:7]] == [
        "loop error", "velocity error", "acceleration error", "equations of motion", "energy balance",
    ]  # fmt: skip
    assert "work done" in lines[7] and lines[-1] == "  0 crossings, 0 events"
    assert max(map(len, lines)) < 100


@pytest.mark.slow
def test_a_long_record(driven):
    count = 100_000
    rows = np.arange(count) % 201
    arrays = {key: getattr(driven, key)[rows] for key in "qvau"}
    traj = dataclasses.replace(driven, t=np.arange(count) * 1.0, **arrays)
    audit = traj.audit()
    assert audit.rows == count and audit.motion.relative < 1e-12
    assert len(traj.sample(np.linspace(0, count - 1.0, count // 2))) == count // 2
