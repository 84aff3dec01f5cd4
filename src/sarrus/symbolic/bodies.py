"""Bodies one by one: what each needs from its joints, and where each constraint row takes hold of it.

The equations of a machine are written in its joint coordinates, in which the reactions of the tree's joints do not
occur. They come back when each body may also move on its own. With V = (v, ω₁, u₁, ω₂, u₂, …), the joint velocities
and then the angular velocity and that of the origin of every body, in its own axes, as if they were independent, the
rate of a row is

    Φ̇ = D v + Σ_b W_b (ω_b, u_b)       (A v = a for a row in velocities),

so that a multiplier λ pushes with the moment and force W_bᵀλ on body b, and with Dᵀλ across the joints whose
coordinates the row names (gears, locks). The same split of an input's rate and of a joint spring's rate says where
these push. D + Σ_b W_b J_b is the row of A, J_b the Jacobian of body b.
"""

from __future__ import annotations

import copy
from typing import Any

import casadi as ca

from sarrus.model.parts import GROUND, Model
from sarrus.model.tree import span
from sarrus.symbolic.algebra import SX, Function, cross, zeros3
from sarrus.symbolic.constraints import constraint_blocks
from sarrus.symbolic.dynamics import TreeDynamics, joint_elastics
from sarrus.symbolic.kinematics import Kinematics, Link
from sarrus.symbolic.terms import actuator_rates


def _skew(w: Any) -> Any:
    return ca.horzcat(*[cross(w, SX.eye(3)[:, i]) for i in range(3)])


def loosen(k: Kinematics) -> tuple[Kinematics, Any, Any]:
    """The machine with every body's pose and velocity a symbol of its own; the poses (R, p) and V as columns."""
    loose = copy.copy(k)
    loose.links = {GROUND: k.links[GROUND]}
    poses, rates, twists = [], [], []
    for body in k.model.bodies:
        R, p, w, u = SX.sym("R", 3, 3), SX.sym("p", 3), SX.sym("w", 3), SX.sym("u", 3)
        loose.links[body.name] = Link(R, p, w, u, zeros3(), zeros3())
        poses += [ca.reshape(R, 9, 1), p]
        rates += [ca.reshape(R @ _skew(w), 9, 1), R @ u]
        twists += [w, u]
    loose.places, loose.rates = ca.vertcat(k.q, *poses), ca.vertcat(k.qdot, *rates)
    return loose, ca.vertcat(SX(0, 1), *poses), ca.vertcat(k.v, *twists)


def grip_function(model: Model) -> Any:
    """(t, q, v, p, poses) -> rows (m, nv + 6 nb), inputs (nu, …), and the push of joint springs (nv + 6 nb), over V."""
    k = Kinematics(model, span(model))
    loose, poses, V = loosen(k)

    def grip(rate: Any) -> Any:
        return ca.densify(ca.jacobian(rate, V))

    rates = []
    for block in constraint_blocks(loose):
        for i, row in enumerate(block.rows):
            source = block.source[i]
            rates.append(ca.jtimes(source, loose.places, loose.rates) if row.holonomic else source)
    push = SX.zeros(V.numel(), 1)
    for spring in joint_elastics(loose):
        push += ca.jacobian(spring.rate, V).T @ spring.force
    # A damper's force needs the true velocities of the bodies, everything else only their poses.
    links = [k.links[body.name] for body in model.bodies]
    true = ca.vertcat(k.v, *[x for link in links for x in (link.w, link.v)])
    push = ca.substitute(push, V[k.nv :], true[k.nv :]) if links else push
    outputs = [grip(ca.vertcat(SX(0, 1), *rates)), grip(ca.vertcat(SX(0, 1), *actuator_rates(loose)))]
    return Function("grip", [k.t, k.q, k.v, k.p, poses], [*outputs, ca.densify(push)])


def body_function(model: Model) -> Any:
    """(t, q, v, p) -> poses (12 nb), need (6, nb), inertia (6, 6 nb), J (6, nb nv), joint columns (6, nv), rotors (nv).

    `need` is the moment and force that each body takes at v̇ = 0 from its joints, rows, inputs and joint springs;
    `inertia` adds what v̇ takes. Both in body axes, about the body's origin, the moment first, like V. Joint columns
    are in world axes: the angular velocity across the joint, and the velocity of the outer body's origin.
    """
    k = Kinematics(model, span(model))
    dynamics = TreeDynamics(k)
    force, moment = dynamics.required()
    poses, need, inertia, jacobians = [SX(0, 1)], [SX(6, 0)], [SX(6, 0)], [SX(6, 0)]
    for body in model.bodies:
        link, own = k.links[body.name], dynamics.own[body.name]
        poses += [ca.reshape(link.R, 9, 1), link.p]
        need.append(ca.vertcat(moment[body.name], force[body.name]))
        c = _skew(own.c)
        inertia.append(ca.vertcat(ca.horzcat(own.inertia, c), ca.horzcat(-c, own.mass * SX.eye(3))))
        jacobians.append(ca.jacobian(ca.vertcat(link.w, link.v), k.v))
    columns = [ca.vertcat(b.Sw, b.Su) for b in k.branches if b.edge.joint.nv]
    rotors = [k.number(b.edge.joint.rotor_inertia) for b in k.branches for _ in b.columns]
    outputs = [
        ca.vertcat(*poses), ca.horzcat(*need), ca.horzcat(*inertia), ca.horzcat(*jacobians),
        ca.horzcat(SX(6, 0), *columns), ca.vertcat(SX(0, 1), *rotors),
    ]  # fmt: skip
    return Function("bodies", [k.t, k.q, k.v, k.p], [ca.densify(x) for x in ca.cse(outputs)])
