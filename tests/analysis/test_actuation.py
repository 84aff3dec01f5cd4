"""What inputs can do, against the papers' other conditions and at positions known to be singular."""

import numpy as np
import pytest
import scipy.linalg as sl

import sarrus as sr
from sarrus.analysis.actuation import actuation
from sarrus.analysis.mobility import allowed
from sarrus.errors import StateError

NAMES = [
    "four_bar",
    "five_bar",
    "two_arms",
    "planar_platform",
    "underactuated_chain",
    "stewart",
    "slider_crank",
    "bricard",
]


def compiled(name, **parameters):
    return sr.compile(sr.library.build(name, **parameters))


@pytest.mark.parametrize("name", NAMES)
def test_all_conditions_of_the_sheet_agree(name, rng):
    """Sheet 5: rank(PB) = n - r; N(A) ∩ R(B)⊥ = {0}; the passive rows of A' have full row rank (for selections B)."""
    system = compiled(name)
    state = system.assemble()
    found = actuation(system, state, allowed(system, state))
    x = system.terms(state)
    P = np.eye(len(x.M)) - np.linalg.pinv(x.A, rcond=1e-9) @ x.A
    rank_pb = np.linalg.matrix_rank(P @ x.B, tol=1e-9)
    assert found.driven == rank_pb
    N, left = sl.null_space(x.A, rcond=1e-9), sl.null_space(x.B.T, rcond=1e-9)
    common = N.shape[1] + left.shape[1] - np.linalg.matrix_rank(np.hstack([N, left]), tol=1e-9)
    assert found.motion_actuated == (common == 0)
    assert len(found.undriven) == common == found.mobility - found.driven
    passive = [system.layout.v_names.index(n) for n in found.passive]
    full = np.linalg.matrix_rank(x.A.T[passive], tol=1e-9) == len(passive) if passive else True
    assert found.motion_actuated == full
    inside = N - x.B @ np.linalg.lstsq(x.B, N, rcond=None)[0]
    assert found.without_constraints == (np.abs(inside).max() < 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_directions_and_internal_torques_do_what_they_say(name):
    """An undriven velocity is allowed and gets no power; an internal torque changes no acceleration."""
    system = compiled(name)
    state = system.assemble()
    found = actuation(system, state, allowed(system, state))
    x, scales = system.terms(state), np.array(system.layout.scales)
    for way in found.undriven:
        v = scales * np.array([way.get(n, 0.0) for n in system.layout.v_names])
        np.testing.assert_allclose(x.A @ v, 0, atol=1e-9)
        np.testing.assert_allclose(x.B.T @ v, 0, atol=1e-9)
    rest = system.acceleration(state)
    for way in found.internal:
        u = np.array([way.get(n, 0.0) for n in system.inputs])
        np.testing.assert_allclose(system.acceleration(state, u), rest, atol=1e-8 * max(1.0, np.abs(rest).max()))
    assert len(found.internal) == len(system.inputs) - found.driven
    assert found.unique == (not found.internal)


KINDS = {
    "four_bar": "full", "five_bar": "full", "stewart": "full", "delta": "full", "two_arms": "redundant",
    "slider_crank": "redundant", "underactuated_chain": "under", "rolling_disc": "none", "bennett": "full",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name):
    assert sr.diagnose(sr.library.build(name)).actuation.kind == KINDS[name]


# --- known singular positions ----------------------------------------------------------------------------------------
def turned(system, degrees, height=2.0):
    half = np.radians(degrees) / 2
    return system.assemble(
        {"platform.position": (0, 0, height), "platform.quat_wxyz": (np.cos(half), 0, 0, np.sin(half))}
    )


def test_stewart_turned_by_a_right_angle():
    """Base and platform of the same kind: with the platform turned by 90° the legs do not hold it."""
    system = compiled("stewart")
    d = sr.diagnose(system, turned(system, 90.0))
    assert (d.mobility, d.rank, d.mobilities.singular) == (6, 18, False)  # no constraint is lost, but control is
    assert (d.actuation.kind, d.actuation.driven, len(d.actuation.undriven)) == ("under", 5, 1)
    (way,) = d.actuation.undriven
    assert abs(way["platform.omega.z"]) > 0.1 and abs(way["platform.velocity.z"]) > 0.01  # a screw about z
    assert not any(n.startswith("leg") for n in way)  # the legs keep their lengths
    (found,) = d.find("motions-that-no-input-drives")
    assert "drive 5 of 6 motions" in found.text and "Near by, 6 of them can" in found.text
    assert d.actuation.singular_values[-1] < 1e-9


@pytest.mark.parametrize("degrees", [-50.0, 0.0, 20.0, 70.0])
def test_stewart_elsewhere(degrees):
    system = compiled("stewart")
    d = sr.diagnose(system, turned(system, degrees))
    assert (d.actuation.kind, d.actuation.driven) == ("full", 6)
    assert not d.find("motions-that-no-input-drives")


def five_bar_with_rods_in_line():
    """Elbows at distance 2 L2: cos E = (2 L2 - L0) / (2 L1), cranks mirrored."""
    system = compiled("five_bar", L2=0.4)
    E = np.arccos((0.8 - 0.4) / 0.6)
    A = np.pi - E
    q = {"A": A, "B": -A, "E": E, "D": np.pi - E}
    state = system.state([q[n] for n in system.layout.q_names])
    assert np.abs(system.terms(state).phi).max() < 1e-12
    return system, state


def tip_task(system, size):
    return {"tip": system.task("point", sr.point_on("left rod", (size, 0)))}


def test_five_bar_with_its_rods_in_line():
    """Output singularity: with both motors held the tip is loose, across the rods."""
    system, state = five_bar_with_rods_in_line()
    d = sr.diagnose(system, state, tasks=tip_task(system, 0.4))
    assert (d.mobility, d.mobilities.singular) == (2, False)
    assert (d.actuation.kind, d.actuation.driven) == ("under", 1)
    (way,) = d.actuation.undriven
    assert set(way) == {"B", "D"}  # the cranks stand still
    assert not d.actuation.tasks["tip"].actuated
    assert "Near by, 2 of them can" in d.find("motions-that-no-input-drives")[0].text


def test_five_bar_with_an_arm_stretched():
    """Input singularity: the tip cannot go on outwards, the motors still do what they like."""
    system = compiled("five_bar")
    state = system.assemble({"A": 1.2, "B": 0.0})
    d = sr.diagnose(system, state, tasks=tip_task(system, 0.5))
    assert d.actuation.driven == 2
    tip = d.actuation.tasks["tip"]
    assert (tip.movable, tip.generic, tip.actuated) == (1, 2, False)
    assert "Task `tip` has lost 1 direction(s) here" in d.find("tasks")[0].text
    ordinary = sr.diagnose(system, tasks=tip_task(system, 0.5)).actuation.tasks["tip"]
    assert (ordinary.movable, ordinary.driven, ordinary.actuated) == (2, 2, True)


def test_platform_whose_leg_lines_meet():
    """Sheet 12.5: at angle 0 the elbows lose control; elsewhere they have it."""
    for angle, driven in ((0.0, 2), (0.6, 3)):
        system = compiled("planar_platform", angle=angle)
        assert sr.diagnose(system).actuation.driven == driven


def test_task_of_an_underactuated_chain():
    """Task and motion are different questions: the tip can be driven although the first joint is passive."""
    system = compiled("underactuated_chain")
    names = list(system.layout.bodies)
    state = system.assemble({"q1": -1.7, "q2": 0.3, "q3": 1.1})
    task = {"tip": system.task("point", sr.point_on(names[-1], (1.0, 0)))}
    drive = sr.diagnose(system, state, tasks=task).actuation
    assert drive.kind == "under" and not drive.motion_actuated
    tip = drive.tasks["tip"]
    x, J = system.terms(state), task["tip"].evaluate(state)[1]
    K = J @ np.linalg.solve(x.M, x.B)  # no constraints: K = J M⁻¹ B (sheet 8)
    assert tip.driven == np.linalg.matrix_rank(K, tol=1e-9) == 2 and tip.actuated


def test_an_input_that_does_nothing():
    mech = sr.library.build("slider_crank", motors=["A"])
    mech.thruster("wall", sr.point_on("coupler", (1.0, 0)), direction="y", local=False)
    d = sr.diagnose(mech)
    assert d.actuation.idle == ("wall",) and d.actuation.kind == "redundant"
    assert "`wall`" in d.find("inputs-that-do-nothing")[0].text


def test_tasks_must_be_tasks():
    system = compiled("five_bar")
    with pytest.raises(StateError, match=r"tasks: expected system.task\(...\), got str"):
        sr.diagnose(system, tasks={"tip": "C"})
