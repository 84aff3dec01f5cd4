"""The command `sarrus compare MODEL`."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command.

    Args:
        parser: of the command.
    """
    parser.add_argument("model", help="a library name, or file.py:function that returns a Mechanism or Lagrangian")
    parser.add_argument("--time", type=float, default=1.0, metavar="S", help="length of the motion [s] (1)")
    parser.add_argument("--formulations", metavar="A,B", help="names, with commas between (all)")
    parser.add_argument("--solvers", metavar="A,B", help="methods of simulate, with commas between (those that suit)")
    parser.add_argument("--rtol", type=float, default=1e-6, help="relative tolerance (1e-6)")
    parser.add_argument("--dt", type=float, metavar="S", help="fixed step [s] (a 2000th of the motion)")
    parser.add_argument("--plot", metavar="FILE", help="draw an image too")


def run(options: argparse.Namespace, machine: Any) -> int:
    """Compare, print and perhaps draw.

    Args:
        options: what was asked for.
        machine: a `Mechanism` or `Lagrangian`.

    Returns:
        The exit code: 0 if every run finished, else 1.
    """
    from sarrus.analysis.compare import compare
    from sarrus.dynamics.compile import compile

    system = compile(machine)
    chosen = {
        key: None if text is None else [part.strip() for part in text.split(",") if part.strip()]
        for key, text in (("formulations", options.formulations), ("solvers", options.solvers))
    }
    result = compare(system, system.assemble(), options.time, **chosen, rtol=options.rtol, dt=options.dt)
    print(json.dumps(result.to_dict(), indent=1) if options.json else result)
    if options.plot:
        result.plot(options.plot)
    return 0 if all(entry.status == "finished" for entry in result.entries) else 1
