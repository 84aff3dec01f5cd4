"""A planar platform on three legs, driven at its elbows alone: tasks of the elbows, and of the platform.

The hips and the platform have no motors. Both tasks follow (1 + 10 t) exp(-10 t) exactly; the second needs further
forces on the loops, since the platform can only be moved through them.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("planar_platform"))
ELBOWS = ["elbow1", "elbow2", "elbow3"]
POSE = ["platform.x", "platform.z", "platform.angle"]


def run(task: list[str], goal: np.ndarray, dt: float = 1e-3) -> dict[str, float]:
    """Two seconds towards a goal of the task."""
    start = system.assemble()
    where = [system.layout.q_names.index(name) for name in task]
    control = sr.control.TaskSpace(system, task, goal, kp=100.0, kd=20.0, formulation="partitioned")
    traj = sr.simulate(system, start, 2.0, control=control, method="rk4", dt=dt)
    step = (goal - start.q[where])[None] * ((1 + 10 * traj.t) * np.exp(-10 * traj.t))[:, None]
    error = goal - traj.q[:, where]
    return {
        "deviation": float(np.linalg.norm(error - step, axis=1).max()),
        "final error": float(np.linalg.norm(error[-1])),
        "peak torque": float(np.abs(traj.u).max()),
        "loop error": float(max(np.abs(system.terms(system.state(q)).phi).max() for q in traj.q[::100])),
    }


def main() -> dict[str, dict[str, float]]:
    """The elbows to where the platform is at (0.05, 0.04, 0.8 rad); then the platform turned by 30 degrees in place."""
    target = system.assemble({"platform.x": 0.05, "platform.z": 0.04, "platform.angle": 0.8})
    results = {
        "elbows": run(ELBOWS, np.array([target[name] for name in ELBOWS])),
        "platform": run(POSE, np.array([0.0, 0.0, 0.6 + np.radians(30.0)])),
    }
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items()))
    return results


if __name__ == "__main__":
    main()
