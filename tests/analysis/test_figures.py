"""Virtual mass, inertial coupling and DAE index, against direct computations."""

import numpy as np
import pytest

import sarrus as sr

NAMES = ["four_bar", "stewart", "planar_platform", "two_arms", "bricard", "rolling_disc", "geared_chain"]


def in_machine_units(system, state):
    x, s = system.terms(state), np.array(system.layout.scales)
    M, A = x.M * np.outer(s, s), x.A * s
    return M, A, np.eye(len(M)) - np.linalg.pinv(A, rcond=1e-9) @ A


@pytest.mark.parametrize("name", NAMES)
def test_virtual_mass(name):
    """Sheet 3: cond(PMP + μQ) is least, and equal to lmax/lmin, for μ in the range, and greater outside it."""
    system = sr.compile(sr.library.build(name))
    state = system.assemble()
    f = sr.diagnose(system, state).figures
    M, _, P = in_machine_units(system, state)
    values = np.linalg.eigvalsh(P @ M @ P)
    low, high = f.virtual_mass
    free = sr.diagnose(system, state).mobility
    np.testing.assert_allclose([low, high], [values[-free], values[-1]], rtol=1e-9)

    def cond(mu):
        return np.linalg.cond(P @ M @ P + mu * (np.eye(len(M)) - P))

    for mu in (low, f.best_mass, high):
        assert cond(mu) == pytest.approx(high / low, rel=1e-9)
    assert cond(0.5 * low) > 1.9 * high / low and cond(2 * high) > 1.9 * high / low


@pytest.mark.parametrize("name", NAMES)
def test_coupling(name):
    """Sheet 4: QMP = 0 exactly where the coupling is 0; it is the largest cosine between the two parts of M."""
    system = sr.compile(sr.library.build(name))
    state = system.assemble()
    M, _, P = in_machine_units(system, state)
    Q = np.eye(len(M)) - P
    L = np.linalg.cholesky(M)
    U1, s1, _ = np.linalg.svd(L.T @ Q)
    U2, s2, _ = np.linalg.svd(L.T @ P)
    a, b = U1[:, s1 > 1e-9 * s1[0]], U2[:, s2 > 1e-9 * s2[0]]
    cosine = np.linalg.svd(a.T @ b, compute_uv=False)[0]
    found = sr.diagnose(system, state).figures.coupling
    assert found == pytest.approx(cosine, rel=1e-6)
    assert (found < 1e-9) == (np.abs(Q @ M @ P).max() < 1e-9 * np.abs(M).max())


def test_decoupled_machine_has_a_force_that_ignores_the_motion():
    """Equal masses on a circle: the constraint force does not depend on the force along it (sheet 12.2)."""
    for name, zero in (("particle_on_circle", True), ("cartesian_on_circle", False)):
        system = sr.compile(sr.library.build(name))
        state = system.assemble()
        d = sr.diagnose(system, state)
        assert (d.figures.coupling < 1e-12) == zero
        x = system.terms(state)
        along = np.array([-x.A[0, 1], x.A[0, 0]])
        pushed = system.constraint_forces(state, f=along).generalised - system.constraint_forces(state).generalised
        assert (np.abs(pushed).max() < 1e-12) == zero


def test_index():
    index = {
        name: sr.diagnose(sr.library.build(name)).figures.index for name in ("pendulum", "four_bar", "rolling_disc")
    }
    assert index["pendulum"] == {"ordinary differential equations": 0}
    assert list(index["four_bar"].values()) == [3, 2, 1]
    assert list(index["rolling_disc"].values()) == [2, 1]  # not all of its rows can be written in positions
    assert sr.diagnose(sr.library.build("bricard")).figures.index is None


def test_index_is_that_of_the_pencil():
    """Sheet 10: nilpotency index of the linearised pencil of M v̇ = A'λ, q̇ = v with Φ = 0 or A v = 0 or A v̇ = 0."""
    system = sr.compile(sr.library.build("planar_platform"))
    state = system.assemble()
    x = system.terms(state)
    kept = list(system.kept)
    A, n, m = x.A[kept], len(x.M), len(kept)
    found = sr.diagnose(system, state).figures.index
    for (level, index), E32, F3 in zip(
        found.items(), (np.zeros((m, n)), np.zeros((m, n)), A),
        (np.hstack([A, np.zeros((m, n))]), np.hstack([np.zeros((m, n)), A]), np.zeros((m, 2 * n))), strict=True,
    ):  # fmt: skip
        E = np.zeros((2 * n + m, 2 * n + m))
        F = np.zeros_like(E)
        E[:n, :n], E[n : 2 * n, n : 2 * n] = np.eye(n), x.M
        F[:n, n : 2 * n], F[n : 2 * n, 2 * n :] = np.eye(n), A.T
        E[2 * n :, n : 2 * n] = E32
        F[2 * n :, : 2 * n] = F3
        assert nilpotency(E, F) == index, level


def nilpotency(E, F):
    """Index of the pencil E x' = F x: the first k at which rank ((λE - F)⁻¹E)^k stops falling."""
    T = np.linalg.solve(0.731 * E - F, E)
    T = T / np.linalg.norm(T, 2)
    ranks, power = [len(T)], np.eye(len(T))
    for k in range(1, 6):
        power = power @ T
        ranks.append(np.linalg.matrix_rank(power, tol=1e-10))
        if ranks[k] == ranks[k - 1]:
            return k - 1
    raise AssertionError(ranks)


def test_light_parts_are_noticed():
    mech = sr.library.build("four_bar", m3=1e-10, m1=1e3)
    d = sr.diagnose(mech)
    assert d.figures.mass_condition > 1e8
    assert any("mass matrix is ill conditioned" in f.text for f in d.find("scaling-and-conditioning"))


def test_a_rank_in_doubt():
    """A nearly flat parallelogram put together badly: its spare row is lifted towards the smallest one that counts."""
    system = sr.compile(sr.library.build("parallelogram", angle=1e-4))
    exact = system.assemble()
    assert not sr.diagnose(system, exact).find("a-rank-in-doubt")
    d = sr.diagnose(system, system.state(exact.q + np.array([0.0, 1e-6, -2e-6, 0.0])))
    assert 1.0 < d.figures.gap < 1e3
    (found,) = d.find("a-rank-in-doubt")
    assert "The rank is not clear" in found.text and "Assemble more exactly" in found.advice
