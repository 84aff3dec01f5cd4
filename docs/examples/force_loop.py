"""A contact force under feedback: why the gains of a sampled force loop are limited, and why the integral comes alone.

A tool runs round a circle and presses on it. The controller believes that the tool weighs 1 kg; it weighs 1.4 kg, so
that the force is wrong without feedback. What the force sensor says at one look at the machine belongs to the inputs
of the last one, a period T earlier, so the loop is stable if and only if kf + ki T / 2 < 1.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import sarrus as sr


def machine(m: float) -> sr.System:
    """A tool on a circle of 1 m."""
    return sr.compile(sr.library.build("cartesian_on_circle", m1=m, m2=m, tool=0.5))


PERIOD = 1e-3
plant, model = machine(1.4), machine(1.0)


def run(kf: float, ki: float, t_end: float = 3.0) -> dict:
    """Round at 2 rad/s, the multiplier to be -5; its error right after the ticks, and what the motion does."""
    control = sr.control.HybridMotionForce(
        model, task=lambda t, x: ca.atan2(x["z"], x["x"]), reference=lambda t: 0.5 * ca.sin(2 * t) + 0.3,
        forces={"circle": -5.0}, kp=100.0, kd=20.0, kf=kf, ki=ki,
    )  # fmt: skip
    angle = 0.3
    start = plant.state([np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)])
    loop = sr.control.Loop(control, period=PERIOD)
    ticks = np.arange(1, round(t_end / PERIOD)) * PERIOD + PERIOD / 2  # between the looks
    traj = sr.simulate(plant, start, t_end, control=loop, method="rk4", dt=PERIOD / 2, output=ticks)
    states = plant.state(traj.q, traj.v, traj.t)
    lam = plant.solve(states, traj.u).lam[:, 0]
    error = np.abs(lam + 5.0)
    angles = np.arctan2(traj.q[:, 1], traj.q[:, 0])
    return {
        "times": traj.t,
        "errors": error,
        "stable by the rule": float(control.stable(PERIOD)),
        "force error at the end": float(error[-500:].max()),
        "largest force error": float(error.max()),
        "motion error at the end": float(np.abs(angles - 0.3 - 0.5 * np.sin(2 * traj.t))[-500:].max()),
    }


def main() -> dict[str, dict]:
    """Without feedback, with the integral alone, and with a proportional gain on both sides of the limit."""
    cases = {"none": (0.0, 0.0), "integral": (0.0, 100.0), "just stable": (0.94, 100.0), "just unstable": (0.96, 100.0)}
    results = {name: run(*gains) for name, gains in cases.items()}
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items() if np.ndim(value) == 0))
    return results


def draw(results: dict[str, dict]):
    """The error of the force on both sides of the limit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    ax = figure.subplots()
    for name, x in results.items():
        ax.semilogy(x["times"], x["errors"] + 1e-12, lw=1, label=name)
    ax.set(xlabel="time [s]", ylabel="error of the multiplier [N/m]", xlim=(0, 3), ylim=(1e-4, 1e10))
    ax.legend(loc="upper left")
    return figure


if __name__ == "__main__":
    draw(main()).savefig("force_loop.png", dpi=150)
