"""What the accuracy tests share: compiled machines, starts of the reference motions, measures of error."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np

import sarrus as sr
from oracles import motion_data as data
from sarrus.model.features import point_on
from sarrus.model.inertia import rod

ANDREWS = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")


@cache
def library(name: str, **parameters: Any) -> sr.System:
    """A machine of the library, compiled once per process."""
    return sr.compile(sr.library.build(name, **parameters))


def relative(found: Any, expected: Any) -> float:
    """Largest difference over the largest expected value (times along the first axis are judged one by one)."""
    found, expected = np.atleast_2d(np.asarray(found, dtype=float)), np.atleast_2d(np.asarray(expected, dtype=float))
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return float(np.max(np.max(np.abs(found - expected), axis=1) / np.max(np.abs(expected), axis=1)))


def columns(traj: Any, names: Any) -> np.ndarray:
    """Several scalar quantities side by side."""
    return np.stack([traj[name] for name in names], axis=1)


# --- machines given by a Lagrangian --------------------------------------------------------------------------------
@cache
def cartesian_pendulum(gravity: float = 9.81, length: float = 1.0, root: bool = False) -> sr.System:
    """A particle of 1 kg with (x² + y² - L²)/2 = 0 (A = [x, y]), or with the distance itself (`root`)."""
    x, y, vx, vy = (ca.SX.sym(name) for name in ("x", "y", "vx", "vy"))
    square = x * x + y * y
    phi = ca.sqrt(square) - length if root else (square - length**2) / 2
    return sr.compile(
        sr.Lagrangian(
            "Cartesian pendulum", coordinates=[x, y], velocities=[vx, vy], kinetic=(vx * vx + vy * vy) / 2,
            potential=gravity * y, holonomic={"rod": phi}, initial={"x": length, "y": 0.0},
        )
    )  # fmt: skip


@cache
def curved_branch(gravity: float = 9.81) -> sr.System:
    """A particle of 1 kg on (y - x²)(y + x) = 0, gravity along -y (sheet 2.6)."""
    x, y, vx, vy = (ca.SX.sym(name) for name in ("x", "y", "vx", "vy"))
    return sr.compile(
        sr.Lagrangian(
            "particle at a crossing", coordinates=[x, y], velocities=[vx, vy], kinetic=(vx * vx + vy * vy) / 2,
            potential=gravity * y, holonomic={"curve": (y - x * x) * (y + x)}, initial={"x": -1.0, "y": 1.0},
        )
    )  # fmt: skip


@cache
def elastic_crank() -> sr.System:
    """Slider crank driven at 150 rad/s with an elastic rod of two bending and two stretching modes (IVP test set).

    The kinetic energy is that of the test set's mass matrix; its printed forces follow from it by Lagrange's equations.
    """
    pi = 3.1415927  # as in the source
    m2, m3, l1, l2, j1, j2 = 0.151104, 0.075552, 0.15, 0.3, 0.002727, 0.0045339259
    density, side, young = 7870.0, 0.008, 0.2e12
    area = side * side * l2
    Mq = density * area * ca.DM([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]])
    bend = pi**4 / 24 * (side / l2) ** 2
    Kq = young * side * side / l2 * ca.DM(
        [[bend, 0, 0, 0], [0, 16 * bend, 0, 0], [0, 0, 16 / 3, -8 / 3], [0, 0, -8 / 3, 7 / 3]]
    )  # fmt: skip
    Bq = ca.DM.zeros(4, 4)
    Bq[0, 2], Bq[0, 3], Bq[1, 3] = -16 * area / pi**3, area * (8 / pi**3 - 1 / pi), area / (2 * pi)
    Bq = Bq - Bq.T
    c1, c2 = area * ca.DM([0, 0, 2 / 3, 1 / 6]), area * ca.DM([2 / pi, 0, 0, 0])
    c12, c21 = l2 * area * ca.DM([0, 0, 1 / 3, 1 / 6]), l2 * area * ca.DM([1 / pi, -1 / (2 * pi), 0, 0])
    q = [ca.SX.sym(name) for name in ("phi1", "phi2", "x3", "q1", "q2", "q3", "q4")]
    v = [ca.SX.sym(f"rate{k}") for k in range(7)]
    t, e = ca.SX.sym("t"), ca.vertcat(*q[3:])
    C, S = ca.cos(q[0] - q[1]), ca.sin(q[0] - q[1])
    M = ca.SX.zeros(7, 7)
    M[0, 0], M[1, 1], M[2, 2] = j1 + m2 * l1**2, j2 + ca.dot(e, Mq @ e) + 2 * density * ca.dot(c12, e), m3
    M[0, 1] = l1 * l2 * m2 * C / 2 + density * l1 * (S * ca.dot(c2, e) + C * ca.dot(c1, e))
    M[0, 3:], M[1, 3:] = density * l1 * (C * c2 - S * c1).T, density * (c21 + Bq.T @ e).T
    M[1, 0], M[3:, 0], M[3:, 1], M[3:, 3:] = M[0, 1], M[0, 3:].T, M[1, 3:].T, Mq
    V, rod = ca.vertcat(*v), l2 + q[6]
    return sr.compile(
        sr.Lagrangian(
            "elastic crank", time=t, coordinates=q, velocities=v, kinetic=ca.dot(V, M @ V) / 2,
            potential=ca.dot(e, Kq @ e) / 2,
            holonomic={
                "height": l1 * ca.sin(q[0]) + rod * ca.sin(q[1]),
                "slider": q[2] - l1 * ca.cos(q[0]) - rod * ca.cos(q[1]),
                "drive": q[0] - 150.0 * t,
            },
        )
    )  # fmt: skip


# --- parallel robots -----------------------------------------------------------------------------------------------
@cache
def rrr() -> sr.System:
    """Planar 3-RRR with the parameters of the quindim repository; torques on the three proximal links."""
    mech = sr.Mechanism("3-RRR", gravity=(0, 0, 0), planar=True)
    platform = mech.body("platform", 0.169646003294, inertia=0.5 * 0.169646003294 * 0.05**2)
    x, y, phi = data.RRR_START[6:]
    mech.planar_joint("platform", mech.ground, platform, initial=(x, y, phi))
    for i, corner in enumerate(np.exp(1j * np.radians([0.0, 120.0, 240.0]))):
        a, b = data.RRR_START[2 * i : 2 * i + 2]
        near = mech.body(f"near{i}", 0.3375, com=(0.125, 0), inertia=0.3375 * (0.25**2 + 0.1**2) / 12)
        far = mech.body(f"far{i}", 0.675, com=(0.25, 0), inertia=0.675 * (0.5**2 + 0.1**2) / 12)
        mech.revolute(f"a{i}", mech.ground, near, at=(0.4 * corner.real, 0.4 * corner.imag), initial=a)
        mech.revolute(f"b{i}", near, far, at=(0.25, 0), initial=b - a)
        mech.close(f"C{i}", point_on(far, (0.5, 0)), point_on(platform, (0.05 * corner.real, 0.05 * corner.imag)))
        mech.motor(f"a{i}")
    return sr.compile(mech)


def rrr_coordinates(traj: Any) -> tuple[np.ndarray, np.ndarray]:
    """Absolute link angles and the platform's pose, and their rates, in the order of the reference."""
    out = []
    for suffix in ("", ".v"):
        parts = []
        for i in range(3):
            a, b = traj[f"a{i}{suffix}"], traj[f"b{i}{suffix}"]
            parts += [a, a + b]
        out.append(np.stack([*parts, *(traj[f"platform.{n}{suffix}"] for n in ("x", "z", "angle"))], axis=1))
    return out[0], out[1]


def quaternion(a: float, b: float, c: float) -> np.ndarray:
    """Of the rotation Rx(a) Ry(b) Rz(c)."""
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in enumerate((a, b, c)):
        w, x = np.cos(angle / 2), np.sin(angle / 2) * np.eye(3)[axis]
        quat = np.r_[quat[0] * w - quat[1:] @ x, quat[0] * x + w * quat[1:] + np.cross(quat[1:], x)]
    return quat


def body_rates(b: float, c: float) -> np.ndarray:
    """Body angular velocity for unit rates of the Euler angles XYZ."""
    return np.array([[np.cos(b) * np.cos(c), np.sin(c), 0], [-np.cos(b) * np.sin(c), np.cos(c), 0], [np.sin(b), 0, 1]])


def stewart_start(system: sr.System) -> sr.State:
    """The load case of the Stewart platform's reference motion."""
    return system.assemble(
        {"platform.position": (0.05, -0.03, 2.0), "platform.quat_wxyz": quaternion(0.02, -0.03, 0.1)},
        velocities={
            "platform.velocity": (0.3, -0.2, 0.1),
            "platform.omega": body_rates(-0.03, 0.1) @ (0.1, 0.2, 0.5),
        },
    )


def three_link_chain() -> sr.Mechanism:
    """Three uniform links of 1 m, 1 kg in the vertical plane (sheet 12.9), without any constraint."""
    mech = sr.Mechanism("three links", planar=True)
    before, at = mech.ground, (0, 0)
    for i, start in enumerate((0.3, -0.6, 0.9), start=1):
        link = mech.body(f"link{i}", 1.0, com=(0.5, 0), inertia=rod(1.0, 1.0))
        mech.revolute(f"q{i}", before, link, at=at, initial=start)
        before, at = link, (1, 0)
    return mech
