"""200 random machines against Pinocchio (tree terms) and a dense SVD reference (the constrained solve).

60 of them in the default suite, all 200 with `-m ''`: their compilation takes minutes.

Tolerance: 1e-9 relative, in the mass metric (so that it does not depend on units) and in the largest entry. The solves
lose about k eps cond(M) cond(Y), Y = L⁻¹Aᵀ; random_machine keeps cond(M) < 1e8 and cond(Y) < 1e4 at worst, which would
allow k eps 1e12 = 2e-4 k. Nothing of that is claimed here: 1e-9 is the acceptance figure, met by all seeds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

import sarrus as sr
from oracles.constraints import oracle_acceleration, project_velocity, row_scale, stacked
from oracles.dense import constrained_solve
from oracles.forces import applied_force
from oracles.random_machines import KINDS, LOOP_ROWS, Case, random_machine

from .support import elsewhere, force_size, largest, random_case, velocity_size

COUNT, CHUNK, DEFAULT = 200, 10, 60
TOLERANCE = 1e-9
CHUNKS = [
    pytest.param(first, id=f"{first}-{first + CHUNK - 1}", marks=() if first < DEFAULT else pytest.mark.slow)
    for first in range(0, COUNT, CHUNK)
]


@dataclass
class Setting:
    """One machine at one state, with everything that several checks need."""

    case: Case
    system: sr.System
    state: sr.State
    tau: np.ndarray
    rng: np.random.Generator

    def __post_init__(self):
        self.terms = self.system.terms(self.state)
        self.L = np.linalg.cholesky(self.case.tree.mass_matrix(self.case.q))
        self.solution = self.system.solve(self.state, f=self.tau)
        self.oracle = oracle_acceleration(self.case.tree, self.state.q, self.state.v, self.tau, self.case.t)

    @property
    def scale(self) -> np.ndarray:
        """1 / reference norm of each row; 0 for rows that vanish everywhere, which cannot carry a force."""
        scale = np.zeros(self.system.layout.m)
        scale[list(self.system.kept)] = 1.0 / self.system.norms
        return scale

    @property
    def off(self) -> dict[str, bool]:
        """All constraints switched off."""
        return dict.fromkeys(self.system.groups, False)


def setting(seed: int) -> Setting:
    case, system = random_case(seed)
    rng = np.random.default_rng([seed, 77])
    v = project_velocity(case.tree, case.q, rng.normal(size=case.tree.nv), case.t)
    return Setting(case, system, system.state(case.q, v, case.t), rng.normal(size=case.tree.nv), rng)


# --- comparisons -------------------------------------------------------------------------------------------
def near(what: str, difference: float, size: float, tolerance: float = TOLERANCE) -> None:
    assert difference <= tolerance * size, f"{what}: off by {difference:.2e}, size {size:.2e}"


def same_acceleration(what: str, s: Setting, got: np.ndarray, expected: np.ndarray) -> None:
    """In the largest entry, and in the mass metric."""
    near(what, largest(got - expected), largest(expected))
    near(f"{what} (mass metric)", velocity_size(s.L, got - expected), velocity_size(s.L, expected))


def same_force(what: str, s: Setting, got: np.ndarray, expected: np.ndarray) -> None:
    near(what, largest(got - expected), largest(expected))
    near(f"{what} (mass metric)", force_size(s.L, got - expected), force_size(s.L, expected))


# --- what is checked for each machine ----------------------------------------------------------------------
def check_names(s: Setting) -> None:
    """Coordinates stand in the oracle's order; rows belong to the loops, and there are no others."""
    layout, tree = s.system.layout, s.case.tree
    assert layout.q_names == tree.names_q and layout.v_names == tree.names_v, "names"
    written = [name for name in s.system.groups if name in s.case.model.groups]
    assert written == list(s.case.model.groups), "constraints out of order"
    assert sorted(s.system.groups[len(written) :]) == sorted(j.name for j in tree.tree.cuts), "cut joints"


def check_tree_terms(s: Setting) -> None:
    """M and h from Pinocchio, without loops the articulated-body algorithm."""
    tree, q, v = s.case.tree, s.state.q, s.state.v
    M = tree.mass_matrix(q)
    size = np.sqrt(np.diag(M))
    near("M", largest((s.terms.M - M) / np.outer(size, size)), 1.0)
    assert np.linalg.eigvalsh(s.terms.M)[0] > 0, "M is not positive definite"
    force = s.tau + applied_force(tree, q, v, s.case.t)
    passive = applied_force(tree, q, v, s.case.t)
    same_force("h", s, s.terms.h, tree.bias(q, v) - passive)
    free = s.system.solve(s.state, f=s.tau, active=s.off)
    same_acceleration("forward dynamics of the tree", s, free.vdot, tree.aba(q, v, force))
    assert (free.rank, free.rows, largest(free.lam)) == (0, 0, 0.0), "constraints that are off act"


def check_rows(s: Setting) -> None:
    """The loops are closed at q, and the oracle's velocity satisfies the rows."""
    assert largest(s.terms.phi) < 1e-12, f"phi {largest(s.terms.phi):.1e}"
    near("A v - a", largest(s.terms.A @ s.state.v - s.terms.a), largest(s.terms.A) * largest(s.state.v))


def check_against_dense(s: Setting) -> None:
    """The dense reference on the package's own M, h, A, γ: only the solve itself is in question."""
    x = s.terms
    expected = constrained_solve(x.M, x.h, s.tau, x.A, x.gamma, s.scale)
    same_acceleration("vdot (own terms)", s, s.solution.vdot, expected.vdot)
    same_force("Aᵀλ (own terms)", s, x.A.T @ s.solution.lam, x.A.T @ expected.lam)
    near("A vdot - gamma", largest(s.scale * (x.A @ s.solution.vdot - x.gamma)), velocity_size(s.L, expected.vdot))
    residual = x.M @ s.solution.vdot + x.h - s.tau - x.A.T @ s.solution.lam
    near("equation of motion", force_size(s.L, residual), force_size(s.L, x.h) + force_size(s.L, s.tau))


def check_against_oracle(s: Setting) -> None:
    """Rows, biases and forces of the oracle: nothing in common with the package."""
    _, A, _, _ = stacked(s.case.tree, s.state.q, s.state.v, s.case.t)
    same_acceleration("vdot", s, s.solution.vdot, s.oracle.vdot)
    same_acceleration("acceleration()", s, s.system.acceleration(s.state, f=s.tau), s.oracle.vdot)
    same_force("Aᵀλ", s, s.terms.A.T @ s.solution.lam, A.T @ s.oracle.lam)


def check_multipliers(s: Setting) -> None:
    """λ is the smallest in the stated metric: equal to the dense one, and D λ has no part along a dependence."""
    x = s.terms
    expected = constrained_solve(x.M, x.h, s.tau, x.A, x.gamma, s.scale)
    kept = s.scale > 0
    mu, mu0 = s.solution.lam[kept] / s.scale[kept], expected.lam[kept] / s.scale[kept]
    condition = expected.values[0] / expected.values[s.case.rank - 1]
    # λ solves with Y, one condition number more than Aᵀλ: k eps cond, never tighter than the figure for Aᵀλ
    near("λ", largest(mu - mu0), largest(mu0), max(TOLERANCE, 1e4 * np.finfo(float).eps * condition))
    assert largest(s.solution.lam[~kept]) == 0, "a vanishing row carries a force"
    rows = s.scale[kept, None] * np.linalg.solve(s.L, x.A[kept].T).T
    null = np.linalg.svd(rows)[0][:, s.case.rank :]
    near("λ along dependences", largest(null.T @ mu), largest(mu0))


def check_rank(s: Setting) -> None:
    """The rank is right and so is the path taken; the singular values are those of the dense solve."""
    found, rank = s.solution, s.case.rank
    assert found.rank == rank, f"rank {found.rank}, expected {rank}"
    report = s.system.rank(s.state)
    assert (report.rank, report.mobility) == (rank, s.case.freedom), "System.rank"
    assert found.rows == s.system.layout.m == report.rows, "rows"
    assert found.path == "rank-revealing" or rank == found.rows, "fast path although rows are redundant"
    expected = constrained_solve(s.terms.M, s.terms.h, s.tau, s.terms.A, s.terms.gamma, s.scale).values
    size = min(len(expected), len(report.singular_values))
    near("singular values", largest(report.singular_values[:size] - expected[:size]), expected[0])


def check_paths(s: Setting) -> None:
    """Forced through the rank-revealing path, or given the choice: the same answer."""
    forced = replace(s.system, redundant=True).solve(s.state, f=s.tau)
    choice = replace(s.system, redundant=False).solve(s.state, f=s.tau)
    assert forced.path == "rank-revealing", "redundant=True is not obeyed"
    assert forced.rank == choice.rank == s.case.rank, f"ranks {forced.rank} and {choice.rank}"
    same_acceleration("vdot (both paths)", s, choice.vdot, forced.vdot)
    same_force("Aᵀλ (both paths)", s, s.terms.A.T @ choice.lam, s.terms.A.T @ forced.lam)


def check_arrays(s: Setting) -> None:
    """Arrays of states: exactly what one by one gives, also where the loops are open."""
    q = np.stack([s.state.q, s.state.q, elsewhere(s.case, s.rng)])
    v = np.stack([s.state.v, *s.rng.normal(size=(2, s.case.tree.nv))])
    f = s.rng.normal(size=v.shape)
    many = s.system.state(q, v, [s.case.t, 0.1, 0.2])
    found, terms, energy = s.system.solve(many, f=f), s.system.terms(many), s.system.energy(many)
    forces = s.system.constraint_forces(many, f=f)
    for i in range(3):
        one = many.row(i)
        single = s.system.solve(one, f=f[i])
        for key in ("vdot", "lam", "rank", "path", "accepted", "rejected"):
            np.testing.assert_array_equal(getattr(found, key)[i], getattr(single, key), err_msg=f"{key} of state {i}")
        for key, value in vars(s.system.terms(one)).items():
            np.testing.assert_array_equal(getattr(terms, key)[i], value, err_msg=f"{key} of state {i}")
        assert energy.total[i] == s.system.energy(one).total, f"energy of state {i}"
        alone = s.system.constraint_forces(one, f=f[i]).generalised
        np.testing.assert_array_equal(forces.generalised[i], alone, err_msg=f"Aᵀλ of state {i}")


CHECKS = (
    check_names, check_tree_terms, check_rows, check_against_dense, check_against_oracle, check_multipliers,
    check_rank, check_paths, check_arrays,
)  # fmt: skip


# --- tests -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("first", CHUNKS)
def test_random_machines(first):
    """All checks on ten machines; one report of everything that fails, by seed."""
    problems, paths = [], set()
    for seed in range(first, first + CHUNK):
        s = setting(seed)
        paths.add(s.solution.path)
        for check in CHECKS:
            try:
                check(s)
            except AssertionError as error:
                problems.append(f"seed {seed}, {check.__name__}: {str(error).strip().splitlines()[0]}")
    assert not problems, "\n".join(problems)
    assert paths == {"fast", "rank-revealing"}, "ten machines should exercise both paths"


def test_the_set_has_two_of_everything():
    cases = [random_machine(seed) for seed in range(COUNT)]
    joints = Counter(kind for case in cases for kind in case.kinds)
    assert set(joints) == set(KINDS) and min(joints.values()) >= 2
    twice = [{k for k, n in Counter(j.kind for j in c.model.joints).items() if n > 1} for c in cases]
    assert set().union(*twice) == set(KINDS), "two of each kind in one machine"
    loops = Counter(kind for case in cases for _, kind in case.loops)
    assert set(loops) >= set(LOOP_ROWS) and min(loops[kind] for kind in LOOP_ROWS) >= 2
    assert sum(len(case.loops) >= 2 for case in cases) >= COUNT // 2
    assert {len(case.model.bodies) for case in cases} == set(range(2, 13))
    independent = {len([name for name, _ in case.loops if name != "R"]) for case in cases}
    assert independent == {1, 2, 3, 4}
    assert sum(case.redundant for case in cases) >= COUNT // 2
    assert sum(not case.redundant for case in cases) >= COUNT // 4, "and enough that are not"
    assert any(edge.reversed for case in cases for edge in case.tree.tree.edges)
    sizes = [row_scale(stacked(c.tree, c.q, np.zeros(c.tree.nv))[1]) for c in cases]
    assert min(s.min() for s in sizes) > 0
