"""How the mass matrix and the rows change along the motion: Ṁ, Ȧ and the Christoffel matrix C of a machine.

Velocities need not be rates of coordinates. In the frame e_k of vector fields q̇ = N(q) v the Levi-Civita connection of
M gives (Koszul's formula; the brackets [e_j, e_k] vanish but for quaternions, whose velocities are in body axes)

    2 C_ij = Σ_k v_k (e_k M_ij + e_j M_ik - e_i M_kj + M([e_k, e_j], e_i) - M([e_j, e_i], e_k) + M([e_i, e_k], e_j)).

C v is what of h is quadratic in v, and Ṁ - 2C is skew.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System


@functools.lru_cache(maxsize=16)
def _functions(text: str) -> tuple[Any, Any]:
    """(t, q, v, p) -> (Ṁ, Ȧ), and -> derivatives of M along each velocity, one under the other."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX, Function

    terms: Any = ca.Function.deserialize(text)
    t, q, v, p = (SX.sym(name, terms.size1_in(k)) for k, name in enumerate("tqvp"))
    values = terms.call([t, q, v, p])
    M, A, N = (ca.sparsify(values[k]) for k in (0, 2, 7))
    along = ca.vertcat(N @ v, 1)
    place = ca.vertcat(q, t)
    rates = [ca.densify(_along(X, place, along)) for X in (M, A)]
    slopes = ca.densify(ca.jacobian(ca.vec(ca.densify(M)), q) @ N)
    inputs = [t, q, v, p]
    return Function("rates", inputs, ca.cse(rates)), Function("slopes", inputs, ca.cse([slopes]))


def _along(X: Any, place: Any, direction: Any) -> Any:
    import casadi as ca

    dense = ca.densify(X)
    return ca.reshape(ca.jtimes(ca.vec(dense), place, direction), *dense.shape)


def rates(system: System, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Ṁ and Ȧ at a state, d/dt of a moving constraint included."""
    function = _functions(system.functions.texts["terms"])[0]
    values = function.call([np.asarray(x, dtype=float) for x in (state.t, state.q, state.v, system.p)])
    return np.array(values[0].full()), np.array(values[1].full())


def inertia_slopes(system: System, state: State) -> np.ndarray:
    """e_k M at a state, shape (nv, nv, nv), k first."""
    function = _functions(system.functions.texts["terms"])[1]
    value = function.call([np.asarray(x, dtype=float) for x in (state.t, state.q, state.v, system.p)])[0]
    n = system.layout.nv
    return np.array(value.full()).reshape(n, n, n).transpose(2, 1, 0)  # columns of M one after the other


def christoffel(system: System, state: State, M: np.ndarray) -> np.ndarray:
    """C with C v the quadratic part of h and Ṁ - 2C skew."""
    slopes, n = inertia_slopes(system, state), system.layout.nv
    bracket = np.zeros((n, n, n))  # [e_j, e_k] = bracket[j, k] of the frame
    for turn in system.layout.turns:
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            bracket[turn.v + a, turn.v + b, turn.v + c] = 1.0
            bracket[turn.v + b, turn.v + a, turn.v + c] = -1.0
    B = bracket @ M  # B[j, k, i] = M([e_j, e_k], e_i)
    terms = np.einsum("kij->ijk", slopes) + np.einsum("jik->ijk", slopes) - slopes  # e_i M_kj = slopes[i, j, k]
    terms = terms + np.einsum("kji->ijk", B) - np.einsum("jik->ijk", B) + np.einsum("ikj->ijk", B)
    return 0.5 * terms @ state.v
