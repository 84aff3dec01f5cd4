"""A Cartesian robot whose tool is held on a circle: quasi-velocity control of its motion and of the contact force.

Regulation goes where the distance to the goal has a minimum on the circle; exactly opposite the goal it stays (an
equilibrium, though an unstable one). Tracking follows a swing, while the force follows its own sine.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("cartesian_on_circle", m1=1.0, m2=2.0, radius=1.0))


def place(angle: float) -> sr.State:
    """A state at rest on the circle."""
    return system.state([np.cos(angle), np.sin(angle)])


def regulate(start: float) -> dict[str, float]:
    """From an angle [degrees] to 30 degrees, with the multiplier held at -3 (pressing outwards with 6 N)."""
    goal = np.radians(30.0)
    control = sr.control.QuasiVelocityRegulation(system, place(goal), kp=20.0, kd=5.0, forces={"circle": -3.0})
    traj = sr.simulate(system, place(np.radians(start)), 10.0, control=control, rtol=1e-12, atol=1e-14)
    final = traj.final
    lam = system.constraint_forces(final, traj.u[-1])["circle"][0]
    mass = system.terms(final).M
    return {
        "distance": float(np.linalg.norm(final.q - place(goal).q)),
        "quasi-velocity": float(np.sqrt(final.v @ mass @ final.v)),
        "error of the multiplier": float(abs(lam + 3.0)),
    }


def track(period: float = 1e-3) -> dict[str, float]:
    """A swing of 0.8 rad from a start 0.5 rad off; the multiplier is to be -2 - sin t."""
    angle = lambda t: 0.5 + 0.8 * ca.sin(t)  # noqa: E731
    control = sr.control.QuasiVelocityTracking(
        system, lambda t: [ca.cos(angle(t)), ca.sin(angle(t))], kp=5.0, kd=10.0,
        forces={"circle": lambda t: -2 - ca.sin(t)},
    )  # fmt: skip
    times = np.arange(0, 10 + period / 2, period)
    traj = sr.simulate(system, place(1.0), 10.0, control=control, sample=period, method="rk4", dt=period, output=times)
    wanted = 0.5 + 0.8 * np.sin(traj.t)
    distance = np.linalg.norm(traj.q - np.stack([np.cos(wanted), np.sin(wanted)], axis=1), axis=1)
    force = 0.0  # right after each look at the machine, where the law was evaluated
    for k in range(0, len(times) - 1, 500):
        u = control(traj.t[k], traj.q[k], traj.v[k])
        lam = system.constraint_forces(system.state(traj.q[k], traj.v[k], traj.t[k]), u)["circle"][0]
        force = max(force, abs(lam + 2 + np.sin(traj.t[k])))
    at = {f"distance at {t} s": float(distance[np.argmin(np.abs(traj.t - t))]) for t in (1, 2, 5)}
    return {**at, "floor": float(distance[traj.t > 5].max()), "error of the multiplier": force}


def main() -> dict[str, dict[str, float]]:
    """All runs."""
    results = {
        "from 150 degrees": regulate(150.0),
        "from opposite": regulate(210.0),
        "from 0.001 rad beside": regulate(210.0 + np.degrees(1e-3)),
        "tracking": track(),
        "tracking at 2 kHz": track(5e-4),
    }
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items()))
    return results


if __name__ == "__main__":
    main()
