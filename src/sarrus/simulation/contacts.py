"""One-sided constraints in motion: they close and open by themselves, at fixed size.

Each has two guards. While it is open, its gap is watched; when that falls to zero the machine is hit
(`dynamics.impact`), and the constraint rebounds or closes. While it is closed, its force is watched; when that falls
to zero it opens. Rebounds lower than `settle` times the machine's length are taken as none, which ends sequences of
ever smaller ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sarrus.dynamics.impact import Impact, Side, impact, sides_of, supporting
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import UNWATCHED
from sarrus.simulation.events import Event
from sarrus.simulation.mode import Mode
from sarrus.simulation.status import EventRecord

SKIN = 1e-12  # a gap counts as closed at minus this part of the machine's length: above rounding, below all else
NEAR = 1e-9  # gaps below this part of the machine's length touch


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of the one-sided constraints at one instant.

    Attributes:
        mode: with those closed that push.
        state: after the impact, if there was one.
        records: what happened; empty if nothing did.
        flight: time until the next rebound ends [s], if there is one; infinite otherwise.
        leaving: which of the guards are at zero and about to rise.
    """

    mode: Mode
    state: State
    records: tuple[EventRecord, ...] = ()
    flight: float = np.inf
    leaving: tuple[int, ...] = ()


class Contacts:
    """The one-sided constraints of a run."""

    def __init__(self, system: System, settle: float, left_out: Collection[str]):
        """Watch all but those left out."""
        self.sides = tuple(s for s in sides_of(system) if s.name not in left_out)
        self.settle = settle
        unit = system.layout.length
        self.events: tuple[Event, ...] = tuple(e for s in self.sides for e in _guards(s, SKIN * unit))

    def directions(self, mode: Mode) -> list[int]:
        """Which way each guard is watched now: the gap of an open one, the force of a closed one."""
        out = []
        for side in self.sides:
            out += [UNWATCHED, -1] if mode.active[side.name] else [-1, UNWATCHED]
        return out

    def resolve(self, mode: Mode, state: State, u: np.ndarray, fired: Collection[int] = ()) -> Outcome:
        """What the one-sided constraints do at this instant.

        Args:
            mode: before.
            state: before.
            u: inputs.
            fired: which of `events` brought us here.
        """
        if not self.sides:
            return Outcome(mode, state)
        system, rows = mode.system, _Rows(mode, self.sides, state)
        touching = rows.touching(NEAR * system.layout.length)
        rest = self._rest(mode, state, u, rows, touching)
        hit = [s for s in touching if rows.approach[s.name] < -rest[s.name]]
        blow, rebound, plastic = None, frozenset(), frozenset()
        if hit:
            blow, rebound, plastic = self._impact(mode, state, rows.held, touching, rest)
            state = State(state.layout, state.q, blow.v, state.t)
        resting = [s for s in touching if s.name not in rebound]
        resting = [s for s in resting if abs(_approach(mode, state, s)) <= rest[s.name]]
        # those whose force falls to zero open, and open ones stay so, unless the machine would go through them
        easing = [self.sides[k // 2].name for k in fired if k % 2]
        easing += [s.name for s in resting if not mode.active[s.name]]
        closed, _ = supporting(system, state, u, rows.held, resting, easing) if resting else (frozenset(), {})
        after = Mode(system, {**mode.active, **{s.name: s.name in closed for s in self.sides}})
        changed = [s for s in self.sides if after.active[s.name] != mode.active[s.name]]
        if not changed and blow is None:
            return Outcome(mode, state)
        state = after.settled(state, np.inf)
        opened = [s for s in touching if not after.active[s.name]]
        records = (
            () if blow is None and not fired else (_record(hit, changed, after, rebound, plastic, rows, state, blow),)
        )
        leaving = tuple(2 * self.sides.index(s) for s in opened)
        return Outcome(after, state, records, _flight(after, state, u, opened), leaving)

    def _rest(self, mode: Mode, state: State, u: np.ndarray, rows: _Rows, touching: Sequence[Side]) -> dict[str, float]:
        """Normal speeds that count as rest: they lift a constraint by less than `settle` times the machine's length."""
        _, alone = supporting(mode.system, state, u, rows.held, touching) if touching else (frozenset(), {})
        units = self.settle * mode.system.units
        return {
            s.name: max(1e-9 * rows.pace[s.name], float(np.sqrt(2 * abs(alone[s.name]) * units[s.normal])))
            for s in touching
        }

    def _impact(
        self, mode: Mode, state: State, held: np.ndarray, touching: Sequence[Side], rest: Mapping[str, float]
    ) -> tuple[Impact, frozenset[str], frozenset[str]]:
        """The impact, who rebounds, and whose rebound is too low to count."""
        system, plastic = mode.system, frozenset()
        while True:
            blow = impact(system, state, held, touching, plastic)
            after = State(state.layout, state.q, blow.v, state.t)
            speeds = {s.name: _approach(mode, after, s) for s in touching}
            low = {n for n, v in speeds.items() if 1e-6 * rest[n] < v <= rest[n]} - plastic
            if not low:
                return blow, frozenset(n for n, v in speeds.items() if v > rest[n]), plastic
            plastic |= low


class _Rows:
    """Gaps and speeds of approach of the one-sided constraints at a state."""

    def __init__(self, mode: Mode, sides: Sequence[Side], state: State):
        terms = mode.system.terms(state)
        self.sides, self.mode = sides, mode
        mine = {row for s in sides for row in (s.normal, *s.others)}
        self.held = np.array([x * (k not in mine) for k, x in enumerate(mode.flags)])
        rate = terms.A @ state.v - terms.a
        size = np.abs(terms.A) @ np.abs(state.v) + np.abs(terms.a)
        floor = 1e-3 * float(np.max(np.abs(state.v), initial=0.0)) * np.abs(terms.A).max(axis=1, initial=0.0)
        self.gap = {s.name: s.sign * float(terms.phi[s.normal]) for s in sides}
        self.approach = {s.name: s.sign * float(rate[s.normal]) for s in sides}
        self.pace = {s.name: float(max(size[s.normal], floor[s.normal])) for s in sides}

    def touching(self, near: float) -> list[Side]:
        """Those that are closed, or whose gap is nothing; a gap that is clearly negative is refused."""
        for s in self.sides:
            if self.gap[s.name] < -near and not self.mode.active[s.name]:
                raise StateError(
                    f"one-sided constraint {s.name!r} is passed by {-self.gap[s.name]:.3g}; expected a start on its "
                    "own side: assemble one there, or leave it out with active={...: False}"
                )
        return [s for s in self.sides if self.mode.active[s.name] or self.gap[s.name] <= near]


def _guards(side: Side, skin: float) -> tuple[Event, Event]:
    name, sign, many = side.name, side.sign, bool(side.others)

    def gap(t, x):
        residual = x[f"{name}.residual"]
        return sign * (residual[0] if many else residual) + skin

    def force(t, x):
        lam = x[f"{name}.force"]
        return sign * (lam[0] if many else lam)

    return Event(f"{name} closes", gap, -1), Event(f"{name} opens", force, -1)


def _approach(mode: Mode, state: State, side: Side) -> float:
    terms = mode.system.terms(state)
    return side.sign * float(terms.A[side.normal] @ state.v - terms.a[side.normal])


def _flight(mode: Mode, state: State, u: np.ndarray, opened: Sequence[Side]) -> float:
    """The shortest time after which one of these comes back, accelerations staying as they are."""
    if not opened:
        return np.inf
    terms = mode.system.terms(state)
    along = terms.A @ mode.system.acceleration(state, u, active=mode.active) - terms.gamma
    pairs = [(_approach(mode, state, s), s.sign * float(along[s.normal])) for s in opened]
    return min((-2 * v / a for v, a in pairs if v > 0 and a < 0), default=np.inf)


def _record(hit, changed, after, rebound, plastic, rows, state, blow) -> EventRecord:
    parts, names = [], dict.fromkeys(s.name for s in (*hit, *changed))
    for name in names:
        speed = f"hit at {-rows.approach[name]:.6g}" if name in {s.name for s in hit} else ""
        if name in rebound:
            fate = "rebounds"
        elif after.active[name]:
            fate = "comes to rest" if name in plastic else "closes"
        else:
            fate = "opens"
        parts.append(f"{name} {fate}" + (f" ({speed})" if speed else ""))
    lost = 0.0 if blow is None else blow.lost
    text = ", ".join(parts) + (f"; {lost:.6g} J lost" if blow is not None else "")
    layout = state.layout
    impulses = {} if blow is None else {g: blow.impulses[layout.group_rows(g)].tolist() for g in layout.groups}
    direction = 1 if all(not after.active[n] and n not in rebound for n in names) else -1
    return EventRecord(" and ".join(names), float(state.t), state.q, state.v, direction, text, -lost, impulses)
