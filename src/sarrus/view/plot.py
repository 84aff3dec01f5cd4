"""Curves of a trajectory, and the one-page figure that shows them all.

`curves` computes what there is to see as plain arrays; the figure here and the animation's page draw the same ones.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.manifold import plain_map
from sarrus.dynamics.rank import scaled_rows
from sarrus.dynamics.state import State
from sarrus.errors import SarrusError
from sarrus.simulation import access
from sarrus.simulation.evaluate import energies, generalised_force, terms_in_chunks

if TYPE_CHECKING:
    from sarrus.dynamics.system import System
    from sarrus.simulation.trajectory import Trajectory

ROWS = 1500  # a curve needs no more points than a page has dots
FILL = 400  # and no fewer than this, or it has corners
FLOOR = 1e-17  # what logarithmic axes show for zero
NEAR_SINGULAR = 1e-3  # below this singular value, shares of the constraint forces are left out
ENDINGS = (".png", ".svg", ".pdf")
# told apart by people with any kind of colour vision (after Okabe and Ito)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5D4A9C", "#7F7F7F")
CROSSED, HAPPENED = "×", "•"  # crossings are ×1, ×2, …, events •1, •2, …
STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves that share one pair of axes.

    Attributes:
        title: what they are.
        unit: of the vertical axis; empty if it is not known.
        t: times [s].
        series: values by name.
        log: whether the vertical axis is logarithmic.
        level: a horizontal line with its name, if there is one.
        note: what a reader must know besides.
    """

    title: str
    unit: str
    t: np.ndarray
    series: dict[str, np.ndarray]
    log: bool = False
    level: tuple[str, float] | None = None
    note: str = ""

    def pick(self, count: int) -> tuple[str, ...]:
        """Names of the curves that move most, at most `count` of them, in their own order."""
        # six digits: those that move alike come in their own order, not in that of their rounding errors
        span = {name: float(f"{_span(values, self.log):.6g}") for name, values in self.series.items()}
        kept = set(sorted(span, key=lambda name: -span[name])[:count])
        return tuple(name for name in self.series if name in kept)


def _span(values: np.ndarray, log: bool) -> float:
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0
    return float(np.ptp(np.log10(known))) if log else float(np.ptp(known))


def thin(traj: Trajectory, count: int = ROWS) -> np.ndarray:
    """Indices of at most about `count` rows, with the ends of segments and the neighbours of crossings and events."""
    number = len(traj.t)
    if number <= count:
        return np.arange(number)
    marked = [k for s in traj.segments for k in (s.start - 1, s.start)]
    times = [mark.t for mark in (*traj.crossings, *traj.events)][:count]
    marked += [k + d for k in np.searchsorted(traj.t, times).tolist() for d in (-1, 0)]
    even = np.linspace(0, number - 1, count).round().astype(int)
    return np.unique(np.clip(np.concatenate([even, np.array(marked, dtype=int)]), 0, number - 1))


def filled(traj: Trajectory, count: int = FILL) -> Trajectory:
    """The motion with rows in between, so that curves are smooth and dips at crossings show.

    Args:
        traj: a recorded motion; its rows stay.
        count: no gap is wider than this part of the whole.
    """
    gap = float(traj.t[-1] - traj.t[0]) / count
    if gap == 0 or len(traj.t) >= ROWS or not np.isfinite(traj.a).all():
        return traj
    step = np.diff(traj.t)
    pieces = np.maximum(np.ceil(step / gap), 1).astype(int)
    whole = np.ones(len(step), dtype=bool)
    whole[access.breaks(traj)] = False  # nobody knows what was between two rows on both sides of an event
    inside = [traj.t[k] + step[k] * np.arange(1, pieces[k]) / pieces[k] for k in np.flatnonzero(whole)]
    crossed = np.array([c.t for c in traj.crossings])
    crossed = crossed[(crossed > traj.t[0]) & (crossed < traj.t[-1])]
    crossed = crossed[whole[np.searchsorted(traj.t, crossed, side="right") - 1]]
    times = np.setdiff1d(np.concatenate([*inside, crossed]), traj.t)
    if not len(times):
        return traj
    owner = np.searchsorted(traj.t, times, side="right") - 1
    new = zip(("t", "q", "v", "a", "u"), (times, *access.between(traj, times)), strict=True)
    rows = {name: np.insert(getattr(traj, name), owner + 1, values, axis=0) for name, values in new}
    segments = tuple(replace(s, start=s.start + int(np.sum(owner < s.start))) for s in traj.segments)
    return replace(traj, segments=segments, **rows)


def by_segment(traj: Trajectory, rows: np.ndarray) -> Iterator[tuple[System, np.ndarray, State, np.ndarray]]:
    """For each segment its machine, the given rows that lie in it, the states there, and its flags of active rows."""
    for piece, segment, system in traj.pieces():
        inside = rows[(rows >= piece.start) & (rows < piece.stop)]
        if len(inside):
            state = State(system.layout, traj.q[inside], traj.v[inside], traj.t[inside])
            yield system, inside, state, system.active_rows(segment.active)


def curves(traj: Trajectory) -> list[Curves]:
    """Everything there is to draw against time, in the order in which a person wants to see it.

    Loop errors are those of the recorded rows; all else is also computed in between.
    """
    x = traj.system.layout
    dense = filled(traj, int(np.clip(30 * FILL / max(x.nv, 1), FILL / 4, FILL)))  # large machines take their time
    rows = thin(dense)
    t = dense.t[rows]
    out = [*_motion(dense, rows, t)]
    last: list[Curves] = []
    if x.m:
        # each row needs a singular value decomposition: fewer of them for machines with very many constraints
        count = int(np.clip(4e8 / (x.m**2 * x.nv), 20, ROWS))
        forces, levels = _constraints(dense, thin(dense, count))
        out.append(forces)
        last = [_errors(traj, thin(traj)), levels]
    if np.any(traj.u):
        named = {name: dense.u[rows, k] for k, name in enumerate(x.u_names)}
        out.append(Curves("inputs", "N or N m", t, named))
    parts = [energies(system, state) for system, _, state, _ in by_segment(dense, rows)]
    names = ("kinetic", "potential", "total")
    energy = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return [*out, Curves("energies", "J", t, energy), *last]


def _motion(traj: Trajectory, rows: np.ndarray, t: np.ndarray) -> Iterator[Curves]:
    """Coordinates and velocities: angles and shifts apart, quaternions by themselves."""
    x = traj.system.layout
    plain_q, plain_v = plain_map(x)
    turns = np.array(x.angles if len(x.angles) == x.nv else [False] * x.nv, dtype=bool)
    known = bool(x.bodies)  # only a machine made of bodies says what its coordinates measure
    for kind, unit, wanted in (("angles", "rad", True), ("shifts", "m", False)):
        named = {x.q_names[i]: traj.q[rows, i] for i, k in zip(plain_q, plain_v, strict=True) if turns[k] == wanted}
        if named:
            yield Curves(kind if known else "coordinates", unit if known else "", t, named)
    quats = {x.q_names[turn.q + k]: traj.q[rows, turn.q + k] for turn in x.turns for k in range(4)}
    if quats:
        yield Curves("orientations (quaternions)", "1", t, quats)
    for kind, unit, wanted in (("angular velocities", "rad/s", True), ("velocities", "m/s", False)):
        named = {name: traj.v[rows, k] for k, name in enumerate(x.v_names) if turns[k] == wanted}
        if named:
            yield Curves(kind, unit if known else "", t, named)


def _errors(traj: Trajectory, rows: np.ndarray) -> Curves:
    """By how much the active constraints are violated, in position and velocity."""
    x = traj.system.layout
    holonomic = np.array([row.holonomic for row in x.rows])
    found = []
    for system, _, state, active in by_segment(traj, rows):
        for chunk, values in terms_in_chunks(system, state):
            loop = np.max(np.abs(values.phi) * active * holonomic, axis=1)
            slip = np.einsum("cij,cj->ci", values.A, state.v[chunk]) - values.a
            found.append(np.column_stack([loop, np.max(np.abs(slip) * active, axis=1)]))
    both = np.maximum(np.concatenate(found), FLOOR)
    names = ("Φ [m or rad]", "A v − a [m/s or rad/s]") if x.bodies else ("Φ", "A v − a")
    series = {name: both[:, k] for k, name in enumerate(names) if k or holonomic.any()}
    return Curves("loop error", "", traj.t[rows], series, True)


def _constraints(traj: Trajectory, rows: np.ndarray) -> tuple[Curves, Curves]:
    """Constraint forces and singular values."""
    x, t = traj.system.layout, traj.t[rows]
    parts = []
    for system, inside, state, active in by_segment(traj, rows):
        force = generalised_force(system, state, traj.a[inside], traj.u[inside])
        for chunk, values in terms_in_chunks(system, state):
            triples = zip(values.M, values.A, force[chunk], strict=True)
            parts += [_shares(system, M, A, f, active) for M, A, f in triples]
    sigma, shares = (np.array(column) for column in zip(*parts, strict=True))
    one = len(x.groups) == 1
    total = {x.groups[0] if one else "total": shares[:, -1]}
    each = {} if one else {name: shares[:, k] for k, name in enumerate(x.groups)}
    gaps = any(np.isnan(values).any() for values in each.values())
    note = "gaps: near singular positions only the total is meaningful" if gaps else ""
    levels = {f"σ{k + 1}": np.maximum(sigma[:, k], FLOOR) for k in range(sigma.shape[1])}
    tolerance = ("counts as zero", traj.system.tolerance)
    forces = Curves("constraint forces |Aᵀλ|", "N or N m", t, total | each, note=note)
    return forces, Curves("singular values", "1", t, levels, True, tolerance)


def _shares(
    system: System, M: np.ndarray, A: np.ndarray, force: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, and the norms of each group's A_gᵀλ_g and of their sum."""
    L, S = scaled_rows(system, M, A, active)
    U, sigma, Vt = np.linalg.svd(S, full_matrices=False)
    kept = sigma > system.tolerance
    scaled = U @ (np.where(kept, 1 / np.where(kept, sigma, 1.0), 0.0) * (Vt @ np.linalg.solve(L, force)))
    slices = [system.layout.group_rows(group) for group in system.groups]
    norms = [float(np.linalg.norm(L @ (S[s].T @ scaled[s]))) for s in slices]
    if kept.any() and sigma[kept][-1] < NEAR_SINGULAR:
        norms = [np.nan] * len(norms)
    possible = int(min(len(system.kept), active.sum()))  # rows that are always zero, or off, have no singular value
    padded = np.full(len(system.kept), np.nan)
    padded[: min(possible, len(sigma))] = sigma[:possible]
    return padded, np.array([*norms, float(np.linalg.norm(L @ (S.T @ scaled)))])


# --- the figure ----------------------------------------------------------------------------------------------------


def figure_class(path: Any) -> Any:
    """Matplotlib's figure, or an error if there is none or it could not be written to this path."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        text = "plots need matplotlib, which is not installed; get it with: pip install 'sarrus[plot]'"
        raise SarrusError(text) from error
    if path is not None and Path(path).suffix.lower() not in ENDINGS:
        raise SarrusError(f"plot: cannot write {str(path)!r}; let the name end in {', '.join(ENDINGS)}")
    return Figure


def plot_trajectory(traj: Trajectory, path: Any = None, *, title: str | None = None) -> Any:
    """One page with coordinates, velocities, forces, energies, loop error and singular values.

    Args:
        traj: a recorded motion.
        path: where to write it, as .png, .svg or .pdf; not written if None.
        title: above the figure; the machine's name if None.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        SarrusError: matplotlib is not installed, or the file's ending is unknown.
    """
    Figure = figure_class(path)
    panels = curves(traj)
    height = (len(panels) + 1) // 2
    figure = Figure(figsize=(14, 1.4 + 2.3 * height), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)  # type: ignore[union-attr]
    axes = figure.subplots(height, 2, sharex=True, squeeze=False).T.ravel()
    for ax, panel in zip(axes, panels, strict=False):
        _panel(ax, panel)
        _marks(ax, traj)
    for ax in axes[len(panels) :]:
        ax.remove()
    for ax in (axes[height - 1], axes[len(panels) - 1]):
        ax.set_xlabel("time [s]", fontsize=9)
        ax.tick_params(labelbottom=True)
    heading = title if title is not None else traj.system.name
    figure.suptitle(heading, fontsize=14, fontweight="bold", parse_math=False)
    figure.supxlabel(_caption(traj), fontsize=8, color="#444444", parse_math=False)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _panel(ax: Any, panel: Curves) -> None:
    """One pair of axes with its legend beside it, and below that what else a reader must know."""
    names = panel.pick(len(COLOURS))
    if panel.level:
        lines, labels = _levels(ax, panel)
    else:
        dot = "." if len(panel.t) == 1 else ""
        looks = [(STYLES[(k // 3) % len(STYLES)] + dot, COLOURS[k]) for k in range(len(names))]
        pairs = zip(names, looks, strict=True)
        lines = [ax.plot(panel.t, panel.series[n], style, color=c, linewidth=1.2)[0] for n, (style, c) in pairs]
        labels = [_short(name) for name in names]
        more = len(panel.series) - len(names)
        notes = [f"{len(names)} of {len(panel.series)}: those that move most"] if more else []
        notes += [panel.note] if panel.note else []
        wrapped = [line for note in notes for line in textwrap.wrap(note, 30)]
        lines += [ax.plot([], [], linestyle="none")[0] for _ in wrapped]
        labels += wrapped
    # a space in front: matplotlib leaves names with a leading underscore out of legends
    legend = ax.legend(
        lines, [f" {x}" for x in labels], loc="upper left", bbox_to_anchor=(1.01, 1.03), fontsize=8, frameon=False,
        handlelength=2.2, borderpad=0.0, labelspacing=0.3,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    ax.set_title(panel.title, fontsize=10, loc="left", fontweight="bold", pad=14)
    ax.set_ylabel(f"[{panel.unit}]" if panel.unit else "", fontsize=9)
    if panel.log:
        ax.set_yscale("log")
        _decades(ax, panel)
    ax.grid(True, color="#DDDDDD", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.margins(x=0.01)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _levels(ax: Any, panel: Curves) -> tuple[list[Any], list[str]]:
    """Singular values: what matters is how far down the last one goes that is not zero all the time."""
    assert panel.level is not None
    name, level = panel.level
    last = max((k for k, x in enumerate(panel.series.values()) if np.any(x > level)), default=-1)
    found: dict[str, Any] = {}
    for k, values in enumerate(panel.series.values()):
        what, colour = (
            ("larger ones", "#8A9BA8")
            if k < last
            else ("smallest", COLOURS[1])
            if k == last
            else ("redundant", "#D9C9A3")
        )
        found[what] = ax.plot(panel.t, values, color=colour, linewidth=1.4 if k == last else 1.0)[0]
    found[name] = ax.axhline(level, color="black", linewidth=0.8, linestyle=":")
    return list(found.values()), list(found)


def _decades(ax: Any, panel: Curves) -> None:
    """Whole powers of ten as limits, at least two of them apart; what is zero stays at the lower edge."""
    values = np.concatenate([*panel.series.values(), [panel.level[1]] if panel.level else []])
    values = np.log10(values[np.isfinite(values)])
    low, high = np.floor(values.min() - 0.2), np.ceil(values.max() + 0.2)
    ax.set_ylim(10.0**low, 10.0 ** max(high, low + 2))
    ax.yaxis.get_major_locator().set_params(numticks=6)
    ax.yaxis.set_minor_locator(_nothing())


def _nothing() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _short(text: str, width: int = 24) -> str:
    return text if len(text) <= width else text[: width - 9] + "…" + text[-8:]


def _marks(ax: Any, traj: Trajectory) -> None:
    """Vertical lines at crossings and events; labels where there is room for them."""
    span = float(traj.t[-1] - traj.t[0]) or 1.0
    last = -np.inf
    for t, label in marks(traj):
        colour, style = ("#B00040", "--") if label[0] == CROSSED else ("#444444", ":")
        ax.axvline(t, color=colour, linewidth=0.8, linestyle=style)
        if t - last > 0.035 * span:
            ax.annotate(
                label, (t, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points",
                fontsize=7, ha="center", va="bottom", color=colour,
            )  # fmt: skip
            last = t


def marks(traj: Trajectory) -> list[tuple[float, str]]:
    """Times and short labels of crossings and events, in order of time."""
    found = [(float(c.t), f"{CROSSED}{k}") for k, c in enumerate(traj.crossings, 1)]
    return sorted(found + [(float(e.t), f"{HAPPENED}{k}") for k, e in enumerate(traj.events, 1)])


def _caption(traj: Trajectory, count: int = 6) -> str:
    """How it was computed, how it ended, and what the marks mean."""
    crossings = [f"{CROSSED}{k} at {c.t:.6g} s" for k, c in enumerate(traj.crossings, 1)]
    events = [f"{HAPPENED}{k} {e.name!r} at {e.t:.6g} s" for k, e in enumerate(traj.events, 1)]
    lines = [str(traj.status), str(traj.stats)]
    for what, items in (("singular positions crossed", crossings), ("events", events)):
        more = f" and {len(items) - count} more" if len(items) > count else ""
        lines += [f"{what}: {', '.join(items[:count])}{more}"] if items else []
    return "\n".join(part for line in lines for part in textwrap.wrap(line, 190))
