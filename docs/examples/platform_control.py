"""A planar platform on three legs, driven at its elbows alone: tasks of the elbows, and of the platform.

The hips and the platform have no motors. Both tasks follow (1 + 10 t) exp(-10 t) exactly; the second needs further
forces f_C on the loops, since the platform can only be moved through them: B u = Jᵀ f_t + Aᵀ f_C. Loops that are
closed twice change nothing but the share of each row: the least f_C is smaller.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

ELBOWS = ["elbow1", "elbow2", "elbow3"]
POSE = ["platform.x", "platform.z", "platform.angle"]


def platform(doubled: bool = False) -> sr.System:
    """The machine of the library; `doubled` closes two of its loops once more, by rows that depend on the others."""
    mech = sr.library.build("planar_platform")

    def gap(k, leg, degrees):
        corner = 0.2 * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        return k.position(sr.point_on("platform", tuple(corner))) - k.position(sr.point_on(f"shank{leg}", (0.5, 0)))

    if doubled:
        mech.constrain("both", lambda k: gap(k, 1, 210)[0] + gap(k, 2, 330)[2])
        mech.constrain("again", lambda k: gap(k, 2, 330)[0])
    return sr.compile(mech)


def further_force(system: sr.System, state: sr.State, task: list[str], u: np.ndarray) -> float:
    """|f_C|: the least multipliers that, with the force on the task, make up the inputs."""
    x = system.terms(state)
    rows = np.linalg.svd(x.A)
    free = rows[2][np.sum(rows[1] > 1e-8) :]
    J = np.eye(system.layout.nv)[[system.layout.v_names.index(name) for name in task]]
    ft = np.linalg.solve(free @ J.T, free @ x.B @ u)
    return float(np.linalg.norm(np.linalg.pinv(x.A.T, rcond=1e-8) @ (x.B @ u - J.T @ ft)))


def run(system: sr.System, task: list[str], goal: np.ndarray, dt: float = 1e-3) -> dict[str, float]:
    """Two seconds towards a goal of the task."""
    start = system.assemble()
    where = [system.layout.q_names.index(name) for name in task]
    control = sr.control.TaskSpace(system, task, goal, kp=100.0, kd=20.0, formulation="partitioned")
    traj = sr.simulate(system, start, 2.0, control=control, method="rk4", dt=dt)
    step = (goal - start.q[where])[None] * ((1 + 10 * traj.t) * np.exp(-10 * traj.t))[:, None]
    error = goal - traj.q[:, where]
    every = range(0, len(traj.t), 20)
    return {
        "deviation": float(np.linalg.norm(error - step, axis=1).max()),
        "final error": float(np.linalg.norm(error[-1])),
        "peak torque": float(np.abs(traj.u).max()),
        "further force": max(further_force(system, traj.state(k), task, traj.u[k]) for k in every),
        "loop error": float(max(np.abs(system.terms(traj.state(k)).phi).max() for k in every)),
    }


def swing(system: sr.System, dt: float = 1e-3) -> dict[str, float]:
    """Five seconds without torques: the energy stays, and the loops come near to a singular position."""
    start = system.assemble({"platform.x": 0.02, "platform.z": 0.0, "platform.angle": 0.6})
    traj = sr.simulate(system, start, 5.0, method="rk4", dt=dt)
    rows = [system.terms(traj.state(k)).A[list(system.kept)] for k in range(len(traj.t))]
    return {
        "energy error": float(np.abs(traj.energy.total - traj.energy.total[0]).max()),
        "loop error": float(max(np.abs(system.terms(traj.state(k)).phi).max() for k in range(0, len(traj.t), 20))),
        "smallest singular value": float(min(np.linalg.svd(A, compute_uv=False)[-1] for A in rows)),
    }


def main() -> dict[str, dict[str, float]]:
    """The elbows to where the platform is at (0.05, 0.04, 0.8 rad); then the platform turned by 30 degrees in place."""
    system = platform()
    target = system.assemble({"platform.x": 0.05, "platform.z": 0.04, "platform.angle": 0.8})
    turned = np.array([0.0, 0.0, 0.6 + np.radians(30.0)])
    results = {
        "elbows": run(system, ELBOWS, np.array([target[name] for name in ELBOWS])),
        "platform": run(system, POSE, turned),
        "doubled loops": run(platform(doubled=True), POSE, turned),
        "free swing": swing(system),
    }
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items()))
    return results


if __name__ == "__main__":
    main()
