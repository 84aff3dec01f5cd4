"""Print a CasADi SX function as plain C that is also valid CUDA device code.

CasADi's own generator addresses arguments through tables of pointers with a null test for each read; here every input
and output is a `restrict` pointer and every intermediate a constant, which the compiler schedules freely.
"""

from __future__ import annotations

import casadi as ca

_INFIX = {
    ca.OP_ADD: "+",
    ca.OP_SUB: "-",
    ca.OP_MUL: "*",
    ca.OP_DIV: "/",
    ca.OP_LT: "<",
    ca.OP_LE: "<=",
    ca.OP_EQ: "==",
    ca.OP_NE: "!=",
    ca.OP_AND: "&&",
    ca.OP_OR: "||",
}
_CALLS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_ATAN2: "atan2",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_LOG1P: "log1p",
    ca.OP_EXPM1: "expm1",
    ca.OP_POW: "pow",
    ca.OP_CONSTPOW: "pow",
    ca.OP_FABS: "fabs",
    ca.OP_FMIN: "fmin",
    ca.OP_FMAX: "fmax",
    ca.OP_FMOD: "fmod",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
    ca.OP_ASINH: "asinh",
    ca.OP_ACOSH: "acosh",
    ca.OP_ATANH: "atanh",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_HYPOT: "hypot",
    ca.OP_COPYSIGN: "copysign",
    ca.OP_ERF: "erf",
}
_ANGLES = {ca.OP_SIN: "s", ca.OP_COS: "c"}  # found together, by sarrus_trig.h
_FORMS = {
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0} * {0}",
    ca.OP_TWICE: "{0} + {0}",
    ca.OP_INV: "(real)1 / {0}",
    ca.OP_ASSIGN: "{0}",
    ca.OP_NOT: "!{0}",
    ca.OP_SIGN: "(real)(({0} > 0) - ({0} < 0))",
    ca.OP_IF_ELSE_ZERO: "{0} != 0 ? {1} : (real)0",
}


def c_function(function: ca.Function, inputs: list[str], outputs: list[str]) -> str:
    """C text of `static void name(const real *restrict in..., real *restrict out...)`, arrays of nonzeros."""
    arguments = [f"const real *SR_RESTRICT {name}" for name in inputs]
    arguments += [f"real *SR_RESTRICT {name}" for name in outputs]
    lines = [f"SR_FN void {function.name()}({', '.join(arguments)}) {{"]
    lines += [f"  (void){name};" for name in (*inputs, *outputs)]
    slots: dict[int, str] = {}
    angles: dict[str, int] = {}  # of which sine and cosine are there already
    for k in range(function.n_instructions()):
        op, source = function.instruction_id(k), function.instruction_input(k)
        if op == ca.OP_OUTPUT:
            where = function.instruction_output(k)
            lines.append(f"  {outputs[where[0]]}[{where[1]}] = {slots[source[0]]};")
            continue
        target = function.instruction_output(k)[0]
        if op == ca.OP_INPUT:
            slots[target] = f"{inputs[source[0]]}[{source[1]}]"
        elif op == ca.OP_CONST:
            slots[target] = _literal(function.instruction_constant(k))
        elif op in _ANGLES:
            angle = slots[source[0]]
            if angle not in angles:
                angles[angle] = k
                lines.append(f"  real s{k}, c{k}; sr_sincos({angle}, &s{k}, &c{k});")
            slots[target] = f"{_ANGLES[op]}{angles[angle]}"
        else:
            lines.append(f"  const real w{k} = {_expression(op, [slots[i] for i in source])};")
            slots[target] = f"w{k}"
    return "\n".join([*lines, "}"]) + "\n"


def _expression(op: int, a: list[str]) -> str:
    if op in _INFIX:
        return f"{a[0]} {_INFIX[op]} {a[1]}"
    if op in _CALLS:
        return f"SR_MATH({_CALLS[op]})({', '.join(a)})"
    if op in _FORMS:
        return _FORMS[op].format(*a)
    raise ValueError(f"the expression uses an operation (CasADi code {op}) that has no C form here")


def _literal(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("the expression contains a constant that is not a finite number")
    text = repr(float(value))
    return f"(real){text}" if value >= 0 and not text.startswith("-") else f"((real){text})"
