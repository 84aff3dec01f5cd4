"""Motion control by projected inverse dynamics (sheet 9.1), and motion with constraint forces (sheet 9.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sarrus.control.builder import Builder
from sarrus.control.controller import Controller, add_actuation
from sarrus.control.forces import add_forces
from sarrus.control.reach import independent
from sarrus.control.tasks import TaskTerms, jacobian_at, task_terms
from sarrus.control.terms import gain
from sarrus.dynamics.system import System
from sarrus.errors import StateError


class ProjectedInverseDynamics(Controller):
    r"""Motion control of a machine with loops by projected inverse dynamics.

    The task θ must be a chart of the machine's free motion: as many values as the machine has mobility. With the
    projector $P$ on the motions that the constraints allow (sheet 9.1; equations (43), (44) and (60) of the paper on
    projected dynamics),

    $$f = P h + P M u_p, \qquad u_p = \dot\Lambda\dot\theta + \Lambda(\ddot\theta_d + K_d \dot e + K_p e),$$

    which is the force of smallest (weighted) norm with this motion; with passive joints it is $R f$ (sheet 5), the
    smallest inputs $u$ with $P B u = P f$. The error then obeys $\ddot e + K_d \dot e + K_p e = 0$ exactly.

    Stability: each error decays with the roots of $s^2 + k_d s + k_p$ for all positive gains, as long as (a) θ is a
    chart (its Jacobian on the free motion is regular), (b) every free motion is reachable by the inputs,
    rank $Z^T B$ = mobility, and (c) the model is the machine. Where (a) or (b) fails the nearest acceleration in the
    mass metric is commanded, so inputs stay bounded, but errors need not decay there.
    """

    def __init__(self, system: System, task: Any, reference: Any, kp: Any = 100.0, kd: Any = 20.0, weights: Any = None):
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in.
            task: coordinate names, a `system.task(...)`, a function of (t, x) that returns expressions of the position
                (see `Moment`), or a list of these.
            reference: what the task follows: numbers, a function of time, `MinimumJerk`, `Polynomial` or `Samples`.
            kp: stiffness of the error [1/s²]: a number, or one for each value of the task.
            kd: damping of the error [1/s].
            weights: of the inputs, as for `inverse_dynamics`.
        """
        builder = Builder(system)
        add_actuation(builder, weights)
        self.task, J = add_task(builder, task, reference, kp, kd)
        if not system.redundant:
            builder.fast = J, builder.vectors["TASK"], True
        super().__init__(builder, "motion", "sr_control_motion(&x, y + SR_Y_TASK, p + SR_P_SCALE, &s);")


class HybridMotionForce(Controller):
    r"""Motion control as in `ProjectedInverseDynamics`, together with wanted constraint forces.

    Sheet 9.2 (equations (46) to (52), (58) to (62) of the paper on projected dynamics, corrected). For a machine with a
    motor on every coordinate

    $$f = h + \kappa M a_n + (I + \kappa) P M u_p + u_F, \qquad u_F = A^T \lambda_c,$$

    with the multipliers $\lambda_c = \lambda_d + k_F e_\lambda + k_I \int e_\lambda$, $e_\lambda = \lambda_d -
    \lambda$. With passive joints (the paper's H) the motion comes first, and the wanted multipliers are met as far as
    inputs that move nothing can. So the motion never depends on the force errors; `controllability` tells how many
    forces can be had. Of redundant rows only the part $A A^+ \lambda$ can be controlled.

    Gains act on multipliers, since the integral of a force vector in a direction that turns is never right.

    Stability: motion as for `ProjectedInverseDynamics`. Without gains the force is right as far as the model is. With
    gains the loop must be sampled, and what is measured is one period $T$ old: it is stable if and only if
    $k_F + k_I T / 2 < 1$ ($k_I$ in 1/s). $k_F = 0$ (forward and integral only) is recommended, and the default.
    """

    def __init__(
        self, system: System, task: Any, reference: Any, forces: Mapping[str, Any], kp: Any = 100.0, kd: Any = 20.0,
        kf: float = 0.0, ki: float = 0.0, weights: Any = None,
    ):  # fmt: skip
        """Derive and compile the law.

        Args:
            system: the machine that the controller believes in.
            task: as for `ProjectedInverseDynamics`.
            reference: what the task follows.
            forces: constraint name, or name of one of its rows -> wanted multipliers: numbers, a function of time, a
                path or `Samples`.
            kp: stiffness of the error of the motion [1/s²].
            kd: damping of it [1/s].
            kf: proportional gain of the error of the multipliers.
            ki: integral gain of it [1/s].
            weights: of the inputs, as for `inverse_dynamics`.
        """
        builder = Builder(system)
        add_actuation(builder, weights)
        self.task, _ = add_task(builder, task, reference, kp, kd)
        self.forces = add_forces(builder, forces, measured=True)
        gains = {name: gain(name, value, 1) for name, value in (("kf", kf), ("ki", ki))}
        for name, value in gains.items():
            builder.number(name.upper(), value)
        inputs = "p + SR_P_SCALE, &s);"
        feedback = (
            "real goal[SR_DIM(SR_NF)]; sr_force_feedback(t, y + SR_Y_GOAL, lam, p + SR_P_INVERSE, p[SR_P_KF], "
            f"p[SR_P_KI], memory, goal); sr_control_hybrid(&x, y + SR_Y_TASK, goal, {inputs}"
        )
        self.gains = float(gains["kf"][0]), float(gains["ki"][0])
        with_memory = any(self.gains)
        super().__init__(
            builder, "hybrid", f"sr_control_hybrid(&x, y + SR_Y_TASK, y + SR_Y_GOAL, {inputs}",
            feedback if with_memory else "", len(self.forces) + 2 if with_memory else 0,
        )  # fmt: skip

    def stable(self, period: float) -> bool:
        """Whether the loop of the force is stable when sampled with this period [s]: k_F + k_I T/2 < 1."""
        return self.gains[0] + self.gains[1] * period / 2 < 1


def add_task(builder: Builder, task: Any, reference: Any, kp: Any, kd: Any) -> tuple[tuple[str, ...], Any]:
    """Column J and vector TASK for a task that is a chart; the names of its values, and J."""
    terms = task_terms(builder.machine, task)
    _check_chart(builder, terms)
    builder.column("J", terms.J.T)
    target = builder.follow(reference, terms.values, "reference")
    gains = [
        builder.number(name.upper(), gain(name, x, terms.size, positive=True)) for name, x in (("kp", kp), ("kd", kd))
    ]
    builder.vector("TASK", terms.command(builder.machine.s["v"], *target, *gains))
    define_tasks(builder, [terms])
    return terms.names, terms.J


def define_tasks(builder: Builder, terms: Sequence[TaskTerms]) -> None:
    """Where each of several tasks ends among their rows."""
    builder.ends = [sum(x.size for x in terms[: k + 1]) for k in range(len(terms))]
    builder.defines |= {"NT": builder.ends[-1], "TASKS": len(terms)}


def _check_chart(builder: Builder, terms: TaskTerms) -> None:
    """Refuse a task that is no chart at an ordinary position near where the machine is assembled, if there is one."""
    from sarrus.errors import SarrusError

    system = builder.system
    try:
        home = system.assemble()
        q = system.retract(home.q, 0.01 * np.array(system.layout.scales) * np.cos(np.arange(system.layout.nv)))
        place = system.assemble(near=system.state(q))
        mobility = system.rank(place).mobility
    except SarrusError:
        return
    task = f"task: {', '.join(terms.names)} are {terms.size} value(s)"
    cure = "expected a chart of its free motion (as many independent values), or use TaskSpace"
    if terms.size != mobility:
        raise StateError(f"{task}, but {system.name} has mobility {mobility}; {cure}")
    free = independent(system, place, jacobian_at(builder.machine, terms, place))
    if free < mobility:
        raise StateError(f"{task}, of which {system.name} can move {free} independently; {cure}")
