"""Constrained acceleration: Sarrus against Pinocchio and MuJoCo.

    python -m bench.acceleration [--json out.json] [--rounds N] [--quick] [--machines four_bar stewart]

Every contestant first shows that its accelerations are right at random consistent states under random forces: within
its bound of a dense reference in NumPy. Then all run in turn, on one thread; medians of its processor time count.
Ratios are formed with the fastest peer that passed, less what calling it from Python costs. The first run compiles a
C++ loop around Pinocchio (some minutes, kept in the cache); `--no-cpp` calls it from Python instead, `--quick` implies
that.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sarrus as sr
from bench import report
from bench.machines import MACHINES, Machine, Samples, random_samples, reference_accelerations, relative_error
from bench.peers.contestant import Contestant
from bench.timing import CLOCK, measure

SEED = 20240229
BOUND = 1e-9  # relative error of our own accelerations


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; 1 if one of our own results failed the audit."""
    options = _parser().parse_args(arguments)
    if options.quick:
        options.rounds, options.states, options.batch = 3, 8, 5e-4
    options.cpp = options.cpp and not options.quick
    remarks: list[str] = []
    rows = [run_machine(MACHINES[name], options, remarks) for name in options.machines]
    if options.json:
        data = {
            "benchmark": "acceleration", "schema": 1, **report.provenance(), "clock": CLOCK.__name__,
            "options": _plain(options), "remarks": list(dict.fromkeys(remarks)),
            "machines": rows,
        }  # fmt: skip
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    report.show(rows, remarks)
    failed = [row["machine"] for row in rows if not row["audited"]]
    if failed:
        print(f"accelerations of Sarrus are wrong: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_machine(machine: Machine, options: argparse.Namespace, remarks: list[str]) -> dict[str, Any]:
    """Audit and time every contestant on one machine; remarks are added to the list."""
    compile_s, cached_s = compile_times(machine)
    system = sr.compile(machine.build())
    samples = random_samples(system, machine.spread, options.states, SEED)
    expected = reference_accelerations(system, samples)
    contestants = [*our_contestants(system, samples), *peers(system, samples, expected, options.cpp, remarks)]
    errors = [relative_error(c.accelerations(), expected) for c in contestants]
    timings = measure(contestants, options.rounds, options.batch)
    solution = system.solve(samples.states, samples.u, samples.f)
    row = {
        "machine": machine.name, "nv": system.layout.nv, "rows": len(system.kept), "written_rows": system.layout.m,
        "rank": _counted(solution.rank), "path": _counted(solution.path), "target": machine.target,
        "compile_s": compile_s, "cached_s": cached_s,
        "contestants": [
            report.result(c.name, c, timing, error)
            for c, timing, error in zip(contestants, timings, errors, strict=True)
        ],
    }  # fmt: skip
    return report.judge(row)


def our_contestants(system: sr.System, samples: Samples) -> list[Contestant]:
    """Sarrus on an array of states, so that the time is that of the compiled code; and one call for each state."""
    many = samples.repeated(2000)
    total, count = len(many.tau), len(samples.tau)
    single = [(samples.states.row(k), samples.u[k], samples.f[k]) for k in range(count)]

    def run(wanted: int) -> int:
        times = -(-wanted // total)
        for _ in range(times):
            system.acceleration(many.states, many.u, many.f)
        return times * total

    def run_single(wanted: int) -> int:
        times = -(-wanted // count)
        for _ in range(times):
            for state, u, f in single:
                system.acceleration(state, u, f)
        return times * count

    def accelerations():
        return system.acceleration(many.states, many.u, many.f)[:count]

    def accelerations_single():
        return [system.acceleration(state, u, f) for state, u, f in single]

    settings = {"tolerance": system.tolerance, "fast_pivot": system.fast_pivot}
    return [
        Contestant(report.OURS, run, accelerations, BOUND, {**settings, "states_per_call": total}, peer=False),
        Contestant(
            report.OURS_CALLED, run_single, accelerations_single, BOUND, {**settings, "states_per_call": 1}, peer=False
        ),
    ]


def peers(
    system: sr.System, samples: Samples, expected: Any, compiled: bool, remarks: list[str]
) -> Iterator[Contestant]:
    """The other packages that are installed, in their fastest accurate settings."""
    for name, package in (("pinocchio", "pin"), ("mujoco", "mujoco")):
        try:
            module = importlib.import_module(f"bench.peers.{name}_peer")
        except ImportError as error:
            remarks.append(f"{package} is missing (pip install {package}): {error}")
            continue
        found, said = module.contestants(system, samples, expected, compiled)
        remarks += said
        yield from found


def compile_times(machine: Machine) -> tuple[float, float]:
    """Seconds to derive and compile with an empty cache, and to load from a full one."""
    with tempfile.TemporaryDirectory() as folder, _environment("SARRUS_CACHE", folder):
        times = []
        for _ in range(2):
            mechanism = machine.build()
            start = time.perf_counter()
            sr.compile(mechanism)
            times.append(time.perf_counter() - start)
    return times[0], times[1]


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _counted(values: Any) -> Any:
    """The one value of an array, or each that occurs with how often it does."""
    found = collections.Counter(values.tolist())
    return next(iter(found)) if len(found) == 1 else ", ".join(f"{k} ({n} of {len(values)})" for k, n in found.items())


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    return {**vars(options), "json": None, "seed": SEED}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.acceleration", description=__doc__.partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    parser.add_argument("--rounds", type=int, default=101, help="interleaved rounds (default %(default)s)")
    parser.add_argument("--states", type=int, default=64, help="random states (default %(default)s)")
    parser.add_argument("--batch", type=float, default=2e-3, help="seconds of one run (default %(default)s)")
    parser.add_argument("--machines", nargs="+", choices=list(MACHINES), default=list(MACHINES), help="default: all")
    parser.add_argument("--no-cpp", dest="cpp", action="store_false", help="call Pinocchio from Python")
    parser.add_argument("--quick", action="store_true", help="few states and rounds: a test, not a measurement")
    return parser


if __name__ == "__main__":
    sys.exit(main())
