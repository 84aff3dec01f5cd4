"""Modules and functions stay small enough to be read in one sitting."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
MODULE_LINES = 500  # at most
FUNCTION_LINES = 80  # fewer than

FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_and_its_functions_are_small(path):
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    assert lines <= MODULE_LINES, f"{path.name} has {lines} lines, allowed are {MODULE_LINES}"
    long = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size >= FUNCTION_LINES:
                long.append(f"{path.name}:{node.lineno} {node.name} has {size} lines")
    assert not long, f"functions of {FUNCTION_LINES} lines or more:\n" + "\n".join(long)
