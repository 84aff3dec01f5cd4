"""Simulations against the reference motions of the IFToMM/LIM-UDC library and of the IVP test set.

Acceptance: relative error at most 1e-8 with rtol 1e-10, the error being compared with the largest value among the
quantities of the same kind at that time. Sources stand beside the numbers in `oracles.motion_data`.

Left out, because they are discretised continua and the core knows no flexible bodies: the spin-up of a flexible arm,
the flexible pendulum, the elastica, the Princeton beam and the block of bricks. The bicycle has a file of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import (
    ANDREWS,
    cartesian_pendulum,
    columns,
    elastic_crank,
    library,
    quaternion,
    relative,
    rrr,
    rrr_coordinates,
    stewart_start,
)

import sarrus as sr
from oracles import motion
from oracles import motion_data as data

RTOL, LIMIT = 1e-10, 1e-8
ADAPTIVE = ("dop853", "dopri5", "radau")
adaptive = pytest.mark.parametrize("method", ADAPTIVE)


def reference(table: dict, until: float = np.inf) -> tuple[list[float], np.ndarray]:
    """Times and values of a table."""
    times = [t for t in table if t <= until]
    return times, np.array([table[t] for t in times])


def run(system: sr.System, start: sr.State, times: list[float], method: str = "dop853", **options) -> sr.Trajectory:
    traj = sr.simulate(system, start, times[-1], method=method, output=times, **{"rtol": RTOL, **options})
    assert traj.status.ok, str(traj.status)
    np.testing.assert_array_equal(traj.t, times)
    return traj


def on_circle(angle: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Position and velocity of the end of a bar of 1 m, the angle from x towards z."""
    return np.stack([np.cos(angle), np.sin(angle), -np.sin(angle) * rate, np.cos(angle) * rate], axis=1)


def close(found: np.ndarray, expected: np.ndarray, half: int, limit: float = LIMIT) -> None:
    """Positions (the first `half` columns) and velocities, each kind against its own size."""
    errors = relative(found[:, :half], expected[:, :half]), relative(found[:, half:], expected[:, half:])
    assert max(errors) <= limit, f"relative errors of positions {errors[0]:.2e}, of velocities {errors[1]:.2e}"


# --- A01: simple pendulum ------------------------------------------------------------------------------------------
@adaptive
def test_pendulum_in_joint_coordinates(method):
    system = library("pendulum")
    times, expected = reference(data.PENDULUM, 10.0)
    traj = run(system, system.assemble(), times, method)
    close(on_circle(traj["A"], traj["A.v"]), expected, 2)


@adaptive
@pytest.mark.parametrize("root", [False, True], ids=["half the square", "distance"])
def test_pendulum_in_cartesian_coordinates(method, root):
    """Also its multiplier: the tension is 3 m g |y|, pulling along -A."""
    system = cartesian_pendulum(root=root)
    times, expected = reference(data.PENDULUM, 10.0)
    traj = run(system, system.state((1.0, 0.0)), times, method)
    close(np.c_[traj.q, traj.v], expected, 2)
    tension = 3 * motion.G * expected[:, 1:2]
    assert np.max(np.abs(traj["rod.force"] - tension)) <= LIMIT * 3 * motion.G
    assert np.ptp(traj["energy.total"]) < 5e-5, "criterion of the IFToMM library [J]"


def test_pendulum_as_a_particle_of_the_library():
    system = library("particle_on_circle")
    times, expected = reference(data.PENDULUM, 10.0)
    traj = run(system, system.assemble(), times)
    close(np.c_[traj["x"], traj["z"], traj["x.v"], traj["z.v"]], expected, 2)


@adaptive
def test_nearly_inverted_pendulum_and_its_multiplier(method):
    """It starts 0.14 rad from the unstable equilibrium: small errors grow by e^3.1 in a second there."""
    system = cartesian_pendulum()
    times, expected = reference(data.PENDULUM_NEARLY_INVERTED)
    traj = run(system, system.state((np.sin(3.0), -np.cos(3.0))), times, method)
    close(np.c_[traj.q, traj.v], expected[:, :4], 2)
    np.testing.assert_allclose(-traj["rod.force"][:, 0], expected[:, 4], rtol=LIMIT)


@adaptive
def test_index_three_pendulum_of_the_mebdfdae_driver(method):
    system = cartesian_pendulum(1.0)
    traj = run(system, system.state((1.0, 0.0), (0.0, 1.0)), [1.0], method)
    expected = np.array(data.PENDULUM_INDEX3)
    close(np.r_[traj.q[-1], traj.v[-1]][None], expected[None, :4], 2)
    np.testing.assert_allclose(-traj["rod.force"][-1], expected[4:], rtol=LIMIT)


def test_pendulum_for_2000_seconds_meets_the_criteria_of_the_library():
    """4000 steps; the RMS of the relative errors of x and y (compared with at least 1e-3) stays below 1e-3."""
    times = 0.5 * np.arange(1, 4001)
    angle, _ = motion.pendulum(np.pi / 2, np.sqrt(motion.G), times)
    expected = np.c_[np.sin(angle), -np.cos(angle)]
    system = cartesian_pendulum()
    traj = run(system, system.state((1.0, 0.0)), times.tolist(), rtol=1e-12)
    error = (traj.q - expected) / np.maximum(np.abs(expected), 1e-3)
    assert np.max(np.sqrt(np.mean(error**2, axis=1))) < 1e-3
    np.testing.assert_allclose(traj.q[-1], data.PENDULUM[2000.0][:2], atol=1e-4)
    assert np.ptp(traj["energy.total"]) < 5e-5


# --- A02: N four-bars ----------------------------------------------------------------------------------------------
def four_bars(n: int, t_end: float, steps: int, method: str, **options):
    """B0 at equal steps, and its closed form."""
    system = library("n_four_bar", n=n)
    start = system.assemble({"A0": np.pi / 2}, velocities={"A0": -1.0})
    times = np.linspace(0, t_end, steps + 1)[1:]
    inertia, weight = (n + 1) / 3 + n, motion.G * ((n + 1) / 2 + n)
    # the closed form counts its angle from the vertical: weight cos s
    angle = motion.turning_pendulum(inertia, weight, 0.0, 1.0, times)
    rate = np.sqrt(1 + 2 * weight / inertia * (1 - np.cos(angle)))
    expected = np.stack([np.sin(angle), np.cos(angle), np.cos(angle) * rate, -np.sin(angle) * rate], axis=1)
    traj = run(system, start, times.tolist(), method, **options)
    return traj, on_circle(traj["A0"], traj["A0.v"]), expected


def meets_the_criterion(found: np.ndarray, expected: np.ndarray) -> None:
    """Gonzalez et al.: high precision, 1e-3, relative to at least 1e-3; RMS over the quantities, worst step."""
    error = (found - expected) / np.maximum(np.abs(expected), 1e-3)
    assert np.max(np.sqrt(np.mean(error**2, axis=1))) < 1e-3


@adaptive
def test_two_four_bars(method):
    traj, found, expected = four_bars(2, 10.0, 400, method)
    np.testing.assert_allclose(expected[-1], data.FOUR_BARS_2[10.0], atol=1e-11)
    meets_the_criterion(found, expected)
    at = [round(t * 40) - 1 for t in data.FOUR_BARS_2]
    close(found[at], np.array(list(data.FOUR_BARS_2.values())), 2)
    close(found, expected, 2)
    assert len(traj.crossings) == 10, "singular passes in 10 s"
    # drift of the best published run (h = 1.25e-4) is 1.8e-5 J
    assert np.ptp(traj["energy.total"]) < 1e-6


@pytest.mark.slow  # its equations take a while to compile
def test_forty_four_bars():
    traj, found, expected = four_bars(40, 20.0, 400, "dop853")
    np.testing.assert_allclose(expected[-1], data.FOUR_BARS_40[20.0], atol=1e-11)
    meets_the_criterion(found, expected)
    at = [round(t * 20) - 1 for t in data.FOUR_BARS_40]
    close(found[at], np.array(list(data.FOUR_BARS_40.values())), 2, 5e-8)
    assert len(traj.crossings) == 20, "singular passes in 20 s"
    assert np.ptp(traj["energy.total"]) < 1.8e-5


# --- A03 and Bari: Andrews' squeezer -------------------------------------------------------------------------------
@adaptive
def test_andrews_squeezer_of_the_test_set(method):
    """All seven angles, each by itself; velocities, accelerations, multipliers."""
    system = library("andrews")
    times, _ = reference({t: 0.0 for t in data.ANDREWS})
    traj = run(system, system.assemble({"Theta": 0.0}), times, method)
    for k, (q, v, a, lam) in enumerate(data.ANDREWS.values()):
        np.testing.assert_allclose(columns(traj, ANDREWS)[k], q, rtol=LIMIT, err_msg=f"angles at {times[k]} s")
        v_found, a_found = (columns(traj, [f"{n}.{s}" for n in ANDREWS])[k] for s in "va")
        assert relative(v_found, v) <= LIMIT, f"velocities at {times[k]} s: {relative(v_found, v):.2e}"
        assert relative(a_found, a) <= 10 * LIMIT, f"accelerations at {times[k]} s: {relative(a_found, a):.2e}"
        forces = traj.lam[k][list(system.kept)]
        assert relative(np.sort(forces), np.sort(lam)) <= 10 * LIMIT, f"multipliers at {times[k]} s"


def test_andrews_squeezer_agrees_with_the_published_digits():
    """These are right to about ten digits: the published run ended 1.005e-12 s late, times 1424 rad/s."""
    system = library("andrews")
    traj = run(system, system.assemble({"Theta": 0.0}), [0.03])
    np.testing.assert_allclose(columns(traj, ANDREWS)[0], data.ANDREWS_PUBLISHED, rtol=LIMIT)


@adaptive
def test_andrews_squeezer_of_the_iftomm_library(method):
    system = library("andrews")
    start = system.assemble({"beta": -0.062}, near={"Theta": 0.0})
    np.testing.assert_allclose([start[n] for n in ANDREWS], data.ANDREWS_A03_START, atol=1e-12)
    traj = sr.simulate(system, start, 0.05, method=method, rtol=RTOL)
    np.testing.assert_allclose(columns(traj, ANDREWS)[-1], data.ANDREWS_A03, rtol=LIMIT)
    # its accuracy: energy balance dU = T + V - E0 - torque (beta - beta0), against the work of about 1.1 J
    balance = traj["energy.total"] - traj["energy.total"][0] - 0.033 * (traj["beta"] - traj["beta"][0])
    assert np.max(np.abs(balance)) < 1e-8


# --- test set: slider crank with an elastic rod --------------------------------------------------------------------
@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_slider_crank_with_an_elastic_rod(method):
    """Modes of some 1e-5 m at 1e3 to 1e4 1/s; absolute tolerances as small as they are. Seven quantities."""
    system = elastic_crank()
    modes = dict.fromkeys(("q1", "q2", "q3", "q4"), 1e-15)
    times = list(data.CRANK)
    traj = run(system, system.state(*data.CRANK_START), times, method, atol=modes)
    for k, (q, v) in enumerate(data.CRANK.values()):
        np.testing.assert_allclose(traj.q[k, :3], q[:3], rtol=LIMIT, err_msg=f"at {times[k]} s")
        modes_off = relative(traj.q[k, 3:], q[3:])
        assert modes_off <= LIMIT, f"modes at {times[k]} s: {modes_off:.1e}"
        rates_off = relative(traj.v[k], v)
        assert rates_off <= LIMIT, f"rates at {times[k]} s: {rates_off:.1e}"
    np.testing.assert_allclose(traj["phi1"], 150.0 * np.array(times), rtol=1e-14)


# --- A04: Bricard --------------------------------------------------------------------------------------------------
@adaptive
@pytest.mark.parametrize("slender", [False, True], ids=["square bars", "slender bars"])
def test_bricard(slender, method):
    system = library("bricard", slender=slender)
    times, expected = reference(data.BRICARD_SLENDER if slender else data.BRICARD)
    start = system.assemble()
    traj = run(system, start, times, method)
    error = np.max(np.abs(traj["P3.position"] - expected))
    assert error <= LIMIT, f"P3 off by {error:.2e} m"
    assert np.max(np.abs(traj["energy.total"] - system.energy(start).total)) < 1e-8, "energy drift [J], of 4.55 J"


# --- A05: stiff flyball governor -----------------------------------------------------------------------------------
@adaptive
def test_flyball_governor(method):
    system = library("flyball")
    start = system.assemble(velocities={"shaft": 2 * np.pi, "slider": 0.0, "rod1": 0.0, "rod2": 0.0})
    times, expected = reference(data.FLYBALL)
    traj = run(system, start, times, method)
    names = ("shaft", "slider", "rod1", "shaft.v", "slider.v", "rod1.v")
    found = columns(traj, names)
    close(found, expected, 3)
    np.testing.assert_allclose(traj["slider"], expected[:, 1], rtol=LIMIT)  # its quantity
    np.testing.assert_allclose(traj["rod1"], traj["rod2"], atol=1e-9)
    row = system.layout.find("shaft", "v").start
    spin = [system.terms(traj.state(k)).M[row] @ traj.v[k] for k in range(len(traj))]
    np.testing.assert_allclose(spin, 53.8689986584184, rtol=LIMIT)


def test_the_implicit_method_is_not_held_back_by_stiffness():
    """Rates of 2.7e4 1/s and 20 1/s: over 10 s the explicit methods need about 2.7e5/3.3 steps, radau few."""
    system = library("flyball")
    start = system.assemble(velocities={"shaft": 2 * np.pi, "slider": 0.0, "rod1": 0.0, "rod2": 0.0})
    implicit = sr.simulate(system, start, 10.0, method="radau", rtol=1e-6)
    explicit = sr.simulate(system, start, 10.0, method="dopri5", rtol=1e-6)
    assert implicit.stats.steps < explicit.stats.steps / 20, (implicit.stats.steps, explicit.stats.steps)
    np.testing.assert_allclose(implicit["slider"][-1], data.FLYBALL[10.0][1], rtol=1e-4)


# --- parallel robots -----------------------------------------------------------------------------------------------
@adaptive
def test_planar_three_rrr(method):
    system = rrr()
    start = system.assemble({"platform.x": 0.02, "platform.z": -0.01, "platform.angle": 0.1})
    times = list(data.RRR)
    traj = run(system, start, times, method, inputs=[0.05, 0.0, -0.03])
    q, v = rrr_coordinates(traj)
    np.testing.assert_allclose(rrr_coordinates(start_row(traj, start))[0][0], data.RRR_START, atol=1e-12)
    for k, (q_ref, v_ref) in enumerate(data.RRR.values()):
        assert relative(q[k], q_ref) <= LIMIT, f"angles at {times[k]} s: {relative(q[k], q_ref):.2e}"
        assert relative(v[k], v_ref) <= LIMIT, f"rates at {times[k]} s: {relative(v[k], v_ref):.2e}"
        pose = relative(q[k, 6:], q_ref[6:])
        assert pose <= LIMIT, f"platform at {times[k]} s: {pose:.2e}"


def start_row(traj, start):
    """The start as something that can be asked by name like a trajectory."""
    return {name: np.atleast_1d(start[name]) for name in [*traj.system.layout.q_names]} | {
        f"{name}.v": np.atleast_1d(start[f"{name}.v"]) for name in traj.system.layout.v_names
    }


@adaptive
def test_stewart_platform(method):
    system = library("stewart")
    times = list(data.STEWART)
    forces = [3000.0 + 100.0 * i for i in range(6)]
    traj = run(system, stewart_start(system), times, method, inputs=forces)
    for k, (position, euler, legs, rates) in enumerate(data.STEWART.values()):
        assert relative(traj["platform.position"][k], position) <= LIMIT
        assert relative([traj[f"leg{i}"][k] for i in range(6)], legs) <= LIMIT
        speed = relative(traj["platform.velocity"][k], rates[:3])
        assert speed <= LIMIT, f"velocity at {times[k]} s: {speed:.2e}"
        quat, expected = traj["platform.quat_wxyz"][k], quaternion(*euler)
        assert np.max(np.abs(quat - np.sign(quat @ expected) * expected)) <= LIMIT
