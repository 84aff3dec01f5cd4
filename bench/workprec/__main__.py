"""Work against precision: processor time of whole simulations at equal error, Sarrus and its peers.

    python -m bench.workprec [--quick] [--problems A01,SC] [--peers ida,exudyn] [--json FILE] [--plot FILE]

Every method of every code goes through its tolerances or steps from coarse to fine; each run is judged against the
reference of the problem, in a process of its own, with a limit of processor time. Then all points run again in turn,
and the median of the rounds counts. What compiles or builds models is not timed with the solution but recorded.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench import report
from bench.workprec import measure, summary
from bench.workprec.contestant import Declined, Method
from bench.workprec.problems import Problem, load

PEERS = {  # name: module, package
    "ida": ("ida_peer", "scikit-sundae"),
    "scipy-dae": ("scipy_dae_peer", "scipy-dae"),
    "pinocchio": ("pinocchio_peer", "pin"),
    "mujoco": ("mujoco_peer", "mujoco"),
    "exudyn": ("exudyn_peer", "exudyn"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    options = _parser().parse_args(arguments)
    if options.quick:
        options.limit, options.rounds = min(options.limit, 0.5), 1
    problems = load()
    chosen = _split(options.problems, list(problems), "problem")
    modules, remarks = _modules([] if options.peers == "none" else _split(options.peers, list(PEERS), "peer"))
    console, rows = Console(stderr=True), []
    for name in chosen:
        rows.append(run(problems[name], modules, options, console))
        _write(options, rows, modules, remarks)
    summary.show(rows, remarks)
    if options.plot:
        summary.plot(rows, Path(options.plot))
    return 0


def run(problem: Problem, modules: Sequence, options: argparse.Namespace, console: Console) -> dict:
    """All curves of one problem."""
    curves: list[measure.Curve] = []
    declined: list[Declined] = []
    for module in modules:
        try:
            found = list(module.methods(problem))
        except Exception as error:  # a peer that cannot even set up a problem is reported like any other failure
            declined.append(Declined(module.CODE, f"{type(error).__name__}: {error}"))
            continue
        declined += [m for m in found if isinstance(m, Declined)]
        for method in (m for m in found if isinstance(m, Method)):
            console.print(f"{problem.name}: {method.code}, {method.name}", style="dim")
            curves.append(measure.sweep(problem, method, options.limit))
    for _ in range(1, options.rounds):
        for curve in curves:
            measure.repeat(problem, curve, options.limit)
    return summary.entry(problem, curves, declined)


def _modules(names: Sequence[str]) -> tuple[list, list[str]]:
    found, remarks = [importlib.import_module("bench.workprec.ours")], []
    for name in names:
        module, package = PEERS[name]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(importlib.import_module(f"bench.workprec.{module}"))
        except ImportError as error:
            remarks.append(f"{package} is missing (pip install {package}): {error}")
    return found, remarks


def _write(options: argparse.Namespace, rows: list[dict], modules: Sequence, remarks: Sequence[str]) -> None:
    if options.json:
        facts = report.provenance()
        facts["versions"] |= {m.CODE: m.VERSION for m in modules}
        data = {
            "benchmark": "workprec", "schema": 1, **facts, "clock": measure.CLOCK.__name__,
            "options": {"limit": options.limit, "rounds": options.rounds, "quick": options.quick},
            "remarks": list(remarks), "problems": rows,
        }  # fmt: skip
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _split(text: str, known: Sequence[str], what: str) -> list[str]:
    names = [x for x in text.split(",") if x] if text else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"unknown {what} {name!r}; known: {', '.join(known)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.workprec", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", default="", help="names with commas between (default: all)")
    parser.add_argument("--peers", default="", help=f"of {', '.join(PEERS)}; 'none' for Sarrus alone (default: all)")
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves there")
    parser.add_argument("--limit", type=float, default=5.0, help="processor time of one run [s] (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="half a second for each run, one round: a test")
    return parser


if __name__ == "__main__":
    sys.exit(main())
