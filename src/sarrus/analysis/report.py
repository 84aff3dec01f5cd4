"""A diagnosis as plain text, in colour on a console, and as an HTML page: three prints of the same lines."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from sarrus.analysis.diagnosis import Diagnosis, plural
from sarrus.analysis.figures import Figures

WIDTH = 100
COLOURS = {"problem": "bold red", "warning": "yellow", "note": "cyan"}

Lines = list[tuple[str, str]]


def summary(d: Diagnosis) -> Lines:
    """Label and value of everything that is counted."""
    if not d.velocities:
        return []
    lines = [("mobility", _mobility(d))]
    lines.append(("constraints", f"{plural(d.rows, 'row')}, {d.rank} independent{_evidence(d)}"))
    if d.redundant:
        lines.append(("redundant", _redundant(d)))
    if d.misfit is not None and not d.misfit.posture:
        lines.append(("nearly redundant", ", ".join(d.misfit.rows)))
    if d.determinate:
        unknown = [g for g, known in d.determinate.items() if not known]
        lines.append(("forces", "all determinate" if not unknown else f"not determinate: {', '.join(unknown)}"))
    if d.sums and any(len(x) > 1 for x in d.sums):
        lines.append(("only as a sum", "; ".join(" + ".join(x) for x in d.sums if len(x) > 1)))
    if d.joints:
        lines.append(("joint reactions", _joints(d)))
    if d.actuation is not None:
        a = d.actuation
        lines.append(
            (
                "actuation",
                f"{a.text} ({plural(len(a.inputs), 'input')}, {a.driven} of {plural(a.mobility, 'motion')} driven)",
            )
        )
        for name, task in a.tasks.items():
            told = "driven" if task.actuated else "not driven"
            lines.append((f"task {name}", f"{told}: {task.driven} of {task.movable} movable directions"))
    if d.figures is not None:
        lines += _figures(d.figures)
    error = f"loop error {d.loop_error:.1e}"
    lines.append(("assembled", f"yes, {error}" if d.assembled else f"no, {error}"))
    return lines


def _mobility(d: Diagnosis) -> str:
    text = f"{d.mobility} = {plural(d.velocities, 'velocity')} - rank {d.rank}"
    m = d.mobilities
    if m is None:
        return text
    if m.finite != m.instant:
        text += f"; only {m.finite} of it goes on" if m.finite else "; none of it goes on"
    return text + f" (Grübler's count: {m.grubler})"


def _evidence(d: Diagnosis) -> str:
    kept = [s for s in d.singular_values if s > d.tolerance]
    lost = [s for s in d.singular_values if s <= d.tolerance]
    if not d.rows:
        return ""
    text = f"smallest counted {min(kept):.3g}" if kept else "none counted"
    return f" (singular values: {text}, " + (f"largest not counted {max(lost):.2g})" if lost else "none not counted)")


def _redundant(d: Diagnosis) -> str:
    shared = [row for row in d.redundant if row not in d.idle]
    parts = []
    if shared:
        spare = sum(1 for row in d.spare if row not in d.idle)
        parts.append(f"{spare} of {', '.join(shared)}")
    if d.idle:
        parts.append(f"always satisfied: {', '.join(d.idle)}")
    return "; ".join(parts)


def _joints(d: Diagnosis) -> str:
    unknown = [name for name, x in d.joints.items() if not x.unique]
    return "all unique" if not unknown else f"not unique: {', '.join(unknown)}"


def _figures(f: Figures) -> Lines:
    lines = [("conditioning", f"rows {f.condition:.3g}, mass matrix {f.mass_condition:.3g}")]
    if f.virtual_mass is not None:
        low, high = f.virtual_mass
        lines.append(("virtual mass", f"{low:.4g} to {high:.4g} kg m², best {f.best_mass:.4g}"))
        told = "decoupled" if f.coupling < 1e-9 else f"coupled, {f.coupling:.3g} of 1"
        lines.append(("motion and force", told))
    if f.index is None:
        lines.append(("DAE index", "none: dependent rows leave the multipliers open; leave the spare rows out"))
    else:
        lines.append(("DAE index", ", ".join(f"{n} with {level}" for level, n in f.index.items())))
    return lines


# --- plain text ------------------------------------------------------------------------------------------------------
def plain(d: Diagnosis) -> str:
    """Name, counts and findings as text."""
    lines = summary(d)
    width = max((len(label) for label, _ in lines), default=0)
    out = [d.name, *(f"  {label:<{width}}  {value}" for label, value in lines)]
    for f in d.findings:
        out += ["", *_wrapped(f"{f.severity}: {f.text}", "  "), *_wrapped(f"-> {f.advice}", "     "), f"     {f.page}"]
    if not d.findings:
        out += ["", "  nothing to remark"]
    return "\n".join(out)


def _wrapped(text: str, indent: str) -> list[str]:
    import textwrap

    out = []
    for k, line in enumerate(text.splitlines() or [""]):
        more = indent + "  " if k == 0 else indent + "    "
        out += textwrap.wrap(line.strip(), WIDTH, initial_indent=more[:-2] if k == 0 else more, subsequent_indent=more)
    return out


# --- console ---------------------------------------------------------------------------------------------------------
def coloured(d: Diagnosis) -> Any:
    """The same for a rich console."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    counts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    counts.add_column(style="dim", no_wrap=True)
    counts.add_column()
    for label, value in summary(d):
        counts.add_row(label, Text(value))
    parts: list[Any] = [Text(d.name, style="bold"), counts]
    if d.findings:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(1, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column()
        for f in d.findings:
            told = Text(f.text)
            told.append(f"\n{f.advice}", style="dim")
            told.append(f"\n{f.page}", style="dim italic")
            table.add_row(Text(f.severity, style=COLOURS[f.severity]), told)
        parts.append(table)
    else:
        parts.append(Text("nothing to remark", style="green"))
    return Group(*parts)


# --- HTML ------------------------------------------------------------------------------------------------------------
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
.sarrus table { border-collapse: collapse; margin: 0 0 1.5rem; }
.sarrus td, .sarrus th { text-align: left; vertical-align: top; padding: .2rem 1.2rem .2rem 0; font-weight: normal; }
.sarrus th { color: #666; white-space: nowrap; }
.sarrus .finding { border-left: .3rem solid #2a8; padding: .1rem 0 .1rem 1rem; margin: 0 0 1.2rem; }
.sarrus .problem { border-color: #c22; } .sarrus .warning { border-color: #d90; }
.sarrus .finding p { margin: .3rem 0; white-space: pre-line; } .sarrus .advice { color: #444; }
.sarrus code { background: #eee; padding: 0 .2rem; border-radius: .2rem; }
.sarrus td.no { color: #b40; }
"""


def page(d: Diagnosis) -> str:
    """A whole page."""
    title = html.escape(d.name)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"</head>\n<body>\n{body(d)}\n</body>\n</html>\n"
    )


def body(d: Diagnosis) -> str:
    """Its content, which also stands alone in a notebook."""
    rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>\n" for a, b in summary(d))
    found = "".join(
        f'<div class="finding {f.severity}"><p><b>{f.severity}</b>: {_marked(f.text)}</p>'
        f'<p class="advice">{_marked(f.advice)}</p><p><a href="{f.page}">{html.escape(_title(f.topic))}</a></p></div>\n'
        for f in d.findings
    )
    return (
        f'<div class="sarrus">\n<style>{STYLE}</style>\n<h1>{html.escape(d.name)}</h1>\n<table>\n{rows}</table>\n'
        f"{found or '<p>Nothing to remark.</p>'}{_reactions(d)}</div>"
    )


def _reactions(d: Diagnosis) -> str:
    """Joint reactions with what is certain in them."""
    if d.reactions is None or not d.reactions.joints:
        return ""

    def cells(values: np.ndarray, known: np.ndarray) -> str:
        pairs = zip(values, known, strict=True)
        return "".join(f"<td>{x:.4g}</td>" if ok else f'<td class="no">{x:.4g}&nbsp;?</td>' for x, ok in pairs)

    rows = "".join(
        f"<tr><th>{html.escape(x.name)}</th><td>{html.escape(x.child)}</td>"
        f"{cells(x.force, x.unique_force)}{cells(x.moment, x.unique_moment)}</tr>\n"
        for x in d.reactions.joints.values()
    )
    heads = "".join(f"<th>{x}</th>" for x in ("joint", "on", *"xyz", *"xyz"))
    units = '<tr><th></th><th></th><th colspan="3">force [N]</th><th colspan="3">moment [N m]</th></tr>'
    rule = f"<p>? not certain; shared by: {html.escape(d.reactions.metric)}</p>" if d.reactions.internal else ""
    return f"<h2>Joint reactions</h2>\n<table>\n{units}\n<tr>{heads}</tr>\n{rows}</table>\n{rule}"


def _marked(text: str) -> str:
    """Names between backticks in code marks."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{x}</code>" if k % 2 else x for k, x in enumerate(parts))


def _title(topic: str) -> str:
    return topic.replace("-", " ").capitalize()
