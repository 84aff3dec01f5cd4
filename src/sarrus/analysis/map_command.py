"""What `sarrus map` does, without the command line around it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sarrus.errors import SarrusError

if TYPE_CHECKING:
    from sarrus.analysis.map_record import SingularityMap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("model", help="a library name, or file.py:function that returns a Mechanism or Lagrangian")
    parser.add_argument("--coordinates", required=True, metavar="A[,B]", help="one or two coordinates to map")
    parser.add_argument(
        "--range", action="append", default=[], metavar="A=LO:HI",
        help="range of a coordinate, such as A=-1:2.5; repeat it for the other one",
    )  # fmt: skip
    parser.add_argument(
        "--hold", action="append", default=[], metavar="NAME=VALUE", help="hold a further coordinate; may be repeated"
    )
    parser.add_argument("--inputs", metavar="A,B", help="what drives it: motors or coordinates; else all motors")
    parser.add_argument("--outputs", metavar="A,B", help="what it is for: coordinates, bodies or frames")
    parser.add_argument("--cells", type=int, help="in how many cells each range is divided to look for branches")
    parser.add_argument("--plot", metavar="FILE", help="write the picture, as .png, .svg or .pdf")


def run(options: argparse.Namespace, load: Callable[[str], Any]) -> SingularityMap:
    """The map that the arguments ask for; its picture is written if they ask for one.

    Args:
        options: the parsed arguments.
        load: gives the machine that a MODEL argument means.
    """
    from sarrus.analysis.maps import singularity_map
    from sarrus.dynamics.compile import compile

    ranges = dict(_range(text) for text in options.range)
    hold = {name: _number(text, value) for text in options.hold for name, value in [_pair(text, "--hold NAME=VALUE")]}
    if options.cells is not None and options.cells < 2:
        raise SarrusError(f"--cells {options.cells}: give at least 2")
    found = singularity_map(
        compile(load(options.model)), _names(options.coordinates) or (), ranges, inputs=_names(options.inputs),
        outputs=_names(options.outputs), hold=hold, cells=options.cells,
    )  # fmt: skip
    if options.plot:
        found.plot(options.plot)
    return found


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _pair(text: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise SarrusError(f"{text!r}: expected {form}")
    return name.strip(), value


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SarrusError(f"{text!r}: {value!r} is not a number") from None


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, value = _pair(text, "--range NAME=LO:HI")
    low, sign, high = value.partition(":")
    if not sign:
        raise SarrusError(f"{text!r}: expected --range NAME=LO:HI")
    return name, (_number(text, low), _number(text, high))
