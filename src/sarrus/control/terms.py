"""What a controller needs of the machine, as expressions: forces in the mass metric, scaled rows, Coriolis terms."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from sarrus.dynamics.system import System
from sarrus.simulation.evaluate import symbols
from sarrus.simulation.moment import Moment
from sarrus.symbolic.algebra import SX
from sarrus.symbolic.sparse import entries, factorise, minimum_degree, saddle_order

FAINT = 1e-10  # a row of K below this part of what it is made of may be rounding: the short cut leaves it alone


class MachineTerms:
    """Symbols and terms of one machine for the generated part of a controller.

    Attributes:
        system: the machine that the controller believes in.
        s: t, q, v, p and the terms M, h, A, gamma, B, N in them.
        on: one flag for each kept row.
        inverse: inverse reference norm of each kept row.
    """

    def __init__(self, system: System):
        """Fetch the terms and factorise M."""
        self.system = system
        self.s = symbols(system)
        n, kept = system.layout.nv, list(system.kept)
        self.on, self.inverse = SX.sym("on", len(kept)), SX.sym("d", len(kept))
        mass = entries(self.s["M"])
        self._factor = factorise(mass, minimum_degree(mass, n))
        self._root = [ca.sqrt(self._factor.inverse[k]) for k in range(n)]
        self.moment = Moment(
            system.layout, self.s["t"], self.s["q"], self.s["v"], None, self.s["p"], None,
            lambda: _poses(system, self.s),
        )  # fmt: skip

    def hat(self, force: Any) -> dict[int, Any]:
        """D^-1/2 L⁻¹ f of one column, by its entries."""
        column = {i: value for (i, _), value in entries(force).items()}
        return {k: self._root[k] * value for k, value in self._factor.forward(column).items()}

    def hat_columns(self, forces: Any) -> Any:
        """The same for the columns of a matrix, dense."""
        out = SX.zeros(*forces.shape)
        for j in range(forces.shape[1]):
            for k, value in self.hat(forces[:, j]).items():
                out[k, j] = value
        return out

    def rows(self) -> tuple[Any, list[tuple[int, int]], Any]:
        """S = Â' diag(d) by its entries and where they are, and the scaled right-hand sides."""
        values, places = [], []
        A, kept = self.s["A"], list(self.system.kept)
        weight = [self.on[i] * self.inverse[i] for i in range(len(kept))]
        for i, row in enumerate(kept):
            for k, value in sorted(self.hat(A[row, :].T).items()):
                values.append(weight[i] * value)
                places.append((k, i))
        gamma = [weight[i] * self.s["gamma"][row] for i, row in enumerate(kept)]
        return _column(values), places, _column(gamma)

    def solve_mass(self, force: Any) -> Any:
        """M⁻¹ f of one column."""
        out = SX.zeros(self.system.layout.nv, 1)
        for k, value in self._factor.solve({i: x for (i, _), x in entries(force).items()}).items():
            out[k] = value
        return out

    def tasks(self, J: Any, command: Any, chart: bool) -> tuple[Any, Any, Any]:
        """K = J Mob B and its right-hand side by the sparse factor of [[M, Aᵀ], [A, 0]], and whether to trust them.

        (M w + Aᵀρ, A w) = (Jᵀ, 0) has w = Mob Jᵀ, and ρᵀγ = J a_n, so that K = wᵀB and
        K u = command + wᵀh - ρᵀγ (sheet 8, the master formula).

        Args:
            J: of all tasks.
            command: what J v̇ is to be.
            chart: whether J is to determine the whole motion, which it does not while a constraint is off.
        """
        from sarrus.dynamics.reference import saddle_samples

        n, kept, s = self.system.layout.nv, list(self.system.kept), self.s
        entry = dict(entries(s["M"]))
        for (i, k), value in entries(s["A"][kept, :]).items() if kept else ():
            entry[n + i, k] = entry[k, n + i] = self.on[i] * value
        for i in range(len(kept)):  # a row that is off is zero: this makes its pivot an ordinary one
            entry[n + i, n + i] = (self.on[i] - 1) / self.inverse[i] ** 2
        factor = factorise(entry, saddle_order(entry, n, len(kept), saddle_samples(self.system)[0]))
        gamma = [self.on[i] * s["gamma"][row] for i, row in enumerate(kept)]
        rows, right = [], []
        for j in range(J.shape[0]):
            x = factor.solve({k: value for (_, k), value in entries(J[j, :]).items()})
            w = ca.vertcat(*[x.get(k, SX(0)) for k in range(n)])
            rows.append(w.T @ s["B"])
            drift = sum((x[n + i] * gamma[i] for i in range(len(kept)) if n + i in x), SX(0))
            right.append(command[j] + ca.dot(w, s["h"]) - drift)
        carried, inertia = SX(1), SX(1)
        for i in range(len(kept)):
            carried = ca.fmin(carried, -factor.pivots[n + i] * self.inverse[i] ** 2)
            carried = carried * self.on[i] if chart else carried
        for k in range(n):
            inertia = ca.fmin(inertia, factor.pivots[k])
        served = SX(1)
        strength = [self._least_size(s["B"][:, k]) for k in range(s["B"].shape[1])]
        for j in range(J.shape[0]):  # rows of one size, whatever their units
            unit = 1 / ca.sqrt(self._least_size(J[j, :].T) + 1e-300)
            rows[j], right[j] = unit * rows[j], unit * right[j]
            parts = [rows[j][k] ** 2 - FAINT**2 * b for k, b in enumerate(strength)]
            served = ca.fmin(served, functools.reduce(ca.fmax, parts))
        return ca.vertcat(*rows), ca.vertcat(*right), ca.vertcat(carried, inertia, served)

    def _least_size(self, force: Any) -> Any:
        """At most fᵀ M⁻¹ f of one column, without a solve: D⁻¹/² M D⁻¹/² has no eigenvalue above n."""
        return ca.sum1(force**2 / ca.diag(self.s["M"])) / self.system.layout.nv

    def at_rest(self) -> Any:
        """G = h at v = 0: gravity, springs, and whatever else acts at rest."""
        return ca.densify(ca.substitute(self.s["h"], self.s["v"], SX.zeros(self.system.layout.nv, 1)))

    def along(self, expression: Any, v: Any) -> Any:
        """Directional derivative of an expression in q when the machine moves with v."""
        return ca.jtimes(expression, self.s["q"], self.s["N"] @ v)

    def slope(self, value: Any) -> Any:
        """Gradient of a scalar in q with respect to the directions of v: Nᵀ ∂/∂q."""
        return self.s["N"].T @ ca.gradient(value, self.s["q"])

    def coriolis(self, v: Any, x: Any) -> Any:
        """C(q, v) x with Ṁ - 2 C skew, from M alone (the Levi-Civita connection; sheet 6: Christoffel C).

        2 C(v) x = Ṁ[v] x + Ṁ[x] v - ∇(vᵀ M x), and for the velocities of a turn, which are no rates of coordinates, the
        terms of their brackets: M (v ⨯ x) + v ⨯ M x + x ⨯ M v.
        """
        M = self.s["M"]
        fixed = SX.sym("x", self.system.layout.nv)  # not to be differentiated
        other = SX.sym("v", self.system.layout.nv)
        twice = self.along(M @ fixed, other) + self.along(M @ other, fixed) - self.slope(ca.dot(other, M @ fixed))
        bracket = SX.zeros(self.system.layout.nv, 1)
        Mx, Mv = M @ fixed, M @ other
        for turn in self.system.layout.turns:
            part = slice(turn.v, turn.v + 3)
            bracket[part] = ca.cross(other[part], fixed[part])
            twice[part] += ca.cross(other[part], Mx[part]) + ca.cross(fixed[part], Mv[part])
        twice += M @ bracket
        return ca.substitute(twice / 2, ca.vertcat(fixed, other), ca.vertcat(x, v))


def _poses(system: System, s: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    values = system.functions.function("frames").call([s["t"], s["q"], s["p"]])
    return {name: (values[2 * k], values[2 * k + 1]) for k, name in enumerate(system.layout.frames)}


def _column(values: list[Any]) -> Any:
    return ca.densify(ca.vertcat(*values)) if values else SX(0, 1)


def gain(what: str, value: Any, size: int, positive: bool = False) -> np.ndarray:
    """A gain: one number, or one for each of `size` directions."""
    from sarrus.errors import StateError

    try:
        array = np.array(value, dtype=float)
        array = np.full(size, float(array)) if array.ndim == 0 else array
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (size,) or not np.isfinite(array).all() or np.any(array <= 0 if positive else array < 0):
        kind = "positive" if positive else "non-negative"
        raise StateError(f"{what}: expected a {kind} number, or {size} of them, got {value!r}")
    return array
