"""Coulomb friction at contacts, which depends on the force of the contact at the same instant.

A contact with friction adds to the equation of motion a force against its slip, D for a normal force of 1 N:

    M v̇ + h = B u + Aᵀλ + D λ_N,   A v̇ = γ,   λ_N = E λ: the multipliers of the normals,
    D = -μ Tᵀ (s/|s|) tanh(|s|/s₀),   s = T v: the slip.

The matrix of this system is not symmetric. With λ⁰ the multipliers without friction and Y those of D alone (γ = 0),
both of the symmetric system, λ_N = (1 - E Y)⁻¹ E λ⁰: as many unknowns as contacts rub (kernel/include/sarrus_solve.h).
Without friction the determinant of 1 - E Y is 1. Where it falls to zero the contact forces grow without bound, and
beyond there is no motion in which they push (the paradox of Painlevé).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System


def drag(system: System, state: State) -> np.ndarray:
    """D at one state, shape (nv, contacts with friction)."""
    return system.functions("drag", state.t, state.q, state.v, system.p)[0]


def closed(system: System, active: Mapping[str, bool] | None) -> tuple[str, ...]:
    """The contacts with friction that are closed."""
    flags = system.active_rows(active)
    return tuple(n for n, row in zip(system.layout.rubbing, system.layout.rubbing_rows, strict=True) if flags[row])


def refuse(system: System, active: Mapping[str, bool] | None, what: str) -> None:
    """An error where a closed contact has friction that `what` does not know."""
    found = closed(system, active) if system.layout.rubbing else ()
    if found:
        raise unknown(what, found, "leave these contacts open, or describe them with friction=0")


def unknown(what: str, contacts: Sequence[str], cure: str) -> StateError:
    """The error where `what` does not know the friction of contacts."""
    have = "has" if len(contacts) == 1 else "have"
    names = ", ".join(map(repr, contacts))
    return StateError(f"{what} does not know friction that depends on the contact force, which {names} {have}; {cure}")


def grip(system: System, state: State, active: Mapping[str, bool] | None) -> float:
    """det(1 - E Y): 1 without friction, not positive where no contact forces go with it."""
    from sarrus.dynamics.rank import scaled_rows

    layout, x = system.layout, system.terms(state)
    shut = closed(system, active)
    on = [k for k, name in enumerate(layout.rubbing) if name in shut]
    rows = [layout.rubbing_rows[k] for k in on]
    L, S = scaled_rows(system, x.M, x.A, system.active_rows(active))
    pushed = -np.linalg.pinv(S.T, rcond=system.tolerance) @ np.linalg.solve(L, drag(system, state)[:, on])
    return float(np.linalg.det(np.eye(len(on)) - (pushed / system.references[:, None])[rows]))
