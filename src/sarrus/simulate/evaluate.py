"""Terms, energies, poses and solutions along many states at once.

CasADi maps a function over the columns of its arguments, which spares the loop over states in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.solution import Energy, TermValues

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System

CHUNK = 256  # states for each call of CasADi: larger ones gain nothing and need memory


def stored(system: System, name: str) -> Any:
    """A CasADi function of the machine by name."""
    import casadi as ca

    return ca.Function.deserialize(system.functions.texts[name])


def symbols(system: System) -> dict[str, Any]:
    """Symbols t, q, v, u, a, p and the machine's terms and energies in them."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    x = system.layout
    sizes = {"t": 1, "q": x.nq, "v": x.nv, "u": x.nu, "a": x.nv, "p": len(x.parameters)}
    out: dict[str, Any] = {name: SX.sym(name, size) for name, size in sizes.items()}
    state = [out[name] for name in ("t", "q", "v", "p")]
    terms = stored(system, "terms").call(state)
    out |= dict(zip(("M", "h", "A", "gamma", "phi", "at", "B", "N"), map(ca.sparsify, terms), strict=True))
    energy = stored(system, "energy").call(state)[0]
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
    values = evaluate(stored(system, "terms"), [times(state), state.q, state.v, system.p], count)
    return TermValues(*(x[:, :, 0] if k in (1, 3, 4, 5) else x for k, x in enumerate(values)))


def terms_in_chunks(system: System, state: State) -> Iterator[tuple[slice, TermValues]]:
    """The terms at an array of states, a chunk at a time: the matrices of a long run need not fit into memory."""
    function, column = stored(system, "terms"), times(state)
    for start in range(0, state.count or 0, CHUNK):
        stop = min(start + CHUNK, state.count or 0)
        values = _chunk(function, [column, state.q, state.v, system.p], start, stop)
        yield slice(start, stop), TermValues(*(x[:, :, 0] if k in (1, 3, 4, 5) else x for k, x in enumerate(values)))


def energies(system: System, state: State) -> Energy:
    """Energies and powers at an array of states (as `System.energy`, faster)."""
    function = stored(system, "energy")
    values = evaluate(function, [times(state), state.q, state.v, system.p], state.count or 0)[0]
    return Energy(*np.moveaxis(values[:, :, 0], -1, 0))


def poses(system: System, state: State) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of every frame at an array of states (as `System.frames`, faster)."""
    if not system.layout.frames:
        return {}
    values = evaluate(stored(system, "frames"), [times(state), state.q, system.p], state.count or 0)
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
    vdot, lam, _ = system._solve(state, u, None, {g: on for g, on in groups.items() if not on})
    return vdot, lam
