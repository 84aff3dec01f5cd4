"""Positions that satisfy every constraint, nearest to a guess.

Damped Gauss-Newton on the manifold, each step the smallest in the mass metric that the scaled rows ask for (dependent
rows and singular guesses do no harm), from the guess and, if that fails, from a spread of others around it; of the
assemblies found the nearest to the guess is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.manifold import difference, plain_map, retract
from sarrus.dynamics.state import State
from sarrus.errors import StateError

if TYPE_CHECKING:
    from sarrus.dynamics.system import System

ITERATIONS = 60
POLISH = 8  # Newton steps after the tolerance is met; next to a singular position each only halves the distance
ATTEMPTS = 48


@dataclass(frozen=True)
class Request:
    """What the user asked `System.assemble` for."""

    positions: Mapping[str, Any]
    velocities: Mapping[str, Any]
    near: State | Mapping[str, Any] | None
    signs: Mapping[str, Any]
    t: float
    active: Mapping[str, bool]
    tolerance: float


@dataclass(frozen=True)
class Attempt:
    """Where one Newton run ended."""

    q: np.ndarray
    residual: np.ndarray  # Φ in units of each row's tolerance
    accepted: bool
    iterations: int

    @property
    def size(self) -> float:
        """Largest residual."""
        return float(self.residual.max(initial=0.0))


def find_positions(system: System, request: Request, attempts: int = ATTEMPTS) -> tuple[np.ndarray | None, Attempt]:
    """The nearest assembly found, if any, and the best attempt."""
    q, held = hold(system, _guess(system, request), request.positions, "q")
    wanted = sign_requests(system, request)
    flags = system.active_rows(request.active)
    attempt = best = _newton(system, q, held, request.t, flags, request.tolerance)
    found: list[tuple[float, np.ndarray]] = []
    for number, start in enumerate(_starts(system, q, held, wanted, attempts)):
        attempt = _newton(system, start, held, request.t, flags, request.tolerance) if number else attempt
        turned = _turned_back(system, attempt.q, wanted)
        if attempt.accepted and not np.array_equal(turned, attempt.q):
            attempt = _newton(system, turned, held, request.t, flags, request.tolerance)
        if attempt.accepted and _right_branch(system, attempt.q, request.t, flags, wanted):
            found.append((_distance(system, q, attempt.q), attempt.q))
            if number == 0 or len(found) == 4:
                break
        if (attempt.accepted, -attempt.size) > (best.accepted, -best.size):
            best = attempt
    return (min(found, key=lambda pair: pair[0])[1] if found else None), best


def _guess(system: System, request: Request) -> np.ndarray:
    near = request.near
    if isinstance(near, State):
        if near.count is not None or near.layout.q_names != system.layout.q_names:
            raise StateError(f"near: expected a single state of {system.name!r}")
        return near.q.copy()
    q = np.array(system.layout.initial)
    return hold(system, q, near or {}, "q")[0]


def hold(system: System, base: np.ndarray, values: Mapping[str, Any], kind: str) -> tuple[np.ndarray, dict[int, float]]:
    """Put named values into a copy of `base`; also the velocity indices they fix, with the value."""
    layout, out, held = system.layout, base.copy(), {}
    plain_q, plain_v = plain_map(layout)
    to_v = dict(zip(plain_q.tolist(), plain_v.tolist(), strict=True))
    for name, value in values.items():
        where = layout.find(name.removesuffix(f".{kind}"), kind)
        try:
            numbers = np.atleast_1d(np.asarray(value, dtype=float))
        except (TypeError, ValueError):
            raise StateError(f"{name!r}: expected a number, got {value!r}") from None
        if numbers.shape != (where.stop - where.start,):
            raise StateError(f"{name!r}: expected {where.stop - where.start} value(s), got {value!r}")
        if not np.isfinite(numbers).all():
            raise StateError(f"{name!r}: expected finite numbers, got {value!r}")
        out[where] = numbers
        indices = range(where.start, where.stop)
        if kind == "v":
            held |= dict(zip(indices, numbers.tolist(), strict=True))
            continue
        for turn in layout.turns:
            inside = [k for k in range(turn.q, turn.q + 4) if k in indices]
            if inside and len(inside) < 4:
                raise StateError(f"{name!r}: give the whole quaternion {layout.q_names[turn.q].rsplit('.', 1)[0]!r}")
            if inside:
                size = np.linalg.norm(out[turn.q : turn.q + 4])
                if not size > 0:
                    raise StateError(f"{name!r}: a quaternion must not be zero")
                out[turn.q : turn.q + 4] /= size
                held |= {turn.v + k: 0.0 for k in range(3)}
        held |= {to_v[k]: 0.0 for k in indices if k in to_v}
    return out, held


def sign_requests(system: System, request: Request) -> dict[int, float]:
    """Position index -> +1 or -1, as asked for."""
    wanted = {}
    for name, sign in request.signs.items():
        where = system.layout.find(name)
        value = {"+": 1.0, "-": -1.0}.get(sign, sign)
        if where.stop - where.start != 1 or value not in (1, -1, 1.0, -1.0):
            raise StateError(f"signs: {name!r} must be a single coordinate with +1 or -1, got {sign!r}")
        wanted[where.start] = float(value)
    return wanted


def _starts(
    system: System, q: np.ndarray, held: dict[int, float], wanted: dict[int, float], attempts: int
) -> Iterator[np.ndarray]:
    """The guess, then guesses further and further from it; held coordinates stay, wanted signs are tried."""
    layout = system.layout
    free = np.array([k not in held for k in range(layout.nv)], dtype=float)
    scales = np.array(layout.scales)
    rng = np.random.default_rng(0)
    yield q
    to_scale = dict(zip(*(x.tolist() for x in plain_map(layout)), strict=True))
    to_scale = {index: scales[k] for index, k in to_scale.items()}
    flipped = q.copy()
    for index, sign in wanted.items():
        flipped[index] = sign * max(abs(q[index]), 0.5 * to_scale[index])
    if wanted:
        yield flipped
    for k in range(attempts):
        spread = 1e-3 if k == 0 else 3.0 * (k / attempts)
        yield retract(layout, flipped if k % 2 else q, free * scales * spread * rng.uniform(-1, 1, layout.nv))


def _newton(
    system: System, q: np.ndarray, held: dict[int, float], t: float, flags: np.ndarray, tolerance: float
) -> Attempt:
    layout, scales = system.layout, np.array(system.layout.scales)
    free = [k for k in range(layout.nv) if k not in held]
    phi, A, M = _position(system, q, t, flags)
    unit = tolerance * system.units
    calm = 0
    for iteration in range(1, ITERATIONS + 1):
        rounding = 64 * np.finfo(float).eps * (np.abs(A) @ (scales + _size(layout, q)))
        within = np.abs(phi) <= np.maximum(unit, rounding)
        if within.all():
            calm += 1
            if calm > POLISH or not np.any(phi):  # some more steps, down to rounding
                return Attempt(q, np.abs(phi) / unit, True, iteration)
        step = np.zeros(layout.nv)
        size = np.max(np.abs(phi) / np.maximum(np.abs(A) @ scales, 1e-300), initial=0.0)  # in units of the machine
        # next to a singular position rows get weak before the position is found: when polishing, weaker ones count too
        weakest = 1e-3 * system.tolerance if calm else system.tolerance
        step[free] = smallest_step(system, phi, A[:, free], M[np.ix_(free, free)], min(1e-2, size), weakest)
        largest = np.max(np.abs(step) / scales, initial=0.0)
        step *= min(1.0, 0.6 / largest) if largest > 0 else 1.0
        before = _merit(system, phi)
        for _ in range(12):
            trial = retract(layout, q, step)
            phi_new, A_new, M_new = _position(system, trial, t, flags)
            if np.isfinite(phi_new).all() and (within.all() or _merit(system, phi_new) < before):
                break
            step = step / 2
        else:
            return Attempt(q, np.abs(phi) / unit, bool(within.all()), iteration)
        if within.all() and _merit(system, phi_new) >= before:
            return Attempt(q, np.abs(phi) / unit, True, iteration)
        q, phi, A, M = trial, phi_new, A_new, M_new
    return Attempt(q, np.abs(phi) / unit, bool((np.abs(phi) <= unit).all()), ITERATIONS)


def smallest_step(
    system: System, phi: np.ndarray, A: np.ndarray, M: np.ndarray, damping: float, weakest: float
) -> np.ndarray:
    """The step of least kinetic norm that removes Φ to first order, damped (Levenberg) relative to the largest σ.

    Directions whose σ is not above `weakest` are left alone.
    """
    if not A.size:
        return np.zeros(A.shape[1])
    kept = list(system.kept)
    L = np.linalg.cholesky(M)
    S = np.linalg.solve(L, (A[kept] / system.norms[:, None]).T).T
    residual = phi[kept] / system.norms
    squares, U = np.linalg.eigh(S @ S.T)  # rounding leaves 1e-8 of a singular value, far below the tolerance
    sigma = np.sqrt(np.maximum(squares, 0.0))
    added = (damping * sigma.max(initial=0.0)) ** 2
    inverse = np.where(sigma > weakest, 1.0 / (squares + added + 1e-300), 0.0)
    return -np.linalg.solve(L.T, S.T @ (U @ (inverse * (U.T @ residual))))


def _position(system: System, q: np.ndarray, t: float, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        phi, A, _, _, M = system.functions("position", t, q, system.p)
    on = flags * np.array([row.holonomic for row in system.layout.rows], dtype=float)
    return phi * on, A * on[:, None], M


def _merit(system: System, phi: np.ndarray) -> float:
    kept = list(system.kept)
    return float(np.sum((phi[kept] / system.norms) ** 2))


def _size(layout: Any, q: np.ndarray) -> np.ndarray:
    plain_q, plain_v = plain_map(layout)
    out = np.zeros(layout.nv)
    out[plain_v] = np.abs(q[plain_q])
    return out


def _turned_back(system: System, q: np.ndarray, wanted: dict[int, float]) -> np.ndarray:
    """Angles whose sign was asked for, between -π and π (whole turns would make the sign meaningless)."""
    plain_q, plain_v = plain_map(system.layout)
    out = q.copy()
    for index, k in zip(plain_q.tolist(), plain_v.tolist(), strict=True):
        if index in wanted and system.layout.angles[k] and abs(q[index]) > np.pi:
            out[index] = (q[index] + np.pi) % (2 * np.pi) - np.pi
    return out


def _right_branch(system: System, q: np.ndarray, t: float, flags: np.ndarray, wanted: dict[int, float]) -> bool:
    guards = system.functions("guards", t, q, system.p)[0]
    owners = system.guard_rows
    aligned = all(g > 0 or flags[row] == 0 for g, row in zip(guards, owners, strict=True))
    return (
        aligned and np.array_equal(_turned_back(system, q, wanted), q) and all(s * q[i] > 0 for i, s in wanted.items())
    )


def _distance(system: System, start: np.ndarray, end: np.ndarray) -> float:
    return float(np.linalg.norm(difference(system.layout, start, end) / np.array(system.layout.scales)))
