"""One HTML file with the machine in motion and its curves; it needs a browser and nothing else, no network either."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.manifold import quat_multiply
from sarrus.dynamics.state import State
from sarrus.errors import SarrusError
from sarrus.model.expression import numeric
from sarrus.model.parts import GROUND, Closure, Feature, Joint, Model
from sarrus.model.tree import span
from sarrus.simulation import access
from sarrus.simulation.evaluate import poses
from sarrus.simulation.interpolate import hermite
from sarrus.view.plot import COLOURS, CROSSED, HAPPENED, Curves, curves, marks
from sarrus.view.shapes import CORNERS, HOLDS, Shape, body_shapes, places, thickness

if TYPE_CHECKING:
    from sarrus.simulation.trajectory import Trajectory

SIZE_LIMIT = 10_000_000  # characters for the poses in the file
SLIDING = ("prismatic", "cylindrical")
UNCERTAIN = ("line", "plane", "curve")  # features that are not at one point


def write_animation(
    traj: Trajectory, path: Any, *, title: str | None = None, fps: float = 60.0, speed: float | None = None
) -> Path:
    """Write the motion as one HTML file: the machine in three dimensions, and its curves.

    Args:
        traj: a recorded motion.
        path: of the file; its name ends in .html.
        title: above the picture; the machine's name if None.
        fps: pictures for each second of play; fewer if the file would get too large.
        speed: seconds of motion for each second of play. None: as in reality, but slower or faster where that would
            take less than 1.5 seconds or more than a minute.

    Returns:
        The path.

    Raises:
        SarrusError: the ending is not .html, or fps or speed is not positive.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise SarrusError(f"animate: cannot write {str(path)!r}; let the name end in .html")
    for name, value in (("fps", fps), ("speed", speed)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise SarrusError(f"animate: {name} = {value!r}; expected a positive number")
    data = page_data(traj, title, fps, speed)
    parts = {
        "title": html.escape(data["title"]), "style": part("viewer.css"), "viewer": viewer(data), "script": script(),
    }  # fmt: skip
    path.write_text(fill(part("viewer.html"), parts), encoding="utf-8")
    return path


# --- the page ------------------------------------------------------------------------------------------------------


def part(name: str) -> str:
    """Text of one of the files that the page is made of."""
    return resources.files("sarrus.view").joinpath("page", name).read_text(encoding="utf-8")


def script() -> str:
    """The program of the page."""
    return "\n".join(part(name) for name in ("scene.js", "draw.js", "curves.js", "viewer.js"))


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Replace every {{name}} of a template, once: what is filled in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def viewer(data: Mapping[str, Any]) -> str:
    """The place for a viewer in a page, with its data. No name can end the script element: there is no "<" in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return f'<div class="sarrus" tabindex="0"><script type="application/json">{text}</script></div>'


def page_data(traj: Trajectory, title: str | None, fps: float = 60.0, speed: float | None = None) -> dict[str, Any]:
    """All that the page needs, as JSON data with the numbers in base64."""
    begin, end = float(traj.t[0]), float(traj.t[-1])
    if speed is None:
        speed = playing_speed(end - begin)
    model = traj.system.description
    data: dict[str, Any] = {
        "title": title if title is not None else traj.system.name,
        "status": str(traj.status),
        "begin": begin,
        "end": end,
        "speed": speed,
        "colours": COLOURS,
        "curves": [_curves(c) for c in curves(traj)],
        "marks": _marks(traj),
        "bodies": [],
        "message": "",
    }
    if not isinstance(model, Model) or not model.bodies:
        return data | {"message": "This machine is described by its energies, not by bodies: there are only curves."}
    per_frame = len(model.bodies) * 7 * 4 * 4 / 3
    count = int(np.clip((end - begin) / speed * fps, 1, SIZE_LIMIT / per_frame)) + 1 if end > begin else 1
    motion = body_motion(traj, np.linspace(begin, end, count))
    return data | _scene(model, traj, motion) | {"frames": count, "poses": packed(motion)}


def playing_speed(duration: float) -> float:
    """1, or the number of the kind 1, 2 or 5 times a power of ten with which it plays for about ten seconds."""
    if 1.5 <= duration <= 60.0 or duration <= 0:
        return 1.0
    wanted = duration / 10.0
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(min((power * k for k in (1, 2, 5, 10)), key=lambda x: abs(np.log(x / wanted))))


def packed(values: np.ndarray) -> str:
    """Numbers as base64 of little-endian float32."""
    limit = float(np.finfo(np.float32).max)
    clipped = np.clip(values, -limit, limit)  # NaN passes
    return base64.b64encode(np.ascontiguousarray(clipped, dtype="<f4").tobytes()).decode("ascii")


def _curves(c: Curves) -> dict[str, Any]:
    first = c.pick(len(COLOURS))
    series = [{"name": name, "values": packed(values), "on": name in first} for name, values in c.series.items()]
    out = {"title": c.title, "unit": c.unit, "log": c.log, "note": c.note, "series": series, "t": packed(c.t - c.t[0])}
    return out | ({"level": {"name": c.level[0], "value": c.level[1]}} if c.level else {})


def _marks(traj: Trajectory) -> list[dict[str, Any]]:
    texts = {f"{CROSSED}{k}": f"Singular position crossed. {c}" for k, c in enumerate(traj.crossings, 1)}
    texts |= {f"{HAPPENED}{k}": f"Event. {e}" for k, e in enumerate(traj.events, 1)}
    return [{"t": t, "label": label, "text": texts[label]} for t, label in marks(traj)]


# --- the motion ----------------------------------------------------------------------------------------------------


def body_motion(traj: Trajectory, when: np.ndarray) -> np.ndarray:
    """Position and quaternion (w, x, y, z) of every body at the times given, shape (count, bodies, 7)."""
    x = traj.system.layout
    index = np.clip(np.searchsorted(traj.t, when, side="right") - 1, 0, max(len(traj.t) - 2, 0))
    if len(traj.t) == 1:
        q = np.repeat(traj.q, len(when), axis=0)
    else:
        q = hermite(x, traj.t, traj.q, traj.v, traj.a, index, when, access.setting_out(traj))[0]
    out = np.zeros((len(when), len(x.bodies), 7))
    for piece, _, system in traj.pieces():
        rows = np.flatnonzero((index >= piece.start) & (index < piece.stop))
        if not len(rows):
            continue
        found = poses(system, State(x, q[rows], None, when[rows]))
        for b, name in enumerate(x.bodies):
            position, rotation = found[name]
            out[rows, b] = np.hstack([position, _quaternions(rotation)])
    return out


def _quaternions(rotation: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(rotation).as_quat()[:, [3, 0, 1, 2]]


def point_path(motion: np.ndarray, body: int, at: np.ndarray) -> np.ndarray:
    """World path of a point of a body; body -1 is the ground."""
    if body < 0:
        return np.broadcast_to(at, (len(motion), 3))
    position, quat = motion[:, body, :3], motion[:, body, 3:]
    pure = np.concatenate([[0.0], at])
    turned = quat_multiply(quat_multiply(quat, np.broadcast_to(pure, quat.shape)), quat * np.array([1, -1, -1, -1]))
    return position + turned[:, 1:]


# --- the scene -----------------------------------------------------------------------------------------------------


def _scene(model: Model, traj: Trajectory, motion: np.ndarray) -> dict[str, Any]:
    """Shapes, joints, closures and the paths of points."""
    p = dict(zip(traj.system.layout.parameters, traj.segments[0].p.tolist(), strict=True))
    number = {GROUND: -1, **{body.name: k for k, body in enumerate(model.bodies)}}
    held = places(model, p)
    start = [point_path(motion[:1], number[name], at)[0] for name, points in held.items() for at in points]
    start += [pose[:3] for pose in motion[0]]
    extent = float(np.linalg.norm(np.ptp(np.array(start), axis=0))) or traj.system.layout.length
    radius = thickness(model, p, extent)
    solid = {body.name for body in model.bodies if float(numeric(body.mass, p)) > 0}
    inner = {j.child for j in model.joints if j.kind in SLIDING and j.parent in solid}
    shapes = []
    wheels = {rolling.hub.body: rolling for rolling in model.rollings}
    for body in model.bodies:
        if body.name in wheels:
            wheel = wheels[body.name]
            found = [_wheel(wheel.hub, float(numeric(wheel.radius, p)), radius, p)]
        else:
            found = body_shapes(model, body, held[body.name], p, radius)
        if body.name in inner:  # a piston: thinner than the cylinder around it
            found = [replace(x, size=0.7 * x.size, inside=True) if x.kind == "bar" else x for x in found]
        shapes += [_shape(shape, number[body.name]) for shape in found]
    cut = {joint.name for joint in span(model).cuts}
    scene = _Parts(number, p, solid)
    for joint in model.joints:
        scene.joint(joint, joint.name in cut)
    for closure in model.closures:
        scene.closure(closure)
    for spring in model.springs:
        scene.line(spring.name, spring.a, spring.b, "spring")
    for name, feature in model.frames.items():
        scene.path(name, -1, feature.body, _point(feature.at, p), "path")
    return {
        "bodies": [body.name for body in model.bodies],
        "planar": model.planar,
        "radius": radius,
        "shapes": shapes,
        "joints": scene.joints,
        "lines": scene.lines,
        "paths": scene.paths,
        "feet": scene.feet,
    }


def _point(at: Any, p: Mapping[str, float]) -> list[float]:
    return np.asarray(numeric(at, p), dtype=float).tolist()


def _shape(shape: Shape, body: int) -> dict[str, Any]:
    normal = {} if shape.normal is None else {"normal": shape.normal.tolist()}
    inside = {"inside": True} if shape.inside else {}
    out = {"kind": shape.kind, "body": body, "points": shape.points.tolist(), "size": shape.size}
    return out | normal | inside


def _wheel(hub: Feature, radius: float, thin: float, p: Mapping[str, float]) -> Shape:
    angle = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    rim = np.outer(np.cos(angle), hub.frame[:, 0]) + np.outer(np.sin(angle), hub.frame[:, 1])
    return Shape("plate", np.array(_point(hub.at, p)) + radius * rim, 0.6 * thin, hub.frame[:, 2])


class _Parts:
    """Collects markers, lines and paths as plain data."""

    def __init__(self, number: Mapping[str, int], p: Mapping[str, float], solid: set[str]):
        self.number, self.p, self.solid = number, p, solid
        self.joints: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []
        self.paths: list[dict[str, Any]] = []
        self.feet: list[list[float]] = []

    def joint(self, joint: Joint, closes: bool) -> None:
        """A joint's marker; a rail where it slides on something that has no shape of its own."""
        if joint.kind not in HOLDS or joint.kind == "fixed":
            return
        slides = joint.kind in SLIDING
        if slides and joint.parent in self.solid and not closes:
            return  # the bodies themselves show it
        body, at, turn = (
            (joint.child, joint.child_at, joint.child_rotation) if slides else (joint.parent, joint.at, joint.rotation)
        )
        self._marker(joint.name, joint.kind, body, at, turn @ joint.axis, closes)
        if slides:
            self.path(joint.name, self.number[joint.parent], joint.child, _point(joint.child_at, self.p), "rail")
        if not slides and GROUND in (joint.parent, joint.child):
            self.feet.append(_point(joint.at if joint.parent == GROUND else joint.child_at, self.p))

    def closure(self, closure: Closure) -> None:
        """Markers on both sides; on a line, plane or curve the path of the point that stays on it."""
        axis = closure.b.frame[:, 2]
        kind = closure.kind if closure.kind in ("revolute", "cylindrical", "prismatic") else "point"
        self._marker(closure.name, kind, closure.b.body, closure.b.at, axis, True)
        if closure.a.kind in UNCERTAIN:
            a = self.number[closure.a.body]
            self.path(closure.name, a, closure.b.body, _point(closure.b.at, self.p), "rail")
            return
        if closure.kind in ("distance", "cylindrical", "prismatic", "planar"):  # the two points may be apart
            self._marker("", kind, closure.a.body, closure.a.at, closure.a.frame[:, 2], True)
            self.line(closure.name, closure.a, closure.b, "distance")
        for side in (closure.a, closure.b):
            if side.body == GROUND:
                self.feet.append(_point(side.at, self.p))

    def line(self, name: str, a: Feature, b: Feature, kind: str) -> None:
        """A line between two features."""
        ends = [{"body": self.number[x.body], "at": _point(x.at, self.p)} for x in (a, b)]
        self.feet += [_point(x.at, self.p) for x in (a, b) if x.body == GROUND and kind == "spring"]
        self.lines.append({"name": name, "kind": kind, "ends": ends})

    def path(self, name: str, frame: int, body: str, at: list[float], kind: str) -> None:
        """The path of a point of a body in the frame of another."""
        self.paths.append({"name": name, "kind": kind, "frame": frame, "body": self.number[body], "at": at})

    def _marker(self, name: str, kind: str, body: str, at: Any, axis: np.ndarray, closes: bool) -> None:
        marker = {"name": name, "kind": kind, "body": self.number[body], "at": _point(at, self.p)}
        self.joints.append(marker | {"axis": axis.tolist(), "closes": closes})
