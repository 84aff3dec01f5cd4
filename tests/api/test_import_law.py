"""The import law: which part of the package may import which."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

# A layer may import itself and what stands to its left.
LAYERS = (
    "errors",
    "model",
    "symbolic",
    "kernel",
    "dynamics",
    "simulation",
    "control",
    "analysis",
    "scale",
)
# Leaves may import every layer; nobody but the package itself and the command line imports a leaf.
LEAVES = ("io", "view", "export", "library")
# An object may offer a leaf as a method of its own (`trajectory.plot`): imported when called, not before.
DOORS = {"sarrus.simulation.trajectory": ("io", "view"), "sarrus.analysis.map_record": ("view",)}
# The contract binds model to dynamics together, so only what stands right of dynamics may rely on it.
CONTRACT = "system"
# These see everything.
TOP = ("sarrus", "cli", "demo", "__main__")
# What the model layer may import besides the standard library: data needs no maths library.
MODEL_THIRD_PARTY = {"numpy"}


def part_of(module: str) -> str:
    """Name the part of the package (layer, leaf, ...) to which a dotted module name belongs."""
    names = module.split(".")
    if names[:3] == ["sarrus", "model", "library"]:
        return "library"  # lives beside the data it builds, but behaves as a leaf
    return names[1] if len(names) > 1 else "sarrus"


def module_name(path: Path) -> str:
    """Give the dotted name of a source file."""
    names = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def run_time_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a syntax tree, leaving out what stands under `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield other
                yield from run_time_nodes(other)
            continue
        yield node
        yield from run_time_nodes(node)


def imports(source: str, module: str, is_package: bool, modules: set[str]) -> Iterator[tuple[int, str, bool]]:
    """List the imported modules of a source text as (line, absolute dotted name, whether inside a function)."""
    for node in run_time_nodes(ast.parse(source)):
        inside = getattr(node, "col_offset", 0) > 0
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, inside
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                names = module.split(".")
                parents = names[: len(names) - node.level + (1 if is_package else 0)]
                base = ".".join([*parents, base]) if base else ".".join(parents)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in modules else base, inside


def may_import(importer: str, imported: str) -> bool:
    """Decide whether one part of the package may import another."""
    if importer == imported or importer in TOP:
        return True
    if imported in TOP:
        # Examples in the library use the public names, as any user does.
        return importer == "library" and imported == "sarrus"
    if imported in LEAVES:
        return False
    if importer in LEAVES or importer == CONTRACT:
        return True
    if imported == CONTRACT:
        return LAYERS.index(importer) > LAYERS.index("dynamics")
    return LAYERS.index(imported) < LAYERS.index(importer)


FILES = sorted((SOURCE / "sarrus").rglob("*.py"))
MODULES = {module_name(path) for path in FILES}


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """List the imports of one module that break the law."""
    found = []
    importer = part_of(module)
    for line, name, inside in imports(source, module, is_package, MODULES | {module}):
        root = name.split(".")[0]
        if root == "sarrus":
            imported = part_of(name)
            if not may_import(importer, imported) and not (inside and imported in DOORS.get(module, ())):
                found.append(f"{module}, line {line}: {importer} may not import {imported} ({name})")
        elif importer == "model" and root not in sys.stdlib_module_names | MODEL_THIRD_PARTY:
            found.append(f"{module}, line {line}: model may import nothing but NumPy ({name})")
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_module_obeys_the_import_law(path):
    module = module_name(path)
    known = (*LAYERS, *LEAVES, CONTRACT, *TOP)
    part = part_of(module)
    assert part in known, f"{module}: {part!r} has no place in the import law; add it to this test"
    found = violations(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source", "culprit"),
    [
        ("sarrus.model.body", "from sarrus.symbolic import spatial", "symbolic"),
        ("sarrus.model.body", "from ..kernel import build", "kernel"),
        ("sarrus.model.body", "import casadi as ca", "casadi"),
        ("sarrus.model.body", "def f():\n    import scipy.linalg", "scipy"),
        ("sarrus.model.body", "from sarrus.model.library import build", "library"),
        ("sarrus.kernel.build", "from sarrus.system import System", "system"),
        ("sarrus.dynamics.forces", "import sarrus", "sarrus"),
        ("sarrus.simulation.driver", "from sarrus.control import Controller", "control"),
        ("sarrus.analysis.doctor", "from sarrus.view import plot", "view"),
        ("sarrus.analysis.doctor", "def f():\n    from sarrus.view import plot", "view"),
        ("sarrus.simulation.trajectory", "from sarrus.view import plot", "view"),
    ],
)
def test_law_catches(module, source, culprit):
    found = violations(source, module)
    assert len(found) == 1
    assert culprit in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sarrus.model.body", "import numpy as np\nfrom dataclasses import dataclass\nfrom . import joints"),
        ("sarrus.model.body", "if TYPE_CHECKING:\n    from sarrus.system import System\n    import casadi"),
        ("sarrus.simulation.driver", "from sarrus.system import System"),
        ("sarrus.model.library.bars", "import casadi as ca\nimport sarrus as sr"),
        ("sarrus.scale.batch", "from ..errors import SarrusError"),
        ("sarrus.simulation.trajectory", "def f():\n    from sarrus.view import plot"),
        ("sarrus.cli", "from .view import plot"),
    ],
)
def test_law_allows(module, source):
    assert violations(source, module) == []
