"""Choose which joints span the machine as a tree and which become closures.

Grown from the ground outwards, always taking the cheapest joint that reaches a new body: joints that must keep their
coordinate first (motors, springs, couplings, free joints written by the user), then those with few degrees of freedom,
then those that keep the tree shallow, then in the order written. Every joint left over is cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarrus.model.parts import GROUND, JOINT_SIZES, Joint, Model

CUTTABLE = ("fixed", "revolute", "prismatic", "cylindrical", "universal", "planar", "spherical", "free")


@dataclass(frozen=True)
class Edge:
    """A joint in the tree: `outer` hangs on `inner`; reversed if the joint's parent is the outer one."""

    joint: Joint
    inner: str
    outer: str

    @property
    def reversed(self) -> bool:
        """Whether the tree passes the joint from its child to its parent."""
        return self.joint.parent == self.outer


@dataclass(frozen=True)
class Tree:
    """The spanning tree: edges in an order in which every inner body comes first, and the joints that were cut."""

    edges: tuple[Edge, ...]
    cuts: tuple[Joint, ...]
    islands: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...]


def span(model: Model) -> Tree:
    """Span the machine's joints with a tree."""
    needed = _needed(model)

    def cost(joint: Joint) -> tuple[int, int]:
        kept = joint.kind in ("free", "helical") or joint.name in needed or _has_own_terms(joint)
        return (0 if kept else 1, joint.nv)

    depth = {GROUND: 0}
    edges: list[Edge] = []
    left = list(model.joints)
    while True:
        best = None
        for order, joint in enumerate(left):
            ends = (joint.parent in depth, joint.child in depth)
            if ends[0] == ends[1]:
                continue
            inner, outer = (joint.parent, joint.child) if ends[0] else (joint.child, joint.parent)
            key = (*cost(joint), depth[inner], order)
            if best is None or key < best[0]:
                best = (key, Edge(joint, inner, outer))
        if best is None:
            break
        edge = best[1]
        edges.append(edge)
        depth[edge.outer] = depth[edge.inner] + 1
        left.remove(edge.joint)
    cuts = tuple(j for j in left if j.parent in depth and j.child in depth)
    problems = tuple(_cannot_cut(j, needed) for j in cuts if j.kind not in CUTTABLE or _keeps(j, needed))
    return Tree(tuple(edges), cuts, _islands(model, set(depth)), problems)


def _has_own_terms(joint: Joint) -> bool:
    values = (joint.stiffness, joint.damping, joint.rotor_inertia)
    return any(not isinstance(x, float) or x != 0.0 for x in values) or joint.limits is not None


def _needed(model: Model) -> set[str]:
    """Joints whose coordinate is used by a motor, coupling or joint spring."""
    used = {n for part in (*model.couplings, *model.joint_springs, *model.actuators) for n in part.coefficients}
    return {j.name for j in model.joints if j.kind in JOINT_SIZES and used & set(j.position_names)}


def _keeps(joint: Joint, needed: set[str]) -> bool:
    """Whether a cut joint would lose something: revolute and prismatic joints can be measured, others cannot."""
    if joint.kind in ("revolute", "prismatic"):
        return not isinstance(joint.rotor_inertia, float) or joint.rotor_inertia != 0.0
    return joint.name in needed or _has_own_terms(joint)


def _cannot_cut(joint: Joint, needed: set[str]) -> str:
    why = "a motor, coupling or spring uses it" if joint.name in needed else "it has a spring, damper, rotor or pitch"
    return (
        f"joint {joint.name!r} ({joint.kind}): it closes a loop in which every joint must keep its coordinate ({why}); "
        "free another joint of that loop, or write this one as a closure"
    )


def _islands(model: Model, reached: set[str]) -> tuple[tuple[str, ...], ...]:
    left = [b.name for b in model.bodies if b.name not in reached]
    islands = []
    while left:
        island = {left[0]}
        grew = True
        while grew:
            grew = False
            for joint in model.joints:
                if (joint.parent in island) != (joint.child in island):
                    island |= {joint.parent, joint.child} - {GROUND}
                    grew = True
        islands.append(tuple(n for n in left if n in island))
        left = [n for n in left if n not in island]
    return tuple(islands)
