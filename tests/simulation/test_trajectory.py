"""Trajectories: access by name, forces and energies against closed forms, segments, states, joining."""

import dataclasses
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError
from sarrus.simulation.evaluate import corrected
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory, join

G = 9.81


def record(system, t, q, v, a=None, u=None, **fields) -> Trajectory:
    u = np.zeros((len(t), system.layout.nu)) if u is None else u
    a = system.acceleration(system.state(q, v, t), u) if a is None else a
    fields.setdefault("segments", (Segment(0, {}, system.p),))
    return Trajectory(system, t, q, v, a, u, Status("finished", "", t[-1]), Stats("exact", steps=len(t)), **fields)


def around(system, start, reach, count=9) -> Trajectory:
    """A path through assembled states near `start`, with true accelerations; not a motion in time."""
    rng = np.random.default_rng(1)
    layout = system.layout
    t = np.linspace(0, 1, count)
    steps = np.linspace(0, reach, count)[:, None] * rng.normal(size=layout.nv)
    q = system.retract(np.tile(start.q, (count, 1)), steps)
    v = np.tile(rng.normal(size=layout.nv), (count, 1))
    q, v, _ = corrected(system, t, q, v, 0 * v, np.ones(layout.m))
    return record(system, t, q, v, u=rng.normal(size=(count, layout.nu)))


@pytest.fixture(scope="module")
def four_bar() -> Trajectory:
    system = sr.compile(sr.library.build("four_bar"))
    return around(system, system.assemble({"A": 0.4}), 0.05)


@pytest.fixture(scope="module")
def stewart() -> Trajectory:
    system = sr.compile(sr.library.build("stewart"))
    return around(system, system.assemble(), 0.02)


@pytest.fixture(scope="module")
def circle() -> sr.System:
    return sr.compile(sr.library.build("particle_on_circle"))


def swing(circle, t=None):
    """A state of the particle at any angles and rates, as a record."""
    t = np.linspace(0, 1, 12) if t is None else t
    angle, rate = np.sin(2 * t) + 0.3, 2 * np.cos(2 * t)
    n, e = np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([-np.sin(angle), np.cos(angle)], 1)
    bend = -G * np.cos(angle)[:, None] * e - (rate**2)[:, None] * n
    return record(circle, t, n, rate[:, None] * e, bend), angle, rate


# --- names -----------------------------------------------------------------------------------------------------------
def test_coordinates_velocities_accelerations_and_inputs(four_bar):
    x = four_bar
    for k, name in enumerate("ABC"):
        for suffix, array in (("", x.q), (".q", x.q), (".v", x.v), (".a", x.a)):
            np.testing.assert_array_equal(x[name + suffix], array[:, k])
    np.testing.assert_array_equal(x["A.u"], x.u[:, 0])
    np.testing.assert_array_equal(x["t"], x.t)
    x["A"][:] = 7.0
    assert not np.any(x.q == 7.0)  # a copy


def test_parts_of_joints_with_several_coordinates(stewart):
    x = stewart
    np.testing.assert_array_equal(x["platform"], x.q[:, :7])
    np.testing.assert_array_equal(x["platform.quat_wxyz"], x.q[:, 3:7])
    np.testing.assert_array_equal(x["platform.omega.y"], x.v[:, 4])
    np.testing.assert_array_equal(x["platform.omega"], x.v[:, 3:6])
    np.testing.assert_array_equal(x["platform.omega.a"], x.a[:, 3:6])
    np.testing.assert_array_equal(x["platform.v"], x.v[:, :6])
    np.testing.assert_array_equal(x["leg2.u"], x.u[:, 2])


def test_coordinates_come_before_frames_of_the_same_name():
    mech = sr.Mechanism("tilted raft")
    base = mech.body("base", 1.0, inertia=np.eye(3))
    raft = mech.body("raft", 1.0, inertia=np.eye(3))
    mech.revolute("hinge", mech.ground, base, "y")
    mech.free("raft", raft, parent=base, initial=(1, 2, 3, 1, 0, 0, 0))
    system = sr.compile(mech)
    state = system.assemble({"hinge": np.pi / 2})
    traj = record(system, np.zeros(1), state.q[None], state.v[None])
    np.testing.assert_allclose(traj["raft.position"], [[1, 2, 3]])  # in the base
    np.testing.assert_allclose(traj["frame.raft.position"], [[3, 2, -1]], atol=1e-14)  # in the world


@pytest.mark.parametrize("which", ["four_bar", "stewart"])
def test_a_trajectory_knows_every_name_that_a_state_knows(which, request):
    traj = request.getfixturevalue(which)
    x = traj.system.layout
    stems = {".".join(n.split(".")[:k]) for n in (*x.q_names, *x.v_names) for k in range(1, 4)}
    for name in [s + suffix for s in sorted(stems) for suffix in ("", ".q", ".v")]:
        try:
            expected = [traj.state(i)[name] for i in range(len(traj))]
        except UnknownNameError:
            continue
        np.testing.assert_array_equal(traj[name], np.array(expected))


@pytest.mark.parametrize("which", ["four_bar", "stewart"])
def test_all_names_listed_can_be_asked_for(which, request):
    traj = request.getfixturevalue(which)
    names = traj.names()
    assert len(names) == len(set(names)) > 20
    for name in names:
        assert len(traj[name]) == len(traj), name


def test_forces_by_constraint_and_by_row(stewart):
    x = stewart.system.layout
    for group in x.groups:
        part = x.group_rows(group)
        for name in (f"{group}.force", f"loop.{group}.force"):
            np.testing.assert_array_equal(stewart[name], stewart.lam[:, part])
        row = x.rows[part.start + 1]
        np.testing.assert_array_equal(stewart[f"{row.name}.force"], stewart.lam[:, part.start + 1])
    total = sum(stewart[f"{group}.generalised"] for group in x.groups)
    terms = stewart.system.terms(stewart.system.state(stewart.q, stewart.v, stewart.t))
    np.testing.assert_allclose(total, np.einsum("nmk,nm->nk", terms.A, stewart.lam), atol=1e-9)
    np.testing.assert_array_equal(stewart["loop.top0.generalised"], stewart["top0.generalised"])


def test_poses(four_bar):
    positions, rotations = four_bar.poses()["coupler"]
    A, B = four_bar["A"], four_bar["B"]
    np.testing.assert_allclose(four_bar["coupler.position"], np.stack([np.cos(A), 0 * A, np.sin(A)], 1), atol=1e-14)
    np.testing.assert_array_equal(positions, four_bar["coupler.position"])
    np.testing.assert_array_equal(rotations, four_bar["coupler.rotation"])
    np.testing.assert_allclose(rotations[:, 0, 0], np.cos(A + B), atol=1e-14)
    assert list(four_bar.poses()) == list(four_bar.system.layout.frames)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("crank.positon", "crank.position"), ("D.forces", "D.force"), ("energy.kinetik", "energy.kinetic"), ("a", "'A'")],
)
def test_unknown_names_list_what_is_near(four_bar, name, hint):
    with pytest.raises(UnknownNameError, match="unknown quantity") as error:
        four_bar[name]
    assert hint in str(error.value)


def test_numbers_are_no_names(four_bar):
    with pytest.raises(UnknownNameError, match="unknown quantity 3"):
        four_bar[3]


# --- forces ----------------------------------------------------------------------------------------------------------
def test_the_force_on_a_particle_in_closed_form(circle):
    traj, angle, rate = swing(circle)
    inward = rate**2 - G * np.sin(angle)  # m v²/R minus the weight's share along the normal
    n = np.stack([np.cos(angle), np.sin(angle)], 1)
    np.testing.assert_allclose(traj["circle.generalised"], -inward[:, None] * n, atol=1e-12)
    np.testing.assert_allclose(np.abs(traj["circle.force"][:, 0]), np.abs(inward), atol=1e-12)


@pytest.mark.parametrize("name", ["four_bar", "stewart", "parallelogram", "bricard", "rolling_disc"])
def test_multipliers_agree_with_the_solve_also_where_rows_are_redundant(name):
    system = sr.compile(sr.library.build(name))
    traj = around(system, system.assemble(), 0.01 if name == "stewart" else 0.0)
    solved = system.solve(system.state(traj.q, traj.v, traj.t), traj.u)
    scale = 1 + np.abs(solved.lam).max()
    np.testing.assert_allclose(traj.lam, solved.lam, atol=1e-9 * scale)
    assert traj.lam is traj.lam  # computed once


def through_the_singularity(count=41):
    """The equal-length slider-crank on its slider branch, q2 = 2π - 2 q1, at A = π/2 exactly in the middle row."""
    system = sr.compile(sr.library.build("slider_crank"))
    q1 = np.pi / 2 + np.linspace(-0.2, 0.2, count)
    q1[count // 2] = np.pi / 2
    rate = -1.5 + 0.1 * q1
    s, c = np.sin(q1), np.cos(q1)
    bend = -(4 * s * c * rate**2 + G * c) / (1 + 4 * s**2)  # the reduced equation of motion
    q, v, a = (np.stack([x, y], 1) for x, y in ((q1, 2 * np.pi - 2 * q1), (rate, -2 * rate), (bend, -2 * bend)))
    return record(system, np.linspace(0, 1, count), q, v, a), q1


def test_multipliers_stay_finite_through_a_singular_position():
    traj, q1 = through_the_singularity()
    assert np.isfinite(traj.lam).all()
    middle = len(q1) // 2
    assert traj.lam[middle] == 0.0  # the row has vanished
    force = traj["slider.generalised"]
    np.testing.assert_allclose(force[:, 0], 2 * force[:, 1], atol=1e-11)  # along [2, 1]
    away = np.delete(np.arange(len(q1)), middle)
    s, c, rate = np.sin(q1[away]), np.cos(q1[away]), traj.v[away, 0]
    bend = traj.a[away, 0]
    # the second mass moves along x with x = 2 cos A and is held up by the slider; moment about the crank pin
    xdd = -2 * (s * bend + c * rate**2)
    lift = G + xdd * s / c
    np.testing.assert_allclose(traj["slider.force"][:, 0][away], lift, rtol=1e-9, atol=1e-9)


def test_constraints_switched_off_carry_nothing(circle):
    half, _, _ = swing(circle)
    q = np.concatenate([half.q, half.q * 1.5])
    v = np.concatenate([half.v, half.v])
    a = np.concatenate([half.a, np.tile([0, -G], (12, 1))])
    t = np.concatenate([half.t, 1 + half.t])
    segments = (Segment(0, {"circle": True}, circle.p), Segment(12, {"circle": False}, circle.p))
    traj = record(circle, t, q, v, a, segments=segments)
    np.testing.assert_allclose(traj.lam[:12], half.lam, atol=1e-13)
    np.testing.assert_array_equal(traj.lam[12:], 0.0)
    assert traj.residuals.loop[12:].max() == 0.0
    assert traj.residuals.rank.tolist() == [1] * 12 + [0] * 12


def test_each_segment_has_its_own_parameters():
    system = sr.compile(sr.library.build("pendulum"))
    heavy = system.with_parameters(m=3.0, L=2.0)
    t = np.array([0.0, 1.0, 1.0, 2.0])
    q, v = np.full((4, 1), 0.3), np.full((4, 1), 2.0)
    segments = (Segment(0, {}, system.p), Segment(2, {}, heavy.p))
    traj = record(system, t, q, v, q * 0, segments=segments)
    kinetic = [0.5 * 4, 0.5 * 4, 0.5 * 3 * 4 * 4, 0.5 * 3 * 4 * 4]
    np.testing.assert_allclose(traj["energy.kinetic"], kinetic)
    np.testing.assert_allclose(traj["energy.potential"], G * np.sin(0.3) * np.array([1, 1, 6, 6]))
    np.testing.assert_allclose(traj["tip.position"][:, 0], np.cos(0.3) * np.array([1, 1, 2, 2]))
    assert [(rows, machine.parameters["L"]) for rows, _, machine in traj.pieces()] == [
        (slice(0, 2), 1.0),
        (slice(2, 4), 2.0),
    ]


def test_energies_add_up(four_bar):
    energy = four_bar.energy
    one = four_bar.system.energy(four_bar.state(4))
    for name in ("kinetic", "potential", "dissipated", "applied", "total"):
        assert getattr(energy, name)[4] == pytest.approx(getattr(one, name), rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(four_bar[f"energy.{name}"], getattr(energy, name))


# --- states and text -------------------------------------------------------------------------------------------------
def test_states_at_rows(four_bar):
    assert four_bar.final.t == 1.0
    np.testing.assert_array_equal(four_bar.final.q, four_bar.q[-1])
    np.testing.assert_array_equal(four_bar.state(2).v, four_bar.v[2])
    assert four_bar.state(-9).t == 0.0
    for index in (9, -10):
        with pytest.raises(StateError, match=rf"row {index} of a trajectory with 9 rows; use at\(t\) for times"):
            four_bar.state(index)


def test_text(four_bar):
    assert repr(four_bar) == "<Trajectory of 'four-bar': 9 rows, t = 0 to 1 s, finished>"
    crossing = Crossing(0.5, four_bar.q[4], four_bar.v[4], np.array([1.0, 0.0]), 1, 2)
    event = EventRecord("top", 0.25, four_bar.q[2], four_bar.v[2], 1)
    text = str(dataclasses.replace(four_bar, crossings=(crossing,) * 7, events=(event,)))
    assert "Finished at t = 1 s." in text and "exact: 9 steps" in text
    assert text.count("rank 1 instead of 2") == 5 and "… and 2 more" in text
    assert "t = 0.25 s: top (rising)" in text
    assert "crossings" not in str(four_bar)


def test_heavy_packages_wait_until_they_are_needed():
    heavy = "{'xarray', 'pandas', 'matplotlib', 'sarrus.io.trajectory_files', 'sarrus.simulation.audit'}"
    code = f"import sarrus.simulation.trajectory, sys; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- joining ---------------------------------------------------------------------------------------------------------
def parts(traj, *edges):
    """Cut a record at rows that both parts keep."""
    for low, high in pairwise(edges):
        rows = slice(low, high + 1)
        arrays = {key: getattr(traj, key)[rows] for key in "tqvau"}
        yield dataclasses.replace(traj, **arrays, status=Status("finished", "", float(arrays["t"][-1])))


def test_joining_undoes_cutting(circle):
    traj, _, _ = swing(circle)
    first, second = parts(traj, 0, 5, 11)
    whole = join(first, second)
    for key in "tqvau":
        np.testing.assert_array_equal(getattr(whole, key), getattr(traj, key))
    assert len(whole.segments) == 1 and whole.status.t == 1.0
    assert whole.stats.steps == 24 and whole.settings == {}


def test_joining_shifts_segments_and_keeps_what_happened(circle):
    traj, _, _ = swing(circle)
    first, second = parts(traj, 0, 5, 11)
    event = EventRecord("top", 0.25, traj.q[2], traj.v[2], 1)
    first = dataclasses.replace(
        first, events=(event,), settings={"rtol": 1e-6}, stats=Stats("rk4", steps=5, mean_step=1.0)
    )
    later = (*second.segments, Segment(3, {"circle": False}, circle.p))
    stats = Stats("dop853", 1e-8, steps=15, mean_step=3.0, smallest_step=0.1, seconds=2.0)
    second = dataclasses.replace(second, segments=later, events=(event, event), stats=stats)
    whole = join(first, second)
    assert [(s.start, dict(s.active)) for s in whole.segments] == [(0, {}), (8, {"circle": False})]
    assert len(whole.events) == 3
    assert whole.stats == Stats("rk4, then dop853", 1e-8, 20, mean_step=2.5, smallest_step=0.1, seconds=2.0)
    assert whole.settings == {"before": [{"rtol": 1e-6}]}


@pytest.mark.parametrize("what", ["u", "v", "active", "p"])
def test_what_changes_where_they_meet_stays_as_two_rows(what):
    system = sr.compile(sr.library.build("slider_crank"))
    traj = around(system, system.assemble(), 0.01)
    first, second = parts(traj, 0, 4, 8)
    if what in "uv":
        second = dataclasses.replace(second, **{what: getattr(second, what) + 1})
    else:
        p = system.p * 2 if what == "p" else system.p
        second = dataclasses.replace(second, segments=(Segment(0, {"slider": what == "p"}, p),))
    whole = join(first, second)
    assert len(whole) == 10
    assert whole.t[4] == whole.t[5]
    assert [s.start for s in whole.segments] == [0, 5]


def test_only_what_follows_can_be_joined(circle, four_bar):
    traj, _, _ = swing(circle)
    first, second = parts(traj, 0, 5, 11)
    with pytest.raises(
        StateError, match=r"ends at t = 1 s, the second starts at 0 s; start the second from `first.final`"
    ):
        join(second, first)
    with pytest.raises(
        StateError, match=r"belongs to 'particle on a circle', not to 'four-bar' .* expected one machine"
    ):
        join(first, four_bar)
    moved = dataclasses.replace(second, q=second.q + np.array([0.1, 0.0]))
    with pytest.raises(StateError, match=r"the second trajectory starts elsewhere \('x' differs by 0.1 of its scale\)"):
        join(first, moved)
