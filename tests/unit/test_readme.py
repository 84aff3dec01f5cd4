"""The code that the README and the manual show runs as it stands, and does what the text beside it says."""

import contextlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import sarrus as sr
from sarrus.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/getting-started.md")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture(scope="module", params=DOCUMENTS)
def shown(request, tmp_path_factory) -> dict[str, object]:
    """What is defined after all Python blocks of a document, run one after the other as a reader would."""
    code = blocks(request.param, "python")
    assert code, f"{request.param} shows no Python"
    space: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(tmp_path_factory.mktemp("reader")):
        for block in code:
            exec(compile(block, request.param, "exec"), space)
        space["files"] = {path.name: path.stat().st_size for path in Path().iterdir()}
    return space


def test_the_code_runs(shown):
    assert isinstance(shown["system"], sr.System)
    assert isinstance(shown["state"], sr.State)


def test_the_state_is_what_was_asked_for(shown):
    system, state = shown["system"], shown["state"]
    assert (state["A"], state["A.v"]) == (0.3, 2.0)
    assert np.max(np.abs(system.terms(state).phi)) <= 1e-12
    assert np.all(np.isfinite(system.acceleration(state, [1.0])))
    assert system.rank(state).mobility == 1


def test_the_motion_is_right_and_its_files_are_there(shown):
    """Both documents simulate: the audit is clean, and what the text promises to write is written."""
    traj = shown["traj"]
    assert isinstance(traj, sr.Trajectory) and traj.status.code == "finished"
    audit = traj.audit(raise_above=1e-6)
    assert audit.loop.relative < 1e-12
    files = shown["files"]
    assert {"four_bar.html", "four_bar.png"} < set(files) and {"four_bar.nc", "four_bar.csv"} & set(files)
    assert all(size > 1000 for size in files.values())


def test_the_row_said_to_be_always_satisfied_is_so(shown):
    result = sr.check(shown["mech"])
    assert result.idle == ("D.y",)


@pytest.mark.parametrize("document", [*DOCUMENTS, "docs/simulating.md"])
def test_the_commands_shown_exist(document, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / document).read_text(encoding="utf-8")
    commands = set(re.findall(r"(?:^|`)sarrus ((?:list|check|demo|simulate|diagnose)[^`\n]*)", text, re.M))
    assert commands
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert capsys.readouterr().out


def test_both_documents_show_the_same_machine():
    readme, manual = ("\n".join(blocks(d, "python")) for d in DOCUMENTS)
    description = readme[: readme.index("system = ")].strip()
    assert description in manual


def test_make_targets_that_are_named_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for document in DOCUMENTS:
        named = set(re.findall(r"^make ([a-z]+)", (ROOT / document).read_text(encoding="utf-8"), re.M))
        assert named and named <= targets
