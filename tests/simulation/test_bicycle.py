"""The uncontrolled bicycle of Whipple, built from four bodies and two rolling wheels (nonholonomic constraints).

Small motions are compared with the linear equations of Meijaard, Papadopoulos, Ruina and Schwab (Proc. R. Soc. A 463,
2007), M q'' + v C1 q' + (g K0 + v² K2) q = 0 for lean and steer; large ones with the criterion of the IFToMM library.
Axes: x forward, y left, z up; the source has y right, z down, which turns the sign of products of inertia with x z and
leaves lean and steer as they are.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

import sarrus as sr
from sarrus.model.features import plane_on, revolute_on

BASE, TRAIL, TILT, GRAVITY = 1.02, 0.08, np.pi / 10, 9.81
REAR, FRONT = 0.3, 0.35  # radii
MASS = np.array([[80.81722, 2.3194133220870907], [2.3194133220870907, 0.2978418819968554]])
C1 = np.array([[0.0, 33.86641391492494], [-0.8503564145697845, 1.6854039739755957]])
K0 = np.array([[-80.95, -2.599516852498716], [-2.599516852498716, -0.8032948845861767]])
K2 = np.array([[0.0, 76.5973458957322], [0.0, 2.65431523794604]])


def tensor(xx: float, yy: float, zz: float, xz: float = 0.0) -> list[list[float]]:
    return [[xx, 0, -xz], [0, yy, 0], [-xz, 0, zz]]


@cache
def bicycle() -> sr.System:
    mech = sr.Mechanism("bicycle")
    axis = BASE + TRAIL  # the steering axis meets the ground here
    main = mech.body("main", 85.0, com=(0.3, 0, 0.9), inertia=tensor(9.2, 11.0, 2.8, 2.4))
    rear = mech.body("rear wheel", 2.0, inertia=tensor(0.0603, 0.12, 0.0603))
    fork = mech.body("fork", 4.0, com=(0.9 - axis, 0, 0.7), inertia=tensor(0.05892, 0.06, 0.00708, -0.00756))
    front = mech.body("front wheel", 3.0, inertia=tensor(0.1405, 0.28, 0.1405))
    mech.free("main", main)
    mech.revolute("rear", main, rear, axis="y", at=(0, 0, REAR))
    mech.revolute("steer", main, fork, axis=(np.sin(TILT), 0, -np.cos(TILT)), at=(axis, 0, 0))
    mech.revolute("front", fork, front, axis="y", at=(-TRAIL, 0, FRONT))
    ground = plane_on(mech.ground, (0, 0, 0), "z")
    mech.rolling("rear tyre", revolute_on(rear, (0, 0, 0), "y"), REAR, ground)
    mech.rolling("front tyre", revolute_on(front, (0, 0, 0), "y"), FRONT, ground)
    return sr.compile(mech)


def riding(speed: float, roll_rate: float, steer_rate: float = 0.0) -> sr.State:
    """Upright and straight."""
    return bicycle().assemble(
        {"main.position": (0, 0, 0), "main.quat_wxyz": (1, 0, 0, 0), "steer": 0.0},
        velocities={"main.velocity.x": speed, "main.omega.x": roll_rate, "steer": steer_rate},
    )


def linear(speed: float) -> np.ndarray:
    """Matrix of the linear equations for (lean, steer, their rates)."""
    return np.block([
        [np.zeros((2, 2)), np.eye(2)],
        [-np.linalg.solve(MASS, GRAVITY * K0 + speed**2 * K2), -np.linalg.solve(MASS, speed * C1)],
    ])  # fmt: skip


def test_linear_equations_have_the_published_eigenvalues():
    found = np.sort_complex(np.linalg.eigvals(linear(5.0)))
    expected = [-14.078389692798, -0.775341882196 - 4.464867713788j, -0.775341882196 + 4.464867713788j, -0.322866429004]
    np.testing.assert_allclose(found, np.sort_complex(expected), rtol=1e-10)


def test_mobility():
    """Nine velocities, two holonomic and four nonholonomic rows: lean, steer and forward speed are free."""
    system = bicycle()
    report = system.rank(riding(5.0, 0.0))
    assert (system.layout.nv, system.layout.m, report.rank) == (9, 6, 6)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
@pytest.mark.parametrize("speed", [3.0, 4.6, 5.0, 8.0])  # weave unstable; stable; stable; capsize unstable
@pytest.mark.parametrize(("roll", "turn"), [(1.0, 0.0), (0.0, 1.0)])
def test_small_motions(speed, roll, turn, method):
    """Deviations fall with the square of the amplitude, by symmetry: 1e-5 rad/s leave 1e-7 at most."""
    system, size, times = bicycle(), 1e-5, np.linspace(0.05, 2.0, 40)
    start = riding(speed, roll * size, turn * size)
    traj = sr.simulate(system, start, 2.0, method=method, rtol=1e-11, atol=1e-13, output=times)
    lean, steer = np.arcsin(traj["main.rotation"][:, 2, 1]), traj["steer"]
    twin = np.array([expm(linear(speed) * t) @ (0, 0, roll * size, turn * size) for t in times])
    for found, expected in ((lean, twin[:, 0]), (steer, twin[:, 1]), (traj["steer.v"], twin[:, 3])):
        error = np.max(np.abs(found - expected)) / np.max(np.abs(expected))
        assert error < 1e-6, f"{error:.1e}"


@pytest.mark.parametrize("method", ["dop853", "dopri5", "radau"])
@pytest.mark.parametrize(("speed", "roll_rate"), [(4.0, 0.05), (4.6, 0.5), (8.0, 0.05)], ids=["M1", "M2", "M3"])
def test_manoeuvres_meet_the_criterion_of_the_library(speed, roll_rate, method):
    """100 (max E - min E) / E0 < 1e-3 over 20 s; here 1e-6 at rtol 1e-8, wheels on the ground to rounding."""
    system = bicycle()
    until = 4.0 if speed == 4.0 else 20.0  # below the weave speed it falls over after that
    traj = sr.simulate(system, riding(speed, roll_rate), until, method=method, rtol=1e-8)
    assert traj.status.ok, str(traj.status)
    energy = traj["energy.total"]
    assert 100 * np.ptp(energy) / energy[0] < 1e-6
    audit = traj.audit()
    assert audit.loop.relative < 1e-12 and audit.motion.relative < 1e-10 and audit.velocity.relative < 1e-11
    if until == 20.0:
        assert np.max(np.abs(np.arcsin(traj["main.rotation"][:, 2, 1]))) < 1.0
