"""The record that `diagnose` returns, and the findings in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from sarrus.analysis.actuation import Actuation
from sarrus.analysis.dependence import Family
from sarrus.analysis.figures import Figures
from sarrus.analysis.misalignment import Misfit
from sarrus.analysis.mobility import Mobility
from sarrus.analysis.reactions import Reactions

SEVERITIES = ("problem", "warning", "note")
PAGE = "diagnosing.html"


def plural(count: int, word: str) -> str:
    """A count with its noun."""
    many = word.removesuffix("y") + "ies" if word.endswith("ty") else word + "s"
    return f"{count} {word if count == 1 else many}"


@dataclass(frozen=True)
class Finding:
    """One thing that is worth knowing.

    Attributes:
        severity: "problem" (wrong as it stands), "warning" (right, but you should know) or "note".
        topic: which section of the manual explains it.
        text: what was found, in words.
        advice: what to change, or what it means for you.
        names: the constraints, joints, inputs or coordinates that it is about.
    """

    severity: str
    topic: str
    text: str
    advice: str
    names: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """The section of the manual that explains it."""
        return f"{PAGE}#{self.topic}"


@dataclass(frozen=True)
class JointVerdict:
    """Whether a joint's reaction is the same in every solution, by component in world axes.

    Attributes:
        force: for x, y and z.
        moment: for x, y and z, about the joint's place.
    """

    force: tuple[bool, ...]
    moment: tuple[bool, ...]

    @property
    def unique(self) -> bool:
        """Whether all of it is."""
        return all(self.force) and all(self.moment)


@dataclass(frozen=True)
class Diagnosis:
    """What is right and wrong with a machine at a state; prints itself, as text, in colour, as HTML and as JSON.

    Attributes:
        name: of the machine.
        velocities: number of velocity coordinates.
        rows: active constraint rows.
        rank: independent ones.
        mobility: in how many ways it can move at this instant: velocities less rank.
        mobilities: this number, that of real motions, and Grübler's count.
        redundant: rows that take part in a dependence, by name, those always satisfied among them.
        idle: rows that are identically satisfied, by name.
        spare: rows that can all be left out together without changing the motion: one choice, the latest written.
        families: rows that depend on each other, with the smallest dependent sets.
        loops: for each family, the joints and closures that its internal loads go through.
        singular_values: of the scaled rows in the mass metric, largest first.
        tolerance: singular values below it count as zero.
        determinate: by constraint name, whether its multipliers are certain.
        sums: constraints whose forces are certain only as a sum.
        joints: by joint and closure name, whether its reaction is certain.
        actuation: what the inputs can do.
        figures: conditioning, mass matrices, index.
        misfit: rows that are nearly redundant, and why; None if there are none.
        reactions: constraint forces and joint reactions at the state for the inputs given; None if it is not assembled.
        loop_error: largest residual of the state, in the row's own unit.
        assembled: whether the state satisfies all constraints.
        findings: everything worth knowing, the worst first.
    """

    name: str
    velocities: int = 0
    rows: int = 0
    rank: int = 0
    mobility: int = 0
    mobilities: Mobility | None = None
    redundant: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()
    loops: tuple[tuple[str, ...], ...] = ()
    singular_values: tuple[float, ...] = ()
    tolerance: float = 0.0
    determinate: Mapping[str, bool] = field(default_factory=dict)
    sums: tuple[tuple[str, ...], ...] = ()
    joints: Mapping[str, JointVerdict] = field(default_factory=dict)
    actuation: Actuation | None = None
    figures: Figures | None = None
    misfit: Misfit | None = None
    reactions: Reactions | None = None
    loop_error: float = 0.0
    assembled: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong as it stands."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """The texts of the findings that are wrong as they stand."""
        return tuple(f.text for f in self.findings if f.severity == "problem")

    @property
    def topics(self) -> tuple[str, ...]:
        """What the findings are about, each once."""
        return tuple(dict.fromkeys(f.topic for f in self.findings))

    def find(self, topic: str) -> tuple[Finding, ...]:
        """The findings about one topic.

        Args:
            topic: a section of the manual, such as "redundant-constraints".
        """
        return tuple(f for f in self.findings if f.topic == topic)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        data = {f.name: _data(getattr(self, f.name)) for f in fields(self) if f.name != "reactions"}
        data["findings"] = [{**asdict(f), "page": f.page} for f in self.findings]
        data["joints"] = {name: {**asdict(x), "unique": x.unique} for name, x in self.joints.items()}
        data["actuation"] = self.actuation.to_dict() if self.actuation else None
        data["figures"] = self.figures.to_dict() if self.figures else None
        data["reactions"] = _reactions(self.reactions)
        data["ok"], data["problems"] = self.ok, list(self.problems)
        return _plain(data)

    def __str__(self) -> str:
        """The report in plain text."""
        from sarrus.analysis.report import plain

        return plain(self)

    def __rich__(self) -> Any:
        """The report for a rich console."""
        from sarrus.analysis.report import coloured

        return coloured(self)

    def to_html(self) -> str:
        """The report as one HTML page that needs no network."""
        from sarrus.analysis.report import page

        return page(self)

    def _repr_html_(self) -> str:
        from sarrus.analysis.report import body

        return body(self)


def _data(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_data(x) for x in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _reactions(found: Reactions | None) -> dict[str, Any] | None:
    """Forces [N] and moments [N m] by joint, and whether they are certain."""
    if found is None:
        return None
    rows = {
        name: {
            "on": x.child, "force": x.force.tolist(), "moment": x.moment.tolist(),
            "certain_force": x.certain_force.tolist(), "certain_moment": x.certain_moment.tolist(),
        }
        for name, x in found.joints.items()
    }  # fmt: skip
    multipliers = {name: np.asarray(x).tolist() for name, x in found.multipliers.items()}
    return {"metric": found.metric, "joints": rows, "multipliers": multipliers, "units": dict(found.units)}


def _plain(value: Any) -> Any:
    """Tuples as lists and NumPy scalars as Python's, all the way down."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
