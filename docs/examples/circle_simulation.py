"""A particle on a circle: the force that keeps it there, without weight and as a pendulum.

The smallest machine with a constraint, and one whose force is known: m v²/r without weight; with it, let go at the
height of the centre, three times the weight at the bottom.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr


def main() -> dict[str, object]:
    """Both motions, for ten seconds."""
    weightless = sr.compile(sr.library.build("particle_on_circle", gravity=0.0))
    turning = sr.simulate(weightless, weightless.state([1.0, 0.0], [0.0, 2.0]), 10.0, rtol=1e-12)
    heavy = sr.compile(sr.library.build("particle_on_circle"))
    swinging = sr.simulate(heavy, heavy.assemble(), 10.0, method="rk4", dt=1e-3)
    force, pull = (0.0 - x["circle.force"] for x in (turning, swinging))  # towards the centre
    free = sr.simulate(heavy, heavy.assemble(), 10.0, method="rk4", dt=1e-3, drift="free")
    x = {
        "swinging": swinging,
        "force": (force.min(), force.max()),
        "energy": np.ptp(turning["energy.total"]),
        "pull": (pull.min(), pull.max()),
        "energy of the pendulum": np.ptp(swinging["energy.total"]),
        "energy, not corrected": np.ptp(free["energy.total"]),
        "distance, not corrected": abs(np.hypot(free["x"], free["z"]) - 1).max(),
    }
    print("without weight, 2 m/s: force {:.9f} to {:.9f} N".format(*x["force"]), f"(energy {x['energy']:.0e} J)")
    print("pendulum: force {:.6f} to {:.6f} N".format(*x["pull"]), f"(energy {x['energy of the pendulum']:.0e} J)")
    print(
        f"without correction: off the circle by {x['distance, not corrected']:.1e} m, "
        f"energy by {x['energy, not corrected']:.0e} J"
    )
    return x


def draw(x: dict[str, object]):
    """The pendulum's force along its way, and against the angle where it must be 3 m g cos."""
    from matplotlib.figure import Figure

    traj = x["swinging"].sample(np.linspace(0, 4.0, 401))
    force, depth = -traj["circle.force"], -traj["z"]
    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(traj.t, force)
    left.axhline(3 * 9.81, color="0.6", ls=":")
    left.text(0.05, 3 * 9.81 - 2.2, "3 m g", color="0.4")
    left.set(xlabel="time [s]", ylabel="force towards the centre [N]", xlim=(0, 4))
    right.plot(depth, force, "o", ms=3, label="simulated")
    right.plot([0, 1], [0, 3 * 9.81], "k-", lw=0.8, label=r"$3\,m g\,\cos$ of the angle")
    right.set(xlabel="cosine of the angle to the vertical [-]", ylabel="force [N]")
    right.legend()
    return figure


if __name__ == "__main__":
    draw(main()).savefig("circle_simulation.png", dpi=150)
