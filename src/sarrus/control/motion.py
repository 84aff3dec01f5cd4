"""Motion control by projected inverse dynamics (sheet 9.1), and motion with constraint forces (sheet 9.2)."""

from __future__ import annotations

from typing import Any

from sarrus.control.builder import Builder
from sarrus.control.controller import Controller, add_actuation
from sarrus.control.tasks import task_terms
from sarrus.control.terms import gain
from sarrus.dynamics.system import System


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
    rank $Z^T B$ = mobility, and (c) the model is the machine. Where (a) or (b) fails the nearest acceleration in the mass
    metric is commanded, so inputs stay bounded, but errors need not decay there.
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
        terms = task_terms(builder.machine, task)
        add_actuation(builder, weights)
        builder.column("J", terms.J.T)
        target = builder.follow(reference, terms.values, "reference")
        gains = [
            builder.number(name.upper(), gain(name, x, terms.size, positive=True))
            for name, x in (("kp", kp), ("kd", kd))
        ]
        builder.vector("TASK", terms.command(builder.machine.s["v"], *target, *gains))
        builder.defines["NT"] = terms.size
        super().__init__(builder, "motion", "sr_control_motion(&x, y + SR_Y_TASK, p + SR_P_SCALE, &s);")
        self.task = terms.names
