"""Pictures of singularity maps: curves in the plane of two coordinates, or branches over one."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.view.plot import COLOURS, STYLES, figure_class

if TYPE_CHECKING:
    from sarrus.analysis.map_record import Branch, SingularityMap

# kind -> colour, marker; the weightiest kind of a place decides
LOOKS = {
    "constraint": ("#000000", "X"),
    "output": (COLOURS[1], "o"),
    "input": (COLOURS[0], "s"),
    "toggle": (COLOURS[0], "s"),
    "edge": (COLOURS[7], "D"),
}
WORDS = {
    "constraint": "constraint singularity",
    "output": "output singularity",
    "input": "input singularity",
    "edge": "edge: assemblies meet",
}
TINTS = ("#F2F2F2", "#E3EEF6", "#C9DEEC", "#AFCDE2", "#95BCD8", "#7CABCE")  # more assemblies, more colour


def plot_map(found: SingularityMap, path: Any = None) -> Any:
    """Draw a map.

    Args:
        found: what `singularity_map` returned.
        path: where to write it, as .png, .svg or .pdf; not written if None.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        SarrusError: matplotlib is not installed, or the file's ending is unknown.
    """
    Figure = figure_class(path)
    if len(found.coordinates) == 2:
        figure = Figure(figsize=(10.5, 7.2), layout="constrained")
        _plane(figure, found)
    else:
        figure = Figure(figsize=(10.5, 8.0), layout="constrained")
        _line(figure, found)
    figure.suptitle(f"{found.name}: singular positions", fontsize=13, fontweight="bold", parse_math=False)
    figure.supxlabel(_caption(found), fontsize=8, color="#444444", parse_math=False)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _caption(found: SingularityMap) -> str:
    parts = [f"inputs: {', '.join(found.inputs) or 'none'}", f"outputs: {', '.join(found.outputs) or 'none'}"]
    if found.hold:
        parts.append("held: " + ", ".join(f"{name} = {x:.6g}" for name, x in found.hold.items()))
    if "input" not in found.judged:
        parts.append("input singularities were not looked for")
    if found.untraced:
        parts.append(f"curves not followed: {', '.join(found.untraced)}")
    return "\n".join(textwrap.wrap("; ".join(parts), 130))


def _label(found: SingularityMap, k: int) -> str:
    return found.coordinates[k] + (f" [{found.units[k]}]" if found.units[k] else "")


def _axis(axis: Any, found: SingularityMap, k: int) -> None:
    """Whole multiples of π/2 as ticks for an angle over a full turn."""
    low, high = found.ranges[k]
    if found.units[k] == "rad" and high - low > 3.0:
        from matplotlib.ticker import FixedLocator, FuncFormatter

        first, last = int(np.ceil(low / (np.pi / 2) - 1e-9)), int(np.floor(high / (np.pi / 2) + 1e-9))
        axis.set_major_locator(FixedLocator([j * np.pi / 2 for j in range(first, last + 1)]))
        axis.set_major_formatter(FuncFormatter(lambda x, _: _turns(round(x / (np.pi / 2)))))


def _turns(halves: int) -> str:
    sign, n = "−" if halves < 0 else "", abs(halves)
    if n == 0:
        return "0"
    number = "" if n in (1, 2) else str(n if n % 2 else n // 2)
    return f"{sign}{number}π" + ("/2" if n % 2 else "")


# --- two coordinates -------------------------------------------------------------------------------------------------


def _plane(figure: Any, found: SingularityMap) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ax = figure.subplots()
    handles: dict[str, Any] = {}
    _background(ax, found)
    for curve in found.curves:
        kind = curve.kinds[0] if curve.kinds else "edge"
        colour, _ = LOOKS[kind]
        if curve.still:
            ax.plot(*curve.values[0], "*", color=colour, markersize=13, markeredgecolor="white", zorder=5)
            star = Line2D([], [], marker="*", color=colour, linestyle="none", markersize=11)
            handles[f"{WORDS[kind]}: moves on\nwhile both coordinates stand still"] = star
            continue
        rows = np.vstack([curve.values, curve.values[:1]]) if curve.closed else curve.values
        values = _unbroken(rows, _spans(found))
        ax.plot(values[:, 0], values[:, 1], color=colour, linewidth=1.8, zorder=4)
        handles[WORDS[kind]] = Line2D([], [], color=colour, linewidth=1.8)
        if curve.edge and curve.kinds:
            ax.plot(values[:, 0], values[:, 1], color="white", linewidth=0.7, linestyle=(0, (4, 4)), zorder=4)
            handles["dashed: edge, where\nassemblies meet"] = Line2D([], [], color="#444444", linestyle=(0, (4, 4)))
    for point in found.points:
        colour, marker = LOOKS[point.kinds[0]]
        for x, y in _copies(point.values, found):
            ax.plot(x, y, marker, color=colour, markersize=9, markeredgecolor="white", zorder=6, clip_on=False)
        handles[WORDS[point.kinds[0]] + "\n(single point)"] = Line2D(
            [], [], marker=marker, color=colour, linestyle="none", markersize=8
        )
    for number in sorted({int(n) for n in np.unique(found.modes)}):
        name = "cannot be reached" if number == 0 else f"{number} assembl{'y' if number == 1 else 'ies'}"
        handles[name] = Patch(facecolor=_tint(number, found), edgecolor="#999999")
    for k, axis in enumerate((ax.xaxis, ax.yaxis)):
        _axis(axis, found, k)
    ax.set(xlim=found.ranges[0], ylim=found.ranges[1])
    if found.units[0] == found.units[1] == "m":
        ax.set_aspect("equal")
    _finish(ax, _label(found, 0), _label(found, 1), handles)


def _tint(number: int, found: SingularityMap) -> str:
    if number == 0:
        return TINTS[0]
    some = sorted({int(n) for n in np.unique(found.modes)} - {0})
    return TINTS[min(1 + some.index(number), len(TINTS) - 1)]


def _background(ax: Any, found: SingularityMap) -> None:
    """Cells coloured by how many assemblies they have."""
    from matplotlib.colors import to_rgb

    colours = np.array([[to_rgb(_tint(int(n), found)) for n in column] for column in found.modes.T])
    extent = (*found.ranges[0], *found.ranges[1])
    ax.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest", zorder=0)


def _copies(values: tuple[float, ...], found: SingularityMap) -> list[tuple[float, ...]]:
    """A place once more at the other end of a full turn, if it is at one end."""
    out: list[tuple[float, ...]] = [()]
    for x, (low, high), unit in zip(values, found.ranges, found.units, strict=True):
        full = unit == "rad" and high - low > 6.28
        both = full and min(abs(x - low), abs(x - high)) < 1e-6
        out = [(*row, y) for row in out for y in ((low, high) if both else (x,))]
    return out


def _unbroken(rows: np.ndarray, spans: tuple[float, ...]) -> np.ndarray:
    """A curve with gaps where it leaves a full turn on one side and returns on the other.

    Args:
        rows: points of the curve.
        spans: of each column; infinite for those that do not come round.
    """
    out = [rows[0]]
    for before, after in itertools.pairwise(rows):
        jump = np.abs(after - before) > np.array(spans) / 2
        if jump.any():  # go on beyond the edge, then start again before the other one
            turn = np.where(jump, -np.sign(after - before) * np.where(jump, spans, 0.0), 0.0)
            out += [after + turn, np.full(rows.shape[1], np.nan), before - turn]
        out.append(after)
    return np.array(out)


def _spans(found: SingularityMap) -> tuple[float, ...]:
    return tuple(
        high - low if unit == "rad" and high - low > 6.28 else np.inf
        for (low, high), unit in zip(found.ranges, found.units, strict=True)
    )


# --- one coordinate --------------------------------------------------------------------------------------------------


def _line(figure: Any, found: SingularityMap) -> None:
    """Above the branches as curves of one more coordinate, below what vanishes at singular positions."""
    from matplotlib.lines import Line2D

    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    index = _partner(found)
    handles: dict[str, Any] = {}
    low, high = found.ranges[0]
    for k, branch in enumerate(found.branches):
        x, y, measures = _drawn(branch, index, found)
        colour, style = "#8A9BA8", STYLES[k % len(STYLES)]
        top.plot(x, y, color=colour, linestyle=style, linewidth=1.6)
        handles[f"branch {k}"] = Line2D([], [], color=colour, linestyle=style, linewidth=1.6)
        for kind, level in measures.items():
            bottom.plot(x, np.maximum(level, 0.0), color=LOOKS[kind][0], linestyle=style, linewidth=1.2)
    layout = found.branches[0].states.layout if found.branches else None
    for point in found.points:
        colour, marker = LOOKS[point.kinds[0]]
        y = _wrapped(point.state.q[index], found)
        for (x,) in _copies(point.values, found):
            top.plot(x, y, marker, color=colour, markersize=8, markeredgecolor="white", zorder=5, clip_on=False)
            bottom.axvline(x, color=colour, linewidth=0.8, linestyle=":")
        more = "\n(toggle)" if "toggle" in point.kinds else "\n(the coordinate turns back)" if point.edge else ""
        handles[WORDS[point.kinds[0]] + more] = Line2D([], [], marker=marker, color=colour, linestyle="none")
    _axis(bottom.xaxis, found, 0)
    if layout is not None and layout.bodies and _is_angle(found, index):
        from matplotlib.ticker import FixedLocator, FuncFormatter

        top.yaxis.set_major_locator(FixedLocator([j * np.pi / 2 for j in range(-2, 3)]))
        top.yaxis.set_major_formatter(FuncFormatter(lambda x, _: _turns(round(x / (np.pi / 2)))))
    name = layout.q_names[index] if layout else ""
    unit = " [rad]" if layout and _is_angle(found, index) else (" [m]" if layout and layout.bodies else "")
    top.set_xlim(low, high)
    _finish(top, "", name + unit, handles)
    judged = {f"{kind}": Line2D([], [], color=LOOKS[kind][0]) for kind in found.judged}
    _finish(bottom, _label(found, 0), "measure (0: singular)", judged)
    bottom.set_ylim(bottom=0.0)


def _is_angle(found: SingularityMap, index: int) -> bool:
    from sarrus.dynamics.manifold import plain_map

    layout = found.branches[0].states.layout
    plain_q, plain_v = plain_map(layout)
    known = len(layout.angles) == layout.nv and bool(layout.bodies)
    return known and index in plain_q and bool(layout.angles[int(plain_v[list(plain_q).index(index)])])


def _partner(found: SingularityMap) -> int:
    """The other coordinate that tells the branches apart best: the one that moves most."""
    if not found.branches:
        return 0
    layout = found.branches[0].states.layout
    own = layout.find(found.coordinates[0]).start
    span = np.ptp(np.vstack([branch.states.q for branch in found.branches]), axis=0)
    span[own] = -1.0
    return int(np.argmax(np.round(span, 9))) if len(span) > 1 else own


def _wrapped(y: Any, found: SingularityMap) -> Any:
    """An angle in (-π, π], and what misses -π by rounding at π."""
    index = _partner(found)
    return np.pi + 1e-9 - (np.pi + 1e-9 - y) % (2 * np.pi) if _is_angle(found, index) else y


def _drawn(branch: Branch, index: int, found: SingularityMap) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The branch with gaps where an angle goes round, closed if it is closed."""
    x, y = branch.values[:, 0], _wrapped(branch.states.q[:, index], found)
    span = _spans(found)[0]
    if np.isfinite(span):
        x = found.ranges[0][1] + 1e-9 - (found.ranges[0][1] + 1e-9 - x) % span
    order = [*range(len(x)), 0] if branch.closed else list(range(len(x)))
    kinds = list(branch.measures)
    columns = np.stack([x, y, *(branch.measures[kind] for kind in kinds)], axis=1)[order]
    across = 2 * np.pi if _is_angle(found, index) else np.inf
    rows = _unbroken(columns, (span, across, *(np.inf for _ in kinds)))
    return rows[:, 0], rows[:, 1], {kind: rows[:, 2 + k] for k, kind in enumerate(kinds)}


def _finish(ax: Any, x: str, y: str, handles: dict[str, Any]) -> None:
    ax.set_xlabel(x, fontsize=10, parse_math=False)
    ax.set_ylabel(y, fontsize=10, parse_math=False)
    if handles:
        ax.legend(
            list(handles.values()), list(handles), loc="upper left", bbox_to_anchor=(1.01, 1.01),
            fontsize=8.5, frameon=False,
        )  # fmt: skip
    ax.tick_params(labelsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
