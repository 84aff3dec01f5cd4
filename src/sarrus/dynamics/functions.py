"""Terms, energies and poses as functions of numbers, evaluated by CasADi's own interpreter.

These are the oracle and the convenience of the machine: exact, not compiled, one state at a time. They are written to
the cache as text and read back only when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarrus.symbolic.terms import Terms

# which outputs are columns (the others are matrices, also when a machine has one coordinate)
_COLUMNS = {
    "terms": lambda i: i in (1, 3, 4, 5),
    "position": lambda i: i in (0, 2),
    "frames": lambda i: i % 2 == 0,
    "drag": lambda i: False,
}


def symbolic_functions(terms: Terms, row_stages: Any) -> dict[str, Any]:
    """CasADi functions by name, from the expressions of a machine."""
    import casadi as ca

    from sarrus.symbolic.algebra import Function

    x = terms
    frames = [part for p, R in x.frames.values() for part in (p, R)]
    guards = ca.vertcat(*[g for _, g in x.guards]) if x.guards else ca.SX(0, 1)
    full = [x.t, x.q, x.v, x.p]
    dense = [ca.densify(e) for e in (x.M, x.h, x.A, x.gamma, x.phi, x.a, x.B, x.N)]
    energy = [ca.vertcat(x.kinetic, x.potential, x.dissipated, x.applied)]
    place = [x.t, x.q, x.p]
    drag = {} if x.drag is None else {"drag": Function("drag", full, [ca.densify(x.drag)])}
    return drag | {
        "terms": Function("terms", full, ca.cse(dense)),
        "position": Function("position", place, ca.cse([dense[4], dense[2], dense[5], dense[7], dense[0]])),
        "energy": Function("energy", full, ca.cse(energy)),
        "frames": Function("frames", place, ca.cse(frames) if frames else []),
        "guards": Function("guards", place, [guards]),
        "stages": row_stages,
    }


@dataclass
class Functions:
    """Named functions, deserialised when first called.

    Machines that differ in their parameters alone share them, and with them what else is made once (`once`).
    """

    texts: Mapping[str, str]
    _loaded: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was first called under this name: something that no parameter changes."""
        if name not in self._loaded:
            self._loaded[name] = make()
        return self._loaded[name]

    def __call__(self, name: str, *inputs: Any) -> list[np.ndarray]:
        """Evaluate at one state; outputs are dense arrays, columns flattened."""
        values = self.function(name).call([np.asarray(x, dtype=float) for x in inputs])
        is_column = _COLUMNS.get(name, lambda index: True)
        return [np.array(x.full()).ravel() if is_column(i) else np.array(x.full()) for i, x in enumerate(values)]

    def many(self, name: str, count: int, *inputs: Any) -> list[np.ndarray]:
        """Evaluate at many states in one call; inputs have one row for each state, or one for all.

        Args:
            name: of the function.
            count: how many states.
            inputs: vectors, or arrays of shape (count, size).

        Returns:
            Outputs as for a single state, stacked along a first axis.
        """
        function = self.function(name)
        arrays = [np.atleast_1d(np.asarray(x, dtype=float)) for x in inputs]
        rows = [np.broadcast_to(x, (count, function.size1_in(i))) for i, x in enumerate(arrays)]
        values = function.call([np.ascontiguousarray(x.T) for x in rows])
        is_column = _COLUMNS.get(name, lambda index: True)
        out = []
        for i, value in enumerate(values):
            height, width = function.size_out(i)
            blocks = np.array(value.full()).reshape(height, count, width).transpose(1, 0, 2)
            out.append(blocks.reshape(count, height * width) if is_column(i) else blocks)
        return out

    def function(self, name: str) -> Any:
        """The CasADi function itself."""
        return self.once(name, lambda: _read(self.texts[name]))


def _read(text: str) -> Any:
    import casadi as ca

    return ca.Function.deserialize(text)
