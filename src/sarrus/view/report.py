"""One HTML file that tells a whole run: how it ended, what it cost, what happened, its figure and its animation."""

from __future__ import annotations

import html
import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.errors import SarrusError
from sarrus.simulation.status import largest_entries
from sarrus.view.animate import fill, page_data, part, script, viewer
from sarrus.view.plot import CROSSED, HAPPENED, plot_trajectory

if TYPE_CHECKING:
    from sarrus.simulation.trajectory import Trajectory


def write_report(traj: Trajectory, path: Any, *, title: str | None = None) -> Path:
    """Write a report of a run as one HTML file, which needs no network.

    Args:
        traj: a recorded motion.
        path: of the file; its name ends in .html.
        title: at the top; the machine's name if None.

    Returns:
        The path.

    Raises:
        SarrusError: the ending is not .html, or matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise SarrusError(f"report: cannot write {str(path)!r}; let the name end in .html")
    parts = {
        "title": html.escape(title if title is not None else traj.system.name),
        "style": part("viewer.css"),
        "script": script(),
        "status": _status(traj),
        "crossings": _crossings(traj),
        "events": _events(traj),
        "audit": _audit(traj),
        "settings": _table(("setting", "value"), [(name, str(value)) for name, value in traj.settings.items()]),
        "figure": figure_text(traj, title),
        "viewer": viewer(page_data(traj, title)),
    }
    path.write_text(fill(part("report.html"), parts), encoding="utf-8")
    return path


def figure_text(traj: Trajectory, title: str | None = None) -> str:
    """The one-page figure as an SVG element."""
    figure, text = plot_trajectory(traj, title=title), StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # within HTML an SVG element needs no namespaces; without them the file holds no address at all
    return re.sub(r' (xmlns|xmlns:xlink)="[^"]*"', "", svg, count=2)


def _status(traj: Trajectory) -> str:
    kind = "good" if traj.status.ok else "bad"
    x = traj.system.layout
    size = f"{x.nq} positions, {x.nv} velocities, {x.m} constraint rows, {x.nu} inputs; {len(traj.t)} rows recorded"
    texts = (str(traj.status), str(traj.stats), size)
    return f'<p class="{kind}">{html.escape(texts[0])}</p>\n' + "\n".join(f"<p>{html.escape(t)}</p>" for t in texts[1:])


def _crossings(traj: Trajectory) -> str:
    rows = []
    for k, c in enumerate(traj.crossings, 1):
        low = f"{c.singular_values[-1]:.2g}" if len(c.singular_values) else "–"
        way = ", ".join(f"{name} {x:+.3f}" for name, x in largest_entries(c.direction))
        rows.append((f"{CROSSED}{k}", f"{c.t:.9g}", f"{c.rank} instead of {c.rank_before}", low, way, c.text))
    heads = ("", "t [s]", "rank", "smallest singular value", "left along", "")
    return _table(heads, rows) or "<p>No singular position was crossed.</p>"


def _events(traj: Trajectory) -> str:
    rows = [
        (f"{HAPPENED}{k}", f"{e.t:.9g}", e.name, "rising" if e.direction > 0 else "falling", e.action)
        for k, e in enumerate(traj.events, 1)
    ]
    return _table(("", "t [s]", "event", "direction", "what was done"), rows) or "<p>No events.</p>"


def _audit(traj: Trajectory) -> str:
    audit = getattr(traj, "audit", None)
    if audit is None:
        return "<p>Not available.</p>"
    with np.errstate(all="ignore"):  # a run that went wrong must still be reported
        return f"<pre>{html.escape(str(audit()))}</pre>"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """An HTML table; empty if there are no rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(x)}</th>" for x in heads)
    lines = ["<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in row) + "</tr>" for row in rows]
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table>"
