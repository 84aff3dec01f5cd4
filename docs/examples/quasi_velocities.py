"""A Cartesian robot on a circle in quasi-velocities: one equation of motion, and the constraint force beside it.

With the factor W of the mass matrix, M = W Wᵀ, the constrained machine has one quasi-velocity v_r, whose square is
twice the kinetic energy, and v̇_r + Γ_r v_r = u_r. Here all of it is known in closed form, and Γ_r = 0.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

M1, M2, R = 1.0, 2.0, 1.0
system = sr.compile(sr.library.build("cartesian_on_circle", m1=M1, m2=M2, radius=R))


def closed_form(angle: float, rate: float) -> dict[str, float]:
    """What the matrices must be at an angle [rad], turning at a rate [rad/s]."""
    g = np.sqrt(M2 * (R * np.cos(angle)) ** 2 + M1 * (R * np.sin(angle)) ** 2)
    vr = g * rate
    go = -np.sqrt(M1 * M2) * R**2 * vr / g**3
    return {"vr": vr, "Gr": 0.0, "|Lr|": 2 * g / np.sqrt(M1 * M2), "|Go|": abs(go),
            "lambda": np.sqrt(M1 * M2) * go * vr / (2 * g)}  # fmt: skip


def computed(state: sr.State) -> dict[str, float]:
    """The same from the package's matrices; their rows are divided by the reference length of the constraint."""
    x = system.matrices(state)
    unit = system.norms[0]
    vr = x.Z.T @ x.M @ state.v
    lam = np.linalg.solve(x.Lr.T, x.Go @ vr) / unit
    return {"vr": vr[0], "Gr": x.Gr[0, 0], "|Lr|": abs(x.Lr[0, 0]) * unit, "|Go|": abs(x.Go[0, 0]), "lambda": lam[0]}


def place(angle: float, rate: float) -> sr.State:
    """A state on the circle."""
    c, s = np.cos(angle), np.sin(angle)
    return system.state([R * c, R * s], [-R * s * rate, R * c * rate])


def main() -> dict[str, object]:
    """All matrices at three places, and a motion."""
    worst = 0.0
    for angle, rate in ((0.7, 1.3), (2.5, -0.4), (-1.1, 2.0)):
        exact, found = closed_form(angle, rate), computed(place(angle, rate))
        found = found | {"vr": found["vr"] * np.sign(found["vr"] * exact["vr"])}  # a basis has no sign of its own
        worst = max(worst, *(abs(found[key] - exact[key]) for key in exact))
        print(f"at {angle:4} rad:", ", ".join(f"{key} {round(found[key], 6) + 0.0:.6f}" for key in exact))
    traj = sr.simulate(system, place(0.5, 1.5), 10.0, formulation="quasi-velocity", rtol=1e-11)
    angle = np.unwrap(np.arctan2(traj["z"], traj["x"]))
    rate = (traj["x"] * traj["z.v"] - traj["z"] * traj["x.v"]) / R**2
    exact = [closed_form(a, w) for a, w in zip(angle, rate, strict=True)]
    vr = np.array([e["vr"] for e in exact])
    x = {
        "worst": worst,
        "motion": traj,
        "angle": angle,
        "rate": rate,
        "vr": vr,
        "spread of vr": np.ptp(vr),
        "error of the force": abs(traj["circle.force"][:, 0] - [e["lambda"] for e in exact]).max(),
    }
    print(f"largest difference from the closed form: {worst:.0e}")
    print(f"motion of 10 s without forces: v_r = {vr[0]:.8f}, constant to {x['spread of vr']:.0e}")
    print(f"its multiplier is off the closed form by {x['error of the force']:.0e}")
    return x


def draw(x: dict[str, object]):
    """The angular rate changes, the quasi-velocity does not."""
    from matplotlib.figure import Figure

    traj = x["motion"]
    turns = (x["angle"] - x["angle"][0]) / (2 * np.pi)
    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(turns, x["vr"], label=r"$v_r$ [kg$^{1/2}$ m/s]")
    left.plot(turns, x["rate"], label="rate of the angle [rad/s]")
    left.set(xlabel="turns", ylabel="velocity", ylim=(1.35, 2.25))
    left.legend(loc="upper center", ncols=2)
    right.plot(turns, 2 * R * traj["circle.force"], label="simulated")
    exact = [2 * R * closed_form(a, w)["lambda"] for a, w in zip(x["angle"], x["rate"], strict=True)]
    right.plot(turns, exact, "k:", label="closed form")
    right.set(xlabel="turns", ylabel="force of the circle, outwards [N]", ylim=(-8.5, -0.8))
    right.legend(loc="upper center", ncols=2)
    return figure


if __name__ == "__main__":
    draw(main()).savefig("quasi_velocities.png", dpi=150)
