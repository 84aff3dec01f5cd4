"""Projected inverse dynamics on a slider-crank, with motors on both joints and on the crank alone.

The crank follows a sine from a start that is 0.2 rad off, with a controller that looks at the machine every
millisecond. Both machines move alike; the one motor needs about twice the torque that two share.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import sarrus as sr


def run(motors: tuple[str, ...]) -> dict:
    """Five seconds of tracking; error of the crank's angle and mean size of the torques."""
    system = sr.compile(sr.library.build("slider_crank", motors=motors))
    control = sr.control.ProjectedInverseDynamics(
        system, task="A", reference=lambda t: 0.3 + 0.2 * ca.sin(2 * t), kp=100.0, kd=20.0
    )
    start = system.assemble({"A": 0.5})
    traj = sr.simulate(system, start, 5.0, control=control, sample=1e-3, method="rk4", dt=1e-3)
    error = np.abs(0.3 + 0.2 * np.sin(2 * traj.t) - traj["A"])
    return {
        "motion": traj,
        "error at 1 s": float(np.interp(1.0, traj.t, error)),
        "largest error after 2 s": float(error[traj.t > 2.0].max()),
        "mean torque": float(np.linalg.norm(traj.u[1:], axis=1).mean()),
        "loop error": float(max(np.abs(system.terms(traj.final).phi))),
    }


def main() -> dict[str, dict]:
    """Both machines."""
    results = {"two motors": run(("A", "B")), "crank alone": run(("A",))}
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {x:.3g}" for key, x in values.items() if key != "motion"))
    return results


def draw(results: dict[str, dict]):
    """The way to the reference, and the torques of both machines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, x), style in zip(results.items(), ("C0-", "C1--"), strict=True):
        traj = x["motion"]
        left.plot(traj.t, traj["A"], style, label=name)
        right.plot(traj.t[1:], np.linalg.norm(traj.u[1:], axis=1), style, label=name)
    left.plot(traj.t, 0.3 + 0.2 * np.sin(2 * traj.t), "k:", label="reference")
    left.set(xlabel="time [s]", ylabel="crank [rad]", xlim=(0, 5))
    right.set(xlabel="time [s]", ylabel="size of the torques [N m]", xlim=(0, 5))
    left.legend()
    right.legend()
    return figure


if __name__ == "__main__":
    draw(main()).savefig("slider_crank_control.png", dpi=150)
