"""No file of the project remembers the machine on which it was written."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written so that no pattern matches its own text.
PATTERNS = {
    "absolute path of a machine": re.compile(r"(?<![\w./-])/(?:work|home|root|Users)/[\w.-]+"),
    "Windows user path": re.compile(r"\b[A-Za-z]:\\Users\\\w"),
    "local file address": re.compile(r"file:[/]{3}\w"),
    "package index setting": re.compile(r"(?:index|extra-index)[-_]url\b|find[-_]links\b|trusted[-_]host\b"),
    "resolved package address": re.compile(r"https?://\S+(?:/simple/|/-/|/packages/[0-9a-f]{2}/|\.whl\b|\.tgz\b)"),
    "package hash": re.compile(r"[-]-hash=sha\d+:"),
}
TEXT_LIMIT = 2_000_000  # bytes; larger files are data, not text a person wrote
NOT_THE_TREE = {".git", ".venv", "__pycache__", "_build", "build", "dist", ".pytest_cache", ".ruff_cache"}


def tree() -> list[Path]:
    """List the files that are, or would be, under version control."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        # An unpacked source archive, or no git: take what is there.
        files = [path for path in ROOT.rglob("*") if path.is_file()]
        return [path for path in files if not NOT_THE_TREE & set(path.relative_to(ROOT).parts)]
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def problems(text: str) -> list[str]:
    """List what must not stand in a text, with line numbers."""
    return [
        f"line {number}: {kind}: {match.group(0)}"
        for number, line in enumerate(text.splitlines(), start=1)
        for kind, pattern in PATTERNS.items()
        if (match := pattern.search(line))
    ]


def test_tree_names_no_machine():
    found = []
    for path in tree():
        data = path.read_bytes()
        if len(data) > TEXT_LIMIT or b"\0" in data[:8192]:
            continue
        text = data.decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}, {problem}" for problem in problems(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "see " + "/" + "work/main/notes.md",
        "cache = '" + "/" + "home/someone/.cache'",
        "index" + "-url = https://example.org/",
        "https://example.org" + "/" + "simple/numpy/",
        "numpy==2.0 --" + "hash=sha256:0011",
        "file:" + "///" + "opt/wheels",
    ],
)
def test_pattern_catches(text):
    assert problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://keepachangelog.com/en/1.1.0/",
        "src/home/page",
        "the work/energy balance",
        "#!/usr/bin/env bash",
    ],
)
def test_pattern_spares(text):
    assert not problems(text)
