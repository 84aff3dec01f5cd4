"""The builder with which people describe machines.

A `Mechanism` only collects parts. Nothing raises while it grows: `finalize()` checks everything and either returns a
frozen `Model` or raises one `ModelError` that lists all problems by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

import numpy as np

from sarrus.model.expression import Scalar, as_array, as_number, numeric
from sarrus.model.features import body_name, point
from sarrus.model.geometry import rotation_matrix, unit_axis
from sarrus.model.parts import (
    GROUND,
    JOINT_SIZES,
    Actuator,
    Body,
    Closure,
    Coupling,
    Custom,
    Feature,
    Joint,
    JointSpring,
    Load,
    Model,
    OneSided,
    Rolling,
    Spring,
    Touch,
)
from sarrus.model.validate import freeze

# closure kind for each pair of feature kinds; the point always comes second
_CLOSURES = {
    ("point", "point"): "point",
    ("revolute", "revolute"): "revolute",
    ("prismatic", "prismatic"): "prismatic",
    ("cylindrical", "cylindrical"): "cylindrical",
    ("universal", "universal"): "universal",
    ("planar", "planar"): "planar",
    ("weld", "weld"): "weld",
    ("line", "point"): "point-on-line",
    ("plane", "point"): "point-on-plane",
    ("curve", "point"): "point-on-curve",
}

_PARTS = (
    "bodies", "joints", "closures", "couplings", "rollings", "touches",
    "one_sided", "customs", "springs", "joint_springs", "loads", "actuators",
)  # fmt: skip


class Mechanism:
    """A machine under construction.

    Lengths in metres, angles in radians, masses in kilograms. Coordinates: right-handed, z up.
    """

    def __init__(self, name: str, gravity: Any = (0.0, 0.0, -9.81), planar: bool = False):
        """Start an empty machine.

        Args:
            name: shown in every report.
            gravity: acceleration of gravity in world axes [m/s²].
            planar: the machine lives in the x-z plane. Points may then be given as (x, z), inertias as one number
                about the plane's normal, and joints turn about -y unless told otherwise, so that angles count from
                x towards z.
        """
        self.name = name
        self.planar = planar
        self.ground = Body(GROUND)
        self._gravity = gravity
        self._parts: dict[str, list[Any]] = {key: [] for key in _PARTS}
        self._frames: dict[str, Feature] = {}
        self._groups: list[str] = []
        self._problems: list[str] = []

    # --- bodies and frames --------------------------------------------------------------------------------------
    def body(self, name: str, mass: Any = 0.0, com: Any = (0, 0, 0), inertia: Any = None) -> Body:
        """Add a rigid body.

        Args:
            name: its name.
            mass: [kg].
            com: centre of mass in the body frame [m].
            inertia: 3x3 about the centre of mass, in body axes [kg m²] (see `rod`, `box`, ...). Planar machines take
                one number. None means a point mass.
        """

        def build() -> Body:
            return Body(name, as_number(mass), self._point(com), self._inertia(inertia))

        part = self._add("bodies", "body", name, build)
        if part is None:  # keep the name known, so that one mistake is reported once
            part = Body(name, 1.0, np.zeros(3), np.eye(3))
            self._parts["bodies"].append(part)
        return part

    def _point(self, at: Any) -> np.ndarray:
        if np.shape(at) == (2,) and not self.planar:
            raise ValueError(f"the point {at!r} has two numbers; expected three (two are for planar machines)")
        return point(at)

    def _inertia(self, inertia: Any) -> np.ndarray:
        if inertia is None:
            return np.zeros((3, 3))
        if np.ndim(inertia) == 0:
            if not self.planar:
                raise ValueError("inertia must be a 3x3 matrix (one number is for Mechanism(..., planar=True))")
            j = as_number(inertia)
            return as_array([[j * 0.5, 0.0, 0.0], [0.0, j, 0.0], [0.0, 0.0, j * 0.5]], (3, 3))
        return as_array(inertia, (3, 3))

    def frame(self, name: str, feature: Feature) -> None:
        """Give a place on a body a name, so that its pose can be asked for."""
        if name in self._frames:
            self._problems.append(f"frame {name!r}: this name is taken")
        self._frames[name] = feature

    # --- joints -------------------------------------------------------------------------------------------------
    def joint(
        self, kind: str, name: str, parent: Any, child: Any, axis: Any = None, at: Any = (0, 0, 0), **options: Any
    ):
        """Add a joint of any kind; the named methods below are shorter.

        Args:
            kind: fixed, revolute, prismatic, helical, cylindrical, universal, planar, spherical or free.
            name: its name, also that of its coordinate.
            parent: body (or name) on one side.
            child: body (or name) on the other; the coordinate is the motion of the child relative to the parent.
            axis: letter or vector, in the joint frame.
            at: position of the joint frame in the parent [m].
            options: `rotation` of the joint frame in the parent, `child_at` and `child_rotation` (the same in the
                child), `axis2` (universal), `pitch` (helical) [m per turn], `stiffness`, `rest`, `damping`,
                `rotor_inertia`, `limits` (low, high), `initial` (where assembly starts looking).
        """
        part = self._add("joints", "joint", name, lambda: self._joint(kind, name, parent, child, axis, at, **options))
        if part is None:  # bodies stay connected and coordinates known, so that one mistake is reported once
            ends = [str(getattr(end, "name", end)) for end in (parent, child)]
            kind = kind if kind in JOINT_SIZES else "fixed"
            stand_in = self._joint(kind, name, ends[0], ends[1], "z", (0, 0, 0), pitch=1.0)
            self._parts["joints"].append(replace(stand_in, stand_in=True))

    def _joint(
        self, kind, name, parent, child, axis, at, *, rotation=None, child_at=(0, 0, 0), child_rotation=None, axis2="y",
        pitch=0.0, stiffness=0.0, rest=0.0, damping=0.0, rotor_inertia=0.0, limits=None, initial=None, **unknown,
    ) -> Joint:  # fmt: skip
        if unknown:
            known = [n for n, p in signature(self._joint).parameters.items() if p.kind is Parameter.KEYWORD_ONLY]
            raise TypeError(f"unknown option {next(iter(unknown))!r}; options: {', '.join(known)}")
        if axis is None:
            axis = "-y" if self.planar else "z"
        return Joint(
            name, kind, body_name(parent), body_name(child), unit_axis(axis), unit_axis(axis2), self._point(at),
            rotation_matrix(rotation), self._point(child_at), rotation_matrix(child_rotation), as_number(pitch),
            as_number(stiffness), as_number(rest), as_number(damping), as_number(rotor_inertia),
            _limits(limits),
            None if initial is None else np.atleast_1d(np.asarray(initial, dtype=float)),
        )  # fmt: skip

    def revolute(self, name: str, parent: Any, child: Any, axis: Any = None, at: Any = (0, 0, 0), **options: Any):
        """A hinge; options as for `joint`."""
        self.joint("revolute", name, parent, child, axis, at, **options)

    def prismatic(self, name: str, parent: Any, child: Any, axis: Any, at: Any = (0, 0, 0), **options: Any):
        """A slider along `axis`; options as for `joint`."""
        self.joint("prismatic", name, parent, child, axis, at, **options)

    def helical(self, name: str, parent: Any, child: Any, axis: Any, pitch: Any, at: Any = (0, 0, 0), **options: Any):
        """A screw: `pitch` metres along the axis for each full turn; its coordinate is the angle."""
        self.joint("helical", name, parent, child, axis, at, pitch=pitch, **options)

    def cylindrical(self, name: str, parent: Any, child: Any, axis: Any, at: Any = (0, 0, 0), **options: Any):
        """Turns about and slides along one axis: coordinates `name.angle` and `name.shift`."""
        self.joint("cylindrical", name, parent, child, axis, at, **options)

    def universal(
        self, name: str, parent: Any, child: Any, axes: Any = ("x", "y"), at: Any = (0, 0, 0), **options: Any
    ):
        """Two crossing hinges: `name.first` about axes[0] of the parent, then `name.second` about axes[1]."""
        first, second = axes
        self.joint("universal", name, parent, child, first, at, axis2=second, **options)

    def planar_joint(self, name: str, parent: Any, child: Any, axis: Any = None, at: Any = (0, 0, 0), **options: Any):
        """Slides in the plane normal to `axis` and turns about it: two shifts, then `name.angle`."""
        self.joint("planar", name, parent, child, axis, at, **options)

    def spherical(self, name: str, parent: Any, child: Any, at: Any = (0, 0, 0), **options: Any):
        """A ball joint: `name.quat_wxyz`, with velocity `name.omega` in child axes."""
        self.joint("spherical", name, parent, child, "z", at, **options)

    def free(self, name: str, body: Any, parent: Any = GROUND, **options: Any):
        """No joint at all: six velocities, `name.velocity` in parent axes and `name.omega` in body axes."""
        self.joint("free", name, parent, body, "z", **options)

    def fixed(self, name: str, parent: Any, child: Any, at: Any = (0, 0, 0), **options: Any):
        """A rigid connection."""
        self.joint("fixed", name, parent, child, "z", at, **options)

    # --- constraints --------------------------------------------------------------------------------------------
    def close(self, name: str, a: Feature, b: Feature) -> None:
        """Hold two features together.

        Args:
            name: name of the constraint.
            a: `point_on`, `revolute_on`, `prismatic_on`, ...
            b: one of the same kind; or a point on one side and a line, plane, curve or surface on the other.
        """
        first, second = (b, a) if a.kind == "point" and b.kind != "point" else (a, b)
        kind = _CLOSURES.get((first.kind, second.kind))
        if kind is None:
            pairs = ", ".join(f"{x}/{y}" for x, y in _CLOSURES)
            self._problems.append(
                f"closure {name!r}: a {a.kind} cannot be closed with a {b.kind}; pairs that fit: {pairs}"
            )
            self._groups.append(name)
            return
        self._constraint("closures", "closure", name, lambda: Closure(name, kind, first, second))

    def distance(self, name: str, a: Feature, b: Feature, length: Any) -> None:
        """Hold two points at a fixed distance (a massless rod) [1 row]."""
        self._constraint("closures", "distance", name, lambda: Closure(name, "distance", a, b, as_number(length)))

    def couple(self, name: str, coefficients: Mapping[str, Any], constant: Any = 0.0) -> None:
        """A gear or linear coupling: Σ coefficient · coordinate = constant. Keys are coordinate names."""
        self._constraint("couplings", "coupling", name, lambda: _coupling(name, coefficients, constant, None))

    def lock(self, name: str, coordinate: str, value: Any = 0.0) -> None:
        """Hold one coordinate at a value."""
        self._constraint("couplings", "lock", name, lambda: _coupling(name, {coordinate: 1.0}, value, None))

    def prescribe(self, name: str, coordinate: str, motion: Callable[[Any], Any]) -> None:
        """Drive one coordinate as a function of time t, which must be differentiable twice."""
        self._constraint("couplings", "motion", name, lambda: _coupling(name, {coordinate: 1.0}, 0.0, motion))

    def contact(
        self, name: str, plane: Feature, point: Feature, *, restitution: float = 0.0, sticking: bool = False,
        law: str = "newton", lifts: bool = True, friction: Any = 0.0, slip_speed: Any = 1e-3,
    ) -> None:  # fmt: skip
        """A point that cannot pass a plane but may leave it: a foot, a stop, a finger.

        Args:
            name: name of the constraint; its rows are `height` and, if it sticks, `slip-1` and `slip-2`.
            plane: `plane_on(body, at, normal)`; the point stays on the side the normal points to.
            point: `point_on(body, at)`.
            restitution: speed of separation over speed of approach, 0 (plastic) to 1 (elastic).
            sticking: whether friction holds the point while it touches, whatever it takes.
            law: "newton" or "poisson"; they differ where several contacts are hit at once.
            lifts: whether it opens and closes by itself. If not it is an ordinary constraint, which also pulls, to be
                switched on and off by events.
            friction: Coulomb's coefficient μ: a force μ N against the slip, N being the normal force at the same
                instant. Impacts are without friction.
            slip_speed: the friction is μ N tanh(slip / slip_speed) [m/s]; what should stick creeps below this speed.
        """
        dry = isinstance(friction, Scalar) or np.any(np.asarray(friction) != 0)

        def build() -> Touch:
            if (plane.kind, point.kind) != ("plane", "point"):
                raise ValueError(
                    "needs plane=plane_on(body, at, normal) and point=point_on(body, at), "
                    f"got {plane.kind}_on and {point.kind}_on"
                )
            if dry and (sticking or not lifts):
                other = "sticking=True, which holds the point" if sticking else "lifts=False, whose force also pulls"
                raise ValueError(f"friction={friction} does not go with {other}; give one of them")
            if dry and not float(numeric(slip_speed)) > 0:
                raise ValueError(f"slip_speed is {slip_speed}; expected a positive number [m/s]")
            return Touch(name, plane, point, bool(sticking), as_number(friction), as_number(slip_speed))

        self._constraint("touches", "contact", name, build)
        if lifts:
            self.one_sided(name, restitution=restitution, law=law)

    def stop(self, name: str, coordinate: str, at: Any, side: str, *, restitution: float = 0.0) -> None:
        """An end stop of a joint.

        Args:
            name: name of the constraint.
            coordinate: what it stops.
            at: where [rad or m].
            side: "low" if the coordinate stays above, "high" if it stays below.
            restitution: speed after over speed before, 0 to 1.
        """
        self.lock(name, coordinate, at)
        if side not in ("low", "high"):
            self._problems.append(f"stop {name!r}: side is {side!r}; expected 'low' or 'high'")
        self.one_sided(name, side="below" if side == "high" else "above", restitution=restitution)

    def one_sided(self, name: str, side: str = "above", *, restitution: float = 0.0, law: str = "newton") -> None:
        """Let a constraint only push: the residual of its first row stays at or above zero, its force is not negative.

        Args:
            name: a holonomic constraint of this machine.
            side: "above", or "below" for a residual that stays at or below zero (a rope: `distance`, "below").
            restitution: speed of separation over speed of approach, 0 to 1.
            law: "newton" or "poisson".
        """

        def build() -> OneSided:
            value = float(restitution)
            if not 0 <= value <= 1:
                raise ValueError(f"restitution is {restitution}; expected a number from 0 to 1")
            if law not in ("newton", "poisson"):
                raise ValueError(f"law is {law!r}; expected 'newton' or 'poisson'")
            if side not in ("above", "below"):
                raise ValueError(f"side is {side!r}; expected 'above' or 'below'")
            return OneSided(name, 1.0 if side == "above" else -1.0, value, law)

        self._add("one_sided", "one-sided constraint", name, build)

    def rolling(self, name: str, hub: Feature, radius: Any, plane: Feature) -> None:
        """A disc rolls on a plane without slip: one holonomic row (height) and two nonholonomic rows.

        Args:
            name: name of the constraint.
            hub: `revolute_on(disc, centre, axis)`.
            radius: [m].
            plane: `plane_on(ground, at, normal)`; the hub is on the side the normal points to.
        """

        def build() -> Rolling:
            if (hub.kind, plane.kind) != ("revolute", "plane"):
                raise ValueError(
                    "needs hub=revolute_on(disc, centre, axis) and plane=plane_on(ground, at, normal), "
                    f"got {hub.kind}_on and {plane.kind}_on"
                )
            return Rolling(name, hub, plane, as_number(radius))

        self._constraint("rollings", "rolling", name, build)

    def knife_edge(self, name: str, at: Feature, direction: Any) -> None:
        """A blade: the point may not move along `direction` (body axes) [1 nonholonomic row]."""

        def build() -> Custom:
            axis = unit_axis(direction)
            return Custom(name, False, lambda k: k.direction(at.body, axis).T @ k.velocity(at), at)

        self._constraint("customs", "knife edge", name, build)

    def constrain(self, name: str, function: Callable[[Any], Any]) -> None:
        """Your own holonomic rows: `function(k)` returns Φ(q, t), which is held at zero. See `Kinematics` for k."""
        self._constraint("customs", "constraint", name, lambda: Custom(name, True, _callable(function)))

    def constrain_velocity(self, name: str, function: Callable[[Any], Any]) -> None:
        """Your own Pfaffian rows: `function(k)` returns A(q, t) v - a(t), linear in the velocities, held at zero."""
        self._constraint("customs", "constraint", name, lambda: Custom(name, False, _callable(function)))

    # --- forces and actuators -----------------------------------------------------------------------------------
    def spring(self, name: str, a: Feature, b: Feature, stiffness: Any, length: Any = 0.0, damping: Any = 0.0) -> None:
        """Spring [N/m] and damper [N s/m] along the line between two points."""
        self._add(
            "springs", "spring", name,
            lambda: Spring(name, a, b, as_number(stiffness), as_number(length), as_number(damping)),
        )  # fmt: skip

    def joint_spring(self, name: str, joints: Any, stiffness: Any = 0.0, rest: Any = 0.0, damping: Any = 0.0) -> None:
        """Spring and damper on a coordinate, or on a combination such as {"A": 1, "B": -1} (between two joints)."""

        def build() -> JointSpring:
            combination = {joints: 1.0} if isinstance(joints, str) else dict(joints)
            return JointSpring(name, _numbers(combination), as_number(stiffness), as_number(rest), as_number(damping))

        self._add("joint_springs", "joint spring", name, build)

    def friction(self, name: str, joints: Any, limit: Any, speed: Any) -> None:
        """Dry (Coulomb) friction on a coordinate or a combination of them, smoothed around rest.

        Args:
            name: its name.
            joints: a coordinate, or a combination such as {"A": 1, "B": -1}.
            limit: largest friction force [N] or torque [N m].
            speed: [m/s or rad/s] below which it fades: the force is -limit · tanh(rate / speed), so that at rest it
                creeps instead of holding; make it small against the speeds that matter.
        """

        def build() -> JointSpring:
            combination = {joints: 1.0} if isinstance(joints, str) else dict(joints)
            if isinstance(speed, (int, float)) and not speed > 0:
                raise ValueError(f"speed is {speed}; expected a positive number")
            return JointSpring(name, _numbers(combination), 0.0, 0.0, 0.0, as_number(limit), as_number(speed))

        self._add("joint_springs", "friction", name, build)

    def force(self, name: str, at: Feature, value: Any, local: bool = False) -> None:
        """A force at a point [N]: three numbers or `function(k)`; in world axes, or body axes if `local`."""
        self._add("loads", "force", name, lambda: Load(name, "force", at, self._load(value), local))

    def torque(self, name: str, on: Any, value: Any, local: bool = False) -> None:
        """A torque on a body [N m]: three numbers or `function(k)`; in world axes, or body axes if `local`."""

        def build() -> Load:
            place = Feature("point", body_name(on), np.zeros(3), np.eye(3))
            return Load(name, "torque", place, self._load(value), local)

        self._add("loads", "torque", name, build)

    def motor(self, coordinate: str, name: str | None = None, gear: Any = 1.0, limits: Any = None) -> None:
        """A motor on a joint coordinate; the input is its force or torque times `gear`."""
        label = name or coordinate
        self._add(
            "actuators", "motor", label,
            lambda: Actuator(label, "joint", {coordinate: as_number(gear)}, limits=_limits(limits)),
        )  # fmt: skip

    def thruster(self, name: str, at: Feature, direction: Any, local: bool = True, limits: Any = None) -> None:
        """A force input at a point along a direction, fixed to the body (`local`) or to the world."""
        self._add(
            "actuators", "thruster", name,
            lambda: Actuator(name, "point", {}, at, unit_axis(direction), local, _limits(limits)),
        )  # fmt: skip

    def actuator(self, name: str, coefficients: Mapping[str, Any], limits: Any = None) -> None:
        """A general column of B: the input acts on several coordinates with the given coefficients."""
        self._add(
            "actuators", "actuator", name,
            lambda: Actuator(name, "joint", _numbers(coefficients), limits=_limits(limits)),
        )  # fmt: skip

    # --- freezing -----------------------------------------------------------------------------------------------
    def finalize(self) -> Model:
        """Check everything and freeze.

        Returns:
            The frozen machine.

        Raises:
            ModelError: with all problems at once, each naming its part.
        """
        return freeze(self.name, self._gravity, self.planar, self._parts, self._frames, self._groups, self._problems)

    def _load(self, value: Any) -> Any:
        return value if callable(value) else self._point(value)

    def _add(self, key: str, what: str, name: str, build: Callable[[], Any]) -> Any:
        try:
            part = build()
        except (ValueError, TypeError) as error:
            self._problems.append(f"{what} {name!r}: {error}")
            return None
        self._parts[key].append(part)
        return part

    def _constraint(self, key: str, what: str, name: str, build: Callable[[], Any]) -> None:
        self._groups.append(name)
        self._add(key, what, name, build)


def _coupling(name: str, coefficients: Mapping[str, Any], constant: Any, motion: Any) -> Coupling:
    if motion is not None:
        _callable(motion)
    return Coupling(name, _numbers(coefficients), as_number(constant), motion)


def _numbers(coefficients: Mapping[str, Any]) -> dict[str, Any]:
    if not coefficients or all(isinstance(c, (int, float)) and c == 0 for c in coefficients.values()):
        raise ValueError("needs at least one coordinate with a coefficient other than 0, such as {'A': 1, 'B': -2}")
    return {key: as_number(value) for key, value in coefficients.items()}


def _callable(function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise TypeError(f"expected a function, got {type(function).__name__}")
    return function


def _limits(limits: Any) -> tuple[float, float] | None:
    if limits is None:
        return None
    low, high = (-limits, limits) if np.ndim(limits) == 0 else limits
    if not float(low) < float(high):
        raise ValueError(f"limits {limits!r} must be (low, high) with low < high, or one positive number")
    return float(low), float(high)
