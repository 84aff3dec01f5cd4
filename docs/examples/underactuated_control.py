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


def run(pose: tuple[float, float, float], t_end: float = 20.0) -> dict:
    """Move the tip by (0.1, 0.1) m from a pose at rest."""
    start = system.state(list(pose))
    home = system.frame(start, "tip")[0][[0, 2]]
    goal = home + 0.1
    control = sr.control.TaskSpace(system, tip, goal, kp=100.0, kd=20.0)
    traj = sr.simulate(system, start, t_end, control=control, method="rk4", dt=1e-3, max_steps=20_001)
    if not traj.status.ok:
        return {"motion": traj, "lost at": float(traj.t[-1])}
    places = np.stack([system.frame(system.state(q), "tip")[0][[0, 2]] for q in traj.q[::10]])
    t = traj.t[::10]
    step = (goal - home) * ((1 + 10 * t) * np.exp(-10 * t))[:, None]
    swing, count = traj["q1"], len(traj.t)
    return {
        "motion": traj,
        "deviation": float(np.linalg.norm(goal - places - step, axis=1).max()),
        "final error": float(np.linalg.norm(goal - places[-1])),
        "peak torque": float(np.abs(traj.u).max()),
        "swing in the second quarter": float(np.ptp(swing[count // 4 : count // 2])),
        "swing in the last quarter": float(np.ptp(swing[-count // 4 :])),
    }


def main() -> dict[str, dict]:
    """The good pose, and a common one that does not work."""
    results = {"stable pose": run((-1.745, 0.3, 2.5)), "another pose": run((0.3, 0.8, 0.9), 1.0)}
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.8g}" for key, value in values.items() if key != "motion"))
    return results


def draw(results: dict[str, dict]):
    """The tip settles, the rest swings on; from another pose it runs away."""
    from matplotlib.figure import Figure

    traj, lost = results["stable pose"]["motion"], results["another pose"]["motion"]
    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    tip = traj["tip.position"]
    left.plot(traj.t, 1e3 * (tip[:, 0] - tip[-1, 0]), label="tip, x")
    left.plot(traj.t, 1e3 * (tip[:, 2] - tip[-1, 2]), "--", label="tip, z")
    left.set(xlabel="time [s]", ylabel="from the goal [mm]", xlim=(0, 1))
    left.legend()
    middle.plot(traj.t, traj["q1"])
    middle.set(xlabel="time [s]", ylabel="first joint [rad]", xlim=(0, 20))
    right.plot(1e3 * lost.t, np.abs(lost.u).max(axis=1), "C3")
    right.set(xlabel="time [ms]", ylabel="largest torque [N m]", yscale="log", title="from another pose")
    return figure


if __name__ == "__main__":
    draw(main()).savefig("underactuated_control.png", dpi=150)
