"""First and fourth paper: one square system for v̇, made regular on both sides of the projector (sheet 2.4, 3).

With b = P(f - h) the equation of motion tangent to the constraints is P M v̇ = b, which cannot be solved alone; each
formulation adds the normal part Q v̇ = an in its own way. Metric W: sheet 2.8; the motion does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sarrus.dynamics.formulations.point import Point
from sarrus.dynamics.formulations.record import (
    Evaluation,
    Formulation,
    Option,
    defaults,
    inverse_root,
    is_automatic_or_nonzero,
    is_automatic_or_positive,
    is_metric,
)

METRIC = Option(
    None, "metric for mixed units: weights, or a symmetric positive definite matrix; None: the coordinates as they are",
    is_metric, "None, positive weights, or a symmetric positive definite matrix",
)  # fmt: skip


def mean_inertia(point: Point) -> float:
    """Mean of the nonzero eigenvalues of PMP: within the interval of best condition (sheet 3), and smooth in q."""
    free = point.n - point.rank
    mean = np.trace(point.P @ point.M) / max(free, 1)
    return float(mean) if free and mean > 0 else float(np.trace(point.M) / point.n)


def measured(evaluate: Any) -> Any:
    """Evaluate in the coordinates of the metric W and translate back (sheet 2.8)."""

    def wrapped(point: Point, options: Mapping[str, Any]) -> Evaluation:
        if options["W"] is None:
            return evaluate(point, options)
        root = inverse_root(options["W"], point.n)
        vdot, force = evaluate(point.measured(root), options)
        return root @ vdot, np.linalg.solve(root, force)

    wrapped.__doc__ = evaluate.__doc__
    return wrapped


@measured
def _projection(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Mc v̇ = b + M an; F = Q(f - h) - κ P(f - h) - κ M an, fc = -F, κ = Q M Mc⁻¹ (sheet 4)."""
    net, Mc = x.f - x.h, x.M + x.P @ x.M - x.M @ x.P
    right = x.P @ net + x.M @ x.an
    vdot = np.linalg.solve(Mc, right)
    return vdot, x.Q @ (x.M @ vdot - net)


@measured
def _symmetric(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Mp v̇ = b + (Q - P) M an."""
    net, Mp = x.f - x.h, x.P @ x.M @ x.P + x.Q @ x.M @ x.Q
    vdot = np.linalg.solve(Mp, x.P @ net + (x.Q - x.P) @ x.M @ x.an)
    return vdot, x.Q @ (x.M @ vdot - net)


@measured
def _scaled(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Mpp v̇ = b + γ an."""
    net = x.f - x.h
    weight = mean_inertia(x) if isinstance(options["gamma"], str) else float(options["gamma"])
    vdot = np.linalg.solve(x.P @ x.M + weight * x.Q, x.P @ net + weight * x.an)
    return vdot, x.Q @ (x.M @ vdot - net)


@measured
def _virtual_mass(x: Point, options: Mapping[str, Any]) -> Evaluation:
    """Mb v̇ = b - P M an + μ an; fc = -S(f - h - M an), S = I - M Mb⁻¹ P (sheet 4, 5)."""
    free = x.f - x.h - x.M @ x.an
    mu = mean_inertia(x) if isinstance(options["mu"], str) else float(options["mu"])
    L = np.linalg.cholesky(x.P @ x.M @ x.P + mu * x.Q)

    def inverse(y: np.ndarray) -> np.ndarray:
        return np.linalg.solve(L.T, np.linalg.solve(L, y))

    vdot = inverse(x.P @ free + mu * x.an)
    return vdot, -(free - x.M @ inverse(x.P @ free))


def _make(name: str, equation: str, sheet: str, sizes: str, evaluate: Any, **choices: Option) -> Formulation:
    choices = {**choices, "W": METRIC}
    return Formulation(name, equation, sheet, 0, sizes, evaluate, choices, defaults(choices))


PROJECTION = (
    _make(
        "projection", "Mc v̇ = P(f - h) + M an, Mc = M + PM - MP", "2.4 (2)", "n x n, not symmetric; an SVD of A",
        _projection,
    ),
    _make(
        "projection-symmetric", "Mp v̇ = P(f - h) + (Q - P) M an, Mp = PMP + QMQ", "2.4 (3)",
        "n x n, symmetric; an SVD of A", _symmetric,
    ),
    _make(
        "projection-scaled", "Mpp v̇ = P(f - h) + γ an, Mpp = PM + γ Q", "2.4 (4)", "n x n, not symmetric; an SVD of A",
        _scaled,
        gamma=Option("auto", "weight of the normal directions [kg]; auto: the mean inertia of the free ones",
                     is_automatic_or_nonzero, "'auto' or a number other than zero"),
    ),
    _make(
        "virtual-mass", "Mb v̇ = P(f - h) - PM an + μ an, Mb = PMP + μ Q", "2.4 (5), 3, 4",
        "n x n, symmetric positive definite; an SVD of A", _virtual_mass,
        mu=Option("auto", "virtual mass of the normal directions [kg]; auto: the mean inertia of the free ones",
                  is_automatic_or_positive, "'auto' or a positive number"),
    ),
)  # fmt: skip
