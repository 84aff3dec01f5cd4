"""A chain of three links without a motor at its first joint: the tip goes where it should, the rest swings on.

The tip is controlled exactly with two motors. What the task leaves free, the zero dynamics, is not: here it swings for
ever with one amplitude, because the start is near a stable point of it. From most other poses it runs away.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("underactuated_chain"))


def tip(t, x):
    """Position of the tip in the plane."""
    return [x["tip.position"][0], x["tip.position"][2]]


def run(pose: tuple[float, float, float], t_end: float = 20.0) -> dict[str, float]:
    """Move the tip by (0.1, 0.1) m from a pose at rest."""
    start = system.state(list(pose))
    home = system.frame(start, "tip")[0][[0, 2]]
    goal = home + 0.1
    control = sr.control.TaskSpace(system, tip, goal, kp=100.0, kd=20.0)
    traj = sr.simulate(system, start, t_end, control=control, method="rk4", dt=1e-3, max_steps=20_001)
    if not traj.status.ok:
        return {"lost at": float(traj.t[-1])}
    places = np.stack([system.frame(system.state(q), "tip")[0][[0, 2]] for q in traj.q[::10]])
    t = traj.t[::10]
    step = (goal - home) * ((1 + 10 * t) * np.exp(-10 * t))[:, None]
    swing, count = traj["q1"], len(traj.t)
    return {
        "deviation": float(np.linalg.norm(goal - places - step, axis=1).max()),
        "final error": float(np.linalg.norm(goal - places[-1])),
        "peak torque": float(np.abs(traj.u).max()),
        "swing in the second quarter": float(np.ptp(swing[count // 4 : count // 2])),
        "swing in the last quarter": float(np.ptp(swing[-count // 4 :])),
    }


def main() -> dict[str, dict[str, float]]:
    """The good pose, and a common one that does not work."""
    results = {"stable pose": run((-1.745, 0.3, 2.5)), "another pose": run((0.3, 0.8, 0.9), 1.0)}
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.8g}" for key, value in values.items()))
    return results


if __name__ == "__main__":
    main()
