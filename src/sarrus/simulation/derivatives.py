"""What the implicit and the variational integrator need besides the acceleration: generated, compiled, cached.

jacobian   how the equations of motion and the constraints change with position and velocity at fixed a and λ:
           R_q = d(M a - b - Aᵀλ; A a - γ)/dq · N,  R_v = d(…)/dv. The kernel turns them into the exact derivatives of
           the constrained acceleration.
discrete   momenta of the discrete Lagrangian h L(q₀ ⊞ δ/2, δ/h) at both ends (kernel/include/sarrus_variational.h).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sarrus.dynamics.rubbing import unknown
from sarrus.dynamics.system import System
from sarrus.kernel import cache
from sarrus.kernel.library import generated_library
from sarrus.simulation.evaluate import symbols


def jacobian(system: System) -> Any:
    """The compiled function (t, q, v, u, a, lambda, p, on, Rq, Rv)."""
    return system.functions.once("compiled jacobian", lambda: _compiled(system, "jacobian"))


def discrete(system: System) -> Any:
    """The compiled function (t, q0, v0, delta, h, u, p, on, push, rest, right)."""
    if system.layout.rubbing:
        raise unknown("method 'variational'", system.layout.rubbing, "use 'dop853', or 'radau' where things stick")
    return system.functions.once("compiled discrete", lambda: _compiled(system, "discrete"))


def _compiled(system: System, name: str) -> Any:
    texts = system.functions.texts
    key = cache.key_of(
        Path(__file__).read_bytes(), name, texts["terms"], texts["energy"], texts.get("drag", ""), repr(system.kept)
    )
    source = _jacobian_source if name == "jacobian" else _discrete_source
    return getattr(generated_library(key, lambda: source(system)), f"sarrus_{name}")


def _scatter(name: str, matrix: Any, columns: int) -> list[str]:
    """C lines that spread the stored entries of `matrix` over a full array, one column after the other."""
    rows, cols = matrix.sparsity().get_triplet()
    height = matrix.shape[0]
    places = ", ".join(str(j * height + i) for i, j in zip(rows, cols, strict=True)) or "0"
    return [
        f"SR_TABLE int place_{name}[] = {{{places}}};",
        f"SR_FN void spread_{name}(const real *x, real *out) {{",
        f"  for (int i = 0; i < {height * columns}; i++) out[i] = 0;",
        f"  for (int i = 0; i < {len(rows)}; i++) out[place_{name}[i]] = x[i];",
        "}",
    ]


def _jacobian_source(system: System) -> str:
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import SX, Function

    s, x = symbols(system), system.layout
    kept = list(system.kept)
    lam, on = SX.sym("lam", x.m), SX.sym("on", len(kept))
    A = s["A"][kept, :]
    dynamics = s["M"] @ s["a"] + s["h"] - A.T @ lam[kept]
    if x.nu:
        dynamics -= s["B"] @ s["u"]
    if x.rubbing:
        drag = system.functions.function("drag").call([s[k] for k in ("t", "q", "v", "p")])[0]
        dynamics -= drag @ lam[x.rubbing_rows]
    equations = ca.vertcat(dynamics, on * (A @ s["a"] - s["gamma"][kept]))
    Rq = ca.sparsify(ca.jacobian(equations, s["q"]) @ s["N"])
    Rv = ca.sparsify(ca.jacobian(equations, s["v"]))
    names = ["t", "q", "v", "u", "a", "lam", "p", "on"]
    inputs = [lam if k == "lam" else on if k == "on" else s[k] for k in names]
    function = Function("sr_derivatives", inputs, ca.cse([Rq, Rv]))
    arguments = ", ".join(f"const real *{k}" for k in names)
    lines = ['#include "sarrus_real.h"', '#include "sarrus_types.h"', c_function(function, names, ["rq", "rv"])]
    lines += [*_scatter("rq", Rq, x.nv), *_scatter("rv", Rv, x.nv)]
    lines += [
        f"SR_EXPORT void sarrus_jacobian({arguments}, real *Rq, real *Rv) {{",
        f"  real rq[{max(Rq.nnz(), 1)}], rv[{max(Rv.nnz(), 1)}];",
        f"  sr_derivatives({', '.join(names)}, rq, rv);",
        "  spread_rq(rq, Rq);",
        "  spread_rv(rv, Rv);",
        "}",
        "",
    ]
    return "\n".join(lines)


def _discrete_source(system: System) -> str:
    import casadi as ca

    from sarrus.kernel.printer import c_function
    from sarrus.symbolic.algebra import SX, Function

    s, x = symbols(system), system.layout
    kept = list(system.kept)
    t, q0, v0, u, p = (s[k] for k in ("t", "q", "v", "u", "p"))
    delta, h, on, push = SX.sym("delta", x.nv), SX.sym("h"), SX.sym("on", len(kept)), SX.sym("push", len(kept))
    middle, speed, when = _retract(system, q0, delta / 2), delta / h, t + h / 2
    terms, energy = system.functions.function("terms"), system.functions.function("energy")
    # slopes of h L(q0 ⊞ δ/2, δ/h) with δ at fixed q0, and with q0 (by a turn in body axes) at fixed δ
    turn = SX.sym("turn", x.nv)
    place, rate = SX.sym("place", x.nq), SX.sym("rate", x.nv)
    powers = energy.call([when, place, rate, p])[0]
    lagrangian = powers[0] - powers[1]
    by_place, by_rate = ca.gradient(lagrangian, place), ca.gradient(lagrangian, rate)
    to_middle = _retract(system, _retract(system, q0, turn), delta / 2)
    zero = SX.zeros(x.nv, 1)
    along_start = ca.substitute(ca.jacobian(to_middle, turn), turn, zero)
    along_step = ca.jacobian(middle, delta)
    slope_place, slope_rate = ca.substitute([by_place, by_rate], [place, rate], [middle, speed])
    by_delta = h * (along_step.T @ slope_place) + slope_rate
    by_start = h * (along_start.T @ slope_place)
    at_end, at_start = _turning(system, delta), _turning(system, -delta)
    left = at_start.T @ by_delta - by_start  # momentum at the start
    right = at_end.T @ by_delta
    if _loaded(powers):  # forces that have no potential, half at each end
        _, bias, _, _, _, _, B, N = terms.call([when, middle, speed, p])
        inertial = _free_motion(system, lagrangian, place, rate, N)
        inertial = ca.substitute(inertial, ca.vertcat(place, rate), ca.vertcat(middle, speed))
        other = -(bias - inertial)
    else:
        B, other = terms.call([when, middle, speed, p])[6], zero
    if x.nu:
        other = other + ca.sparsify(B) @ u
    first = terms.call([t, q0, v0, p])
    momentum = ca.sparsify(first[0]) @ v0 + ca.sparsify(first[2])[kept, :].T @ (on * push)
    rest = ca.densify(momentum - left + h / 2 * other)
    names = ["t", "q", "v", "delta", "h", "u", "p", "on", "push"]
    inputs = [t, q0, v0, delta, h, u, p, on, push]
    function = Function("sr_momenta", inputs, ca.cse([rest, ca.densify(right + h / 2 * other)]))
    arguments = ", ".join(f"const real *{k}" for k in names)
    return "\n".join([
        '#include "sarrus_real.h"',
        '#include "sarrus_types.h"',
        c_function(function, names, ["rest", "right"]),
        f"SR_EXPORT void sarrus_discrete({arguments}, real *rest, real *right) {{",
        f"  sr_momenta({', '.join(names)}, rest, right);",
        "}",
        "",
    ])  # fmt: skip


def _loaded(powers: Any) -> bool:
    """Whether anything but inertia and potentials acts."""
    return bool(powers[2].nnz() and not powers[2].is_zero()) or bool(powers[3].nnz() and not powers[3].is_zero())


def _free_motion(system: System, lagrangian: Any, q: Any, v: Any, N: Any) -> Any:
    """Bias of the bare Lagrangian: ∂p/∂q · N v - Nᵀ ∂L/∂q + ω × ∂L/∂ω for the velocities of turns (Boltzmann-Hamel)."""
    import casadi as ca

    momentum = ca.gradient(lagrangian, v)
    out = ca.jtimes(momentum, q, N @ v) - N.T @ ca.gradient(lagrangian, q)
    for turn in system.layout.turns:
        part = slice(turn.v, turn.v + 3)
        out[part] += ca.cross(v[part], momentum[part])
    return out


def _retract(system: System, q: Any, delta: Any) -> Any:
    """The step q ⊞ δ: numbers add, quaternions turn by the exponential map."""
    import casadi as ca

    from sarrus.dynamics.manifold import plain_map
    from sarrus.symbolic.algebra import SX

    out = SX(q)
    plain_q, plain_v = plain_map(system.layout)
    for i, k in zip(plain_q.tolist(), plain_v.tolist(), strict=True):
        out[i] = q[i] + delta[k]
    for turn in system.layout.turns:
        r, a = delta[turn.v : turn.v + 3], q[turn.q : turn.q + 4]
        half = ca.dot(r, r) / 4
        w, f = _cosine(half), _sine_over(half) / 2
        bw, bv, aw, av = w, f * r, a[0], a[1:4]
        out[turn.q] = aw * bw - ca.dot(av, bv)
        out[turn.q + 1 : turn.q + 4] = aw * bv + bw * av + ca.cross(av, bv)
    return out


def _turning(system: System, delta: Any) -> Any:
    """J⁻¹(δ): how δ changes when its end turns in body axes, I + [δ]/2 + c [δ]²; identity for numbers."""
    import casadi as ca

    from sarrus.symbolic.algebra import SX

    out = SX.eye(system.layout.nv)
    for turn in system.layout.turns:
        part = slice(turn.v, turn.v + 3)
        cross = ca.skew(delta[part])
        out[part, part] = SX.eye(3) + cross / 2 + _cotangent(ca.dot(delta[part], delta[part])) * (cross @ cross)
    return ca.sparsify(out)


# Functions of a square, by their series where it is small: the closed forms are 0/0 at a step that turns nothing.
# The large-argument branch sees at least LOW, so that neither branch, nor its derivative, is ever undefined.
LOW = 0.04


def _either(square: Any, series: Any, closed: Any) -> Any:
    import casadi as ca

    return ca.if_else(square < LOW, series(ca.fmin(square, LOW)), closed(ca.sqrt(ca.fmax(square, LOW))))


def _cosine(square: Any) -> Any:
    """Cosine of x by x²."""
    import casadi as ca

    return _either(square, lambda z: 1 - z / 2 + z**2 / 24 - z**3 / 720 + z**4 / 40320 - z**5 / 3628800, ca.cos)


def _sine_over(square: Any) -> Any:
    """The quotient sin x / x by x²."""
    import casadi as ca

    return _either(
        square, lambda z: 1 - z / 6 + z**2 / 120 - z**3 / 5040 + z**4 / 362880 - z**5 / 39916800,
        lambda x: ca.sin(x) / x,
    )  # fmt: skip


def _cotangent(square: Any) -> Any:
    """1/x² - cot(x/2)/(2x) by x²."""
    import casadi as ca

    return _either(
        square,
        lambda z: 1 / 12 + z / 720 + z**2 / 30240 + z**3 / 1209600 + z**4 / 47900160 + z**5 * 691 / 1307674368000,
        lambda x: 1 / x**2 - 1 / (2 * x * ca.tan(x / 2)),
    )
