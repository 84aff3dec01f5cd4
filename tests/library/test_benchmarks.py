"""Library machines against published reference motions, integrated here by SciPy from compiled accelerations.

Sources of the numbers: IFToMM / LIM-UDC library A02-A05, the Bari/CWI test set for IVP solvers (Andrews' squeezer) and
the MathWorks Stewart platform parameters, all recomputed by two independent methods (agreement 1e-12 or better).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sarrus as sr
from sarrus.dynamics.manifold import normalise


def motion(system, state, t_end, u=None, rtol=1e-11, atol=1e-12):
    """The state at t_end by DOP853 on (q, v); short runs, so drift stays far below the tolerances of the tests."""
    nq = system.layout.nq

    def rate(t, y):
        q = normalise(system.layout, y[:nq])
        now = system.state(q, y[nq:], t)
        N = system.functions("position", t, q, system.p)[3]
        return np.concatenate([N @ now.v, system.acceleration(now, u)])

    result = solve_ivp(rate, (0.0, t_end), np.r_[state.q, state.v], method="DOP853", rtol=rtol, atol=atol)
    assert result.success
    end = result.y[:, -1]
    return system.state(normalise(system.layout, end[:nq]), end[nq:], t_end)


def test_n_four_bar_swings_like_the_reference():
    """A02, N = 2, at 0.5 s; uprights start vertical, B0 moves at +1 m/s."""
    system = sr.compile(sr.library.build("n_four_bar", n=2))
    start = system.assemble({"A0": np.pi / 2}, velocities={"A0": -1.0})
    assert system.energy(start).total == pytest.approx(35.835, abs=1e-12)
    end = motion(system, start, 0.5)
    np.testing.assert_allclose(
        (np.cos(end["A0"]), np.sin(end["A0"])), (0.695286633164401, 0.718732563435742), atol=1e-9
    )


def test_bricard_swings_like_the_reference():
    """A04, square bars: P3 at 0.5 s."""
    system = sr.compile(sr.library.build("bricard"))
    end = motion(system, system.assemble(), 0.5)
    expected = (0.77471780803923, -0.97981504765567, -0.19990615895344)
    np.testing.assert_allclose(system.frame(end, "P3")[0], expected, atol=1e-9)


def test_andrews_squeezer_starts_and_moves_like_the_reference():
    """Test set b.1: initial accelerations and multipliers, then all angles at 5 ms."""
    system = sr.compile(sr.library.build("andrews"))
    names = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
    start = system.assemble({"Theta": 0.0})
    first = dict(zip(system.layout.v_names, system.acceleration(start), strict=True))
    expected = (14222.443919954114, -10666.832939965585, 0, 0, 0, 0, 0)
    np.testing.assert_allclose([first[n] for n in names], expected, rtol=1e-9, atol=1e-6)
    end = motion(system, start, 0.005)
    reference = (
        0.21107638590326608, -0.2015871709340795, 0.44911519001151423, 0.21025079793001394, 0.4887437654619352,
        -0.2102507979300142, 1.225866794034907,
    )  # fmt: skip
    np.testing.assert_allclose([end[n] for n in names], reference, atol=1e-9)
    forces = np.concatenate([x for x in system.constraint_forces(end).lam.values()])
    known = [89.9711007379063, 3.2424316296558353, -1.833165695031229, 1.5084230935746394, -2.743375160387393]
    expected = np.sort([*known, -3.9646389856073343])
    np.testing.assert_allclose(np.sort(forces[np.abs(forces) > 1e-9]), expected, rtol=1e-7)


def test_flyball_governor_moves_like_the_reference():
    """A05 at 0.1 s: stiff spring-dampers, free shaft; angular momentum is conserved."""
    system = sr.compile(sr.library.build("flyball"))
    start = system.assemble(velocities={"shaft": 2 * np.pi, "slider": 0.0, "rod1": 0.0, "rod2": 0.0})
    end = motion(system, start, 0.1, rtol=1e-10, atol=1e-11)
    assert end["shaft"] == pytest.approx(0.6221066814026878, abs=1e-8)
    assert end["slider"] == pytest.approx(0.5238364755695754, abs=1e-8)
    assert end["rod1"] == pytest.approx(0.4961738690759003, abs=1e-8)
    M = system.terms(end).M
    spin = M[system.layout.find("shaft", "v").start] @ end.v
    assert spin == pytest.approx(53.86899865841845, rel=1e-9)


def test_stewart_platform_moves_like_the_reference():
    """c.2 at 0.1 s: constant leg forces 3000 + 100 i N from the load case's pose and rates."""
    system = sr.compile(sr.library.build("stewart"))
    a, b, c = 0.02, -0.03, 0.1
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in enumerate((a, b, c)):  # Euler XYZ: R = Rx Ry Rz
        turn = np.r_[np.cos(angle / 2), np.sin(angle / 2) * np.eye(3)[axis]]
        quat = _product(quat, turn)
    body_rates = np.array(
        [[np.cos(b) * np.cos(c), np.sin(c), 0], [-np.cos(b) * np.sin(c), np.cos(c), 0], [np.sin(b), 0, 1]]
    ) @ (0.1, 0.2, 0.5)
    start = system.assemble(
        {"platform.position": (0.05, -0.03, 2.0), "platform.quat_wxyz": quat},
        velocities={"platform.velocity": (0.3, -0.2, 0.1), "platform.omega": body_rates},
    )
    u = [3000.0 + 100.0 * i for i in range(6)]
    end = motion(system, start, 0.1, u=u)
    position = (0.08248302150501367, -0.049677087639798716, 1.9992870740864706)
    np.testing.assert_allclose(end["platform.position"], position, atol=1e-8)
    legs = [2.9904749266802924, 3.214156888529253, 3.1395211278521415, 3.3187451920539597]
    np.testing.assert_allclose([end[f"leg{i}"] for i in range(4)], legs, atol=1e-8)


def _product(a, b):
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.r_[w, a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])]
