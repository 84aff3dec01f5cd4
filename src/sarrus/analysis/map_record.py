"""What a singularity map holds: branches, singular points and curves; it prints itself and draws itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarrus.analysis.singularities import Singularity
from sarrus.dynamics.state import State

EDGE = "edge"


@dataclass(frozen=True, eq=False)
class SingularPoint:
    """A singular position that stands alone.

    Attributes:
        values: of the map's coordinates.
        state: the position.
        singularity: what is special about it.
        edge: whether the map's coordinates turn back there.
        branches: numbers of the branches it lies on.
    """

    values: tuple[float, ...]
    state: State
    singularity: Singularity
    edge: bool
    branches: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of singularity; ("edge",) if the coordinates turn back and nothing else happens."""
        return self.singularity.kinds or (EDGE,)

    @property
    def measure(self) -> float:
        """The largest value of what vanishes there: how exact it is."""
        return max([self.singularity.measures.get(kind, 0.0) for kind in self.singularity.kinds], default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "values": list(self.values), "measure": self.measure,
            "kinds": list(self.kinds), "edge": self.edge, "branches": list(self.branches),
            "q": self.state.q.tolist(), "words": list(self.singularity.words),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class SingularCurve:
    """A curve of singular positions.

    Attributes:
        kinds: of singularity all along it.
        edge: whether the map's coordinates turn back there.
        values: of the map's coordinates, one row for each point.
        states: the positions, as an array of states.
        closed: whether the last point joins the first (whole turns left out).
        branch: number of the branch it lies on.
        measure: the largest value, along it, of what vanishes there: how exact it is.
    """

    kinds: tuple[str, ...]
    edge: bool
    values: np.ndarray
    states: State
    closed: bool
    branch: int
    measure: float

    @property
    def still(self) -> bool:
        """Whether it is one point of the map: the machine moves while the map's coordinates stand still."""
        return bool(np.max(np.ptp(self.values, axis=0)) < 1e-7)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "kinds": list(self.kinds), "edge": self.edge, "closed": self.closed, "branch": self.branch,
            "measure": self.measure, "values": self.values.tolist(), "q": self.states.q.tolist(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Branch:
    """Configurations that go over into one another within the ranges.

    Attributes:
        values: of the map's coordinate along the branch, for a map over one coordinate; else of the cells it covers.
        states: the positions, as an array of states: along the branch; else one for each assembly and cell.
        closed: whether it comes back to where it began (one coordinate).
        always: kinds of singularity at every point of it.
        measures: along the branch, what vanishes at singular positions, by kind (one coordinate).
        round: whether the coordinate makes full turns on it (one coordinate).
    """

    values: np.ndarray
    states: State
    closed: bool
    always: tuple[str, ...]
    measures: Mapping[str, np.ndarray]
    round: bool = False

    @property
    def reach(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each coordinate."""
        low, high = self.values.min(axis=0), self.values.max(axis=0)
        return tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))


@dataclass(frozen=True, eq=False)
class SingularityMap:
    """The outcome of `singularity_map`; prints itself.

    Attributes:
        name: of the machine.
        coordinates: names of the map's one or two coordinates.
        ranges: of these.
        units: of these: "rad" or "m", or empty if unknown.
        inputs: what drives it.
        outputs: what it is for.
        hold: values of the coordinates that were held.
        judged: kinds of singularity that were looked for.
        branches: all branches found.
        points: singular positions that stand alone.
        curves: curves of them (two coordinates).
        centres: of the cells in which assemblies were counted, for each coordinate.
        modes: how many assemblies there are at each centre.
        untraced: kinds of which only single points could be found, since the matrix that decides is not square.
        tolerance: what was asked for; points less exact than that say so.
        error: largest measure at any point said to be singular.
    """

    name: str
    coordinates: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    hold: Mapping[str, float]
    judged: tuple[str, ...]
    branches: tuple[Branch, ...]
    points: tuple[SingularPoint, ...]
    curves: tuple[SingularCurve, ...]
    centres: tuple[np.ndarray, ...]
    modes: np.ndarray
    untraced: tuple[str, ...]
    tolerance: float
    error: float

    @property
    def reachable(self) -> float:
        """Part of the cells in which it can be put together at all."""
        return float(np.mean(self.modes > 0))

    def of_kind(self, kind: str) -> tuple[SingularPoint | SingularCurve, ...]:
        """Points and curves of one kind: "constraint", "output", "input", "toggle" or "edge"."""
        found: list[SingularPoint | SingularCurve] = [*self.points, *self.curves]
        return tuple(x for x in found if kind in x.kinds or (kind == EDGE and x.edge))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plain = ("name", "coordinates", "ranges", "units", "inputs", "outputs", "judged", "untraced")
        return {
            **{key: _plain(getattr(self, key)) for key in plain},
            "hold": dict(self.hold), "tolerance": self.tolerance, "error": self.error, "reachable": self.reachable,
            "points": [point.to_dict() for point in self.points],
            "curves": [curve.to_dict() for curve in self.curves],
            "branches": [{"reach": _plain(b.reach), "closed": b.closed, "always": list(b.always)} for b in
                         self.branches],
            "centres": [centre.tolist() for centre in self.centres], "modes": self.modes.tolist(),
        }  # fmt: skip

    def plot(self, path: Any = None) -> Any:
        """Draw it.

        Args:
            path: where to write the picture, as .png, .svg or .pdf; not written if None.

        Returns:
            The `matplotlib.figure.Figure`.
        """
        from sarrus.view.map_picture import plot_map

        return plot_map(self, path)

    def __str__(self) -> str:
        """Counts, then each point and curve in one line."""
        over = " and ".join(
            f"{name} from {low:.6g} to {high:.6g}{' ' + unit if unit else ''}"
            for name, (low, high), unit in zip(self.coordinates, self.ranges, self.units, strict=True)
        )
        lines = [f"{self.name}: singularities over {over}"]
        if self.hold:
            lines.append("  held: " + ", ".join(f"{name} = {x:.6g}" for name, x in self.hold.items()))
        lines.append(f"  inputs: {', '.join(self.inputs) or 'none'}; outputs: {', '.join(self.outputs) or 'none'}")
        some = self.modes[self.modes > 0]
        low, high = (int(some.min()), int(some.max())) if some.size else (0, 0)
        number = f"{high}" if low == high else f"{low} to {high}"
        lines.append(
            f"  branches: {len(self.branches)}; reachable: {100 * self.reachable:.3g} % of the range"
            f"{'s' if len(self.ranges) > 1 else ''}, with {number} assembl{'y' if high == 1 else 'ies'}"
        )
        lines += [f"  branch {k}: {_branch(b, self.coordinates)}" for k, b in enumerate(self.branches)]
        lines += [f"  {_point(point, self.coordinates, self.tolerance)}" for point in self.points]
        lines += [f"  {_curve(curve, self.coordinates)}" for curve in self.curves]
        if not self.points and not self.curves:
            lines.append("  no singular positions")
        lines.append(f"  largest measure at a singular position: {self.error:.1e}")
        if "input" not in self.judged:
            lines.append("  input singularities were not looked for: name the outputs")
        if self.untraced:
            lines.append(f"  single points only, curves were not followed: {', '.join(self.untraced)}")
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    return [_plain(x) for x in value] if isinstance(value, tuple) else value


def _branch(branch: Branch, names: tuple[str, ...]) -> str:
    if len(names) == 2:
        return f"{len(branch.values)} assemblies at the centres of cells"
    reach = ", ".join(f"{n} {low:.6g} to {high:.6g}" for n, (low, high) in zip(names, branch.reach, strict=True))
    reach = f"{names[0]} all the way round" if branch.round else reach
    always = f", {' and '.join(branch.always)} singular everywhere" if branch.always else ""
    return reach + (", closed" if branch.closed else "") + always


def _point(point: SingularPoint, names: tuple[str, ...], tolerance: float) -> str:
    place = ", ".join(f"{n} = {x:.10g}" for n, x in zip(names, point.values, strict=True))
    more = " (the coordinate turns back)" if point.edge and point.kinds != (EDGE,) else ""
    owners = ", ".join(map(str, point.branches))
    more += f" (to {point.measure:.1e} only)" if point.measure > tolerance else ""
    return f"{' and '.join(point.kinds)} at {place}{more}, branch {owners}"


def _curve(curve: SingularCurve, names: tuple[str, ...]) -> str:
    kinds = " and ".join(curve.kinds or (EDGE,))
    if curve.still:
        place = ", ".join(f"{n} = {x:.10g}" for n, x in zip(names, curve.values[0], strict=True))
        return f"{kinds}: moves on while {place} stand still, branch {curve.branch}"
    low, high = curve.values.min(axis=0), curve.values.max(axis=0)
    span = ", ".join(f"{n} {a:.6g} to {b:.6g}" for n, a, b in zip(names, low, high, strict=True))
    more = " (edge)" if curve.edge and curve.kinds else ""
    return f"{kinds} curve{more}: {len(curve.values)} points, {span}{', closed' if curve.closed else ''}, " + (
        f"branch {curve.branch}"
    )
