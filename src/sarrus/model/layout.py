"""Names, sizes and slices of a compiled machine: plain data that can be written to a file and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sarrus.errors import UnknownNameError


@dataclass(frozen=True)
class Row:
    """One constraint row: its group, its label within the group, and what its residual measures."""

    group: str
    label: str
    unit: str  # "m", "rad" or "" (unknown)
    holonomic: bool

    @property
    def name(self) -> str:
        """Group and label."""
        return f"{self.group}.{self.label}" if self.label else self.group


@dataclass(frozen=True)
class Turn:
    """A quaternion (w, x, y, z) at `q` whose rate belongs to three body-axes velocities at `v`."""

    q: int
    v: int


@dataclass(frozen=True)
class Layout:
    """Where everything sits in q, v, u, λ and the parameters.

    Attributes:
        q_names: one name for each position coordinate.
        v_names: one name for each velocity coordinate.
        u_names: one name for each input.
        rows: the constraint rows.
        groups: names of the constraint groups, each a contiguous block of rows.
        turns: the quaternions; all other positions are numbers whose rate is the velocity `q_to_v` names.
        parameters: parameter names and default values.
        bodies: body names.
        frames: names of all frames whose pose can be asked for (bodies first).
        limits: (low, high) of position coordinates that have them, as data.
        u_limits: (low, high) of inputs that have them.
        initial: where assembly starts looking.
        scales: typical size of each velocity coordinate's motion: 1 rad, or a length.
        angles: whether each velocity coordinate turns.
        length: a typical length of the machine [m].
        one_sided: constraints that only push: name -> (sign, restitution, law); see `parts.OneSided`.
        rubbing: those of them with friction that depends on their force, in the order of `Terms.drag`.
    """

    name: str
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    u_names: tuple[str, ...]
    rows: tuple[Row, ...]
    groups: tuple[str, ...]
    turns: tuple[Turn, ...]
    parameters: Mapping[str, float]
    bodies: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    u_limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    initial: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    angles: tuple[bool, ...] = ()
    length: float = 1.0
    one_sided: Mapping[str, tuple[float, float, str]] = field(default_factory=dict)
    rubbing: tuple[str, ...] = ()

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return len(self.q_names)

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return len(self.v_names)

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.u_names)

    @property
    def m(self) -> int:
        """Number of constraint rows."""
        return len(self.rows)

    @property
    def rubbing_rows(self) -> list[int]:
        """The rows whose multipliers are the normal forces of the contacts with friction."""
        return [self.group_rows(name).start for name in self.rubbing]

    def group_rows(self, group: str) -> slice:
        """The rows of one group."""
        index = [k for k, row in enumerate(self.rows) if row.group == group]
        if group not in self.groups:
            raise UnknownNameError("constraint", group, self.groups)
        return slice(index[0], index[-1] + 1) if index else slice(0, 0)

    def find(self, name: str, kind: str = "q") -> slice:
        """The slice of positions ("q"), velocities ("v") or inputs ("u") that a name means.

        A joint's name means all its coordinates; a part such as `S.quat_wxyz` or `S.quat_wxyz.w` means just that.
        """
        names: Sequence[str] = {"q": self.q_names, "v": self.v_names, "u": self.u_names}[kind]
        index = [k for k, n in enumerate(names) if n == name or n.startswith(name + ".")]
        if not index:
            what = {"q": "coordinate", "v": "velocity", "u": "input"}[kind]
            stems = dict.fromkeys(part for n in names for part in _stems(n))
            raise UnknownNameError(what, name, list(stems))
        return slice(index[0], index[-1] + 1)

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file."""
        data = dict(vars(self))
        data["rows"] = [vars(row) for row in self.rows]
        data["turns"] = [vars(turn) for turn in self.turns]
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Layout:
        """Read back what `to_json` wrote."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        fields["rows"] = tuple(Row(**row) for row in data["rows"])
        fields["turns"] = tuple(Turn(**turn) for turn in data["turns"])
        for key in ("limits", "u_limits", "one_sided"):
            fields[key] = {k: tuple(v) for k, v in data[key].items()}
        return Layout(**fields)


def _stems(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts) + 1)]
