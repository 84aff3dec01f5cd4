"""Which joint may be replaced by a looser one without changing the motion, where rows are redundant.

A joint holds some of six directions: three forces and three moments in its own frame. To let go of some of them costs
no mobility exactly if each of them, one after the other, is needed only by the machine's internal loads: if the
internal loads Z give independent forces in the directions let go. The test is made at several positions, since a
direction that is spare in one of them need not be in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sarrus.analysis.joints import Connection

# kind: directions held, in the frame whose third axis is the joint's: 0, 1, 2 forces, 3, 4, 5 moments
HELD = {
    "fixed": {0, 1, 2, 3, 4, 5}, "weld": {0, 1, 2, 3, 4, 5}, "revolute": {0, 1, 2, 3, 4}, "prismatic": {0, 1, 3, 4, 5},
    "cylindrical": {0, 1, 3, 4}, "spherical": {0, 1, 2}, "point": {0, 1, 2}, "planar": {2, 3, 4},
    "point-on-line": {0, 1}, "point-on-plane": {2},
}  # fmt: skip
HOW = {
    "revolute": "a revolute joint",
    "prismatic": "a prismatic joint",
    "cylindrical": "a cylindrical joint, which also slides along its axis",
    "planar": "a planar joint, which slides across its axis",
    "point": "a ball joint (`point_on` on both sides)",
    "point-on-line": "a point on a line (`line_on` with `point_on`)",
    "point-on-plane": "a point on a plane (`plane_on` with `point_on`)",
    "universal": "a universal joint",
}
CLEAR = 1e-3  # internal loads must reach a direction at least this much, of their size, to call it spare


@dataclass(frozen=True)
class Relaxation:
    """A looser joint that does the same.

    Attributes:
        name: of the joint or closure.
        kind: what to make of it; "nothing" to leave it out.
        axis: axis of the line, normal of the plane or second axis of the universal joint, in world axes at this
            state; None for kinds that keep theirs.
        freed: the directions let go, in the joint's frame: 0, 1, 2 forces, 3, 4, 5 moments.
        clearness: how well the internal loads reach the freed directions, 0 to 1, at the worst of the positions.
    """

    name: str
    kind: str
    axis: tuple[float, ...] | None
    freed: tuple[int, ...]
    clearness: float

    @property
    def text(self) -> str:
        """What to do, in words."""
        if self.kind == "nothing":
            return f"leave out `{self.name}`"
        words = {
            "point-on-line": " along ",
            "point-on-plane": " with normal ",
            "universal": " with its second axis along ",
        }
        along = "" if self.axis is None else words[self.kind]
        return f"make `{self.name}` {HOW[self.kind]}{along}{direction(self.axis) if self.axis is not None else ''}"


Positions = Sequence[tuple[Sequence[Connection], np.ndarray]]


def plans(positions: Positions, order: Sequence[str], length: float, planar: bool) -> list[tuple[Relaxation, ...]]:
    """Ways to let go of all internal loads: several that change one joint each, or one that changes several.

    Args:
        positions: at each of several states, the connections and the internal loads as columns of multipliers; the
            first is the state that matters.
        order: the joints that may be changed, the preferred ones first.
        length: of the machine [m].
        planar: whether only the x-z plane counts.
    """
    wanted = positions[0][1].shape[1]
    first = [x for name in order if (x := _best(positions, name, length, planar)) is not None]
    alone = [(x,) for x in first if len(x.freed) == wanted]
    if alone or not first:
        return alone
    chosen = [max(first, key=lambda x: len(x.freed))]
    while True:
        positions = _released(positions, chosen[-1])
        left = [name for name in order if name not in [x.name for x in chosen]]
        more = [x for name in left if (x := _best(positions, name, length, planar)) is not None]
        if not positions[0][1].shape[1] or not more:
            return [tuple(chosen)]
        chosen.append(max(more, key=lambda x: len(x.freed)))


def _best(positions: Positions, name: str, length: float, planar: bool) -> Relaxation | None:
    """The looser kind of one joint that lets go of most."""
    index, c = next((k, c) for k, c in enumerate(positions[0][0]) if c.name == name)
    options = [
        Relaxation(name, kind, axis, tuple(freed), clear)
        for kind, axis, freed in _targets(c, planar)
        if (clear := min(_clearness(x[index], Z, freed, length) for x, Z in positions)) > CLEAR
    ]
    most = max((len(x.freed) for x in options), default=0)
    return max((x for x in options if len(x.freed) == most), key=lambda x: round(x.clearness, 2), default=None)


def _released(positions: Positions, done: Relaxation) -> Positions:
    """What internal loads remain once a joint has let go."""
    out = []
    for connections, Z in positions:
        c = next(c for c in connections if c.name == done.name)
        _, s, Vt = np.linalg.svd(_loads(c, Z, 1.0)[list(done.freed)])
        out.append((connections, Z @ Vt[len(s) :].T))
    return out


def _targets(c: Connection, planar: bool):
    """Looser kinds, the axis of those that have a new one, and the directions let go."""
    held = HELD.get(c.kind, set())
    if held and not c.in_tree:
        yield "nothing", None, [k for k in sorted(held) if not planar or _in_plane(c, k)]
    if c.kind == "revolute" and not planar:
        for k in (3, 4):
            yield "universal", tuple(float(x) for x in c.axes[:, k - 3]), [k]
    for kind in ("point-on-plane", "point-on-line", "point", "planar", "cylindrical", "prismatic", "revolute"):
        turns = range(3) if kind.startswith("point-on") else (2,)
        for third in turns:
            keeps = {_turned(k, third) for k in HELD[kind]}
            if keeps < held:
                freed = [k for k in sorted(held - keeps) if not planar or _in_plane(c, k)]
                own = c.kind == kind or not kind.startswith("point-on")
                axis = None if own else tuple(float(x) for x in c.axes[:, third])
                if freed:
                    yield kind, axis, freed


def _turned(k: int, third: int) -> int:
    """Direction k of a frame whose third axis is axis `third` of the joint's."""
    return (k % 3 + third + 1) % 3 + 3 * (k // 3)


def _in_plane(c: Connection, k: int) -> bool:
    along_y = abs(c.axes[1, k % 3]) > 0.5
    return along_y == (k >= 3)


def _clearness(c: Connection, Z: np.ndarray, freed: list[int], length: float) -> float:
    """How well the internal loads fill the directions let go, 0 to 1, whatever units they are written in."""
    U, sigma, _ = np.linalg.svd(_loads(c, Z, length), full_matrices=False)
    loads = U[:, sigma > 1e-9 * np.max(sigma, initial=0.0)]
    if loads.shape[1] < len(freed):
        return 0.0
    return float(np.linalg.svd(loads[freed], compute_uv=False)[-1])


def _loads(c: Connection, Z: np.ndarray, length: float) -> np.ndarray:
    """Forces and moments / length of the internal loads in the joint's frame."""
    return np.vstack([c.axes.T @ (c.spread[:3] @ Z), c.axes.T @ (c.spread[3:] @ Z) / length])


def direction(vector: Sequence[float] | np.ndarray) -> str:
    """A direction in words: a letter where it is one, else components."""
    d = np.asarray(vector, dtype=float)
    d = d / np.linalg.norm(d)
    k = int(np.argmax(np.abs(d)))
    if np.abs(d[k]) > 1 - 1e-9:
        return "xyz"[k]
    d = np.where(np.abs(d) < 1e-9, 0.0, d * np.sign(d[k]))
    return "(" + ", ".join(f"{x:.3g}" for x in d) + ")"
