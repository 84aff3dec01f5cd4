"""The benchmark runs, its audit passes, and its JSON is complete; nothing here asks how long anything takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ("parallelogram", "stewart")
PEERS = {"Pinocchio constraintDynamics", "Pinocchio lcaba", "MuJoCo mj_forward", "MuJoCo RK4 step / 4"}
OURS = {"Sarrus", "Sarrus, one call each"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One quick run on the redundant machine and on the largest."""
    path = tmp_path_factory.mktemp("bench") / "out.json"
    command = [sys.executable, "-m", "bench.acceleration", "--quick", "--json", str(path), "--machines", *MACHINES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(path.read_text(encoding="utf-8"))


def test_every_contestant_passes_the_audit(run):
    rows = run[1]["machines"]
    assert [row["machine"] for row in rows] == list(MACHINES)
    for row in rows:
        assert {c["name"] for c in row["contestants"]} == PEERS | OURS
        for entry in row["contestants"]:
            assert entry["error"] <= entry["bound"] and entry["valid"], (row["machine"], entry["name"], entry["error"])
        assert row["audited"] and row["ratio"] > 0 and row["fastest_peer"] in PEERS
    assert [(row["nv"], row["rows"], row["rank"]) for row in rows] == [(4, 4, 3), (24, 18, 18)]


def test_the_file_says_how_it_was_measured(run):
    data = run[1]
    assert data["host"]["cpu"] and data["compiler"]["name"] and data["compiler"]["flags"]
    assert all(data["versions"][name] for name in ("python", "numpy", "sarrus", "pin", "mujoco"))
    assert set(data["threads"].values()) == {"1"}
    assert {"sha", "changed"} <= set(data["git"]) and data["options"]["seed"]
    for row in data["machines"]:
        assert row["compile_s"] > 0 and row["cached_s"] > 0
        for entry in row["contestants"]:
            assert entry["settings"] and len(entry["rounds_us"]) == data["options"]["rounds"]
            assert abs(entry["raw_us"] - entry["overhead_us"] - entry["us"]) < 1e-9 * entry["raw_us"]


def test_the_table_names_every_machine(run):
    assert all(name in run[0] for name in MACHINES)
    assert "too inaccurate" not in run[0]
