"""A slider-crank of equal links falls through its singular positions, by four inertia matrices, and without correction.

The crank's end, the slider and the crank's pivot meet in one line twice in each swing. There the constraint's row
vanishes and two branches of motion meet: the slider moves on, or stays at the pivot while both links turn about it.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

system = sr.compile(sr.library.build("slider_crank"))
start = system.assemble()  # the crank at 45 degrees, at rest
TIMES = [1.0, 2.0, 5.0, 10.0]
MATRICES = {"projection": "Mc", "projection-symmetric": "M'c", "projection-scaled": "M''c", "virtual-mass": "Mb"}


def run(**options) -> sr.Trajectory:
    """Ten seconds with steps of a millisecond."""
    return sr.simulate(system, start, 10.0, method="rk4", dt=1e-3, **options)


def main() -> dict[str, object]:
    """All runs."""
    turn = sr.Event("the crank turns back", lambda t, x: x["A.v"])
    exact = sr.simulate(system, start, 10.0, rtol=1e-12, events=turn)
    x: dict[str, object] = {
        "motion": exact,
        "angles": exact.at(TIMES)["A"],
        "turns back at": exact.events[0].t,
        "there at": exact.events[0].q[0],
        "passages": [crossing.t for crossing in exact.crossings],
    }
    print("crank [rad] at", TIMES, "s:", np.round(x["angles"], 8))
    print(f"turns back at {x['turns back at']:.8f} s and {x['there at']:.8f} rad")
    print("passes singular positions at", np.round(x["passages"], 6), "s")
    for form, matrix in MATRICES.items():
        traj = run(formulation=form)
        error = abs(traj["A"][::100] - exact.at(traj.t[::100])["A"]).max()
        height = abs(np.sin(traj["A"]) + np.sin(traj["A"] + traj["B"])).max()
        energy = np.ptp(traj["energy.total"])
        x[form] = {"error": error, "height": height, "energy": energy}
        print(f"{matrix:4} ({form}): crank off by {error:.1e} rad, slider by {height:.1e} m, energy by {energy:.1e} J")
    free = x["free"] = run(drift="free")
    print("without correction:", free.status.code, f"at {free.t[-1]:.2f} s")
    return x


def draw(x: dict[str, object]):
    """The machine, and how crank, slider and force go through the singular positions."""
    from matplotlib.figure import Figure

    exact, free = x["motion"].sample(np.linspace(0, 10, 2001)), x["free"]
    figure = Figure(figsize=(9.5, 5.4), layout="constrained")
    ax = figure.subplot_mosaic([["machine", "crank"], ["slider", "force"]], width_ratios=[1, 1.4])
    times = np.linspace(0.0, x["turns back at"], 11)
    for k, angle in enumerate(x["motion"].at(times)["A"]):
        shade = str(0.8 - 0.8 * k / (len(times) - 1))
        line = [0, np.cos(angle), 2 * np.cos(angle)], [0, np.sin(angle), 0]
        ax["machine"].plot(*line, "o-", ms=3, lw=1.5, color=shade)
    ax["machine"].set(xlabel="x [m]", ylabel="z [m]", title="From the start (light) to the turn", aspect="equal")
    for traj, style in ((exact, "C0-"), (free, "C1--")):
        ax["crank"].plot(traj.t, traj["A"], style, label="without correction" if traj is free else "exact")
        ax["slider"].plot(traj.t, np.cos(traj["A"]) + np.cos(traj["A"] + traj["B"]), style)
    ax["crank"].set(ylabel="crank [rad]", ylim=(-4.4, 2.4), title="Dotted: passages through singular positions")
    ax["crank"].plot(free.t[-1], free["A"][-1], "C1x", ms=9, mew=2)
    ax["crank"].legend(loc="upper center", ncols=2)
    ax["slider"].set(xlabel="time [s]", ylabel="slider [m]")
    ax["force"].plot(exact.t, exact["slider.force"], label=r"on the slider, $\lambda$ [N]")
    ax["force"].plot(exact.t, exact["slider.generalised"][:, 0], label=r"on the crank, $(A^T\lambda)_1$ [N m]")
    ax["force"].set(xlabel="time [s]", ylabel="constraint force", ylim=(-42, 60))
    ax["force"].legend(loc="upper center", ncols=2, fontsize="small")
    for name in ("crank", "slider", "force"):
        ax[name].set_xlim(0, 10)
        for t in x["passages"]:
            ax[name].axvline(t, color="0.6", ls=":", zorder=0)
    return figure


if __name__ == "__main__":
    draw(main()).savefig("slider_crank_simulation.png", dpi=150)
