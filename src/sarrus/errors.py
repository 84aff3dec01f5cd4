"""Every error that Sarrus raises on purpose.

All of them derive from `SarrusError`. A text names the culprit, says what was expected and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence


class SarrusError(Exception):
    """Base of all errors raised on purpose."""


class ModelError(SarrusError):
    """A description that cannot become a machine; carries every problem found, not only the first.

    Attributes:
        problems: one sentence for each problem, each naming the part at fault.
    """

    def __init__(self, name: str, problems: Sequence[str]):
        """Collect the problems of the machine called `name`."""
        self.problems = tuple(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "\n".join(f"  {k}. {text}" for k, text in enumerate(self.problems, 1))
        super().__init__(f"{name}: {len(self.problems)} {noun} in the description:\n{lines}")


class UnknownNameError(SarrusError, KeyError):
    """A name that the machine does not have; the text lists the names it does have."""

    def __init__(self, what: str, name: object, known: Sequence[str]):
        """Name the unknown thing and list the known ones, nearest first."""
        import difflib

        near = difflib.get_close_matches(str(name), list(known), n=3)
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        listing = ", ".join(map(repr, list(known)[:30])) or "none"
        more = "" if len(known) <= 30 else f" … and {len(known) - 30} more"
        self.text = f"unknown {what} {name!r}.{hint} Known: {listing}{more}."
        super().__init__(self.text)

    def __str__(self) -> str:
        """The plain text (KeyError would show its repr)."""
        return self.text


class StateError(SarrusError, ValueError):
    """Positions, velocities or inputs of the wrong shape, or not finite, or not consistent with the machine."""


class AssemblyError(SarrusError):
    """The closures cannot be satisfied.

    Attributes:
        residuals: largest residual of each constraint group, in the group's own unit.
        q: the best positions found.
    """

    def __init__(self, text: str, residuals: dict[str, float] | None = None, q: object = None):
        """Keep the evidence beside the text."""
        self.residuals = residuals or {}
        self.q = q
        super().__init__(text)


class CompilerError(SarrusError):
    """There is no C compiler, or it failed."""
