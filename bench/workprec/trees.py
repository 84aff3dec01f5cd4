"""The problems as trees of rigid links with closures and springs, written once for all peers, independent of Sarrus.

Frames of all links are parallel to the ground's when all coordinates are zero. Planar machines lie in the x-y plane,
gravity along -y. SI units.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bench.workprec.problems import Problem

X, Y, Z = np.eye(3)
GROUND = -1


@dataclass(frozen=True)
class Link:
    """A rigid link and the hinge ("R") or slider ("P") that carries it.

    Attributes:
        name: of the joint and the link.
        parent: index of the link that carries it, or `GROUND`.
        kind: "R" or "P".
        axis: unit vector.
        at: the joint in the parent's frame; the link's own frame sits there.
        mass: [kg].
        com: centre of mass in the link's frame.
        inertia: about the centre of mass, (3, 3).
        q0: coordinate at the start.
        v0: velocity at the start.
    """

    name: str
    parent: int
    kind: str
    axis: np.ndarray
    at: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    q0: float = 0.0
    v0: float = 0.0


@dataclass(frozen=True)
class Loop:
    """Two points that coincide in the given directions of the ground's frame.

    Attributes:
        a: link, or `GROUND`.
        at_a: point in its frame.
        b: link, or `GROUND`.
        at_b: point in its frame.
        axes: directions that are independent rows.
        meets: all in which they coincide, those that follow from other rows among them.
    """

    a: int
    at_a: np.ndarray
    b: int
    at_b: np.ndarray
    axes: tuple[int, ...]
    meets: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class Spring:
    """A spring-damper between two points."""

    a: int
    at_a: np.ndarray
    b: int
    at_b: np.ndarray
    stiffness: float
    damping: float
    length: float


@dataclass(frozen=True)
class Tree:
    """A machine.

    Attributes:
        links: parents before children.
        loops: closures; without redundant rows, so that solvers of DAEs can take them all.
        springs: between points.
        torques: constant, about the joint's axis, by link index.
        gravity: acceleration.
        probe: link and point whose position and velocity the quantities come from, None: the coordinates.
        quantities: how: "position", "position and velocity", "coordinates".
        pick: which of the entries they are.
        planar: motion in the x-y plane.
        invariant: "energy" or "spin" (momentum of coordinate 0).
    """

    links: list[Link]
    loops: list[Loop] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    torques: dict[int, float] = field(default_factory=dict)
    gravity: np.ndarray = field(default_factory=lambda: -9.81 * Y)
    probe: tuple[int, np.ndarray] | None = None
    quantities: str = "coordinates"
    pick: tuple[int, ...] = (0, 1)
    planar: bool = True
    invariant: str = "energy"

    @property
    def q0(self) -> np.ndarray:
        """Coordinates at the start."""
        return np.array([link.q0 for link in self.links])

    @property
    def v0(self) -> np.ndarray:
        """Velocities at the start."""
        return np.array([link.v0 for link in self.links])


def bar(mass: float, length: float, along: np.ndarray, side: float = 0.0) -> np.ndarray:
    """Inertia of a uniform bar about its centre, of square section."""
    slim, thick = mass * (length**2 + side**2) / 12, mass * side**2 / 6
    return slim * np.eye(3) + (thick - slim) * np.outer(along, along)


def build(problem: Problem) -> Tree:
    """The machine of a problem, in its initial state."""
    if problem.name.startswith("A02"):
        return n_four_bar(int(problem.name.split("-")[1]))
    if problem.name in ("A03", "B1"):
        return andrews(problem.start, coordinates=problem.name == "B1")
    return {"A01": pendulum, "A04": bricard, "A05": flyball, "SC": slider_crank}[problem.name]()


def pendulum() -> Tree:
    """A point mass on a massless rod, horizontal and at rest at x = -1 m."""
    arm = Link("A", GROUND, "R", Z, 0 * X, 1.0, X, np.zeros((3, 3)), q0=np.pi)
    return Tree([arm], probe=(0, X), quantities="position")


def n_four_bar(n: int) -> Tree:
    """N parallelograms; links upright0, then upright and coupler of each; velocity 1 m/s of the couplers."""
    inertia = bar(1.0, 1.0, X)
    links = [Link("A0", GROUND, "R", Z, 0 * X, 1.0, X / 2, inertia, np.pi / 2, -1.0)]
    loops, before = [], 0
    for i in range(1, n + 1):
        links.append(Link(f"A{i}", GROUND, "R", Z, i * X, 1.0, X / 2, inertia, np.pi / 2, -1.0))
        links.append(Link(f"B{i}", before, "R", Z, X, 1.0, X / 2, inertia, -np.pi / 2, 1.0))
        loops.append(Loop(len(links) - 1, X, len(links) - 2, X, (0, 1)))
        before = len(links) - 2
    return Tree(links, loops, probe=(0, X), quantities="position and velocity", pick=(0, 1, 3, 4))


def andrews(start: tuple[float, ...] | None, coordinates: bool) -> Tree:
    """Seven bodies; `start` in the order of the test set: beta, Theta, gamma, Phi, delta, Omega, epsilon."""
    assert start is not None
    beta, theta, gamma, phi, delta, omega, epsilon = start

    def xy(x: float, y: float) -> np.ndarray:
        return np.array([x, y, 0.0])

    def link(name, parent, at, mass, com, moment, q0):
        return Link(name, parent, "R", Z, at, mass, com, moment * np.eye(3), q0)

    a, b, c = xy(-0.06934, -0.00227), xy(-0.03635, 0.03273), xy(0.014, 0.072)
    links = [
        link("beta", GROUND, xy(0, 0), 0.04325, xy(0.00092, 0), 2.194e-6, beta),
        link("Theta", 0, xy(0.007, 0), 0.00365, xy(-0.0115, 0), 4.41e-7, theta),
        link("gamma", GROUND, b, 0.02373, xy(0.01043, -0.01874), 5.255e-6, gamma),
        link("delta", GROUND, a, 0.0705, xy(0.02308, 0.00916), 1.169e-5, delta),
        link("Phi", 3, xy(0.04, 0), 0.00706, xy(0, 0.01421 - 0.02), 5.667e-7, phi),
        link("epsilon", GROUND, a, 0.05498, xy(0.00449, -0.01228), 1.912e-5, epsilon),
        link("Omega", 5, xy(0, -0.04), 0.00706, xy(0.02 - 0.01421, 0), 5.667e-7, omega),
    ]
    end = xy(-0.028, 0)
    loops = [
        Loop(1, end, 2, xy(0, -0.035), (0, 1)),
        Loop(1, end, 4, xy(0, -0.02), (0, 1)),
        Loop(1, end, 6, xy(0.02, 0), (0, 1)),
    ]
    spring = Spring(2, xy(0.02, -0.018), GROUND, c, 4530.0, 0.0, 0.07785)
    kind = {"quantities": "coordinates", "pick": (0, 1, 2, 4, 3, 6, 5)} if coordinates else {"quantities": "position"}
    return Tree(links, loops, [spring], {0: 0.033}, 0 * Y, probe=(0, xy(0.007, 0)), **kind)


def bricard() -> Tree:
    """Five bars between six hinges; the last hinge, about x at (0, 0, 1), closes the loop.

    It has five rows of rank 4. The one left out is the position along x: by the plane of symmetry of the motion it
    follows from the others, and the remaining four have full rank all along it.
    """
    centres = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    along = np.diff(centres, axis=0)
    axes = (Y, Z, X, Y, Z)
    links = [
        Link(f"J{i}", i - 1, "R", axes[i], along[i - 1] if i else 0 * X, 1.0, e / 2, bar(1, 1, np.abs(e), 0.1))
        for i, e in enumerate(along)
    ]
    loops = [
        Loop(4, along[4], GROUND, centres[5], (1, 2)),
        Loop(4, along[4] + X, GROUND, centres[5] + X, (1, 2)),
    ]
    return Tree(links, loops, probe=(1, along[1]), quantities="position", pick=(0, 1, 2), planar=False)


def flyball() -> Tree:
    """Shaft about z, slider on it, two rods with balls; angles below the horizontal."""
    box = lambda m, a, b, c: m / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])  # noqa: E731
    links = [
        Link("shaft", GROUND, "R", Z, 0 * X, 0.3, Z / 2, box(0.3, 0.01, 0.01, 1), 0.0, 2 * np.pi),
        Link("slider", 0, "P", Z, 0 * X, 3.0, 0 * X, box(3, 0.1, 0.1, 0.1), 0.5),
    ]
    springs = []
    for i, side in ((1, 1.0), (2, -1.0)):
        mass, com = 5.3, side * (0.3 * 0.5 + 5.0) / 5.3 * X  # rod and ball together
        shift = lambda m, x: m * x * x * np.diag([0, 1, 1])  # noqa: E731
        inertia = box(0.3, 1, 0.01, 0.01) + shift(0.3, side * 0.5 - com[0]) + shift(5.0, side - com[0])
        links.append(Link(f"rod{i}", 0, "R", side * Y, side * 0.05 * X + Z, mass, com, inertia, np.pi / 6))
        springs.append(Spring(1, side * 0.05 * X, i + 1, side * 0.5 * X, 8e5, 4e4, 0.5))
    return Tree(
        links, springs=springs, gravity=-9.81 * Z, quantities="coordinates", pick=(1,), planar=False, invariant="spin"
    )


def slider_crank() -> Tree:
    """Two equal links with point masses at their ends; the end of the second stays on the x axis."""
    zero = np.zeros((3, 3))
    links = [
        Link("A", GROUND, "R", Z, 0 * X, 1.0, X, zero, np.pi / 4),
        Link("B", 0, "R", Z, X, 1.0, X, zero, 3 * np.pi / 2),
    ]
    return Tree(links, [Loop(1, X, GROUND, 0 * X, (1,), meets=(1,))], quantities="coordinates", pick=(0,))
