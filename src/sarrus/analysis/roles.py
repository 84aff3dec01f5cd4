"""What drives a machine and what it is for: the rows of its inputs and outputs, and the matrices whose rank decides.

With the velocities v, the constraints A v = 0, the input rates K v and the output rates J v:

* "constraint": the rank of A drops;
* "output": the rank of [A; K] drops: with the inputs locked there is more motion than elsewhere;
* "input": the rank of [A; J] drops: with the outputs at rest there is more motion than elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.analysis.surface import Spot, reference_lengths
from sarrus.dynamics.system import System
from sarrus.errors import SarrusError, UnknownNameError
from sarrus.model.features import point_on
from sarrus.model.parts import Model

KINDS = ("constraint", "output", "input")
Rates = Callable[[np.ndarray, float], np.ndarray]  # (q, t) -> rows that multiply v


@dataclass(frozen=True, eq=False)
class Roles:
    """Inputs and outputs of a machine.

    Attributes:
        inputs: names of what drives it.
        outputs: names of what it is for; empty if nobody said and nothing suggests it.
        rates: rows of input rates and of output rates, by kind of singularity, unscaled.
        units: their reference lengths in the mass metric.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rates: dict[str, Rates]
    units: dict[str, np.ndarray]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of singularity that can be judged."""
        return tuple(kind for kind in KINDS if kind == "constraint" or kind in self.rates)

    def rows(self, kind: str, spot: Spot, t: float) -> np.ndarray:
        """The scaled matrix, in the mass metric, whose rank decides about a kind."""
        if kind == "constraint":
            return spot.A
        extra = self.rates[kind](spot.q, t) @ spot.back
        return np.concatenate([spot.A, extra / self.units[kind][:, None]])


def find_roles(system: System, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> Roles:
    """The roles for names, or those that suggest themselves.

    Args:
        system: the machine.
        inputs: names of motors or coordinates; all motors if None.
        outputs: names of coordinates, bodies (their motion as a whole) or frames (their place). If None, the named
            frames; if there are none, the coordinates of a body on a free or planar joint without motors.
    """
    given = _names("inputs", system.inputs if inputs is None else inputs)
    wanted = _names("outputs", _suggested(system) if outputs is None else outputs)
    rates: dict[str, Rates] = {}
    if given:
        rates["output"] = _stack([_input(system, name) for name in given])
    if wanted:
        rates["input"] = _stack([_output(system, name) for name in wanted])
    units = {kind: reference_lengths(system, lambda q, f=f: f(q, 0.0)) for kind, f in rates.items()}
    return Roles(given, wanted, rates, units)


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise SarrusError(f"{what}: expected a list of names, got {names!r}; write [{names!r}]")
    return tuple(names)


def _stack(parts: list[Rates | np.ndarray]) -> Rates:
    fixed = [part for part in parts if isinstance(part, np.ndarray)]
    if len(fixed) == len(parts):
        rows = np.concatenate(fixed)
        return lambda q, t: rows
    return lambda q, t: np.concatenate([p if isinstance(p, np.ndarray) else p(q, t) for p in parts])


def _coordinate(system: System, name: str) -> np.ndarray | None:
    try:
        where = system.layout.find(name.removesuffix(".q"), "v")
    except UnknownNameError:
        return None
    return np.eye(system.layout.nv)[where]


def _input(system: System, name: str) -> np.ndarray | Rates:
    """The rate that goes with an input: Bᵀv, so that force times rate is the power put in."""
    layout = system.layout
    if name not in layout.u_names:
        rows = _coordinate(system, name)
        if rows is None:
            raise UnknownNameError("input or coordinate", name, [*layout.u_names, *layout.v_names])
        return rows
    index, zeros = layout.u_names.index(name), np.zeros(layout.nv)

    def row(q: np.ndarray, t: float) -> np.ndarray:
        return system.functions("terms", t, q, zeros, system.p)[6][:, [index]].T

    model = system.description
    kinds = {a.name: a.kind for a in model.actuators} if isinstance(model, Model) else {}
    return row(np.array(layout.initial), 0.0) if kinds.get(name) == "joint" else row


def _output(system: System, name: str) -> np.ndarray | Rates:
    rows = _coordinate(system, name)
    if rows is not None:
        return rows
    model, layout = system.description, system.layout
    if not isinstance(model, Model) or name not in layout.frames:
        raise UnknownNameError("coordinate, body or frame", name, [*layout.v_names, *layout.frames])
    import casadi as ca

    body = name in layout.bodies
    place = point_on(name, (0, 0, 0)) if body else model.frames[name]
    tasks = [system.task("point", place)] + ([system.task("orientation", name)] if body else [])

    t, q, p = (ca.SX.sym(n, size) for n, size in (("t", 1), ("q", layout.nq), ("p", len(system.p))))
    rows = [task.function.call([t, q, ca.SX.zeros(layout.nv), p])[1] for task in tasks]
    function = ca.Function("rates", [t, q, p], [ca.densify(ca.vertcat(*rows))])
    return lambda q, t: np.array(function.call([t, q, system.p])[0].full())


def _suggested(system: System) -> tuple[str, ...]:
    model, layout = system.description, system.layout
    if not isinstance(model, Model):
        return ()
    frames = tuple(name for name in layout.frames if name not in layout.bodies)
    if frames:
        return frames
    driven = {key for a in model.actuators for key in a.coefficients}
    return tuple(
        joint.name
        for joint in model.joints
        if joint.kind in ("free", "planar")
        and not any(d == joint.name or d.startswith(joint.name + ".") for d in driven)
    )


def evidence(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values padded with zeros to the number of columns, with all left and right singular vectors."""
    width = rows.shape[1]
    if not rows.size:
        return np.zeros(width), np.eye(len(rows)), np.eye(width)
    U, sigma, Vt = np.linalg.svd(rows)
    return np.concatenate([sigma, np.zeros(max(0, width - len(sigma)))]), U, Vt


def signed(rows: np.ndarray, frame: np.ndarray) -> float:
    """The smallest singular value of frameᵀ rows, with the sign of the determinant: it passes zero smoothly.

    Args:
        rows: a matrix of as many independent rows as it has columns.
        frame: one column for each independent combination of rows: leading left singular vectors near by.
    """
    square: Any = frame.T @ rows
    return float(np.linalg.slogdet(square)[0] * np.linalg.svd(square, compute_uv=False)[-1])
