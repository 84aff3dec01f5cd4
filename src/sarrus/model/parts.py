"""The parts of a machine as frozen records: data only, no behaviour beyond naming their coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

GROUND = "ground"

# kind: (number of position coordinates, number of velocity coordinates)
JOINT_SIZES = {
    "fixed": (0, 0),
    "revolute": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
    "cylindrical": (2, 2),
    "universal": (2, 2),
    "planar": (3, 3),
    "spherical": (4, 3),
    "free": (7, 6),
}


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: mass [kg], centre of mass in the body frame [m], inertia about it in body axes [kg m²]."""

    name: str
    mass: Any = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies.

    The joint frame sits at `at`, turned by `rotation`, in the parent, and at `child_at`, turned by `child_rotation`,
    in the child; at zero coordinates the two coincide. `axis` (and `axis2` of a universal joint) is in that frame.
    The coordinate is the motion of the child relative to the parent, whichever of them the spanning tree reaches first.
    """

    name: str
    kind: str
    parent: str
    child: str
    axis: np.ndarray
    axis2: np.ndarray
    at: np.ndarray
    rotation: np.ndarray
    child_at: np.ndarray
    child_rotation: np.ndarray
    pitch: Any = 0.0
    stiffness: Any = 0.0
    rest: Any = 0.0
    damping: Any = 0.0
    rotor_inertia: Any = 0.0
    limits: tuple[float, float] | None = None
    initial: Any = None
    stand_in: bool = False  # for a joint whose description was wrong: only its name and bodies are meant

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return JOINT_SIZES[self.kind][0]

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return JOINT_SIZES[self.kind][1]

    @property
    def position_names(self) -> tuple[str, ...]:
        """One name for each position coordinate."""
        return tuple(self.name + suffix for suffix in _suffixes(self, positions=True))

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """One name for each velocity coordinate."""
        return tuple(self.name + suffix for suffix in _suffixes(self, positions=False))


def _suffixes(joint: Joint, positions: bool) -> tuple[str, ...]:
    kind = joint.kind
    if kind in ("revolute", "prismatic", "helical"):
        return ("",)
    if kind == "cylindrical":
        return (".angle", ".shift")
    if kind == "universal":
        return (".first", ".second")
    if kind == "planar":
        plane = {0: (".y", ".z"), 1: (".z", ".x"), 2: (".x", ".y")}
        if np.count_nonzero(joint.axis) != 1:
            return (".1", ".2", ".angle")
        k = int(np.argmax(np.abs(joint.axis)))
        pair = plane[k] if joint.axis[k] > 0 else plane[k][::-1]
        return (*pair, ".angle")
    xyz = ("x", "y", "z")
    turn = tuple(f".quat_wxyz.{c}" for c in "wxyz") if positions else tuple(f".omega.{c}" for c in xyz)
    if kind == "spherical":
        return turn
    if kind == "free":
        word = "position" if positions else "velocity"
        return tuple(f".{word}.{c}" for c in xyz) + turn
    return ()


@dataclass(frozen=True, eq=False)
class Feature:
    """A named place on a body, one side of a closure or of a force element.

    `frame` has the feature's axis as its third column. `expression` is a user function of position (curve, surface).
    """

    kind: str
    body: str
    at: np.ndarray
    frame: np.ndarray
    expression: Callable[[Any], Any] | None = None
    flat: bool = False  # given by two numbers, which only planar machines understand
    problem: str = ""  # what was wrong with the user's values; reported by finalize() with all other problems


@dataclass(frozen=True, eq=False)
class Closure:
    """Two features held together.

    `length` is the distance of a distance closure, and the cosine between the axes of a universal one (usually 0).
    """

    name: str
    kind: str
    a: Feature
    b: Feature
    length: Any = 0.0


@dataclass(frozen=True, eq=False)
class Coupling:
    """Σ coefficient · joint coordinate = constant + target(t); gears, locks and prescribed motions."""

    name: str
    coefficients: Mapping[str, Any]
    constant: Any = 0.0
    target: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class Rolling:
    """A disc of this radius, about `axis_frame`'s third column on `hub`, rolling without slip on a ground plane."""

    name: str
    hub: Feature
    plane: Feature
    radius: Any


@dataclass(frozen=True, eq=False)
class Touch:
    """A point that stays on the side of a plane to which its normal points; with `sticking` it does not slip either.

    Otherwise it may rub: -friction · N · (direction of slip) · tanh(slip / speed), N being its normal force.
    """

    name: str
    plane: Feature
    point: Feature
    sticking: bool
    friction: Any = 0.0
    speed: Any = 1.0


@dataclass(frozen=True, eq=False)
class OneSided:
    """A constraint that only pushes: sign · (its first row's residual) stays at or above zero.

    `law` is "newton" (the speed of separation is `restitution` times that of approach) or "poisson" (so is the
    impulse of the second half of an impact to that of the first).
    """

    name: str
    sign: float
    restitution: float
    law: str


@dataclass(frozen=True, eq=False)
class Custom:
    """A user's own rows: `function(k)` gives Φ (holonomic) or an expression linear in the velocities (Pfaffian)."""

    name: str
    holonomic: bool
    function: Callable[[Any], Any]
    at: Feature | None = None  # the feature that the rows are about, if there is one


@dataclass(frozen=True, eq=False)
class Spring:
    """Linear spring and damper along the line between two points."""

    name: str
    a: Feature
    b: Feature
    stiffness: Any
    length: Any
    damping: Any


@dataclass(frozen=True, eq=False)
class JointSpring:
    """Spring, damper and dry friction on a linear combination of joint coordinates, Σ c q.

    Friction is regularised Coulomb friction: -friction · tanh(rate / speed).
    """

    name: str
    coefficients: Mapping[str, Any]
    stiffness: Any
    rest: Any
    damping: Any
    friction: Any = 0.0
    speed: Any = 1.0


@dataclass(frozen=True, eq=False)
class Load:
    """A force at a point [N] or a torque on a body [N m]: constant, or a user function of the kinematics."""

    name: str
    kind: str  # "force" or "torque"
    at: Feature
    value: Any  # array of 3, or function(k) -> 3 expressions
    local: bool


@dataclass(frozen=True, eq=False)
class Actuator:
    """One column of B. Kinds: joint (a motor), point (a force along a direction), general (joint coefficients)."""

    name: str
    kind: str
    coefficients: Mapping[str, Any]
    at: Feature | None = None
    direction: np.ndarray | None = None
    local: bool = True
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A frozen, validated machine: what `Mechanism.finalize()` returns and `compile` takes."""

    name: str
    gravity: np.ndarray
    planar: bool
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    closures: tuple[Closure, ...]
    couplings: tuple[Coupling, ...]
    rollings: tuple[Rolling, ...]
    touches: tuple[Touch, ...]
    one_sided: tuple[OneSided, ...]
    customs: tuple[Custom, ...]
    springs: tuple[Spring, ...]
    joint_springs: tuple[JointSpring, ...]
    loads: tuple[Load, ...]
    actuators: tuple[Actuator, ...]
    frames: Mapping[str, Feature]
    parameters: Mapping[str, float]
    groups: tuple[str, ...]  # constraint names in the order the user wrote them
