"""Run settings in processes of their own, with a limit of processor time, and time the solution alone.

Each run happens in a fork: a crash, a hang or a leak stays there, and what was prepared (compiled functions, models) is
at hand without being built again.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import pickle
import resource
import statistics
import time
import warnings
from dataclasses import dataclass, field

from bench.workprec.contestant import Failed, Method, Run
from bench.workprec.problems import Accuracy, Problem, accuracy

CLOCK = time.thread_time  # solvers have one thread; the clock of the process is coarse where its time is limited
SHORT = 0.1  # runs shorter than this are repeated until so much time is spent [s]
LONG = 1.0  # runs longer than this are measured once [s]
GOOD_ENOUGH = 1e-11  # no finer settings after this error
FLAT = 3  # nor after so many settings in a row that were no better than the best before,
BROKEN = {"rtol": 5, "step [s]": 9}  # or that failed


@dataclass
class Point:
    """One setting of one method.

    Attributes:
        setting: tolerance or step.
        times: seconds of processor time, one for each round.
        accuracy: errors, None if it failed.
        failure: why.
    """

    setting: float
    times: list[float] = field(default_factory=list)
    accuracy: Accuracy | None = None
    failure: str = ""

    @property
    def seconds(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.times) if self.times else math.inf

    @property
    def pair(self) -> tuple[float, float]:
        """(error, seconds)."""
        return (self.accuracy.error if self.accuracy else math.inf), self.seconds


@dataclass
class Curve:
    """All settings of one method on one problem.

    Attributes:
        method: what ran.
        points: in the order of the settings.
        setup: seconds of the clock on the wall to derive, compile and build, for the first setting.
        end: why there are no finer settings.
    """

    method: Method
    points: list[Point] = field(default_factory=list)
    setup: float = 0.0
    end: str = ""


def sweep(problem: Problem, method: Method, limit: float, isolate: bool = True) -> Curve:
    """From coarse to fine until it is good enough, too long, or no longer gets better."""
    curve = Curve(method)
    best, flat, broken, before = math.inf, 0, 0, 0.0
    for index, setting in enumerate(method.settings):
        growth = method.settings[index - 1] / setting if method.knob != "rtol" and index else 1.0
        if before * growth > limit:
            curve.end = f"{method.knob} {setting:.3g} would take more than {limit:g} s"
            break
        start = time.perf_counter()
        try:
            run = method.prepare(setting)
        except Failed as error:
            curve.end = str(error)
            break
        if index == 0:
            curve.setup = time.perf_counter() - start
        point = once(problem, run, setting, limit, isolate)
        curve.points.append(point)
        before = point.seconds if point.times else 0.0
        error = point.pair[0]
        broken = 0 if point.accuracy else broken + 1
        if point.accuracy:
            flat = 0 if error < 0.9 * best else flat + 1
        best = min(best, error)
        if "limit" in point.failure:
            curve.end = point.failure
        elif best < GOOD_ENOUGH:
            curve.end = "good enough"
        elif flat >= FLAT:
            curve.end = "finer settings are no better"
        elif broken >= BROKEN[method.knob]:
            curve.end = point.failure
        if curve.end:
            break
    return curve


def repeat(problem: Problem, curve: Curve, limit: float) -> None:
    """One more round of every point that worked and is not long."""
    for point in curve.points:
        if point.accuracy is not None and point.times[0] < LONG:
            again = once(problem, curve.method.prepare(point.setting), point.setting, limit)
            point.times += again.times


def once(problem: Problem, run: Run, setting: float, limit: float, isolate: bool = True) -> Point:
    """Solve, time and judge one setting."""
    kind, value = _forked(problem, run, limit) if isolate else _attempt(problem, run)
    if kind == "failed":
        return Point(setting, failure=value)
    seconds, errors = value
    if not math.isfinite(errors.error):
        return Point(setting, [seconds], failure="the result is not finite, or ends early")
    return Point(setting, [seconds], errors)


def _attempt(problem: Problem, run: Run):
    """("done", (seconds, errors)) or ("failed", why)."""
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            times = []
            while True:
                given = () if run.fresh is None else (run.fresh(),)
                start = CLOCK()
                found = run.solve(*given)
                times.append(CLOCK() - start)
                if sum(times) >= SHORT or len(times) >= 50:
                    break
            warm = times[1:] or times  # the first call touches memory and caches for the first time
            return "done", (statistics.median(warm), accuracy(problem, run.observe(found)))
    except Exception as error:  # whatever a peer raises is its result
        text = " ".join(str(error).split())
        return "failed", f"{type(error).__name__}: {text[:200]}" if not isinstance(error, Failed) else text[:200]
    finally:
        gc.enable()


def _forked(problem: Problem, run: Run, limit: float):
    """`_attempt` in a child that is ended after `limit` seconds of processor time."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(receive)
            _quiet()
            seconds = math.ceil(1.5 * limit + 2 * SHORT)  # a little more than the limit: it is judged below
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with os.fdopen(send, "wb") as stream:
                pickle.dump(_attempt(problem, run), stream)
            code = 0
        finally:
            os._exit(code)
    os.close(send)
    with os.fdopen(receive, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        return pickle.loads(data)  # our own child wrote it
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (9, 24):
        return "failed", f"not within the limit of {limit:g} s"
    return "failed", f"its process ended without an answer (status {status})"


def _quiet() -> None:
    """Solvers in C print to the terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
