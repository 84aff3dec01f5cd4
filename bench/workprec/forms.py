"""The forms in which solvers of DAEs get a problem, compiled once for all of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import casadi as ca
import numpy as np

from bench.workprec import equations
from bench.workprec.problems import Problem, load
from bench.workprec.trees import build

DENSE = 60  # more unknowns than this are solved with a sparse matrix


@dataclass(frozen=True)
class Form:
    """One way to write a problem.

    Attributes:
        kind: "gear", "ggl", or "ode" where there is no loop.
        cartesian: the pendulum in x and y, otherwise joint coordinates.
    """

    kind: str
    cartesian: bool = False

    @property
    def title(self) -> str:
        """In words."""
        words = {"gear": "index 1 (Gear)", "ggl": "index 2 (GGL)", "ode": "joint coordinates"}[self.kind]
        return words + (", x and y" if self.cartesian else "")


def choices(problem: Problem) -> list[Form]:
    """The forms of stabilised index; trees without loops as they are, the pendulum also as it is published."""
    if build(problem).loops:
        return [Form("gear"), Form("ggl")]
    return [Form("ode")] + ([Form("gear", cartesian=True)] if problem.name == "A01" else [])


@functools.cache
def compiled(name: str, form: Form, parts: bool = False) -> tuple[equations.Dae, ca.Function, bool]:
    """The equations, the function that observes their runs, and whether their derivatives are sparse."""
    problem = load()[name]
    if form.cartesian:
        eq, q0, v0 = equations.cartesian_pendulum(), np.array([-1.0, 0.0]), np.zeros(2)
    else:
        tree = build(problem)
        eq, q0, v0 = equations.derive(tree), tree.q0, tree.v0
    sparse = 2 * eq.q.numel() + 2 * eq.phi.numel() > DENSE
    kind = "ggl" if form.kind == "ode" else form.kind
    return equations.dae(eq, kind, q0, v0, sparse, parts), equations.observer_of(eq), sparse
