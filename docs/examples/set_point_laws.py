"""Set points on a curved manifold: three laws for a bead on an ellipse, and where each of them ends.

The goal is the top of x²/9 + z² = 1. A spring towards it, projected on the ellipse, also has a minimum at the bottom.
The friction of the printed law (sigma > 1) is stronger than the spring everywhere, and the bead sticks where it is.
Moved along the ellipse, the set point takes the bead to the top from anywhere.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

mech = sr.Mechanism("bead on an ellipse", gravity=(0, 0, 0), planar=True)
carriage, bead = mech.body("carriage"), mech.body("bead", 1.0)
mech.prismatic("x", mech.ground, carriage, "x", initial=3.0)
mech.prismatic("z", carriage, bead, "z")
mech.close("ellipse", sr.curve_on(mech.ground, lambda p: p[0] ** 2 / 9 + p[2] ** 2 - 1), sr.point_on(bead))
mech.motor("x")
mech.motor("z")
system = sr.compile(mech)
TOP = np.array([0.0, 1.0])


def at(degrees: float) -> np.ndarray:
    """The point of the ellipse with this parameter."""
    return np.array([3 * np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def run(control: sr.control.Controller, degrees: float, t_end: float = 30.0) -> dict:
    """From rest; where it ends."""
    loop = sr.control.Loop(control, period=1e-3)
    traj = sr.simulate(system, system.state(at(degrees)), t_end, control=loop, method="rk4", dt=1e-3, output=20)
    distance = float(np.linalg.norm(traj.q[-1] - TOP))
    return {"motion": traj, "distance to the goal": distance, "z": float(traj.q[-1, 1])}


def main() -> dict[str, dict]:
    """All laws."""
    plain = sr.control.QuasiVelocityRegulation(system, TOP, kp=20.0, kd=5.0)
    sticking = sr.control.DependentCoordinates(system, TOP, kp=20.0, kd=5.0, sigma=1.5)
    smooth = sr.control.MinimumJerk(0.0, 1.0, 8.0)
    times = np.linspace(0, 8, 401)
    path = np.stack([at(-60.0 + 150.0 * smooth(t)[0]) for t in times])
    moved = sr.control.DependentCoordinates(system, sr.control.Samples(times, path), kp=100.0, kd=20.0)
    results = {
        "spring, from the side": run(plain, 30.0),
        "spring, from below": run(plain, -30.0),
        "printed friction": run(sticking, 30.0),
        "moved set point": run(moved, -60.0, 20.0),
    }
    for name, values in results.items():
        print(name + ":", ", ".join(f"{key} {value:.3g}" for key, value in values.items() if key != "motion"))
    return results


def draw(results: dict[str, dict]):
    """The ways along the ellipse."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    ax = figure.subplots()
    around = np.stack([at(a) for a in np.linspace(0, 360, 361)])
    ax.plot(*around.T, color="0.8", lw=1, zorder=0)
    for k, (name, x) in enumerate(results.items()):
        q = x["motion"].q * (1 + 0.06 * k)  # side by side
        ax.plot(*q.T, color=f"C{k}", label=name)
        ax.plot(*q[0], "o", color=f"C{k}", mfc="white")
        ax.plot(*q[-1], "s", color=f"C{k}")
    ax.plot(*TOP, "k*", ms=12, label="goal")
    ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal", title="circles: starts, squares: ends")
    ax.legend(loc="center")
    return figure


if __name__ == "__main__":
    draw(main()).savefig("set_point_laws.png", dpi=150)
