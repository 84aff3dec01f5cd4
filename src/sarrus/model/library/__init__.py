"""Machines by name. Each module here builds one, and is the example of how to build such a thing."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from sarrus.errors import UnknownNameError
from sarrus.model.mechanism import Mechanism

_NAMES = (
    "pendulum", "particle_on_circle", "cartesian_on_circle", "slider_crank", "four_bar", "n_four_bar",
    "andrews", "bricard", "flyball", "parallelogram", "arm_on_curve", "geared_chain", "planar_platform",
    "underactuated_chain", "five_bar", "stewart", "delta", "sarrus", "bennett", "spherical_four_bar",
    "rolling_disc", "two_arms",
)  # fmt: skip


def names() -> tuple[str, ...]:
    """The names of all machines that `build` knows."""
    return _NAMES


def summary(name: str) -> str:
    """One line about a machine.

    Args:
        name: one of `names()`.
    """
    if name not in _NAMES:
        raise UnknownNameError("machine", name, _NAMES)
    return (import_module(f"{__name__}.{name}").__doc__ or "").strip().splitlines()[0].rstrip(".")


def build(name: str, **parameters: Any) -> Mechanism:
    """Build a machine of the library.

    Args:
        name: one of `names()`.
        parameters: keywords of the function of that name; all have defaults.

    Returns:
        The machine as a builder: add to it, or hand it to `compile`.

    Raises:
        UnknownNameError: no machine has this name.
        TypeError: the machine has no such parameter.
    """
    if name not in _NAMES:
        raise UnknownNameError("machine", name, _NAMES)
    function = getattr(import_module(f"{__name__}.{name}"), name)
    accepted = signature(function).parameters
    for keyword in parameters:
        if keyword not in accepted:
            raise TypeError(f"machine {name!r} has no parameter {keyword!r}; it takes: {', '.join(accepted) or 'none'}")
    return function(**parameters)
