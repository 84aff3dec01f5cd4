"""Formulations as compiled right-hand sides for the integrators: one small library for each machine.

The terms of the equation of motion are printed as C; what the formulations do with them is in
`kernel/include/sarrus_form.h`.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.formulations.record import Formulation, inverse_root
from sarrus.errors import SarrusError
from sarrus.kernel import cache
from sarrus.kernel.library import build_library

if TYPE_CHECKING:
    from sarrus.dynamics.system import System

# in the order of the enumeration of sarrus_form.h
_KINDS = (
    "projection", "projection-symmetric", "projection-scaled", "virtual-mass", "quasi-velocity", "null-space",
    "generalised", "multiplier", "gauss", "regularised",
)  # fmt: skip
_SAME = {"reduction": "multiplier"}  # both keep the rows that the pivoting chooses
# options that only the readable form follows, and the value that the compiled form has
_FIXED = {"factor": "cholesky", "basis": "coordinates"}


def right_hand_side(system: System) -> Any:
    """The compiled function with the arguments of `sarrus_state`, for `Motion.call("state", ...)`.

    Args:
        system: the machine.
    """
    text = system.functions.texts["terms"]
    key = cache.key_of(Path(__file__).read_bytes(), "formulations", text, repr(system.kept))
    found = cache.fetch(key, "c")
    source = _source(system) if found is None else found[1].decode()
    if found is None:
        cache.store(key, "c", source.encode())
    return ctypes.CDLL(str(build_library(source))).sarrus_form


def choice(system: System, form: Formulation) -> np.ndarray:
    """Which formulation, with which options, as the numbers that follow the row data; "auto" is 0, but h is 1 ms.

    Args:
        system: the machine.
        form: a formulation that makes an ODE.
    """
    for key, value in _FIXED.items():
        if form.options.get(key, value) != value:
            raise SarrusError(
                f"formulation {form.name!r}, {key}={form.options[key]!r}: simulations are compiled with "
                f"{key}={value!r} (the motion is the same)"
            )
    get = form.options.get
    weight = get("mu", get("gamma", 0.0))
    automatic = {"weight": 0.0, "h": 1e-3, "eps": 0.0}
    values = {"weight": weight, "h": get("h", 0.0), "eps": get("eps", 0.0)}
    numbers = [automatic[k] if isinstance(v, str) else float(v) for k, v in values.items()]
    head = [float(_KINDS.index(_SAME.get(form.name, form.name))), *numbers]
    if get("W") is None:
        return np.array([*head, 0.0])
    return np.concatenate([head, [1.0], inverse_root(get("W"), system.layout.nv).ravel()])


def _source(system: System) -> str:
    """C text: sizes, tables, `sr_form_terms`, `sr_form_place`, and the header that does the rest."""
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import SX, Function

    layout, kept = system.layout, list(system.kept)
    function: Any = ca.Function.deserialize(system.functions.texts["terms"])
    sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "u": layout.nu, "f": layout.nv, "p": len(layout.parameters)}
    s = {name: SX.sym(name, size) for name, size in sizes.items()} | {"on": SX.sym("on", len(kept))}
    M, h, A, gamma, phi, a, B, _ = function.call([s[k] for k in ("t", "q", "v", "p")])
    b = (B @ s["u"] if layout.nu else 0) + s["f"] - h
    rows = ca.diag(s["on"]) @ A[kept, :] if kept else SX(0, layout.nv)
    outputs = [ca.densify(ca.vec(M)), ca.densify(ca.vec(rows.T)), ca.densify(b), ca.densify(s["on"] * gamma[kept])]
    names = ["t", "q", "v", "u", "f", "p", "on"]
    terms = Function("sr_form_terms", [s[k] for k in names], ca.cse(outputs))
    errors = [ca.densify(s["on"] * x[kept]) for x in (phi, a)]
    place = Function("sr_form_place", [s[k] for k in ("t", "q", "p", "on")], ca.cse(errors))
    constants = {"SR_NQ": layout.nq, "SR_NV": layout.nv, "SR_NU": layout.nu, "SR_M": layout.m, "SR_K": len(kept)}
    return "\n".join([
        '#include "sarrus_real.h"',
        *(f"#define {name} {value}" for name, value in constants.items()),
        f"SR_TABLE int sr_kept[] = {{{', '.join(map(str, kept)) or '0'}}};",
        c_function(terms, names, ["mass", "rows", "b", "gamma"]),
        c_function(place, ["t", "q", "p", "on"], ["phi", "a"]),
        '#include "sarrus_form.h"',
        "",
    ])  # fmt: skip
