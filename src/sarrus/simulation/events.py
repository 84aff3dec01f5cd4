"""Events: named functions whose passing through zero is located, reported and may change the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarrus.dynamics.state import State, checked_array
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.simulation.callbacks import Callback, Shared, Symbols, apply, arity, defined_at, numbers
from sarrus.simulation.moment import Moment


@dataclass(frozen=True)
class Change:
    """What an event does to the machine.

    Attributes:
        active: constraint name -> on or off. A constraint that is switched on must hold in position; the velocities
            that break it vanish in the least change of kinetic energy, as in a plastic impact.
        velocities: new velocities by name (a velocity jump), or a full vector; the constraints are then satisfied by
            the least change of kinetic energy.
        parameters: new parameter values by name.
        stop: whether the run ends here.
    """

    active: Mapping[str, bool] = field(default_factory=dict)
    velocities: Any = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    stop: bool = False

    def __post_init__(self) -> None:
        """Refuse lists where names with values belong."""
        for what, values in (("active", self.active), ("parameters", self.parameters)):
            if not isinstance(values, Mapping):
                raise StateError(f"Change: {what} must map names to values, got {values!r}")


@dataclass(frozen=True)
class Event:
    """A guard whose passing through zero matters.

    Guards are looked at four times in each step. One that passes zero and comes back within a quarter of a step may go
    unseen: limit the steps with `max_step` if that can happen. A guard that is zero where a run starts does not fire
    there.

    Attributes:
        name: for the record.
        guard: function f(t), f(t, x) or f(t, q, v) of the motion; x is a `Moment`: x["A"], x["A.v"], x["D.force"] ...
        direction: +1 only when rising, -1 only when falling, 0 both.
        terminal: whether the run ends here.
        action: a `Change`, or a function of the same arguments as a guard that returns one (or None); None: record.
    """

    name: str
    guard: Callable[..., Any]
    direction: int = 0
    terminal: bool = False
    action: Any = None

    def __post_init__(self) -> None:
        """Refuse what cannot be watched."""
        if not isinstance(self.name, str) or not self.name:
            raise StateError(f"event: expected a name, got {self.name!r}; use sr.Event(name, guard)")
        if not callable(self.guard):
            raise StateError(f"event {self.name!r}: guard must be a function of (t), (t, x) or (t, q, v)")
        if self.direction not in (-1, 0, 1):
            raise StateError(f"event {self.name!r}: direction must be -1, 0 or +1, got {self.direction!r}")
        if not (self.action is None or isinstance(self.action, Change) or callable(self.action)):
            raise StateError(f"event {self.name!r}: action must be a Change, a function that returns one, or None")


def checked_events(system: System, events: Sequence[Event] | Event | None) -> tuple[Event, ...]:
    """Events as a tuple, with names that differ and changes that name what the machine has."""
    out = (events,) if isinstance(events, Event) else tuple(events or ())
    for event in out:
        if not isinstance(event, Event):
            raise StateError(f"events: expected sr.Event(name, guard), got {event!r}")
        if isinstance(event.action, Change):
            _check_names(system, event.action)
        elif event.action is not None:
            arity(event.action, f"action of event {event.name!r}")
    names = [event.name for event in out]
    for name in names:
        if names.count(name) > 1:
            raise StateError(f"events: the name {name!r} is used {names.count(name)} times; names must differ")
    return out


def _check_names(system: System, change: Change) -> None:
    for name in change.active:
        system.layout.group_rows(name)
    system.with_parameters(**change.parameters)
    new_velocities(system, np.zeros(system.layout.nv), change.velocities)


def new_velocities(system: System, v: np.ndarray, values: Any) -> np.ndarray:
    """Velocities v with those that a change names replaced."""
    if hasattr(values, "items"):
        from sarrus.dynamics.positions import hold

        return hold(system, v, values, "v")[0]
    return v if values is None else checked_array("velocities", values, system.layout.nv, system.layout.v_names)


def make_guards(events: Sequence[Event], start: State, t_end: float, shared: Shared) -> Callback | None:
    """The guards of all events as one function."""
    if not events:
        return None
    import casadi as ca

    x, p = shared.system.layout, shared.system.p
    whats = [f"guard of event {event.name!r}" + defined_at(event.guard) for event in events]
    calls = [_caller(event, what) for event, what in zip(events, whats, strict=True)]
    probes = [
        [np.array([t]), start.q, start.v * k, np.linspace(1, 2, x.m), np.linspace(-1, 1, x.nu), p]
        for k, t in enumerate((start.t, start.t + 0.381966 * (t_end - start.t)), 1)
    ]

    def values(moment: Moment) -> np.ndarray:
        out = np.zeros(len(events))
        for k, (call, what) in enumerate(zip(calls, whats, strict=True)):
            shared.what = what
            out[k] = numbers(call(moment), 1, what)[0]
        return out

    def trace(symbols: Symbols) -> Any:
        traced = [symbols.trace(call, 1, probes) for call in calls]
        return None if any(part is None for part in traced) else ca.vertcat(*traced)

    return Callback("guard", values, trace, shared)


def _caller(event: Event, what: str) -> Callable[[Moment], Any]:
    count = arity(event.guard, what)
    return lambda x: apply(event.guard, count, x)


def change_of(event: Event, moment: Moment) -> Change:
    """What an event asks for at a moment."""
    change = event.action
    if callable(change):
        change = apply(change, arity(change, f"action of event {event.name!r}"), moment)
    if change is None:
        change = Change()
    if not isinstance(change, Change):
        raise StateError(f"action of event {event.name!r}: expected an sr.Change or None, got {change!r}")
    return Change(change.active, change.velocities, change.parameters, change.stop or event.terminal)


def describe(change: Change) -> str:
    """A change in words."""
    parts = [f"{name} switched {'on' if on else 'off'}" for name, on in change.active.items()]
    parts += [f"{name} = {value:g}" for name, value in change.parameters.items()]
    parts += ["velocities changed"] if change.velocities is not None else []
    parts += ["stop"] if change.stop else []
    return ", ".join(parts)
