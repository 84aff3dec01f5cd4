"""From a description to a compiled machine, or back from the cache."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.dynamics.functions import Functions, symbolic_functions
from sarrus.dynamics.reference import row_norms, saddle_samples
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError
from sarrus.kernel import cache
from sarrus.kernel.library import MachineLibrary, build_library
from sarrus.model.lagrangian import Lagrangian
from sarrus.model.layout import Layout
from sarrus.model.mechanism import Mechanism
from sarrus.model.parts import Model


def compile(machine: Mechanism | Model | Lagrangian) -> System:
    """Turn a description into a compiled machine.

    The first time, expressions are derived, printed as C and compiled; after that everything comes from the cache
    (folder `SARRUS_CACHE`, or the user's cache folder).

    Args:
        machine: a `Mechanism`, its frozen `Model`, or a `Lagrangian`.

    Returns:
        The compiled machine.

    Raises:
        ModelError: with all problems of the description.
        CompilerError: if there is no C compiler.
    """
    if isinstance(machine, Mechanism):
        machine = machine.finalize()
    if not isinstance(machine, (Model, Lagrangian)):
        raise SarrusError(f"compile: expected a Mechanism or a Lagrangian, got {type(machine).__name__}")
    import casadi as ca

    from sarrus.symbolic.digest import describe

    text = describe(machine)
    key = None if text is None else cache.key_of(_code(), ca.CasadiMeta.version(), text)
    record = _fetch(key) if key else None
    if record is None:
        record = _derive(machine)
        if key:
            cache.store(key, "json", json.dumps(record).encode())
    path = build_library(record["source"])
    system = _system(machine, record)
    x = system.layout
    return replace(system, library=MachineLibrary(path, x.nq, x.nv, x.nu, x.m, len(system.kept)))


def _system(machine: Model | Lagrangian, record: Mapping[str, Any]) -> System:
    """Everything but the compiled library."""
    layout = Layout.from_json(record["layout"])
    return System(
        layout, machine, None, Functions(record["functions"]), tuple(record["kept"]),
        np.array(record["y_index"], dtype=int).reshape(-1, 2), np.array(list(layout.parameters.values()), dtype=float),
        np.array(record["norms"], dtype=float), tuple(record["guard_rows"]), bool(record.get("redundant", False)),
    )  # fmt: skip


def _derive(machine: Model | Lagrangian) -> dict[str, Any]:
    from sarrus.kernel.source import machine_source
    from sarrus.symbolic.lagrangian import derive_lagrangian
    from sarrus.symbolic.stages import build_fast, build_stages
    from sarrus.symbolic.terms import derive

    terms = derive(machine) if isinstance(machine, Model) else derive_lagrangian(machine)
    _refuse_singular(terms)
    stages = build_stages(terms)
    functions = symbolic_functions(terms, stages.rows())
    layout = terms.layout
    y_index = np.array(stages.y_index, dtype=int).reshape(-1, 2)
    p = np.array(list(layout.parameters.values()), dtype=float)
    norms = row_norms(layout, Functions({}, dict(functions)), stages.kept, y_index, p)
    first_row = {group: layout.group_rows(group).start for group in layout.groups}
    record = {
        "layout": layout.to_json(),
        "functions": {name: function.serialize() for name, function in functions.items()},
        "kept": list(stages.kept),
        "y_index": y_index.tolist(),
        "norms": norms.tolist(),
        "guard_rows": [first_row[group] for group, _ in terms.guards],
    }
    samples, record["redundant"] = saddle_samples(_system(machine, record))
    fast = build_fast(stages, layout.nv, samples)
    record["source"] = machine_source(terms, stages, fast)
    return record


def _refuse_singular(terms: Any) -> None:
    """A velocity without any entry in M cannot be eliminated; say which before the factorisation trips over it."""
    from sarrus.errors import ModelError

    structure = terms.M.sparsity()
    problems = [
        f"coordinate {name!r}: nothing with inertia moves with it (its row of the mass matrix is zero)"
        for k, name in enumerate(terms.layout.v_names)
        if not structure.has_nz(k, k)
    ]
    if problems:
        raise ModelError(terms.layout.name, problems)


def _fetch(key: str) -> dict[str, Any] | None:
    found = cache.fetch(key, "json")
    return None if found is None else json.loads(found[1])


@functools.cache
def _code() -> str:
    """Digest of this package's own code, so that a changed package never meets old cache entries."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in ("model", "symbolic", "kernel", "dynamics"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".h"):
                digest.update(path.read_bytes())
    return digest.hexdigest()
