"""A two-link arm falls with its tip on a line or a circle: formulations and solvers side by side.

For half a second the motors hold the arm, then they are switched off. On x = 1 the arm passes the stretched pose, which
is singular for the arm alone but not for its constraint. On x = 0 the constraint itself is singular where the tip
passes the shoulder; a solver for differential-algebraic equations with loose tolerances ends far from the truth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sarrus as sr

CURVES: dict[str, Callable] = {"x=1": lambda x, z: x - 1, "x=0": lambda x, z: x, "circle": lambda x, z: x**2 + z**2 - 1}
FIXED = {"method": "rk4", "dt": 1e-3}
TIMES = [1.0, 1.5, 2.5, 5.5]


def regularised(system: sr.System, eps: float) -> dict[str, object]:
    """A regularised run; eps belongs to the row as written, the package's is that of the row over its reference."""
    form = sr.formulation("regularised", h=1e-3, eps=eps / system.norms[0] ** 4)
    return {"formulation": form, **FIXED}


def methods(system: sr.System, curve: str) -> dict[str, dict[str, object]]:
    """What to compare."""
    out: dict[str, dict[str, object]] = {
        "default": {},
        "RK4, projection": FIXED,
        "RK4, reduced ODE, no correction": {"formulation": "reduction", "drift": "free", **FIXED},
    }
    for eps in (1e-6,) if curve == "x=1" else (1e-4, 1e-6, 1e-8) if curve == "x=0" else ():
        out[f"RK4, regularised, eps = {eps:.0e}"] = regularised(system, eps)
    if curve == "x=0":
        for window in (1e-1, 1e-2, 1e-3):
            out[f"RK4, released in a window of {window:g}"] = {"crossing": "release", "window": window, **FIXED}
    out["Radau, GGL, 1e-6"] = {"method": "radau", "formulation": "ggl", "rtol": 1e-6}
    for rtol in (1e-6, 1e-3) if curve != "circle" else ():
        out[f"IDA, w form, {rtol:.0e}"] = {"method": "ida", "formulation": "ggl-implicit", "rtol": rtol}
    return out


def run(curve: str) -> dict[str, object]:
    """All methods on one curve."""
    system = sr.compile(sr.library.build("arm_on_curve", curve=curve))
    start = system.assemble()
    held = sr.simulate(system, start, 0.5, inputs=system.terms(start).h)  # the torques that hold the weight
    exact = sr.simulate(system, held, 5.5, rtol=1e-12)
    terms = [system.terms(system.state(q)) for q in exact.q]
    x: dict[str, object] = {
        "motion": exact,
        "angles": exact.at(TIMES).q,
        "crossings": [crossing.t for crossing in exact.crossings],
        "kappa": min((x.A @ np.linalg.solve(x.M, x.A.T)).item() for x in terms),
        "lowest tip": exact["tip.position"][:, 2].min(),
    }
    for name, options in methods(system, curve).items():
        traj = sr.simulate(system, held, 5.5, **options)
        place = traj["tip.position"]
        x[name] = {
            "curve": abs(CURVES[curve](place[:, 0], place[:, 2])).max(),
            "energy": abs(traj["energy.total"] - traj["energy.total"][0]).max(),
            "angles": abs(traj.q - exact.at(traj.t).q).max(),
            "end": traj.status.code if traj.t[-1] < 5.5 else "",
            "at": traj.t[-1],
        }
    return x


def main() -> dict[str, dict[str, object]]:
    """All curves."""
    results = {curve: run(curve) for curve in CURVES}
    for curve, x in results.items():
        print(f"{curve}:")
        for t, (shoulder, elbow) in zip(TIMES, x["angles"], strict=True):
            print(f"  at {t} s: shoulder {shoulder:.8f} rad, elbow {elbow:.8f} rad")
        print(f"  index matrix at least {x['kappa']:.3f}; lowest tip {x['lowest tip']:.4f} m")
        if x["crossings"]:
            print("  passes the singular position at", np.round(x["crossings"], 4), "s")
        print(f"  {'largest errors of':38}  curve [m]  energy [J]  angles [rad]")
        for name, e in x.items():
            if isinstance(e, dict):
                end = f"  {e['end']} at {e['at']:.3f} s" if e["end"] else ""
                print(f"  {name:38}    {e['curve']:.1e}     {e['energy']:.1e}       {e['angles']:.1e}{end}")
    return results


def draw(results: dict[str, dict[str, object]]):
    """The arm on its way, and the angles."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 6.4), layout="constrained")
    ax = figure.subplots(2, 3, height_ratios=[1.15, 1])
    for k, (curve, x) in enumerate(results.items()):
        traj = x["motion"].sample(np.linspace(0.5, 5.5, 1001))
        elbow, tip = np.array([np.cos(traj["A"]), np.sin(traj["A"])]), traj["tip.position"][:, [0, 2]].T
        shown = range(0, 201, 12)  # of the first second
        for i in shown:
            shade = str(0.85 - 0.85 * i / shown[-1])
            ax[0, k].plot([0, elbow[0, i], tip[0, i]], [0, elbow[1, i], tip[1, i]], "o-", ms=2, lw=1, color=shade)
        ax[0, k].plot(*tip, "C1", lw=2, alpha=0.7)
        ax[0, k].set(
            title="on a circle" if curve == "circle" else f"on {curve}",
            xlabel="x [m]",
            aspect="equal",
            xlim=(-1.3, 2.1),
            ylim=(-2.1, 2.1),
        )
        ax[1, k].plot(traj.t, traj["A"], label="shoulder")
        ax[1, k].plot(traj.t, traj["B"], label="elbow")
        ax[1, k].set(xlabel="time [s]", xlim=(0.5, 5.5))
        for t in x["crossings"]:
            ax[1, k].axvline(t, color="0.6", ls=":", zorder=0)
    ax[0, 0].set_ylabel("z [m]")
    ax[1, 0].set_ylabel("angle [rad]")
    ax[1, 2].legend(loc="center right", bbox_to_anchor=(1, 0.78))
    ax[1, 1].set_title("dotted: singular positions", fontsize="medium")
    return figure


if __name__ == "__main__":
    draw(main()).savefig("arm_on_curve_simulation.png", dpi=150)
