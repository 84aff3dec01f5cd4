"""Terms, energies, poses and solutions along many states at once.

CasADi maps a function over the columns of its arguments, which spares the loop over states in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.manifold import retract
from sarrus.dynamics.rank import mass_factor
from sarrus.dynamics.solution import Energy, TermValues

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System

CHUNK = 256  # states for each call of CasADi: larger ones gain nothing and need memory
WINDOW = 1e-3  # scaled singular values below this are left alone by corrections: a singular position is near


def symbols(system: System) -> dict[str, Any]:
    """Symbols t, q, v, u, a, p and the machine's terms and energies in them."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    x = system.layout
    sizes = {"t": 1, "q": x.nq, "v": x.nv, "u": x.nu, "a": x.nv, "p": len(x.parameters)}
    out: dict[str, Any] = {name: SX.sym(name, size) for name, size in sizes.items()}
    state = [out[name] for name in ("t", "q", "v", "p")]
    terms = system.functions.function("terms").call(state)
    out |= dict(zip(("M", "h", "A", "gamma", "phi", "at", "B", "N"), map(ca.sparsify, terms), strict=True))
    energy = system.functions.function("energy").call(state)[0]
    out |= {name: energy[k] for k, name in enumerate(("kinetic", "potential", "dissipated", "applied"))}
    return out


def evaluate(function: Any, inputs: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """All outputs of a CasADi function at `count` states.

    Args:
        function: to be mapped.
        inputs: one array for each argument: a row for each state, or one vector for all of them.
        count: number of states.

    Returns:
        For each output an array of shape (count, rows, columns).
    """
    parts = [_chunk(function, inputs, start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def _chunk(function: Any, inputs: Sequence[np.ndarray], start: int, stop: int) -> list[np.ndarray]:
    number = stop - start
    columns = []
    for index, values in enumerate(inputs):
        rows = function.size1_in(index)
        part = values if values.ndim == 1 else values[start:stop].T
        columns.append(np.ascontiguousarray(part).reshape(rows, -1) if rows else np.zeros((0, number)))
    # a function none of whose arguments has a column for each state would be evaluated once only
    out = []
    for index, value in enumerate(function.call(columns)):
        shape = function.size_out(index)
        out.append(np.array(value.full()).reshape(shape[0], number, shape[1]).transpose(1, 0, 2))
    return out


def times(state: State) -> np.ndarray:
    """Time of each of an array of states, as a column."""
    count = state.count or 1
    return np.broadcast_to(np.asarray(state.t, dtype=float).reshape(-1, 1), (count, 1))


def terms(system: System, state: State) -> TermValues:
    """The terms at an array of states (as `System.terms`, faster)."""
    count = state.count or 0
    values = evaluate(system.functions.function("terms"), [times(state), state.q, state.v, system.p], count)
    return TermValues(*(x[:, :, 0] if k in (1, 3, 4, 5) else x for k, x in enumerate(values)))


def terms_in_chunks(system: System, state: State) -> Iterator[tuple[slice, TermValues]]:
    """The terms at an array of states, a chunk at a time: the matrices of a long run need not fit into memory."""
    function, column = system.functions.function("terms"), times(state)
    for start in range(0, state.count or 0, CHUNK):
        stop = min(start + CHUNK, state.count or 0)
        values = _chunk(function, [column, state.q, state.v, system.p], start, stop)
        yield slice(start, stop), TermValues(*(x[:, :, 0] if k in (1, 3, 4, 5) else x for k, x in enumerate(values)))


def drag_at(system: System, state: State) -> np.ndarray:
    """D of `dynamics.rubbing` at an array of states, shape (count, nv, contacts with friction)."""
    function = system.functions.function("drag")
    return evaluate(function, [times(state), state.q, state.v, system.p], state.count or 0)[0]


def friction_power(system: System, state: State, lam: np.ndarray) -> np.ndarray:
    """vᵀ D λ_N, what friction at contacts puts in at an array of states, never positive while they push."""
    if not system.layout.rubbing:
        return np.zeros(state.count or 0)
    return np.einsum("ni,nic,nc->n", state.v, drag_at(system, state), lam[:, system.layout.rubbing_rows])


def energies(system: System, state: State) -> Energy:
    """Energies and powers at an array of states (as `System.energy`, faster)."""
    function = system.functions.function("energy")
    values = evaluate(function, [times(state), state.q, state.v, system.p], state.count or 0)[0]
    return Energy(*np.moveaxis(values[:, :, 0], -1, 0))


def poses(system: System, state: State) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of every frame at an array of states (as `System.frames`, faster)."""
    if not system.layout.frames:
        return {}
    values = evaluate(system.functions.function("frames"), [times(state), state.q, system.p], state.count or 0)
    return {name: (values[2 * k][:, :, 0], values[2 * k + 1]) for k, name in enumerate(system.layout.frames)}


def generalised_force(system: System, state: State, a: np.ndarray, u: np.ndarray) -> np.ndarray:
    """M a + h - B u, what the constraints must provide for the accelerations a, shape (count, nv)."""
    import casadi as ca

    from sarrus.symbolic.algebra import Function

    s = symbols(system)
    force = s["M"] @ s["a"] + s["h"] - (s["B"] @ s["u"] if system.layout.nu else 0)
    function = Function("force", [s[k] for k in ("t", "q", "v", "a", "u", "p")], [ca.densify(force)])
    inputs = [times(state), state.q, state.v, a, u, system.p]
    return evaluate(function, inputs, state.count or 0)[0][:, :, 0]


def solve_rows(system: System, state: State, u: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and multipliers at an array of states that all have the same active rows."""
    groups = {g: bool(np.all(active[system.layout.group_rows(g)])) for g in system.groups}
    usual = system.layout.one_sided  # which are off unless told
    vdot, lam, _ = system._solve(state, u, None, {g: on for g, on in groups.items() if on == (g in usual)})
    return vdot, lam


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is left of each equation along a motion, with the size of its terms, row by row of the record.

    Attributes:
        lam: multipliers that fit the recorded accelerations best, of smallest norm in the metric of `System.solve`.
        loop: |Φ|, shape (count, m).
        slip: |A v - a|.
        slip_size: Σ |Aᵢⱼ vⱼ| + |aᵢ|.
        pull: |A v̇ - γ|.
        pull_size: Σ |Aᵢⱼ v̇ⱼ| + |γᵢ|.
        motion: |L⁻¹(M v̇ + h - B u - Aᵀλ)|, M = L Lᵀ, shape (count,).
        motion_size: sum of the sizes of its terms.
        rank: independent active rows.
        drive: |a|, how fast each row moves by itself.
    """

    lam: np.ndarray
    loop: np.ndarray
    slip: np.ndarray
    slip_size: np.ndarray
    pull: np.ndarray
    pull_size: np.ndarray
    motion: np.ndarray
    motion_size: np.ndarray
    rank: np.ndarray
    drive: np.ndarray

    @staticmethod
    def joined(parts: Sequence[Residuals]) -> Residuals:
        """One record from those of consecutive rows."""
        return Residuals(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Residuals)))


def residuals(system: System, state: State, a: np.ndarray, u: np.ndarray, flags: np.ndarray) -> Residuals:
    """Constraint errors, multipliers and the residual of the equations of motion at an array of states.

    Args:
        system: the machine.
        state: where.
        a: accelerations.
        u: inputs.
        flags: 1 for each active constraint row, 0 for those switched off.
    """
    from sarrus.dynamics.state import State

    parts = []
    for rows, x in terms_in_chunks(system, state):
        v, acc, push = state.v[rows], a[rows], _times(x.B, u[rows])
        L, S = scaled_rows(system, x, flags)
        y = np.stack([_times(x.M, acc), x.h, -push], axis=-1)
        y = np.linalg.solve(L, y)  # each term in the mass metric, where sizes can be compared
        target = y.sum(axis=-1)
        U, sigma, Vt = _factors(S)
        use = sigma > system.tolerance
        rub = np.zeros_like(target)
        if system.layout.rubbing:
            here = State(system.layout, state.q[rows], v, times(state)[rows, 0])
            rub = _friction(system, np.linalg.solve(L, drag_at(system, here)), flags, target, (U, sigma, Vt))
            target = target - rub
        along = np.where(use, _times(Vt, target), 0.0)
        mu = _times(U, along / np.where(use, sigma, 1.0))
        lam = np.zeros((len(v), system.layout.m))
        lam[:, list(system.kept)] = mu / system.norms
        reaction = _times(np.swapaxes(Vt, -1, -2), along)
        parts.append(
            Residuals(
                lam,
                np.abs(x.phi) * flags,
                np.abs(_times(x.A, v) - x.a) * flags,
                (_times(np.abs(x.A), np.abs(v)) + np.abs(x.a)) * flags,
                np.abs(_times(x.A, acc) - x.gamma) * flags,
                (_times(np.abs(x.A), np.abs(acc)) + np.abs(x.gamma)) * flags,
                np.linalg.norm(target - reaction, axis=-1),
                np.linalg.norm(y, axis=-2).sum(axis=-1) + np.linalg.norm(reaction + rub, axis=-1),
                np.sum(use, axis=-1),
                np.abs(x.a) * flags,
            )
        )
    return Residuals.joined(parts)


def _friction(
    system: System, drag: np.ndarray, flags: np.ndarray, target: np.ndarray, factors: tuple[np.ndarray, ...]
) -> np.ndarray:
    """The part of L⁻¹(M a + h - B u) that is friction at contacts: drag λ_N, with λ of what is left, drag = L⁻¹D."""
    U, sigma, Vt = factors
    inverse = np.where(sigma > system.tolerance, 1 / np.where(sigma > 0, sigma, 1.0), 0.0)
    on = [k for k, row in enumerate(system.layout.rubbing_rows) if flags[row]]
    index = [system.kept.index(system.layout.rubbing_rows[k]) for k in on]
    drag = drag[:, :, on]
    normals = (U[:, index] * inverse[:, None]) @ Vt / system.norms[index][:, None]  # target -> λ_N
    lam = np.linalg.solve(np.eye(len(on)) + normals @ drag, (normals @ target[..., None]))
    return (drag @ lam)[..., 0]


def corrected(
    system: System, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, flags: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States a little off the constraints moved onto them by the smallest changes in the mass metric.

    Directions in which the constraints are nearly singular are left alone: they are known badly there.
    """
    from sarrus.dynamics.state import State

    if not np.any(flags):
        return q, v, a
    for _ in range(2):  # converges quadratically
        for_phi = State(system.layout, q, v, t)
        step = [_least(system, x, flags, x.phi) for _, x in terms_in_chunks(system, for_phi)]
        q = retract(system.layout, q, -np.concatenate(step))
    slip = [_least(system, x, flags, _times(x.A, v[s]) - x.a) for s, x in _terms_at(system, t, q, v)]
    v = v - np.concatenate(slip)
    pull = [_least(system, x, flags, _times(x.A, a[s]) - x.gamma) for s, x in _terms_at(system, t, q, v)]
    return q, v, a - np.concatenate(pull)


def _terms_at(system: System, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Iterator[tuple[slice, TermValues]]:
    from sarrus.dynamics.state import State

    return terms_in_chunks(system, State(system.layout, q, v, t))


def _least(system: System, x: TermValues, flags: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The x of least xᵀMx with A x = error."""
    L, S = scaled_rows(system, x, flags)
    U, sigma, Vt = _factors(S)
    use = sigma > WINDOW
    scaled = (error * flags)[:, list(system.kept)] / system.norms
    along = np.where(use, _times(np.swapaxes(U, -1, -2), scaled), 0.0) / np.where(use, sigma, 1.0)
    return np.linalg.solve(np.swapaxes(L, -1, -2), _times(np.swapaxes(Vt, -1, -2), along)[..., None])[..., 0]


def scaled_rows(system: System, x: TermValues, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with M = L Lᵀ, and the kept rows in the mass metric, scaled (as `rank.scaled_rows`, for many states)."""
    kept = list(system.kept)
    try:
        L = np.linalg.cholesky(x.M)
    except np.linalg.LinAlgError:
        L = np.stack([mass_factor(system.name, M) for M in x.M])  # says what is wrong
    rows = x.A[:, kept] * (flags[kept] / system.norms)[:, None]
    return L, np.swapaxes(np.linalg.solve(L, np.swapaxes(rows, -1, -2)), -1, -2)


def _factors(S: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular value decompositions of the rows; no rows are no obstacle."""
    if not S.size:
        count, k, n = S.shape
        return np.zeros((count, k, 0)), np.zeros((count, 0)), np.zeros((count, 0, n))
    return np.linalg.svd(S, full_matrices=False)


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., None])[..., 0]
