"""`sarrus diagnose MODEL`: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sarrus.errors import AssemblyError, CompilerError, ModelError, SarrusError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command, besides the model and --json."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="positions",
        help="hold a coordinate at this value when assembling; may be repeated",
    )  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="also write the report as a web page")


def run(options: argparse.Namespace, load: Callable[[str], Any]) -> int:
    """Diagnose a machine.

    Args:
        options: the parsed arguments.
        load: from the text of the model to the machine.

    Returns:
        0 if nothing is wrong as it stands, 1 if something is.
    """
    from sarrus.analysis.diagnose import diagnose
    from sarrus.dynamics.compile import compile

    machine = load(options.model)
    positions = dict(_assignment(text) for text in options.positions)
    state = None
    if positions:
        try:
            machine = compile(machine)
            state = machine.assemble(positions)
        except (ModelError, CompilerError):
            state = None  # told by the diagnosis
        except AssemblyError as error:
            raise SarrusError(f"--set: {error}") from error
    found = diagnose(machine, state)
    if options.html:
        Path(options.html).write_text(found.to_html(), encoding="utf-8")
    if options.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        from rich.console import Console

        Console().print(found)
    return 0 if found.ok else 1


def _assignment(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SarrusError(f"--set {text!r}: expected NAME=VALUE with a number, such as A=0.5") from None
