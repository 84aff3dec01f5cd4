"""Formulations and solvers side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sarrus as sr
from sarrus.cli import main

from .machines import library


def test_all_formulations_on_one_motion():
    system = library("slider_crank")
    start = system.assemble()
    result = sr.compare(system, start, 1.0)
    named = {e.formulation for e in result.entries}
    assert named == {"default", *(x.name for x in sr.formulations())}
    assert {e.solver for e in result.entries} == {"dop853", "rk4", "radau", "ida", "generalized-alpha"}
    for e in result.entries:
        assert e.status == "finished" and e.error < 1e-3 and e.drift < 1e-4, e
        assert e.steps > 0 and e.evaluations > 0 and e.seconds > 0 and e.condition >= 1 - 1e-9, e
    by_name = {e.formulation: e for e in result.entries}
    x = system.matrices(start)
    assert by_name["projection"].condition >= np.linalg.cond(x.Mc)
    assert by_name["virtual-mass"].condition <= by_name["projection"].condition
    lines = str(result).splitlines()
    assert lines[0] == "slider-crank, 1 s, rtol 1e-06, dt 0.0005 s"
    assert " ".join(lines[1].split()) == "formulation solver problem error drift energy steps evals ms cond"
    assert len(lines) == 2 + len(result.entries)


def test_error_and_cost_follow_the_tolerance():
    system = library("four_bar")
    start = system.assemble(velocities={system.layout.v_names[0]: 2.0})
    chosen = {
        "formulations": ["default", sr.formulation("virtual-mass", mu=2.0), "ggl"],
        "solvers": ["dop853", "radau"],
    }
    loose, tight = (sr.compare(system, start, 1.0, **chosen, rtol=rtol) for rtol in (1e-5, 1e-8))
    pairs = [(e.formulation, e.solver) for e in loose.entries]
    assert pairs == [
        ("default", "dop853"), ("default", "radau"), ("virtual-mass", "dop853"), ("virtual-mass", "radau"),
        ("ggl", "radau"),
    ]  # fmt: skip
    for a, b in zip(loose.entries, tight.entries, strict=True):
        assert b.error < 0.1 * a.error and b.error < 1e-5 and b.steps > a.steps


def test_what_a_machine_cannot_have_is_listed_with_the_reason():
    result = sr.compare(
        library("rolling_disc"), library("rolling_disc").assemble(), 0.2, ["coordinate-split", "ggl"], ["radau"]
    )
    refused, done = result.entries
    assert refused.status.startswith("refused: ") and "'coordinate-split' divides coordinates" in refused.status
    assert done.status == "finished"
    assert result.to_dict()["entries"][0]["error"] is None
    json.dumps(result.to_dict(), allow_nan=False)
    head, first, second = str(result).splitlines()[1:4]
    assert first.index("refused: ") == head.index("error") == second.index(f"{done.error:.1e}")  # columns stay narrow
    assert second.index(f"{done.drift:.1e}") == head.index("drift")


def test_unknown_names_are_refused():
    system = library("four_bar")
    with pytest.raises(sr.SarrusError, match="unknown solver 'rk5'; use 'dop853'"):
        sr.compare(system, system.assemble(), 1.0, solvers=["rk5"])
    with pytest.raises(sr.UnknownNameError, match="unknown formulation 'ggi'"):
        sr.compare(system, system.assemble(), 1.0, formulations=["ggi"])


def test_command_and_plot(tmp_path, capsys):
    image = tmp_path / "compare.png"
    words = ["compare", "four_bar", "--time", "0.2", "--formulations", "default,ggl", "--solvers", "dop853,radau"]
    assert main([*words, "--json", "--plot", str(image)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(e["formulation"], e["solver"]) for e in found["entries"]] == [
        ("default", "dop853"), ("default", "radau"), ("ggl", "radau"),
    ]  # fmt: skip
    assert image.read_bytes()[:4] == b"\x89PNG"
    assert main(words) == 0
    assert "ggl" in capsys.readouterr().out
    assert main(["compare", "four_bar", "--solvers", "rk5"]) == 2
    assert "unknown solver 'rk5'" in capsys.readouterr().err
