"""A chain of three links whose constraints come and go, redundant ones among them, while all arrays keep their sizes.

The tip of a falling chain is caught on a height, then at a point, then held twice over by rows that depend on each
other, then let go. What catches it takes energy; what is redundant or lets go does not.
"""

from __future__ import annotations

import numpy as np

import sarrus as sr

START = (0.3, -0.6, 0.9)
PLANES = {"height": (0, 0, 1), "place": (1, 0, 0), "slope 1": (1, 0, 1), "slope 2": (1, 0, -2)}
FORMS = {"default": None, "M'c": "projection-symmetric", "Mb": "virtual-mass", "multipliers": "multiplier"}


def chain() -> sr.System:
    """Three uniform links, and four planes through a place that is set when the tip is caught there."""
    mech = sr.Mechanism("switched chain", planar=True)
    before, at = mech.ground, (0, 0)
    for i, angle in enumerate(START, start=1):
        link = mech.body(f"link{i}", 1.0, com=(0.5, 0), inertia=sr.rod(1.0, 1.0))
        mech.revolute(f"q{i}", before, link, at=at, initial=angle)
        before, at = link, (1.0, 0)
    tip, place = sr.point_on(before, at), (sr.parameter("x0", 0.0), sr.parameter("z0", 0.0))
    mech.frame("tip", tip)
    for name, normal in PLANES.items():
        mech.close(name, sr.plane_on(mech.ground, place, normal), tip)
    return sr.compile(mech)


def at(time: float, *planes: str, catch: bool = False) -> sr.Event:
    """From this time on these planes hold the tip."""

    def change(t, x):
        place = {"x0": x["tip.position"][0], "z0": x["tip.position"][2]} if catch else {}
        return sr.Change(active={name: name in planes for name in PLANES}, parameters=place)

    return sr.Event(" and ".join(planes) or "free", lambda t: t - time, direction=1, action=change)


def main() -> dict[str, object]:
    """The same with several formulations."""
    system = chain()
    start = system.state(START)
    none = dict.fromkeys(PLANES, False)
    events = [
        at(0.5, "height", catch=True),
        at(1.0, "height", "place", catch=True),
        at(1.5, *PLANES),
        at(2.0),
    ]
    x: dict[str, object] = {"system": system}
    for name, form in FORMS.items():
        traj = sr.simulate(system, start, 2.5, active=none, events=events, formulation=form, rtol=1e-11)
        jumps = [jump.energy for jump in traj.audit().jumps]
        x[name] = {"q": traj.q[-1], "v": traj.v[-1], "jumps": jumps, "audit": traj.audit(), "motion": traj}
        print(f"{name:11} q {np.round(traj.q[-1], 6)}  v {np.round(traj.v[-1], 6)}")
    print("energy changes [J]:", np.round(x["default"]["jumps"], 8) + 0.0)
    print("by the formula:    ", np.round(expected(x["default"]["motion"]), 8) + 0.0)
    for event in x["default"]["motion"].events:
        print(event)
    return x


def expected(traj: sr.Trajectory) -> list[float]:
    """Energy that the impacts take by v'A'(A M^-1 A')^-1 A v / 2, from the velocities before them."""
    out = []
    for k, rows in ((0, [0]), (1, [0, 1])):
        event = traj.events[k]
        x = traj.system.terms(traj.system.state(event.q, event.v))
        A = x.A[rows]
        out.append(-0.5 * A @ event.v @ np.linalg.solve(A @ np.linalg.solve(x.M, A.T), A @ event.v))
    return out


def draw(x: dict[str, object]):
    """The chain in each phase, the way of its tip, and its energy."""
    from matplotlib.figure import Figure

    traj = x["default"]["motion"]
    phases = ["free", "on a height", "at a point", "held twice", "free again"]
    figure = Figure(figsize=(9.5, 4.6), layout="constrained")
    ax = figure.subplot_mosaic([["chain", "tip"], ["chain", "energy"]], width_ratios=[1, 1.3])
    for k in range(5):
        angles = np.cumsum(traj.at(np.linspace(0.5 * k, 0.5 * k + 0.499, 6)).q, axis=1)
        for i, line in enumerate(angles):
            points = np.vstack([[0, 0], np.cumsum(np.c_[np.cos(line), np.sin(line)], axis=0)])
            style = {"color": f"C{k}", "lw": 1.2, "alpha": 0.25 + 0.15 * i, "ms": 2}
            ax["chain"].plot(*points.T, "o-", label=phases[k] if i == 5 else None, **style)
    ax["chain"].set(xlabel="x [m]", ylabel="z [m]", aspect="equal", ylim=(-2.3, 2.3))
    ax["chain"].legend(fontsize="small", ncols=2, loc="upper center")
    for k in range(5):  # each phase by itself: velocities jump between
        part = traj.sample(np.linspace(0.5 * k, 0.5 * k + 0.5 - 1e-9, 200))
        ax["tip"].plot(part.t, part["tip.position"][:, 0], "C0", label=None if k else "x")
        ax["tip"].plot(part.t, part["tip.position"][:, 2], "C1", label=None if k else "z")
        ax["energy"].plot(part.t, part["energy.kinetic"], "C2", label=None if k else "kinetic")
        ax["energy"].plot(part.t, part["energy.total"], "k", label=None if k else "total")
    ax["tip"].set(ylabel="tip [m]", title="Dotted: constraints switched", ylim=(-3, 4.2))
    ax["energy"].set(xlabel="time [s]", ylabel="energy [J]", ylim=(-6, 45))
    for name in ("tip", "energy"):
        ax[name].set_xlim(0, 2.5)
        ax[name].legend(fontsize="small", ncols=2, loc="upper center" if name == "tip" else "upper left")
        for t in (0.5, 1.0, 1.5, 2.0):
            ax[name].axvline(t, color="0.6", ls=":", zorder=0)
    return figure


if __name__ == "__main__":
    draw(main()).savefig("switching_chain.png", dpi=150)
