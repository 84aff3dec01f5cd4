"""Every identity of the equation sheet that the named matrices must satisfy (sections 2 to 6).

Rates are compared with finite differences along a motion that knows nothing of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr
from physics.support import derivative, largest
from sarrus.dynamics.formulations.factors import FACTORS, factor, recursion

from .machines import EVERY, library, moving, place

LIMIT = 1e-9
STEADY = [name for name in EVERY if name not in ("prescribe", "constrain_velocity")]
SMOOTH = ["random-2", "random-3", "random-9", "knife_edge", "rolling"]  # for finite differences: quaternions too
every = pytest.mark.parametrize("name", EVERY)
steady = pytest.mark.parametrize("name", STEADY)


def same(got, wanted, *sizes):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=LIMIT * max(largest(got, wanted, *sizes), 1e-300))


def given(name, rng, **options):
    _, system, state, u, f = place(name, rng)
    return system, state, system.matrices(state, u, f, **options)


# --- projectors and constraint mass matrices -----------------------------------------------------------------------
@every
def test_orthogonal_projectors(name, rng):
    """2.1, 2.2: P² = P = Pᵀ, A P = 0, P + Q = I, PY = 0, bases orthonormal."""
    x = given(name, rng)[2]
    n = x.point.n
    same(x.P @ x.P, x.P)
    same(x.P, x.P.T)
    same(x.A @ x.P, 0 * x.A, x.A)
    same(x.P + x.Q, np.eye(n))
    same(x.V2 @ x.V2.T, x.P, np.eye(n))
    same(x.V1 @ x.V1.T, x.Q, np.eye(n))
    same(x.P @ x.Y, 0 * x.Y, x.Y)
    assert round(np.trace(x.P)) == n - x.point.rank


@every
def test_constraint_mass_matrices(name, rng):
    """3: definiteness, determinants, eigenvalues, kinetic energy, and which of them commute with P."""
    x = given(name, rng)[2]
    M11, M22 = x.V1.T @ x.M @ x.V1, x.V2.T @ x.M @ x.V2
    r, free = x.point.rank, x.P @ rng.normal(size=x.point.n)
    for Mi in (x.Mp, x.Mb):
        same(Mi, Mi.T)
        assert np.linalg.eigvalsh(Mi)[0] > 0
        same(Mi @ x.P, x.P @ Mi)
    w = rng.normal(size=x.point.n)
    same(w @ x.Mc @ w, w @ x.M @ w)
    for Mi in (x.Mc, x.Mp, x.Mb):
        same(free @ Mi @ free, free @ x.M @ free)
    logs = {"11": np.linalg.slogdet(M11)[1] if r else 0.0, "22": np.linalg.slogdet(M22)[1]}
    for Mi, wanted in (
        (x.Mc, logs["11"] + logs["22"]), (x.Mp, logs["11"] + logs["22"]),
        (x.Mpp, r * np.log(x.gamma_scale) + logs["22"]), (x.Mb, r * np.log(x.mu) + logs["22"]),
    ):  # fmt: skip
        same(np.linalg.slogdet(Mi)[1], wanted, 1.0)
    values = np.linalg.eigvals(x.Mc)
    parts = np.sort(np.concatenate([np.linalg.eigvalsh(M11) if r else [], np.linalg.eigvalsh(M22)]))
    np.testing.assert_allclose(np.sort(values.real), parts, rtol=1e-6)
    assert largest(values.imag) <= 1e-6 * largest(values.real)


@steady
def test_skew_form_of_the_virtual_mass_equation(name, rng):
    """2.4: Mb v̇ + Cb v = P(f - G), G = h - C v; C v is the quadratic part of h and Mdot - 2C skew."""
    system, state, x = given(name, rng)
    zero = np.zeros_like(state.v)
    h = [system.terms(system.state(state.q, w, state.t)).h for w in (state.v, -state.v, zero)]
    quadratic = (h[0] + h[1]) / 2 - h[2]
    same(x.C @ state.v, quadratic, np.abs(x.C) @ np.abs(state.v), h[0])
    same(x.Mdot - 2 * x.C, -(x.Mdot - 2 * x.C).T, x.C)
    vdot = x.point.by_mass(x.point.f - x.point.h)
    vdot = x.Theta @ vdot + x.Phibar @ x.point.gamma
    G = x.point.h - x.C @ state.v
    left = x.Mb @ vdot + x.Cb @ state.v
    same(left, x.P @ (x.point.f - G), x.Mb @ vdot, x.Cb @ state.v, x.point.f, G)
    same(x.Omega @ state.v, x.an, x.Y @ state.v, np.abs(x.Y) @ np.abs(state.v))
    same(x.Y @ state.v, x.an, np.abs(x.Y) @ np.abs(state.v))


def along(system, state, value):
    """d/dt of a matrix along the motion with constant v, by central differences of sixth order."""

    def at(s):
        return value(system.state(system.retract(state.q, s * state.v), state.v, state.t + s))

    return derivative(at, 1e-3)


@pytest.mark.parametrize("name", SMOOTH)
def test_rates_by_finite_differences(name, rng):
    """Mdot, Adot, Pdot, Wdot, and d/dt Mb - 2 Cb skew with d/dt Mb from differences."""
    system, state, x = given(name, rng, mu=1.7)

    def close(found, value, size):
        wanted = along(system, state, value)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * (largest(wanted, found) + largest(size)))

    close(x.Mdot, lambda s: system.matrices(s).M, x.M)
    close(x.Adot, lambda s: system.matrices(s).A, x.A)
    close(x.Pdot, lambda s: system.matrices(s).P, 1.0)
    for kind in FACTORS:
        y = system.matrices(state, factor=kind)
        close(y.Wdot, lambda s, kind=kind: system.matrices(s, factor=kind).W, y.W)
    Mbdot = along(system, state, lambda s: system.matrices(s, mu=1.7).Mb)
    odd = Mbdot - 2 * x.Cb
    np.testing.assert_allclose(odd, -odd.T, rtol=0, atol=1e-7 * (largest(x.Cb, Mbdot) + largest(x.Mb)))


# --- oblique projectors --------------------------------------------------------------------------------------------
@every
def test_oblique_projectors(name, rng):
    """5, 4: S² = S, QS = S, SQ = Q, S M = M Sᵀ, Θ² = Θ, A Θ = 0; Mob in all its forms, whatever μ and the factor."""
    system, state, x = given(name, rng)
    n = x.point.n
    same(x.S @ x.S, x.S)
    same(x.Q @ x.S, x.S)
    same(x.S @ x.Q, x.Q, x.S)
    same(x.S @ x.M, x.M @ x.S.T)
    same(x.Theta @ x.Theta, x.Theta)
    same(x.A @ x.Theta, 0 * x.A, x.A, x.Theta)
    same(x.S, np.eye(n) - x.Theta.T)
    same(x.A @ x.point.by_mass(x.Theta.T), 0 * x.A, x.A @ x.point.by_mass(np.eye(n)))
    same(x.A @ x.Phibar @ x.A, x.A)
    inverse = np.linalg.inv(x.M)
    for other in (x.P @ np.linalg.inv(x.Mb), np.linalg.solve(x.Mb, x.P), x.Theta @ inverse, x.Z @ x.Z.T):
        same(other, x.Mob)
    for mu in (0.2, 40.0):
        y = system.matrices(state, mu=mu)
        same(np.linalg.solve(y.Mb, y.P), x.Mob)
    same(x.Cn @ np.linalg.solve(x.Cn.T @ x.M @ x.Cn, x.Cn.T), x.Mob)
    same(x.A @ x.Cn, 0 * x.A[:, : x.Cn.shape[1]], x.A)


@every
def test_constraint_force_and_decoupling(name, rng):
    """4: fc = Sᵀ-forms of the sheet; V1ᵀ κ V2 = M12 M22⁻¹: the force depends on P f if QMP does not vanish."""
    system, state, u, f = place(name, rng)[1:]
    x = system.matrices(state, u, f)
    force = system.constraint_forces(state, u, f).generalised
    net, an = x.point.f - x.point.h, x.an
    same(force, -x.S @ (net - x.M @ an), net, x.M @ an)
    same(force, -x.S @ (x.P @ x.point.f - x.point.h) + x.S @ x.M @ an - x.Q @ x.point.f, net, x.M @ an)
    same(-force, x.Q @ net - x.kappa @ x.P @ net - x.kappa @ x.M @ an, net, x.M @ an, force)
    M12, M22 = x.V1.T @ x.M @ x.V2, x.V2.T @ x.M @ x.V2
    same(x.V1.T @ x.kappa @ x.V2, np.linalg.solve(M22.T, M12.T).T, x.kappa)
    assert largest(x.Q @ x.M @ x.P) > 1e-6, "these machines are coupled"


def test_force_and_motion_decouple_where_the_null_space_is_invariant(rng):
    """000 Prop. 3: M = m I, a particle on a circle: κP vanishes, κ is Q; a push along the wire changes no force."""
    system = library("particle_on_circle")
    start = system.assemble()
    state = system.state(start.q, system.projector(start) @ rng.normal(size=2))
    x = system.matrices(state)
    same(x.Q @ x.M @ x.P, 0 * x.M, x.M)
    same(x.kappa @ x.P, 0 * x.P, 1.0)
    same(x.kappa, x.Q)
    push = x.P @ rng.normal(size=2)
    before, after = (system.constraint_forces(state, f=f).generalised for f in (None, push))
    same(before, after)


# --- virtual mass --------------------------------------------------------------------------------------------------
def unequal(name: str) -> tuple[sr.System, sr.State]:
    """Machines with masses over six decades."""
    if name == "five_bar":
        mech = sr.Mechanism("uneven five-bar", planar=True)
        before, at = mech.ground, (0, 0)
        for i, mass in enumerate((1e-3, 1.0, 1e3)):
            link = mech.body(f"link{i}", mass, com=(0.5, 0), inertia=sr.rod(mass, 1.0))
            mech.revolute(f"q{i}", before, link, at=at, initial=(1.4, -0.6, -1.1)[i])
            before, at = link, (1, 0)
        last = mech.body("last", 0.1, com=(0.5, 0), inertia=sr.rod(0.1, 1.0))
        mech.revolute("q3", mech.ground, last, at=(1.5, 0), initial=1.2)
        mech.close("tip", sr.point_on(before, at), sr.point_on(last, (1, 0)))
        system = sr.compile(mech)
        return system, system.assemble()
    system = library(name, m1=1e3, m2=1e-3) if name == "slider_crank" else library(name, m1=1e-3, m2=1e3, tool=1e-4)
    return system, system.assemble()


@pytest.mark.parametrize("name", ["five_bar", "slider_crank", "cartesian_on_circle"])
def test_condition_of_the_virtual_mass_matrix(name):
    """3: cond(Mb) = lmax/lmin exactly for lmin <= μ <= lmax, larger outside, never above cond(M); auto lies inside."""
    system, state = unequal(name)
    x = system.matrices(state)
    assert np.linalg.cond(x.M) > 1e4
    free = np.linalg.eigvalsh(x.V2.T @ x.M @ x.V2)
    low, high = free[0], free[-1]
    best = high / low
    for mu in (low, np.sqrt(low * high), high, x.mu):
        np.testing.assert_allclose(np.linalg.cond(system.matrices(state, mu=mu).Mb), best, rtol=1e-6)
    for mu in (low / 3, high * 3):
        np.testing.assert_allclose(np.linalg.cond(system.matrices(state, mu=mu).Mb), 3 * best, rtol=1e-6)
    assert low * (1 - 1e-12) <= x.mu <= high * (1 + 1e-12)
    assert best <= np.linalg.cond(x.M) * (1 + 1e-9)


@every
def test_automatic_virtual_mass_is_within_the_best_interval(name, rng):
    x = given(name, rng)[2]
    free = np.linalg.eigvalsh(x.V2.T @ x.M @ x.V2)
    assert free[0] * (1 - 1e-9) <= x.mu <= free[-1] * (1 + 1e-9)
    assert np.linalg.cond(x.Mb) <= free[-1] / free[0] * (1 + 1e-6) <= np.linalg.cond(x.M) * (1 + 1e-5)


# --- actuation -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "enough"), [("stewart", True), ("planar_platform", True), ("underactuated_chain", False)]
)
def test_actuation_projector(name, enough, rng):
    """5: Γ = (PB)⁺ = (BᵀPB)⁺BᵀP; R² = R, R P = R always; P R = P exactly where rank(PB) = n - r."""
    system, state = moving(name, rng)
    x = system.matrices(state)
    same(x.Gam, np.linalg.pinv(x.B.T @ x.P @ x.B, rcond=1e-8) @ x.B.T @ x.P)
    same(x.R @ x.R, x.R)
    same(x.R @ x.P, x.R)
    suffices = np.linalg.matrix_rank(x.P @ x.B, tol=1e-8) == x.point.n - x.point.rank
    assert suffices == enough
    assert bool(largest(x.P @ x.R - x.P) < 1e-9) == enough
    if enough:
        tangent = x.P @ rng.normal(size=x.point.n)
        same(x.P @ x.B @ (x.Gam @ tangent), tangent)


# --- quasi-velocities ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", FACTORS)
@steady
def test_quasi_velocities(name, kind, rng):
    """6: W Wᵀ = M, Γs and Γr skew, |v|² = 2T, and the two decoupled equations for vr and λ."""
    system, state, u, f = place(name, rng)[1:]
    x = system.matrices(state, u, f, factor=kind)
    v, free = state.v, x.point.n - x.point.rank
    same(x.W @ x.W.T, x.M)
    inverse = np.abs(np.linalg.inv(x.W))
    same(x.Gamma_s, -x.Gamma_s.T, inverse @ np.abs(x.M) @ inverse.T * largest(v))
    same(x.Z.T @ x.M @ x.Z, np.eye(free))
    same(x.A @ x.Z, 0 * (x.A @ x.Z), x.A, x.Z)
    same(
        x.A @ x.Zdot + x.Adot @ x.Z,
        0 * (x.A @ x.Z),
        largest(x.A) * largest(x.Zdot),
        largest(x.A) * largest(x.Z) * largest(v),
    )
    rate = x.Zdot.T @ x.M @ x.Z + x.Z.T @ x.Mdot @ x.Z + x.Z.T @ x.M @ x.Zdot
    same(rate, 0 * rate, x.Z.T @ x.Mdot @ x.Z, np.abs(x.Z.T) @ np.abs(x.M @ x.Zdot), largest(v))
    same(x.Gr, -x.Gr.T, np.abs(x.Z.T) @ np.abs(x.M @ x.Zdot), largest(v))
    vr = x.Z.T @ x.M @ v
    same(x.Z @ vr, v)
    same(vr @ vr, v @ x.M @ v)
    G = x.point.h - x.C @ v
    vdot = system.acceleration(state, u, f)
    net = x.point.f - G
    vrdot = x.Z.T @ x.M @ (vdot - x.Zdot @ vr)
    same(vrdot + x.Gr @ vr, x.Z.T @ net, vrdot, np.abs(x.Z.T) @ np.abs(net), x.Gr @ vr)
    force = np.linalg.solve(x.W, system.constraint_forces(state, u, f).generalised)
    normal = x.V1w.T @ np.linalg.solve(x.W, net)
    same(x.Go @ vr - x.V1w.T @ force, normal, np.linalg.solve(x.W, np.abs(net)), force, x.Go @ vr)


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", ["four_bar", "andrews", "bricard"])
def test_gamma_and_its_skew_companion_do_the_same(name, kind, rng):
    """6: Γ is not skew, Γs is; both act alike on the quasi-velocities, and vᵀΓv = 0."""
    system, state = moving(name, rng)
    x = system.matrices(state, factor=kind)
    w = x.W.T @ state.v
    same(x.Gamma @ w, x.Gamma_s @ w, np.abs(x.Gamma) @ np.abs(w))
    same(w @ x.Gamma @ w, 0.0, np.abs(w) @ np.abs(x.Gamma) @ np.abs(w))
    assert largest(x.Gamma + x.Gamma.T) > 1e-3 * largest(x.Gamma)


@pytest.mark.parametrize("name", ["random-2", "random-3", "random-8", "random-15", "sarrus", "rolling"])
def test_recursive_factor_of_a_tree(name, rng):
    """6, 001 V.C: the recursion from the tips to the base gives the upper triangular W with W Wᵀ = M."""
    system, state = place(name, rng)[1:3]
    M = system.terms(state).M
    W = recursion(system, state)
    same(W @ W.T, M)
    assert largest(np.tril(W, -1)) == 0
    same(W, factor(M, "innovation"))


def test_recursive_factor_of_a_serial_chain_changes_with_its_parameters():
    system = library("slider_crank").with_parameters(m2=3.5, L1=0.7)
    state = system.state((0.4, -0.9))
    W = recursion(system, state)
    same(W @ W.T, system.terms(state).M)
    with pytest.raises(sr.SarrusError, match="needs a machine described by bodies, not by a Lagrangian"):
        import casadi as ca

        x, y, vx, vy = (ca.SX.sym(name) for name in ("x", "y", "vx", "vy"))
        plain = sr.Lagrangian("two masses", coordinates=[x, y], velocities=[vx, vy], kinetic=vx**2 + vy**2, potential=y)
        compiled = sr.compile(plain)
        recursion(compiled, compiled.state((0.0, 0.0)))


def test_cartesian_robot_on_a_circle_in_closed_form():
    """12.3: g = (m2 x² + m1 z²)^½, vr = ± g θ', Γr = 0, Lr = 2 g / sqrt(m1 m2), λ = ± sqrt(m1 m2)(uo - Γo vr) / 2g."""
    m1, m2, angle, speed = 1.0, 2.0, 0.7, 1.3
    system = library("cartesian_on_circle", m1=m1, m2=m2, angle=angle)
    q = np.array([np.cos(angle), np.sin(angle)])
    v = speed * np.array([-np.sin(angle), np.cos(angle)])
    state, f = system.state(q, v), np.array([0.3, -0.8])
    x = system.matrices(state, f=f)
    g = np.sqrt(m2 * q[0] ** 2 + m1 * q[1] ** 2)
    vr = x.Z.T @ x.M @ v
    same(np.abs(vr), [g * speed])
    same(x.Gr, [[0.0]], 1.0)
    row = system.kept[0]
    d = system.norms[0]
    same(np.abs(x.Lr[row]), [2 * g / np.sqrt(m1 * m2) / d])
    n = np.array([np.sqrt(m2) * q[0], np.sqrt(m1) * q[1]]) / g  # V1
    uo = n @ (f / np.sqrt([m1, m2]))
    gamma_o = -np.sqrt(m1 * m2) * (g * speed) / g**3
    lam = np.sqrt(m1 * m2) * (uo - gamma_o * (g * speed)) / (2 * g)  # 001: minus this sheet's
    same(system.constraint_forces(state, f=f)["circle"].sum(), -lam)
    same(np.abs(x.Go), [[abs(gamma_o)]])
