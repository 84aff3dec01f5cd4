"""What a user's function of the motion is given: one moment, with everything in it by name.

The values are numbers, or symbols while a function is being turned into compiled code; both kinds are asked for the
same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sarrus.errors import UnknownNameError
from sarrus.model.layout import Layout


class Moment:
    """Time, positions, velocities, inputs and constraint forces at one moment of a motion.

    `x["A"]` is a coordinate, `x["A.v"]` its velocity, `x["motor.u"]` an input, `x["D.force"]` the multipliers of a
    constraint, `x["D.residual"]` the residuals of its rows, `x["crank.position"]` and `x["crank.rotation"]` the pose of
    a body or frame, `x["L1"]` a parameter.

    Attributes:
        layout: the names.
        t: time [s].
        q: positions.
        v: velocities.
        u: inputs; None where they are what is being asked for.
        p: parameter values by name.
    """

    def __init__(
        self,
        layout: Layout,
        t: Any,
        q: Any,
        v: Any,
        u: Any = None,
        p: Any = (),
        lam: Callable[[], Any] | None = None,
        frames: Callable[[], Mapping[str, tuple[Any, Any]]] | None = None,
        residuals: Callable[[], Any] | None = None,
    ):
        """Hold the values; `lam`, `frames` and `residuals` are called when they are first needed."""
        self.layout, self.t, self.q, self.v, self.u = layout, t, q, v, u
        self.p = {name: p[k] for k, name in enumerate(layout.parameters)}
        self._lam, self._frames, self._residuals = lam, frames, residuals
        self._poses: Mapping[str, tuple[Any, Any]] | None = None

    def __getitem__(self, name: str) -> Any:
        """The value that a name means."""
        stem, _, part = name.rpartition(".")
        if part in ("position", "rotation") and stem in self.layout.frames:
            return self._pose(stem)[part == "rotation"]
        if part == "force" and stem in self.layout.groups:
            return _part(self.lam, self.layout.group_rows(stem))
        if part == "residual" and stem in self.layout.groups and self._residuals is not None:
            return _part(self._residuals(), self.layout.group_rows(stem))
        if name in self.p:
            return self.p[name]
        values = {"q": self.q, "v": self.v, "u": self.u}
        meanings = [(kind, name) for kind in values]  # the name as it is, after what its ending says
        for kind, asked in [(part, stem), *meanings] if part in values else meanings:
            try:
                where = self.layout.find(asked, kind)
            except UnknownNameError:
                continue
            if values[kind] is None:
                raise UnknownNameError("value (inputs are what this function is asked for)", name, self.names())
            return _part(values[kind], where)
        raise UnknownNameError("value", name, self.names())

    def names(self) -> list[str]:
        """What can be asked for."""
        x = self.layout
        out = [*x.q_names, *(f"{name}.v" for name in x.v_names)]
        out += [f"{name}.u" for name in x.u_names] if self.u is not None else []
        out += [f"{name}.force" for name in x.groups] if self._lam else []
        out += [f"{name}.residual" for name in x.groups] if self._residuals else []
        out += [f"{name}.{part}" for name in x.frames for part in ("position", "rotation")] if self._frames else []
        return [*out, *self.p]

    @property
    def lam(self) -> Any:
        """Multipliers of all constraint rows."""
        if self._lam is None:
            raise UnknownNameError("value (constraint forces depend on the inputs)", "lam", self.names())
        return self._lam()

    def _pose(self, name: str) -> tuple[Any, Any]:
        if self._poses is None:
            if self._frames is None:
                raise UnknownNameError("frame", name, ())
            self._poses = self._frames()
        return self._poses[name]


def _part(values: Any, where: slice) -> Any:
    return values[where.start] if where.stop - where.start == 1 else values[where]
