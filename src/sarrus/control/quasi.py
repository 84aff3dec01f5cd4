"""Control in reduced quasi-velocities (sheet 6, 9.3, 9.4) and in dependent coordinates (sheet 5, 9.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from sarrus.control.asked import compiled
from sarrus.control.builder import Builder
from sarrus.control.controller import Controller, add_actuation
from sarrus.control.forces import add_forces
from sarrus.control.terms import gain
from sarrus.dynamics.manifold import plain_map
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.printer import c_function
from sarrus.symbolic.algebra import SX, Function

POINT = "sr_control_point(&x, y + SR_Y_GOAL, p + SR_P_SCALE, &s);"


class QuasiVelocityTracking(Controller):
    r"""Tracking of a motion q_d(t) of all coordinates in reduced quasi-velocities, with wanted multipliers.

    Sheet 9.3 (equations (40) to (47) of the paper on reduced quasi-velocities, in the form that needs no basis at q_d):
    $v_r = Z^T M v$ with $Z^T M Z = I$, $s = Z^T M (v_d - K_p \tilde q)$, $\epsilon = v_r - s$,

    $$u_r = \dot s + \Gamma_r s - K_d \epsilon, \qquad \Gamma_r = Z^T (M \dot Z + C Z)\ \text{(skew)},$$

    and of the inputs that then are left, those with $\lambda = \lambda_d$. $\epsilon$ decays exactly as $e^{-K_d t}$
    (with the $\Gamma_r$ of the print, which is not skew, it may grow first).

    Stability: local. With $\epsilon = 0$ the error obeys $\dot{\tilde q} = -\Pi K_p \tilde q$ to first order, Π the
    projector on the allowed motions: it goes to zero from errors that are small against the bends of the manifold;
    positions with $Z^T K_p \tilde q = 0$ elsewhere are spurious equilibria. Every free motion must be reachable, and
    the reference must satisfy the constraints. Steady holonomic constraints only.
    """

    def __init__(
        self, system: System, reference: Any, kp: Any = 5.0, kd: float = 10.0,
        forces: Mapping[str, Any] | None = None, weights: Any = None,
    ):  # fmt: skip
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in; its positions must be plain numbers.
            reference: all positions as functions of time, on the manifold: a function, `Samples` (see
                `along_manifold`), or a position.
            kp: gain of the position error [1/s]: a number, or one for each coordinate.
            kd: gain of the velocity error [1/s].
            forces: as for `HybridMotionForce`.
            weights: of the inputs, as for `inverse_dynamics`.
        """
        builder = _plain(system, weights)
        m, s, layout = builder.machine, builder.machine.s, system.layout
        _holonomic(system)
        qd, vd, ad = builder.follow(reference, layout.nq, "reference")
        kps = builder.number("KP", gain("kp", kp, layout.nv, positive=True))
        builder.number("KD", gain("kd", kd, 1, positive=True))
        builder.column("MV", s["M"] @ s["v"])
        w = vd - kps * (s["q"] - qd)
        rate = ad - kps * (s["v"] - vd)
        builder.column("MW", s["M"] @ w)
        builder.column("AHEAD", s["M"] @ rate + m.coriolis(s["v"], w) + s["h"] - m.coriolis(s["v"], s["v"]))
        self.forces = add_forces(builder, forces)
        builder.texts.append(_across(builder))
        super().__init__(
            builder, "quasi",
            "sr_control_tracking(t, q, v, p, &x, y + SR_Y_GOAL, p[SR_P_KD], p + SR_P_INVERSE, p + SR_P_ON, "
            "p + SR_P_SCALE, &s);",
        )  # fmt: skip


class QuasiVelocityRegulation(Controller):
    r"""Regulation to a position in reduced quasi-velocities, with wanted multipliers.

    Sheet 9.4 (equations (48) and (51) of the paper on reduced quasi-velocities):

    $$Z^T(B u - G) = -K_d v_r - Z^T K_p \tilde q,$$

    and of the inputs that then are left, those with $\lambda = \lambda_d$. Constraints must not move with time.

    Stability: $V = (|v_r|^2 + \tilde q^T K_p \tilde q)/2$ never grows, so the machine comes to rest where
    $Z^T K_p \tilde q = 0$: at a critical point of the distance $\tilde q^T K_p \tilde q$ on the manifold. The goal is
    one of them and the start decides which; a start from which the distance has no other minimum on the way is safe. To
    cover more, move the set point along the manifold (`DependentCoordinates` does so). Every free motion must be
    reachable.
    """

    def __init__(
        self, system: System, goal: Any, kp: Any = 20.0, kd: float = 5.0, forces: Mapping[str, Any] | None = None,
        weights: Any = None,
    ):  # fmt: skip
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in; its positions must be plain numbers.
            goal: where to go: a state, or all positions.
            kp: stiffness: a number, or one for each coordinate [force per unit of it].
            kd: damping of the quasi-velocities [1/s].
            forces: as for `HybridMotionForce`.
            weights: of the inputs, as for `inverse_dynamics`.
        """
        builder = _plain(system, weights)
        m, s, layout = builder.machine, builder.machine.s, system.layout
        point = builder.follow(goal.q if isinstance(goal, State) else goal, layout.nq, "goal")[0]
        kps = builder.number("KP", gain("kp", kp, layout.nv, positive=True))
        damping = builder.number("KD", gain("kd", kd, 1, positive=True)) * (s["M"] @ s["v"])  # Zᵀ M v = v_r
        builder.column("PULL", m.at_rest() - kps * (s["q"] - point) - damping)
        self.forces = add_forces(builder, forces)
        super().__init__(builder, "quasi", POINT)


class DependentCoordinates(Controller):
    r"""Set-point control in all, dependent coordinates by the oblique projection R.

    Sheet 5 and 9.4 (equations (18) and (21) of the paper on non-minimal models):

    $$B u = R\,(G - K_p e - K_d (v - v_d)), \qquad R = B (P B)^+, \quad e = q - q_d .$$

    The printed law has a further term, $-\sigma K_p |e|\, v / |v|$ with $\sigma > 1$. This is dry friction stronger
    than the spring: every position at rest is an equilibrium, the machine sticks where it is, and chatters when
    sampled. Hence σ = 0 here, and the reference is moved along the manifold (`along_manifold`), so that e stays small
    and no other equilibrium comes near.

    Stability: with a fixed set point as for `QuasiVelocityRegulation`. Every free motion must be reachable, or R is not
    the identity on the motion (P R P = P fails).
    """

    def __init__(
        self, system: System, reference: Any, kp: Any = 100.0, kd: Any = 20.0, sigma: float = 0.0,
        smoothing: float = 1e-3, weights: Any = None,
    ):  # fmt: skip
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in; its positions must be plain numbers.
            reference: all positions: a set point, a function of time or `Samples` on the manifold.
            kp: stiffness: a number, or one for each coordinate [force per unit of it].
            kd: damping: a number, or one for each coordinate.
            sigma: of the printed law's friction, to see what it does.
            smoothing: speed below which that friction fades [1/s or m/s].
            weights: of the inputs, as for `inverse_dynamics`.
        """
        builder = _plain(system, weights)
        m, s, layout = builder.machine, builder.machine.s, system.layout
        qd, vd, _ = builder.follow(reference, layout.nq, "reference")
        kps = builder.number("KP", gain("kp", kp, layout.nv))
        kds = builder.number("KD", gain("kd", kd, layout.nv))
        e, v = s["q"] - qd, s["v"]
        force = m.at_rest() - kps * e - kds * (v - vd)
        if sigma:
            fade = builder.number("SMOOTHING", gain("smoothing", smoothing, 1, positive=True))
            strength = builder.number("SIGMA", gain("sigma", sigma, 1))
            size = ca.sqrt(ca.dot(e, e) + 1e-300)
            force -= strength * kps * size * v / (ca.sqrt(ca.dot(v, v) + 1e-300) + fade)
        builder.column("PULL", force)
        add_forces(builder, None)
        super().__init__(builder, "quasi", POINT)


def _plain(system: System, weights: Any) -> Builder:
    """A builder, for machines whose velocities are the rates of their positions, with steady constraints."""
    plain = plain_map(compiled(system).layout)
    if system.layout.turns or not np.array_equal(*plain):
        raise StateError(
            f"{system.name}: this controller compares all positions, which must be plain numbers; it has quaternions "
            f"({', '.join(system.layout.q_names[t.q] for t in system.layout.turns)}): use TaskSpace with an orientation"
        )
    builder = Builder(system)
    s = builder.machine.s
    for k in system.kept:
        moving = ca.vertcat(s["A"][k, :].T, s["at"][k])
        if ca.depends_on(moving, s["t"]) or ca.sparsify(s["at"][k]).nnz():
            name = system.layout.rows[k].group
            raise StateError(f"constraint {name!r} moves with time; this law is for steady ones: use TaskSpace")
    add_actuation(builder, weights)
    return builder


def _holonomic(system: System) -> None:
    """Refuse nonholonomic constraints."""
    for k in system.kept:
        row = system.layout.rows[k]
        if not row.holonomic:
            raise StateError(f"constraint {row.group!r} is nonholonomic; this law is for holonomic ones: use TaskSpace")


def _across(builder: Builder) -> str:
    """C of sr_control_across: Ȧᵀμ - Cᵀ w_n in the mass metric, w_n = M⁻¹ Aᵀ μ."""
    m, s = builder.machine, builder.machine.s
    kept = list(builder.system.kept)
    mu = SX.sym("mu", len(kept))
    across = SX.zeros(builder.system.layout.nv, 1)
    if kept:
        push = s["A"][kept, :].T @ mu
        x = SX.sym("x", builder.system.layout.nv)
        normal = m.solve_mass(push)
        turned = ca.jtimes(m.coriolis(s["v"], x), x, normal, True)  # Cᵀ w_n: C x is linear in x
        across = m.along(push, s["v"]) - turned
    function = Function(
        "sr_control_across", [s["t"], s["q"], s["v"], builder.block(), mu], [ca.cse(m.hat_columns(ca.densify(across)))]
    )
    return c_function(function, ["t", "q", "v", "p", "mu"], ["out"])
