"""The results as a table for people and as JSON for programs."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import sarrus as sr
from sarrus.kernel import compiler

OURS = "Sarrus"
OURS_CALLED = "Sarrus, one call each"
PEERS = {  # name: heading
    "Pinocchio constraintDynamics": "Pinocchio\nconstraint-\nDynamics",
    "Pinocchio lcaba": "Pinocchio\nlcaba",
    "MuJoCo mj_forward": "MuJoCo\nmj_forward",
    "MuJoCo RK4 step / 4": "MuJoCo\nRK4 step / 4",
}


def provenance() -> dict[str, Any]:
    """What the numbers depend on besides the code under test: machine, versions, compiler, environment."""
    versions: dict[str, str | None] = {"python": platform.python_version(), "sarrus": sr.__version__}
    for name in ("numpy", "casadi", "pin", "mujoco"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": {
            "cpu": _cpu(), "cores": os.cpu_count(), "system": platform.platform(terse=True),
            "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        },
        "versions": versions,
        "git": {"sha": _git("rev-parse", "HEAD"), "changed": bool(_git("status", "--porcelain", "src", "bench"))},
        "compiler": {"name": _compiler(), "flags": " ".join(compiler.FLAGS)},
        "threads": {name: os.environ.get(name) for name in threads},
    }  # fmt: skip


def result(name: str, contestant: Any, timing: Any, error: float) -> dict[str, Any]:
    """One contestant's entry; times in microseconds."""
    low, middle, high = np.percentile(timing.raw, [25, 50, 75])
    return {
        "name": name, "peer": contestant.peer, "error": error, "bound": contestant.bound,
        "valid": error <= contestant.bound, "us": 1e6 * timing.seconds, "raw_us": 1e6 * middle,
        "overhead_us": 1e6 * timing.overhead, "quartiles_us": [1e6 * low, 1e6 * high],
        "rounds_us": (1e6 * timing.raw).tolist(), "settings": dict(contestant.settings),
    }  # fmt: skip


def judge(row: dict[str, Any]) -> dict[str, Any]:
    """Add the ratio of the fastest valid peer to ours, and whether it reaches the target."""
    ours = next(c for c in row["contestants"] if c["name"] == OURS)
    peers = [c for c in row["contestants"] if c["peer"] and c["valid"]]
    fastest = min(peers, key=lambda c: c["us"], default=None)
    ratio = fastest["us"] / ours["us"] if fastest is not None and ours["valid"] else None
    audited = all(c["valid"] for c in row["contestants"] if not c["peer"])
    met = None if ratio is None else ratio >= row["target"]
    return {**row, "fastest_peer": fastest and fastest["name"], "ratio": ratio, "met": met, "audited": audited}


def show(rows: Sequence[dict[str, Any]], remarks: Sequence[str], console: Console | None = None) -> None:
    """Print the tables."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(width=160, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, title="constrained acceleration, one thread, µs (relative error)")
    for heading in ("machine", "nv", "rows", "rank", "ours", "ours per\nPython call"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for heading in PEERS.values():
        table.add_column(heading, justify="right")
    for heading in ("fastest peer\n/ ours", "target"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = {c["name"]: _cell(c) for c in row["contestants"]}
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.1f}"
        verdict = "no peer" if row["met"] is None else "met" if row["met"] else "missed"
        table.add_row(
            row["machine"], str(row["nv"]), str(row["rows"]), str(row["rank"]), cells[OURS], cells[OURS_CALLED],
            *(cells.get(name, "-") for name in PEERS), ratio, f"{row['target']:g} {verdict}",
        )  # fmt: skip
    console.print(table)
    table = Table(box=box.SIMPLE_HEAD, title="making ours ready, once for each machine")
    for heading in ("machine", "derive and compile [s]", "from the cache [ms]", "path"):
        table.add_column(heading, justify="left" if heading in ("machine", "path") else "right")
    for row in rows:
        table.add_row(row["machine"], f"{row['compile_s']:.2f}", f"{1e3 * row['cached_s']:.0f}", row["path"])
    console.print(table)
    for remark in dict.fromkeys(remarks):
        console.print(remark, markup=False)


def _cell(entry: dict[str, Any]) -> str:
    text = f"{entry['us']:.3g} ({entry['error']:.0e})"
    if entry["overhead_us"]:
        text += f"\nraw {entry['raw_us']:.3g}"
    return text if entry["valid"] else f"{text}\ntoo inaccurate"


def _git(*words: str) -> str | None:
    try:
        root = Path(__file__).resolve().parent
        done = subprocess.run(["git", *words], cwd=root.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _compiler() -> str:
    command = [*compiler.find_compiler(), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
