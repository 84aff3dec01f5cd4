"""`sarrus diagnose`, and the manual's page that its findings link to."""

import ast
import json
import re
from pathlib import Path

import pytest

import sarrus as sr
from sarrus.cli import main

ROOT = Path(__file__).resolve().parents[2]
WRECK = """
import sarrus as sr

def wreck():
    mech = sr.Mechanism("wreck", planar=True)
    mech.revolute("A", mech.ground, mech.body("ghost"))
    return mech

def apart():
    return sr.library.build("four_bar", L4=5.0)
"""


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_text(capsys):
    code, out, err = run(capsys, "diagnose", "parallelogram")
    assert (code, err) == (0, "")
    for part in ("mobility", "redundant", "make `C2`", "diagnosing.html#redundant-constraints"):
        assert part in out


@pytest.mark.parametrize("name", ["parallelogram", "stewart", "bricard"])
def test_json(name, capsys):
    code, out, err = run(capsys, "diagnose", name, "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    expected = sr.diagnose(sr.library.build(name))
    assert (data["mobility"], data["rank"]) == (expected.mobility, expected.rank)
    assert data["redundant"] == list(expected.redundant) and data["determinate"] == dict(expected.determinate)
    assert data["actuation"]["kind"] == expected.actuation.kind


def test_set_and_html(capsys, tmp_path):
    page = tmp_path / "report.html"
    code, out, _ = run(
        capsys, "diagnose", "parallelogram", "--set", "A0=0.0", "--set", "B=0.0", "--html", str(page), "--json"
    )
    data = json.loads(out)
    assert code == 0 and data["mobilities"]["singular"] and data["mobility"] == 2
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_wrong_calls(capsys):
    for word, text in (("A", "expected NAME=VALUE"), ("A=x", "expected NAME=VALUE"), ("Z=1", "unknown coordinate 'Z'")):
        code, out, err = run(capsys, "diagnose", "four_bar", "--set", word)
        assert (code, out) == (2, "") and text in err
    code, out, _ = run(capsys, "diagnose", "four_bar", "--set", "A=3.0", "--json")
    assert code == 2 and "which cannot be reached" in json.loads(out)["error"]


def test_problems_are_exit_code_1(capsys, tmp_path):
    path = tmp_path / "machines.py"
    path.write_text(WRECK)
    code, out, err = run(capsys, "diagnose", f"{path}:wreck")
    assert (code, err) == (1, "") and "'ghost'" in out and "a-faulty-description" in out
    code, out, _ = run(capsys, "diagnose", f"{path}:wreck", "--set", "A=1", "--json")
    assert code == 1 and json.loads(out)["ok"] is False
    code, out, _ = run(capsys, "diagnose", f"{path}:apart", "--json")
    data = json.loads(out)
    assert code == 1 and not data["assembled"] and "cannot be satisfied" in data["problems"][0]


def anchors() -> set[str]:
    """The headings of the page, as its links, and the targets it names itself."""
    text = (ROOT / "docs" / "diagnosing.md").read_text(encoding="utf-8")
    slugs = {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"^#+ (.+)$", text, re.M)}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


def topics() -> set[str]:
    """The second argument of every `Finding(...)` in the package."""
    tree = ast.parse((ROOT / "src" / "sarrus" / "analysis" / "findings.py").read_text(encoding="utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Finding"]
    return {ast.literal_eval(call.args[1]) for call in calls}


def test_every_finding_has_its_section():
    assert len(topics()) > 15
    assert topics() <= anchors()


def test_every_section_has_its_finding():
    other = {"diagnosing-a-machine", "joint-reactions", "grüblers-count"}
    assert anchors() - other == topics()
