"""The texts: each finding in plain words, in the user's own names, with what to change.

Topics are the sections of the manual's page on diagnosing; see `diagnosis.Finding`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from sarrus.analysis.actuation import Actuation
from sarrus.analysis.dependence import Family
from sarrus.analysis.diagnosis import Finding, JointVerdict, plural
from sarrus.analysis.figures import Figures
from sarrus.analysis.misalignment import Blame, Misfit
from sarrus.analysis.mobility import Mobility
from sarrus.analysis.relax import Relaxation
from sarrus.dynamics.manifold import difference
from sarrus.dynamics.solution import Rank
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import AssemblyError
from sarrus.model.layout import Layout

SHOWN = 8  # names listed before the rest is only counted
WEAK_GAP = 1e3  # accepted over rejected singular values: below it the rank is in doubt
ILL = 1e4  # condition numbers of the scaled rows above this are worth a word
HEAVY = 1e8  # condition numbers of M above this are


def names(items: Sequence[str], last: str = "and") -> str:
    """A list of names in code marks, cut where it gets long."""
    shown = [f"`{x}`" for x in items[:SHOWN]]
    if len(items) > SHOWN:
        shown = [*shown, f"{len(items) - SHOWN} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}" if shown else "none"


def amount(value: float, unit: str) -> str:
    """A small length or angle in handy units."""
    if unit == "m":
        return f"{value:.3g} m" if value >= 1 else f"{1e3 * value:.3g} mm"
    if unit == "rad":
        return f"{value:.3g} rad" if value >= 1 else f"{1e3 * value:.3g} mrad"
    return f"{value:.3g}"


def motion(entries: Mapping[str, float], count: int = 5) -> str:
    """A velocity or combination of inputs: its largest entries."""
    largest = sorted(entries, key=lambda n: -abs(entries[n]))[:count]
    text = ", ".join(f"`{n}` {entries[n]:+.3g}" for n in entries if n in largest)
    return text + (f" and {len(entries) - count} smaller" if len(entries) > count else "")


# --- put together? ---------------------------------------------------------------------------------------------------
def bad_description(text: str) -> Finding:
    """A description that cannot be compiled."""
    return Finding("problem", "a-faulty-description", text, "Change the description and diagnose again.")


def cannot_assemble(error: AssemblyError) -> Finding:
    """No assembly was found at all."""
    worst = sorted(error.residuals, key=lambda g: -error.residuals[g])[:1]
    advice = (
        "What follows looks at the best attempt. Check lengths, attachment points and axes of the constraint named; "
        "where parts of it contradict others or are only a little out of line, it is said below."
    )
    return Finding("problem", "it-cannot-be-assembled", str(error), advice, tuple(worst))


def open_loop(system: System, state: State, phi: np.ndarray, near: State | None) -> Finding:
    """The state given does not satisfy the constraints."""
    layout = system.layout
    rows = [i for i in np.argsort(-phi)[:4] if phi[i] > 0]
    listed = ", ".join(f"`{layout.rows[i].name}` by {amount(float(phi[i]), layout.rows[i].unit)}" for i in rows)
    groups = tuple(dict.fromkeys(layout.rows[i].group for i in rows))
    text = f"This state is not assembled: {listed} open."
    if near is None:
        advice = "No assembly was found near it. Check lengths and attachment points, or start from another guess."
    else:
        step = np.abs(difference(layout, state.q, near.q)) / np.array(layout.scales)
        k = int(np.argmax(step))
        size = amount(float(step[k] * layout.scales[k]), "rad" if layout.angles[k] else "m")
        advice = (
            "`system.assemble(near=state)` closes it; the farthest to go is "
            f"`{layout.v_names[k]}` by {size}. Everything below holds at the open state."
        )
    return Finding("problem", "an-open-loop", text, advice, groups)


def velocities_do_not_fit(layout: Layout, slip: np.ndarray, bad: np.ndarray) -> Finding:
    """A v = a is violated."""
    worst = sorted(bad, key=lambda i: -slip[i])[:4]
    listed = ", ".join(f"`{layout.rows[i].name}` {slip[i]:.3g}" for i in worst)
    return Finding(
        "problem", "velocities-that-do-not-fit", f"The velocities of this state violate the constraints: {listed}.",
        "Project them with `system.projector(state) @ v`, or let `system.assemble(positions, velocities)` find them.",
        tuple(dict.fromkeys(layout.rows[i].group for i in worst)),
    )  # fmt: skip


def wrong_way_round(groups: tuple[str, ...]) -> Finding:
    """Axes that are parallel but point opposite ways."""
    return Finding(
        "problem", "axes-the-wrong-way-round",
        f"The two sides of {names(groups)} have their axes parallel but pointing opposite ways.",
        "Turn the axis of one side round in the description, or assemble from another guess.", groups,
    )  # fmt: skip


def contradiction(system: System, state: State, what: str, rows: tuple[str, ...], miss: float) -> Finding:
    """Dependent rows that ask for different things."""
    layout = system.layout
    units = {row.name: row.unit for row in layout.rows}
    unit = {units[r] for r in rows}
    size = amount(miss, unit.pop() if len(unit) == 1 else "")
    groups = tuple(g for g in layout.groups if any(row.group == g and row.name in rows for row in layout.rows))
    if what == "position" and len(rows) == 1:
        text = f"{names(rows)} cannot be satisfied: no motion changes it here, and it misses by {size}"
        advice = "Change a length or an attachment point, or relax it."
    elif what == "position":
        text = f"{names(rows)} cannot be satisfied together: they repeat each other, but miss by {size}"
        advice = "Change a length or an attachment point of one of them, or relax one: they cannot all hold."
    elif what == "velocity":
        text = f"The motions prescribed by {names(rows)} contradict each other by {size} per second"
        advice = "Let one of them follow from the others, or prescribe motions that agree."
    else:
        text = f"With these velocities {names(rows)} cannot stay satisfied: they miss by {size} per second squared"
        advice = (
            "No motion through this position has these velocities: it is a singular position, and they lead off every "
            "branch of motion that passes through it."
        )
    text += f" at t = {float(state.t):g} s."
    return Finding("problem", "rows-that-contradict-each-other", text, advice, groups)


def misfit(m: Misfit) -> Finding:
    """Small singular values: out of line, or near a singular position."""
    if m.posture:
        return Finding(
            "warning", "near-a-singular-position",
            f"The machine is near a singular position: {names(m.rows)} nearly depend on each other here "
            f"(singular value {m.singular_value:.2g} beside {m.next_value:.2g}), and no longer some way on.",
            "Multipliers and torques grow without bound towards that position; go round it, or expect large forces.",
            m.rows,
        )  # fmt: skip
    text = f"{names(m.rows)} are nearly redundant: they would depend on the other rows"
    if m.blamed:
        text += " if " + ", or ".join(_out_of_line(x, m.length) for x in m.blamed[:3])
        which = names([x.joint for x in m.blamed[:3]], "or")
        advice = f"Put {which} in line: as described, the machine locks or is forced out of shape."
    else:
        opened = ", ".join(f"`{name}` by {value:.2g}" for name, value in m.opening)
        text += f"; along the motion that is meant they open only by a little ({opened})"
        advice = "No single joint explains it. Check dimensions that should be equal and axes that should be parallel."
    return Finding("warning", "nearly-redundant-rows", text + ".", advice, (m.joint,) if m.joint else m.rows)


def _out_of_line(x: Blame, length: float) -> str:
    turned = f"turned by {amount(x.angle, 'rad')}" if x.angle > 0.05 * x.shift / length else ""
    moved = f"moved by {amount(x.shift, 'm')}" if x.shift > 0.05 * x.angle * length else ""
    return f"`{x.joint}` were {' and '.join(part for part in (turned, moved) if part)}"


# --- redundancy ------------------------------------------------------------------------------------------------------
def out_of_plane(idle: tuple[str, ...]) -> Finding:
    """Rows of a planar machine that say nothing."""
    return Finding(
        "note", "rows-that-are-always-satisfied",
        f"{names(idle)}: always satisfied, because the machine is planar.",
        "Nothing to change; they are left out of the computation. Forces out of the plane are not looked at.", idle,
    )  # fmt: skip


def redundant(families: Sequence[Family], loop: tuple[str, ...], plans: list[tuple[Relaxation, ...]]) -> Finding:
    """Families of dependent rows that load the same joints."""
    d = sum(family.nullity for family in families)
    groups = tuple(dict.fromkeys(g for family in families for g in family.groups))
    others = tuple(name for name in loop if name not in groups)
    single = [family.rows[0] for family in families if len(family.rows) == 1]
    parts = []
    if single:
        one = len(single) == 1
        told = f"{names(single)} {'repeats' if one else 'repeat'} what "
        verb = "enforces" if len(others) == 1 else "enforce"
        told += f"{names(others)} already {verb} in the same loop." if others else "is already enforced."
        parts.append(told)
    parts += [_family(family) for family in families if len(family.rows) > 1]
    if others and not single:
        parts.append(f"The loads this allows go through {names(others)} as well.")
    text = " ".join(parts)
    if plans:
        ways = "; or ".join(", and ".join(x.text for x in plan) for plan in plans[:3])
        rest = d - sum(len(x.freed) for x in plans[0])
        but = f" but for {plural(rest, 'row')}" if rest else ""
        advice = f"To make it determinate{but}: {ways}. "
    elif d == 1:
        advice = f"Leave out {names(families[0].rows, 'or')} to make it determinate, if the part allows it. "
    else:
        spare = [row for family in families for row in family.spare]
        advice = f"Leave out {names(spare)} to make it determinate, if the parts allow it. "
    advice += (
        "Or keep it: the motion is right either way, but how the load is shared is open "
        "(`sr.reactions` with compliances decides it)."
    )
    return Finding("warning", "redundant-constraints", text, advice, groups + others)


def _family(family: Family) -> str:
    text = f"{names(family.rows)} depend on each other: {family.nullity} of these {len(family.rows)} rows can go."
    small = [c for c in family.circuits if len(c) < len(family.rows)]
    if not small:
        return text + " Any one of them follows from the others."
    if len(small) == comb(len(family.rows), len(small[0])):
        return text + f" Any {len(family.rows) - family.nullity} of them imply the others."
    if not family.complete:
        return text
    sets = "; ".join(f"{{{', '.join(c)}}}" for c in small[:6]) + (" …" if len(small) > 6 else "")
    return text + f" Of each of these sets any one row follows from the others: {sets}."


def indeterminate(
    determinate: Mapping[str, bool], sums: tuple[tuple[str, ...], ...], joints: Mapping[str, JointVerdict], d: int
) -> Finding:
    """Forces that rigid bodies do not determine."""
    bad = tuple(g for g, known in determinate.items() if not known)
    open_joints = tuple(n for n, x in joints.items() if not x.unique)
    sure = tuple(n for n, x in joints.items() if x.unique)
    ways = "1 way" if d == 1 else f"{d} independent ways"
    text = f"The machine can be loaded against itself in {ways}: "
    parts = []
    if bad:
        parts.append(f"the forces of {names(bad)} are not determined by the motion")
    shared = [x for x in sums if len(x) > 1]
    if shared:
        parts.append("only together are they: " + "; ".join(" + ".join(x) for x in shared))
    if open_joints:
        parts.append(f"reactions of {names(open_joints)} are not unique")
    if sure and open_joints:
        parts.append(f"those of {names(sure)} are")
    advice = (
        "Do not read single values there. Use the part that is certain, or give compliances to "
        '`sr.reactions(..., metric="stiffness")`.'
    )
    text += "; ".join(parts) + "."
    return Finding("warning", "forces-that-are-not-determined", text, advice, bad + open_joints)


# --- mobility --------------------------------------------------------------------------------------------------------
def mobility(system: System, m: Mobility, rank: Rank, internal: int) -> list[Finding]:
    """Mobility, and why a count of parts says something else."""
    found = []
    nv = system.layout.nv
    if m.singular:
        lost = m.rank_near - rank.rank
        also = f" Mobility {m.instant} here, {m.finite} along each way on." if m.finite < m.instant else ""
        found.append(Finding(
            "warning", "singular-positions",
            f"This is a singular position: {lost} constraint row(s) fewer are independent here than near by "
            f"(rank {rank.rank}, near by {m.rank_near}).{also}",
            "Branches of motion may meet here; the velocity chooses. Ask for Aᵀλ and not for λ, which grows without "
            "bound towards this position. The redundancy found below holds at this position only.", rank.redundant,
        ))  # fmt: skip
    elif m.finite < m.instant:
        proof = "The second-order test proves it" if m.definite else "Positions near by lead back to it"
        found.append(Finding(
            "warning", "mobility-that-is-only-infinitesimal",
            f"{m.instant - m.finite} of {m.instant} instantaneous mobilities lead nowhere: the machine is shaky, "
            f"but does not move. {proof}.",
            "It is soft in that direction and its forces are large; change the geometry (bars in one line, three lines "
            "through a point).", (),
        ))  # fmt: skip
    if m.instant == 0:
        sort = "statically determinate" if not internal else f"statically indeterminate to degree {internal}"
        found.append(Finding(
            "note", "mobility-0", f"Mobility 0: a structure, {sort}. It cannot move.",
            "If it should move, relax a constraint; if it should stand, this is right.", (),
        ))  # fmt: skip
    if m.dependent and m.grubler != m.instant:
        told = f"{plural(m.dependent, 'row')} {'says' if m.dependent == 1 else 'say'} nothing new"
        found.append(Finding(
            "note", "grublers-count",
            f"Grübler's count is {plural(nv, 'velocity')} - {plural(nv - m.grubler, 'row')} = {m.grubler}; "
            f"the mobility is {m.instant}, because {told}.",
            "The count takes all rows for independent; trust the rank.", (),
        ))  # fmt: skip
    return found


# --- inputs ----------------------------------------------------------------------------------------------------------
def actuation(a: Actuation, generic: int, m: Mobility) -> list[Finding]:
    """What the inputs can and cannot do."""
    found = []
    if a.idle:
        found.append(Finding(
            "warning", "inputs-that-do-nothing", f"{names(a.idle)}: no force of this input reaches the machine here.",
            "Check the direction and place of the actuator.", a.idle,
        ))  # fmt: skip
    if a.kind == "under":
        lost = generic - a.driven
        ways = "; ".join("(" + motion(x) + ")" for x in a.undriven[:4])
        where = (
            f" Near by, {generic} of them can: this position is singular for the inputs "
            "(with the motors held, the machine is loose here)." if lost > 0 and not m.singular else ""
        )  # fmt: skip
        found.append(Finding(
            "warning", "motions-that-no-input-drives",
            f"The inputs {names(a.inputs)} drive {a.driven} of {a.mobility} motions. Not driven: {ways}.{where}",
            "Add an input that does work on that motion, "
            + ("or keep away from this position: torques grow without bound towards it." if where else
               "or accept that it follows its own dynamics."),
            tuple(x for way in a.undriven for x in way),
        ))  # fmt: skip
    if a.internal and a.kind != "fixed":
        ways = "; ".join("(" + motion(x) + ")" for x in a.internal[:4])
        found.append(Finding(
            "note", "torques-that-move-nothing",
            f"{len(a.internal)} combination(s) of inputs move nothing and only load the machine inside: {ways}.",
            "The torques for a motion are not unique; choose the smallest, or use the freedom to preload joints.",
            a.inputs,
        ))  # fmt: skip
    for name, task in a.tasks.items():
        if task.movable < task.generic:
            found.append(Finding(
                "warning", "tasks", f"Task `{name}` has lost {task.generic - task.movable} direction(s) here: the "
                f"machine can move it in {task.movable} direction(s), near by in {task.generic}.",
                "A singular position of the output: keep the task away from it, or use another assembly.", (name,),
            ))  # fmt: skip
        elif task.driven < task.movable:
            found.append(Finding(
                "warning", "tasks", f"Task `{name}`: the inputs accelerate it in {task.driven} of the {task.movable} "
                "direction(s) in which it can move.", "Add or move an input, or ask for less.", (name,),
            ))  # fmt: skip
    return found


# --- numbers ---------------------------------------------------------------------------------------------------------
def numbers(system: System, rank: Rank, f: Figures, error: float) -> list[Finding]:
    """Conditioning and scaling."""
    found = []
    if f.gap < WEAK_GAP:
        found.append(Finding(
            "warning", "a-rank-in-doubt",
            f"The rank is not clear: singular values {rank.smallest_accepted:.2g} (counted) and "
            f"{rank.largest_rejected:.2g} (not counted) are close to the tolerance {rank.tolerance:g}.",
            f"Assemble more exactly (loop error {error:.1e}), or move away from this position.", (),
        ))  # fmt: skip
    if f.condition > ILL:
        found.append(Finding(
            "warning", "scaling-and-conditioning",
            f"The constraint rows are ill conditioned: singular values from {rank.singular_values[0]:.2g} down to "
            f"{rank.smallest_accepted:.2g}.", "Near a singular position, or with a joint out of line, forces are large "
            "and inexact.", (),
        ))  # fmt: skip
    if f.mass_condition > HEAVY:
        found.append(Finding(
            "warning", "scaling-and-conditioning",
            f"The mass matrix is ill conditioned ({f.mass_condition:.1g}): some motion has hardly any inertia.",
            "Check masses and inertias for a wrong unit, or give the light part a little inertia.", (),
        ))  # fmt: skip
    if f.row_spread > ILL:
        found.append(Finding(
            "note", "scaling-and-conditioning",
            f"Constraint rows of the same unit differ in size by {f.row_spread:.1g}.",
            "Rows that measure tiny arms or heavy parts; check units of lengths and masses.", (),
        ))  # fmt: skip
    return found
