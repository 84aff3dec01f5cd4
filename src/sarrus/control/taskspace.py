"""Task control of constrained machines, redundant, parallel or underactuated (sheet 8, 9.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from sarrus.control.builder import Builder
from sarrus.control.controller import Controller, add_actuation
from sarrus.control.motion import define_tasks
from sarrus.control.tasks import task_terms, traced
from sarrus.control.terms import MachineTerms, gain
from sarrus.dynamics.system import System
from sarrus.errors import StateError

FORMULATIONS = ("direct", "minimal", "partitioned")


@dataclass(frozen=True, eq=False)
class Posture:
    """What a machine does with the motion that its tasks leave free: it goes down a potential U, damped.

    τ₀ = G - gain ∇U - damping M v (sheet 8; equation (95) of the paper on task control, with G added). Without G (the
    equation as printed; gravity=False) it stops where gain ∇U balances gravity, and not at the minimum of U.

    Attributes:
        potential: "gravity effort" for U = GᵀG, the squared forces that hold the machine still, or a function of
            (t, x) that returns an expression of the position (see `Moment`).
        gain: how steeply.
        damping: of the free motion [1/s]. Without damping it goes on for ever.
        gravity: whether G is made up for.
    """

    potential: str | Callable[..., Any] | None = "gravity effort"
    gain: float = 0.1
    damping: float = 5.0
    gravity: bool = True


class TaskSpace(Controller):
    r"""Control of tasks x(q) in strict order, for redundant, parallel, redundantly driven and underactuated machines.

    Sheet 8 (paper on task-level control): with the constrained mobility $\mathrm{Mob} = Z Z^T$ the inputs satisfy

    $$K u = \ddot x^* + J\,\mathrm{Mob}\,h - J a_n - \dot J v, \quad K = J\,\mathrm{Mob}\,B, \quad
      \ddot x^* = \ddot x_d + K_d(\dot x_d - \dot x) + K_p(x_d - x).$$

    Formulations, which give the same task motion:

    - "direct" (equation (70)): Mob from the constraints, $K^+$, the smallest inputs; where the constraints lose rank,
      as "minimal";
    - "minimal" (equation (79)): the same in a basis of the free motion;
    - "partitioned" (equations (87) to (92), with the null-space term that (91) lacks): task and constraints stacked;
      what the task leaves free is moved as little as it can be (least acceleration energy), or by the posture, and then
      the inputs need the smallest further force $f_C$ on the constraints. For passive joints this solves
      $\tilde S (J^T f_t + A^T f_C + N_c^T \tau_0) = 0$.

    A later task only uses what the earlier ones leave free, dynamically consistent: it does not accelerate them.
    Directions of K weaker than 1e-8 of its strongest are not served, its rows being taken of one size.

    Stability: errors of a task decay with the roots of $s^2 + k_d s + k_p$ if K has as many independent rows as the
    tasks up to it (`controllability`), and the model is the machine. This says nothing of the motion left free: without
    damping it goes on (sheet 12.4), and that of an underactuated machine is bounded only near a stable point of its
    zero dynamics (12.6).
    """

    def __init__(
        self, system: System, task: Any, reference: Any, kp: Any = 100.0, kd: Any = 20.0,
        formulation: str = "direct", then: Sequence[tuple[Any, Any]] = (), posture: Posture | None = None,
        weights: Any = None,
    ):  # fmt: skip
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in.
            task: as for `ProjectedInverseDynamics`, with any number of values.
            reference: what the task follows: numbers, a function of time, `MinimumJerk`, `Polynomial` or `Samples`.
            kp: stiffness of the errors [1/s²]: a number, or one for each value of all tasks.
            kd: damping of the errors [1/s].
            formulation: "direct", "minimal" or "partitioned".
            then: further tasks with their references, less important each.
            posture: what the motion left free does; not given: "direct" and "minimal" take the smallest inputs.
            weights: of the inputs, as for `inverse_dynamics`.
        """
        if formulation not in FORMULATIONS:
            raise StateError(f"formulation {formulation!r}: use {', '.join(map(repr, FORMULATIONS))}")
        builder = Builder(system)
        add_actuation(builder, weights)
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in then):
            raise StateError(f"then: expected a list of pairs (task, reference), got {then!r}")
        if not isinstance(posture, Posture | None):
            raise StateError(f"posture: expected a sr.control.Posture, got {posture!r}")
        pairs = [(task, reference), *then]
        terms = [task_terms(builder.machine, item) for item, _ in pairs]
        size = sum(x.size for x in terms)
        builder.column("J", ca.horzcat(*[x.J.T for x in terms]))
        kps = builder.number("KP", gain("kp", kp, size, positive=True))
        kds = builder.number("KD", gain("kd", kd, size, positive=True))
        commands, at = [], 0
        for x, (_, target) in zip(terms, pairs, strict=True):
            where = slice(at, at + x.size)
            wanted = builder.follow(target, x.values, "reference")
            commands.append(x.command(builder.machine.s["v"], *wanted, kps[where], kds[where]))
            at += x.size
        builder.vector("TASK", ca.vertcat(*commands))
        define_tasks(builder, terms)
        builder.defines["PARTITIONED"] = int(formulation == "partitioned")
        if formulation == "direct" and posture is None and not system.redundant:
            builder.fast = ca.vertcat(*[x.J for x in terms]), builder.vectors["TASK"], False
        if posture is not None:
            builder.column("POSTURE", _posture(builder, posture))
        self.task = tuple(name for x in terms for name in x.names)
        self.formulation = formulation
        super().__init__(builder, "task", "sr_control_task(&x, y + SR_Y_TASK, p + SR_P_INVERSE, p + SR_P_SCALE, &s);")


def _posture(builder: Builder, posture: Posture) -> Any:
    """τ₀ = G - gain ∇U - damping M v."""
    m = builder.machine
    strength = builder.number("POSTURE_GAIN", gain("Posture: gain", posture.gain, 1))
    damping = builder.number("POSTURE_DAMPING", gain("Posture: damping", posture.damping, 1))
    force = -damping * (m.s["M"] @ m.s["v"])
    if posture.potential is not None:
        force -= strength * m.slope(_potential(m, posture.potential))
    return force + m.at_rest() if posture.gravity else force


def _potential(m: MachineTerms, potential: Any) -> Any:
    if potential == "gravity effort":
        G = m.at_rest()
        return ca.dot(G, G)
    if not callable(potential):
        raise StateError(f"Posture: expected 'gravity effort' or a function of (t, x), got {potential!r}")
    value = traced(potential, m.moment, "Posture")
    if value.numel() != 1 or ca.depends_on(value, ca.vertcat(m.s["v"], m.s["t"])):
        raise StateError("Posture: the potential must return one expression of the position, not of time or velocities")
    return value
