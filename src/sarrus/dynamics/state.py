"""A state of a machine, or an array of states: time, positions and velocities with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.errors import StateError, UnknownNameError
from sarrus.model.layout import Layout


@dataclass(frozen=True, eq=False)
class State:
    """Positions q, velocities v and time t; arrays of states have one row for each.

    Attributes:
        layout: the names.
        q: positions, shape (nq,) or (count, nq).
        v: velocities, shape (nv,) or (count, nv).
        t: time [s], a number or shape (count,).
    """

    layout: Layout
    q: np.ndarray
    v: Any = None  # zero if not given
    t: Any = 0.0

    def __post_init__(self) -> None:
        """Check shapes, finiteness and quaternion lengths, and freeze copies of the arrays."""
        x = self.layout
        q = checked_array("positions q", self.q, x.nq, x.q_names).copy()
        v = np.zeros((*q.shape[:-1], x.nv)) if self.v is None else self.v
        v = checked_array("velocities v", v, x.nv, x.v_names).copy()
        if q.ndim != v.ndim or q.shape[:-1] != v.shape[:-1]:
            text = f"positions have shape {q.shape}, velocities {v.shape}; give as many of one as of the other"
            raise StateError(text)
        t = np.array(self.t, dtype=float)
        if not np.isfinite(t).all() or (t.ndim and t.shape != q.shape[:-1]):
            raise StateError(f"time: expected a finite number or one for each state, got {t}")
        for turn in x.turns:
            size = np.linalg.norm(q[..., turn.q : turn.q + 4], axis=-1)
            if np.any(np.abs(size - 1.0) > 1e-8):
                name = x.q_names[turn.q].rsplit(".", 1)[0]
                worst = float(np.ravel(size)[np.argmax(np.abs(size - 1.0))])
                raise StateError(f"{name}: a quaternion must have length 1, got {worst:.9g}; divide it by that")
        for array in (q, v, t):
            array.setflags(write=False)
        for key, value in (("q", q), ("v", v), ("t", float(t) if t.ndim == 0 else t)):
            object.__setattr__(self, key, value)

    @property
    def count(self) -> int | None:
        """Number of states, or None for a single one."""
        return None if self.q.ndim == 1 else self.q.shape[0]

    def __getitem__(self, name: str) -> Any:
        """Value by name: `state["A"]` or `state["A.q"]` is a position, `state["A.v"]` its velocity."""
        if not isinstance(name, str):
            raise UnknownNameError("coordinate", name, self.layout.q_names)
        for suffix, kind, values in ((".q", "q", self.q), (".v", "v", self.v)):
            if name.endswith(suffix):
                return _value(values[..., self.layout.find(name[: -len(suffix)], kind)])
        try:
            return _value(self.q[..., self.layout.find(name)])
        except UnknownNameError:
            velocities = [n for n in self.layout.v_names if n == name or n.startswith(name + ".")]
            if not velocities:
                raise
            return _value(self.v[..., self.layout.find(name, "v")])

    def row(self, index: int) -> State:
        """One state of an array of states."""
        t = self.t if np.ndim(self.t) == 0 else float(np.asarray(self.t)[index])
        return State(self.layout, self.q[index], self.v[index], t)

    def __repr__(self) -> str:
        """Names with values."""
        if self.count is not None:
            return f"<{self.count} states of {self.layout.name}>"
        q = ", ".join(f"{n}={x:.6g}" for n, x in zip(self.layout.q_names, self.q, strict=True))
        v = ", ".join(f"{n}={x:.6g}" for n, x in zip(self.layout.v_names, self.v, strict=True))
        return f"<state of {self.layout.name} at t={float(self.t):.6g}: q({q}) v({v})>"


def _value(part: np.ndarray) -> Any:
    if part.shape[-1] == 1:
        return float(part[0]) if part.ndim == 1 else part[..., 0].copy()
    return part.copy()


def checked_array(what: str, values: Any, width: int, names: tuple[str, ...]) -> np.ndarray:
    """A contiguous float array whose last axis has `width` finite entries."""
    try:
        array = np.ascontiguousarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise StateError(f"{what}: expected numbers, got {values!r}") from error
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        listing = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
        raise StateError(f"{what}: expected {width} values ({listing or 'none'}), got shape {np.shape(values)}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        raise StateError(
            f"{what}: the value of {names[where[-1]]!r} is {array[tuple(where)]}; expected a finite number"
        )
    return array
