"""Projected inverse dynamics on a slider-crank, with motors on both joints and on the crank alone.

The crank follows a sine from a start that is 0.2 rad off, with a controller that looks at the machine every
millisecond. Both machines move alike; the one motor needs about twice the torque that two share.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import sarrus as sr


def run(motors: tuple[str, ...]) -> dict[str, float]:
    """Five seconds of tracking; error of the crank's angle and mean size of the torques."""
    system = sr.compile(sr.library.build("slider_crank", motors=motors))
    control = sr.control.ProjectedInverseDynamics(
        system, task="A", reference=lambda t: 0.3 + 0.2 * ca.sin(2 * t), kp=100.0, kd=20.0
    )
    start = system.assemble({"A": 0.5})
    traj = sr.simulate(system, start, 5.0, control=control, sample=1e-3, method="rk4", dt=1e-3)
    error = np.abs(0.3 + 0.2 * np.sin(2 * traj.t) - traj["A"])
    return {
        "error at 1 s": float(np.interp(1.0, traj.t, error)),
        "largest error after 2 s": float(error[traj.t > 2.0].max()),
        "mean torque": float(np.linalg.norm(traj.u[1:], axis=1).mean()),
        "loop error": float(max(np.abs(system.terms(traj.final).phi))),
    }


def main() -> dict[str, dict[str, float]]:
    """Both machines."""
    results = {"two motors": run(("A", "B")), "crank alone": run(("A",))}
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items()))
    return results


if __name__ == "__main__":
    main()
