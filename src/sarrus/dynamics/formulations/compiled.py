"""Formulations as compiled right-hand sides for the integrators: one small library for each machine.

The terms of the equation of motion are printed as C; what the formulations do with them is in
`kernel/include/sarrus_form.h`, and for motion in reduced quasi-velocities in `kernel/include/sarrus_section.h`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sarrus.dynamics.formulations.factors import FACTORS
from sarrus.dynamics.formulations.record import Formulation, inverse_root
from sarrus.errors import SarrusError
from sarrus.kernel import cache
from sarrus.kernel.library import generated_library

if TYPE_CHECKING:
    from sarrus.dynamics.system import System

# in the order of the enumeration of sarrus_form.h
_KINDS = (
    "projection", "projection-symmetric", "projection-scaled", "virtual-mass", "quasi-velocity", "null-space",
    "generalised", "multiplier", "gauss", "regularised",
)  # fmt: skip
_SAME = {"reduction": "multiplier"}  # both keep the rows that the pivoting chooses
# options that only the readable form follows, and the value that the compiled form has
_FIXED = {"basis": "coordinates"}


def right_hand_side(system: System) -> Any:
    """The compiled function with the arguments of `sarrus_state`, for `Motion.call("state", ...)`.

    Args:
        system: the machine.
    """
    return _library(system, "formulations", _form_source).sarrus_form


class Quasi(NamedTuple):
    """What integrators need to carry reduced quasi-velocities (sarrus_quasi.h).

    Attributes:
        functions: address of the table of functions.
        section: the memory that they work on, ready for the factor chosen.
        library: what the functions belong to.
    """

    functions: int
    section: np.ndarray
    library: ctypes.CDLL


def quasi_velocities(system: System, form: Formulation) -> Quasi:
    """Motion of a machine in reduced quasi-velocities.

    Args:
        system: the machine.
        form: "quasi-velocity", with its options.
    """
    library = _library(system, "quasi-velocities", _section_source)
    library.sarrus_section_size.restype = ctypes.c_long
    section = np.zeros(library.sarrus_section_size() // 8 + 1)
    section[0] = FACTORS.index(form.options["factor"])
    return Quasi(ctypes.addressof(ctypes.c_char.in_dll(library, "sarrus_quasi")), section, library)


def _library(system: System, what: str, source: Callable[[System], str]) -> ctypes.CDLL:
    """The compiled library of a C text made from a machine's terms."""

    def load() -> ctypes.CDLL:
        key = cache.key_of(Path(__file__).read_bytes(), what, system.functions.texts["terms"], repr(system.kept))
        return generated_library(key, lambda: source(system))

    return system.functions.once(what, load)


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


def _symbols(system: System) -> dict[str, Any]:
    """Arguments by name, and the machine's terms in them; rows that are never zero only."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    layout, kept = system.layout, list(system.kept)
    sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "u": layout.nu, "f": layout.nv, "p": len(layout.parameters)}
    s: dict[str, Any] = {name: SX.sym(name, size) for name, size in sizes.items()} | {"on": SX.sym("on", len(kept))}
    M, h, A, gamma, phi, a, B, N = system.functions.function("terms").call([s[k] for k in ("t", "q", "v", "p")])
    flags = ca.diag(s["on"])
    rows = (flags @ A[kept, :] if kept else SX(0, layout.nv)).T  # so that one row comes after the other
    push = (B @ s["u"] if layout.nu else 0) - h
    along = ca.vertcat(N @ s["v"], 1)  # rates of q and t
    place = ca.vertcat(s["q"], s["t"])
    for name, matrix in (("mass", M), ("rows", rows)):
        dense = ca.vec(ca.densify(matrix))
        s |= {name: dense, f"{name}_rate": ca.jtimes(dense, place, along)}
    return s | {
        "b": push + s["f"], "push": push, "gamma": s["on"] * gamma[kept], "phi": s["on"] * phi[kept],
        "a": s["on"] * a[kept],
    }  # fmt: skip


def _text(system: System, functions: Sequence[tuple[str, str, str]], header: str) -> str:
    """C text: sizes, tables, functions of (name, arguments, results), and the header that does the rest."""
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import Function

    layout, kept, s = system.layout, list(system.kept), _symbols(system)
    constants = {"SR_NQ": layout.nq, "SR_NV": layout.nv, "SR_NU": layout.nu, "SR_M": layout.m, "SR_K": len(kept)}
    printed = []
    for name, arguments, results in functions:
        inputs, outputs = arguments.split(), results.split()
        values = ca.cse([ca.densify(s[k]) for k in outputs])
        printed.append(c_function(Function(name, [s[k] for k in inputs], values), inputs, outputs))
    return "\n".join([
        '#include "sarrus_real.h"',
        *(f"#define {name} {value}" for name, value in constants.items()),
        f"SR_TABLE int sr_kept[] = {{{', '.join(map(str, kept)) or '0'}}};",
        *printed,
        f'#include "{header}"',
        "",
    ])  # fmt: skip


def _form_source(system: System) -> str:
    terms = ("sr_form_terms", "t q v u f p on", "mass rows b gamma")
    return _text(system, [terms, ("sr_form_place", "t q p on", "phi a")], "sarrus_form.h")


def _section_source(system: System) -> str:
    terms = ("sr_section_terms", "t q p on", "mass rows a")
    rates = ("sr_section_rates", "t q v u p on", "push mass_rate rows_rate")
    return _text(system, [terms, rates], "sarrus_section.h")
