"""The command line: each command calls public functions, prints what they return and exits accordingly."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from typing import Any

import sarrus
from sarrus.analysis import command as diagnose_command
from sarrus.analysis import compare_command, map_command
from sarrus.cli import simulate
from sarrus.cli.models import ABOUT, load_model
from sarrus.errors import SarrusError
from sarrus.model import library

__all__ = ["load_model", "main"]

_SILENT = logging.NullHandler()  # what is logged is printed as well: once is enough


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after `sarrus`; those of the process if None.

    Returns:
        The exit code: 0 fine; 1 the machine has problems, or its motion could not be computed well; 2 the call was
        wrong, or a file could not be written; 130 interrupted from the keyboard.
    """
    logging.getLogger("sarrus").addHandler(_SILENT)
    options = _parser().parse_args(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has gone: there is nobody left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        print("sarrus: interrupted", file=sys.stderr)
        return 130
    except (SarrusError, OSError) as error:
        if getattr(options, "json", False):
            print(json.dumps({"error": str(error)}))
        else:
            print(f"sarrus: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sarrus", description="Machines whose parts are tied together: model, check, simulate."
    )
    parser.add_argument("--version", action="version", version=f"sarrus {sarrus.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, run: Any, text: str, more: str = "") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=f"{text} {more}".strip())
        sub.add_argument("--json", action="store_true", help="print JSON instead of text")
        sub.set_defaults(run=run)
        return sub

    command("list", _list, "List the machines of the library.")
    check = command("check", _check, "Counts, mobility, rank, redundant rows and problems of a machine.")
    check.add_argument("model", help=ABOUT)
    doctor = command("diagnose", _diagnose, "What is wrong, redundant, singular or indeterminate, and what to change.")
    doctor.add_argument("model", help=ABOUT)
    diagnose_command.add_arguments(doctor)
    singular = command("map", _map, "Singular positions over one or two coordinates, on all branches.")
    map_command.add_arguments(singular)
    side = command("compare", _compare, "Formulations and solvers side by side on the motion from the assembled start.")
    compare_command.add_arguments(side)
    run = command(
        "simulate", simulate.run, "Simulate a machine, check the motion and write it to files.", simulate.MORE
    )
    simulate.add_arguments(run)
    demo = command("demo", _demo, "Simulate a slider-crank through its singular positions and show what is found.")
    demo.add_argument("--folder", default=".", help="where sarrus-demo.html and sarrus-demo.png go; here if not given")
    return parser


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


def _diagnose(options: argparse.Namespace) -> int:
    return diagnose_command.run(options, load_model)


def _map(options: argparse.Namespace) -> int:
    result = map_command.run(options, load_model)
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    return 0


def _compare(options: argparse.Namespace) -> int:
    return compare_command.run(options, load_model(options.model))


def _demo(options: argparse.Namespace) -> int:
    from sarrus.demo import demo

    result = demo(options.folder)
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    if not result.ok:
        return 1
    return 0 if "animate" in result.files else 2  # the figure is left out where matplotlib is missing
