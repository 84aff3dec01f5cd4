"""Nearly redundant rows: which joint is out of line, and by how much.

A loop that moves only because its axes are parallel, or meet, stops moving when one of them is a little off. The
constraint rows then have a small singular value, well apart from the others. Dropping it (a relaxed rank tolerance)
gives the machine that was meant, and a motion to walk along. On that walk the dropped directions z of the rows open
by zᵀΦ. If one joint sits wrong, by a small displacement ξ in its parent and another in its child, each constant in
that body, then

    zᵀ(Φ + E ξ) = 0     at every step of the walk,

with E what the rows see of a displacement of the joint: the wrench it transmits for each multiplier, transposed. For
each joint ξ is a small least-squares problem; a joint that explains the whole walk is out of line by ξ. A machine near
a singular position also has a small singular value, but one that grows along the walk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sarrus.analysis.joints import Bodies
from sarrus.dynamics.state import State
from sarrus.dynamics.system import System

SMALL = 0.03  # singular values (ordinary ones are near 1) below this are looked into
GAP = 10.0  # if the next one is this much larger
TINY = 0.003  # values below this part of the next one are reported even if no joint explains them
WALK = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # in radians, or lengths of the machine, both ways
LARGEST = 0.03  # rad, or lengths of the machine: beyond this it is another machine, not a misaligned one
EXPLAINED = 0.02  # part of the opening that may remain
EXACTLY = 1e-3  # less than this is not worth explaining
NOTHING = 1e-9  # singular values and openings below this are zero
LEAST = 1e-6  # singular values below this are told from ordinary ones as if they were this
ITERATIONS = 30
SETTLED = 1e-13  # smallest step worth taking, in radians or lengths of the machine


@dataclass(frozen=True)
class Blame:
    """A joint that explains a misfit if it alone is out of line.

    Attributes:
        joint: its name.
        angle: by how much its axis is turned [rad].
        shift: by how much its place is off [m].
    """

    joint: str
    angle: float
    shift: float


@dataclass(frozen=True)
class Misfit:
    """A small singular value, and where it comes from.

    Attributes:
        rows: names of the rows that are nearly dependent.
        singular_value: the largest small one.
        next_value: the smallest ordinary one.
        posture: true if the value grows along the motion: the machine is near a singular position.
        blamed: joints that explain it, each alone; the one that has to move least comes first. Empty if none does.
        length: of the machine, to compare angles and shifts [m].
        opening: largest residual of the rows along the walk, by row name, in the row's unit.
    """

    rows: tuple[str, ...]
    singular_value: float
    next_value: float
    posture: bool
    blamed: tuple[Blame, ...] = ()
    length: float = 1.0
    opening: tuple[tuple[str, float], ...] = ()

    @property
    def joint(self) -> str:
        """The joint that has to move least; empty if no single joint explains it."""
        return self.blamed[0].joint if self.blamed else ""

    @property
    def angle(self) -> float:
        """By how much its axis is turned [rad]."""
        return self.blamed[0].angle if self.blamed else 0.0

    @property
    def shift(self) -> float:
        """By how much its place is off [m]."""
        return self.blamed[0].shift if self.blamed else 0.0


@dataclass(frozen=True, eq=False)
class Step:
    """One position of the walk: residual, dropped directions of rows, directions of motion; rank -1 if not found."""

    state: State
    phi: np.ndarray
    dropped: np.ndarray
    free: np.ndarray
    rank: int


def misalignment(
    system: System, q: np.ndarray, t: float, flags: np.ndarray, bodies: Bodies | None, assembled: bool
) -> Misfit | None:
    """Look into the small singular values at a position or, if they are not explained there, at the initial guess.

    Lengths are counted in lengths of the machine here and masses do not matter: the question is one of geometry.
    """
    start = np.array(system.layout.initial)
    first = None
    for place in (q, start) if assembled else (start, q):
        found = _look(system, place, t, flags, bodies)
        if found is None and assembled and first is None:
            return None  # a sound assembly: the initial guess may lead to one that is not meant
        if found is not None and found.blamed:
            return found
        first = first or found
    if first is None or first.posture or first.singular_value < TINY * first.next_value:
        return first
    return None


def _look(system: System, q: np.ndarray, t: float, flags: np.ndarray, bodies: Bodies | None) -> Misfit | None:
    phi, S = _geometry(system, q, t, flags)
    if not S.size:
        return None
    U, sigma, _ = np.linalg.svd(S)
    small, usual = sigma[sigma < SMALL], sigma[sigma >= SMALL]
    if not small.size or not usual.size or usual[-1] < GAP * small[0]:
        return None
    limit = float(np.sqrt(max(small[0], LEAST) * usual[-1]))
    which = U[:, usual.size : usual.size + small.size]
    names = [row.name for row in system.layout.rows]
    rows = tuple(names[i] for i in np.flatnonzero(np.any(np.abs(which) > 0.05, axis=1)) if i in system.kept)
    found = Misfit(rows, float(small[0]), float(usual[-1]), True)
    walk = _walk(system, q, t, flags, limit, usual.size)
    if len(walk) < len(WALK):
        return found if small[0] > NOTHING else None
    phi = np.max(np.abs([step.phi for step in walk]), axis=0)
    if not NOTHING < phi.max() < 3 * LARGEST:  # exactly redundant, or another machine
        return None
    residual = phi * _units(system)
    opening = tuple((names[i], float(residual[i])) for i in np.argsort(-phi)[:3] if phi[i] > NOTHING)
    found = replace(found, posture=False, opening=opening)
    return found if bodies is None else _blame(system, bodies, walk, found)


def _units(system: System) -> np.ndarray:
    """What one unit of a row's residual is: a length of the machine, or 1 rad (and for rows of unknown unit, 1)."""
    return np.array([system.layout.length if row.unit == "m" else 1.0 for row in system.layout.rows])


def _geometry(system: System, q: np.ndarray, t: float, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Φ in those units, and its derivative by the coordinates in radians and lengths of the machine."""
    on = flags * np.array([row.holonomic for row in system.layout.rows], dtype=float)
    phi, A = system.functions("position", t, q, system.p)[:2]
    scale = on / _units(system)
    return phi * scale, A * scale[:, None] * np.array(system.layout.scales)


def _walk(system: System, q: np.ndarray, t: float, flags: np.ndarray, limit: float, rank: int) -> list[Step]:
    """Positions along the motion of the relaxed machine, as long as its rank stays."""
    start = _settle(system, q, t, flags, limit)
    if start.rank != rank or start.free.shape[1] == 0:
        return []
    walk = [start]
    for sense in (1.0, -1.0):
        here, way = start, sense * start.free @ np.ones(start.free.shape[1])
        done = 0.0
        for size in WALK:
            way = here.free @ (here.free.T @ way)
            way = way / np.max(np.abs(way))
            step = way * (size - done) * np.array(system.layout.scales)
            here = _settle(system, system.retract(here.state.q, step), t, flags, limit)
            done = size
            if here.rank != rank:
                break
            walk.append(here)
    return walk


def _settle(system: System, q: np.ndarray, t: float, flags: np.ndarray, limit: float) -> Step:
    """Satisfy what the relaxed machine asks for, and look at the rest."""
    scales = np.array(system.layout.scales)
    k = 0
    while True:
        phi, S = _geometry(system, q, t, flags)
        U, sigma, Vt = np.linalg.svd(S)
        rank = int(np.sum(sigma > limit))
        step = -Vt[:rank].T @ (U[:, :rank].T @ phi / sigma[:rank])
        largest = float(np.max(np.abs(step)))
        if largest < SETTLED or k == ITERATIONS:
            settled = largest < NOTHING
            return Step(State(system.layout, q, t=t), phi, U[:, rank:], Vt[rank:].T, rank if settled else -1)
        q = system.retract(q, scales * step * min(1.0, 0.3 / largest))
        k += 1


def _blame(system: System, bodies: Bodies, walk: list[Step], found: Misfit) -> Misfit:
    """The joint whose displacement explains the whole walk, the smallest one if several do."""
    units = _units(system)
    length = system.layout.length
    opened: list[np.ndarray] = []
    seen: dict[str, list[np.ndarray]] = {}
    for step in walk:
        place = bodies.at(step.state)
        opened.append(step.dropped.T @ step.phi)
        for c in place.connections():
            E = (c.carried / units).T  # rows see a displacement (shift, turn) of the joint by this
            sides = [_both(place.pose[c.parent][0]), -_both(place.pose[c.child][0])]
            seen.setdefault(c.name, []).append(step.dropped.T @ E @ np.hstack(sides))
    target = -np.concatenate(opened)
    unit = np.tile(np.repeat([length, 1.0], 3), 2)
    fits = []
    for name, blocks in seen.items():
        x = _smallest(np.vstack(blocks) * unit, target)
        if x is not None:
            x = x.reshape(2, 2, 3)  # side, (shift, turn), component
            shift, angle = (float(np.max(np.linalg.norm(x[:, k], axis=1))) for k in (0, 1))
            fits.append((max(shift, angle), name, angle, shift * length))
    fits = sorted(fit for fit in fits if fit[0] < LARGEST)
    return replace(found, blamed=tuple(Blame(*fit[1:]) for fit in fits), length=length)


def _smallest(E: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """The smallest x with E x = target nearly, its best determined parts first; None if there is none.

    Parts that E hardly sees would only fit the terms of second order in ξ, which the equation leaves out.
    """
    U, s, Vt = np.linalg.svd(E, full_matrices=False)
    x, left, good = np.zeros(E.shape[1]), target.copy(), None
    for k in range(int(np.sum(s > 1e-6 * s[0])) if s[0] > 0 else 0):
        part = float(U[:, k] @ target)
        x, left = x + part / s[k] * Vt[k], left - part * U[:, k]
        size, remains = float(np.linalg.norm(x)), float(np.linalg.norm(left) / np.linalg.norm(target))
        if good is not None and size > 1.5 * float(np.linalg.norm(good)):
            break
        if remains < EXPLAINED:
            good = x
        if remains < EXACTLY:
            break
    return good


def _both(R: np.ndarray) -> np.ndarray:
    return np.kron(np.eye(2), R)
