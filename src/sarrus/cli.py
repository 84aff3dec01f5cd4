"""The command line: each command calls one public function, prints what it returns and exits accordingly."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import sarrus
from sarrus.analysis import map_command
from sarrus.errors import SarrusError, UnknownNameError
from sarrus.model import library


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after `sarrus`; those of the process if None.

    Returns:
        The exit code: 0 fine, 1 the machine has problems, 2 the call was wrong.
    """
    options = _parser().parse_args(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has gone: there is nobody left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except (SarrusError, OSError) as error:
        if getattr(options, "json", False):
            print(json.dumps({"error": str(error)}))
        else:
            print(f"sarrus: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sarrus", description="Machines whose parts are tied together: model, check, compute."
    )
    parser.add_argument("--version", action="version", version=f"sarrus {sarrus.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--json", action="store_true", help="print JSON instead of text")
        sub.set_defaults(run=run)
        return sub

    command("list", _list, "List the machines of the library.")
    check = command("check", _check, "Counts, mobility, rank, redundant rows and problems of a machine.")
    check.add_argument("model", help="a library name, or file.py:function that returns a Mechanism or Lagrangian")
    singular = command("map", _map, "Singular positions over one or two coordinates, on all branches.")
    map_command.add_arguments(singular)
    command("demo", _demo, "Assemble a slider-crank, also at its singular position, and print what is found.")
    return parser


def load_model(text: str) -> Any:
    """The machine that a MODEL argument means.

    Args:
        text: a library name, or `file.py:function`.

    Returns:
        What the library or the function builds.
    """
    path, _, function = text.rpartition(":")
    if path.endswith(".py") and function:
        return _from_file(Path(path), function)
    if text.endswith((".xml", ".urdf", ".mjcf")):
        raise SarrusError(f"{text!r}: robot description files cannot be read yet; use file.py:function")
    if text.endswith(".py"):
        raise SarrusError(f"{text!r}: add the function that builds the machine, as in {text}:build")
    try:
        return library.build(text)
    except UnknownNameError as error:
        raise SarrusError(f"{error} Or name a function of your own: file.py:function.") from error


def _from_file(path: Path, function: str) -> Any:
    if not path.is_file():
        raise SarrusError(f"{str(path)!r}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        build = getattr(module, function, None)
        if not callable(build):
            known = ", ".join(n for n, x in vars(module).items() if callable(x) and not n.startswith("_"))
            raise SarrusError(f"{str(path)!r} has no function {function!r}; it has: {known or 'none'}")
        return build()
    except SarrusError:
        raise
    except Exception as error:  # whatever the user's own code raises, said with the place
        raise SarrusError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))


def _place(error: Exception, path: Path) -> str:
    """File and line of the user's code in which an error arose."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == str(path):
            line = frame.lineno
    return f"{str(path)!r}, line {line}" if line else repr(str(path))


def _list(options: argparse.Namespace) -> int:
    rows = [{"name": name, "about": library.summary(name)} for name in library.names()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("machine", "what it is", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["about"])
    Console().print(table)
    return 0


def _check(options: argparse.Namespace) -> int:
    result = sarrus.check(load_model(options.model))
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    return 1 if result.problems else 0


def _map(options: argparse.Namespace) -> int:
    result = map_command.run(options, load_model)
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    return 0


def _demo(options: argparse.Namespace) -> int:
    from sarrus.demo import demo

    result = demo()
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    return 0
