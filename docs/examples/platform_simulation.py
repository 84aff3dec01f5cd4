"""A platform on three two-link legs falls freely: six constraint rows, three ways to move, no motor at work."""

from __future__ import annotations

import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("planar_platform"))


def main() -> dict[str, object]:
    """Five seconds from rest a little beside the middle, with steps of a millisecond and with the default method."""
    start = system.assemble({"platform.x": 0.02, "platform.z": 0.0, "platform.angle": 0.6})
    fixed = sr.simulate(system, start, 5.0, method="rk4", dt=1e-3)
    exact = sr.simulate(system, start, 5.0)
    x: dict[str, object] = {"motion": exact}
    for name, traj in (("steps of 1 ms", fixed), ("default", exact)):
        states = system.state(traj.q[::20], traj.v[::20], traj.t[::20])
        loop = abs(system.terms(states).phi).max()
        energy = abs(traj["energy.total"] - traj["energy.total"][0]).max()
        x[name] = {"energy": energy, "loop error": loop, "steps": traj.stats.steps}
        print(f"{name}: energy within {x[name]['energy']:.1e} J, loops within {loop:.0e} m, {traj.stats.steps} steps")
    rows = [np.linalg.svd(system.terms(system.state(q)).A, compute_uv=False) for q in fixed.q]
    rank = system.rank(exact.final)
    x["smallest singular value"] = min(s[rank.rank - 1] for s in rows)
    print(f"smallest singular value of the constraint rows on the way: {x['smallest singular value']:.3f}")
    return x


def draw(x: dict[str, object]):
    """Two poses, the platform's path, and where the energy is."""
    from matplotlib.figure import Figure

    traj = x["motion"].sample(np.linspace(0, 5, 1001))
    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    feet = [0.6 * np.array([np.cos(a), np.sin(a)]) for a in np.radians([210, 330, 90])]
    for k, color in ((0, "0.65"), (len(traj) - 1, "C0")):
        corners = []
        for i, foot in enumerate(feet, start=1):
            thigh, shank = traj[f"hip{i}"][k], traj[f"hip{i}"][k] + traj[f"elbow{i}"][k]
            knee = foot + 0.5 * np.array([np.cos(thigh), np.sin(thigh)])
            corner = knee + 0.5 * np.array([np.cos(shank), np.sin(shank)])
            left.plot(*np.array([foot, knee, corner]).T, "o-", ms=3, color=color)
            corners.append(corner)
        left.fill(*np.array(corners).T, color=color, alpha=0.3, label="at 0 s" if k == 0 else "at 5 s")
    left.plot(traj["platform.x"], traj["platform.z"], "C1", lw=0.8, label="centre's path")
    left.plot(*np.array(feet).T, "ks", ms=6)
    left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    left.legend(fontsize="small")
    for name in ("kinetic", "potential", "total"):
        right.plot(traj.t, traj[f"energy.{name}"], label=name)
    right.set(xlabel="time [s]", ylabel="energy [J]", xlim=(0, 5), ylim=(-37, 50))
    right.legend(loc="upper center", ncols=3)
    return figure


if __name__ == "__main__":
    draw(main()).savefig("platform_simulation.png", dpi=150)
