"""The results as tables, as plain data and as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.workprec.contestant import Declined
from bench.workprec.curve import best, cost, front
from bench.workprec.measure import Curve
from bench.workprec.problems import Problem

TARGETS = (1e-6, 1e-9)
RATIO = 10.0  # to be reached
OURS = "Sarrus"
COLOURS = {
    OURS: "black", "IDA": "tab:blue", "scipy-dae": "tab:cyan", "Pinocchio": "tab:red", "MuJoCo": "tab:green",
    "Exudyn": "tab:orange",
}  # fmt: skip


def entry(problem: Problem, curves: Sequence[Curve], declined: Sequence[Declined]) -> dict[str, Any]:
    """Everything about one problem as plain data."""
    return {
        "problem": problem.name, "title": problem.title, "t_end": problem.t_end, "quantities": problem.quantities,
        "curves": [_curve(c) for c in curves],
        "declined": [{"code": d.code, "reason": d.reason} for d in declined],
        "targets": {f"{target:g}": judge(curves, target) for target in TARGETS},
    }  # fmt: skip


def judge(curves: Sequence[Curve], target: float) -> dict[str, Any]:
    """What the accuracy costs each code with its best method, and the ratio of the best peer to ours.

    A code that does not reach the accuracy has no time, however fast it is. `met` is None where there is nothing to
    compare: no peer took part, or nobody got there.
    """
    codes: dict[str, dict[str, Any]] = {}
    for code in dict.fromkeys(c.method.code for c in curves):
        mine = [c for c in curves if c.method.code == code]
        method, found = best([(c.method.name, cost((p.pair for p in c.points), target)) for c in mine])
        reached = found.seconds is not None
        codes[code] = {
            "seconds": found.seconds, "method": method, "bound": found.bound,
            "why": None if reached else _why(mine), "closest": _closest(mine),
        }  # fmt: skip
    ours = codes.get(OURS, {}).get("seconds")
    peers = {code: x["seconds"] for code, x in codes.items() if code != OURS and x["seconds"] is not None}
    first = min(peers, key=lambda code: peers[code]) if peers else None
    ratio = peers[first] / ours if first and ours else None
    undecided = not [code for code in codes if code != OURS] or (ours is None and not peers)
    met = None if undecided else bool(ours and (ratio is None or ratio >= RATIO))
    return {"codes": codes, "best_peer": first, "ratio": ratio, "met": met}


def show(rows: Iterable[dict[str, Any]], remarks: Sequence[str], console: Console | None = None) -> None:
    """Print what the accuracies cost, and who did not reach them and why."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(width=160, highlight=False)
    rows = list(rows)
    codes = list(dict.fromkeys(c["code"] for row in rows for c in (*row["curves"], *row["declined"])))
    table = Table(box=box.SIMPLE_HEAD, title="processor time to reach an error (ms), best method of each")
    for heading in ("problem", "error", *codes, "best peer\n/ ours", f"target {RATIO:g}"):
        table.add_column(heading, justify="left" if heading == "problem" else "right")
    why = Table(box=box.SIMPLE_HEAD, title="not reached, and why")
    for heading in ("problem", "code", "error", "closest", "its finest settings"):
        why.add_column(heading)
    for row in rows:
        for d in row["declined"]:
            why.add_row(row["problem"], d["code"], "-", "-", d["reason"])
        for target, found in row["targets"].items():
            ratio = "-" if found["ratio"] is None else f"{found['ratio']:.1f}"
            verdict = "-" if found["met"] is None else "met" if found["met"] else "missed"
            cells = [_cell(found["codes"].get(code)) for code in codes]
            table.add_row(f"{row['problem']} {row['title']}", target, *cells, ratio, verdict)
            for code, x in found["codes"].items():
                if x["seconds"] is None:
                    why.add_row(row["problem"], code, target, _number(x["closest"]), x["why"])
    console.print(table)
    console.print("< the coarsest setting is already more accurate", style="dim")
    if why.row_count:
        console.print(why)
    for remark in remarks:
        console.print(remark)


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each problem: processor time against error reached, one line for each code, its best methods."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    across = min(4, len(rows))
    down = math.ceil(len(rows) / across)
    figure = Figure(figsize=(4.4 * across, 3.7 * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, row in zip(axes, rows, strict=False):
        for code, points in _fronts(row).items():
            line = {"color": COLOURS.get(code, "grey"), "linewidth": 2.5 if code == OURS else 1.2, "markersize": 4}
            axis.loglog([e for e, _ in points], [1e3 * s for _, s in points], "o-", **line)
        for target in TARGETS:
            axis.axvline(target, color="grey", linewidth=0.8, linestyle=":")
        axis.set(xlim=(1.0, 1e-12), xticks=[1.0, *(10.0**-k for k in (3, 6, 9, 12))])
        axis.minorticks_off()
        axis.tick_params(labelsize=9)
        axis.set_title(f"{row['problem']} {row['title']}\n{_ratios(row)}", fontsize=10)
        axis.set_xlabel("largest relative error", fontsize=9)
        axis.set_ylabel("processor time [ms]", fontsize=9)
        axis.grid(alpha=0.3)
    for axis in axes[len(rows) :]:
        axis.remove()
    shown = dict.fromkeys(c["code"] for row in rows for c in row["curves"])
    handles = [Line2D([], [], marker="o", markersize=4, color=COLOURS.get(code, "grey"), label=code) for code in shown]
    figure.legend(handles=handles, loc="outside upper center", ncols=max(1, len(handles)), fontsize=11)
    figure.savefig(path, dpi=110)


def _fronts(row: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """What each code offers with the best of its methods, errors below 1."""
    found = {}
    for code in dict.fromkeys(c["code"] for c in row["curves"]):
        points = [p for c in row["curves"] if c["code"] == code for p in c["points"]]
        pairs = [(p["error"], p["seconds"]) for p in points if p["error"] is not None]
        found[code] = front([(max(e, 1e-13), s) for e, s in pairs if e < 1.0])
    return {code: points for code, points in found.items() if points}


def _ratios(row: dict[str, Any]) -> str:
    """How many times faster than the best peer, in one line."""
    parts = []
    for target, found in row["targets"].items():
        at = f"at $10^{{{round(math.log10(float(target)))}}}$"
        if found["ratio"] is not None:
            parts.append(f"{found['ratio']:.3g}× {at}")
        elif found["met"]:
            parts.append(f"alone {at}")
    return ", ".join(parts)


def _curve(curve: Curve) -> dict[str, Any]:
    method = curve.method
    points = [
        {
            "setting": p.setting, "seconds": p.seconds if p.times else None, "rounds": p.times,
            "failure": p.failure or None,
            **{name: getattr(p.accuracy, name) if p.accuracy else None for name in ("error", "final", "loop", "drift")},
        }
        for p in curve.points
    ]  # fmt: skip
    return {
        "code": method.code, "method": method.name, "knob": method.knob, "setup_s": curve.setup,
        "end": curve.end or "last of its settings", "points": points,
    }  # fmt: skip


def _closest(curves: Sequence[Curve]) -> float | None:
    errors = [p.accuracy.error for c in curves for p in c.points if p.accuracy]
    return min(errors, default=None)


def _why(curves: Sequence[Curve]) -> str:
    """The end of the method that came closest."""

    def key(curve: Curve) -> float:
        return min((p.pair[0] for p in curve.points), default=math.inf)

    curve = min(curves, key=key)
    last = curve.points[-1].failure if curve.points else ""
    end = curve.end or last or "last of its settings"
    return f"{curve.method.name}: {end}"


def _cell(found: dict[str, Any] | None) -> str:
    if found is None or found["seconds"] is None:
        return "-"
    return ("< " if found["bound"] else "") + _number(1e3 * found["seconds"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
