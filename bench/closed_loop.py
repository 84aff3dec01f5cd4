"""Closed loops at 1 kHz: how much faster than real time, and what one evaluation of a controller costs from Python.

    python -m bench.closed_loop [--json out.json] [--seconds 2] [--rounds 7] [--quick]

A run counts only if the machine follows its reference to within the bound that holding the inputs for a millisecond
allows. Times are processor time of this one thread, medians over rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import sarrus as sr
from bench import report
from bench.timing import CLOCK

PERIOD = 1e-3  # of the loop [s]


@dataclass(frozen=True)
class Case:
    """A machine with a controller of its motion.

    Attributes:
        name: of the machine in the library.
        task: controlled coordinates.
        reference: the course of each in time, from where it stands.
        target: how many times faster than real time the loop has to run.
    """

    name: str
    task: Sequence[str]
    reference: Sequence[Callable[[Any, float], Any]]
    target: float


def _leg(k: int) -> Callable[[Any, float], Any]:
    return lambda t, home: home + 0.02 * (1, -1, 2, -2, 1, 3)[k] * (1 - ca.cos(2 * t))


CASES = (
    Case("four_bar", ("A",), (lambda t, home: home + 0.3 * (1 - ca.cos(3 * t)),), 500.0),
    Case("stewart", tuple(f"leg{k}" for k in range(6)), tuple(_leg(k) for k in range(6)), 50.0),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; 1 if a machine did not follow its reference."""
    parser = argparse.ArgumentParser(prog="python -m bench.closed_loop", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated time of a run (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each case (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short run of each: a test, not a measurement")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seconds, options.rounds = 0.2, 1
    rows = [row for case in CASES for row in run(case, options.seconds, options.rounds)]
    _show(rows)
    if options.json:
        data = {"benchmark": "closed loop", "schema": 1, **report.provenance(), "clock": CLOCK.__name__, "runs": rows}
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return int(any(row["error"] > row["bound"] for row in rows))


def run(case: Case, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """The closed loop of one machine, with each integrator."""
    system = sr.compile(sr.library.build(case.name))
    start = system.assemble()
    home = [start[name] for name in case.task]

    def wanted(t: Any) -> Any:
        return ca.vertcat(*[course(t, at) for course, at in zip(case.reference, home, strict=True)])

    began = time.perf_counter()
    control = sr.control.ProjectedInverseDynamics(system, task=case.task, reference=wanted, kp=400.0, kd=40.0)
    ready = time.perf_counter() - began
    loop = sr.control.Loop(control, period=PERIOD)
    call = _median(lambda: [control(0.0, start.q, start.v) for _ in range(2000)], rounds) / 2000
    rows = []
    for method, options in (("dop853", {"rtol": 1e-6}), ("rk4", {"dt": PERIOD})):
        simulation = sr.Simulation(system, seconds, control=loop, method=method, output=50, progress=False, **options)
        traj = simulation(start)
        track = np.array([np.ravel(ca.DM(wanted(t))) for t in traj.t])
        error = max(float(np.abs(traj[name] - track[:, k]).max()) for k, name in enumerate(case.task))
        spent = _median(lambda run=simulation: run(start), rounds)
        rows.append({
            "machine": case.name, "method": method, "steps": traj.stats.steps, "status": str(traj.status),
            "error": error if traj.status.ok else float("inf"), "bound": 1e-3 * float(np.ptp(track, axis=0).max()),
            "loop_error": traj.audit().loop.relative, "cpu_s": spent, "real_time": seconds / spent,
            "target": case.target, "call_us": 1e6 * call, "ready_s": ready,
        })  # fmt: skip
    return rows


def _median(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = CLOCK()
        work()
        times.append(CLOCK() - start)
    return float(np.median(times))


def _show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, title="closed loop at 1 kHz, projected inverse dynamics, one thread")
    headings = ("machine", "integrator", "times real time", "target", "tracking error", "one call [µs]")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in headings[:2] else "right")
    for x in rows:
        verdict = "met" if x["real_time"] >= x["target"] else "missed"
        table.add_row(
            x["machine"], x["method"], f"{x['real_time']:.0f}", f"{x['target']:g} {verdict}", f"{x['error']:.1e}",
            f"{x['call_us']:.2f}",
        )  # fmt: skip
    Console(width=120, highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main())
