"""The manual's code runs, and prints what the manual says it prints.

All Python blocks of a page run in order, in one namespace. A block of kind `text` right after a Python block is what
that one prints: words must agree, numbers nearly.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

import sarrus as sr

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


def blocks(text: str) -> list[tuple[int, str, str | None]]:
    """Line number, code and promised output (None if the page shows none) of each Python block."""
    return [(text.count("\n", 0, m.start()) + 2, m["code"], m["printed"]) for m in BLOCK.finditer(text)]


def same_output(got: str, promised: str) -> bool:
    """Same words in the same order, numbers within 1 % (and anything below 1e-9 is zero)."""
    words, numbers = zip(
        *(("".join(NUMBER.sub("#", x).split()), NUMBER.findall(x)) for x in (got, promised)), strict=True
    )
    if words[0] != words[1]:
        return False
    return all(float(a) == pytest.approx(float(b), rel=1e-2, abs=1e-9) for a, b in zip(*numbers, strict=True))


CODE = {page: blocks(page.read_text(encoding="utf-8")) for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if CODE[page]], ids=lambda page: page.name)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some pages write files
    names: dict[str, object] = {}
    for line, code, promised in CODE[page]:
        out = io.StringIO()
        # empty lines in front, so that a traceback names the line of the page
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        where = f"{page.name}, line {line}"
        if promised is not None:
            assert same_output(out.getvalue(), promised), f"{where} prints:\n{out.getvalue()}"


def test_the_manual_has_code():
    with_code = {page.name for page, found in CODE.items() if found}
    assert {
        "README.md",
        "getting-started.md",
        "modelling.md",
        "library.md",
        "results.md",
        "simulating.md",
        "seeing.md",
    } <= with_code


def library_table() -> dict[str, tuple[int, ...]]:
    """Machine -> (velocities, rows, rank, mobility), from the table of docs/library.md."""
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in found}


@pytest.mark.parametrize("name", sr.library.names())
def test_library_table_is_right(name):
    result = sr.check(sr.library.build(name))
    assert library_table()[name] == (result.velocities, result.rows, result.rank, result.mobility)


def test_library_table_has_no_other_machines():
    assert set(library_table()) == set(sr.library.names())


@pytest.mark.parametrize(
    ("got", "promised", "agree"),
    [
        ("rank 1 of 1, [1.2300001 3e-16]\n", "rank 1 of 1,  [1.23 0.]", True),
        ("rank 1", "rank 2", False),
        ("A: 1.0", "B: 1.0", False),
        ("[1. 2.]", "[1. 2. 3.]", False),
        ("C1: [-2.5 -0.]", "C1: [-2.5  0.]", True),
        ("[ 1e-17 -1.]", "[-0. -1.]", True),
    ],
)
def test_comparison_of_outputs(got, promised, agree):
    assert same_output(got, promised) is agree
