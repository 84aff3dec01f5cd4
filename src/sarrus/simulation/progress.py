"""A progress bar for runs of more than two seconds on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

PATIENCE = 2.0  # seconds before anything is shown


class Progress:
    """Shows simulated time and the time remaining."""

    def __init__(self, name: str, start: float, end: float, wanted: bool | None):
        """Nothing is shown yet. `wanted`: None decides by whether standard error is a terminal."""
        self._name, self._start, self._end = name, start, end
        self._on = bool(sys.stderr and sys.stderr.isatty()) if wanted is None else wanted
        self._patience = 0.0 if wanted else PATIENCE
        self._bar: Any = None
        self._task: Any = None
        self._began = time.perf_counter()

    def __enter__(self) -> Progress:
        """Start the clock."""
        self._began = time.perf_counter()
        return self

    def show(self, t: float) -> None:
        """Note how far the run has come."""
        if not self._on or (self._bar is None and time.perf_counter() - self._began < self._patience):
            return
        from rich.errors import LiveError

        try:
            if self._bar is None:
                self._bar = self._new_bar(t)
            self._bar.update(self._task, completed=t - self._start, t=t)
        except (LiveError, OSError, ValueError):  # another display, or the terminal went away: the run matters more
            self._on = False

    def _new_bar(self, t: float) -> Any:
        from rich import progress
        from rich.console import Console

        bar = progress.Progress(
            progress.TextColumn("{task.description}"), progress.BarColumn(), progress.TaskProgressColumn(),
            progress.TextColumn("t = {task.fields[t]:.4g} s,"), progress.TimeRemainingColumn(),
            progress.TextColumn("left"), console=Console(stderr=True, force_terminal=True), transient=True,
        )  # fmt: skip
        self._task = bar.add_task(self._name, total=self._end - self._start, t=t)
        bar.start()
        return bar

    def __exit__(self, *_: Any) -> None:
        """Take the bar away."""
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.stop()
