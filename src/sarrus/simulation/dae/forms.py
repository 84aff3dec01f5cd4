"""The differential-algebraic forms of sheet 10 as F(t, y, y') = 0 with exact derivatives, generated and compiled.

With rows and multipliers scaled by the references d of the rows, and rows that are switched off saying λ = 0:

    index-1       q̇ - N v,  M v̇ + h - B u - Aᵀλ,  A v̇ - γ                      y = (q, v, λ)
    index-2       q̇ - N v,  M v̇ + h - B u - Aᵀλ,  A v - a                      y = (q, v, λ)
    index-3       q̇ - N v,  M v̇ + h - B u - Aᵀλ,  Φ                            y = (q, v, λ)
    ggl           q̇ - N (v + Aᵀμ),  M v̇ + h - B u - Aᵀλ,  Φ,  A v - a          y = (q, v, λ, μ)
    ggl-implicit  q̇ - N (v + Aᵀμ),  v̇ - w,  M w + h - B u - Aᵀλ,  Φ,  A v - a  y = (q, v, w, λ, μ)
    coordinate-split  Pc (q̇ - v),  Pc (M v̇ + h - B u),  Φ,  A v - a            y = (q, v)

Nonholonomic rows have no Φ: in its place they say A v = a, and have no μ.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel import cache
from sarrus.kernel.dae import Dae
from sarrus.kernel.library import generated_library
from sarrus.kernel.motion import Motion
from sarrus.simulation.evaluate import symbols
from sarrus.simulation.mode import shape_of

# what y consists of besides q and v
PARTS = {
    "index-1": ("lam",), "index-2": ("lam",), "index-3": ("lam",), "ggl": ("lam", "mu"),
    "ggl-implicit": ("w", "lam", "mu"), "coordinate-split": (),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """One form of one machine.

    Attributes:
        library: the compiled functions.
        places: where each part of y begins, by its name (see `PARTS`), and "end".
    """

    library: ctypes.CDLL
    places: Mapping[str, int]


def _places(system: System, form: str) -> dict[str, int]:
    x, kept = system.layout, len(system.kept)
    sizes = {"q": x.nq, "v": x.nv, "w": x.nv, "lam": kept, "mu": kept, "end": 0}
    names = ("q", "v", *PARTS[form], "end")
    return dict(zip(names, accumulate([0, *(sizes[name] for name in names[:-1])]), strict=True))


def compiled_problem(system: System, form: str) -> Problem:
    """A form of a machine.

    Args:
        system: the machine.
        form: one of `PARTS`.
    """
    x = system.layout
    if form == "coordinate-split" and (x.turns or not all(x.rows[i].holonomic for i in system.kept)):
        raise StateError(
            f"{system.name}: 'coordinate-split' divides coordinates into free and dependent ones; it needs a machine "
            "without quaternions and nonholonomic rows; take 'ggl'"
        )
    return system.functions.once(f"form {form}", lambda: _compiled(system, form))


def _compiled(system: System, form: str) -> Problem:
    key = cache.key_of(Path(__file__).read_bytes(), form, system.functions.texts["terms"], repr(system.kept))
    return Problem(generated_library(key, lambda: _source(system, form)), _places(system, form))


def _equations(system: System, form: str) -> tuple[list[Any], list[Any]]:
    """Inputs (t, y, y', u, p, on, scale) and the equations of a form, as CasADi expressions."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    s, x = symbols(system), system.layout
    kept = list(system.kept)
    on, scale = SX.sym("on", len(kept)), SX.sym("scale", len(kept))
    sizes = {"w": x.nv, "lam": len(kept), "mu": len(kept)}
    more = {name: SX.sym(name, sizes[name]) for name in PARTS[form]}
    rates = {name: SX.sym(f"{name}_rate", size) for name, size in (("q", x.nq), ("v", x.nv))}
    weight = on * scale
    A = ca.diag(weight) @ s["A"][kept, :] if kept else SX(0, x.nv)
    phi, slip = weight * s["phi"][kept], A @ s["v"] - weight * s["at"][kept]
    lam, idle = more["lam"], 1 - on
    acceleration = more.get("w", rates["v"])
    forces = s["M"] @ acceleration + s["h"] - A.T @ lam
    if x.nu:
        forces -= s["B"] @ s["u"]
    along = s["v"]
    if "mu" in more:
        along = along + A.T @ more["mu"]
    holonomic = SX([float(x.rows[i].holonomic) for i in kept]) if kept else SX(0, 1)
    place = holonomic * phi + (1 - holonomic) * slip
    rows = [rates["q"] - s["N"] @ along]
    rows += [rates["v"] - more["w"], forces] if "w" in more else [forces]
    if form == "index-1":
        rows.append(A @ rates["v"] - weight * s["gamma"][kept] + idle * lam)
    elif form == "index-2":
        rows.append(slip + idle * lam)
    elif form == "index-3":
        rows.append(place + idle * lam)
    else:
        rows += [slip + idle * lam, holonomic * phi + (1 - holonomic * on) * more["mu"]]
    y = ca.vertcat(s["q"], s["v"], *more.values())
    yp = ca.vertcat(rates["q"], rates["v"], *(SX.sym(f"{name}_rate", sizes[name]) for name in more))
    return [s["t"], y, yp, s["u"], s["p"], on, scale], rows


def _source(system: System, form: str) -> str:
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import SX, Function

    split = form == "coordinate-split"
    inputs, rows = _equations(system, "ggl" if split else form)
    F, c = ca.vertcat(*rows), SX.sym("c")
    names = ["t", "y", "yp", "u", "p", "on", "scale"]
    J = ca.densify(ca.jacobian(F, inputs[1]) + c * ca.jacobian(F, inputs[2]))
    stem = "sr_whole" if split else "sr"
    equations = Function(f"{stem}_equations", inputs, [ca.cse(ca.densify(F))])
    derivatives = Function(f"{stem}_derivatives", [*inputs[:3], c, *inputs[3:]], [ca.cse(ca.vec(J))])
    x, kept = system.layout, ", ".join(map(str, system.kept)) or "0"
    return "\n".join([
        shape_of(system).head(),
        f"#define SR_N {2 * x.nv if split else F.numel()}",
        f"#define SR_SPLIT {int(split)}",
        f"#define SR_INDEX3 {int(form == 'index-3')}",
        *(f"#define SR_{name.upper()}_AT {_places(system, form).get(name, -1)}" for name in ("w", "lam")),
        f"SR_TABLE int sr_kept[] = {{{kept}}};",
        '#include "sarrus_motion.h"',
        '#include "sarrus_explicit.h"',
        c_function(equations, names, ["out"]),
        c_function(derivatives, [*names[:3], "c", *names[3:]], ["out"]),
        *(_rows_source(system) if split else []),
        '#include "sarrus_dae.h"',
        "",
    ])  # fmt: skip


def _rows_source(system: System) -> list[str]:
    """C text of `sr_split_rows`, the scaled rows A one after the other, and the header that splits."""
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import SX, Function

    s, kept = symbols(system), list(system.kept)
    on, scale = SX.sym("on", len(kept)), SX.sym("scale", len(kept))
    A = ca.diag(on * scale) @ s["A"][kept, :] if kept else SX(0, system.layout.nv)
    inputs = [s["t"], s["q"], s["p"], on, scale]
    rows = Function("sr_split_rows", inputs, [ca.cse(ca.densify(ca.vec(ca.densify(A).T)))])
    return [c_function(rows, ["t", "q", "p", "on", "scale"], ["out"]), '#include "sarrus_split.h"']


def bound(system: System, form: str, motion: Motion) -> Dae:
    """A form of a machine for its motion."""
    problem = compiled_problem(system, form)
    return Dae(problem.library, problem.places["end"], motion, 1 / system.norms)
