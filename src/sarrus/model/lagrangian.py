"""A machine given by its Lagrangian and constraints, for people who have the equations and not the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """d/dt ∂T/∂v - ∂T/∂q + ∂V/∂q + ∂D/∂v = B u + f + Aᵀλ, with Φ(q, t) = 0 and A(q, t) v = a(t).

    All expressions are CasADi SX in the symbols given here. The forces of the inputs come from `inputs`: a mapping
    from each input symbol to its column of generalised forces, or a list of symbols that act on the first coordinates.

    Args:
        name: shown in reports.
        time: the symbol of time, or None if nothing depends on it.
        coordinates: one symbol for each coordinate; their names are the coordinates' names.
        velocities: one symbol for each coordinate's rate.
        kinetic: kinetic energy T(q, v, t) [J].
        potential: potential energy V(q, t) [J].
        dissipation: Rayleigh function D(q, v) [W]; the generalised force is -∂D/∂v.
        inputs: symbols of the inputs, with columns of B.
        parameters: parameter symbol -> default value.
        holonomic: constraint name -> Φ(q, t), a scalar or a column; redundant rows are welcome.
        pfaffian: constraint name -> (A(q, t), a(t)).
        forces: further generalised forces Q(q, v, t), a column.
        scales: typical size of each coordinate, where 1 is not it; used to sample for row scales.
        initial: where assembly starts looking, by coordinate name.
        one_sided: holonomic constraints whose (first) residual stays at or above zero: name -> restitution, 0 to 1.
    """

    name: str
    coordinates: Any
    velocities: Any
    kinetic: Any
    potential: Any = 0.0
    dissipation: Any = 0.0
    time: Any = None
    inputs: Any = field(default_factory=dict)
    parameters: Mapping[Any, float] | Sequence[tuple[Any, float]] = field(default_factory=dict)
    holonomic: Mapping[str, Any] = field(default_factory=dict)
    pfaffian: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    forces: Any = None
    scales: Mapping[str, float] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)
    one_sided: Mapping[str, float] = field(default_factory=dict)
