"""How a simulation ended, what it cost, and what happened on the way: plain records that print themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sarrus.model.layout import Layout

GOOD = ("finished", "event", "crossing")

# code -> (how the run ended, what to do about it)
_ENDINGS = {
    "finished": ("finished", ""),
    "event": ("ended by a terminal event", "Continue with `simulate(system, trajectory, t_end=...)`."),
    "crossing": (
        "stopped at a singular position, as asked for by crossing='stop'",
        "Use crossing='continue' to pass it on the branch that the velocity chooses, or assemble a state on the branch "
        "you want and start again from there.",
    ),
    "interrupted": (
        "interrupted",
        "What was computed is kept; `simulate(system, trajectory, t_end=...)` continues from here.",
    ),
    "diverged": (
        "stopped because the motion diverged",
        "Look at the last states: a spring, gain or load that feeds energy into the machine, or a wrong sign, is the "
        "usual cause; then a fixed step `dt` that is too long.",
    ),
    "not finite": (
        "stopped because a value is not finite",
        "Check inputs, user loads and parameters at this time and position (a division by zero, the root of a negative "
        "number, a table that ends too early).",
    ),
    "jammed": (
        "stopped because friction jams a contact: no contact forces belong to the motion that comes next",
        "This is Painlevé's paradox of rigid bodies with friction; take a smaller coefficient, let the contact stick, "
        "or give it a body that yields on a spring.",
    ),
    "step too small": (
        "stopped because the step size fell to nothing",
        "Look for a force that jumps or grows without bound there and give it as an event; for a stiff machine use "
        "method='radau'.",
    ),
    "tolerance unreachable": (
        "stopped because the tolerance cannot be reached with these numbers",
        "Ask for a larger rtol (1e-12 is the least that makes sense) or loop_error, or give `atol` for coordinates "
        "whose size differs from the machine's length.",
    ),
    "assembly lost": (
        "stopped because the closures could not be held together",
        "Ask for a smaller rtol or `max_step`, keep drift='project', and check that moving constraints stay within "
        "reach of the machine.",
    ),
    "too many steps": (
        "stopped after the largest number of steps allowed",
        "Raise `max_steps`, ask for a larger rtol, or use method='radau' if the machine is stiff; continue with "
        "`simulate(system, trajectory, t_end=...)`.",
    ),
    "callback failed": (
        "stopped because a function of yours raised an error",
        "Mend that function (input law, guard or action); what was computed until then is kept.",
    ),
}

CODES = tuple(_ENDINGS)


@dataclass(frozen=True)
class Status:
    """How a run ended.

    Attributes:
        code: one of `CODES`.
        text: where and why, in one or two sentences.
        t: when [s].
    """

    code: str
    text: str = ""
    t: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a code that nobody could look up."""
        if self.code not in _ENDINGS:
            raise ValueError(f"status code {self.code!r}: expected one of {', '.join(CODES)}")

    @property
    def ok(self) -> bool:
        """Whether the run ended as it was asked to."""
        return self.code in GOOD

    def __str__(self) -> str:
        """One paragraph: when, where, why and what to do."""
        how, cure = _ENDINGS[self.code]
        text = self.text.strip()
        if text and text[-1] not in ".!?":
            text += "."
        head = f"{how[0].upper()}{how[1:]} at t = {self.t:.9g} s"
        return " ".join(part for part in (head + (":" if text else "."), text, cure) if part)


@dataclass(frozen=True)
class Stats:
    """What a run cost.

    Attributes:
        method: integrator.
        rtol: relative tolerance asked for; nan for fixed steps.
        steps: accepted steps.
        rejected: steps tried again.
        evaluations: accelerations computed.
        projections: corrections of positions or velocities.
        bridges: steps through singular windows.
        smallest_step: [s].
        mean_step: [s].
        seconds: time it took on the clock [s].
    """

    method: str
    rtol: float = float("nan")
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    projections: int = 0
    bridges: int = 0
    smallest_step: float = float("nan")
    mean_step: float = float("nan")
    seconds: float = 0.0

    def __str__(self) -> str:
        """One line."""
        extra = f", {self.bridges} through singular windows" if self.bridges else ""
        tolerance = "" if np.isnan(self.rtol) else f", rtol {self.rtol:g}"
        return (
            f"{self.method}{tolerance}: {self.steps} steps ({self.rejected} rejected{extra}), "
            f"{self.evaluations} evaluations, {self.projections} projections, "
            f"steps {self.smallest_step:.3g} s at least, {self.mean_step:.3g} s on average, {self.seconds:.3g} s to run"
        )


@dataclass(frozen=True, eq=False)
class Crossing:
    """A passage through a singular position.

    Attributes:
        t: when the smallest singular value was smallest [s].
        q: positions then.
        v: velocities then.
        singular_values: of the scaled rows in the mass metric then, largest first.
        rank: there.
        rank_before: away from it.
        direction: unit direction of travel by velocity name: the branch that was taken.
        text: one sentence.
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    singular_values: np.ndarray
    rank: int
    rank_before: int
    direction: Mapping[str, float] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        """When, how singular, and where it went."""
        low = float(self.singular_values[-1]) if len(self.singular_values) else float("nan")
        way = ", ".join(f"{name} {x:+.3f}" for name, x in largest_entries(self.direction))
        out = f"t = {self.t:.9g} s: rank {self.rank} instead of {self.rank_before}, smallest singular value {low:.2g}"
        return out + (f"; left along {way}" if way else "") + (f". {self.text}" if self.text else "")


@dataclass(frozen=True, eq=False)
class EventRecord:
    """A guard function that passed through zero.

    Attributes:
        name: of the event.
        t: when [s].
        q: positions then.
        v: velocities just before its action.
        direction: +1 rising, -1 falling.
        action: what was done, in words; empty if it was only recorded.
        energy: change of the kinetic energy by an impact [J].
        impulses: of an impact, by constraint, one for each of its rows [N s or N m s].
    """

    name: str
    t: float
    q: np.ndarray
    v: np.ndarray
    direction: int
    action: str = ""
    energy: float = 0.0
    impulses: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Name, time and what was done."""
        way = "rising" if self.direction > 0 else "falling"
        return f"t = {self.t:.9g} s: {self.name} ({way})" + (f": {self.action}" if self.action else "")


def largest_entries(values: Mapping[str, float], count: int = 4) -> list[tuple[str, float]]:
    """The entries largest in magnitude, in their own order."""
    kept = sorted(values, key=lambda name: -abs(values[name]))[:count]
    return [(name, values[name]) for name in values if name in kept]


def where(layout: Layout, q: np.ndarray, count: int = 4) -> str:
    """The place of a machine in words, for texts: "A = 0.3, B = 1.2 and 5 more"."""
    parts = [f"{name} = {value:.6g}" for name, value in zip(layout.q_names[:count], q[:count], strict=False)]
    more = layout.nq - len(parts)
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")
