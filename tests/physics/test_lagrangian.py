"""Machines written twice: as bodies and joints, and as a Lagrangian whose energies are derived from positions.

Both routes are exact, so they agree to rounding: 1e-11 relative allows k eps cond with k cond about 5e4.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import sarrus as sr

from .support import largest, row_space
from .written_twice import MACHINES, SX, hoop

TOLERANCE = 1e-11
EVERY_PAIR = pytest.mark.parametrize("name", MACHINES)


def states(name: str, count: int = 3):
    """Random states with closed loops: assembled by one route, used by both."""
    pair = MACHINES[name]()
    x = pair.bodies.layout
    rng = np.random.default_rng(list(MACHINES).index(name))
    for _ in range(count):
        t = rng.uniform(0.0, 2.0)
        near = dict(zip(x.q_names, np.array(x.initial) + rng.uniform(0.1, 0.9, x.nq), strict=True))
        start = pair.bodies.assemble(near=near, t=t)
        terms = pair.bodies.terms(start)
        v = rng.normal(size=x.nv)
        v -= np.linalg.pinv(terms.A, rcond=1e-10) @ (terms.A @ v - terms.a)
        yield pair, pair.bodies.state(start.q, v, t), pair.energies.state(start.q, v, t), rng


def close(got, expected, *sizes):
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * (largest(expected, *sizes) + 1e-3))


# --- both routes -------------------------------------------------------------------------------------------
@EVERY_PAIR
def test_names_and_sizes(name):
    pair = MACHINES[name]()
    a, b = pair.bodies.layout, pair.energies.layout
    assert a.q_names == b.q_names and a.v_names == b.q_names
    assert a.groups == b.groups
    assert [r.holonomic for r in b.rows] == [name != "skate"] * b.m


@EVERY_PAIR
def test_mass_matrix_bias_and_energies(name):
    for pair, a, b, _ in states(name):
        x, y = pair.bodies.terms(a), pair.energies.terms(b)
        close(x.M, y.M)
        close(x.h, y.h)
        np.testing.assert_array_equal(x.N, y.N)
        e, f = pair.bodies.energy(a), pair.energies.energy(b)
        for key in ("kinetic", "dissipated", "applied"):
            close(getattr(e, key), getattr(f, key))
        close(e.potential, f.potential, 1.0)
        assert pair.bodies.inputs == pair.energies.inputs
        close(x.B, y.B)


@EVERY_PAIR
def test_constraints(name):
    """The same residual, velocities and accelerations, whichever rows they are written with."""
    for pair, a, b, rng in states(name):
        places = [(a.q, a.v)]
        if name != "four_bar_redundant":  # its rows contradict each other where the loop is open
            places += [(a.q + 0.1 * rng.normal(size=a.q.shape), rng.normal(size=a.v.shape)) for _ in range(2)]
        for q, v in places:
            x, y = pair.bodies.terms(pair.bodies.state(q, v, a.t)), pair.energies.terms(pair.energies.state(q, v, b.t))
            if len(y.A):
                close(row_space(x.A), row_space(y.A))
            for key in ("phi", "a", "gamma"):  # A⁺Φ is the same for all ways to write consistent rows
                inverse_x, inverse_y = (np.linalg.pinv(z.A, rcond=1e-10) for z in (x, y))
                close(inverse_x @ getattr(x, key), inverse_y @ getattr(y, key), 1.0)


@EVERY_PAIR
def test_acceleration_and_constraint_force(name):
    for pair, a, b, rng in states(name):
        u, f = rng.normal(size=len(pair.bodies.inputs)), rng.normal(size=a.v.shape)
        x, y = pair.bodies.solve(a, u, f), pair.energies.solve(b, u, f)
        close(x.vdot, y.vdot)
        assert x.rank == y.rank
        one, two = (s.constraint_forces(z, u, f).generalised for s, z in ((pair.bodies, a), (pair.energies, b)))
        close(one, two)


def test_inputs_as_one_column():
    """design.md section 6: inputs=u with u an SX symbol; a column means the first coordinates."""
    q, v, u = SX.sym("q", 2), SX.sym("v", 2), SX.sym("u", 2)
    system = sr.compile(sr.Lagrangian("two", coordinates=q, velocities=v, kinetic=0.5 * ca.dot(v, v), inputs=u))
    np.testing.assert_array_equal(system.terms(system.state([0.1, 0.2])).B, np.eye(2))


# --- what is known besides ---------------------------------------------------------------------------------
def test_redundant_rows_are_counted_and_share_the_force():
    """Rank 2 of 4; the pin and its copy in other units carry the force together, in the stated metric."""
    pair = MACHINES["four_bar_redundant"]()
    for _, _, b, rng in states("four_bar_redundant"):
        found = pair.energies.solve(b, f=rng.normal(size=3))
        assert (found.rank, found.rows, found.path) == (2, 4, "rank-revealing")
        scaled = found.lam * pair.energies.norms
        assert scaled[0] == pytest.approx(scaled[2], rel=1e-9), "the same row in other units, the same share"


def test_slider_crank_is_that_of_the_sheet():
    """M of sheet 12.1 and its reduced equation (1 + 4 s²) q̈ + 4 s c q̇² + g c = 0 on the branch q2 = 2π - 2 q1."""
    pair = MACHINES["slider_crank"]()
    for q1, w in ((0.3, 1.1), (np.pi / 4, 0.0), (2.0, -0.7)):
        q, v = np.array([q1, 2 * np.pi - 2 * q1]), np.array([w, -2 * w])
        s, c, c2 = np.sin(q1), np.cos(q1), np.cos(q[1])
        expected = -(4 * s * c * w**2 + 9.81 * c) / (1 + 4 * s**2)
        for system in (pair.bodies, pair.energies):
            state = system.state(q, v)
            close(system.terms(state).M, np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1.0]]))
            close(system.terms(state).phi, 0.0)
            close(system.acceleration(state), np.array([expected, -2 * expected]))


def test_bead_on_a_hoop_with_the_turn_in_the_kinetic_energy():
    """T(q, v, t) with explicit time: b̈ = Ω² sin b cos b - (g/r) sin b, and the same from the driven machine."""
    driven, reduced = MACHINES["rotating_hoop"]().bodies, sr.compile(hoop(reduced=True))
    rng = np.random.default_rng(3)
    for t, b, w in rng.uniform(-1.5, 1.5, (4, 3)):
        omega = 1.5 + 0.6 * np.cos(2 * t)
        expected = omega**2 * np.sin(b) * np.cos(b) - 9.81 / 0.7 * np.sin(b)
        angle = 1.5 * t + 0.3 * np.sin(2 * t)
        close(reduced.acceleration(reduced.state([b], [w], t)), [expected])
        found = driven.acceleration(driven.state([angle, b], [omega, w], t))
        close(found, [-1.2 * np.sin(2 * t), expected])


def test_pendulum_on_a_shaken_pivot():
    """A momentum that depends on time: l b̈ = -g sin b - ẍ cos b, in T(q, v, t) and with a driven slider."""
    t, b, vb = (SX.sym(n) for n in ("t", "bead", "vb"))
    place = ca.vertcat(0.3 * ca.sin(4 * t) + 0.7 * ca.sin(b), -0.7 * ca.cos(b))
    speed = ca.jacobian(place, b) * vb + ca.jacobian(place, t)
    T, V = 0.5 * 0.4 * ca.dot(speed, speed), 0.4 * 9.81 * place[1]
    reduced = sr.compile(sr.Lagrangian("shaken", time=t, coordinates=b, velocities=vb, kinetic=T, potential=V))
    mech = sr.Mechanism("shaken")
    mech.body("cart", 2.0)
    mech.body("bead", 0.4, (0.0, 0.0, -0.7))
    mech.prismatic("x", mech.ground, "cart", "x")
    mech.revolute("b", "cart", "bead", "-y")
    mech.prescribe("drive", "x", lambda t: 0.3 * ca.sin(4 * t))
    driven = sr.compile(mech)
    for s, angle, w in np.random.default_rng(4).uniform(-1.5, 1.5, (4, 3)):
        x, dx, ddx = 0.3 * np.sin(4 * s), 1.2 * np.cos(4 * s), -4.8 * np.sin(4 * s)
        expected = -(9.81 * np.sin(angle) + ddx * np.cos(angle)) / 0.7
        close(reduced.acceleration(reduced.state([angle], [w], s)), [expected])
        close(driven.acceleration(driven.state([x, angle], [dx, w], s)), [ddx, expected])
