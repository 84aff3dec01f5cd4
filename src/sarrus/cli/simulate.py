"""`sarrus simulate`: assemble a machine, let it move, check the motion, and write it to files."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sarrus
from sarrus.cli import records
from sarrus.cli.models import ABOUT, load_model
from sarrus.errors import SarrusError

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.dynamics.system import System
    from sarrus.simulation.audit import Audit
    from sarrus.simulation.trajectory import Trajectory

MORE = (
    "Values are given by name as NAME=NUMBER, several of them by repeating the option, a quaternion as "
    "NAME=1,0,0,0. Exit code 0: fine; 1: the run failed, or its audit found errors; 2: wrong call, or a file could "
    "not be written."
)
METHODS = (
    "dop853 (the default), dopri5, radau (stiff machines); with --dt: rk4, euler, variational; for "
    "differential-algebraic forms: radau, ida, and with --dt: generalized-alpha"
)
FORMS = (  # all of sarrus.formulations(), which would take its time to import
    "projection, projection-symmetric, projection-scaled, virtual-mass, quasi-velocity, null-space, generalised, "
    "multiplier, gauss, reduction, baumgarte, regularised (rk4 or euler); differential-algebraic: index-1, index-2, "
    "ggl, ggl-implicit, index-3, coordinate-split"
)
# option -> (endings of its files, method of a trajectory that writes them); the record itself comes first
FILES = {
    "out": ((".nc", ".csv"), "save"),
    "report": ((".html", ".htm"), "report"),
    "animate": ((".html", ".htm"), "animate"),
    "plot": ((".png", ".svg", ".pdf"), "plot"),
}
TOLERANCE = 1e-6  # relative errors that an audit may find
SPREAD = 1000.0  # errors of accelerations and energy may be so many times rtol
FEW = 6  # names or records shown of each kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""

    def add(name: str, metavar: str, text: str, kind: Any = str, **more: Any) -> None:
        parser.add_argument(f"--{name}", metavar=metavar, help=text, type=kind, **more)

    parser.add_argument("model", help=ABOUT)
    add("t-end", "T", "when to stop [s]", float, required=True)
    add("set", "A=0.3", "a position at the start; the others are found", action="append")
    add("velocity", "A=2", "a velocity at the start", action="append")
    add("input", "A=1.5", "a constant input", action="append")
    add("param", "L1=1.2", "the value of a parameter", action="append")
    add("active", "D=off", "a constraint to switch off (or on)", action="append")
    add("method", "NAME", METHODS)
    add("formulation", "NAME", f"how the equations are written: {FORMS}")
    add("rtol", "R", "relative tolerance (1e-8)", float)
    add("atol", "E", "absolute tolerance (rtol times the size of each coordinate)", float)
    add("dt", "H", "length of fixed steps [s]", float)
    add("max-step", "H", "longest step [s]", float)
    add("max-steps", "N", "most steps of the run", int)
    add("crossing", "RULE", "at singular positions: continue (the default), stop or release")
    add("drift", "RULE", "loop errors: project (the default), baumgarte or free")
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--output-step", metavar="H", type=float, help="record every so many seconds, not every step")
    times.add_argument("--samples", metavar="N", type=int, help="record N times, evenly spread from start to end")
    add("out", "run.nc", "write the motion as .nc (netCDF) or .csv")
    add("report", "out.html", "write a report: animation, figure, audit, tables")
    add("animate", "out.html", "write a 3-D animation")
    add("plot", "out.png", "draw the figure as .png, .svg or .pdf")


def run(options: argparse.Namespace) -> int:
    """Do what the command line asks for."""
    files = _files(options)
    system, start = _start(options)
    times = _times(options, start.t)
    given = {key: getattr(options, key) for key in ("formulation", "method", "rtol", "atol", "dt", "max_step",
                                                    "max_steps", "crossing", "drift")}  # fmt: skip
    given = {key: value for key, value in given.items() if value is not None} | times
    inputs, active = _values(options, "input"), _switches(options)
    traj = sarrus.simulate(system, start, options.t_end, inputs=inputs, active=active, **given)
    audit, bad = _judged(traj)
    if not options.json:  # before the files, which may take their time
        with contextlib.suppress(BrokenPipeError):  # who reads no further wants the files all the same
            print(_text(traj, audit, bad, _asked(options)), flush=True)
    written, failed = write(traj, files)
    if options.json:
        print(json.dumps(_record(traj, audit, bad, written, failed), indent=1, allow_nan=False))
    else:
        for path in written.values():
            print(f"written: {path}")
    for text in failed:
        print(f"sarrus: {text}", file=sys.stderr)
    return 1 if bad else 2 if failed else 0


# --- what is asked for -----------------------------------------------------------------------------------------------
def _start(options: argparse.Namespace) -> tuple[System, State]:
    """The machine with its parameters, assembled."""
    system = sarrus.compile(load_model(options.model))
    parameters = _values(options, "param")
    if parameters:
        system = system.with_parameters(**parameters)
    positions, velocities = _values(options, "set"), _values(options, "velocity")
    return system, system.assemble(positions, velocities=velocities, active=_switches(options))


def _pairs(options: argparse.Namespace, name: str, expected: str, example: str) -> Iterator[tuple[str, str]]:
    """(name, text of the value) for each time that an option was given."""
    seen = set()
    for text in getattr(options, name) or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise SarrusError(f"--{name} {text!r}: expected {expected}, as in --{name} {example}")
        if key in seen:
            raise SarrusError(f"--{name} {text!r}: {key!r} was given before; expected each name once")
        seen.add(key)
        yield key, value


def _values(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Numbers by name, lists of them where there are commas."""
    out: dict[str, Any] = {}
    for key, text in _pairs(options, name, "NAME=NUMBER", "A=0.3"):
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise SarrusError(f"--{name} {key}={text}: {text!r} is no number; expected NAME=NUMBER") from None
        out[key] = numbers[0] if len(numbers) == 1 else numbers
    return out


def _switches(options: argparse.Namespace) -> dict[str, bool]:
    out = {}
    for key, text in _pairs(options, "active", "NAME=on or NAME=off", "D=off"):
        if text.lower() not in ("on", "off"):
            raise SarrusError(f"--active {key}={text}: expected on or off, got {text!r}")
        out[key] = text.lower() == "on"
    return out


def _times(options: argparse.Namespace, begin: float) -> dict[str, Any]:
    """The output setting, if one was given."""
    import numpy as np

    end, step, count = options.t_end, options.output_step, options.samples
    if (step is None and count is None) or not end > begin:
        return {}
    if step is not None:
        if not (np.isfinite(step) and step > 0):
            raise SarrusError(f"--output-step {step:g}: expected a positive number of seconds")
        times = begin + step * np.arange(int((end - begin) / step * (1 + 1e-12)) + 1)
        return {"output": np.minimum(times, end)}
    if count < 2:
        raise SarrusError(f"--samples {count}: expected 2 or more")
    return {"output": np.linspace(begin, end, count)}


def _files(options: argparse.Namespace) -> dict[str, Path]:
    """Path of each file to be written; wrong endings are refused before anything is computed."""
    out: dict[str, Path] = {}
    for name, (endings, _) in FILES.items():
        if getattr(options, name) is None:
            continue
        path = Path(getattr(options, name))
        if path.suffix.lower() not in endings:
            raise SarrusError(f"--{name} {str(path)!r}: expected a name that ends in {' or '.join(endings)}")
        for other, taken in out.items():
            if taken.absolute() == path.absolute():
                raise SarrusError(f"--{name} {str(path)!r}: --{other} writes this file too; expected different names")
        out[name] = path
    return out


def _asked(options: argparse.Namespace) -> list[str]:
    """What the call changes, in words."""
    named = {"inputs": options.input, "parameters": options.param, "constraints": options.active}
    return [f"{what}: {', '.join(texts)}" for what, texts in named.items() if texts]


# --- what was found --------------------------------------------------------------------------------------------------
def _judged(traj: Trajectory) -> tuple[Audit | None, str]:
    """The audit, and what is wrong with the run; nothing may keep a result from being printed."""
    try:
        audit = traj.audit()
        audit.raise_above(limits(traj))
    except sarrus.AuditError as error:
        return error.audit, str(traj.status) if not traj.status.ok else str(error)
    except Exception as error:  # a run that failed may have left nothing that can be audited
        return None, str(traj.status) if not traj.status.ok else f"no audit: {type(error).__name__}: {error}"
    return audit, "" if traj.status.ok else str(traj.status)


def limits(traj: Trajectory) -> dict[str, float]:
    """How large each relative error of an audit may be, given what was asked of the run."""
    rtol = traj.settings.get("rtol")
    loose = max(TOLERANCE, SPREAD * rtol) if rtol else TOLERANCE
    out = {"loop": TOLERANCE, "velocity": TOLERANCE, "acceleration": loose, "motion": loose}
    # the energy error of fixed steps depends on their length alone, which the user has chosen
    return out | ({"energy": loose} if rtol else {})


def _text(traj: Trajectory, audit: Audit | None, bad: str, asked: Sequence[str]) -> str:
    """The result for a person."""
    first, last = traj.state(0), traj.final
    lines = [f"{traj.system.name}: {traj.t[0]:g} to {traj.t[-1]:.9g} s, {len(traj)} rows", f"  start  {_place(first)}"]
    lines += [f"  {text}" for text in asked]
    lines += [f"  end    {_place(last)}", "", str(traj.status), str(traj.stats)]
    if traj.crossings:
        lines += ["", f"{len(traj.crossings)} singular positions crossed:"]
        lines += [f"  {crossing}" for crossing in traj.crossings[:FEW]]
        lines += [f"  … and {len(traj.crossings) - FEW} more"] if len(traj.crossings) > FEW else []
    lines += ["", str(audit)] if audit else []
    verdict = "fine" if not bad else "the run failed" if not traj.status.ok else bad
    return "\n".join([*lines, "", f"result: {verdict}"])


def _place(state: State) -> str:
    x = state.layout
    q = [f"{name} = {value:.6g}" for name, value in zip(x.q_names[:FEW], state.q, strict=False)]
    v = [f"{name} = {value:.6g}" for name, value in zip(x.v_names[:FEW], state.v, strict=False)]
    more = [" …" if count > FEW else "" for count in (x.nq, x.nv)]
    return f"{', '.join(q)}{more[0]}; velocities {', '.join(v)}{more[1]}"


def _record(
    traj: Trajectory, audit: Audit | None, bad: str, written: Mapping[str, Path], failed: Sequence[str]
) -> dict[str, Any]:
    """The result for a program."""
    found = records.of_audit(audit) | {"ok": audit.ok(limits(traj)), "limits": limits(traj)} if audit else None
    more = {"audit": found, "files": {name: str(path) for name, path in written.items()}}
    return records.of_trajectory(traj) | more | {"problem": bad, "errors": list(failed)}


# --- files -----------------------------------------------------------------------------------------------------------
def write(traj: Trajectory, files: Mapping[str, Path]) -> tuple[dict[str, Path], list[str]]:
    """Write what can be written: the files that are there, and a sentence for each that is not.

    Args:
        traj: the motion.
        files: path by what it is, as in `FILES`.
    """
    written: dict[str, Path] = {}
    failed: list[str] = []
    for name, path in files.items():
        try:
            getattr(traj, FILES[name][1])(path)
            written[name] = path
        except (Exception, KeyboardInterrupt) as error:  # whatever it is, the rest is still wanted
            rescued = _rescue(traj, path) if name == "out" else ""
            failed.append(f"cannot write {str(path)!r}: {_said(error, path)}{rescued}")
    return written, failed


def _said(error: BaseException, path: Path) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SarrusError):
        return str(error).removeprefix(f"cannot write {str(path)!r}: ")
    if isinstance(error, OSError):
        return f"{error.strerror or error}; expected a folder that exists, may be written to and has room"
    return f"{type(error).__name__}: {error}"


def _rescue(traj: Trajectory, path: Path) -> str:
    """The motion, saved where there is room: a long run is not lost for a wrong path."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="sarrus-"))
    except OSError:
        return ""
    try:
        traj.save(folder / f"{path.stem}.csv")
    except (SarrusError, OSError):
        folder.rmdir()
        return ""
    return f". The motion is saved as {str(folder / f'{path.stem}.csv')!r}"
