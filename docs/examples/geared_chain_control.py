"""A redundant chain of six geared links: its tip goes to a point, what is left free lowers the gravity effort.

The tip's error is (1 + 10 t) exp(-10 t) of the step, whatever the rest does. As printed in the paper, the posture
forgets gravity and stops short of the least effort; with gravity made up for it gets there. Without damping, the free
motion never ends.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("geared_chain"))


def tip(t, x):
    """Position of the tip in the plane."""
    return [x["tip.position"][0], x["tip.position"][2]]


def run(gravity: bool, damping: float = 5.0, t_end: float = 10.0, dt: float = 1e-3) -> dict:
    """Move the tip by (-0.3, 0.2) m."""
    start = system.assemble()
    home = system.frame(start, "tip")[0][[0, 2]]
    goal = home + np.array([-0.3, 0.2])
    posture = sr.control.Posture("gravity effort", gain=0.1, damping=damping, gravity=gravity)
    control = sr.control.TaskSpace(system, tip, goal, kp=100.0, kd=20.0, formulation="partitioned", posture=posture)
    traj = sr.simulate(system, start, t_end, control=control, method="rk4", dt=dt)
    early = np.flatnonzero(traj.t <= 3.0 + 1e-9)
    places = np.stack([system.frame(system.state(q), "tip")[0][[0, 2]] for q in traj.q[early]])
    expected = (goal - home) * ((1 + 10 * traj.t[early]) * np.exp(-10 * traj.t[early]))[:, None]
    holding = system.terms(system.state(traj.q[-1])).h
    return {
        "motion": traj,
        "deviation": float(np.linalg.norm(goal - places - expected, axis=1).max()),
        "effort": float(holding @ holding),
        "peak torque": float(np.abs(traj.u[early]).max()),
        "final speed": float(np.linalg.norm(traj.v[-1])),
        "pose": traj.q[-1],
    }


def main() -> dict[str, dict]:
    """With gravity made up for, as printed, and without damping."""
    results = {
        "with gravity": run(gravity=True),
        "as printed": run(gravity=False),
        "no damping": run(gravity=False, damping=0.0, t_end=3.0),
    }
    for name, x in results.items():
        shown = ", ".join(f"{key} {value:.6g}" for key, value in x.items() if key not in ("pose", "motion"))
        print(f"{name}: {shown}, pose {np.round(x['pose'], 4)}")
    return results


def draw(results: dict[str, dict]):
    """Where the chain ends by each posture, and how the effort falls."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, x), color in zip(results.items(), ("C0", "C1", "C2"), strict=True):
        traj = x["motion"]
        poses = ((traj.q[0], "0.6", "start"),) if color == "C0" else ()
        for q, shade, label in (*poses, (traj.q[-1], color, name)):
            turn = np.cumsum(q)
            steps = 0.3 * np.c_[np.cos(turn), np.sin(turn)]
            left.plot(*np.vstack([[0, 0], np.cumsum(steps, axis=0)]).T, "o-", ms=3, color=shade, label=label)
        states = system.state(traj.q[::20])
        right.plot(traj.t[::20], (system.terms(states).h ** 2).sum(axis=1), color=color, label=name)
    left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    left.legend(fontsize="small")
    right.set(xlabel="time [s]", ylabel="gravity effort [N² m²]", xlim=(0, 5))
    right.legend()
    return figure


if __name__ == "__main__":
    draw(main()).savefig("geared_chain_control.png", dpi=150)
