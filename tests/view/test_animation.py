"""The animation's file holds the right motion, its bodies reach their joints, and a browser shows it."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import casadi as ca
import numpy as np
import pytest
from browser import changed, picture, requests

import sarrus as sr
from sarrus.dynamics.manifold import retract
from sarrus.model.parts import Body
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory
from sarrus.view import animate
from sarrus.view.animate import body_motion, page_data, playing_speed, point_path, write_animation
from sarrus.view.shapes import body_shapes, places, thickness


def record(system, t, q, v, a, **more):
    """A trajectory from arrays."""
    more = {"segments": (Segment(0, dict.fromkeys(system.groups, True), system.p),)} | more
    u = np.zeros((len(t), system.layout.nu))
    return Trajectory(system, t, q, v, a, u, Status("finished", "", float(t[-1])), Stats("midpoint"), **more)


def run(name, t_end, count, velocities=None):
    """A short run by the midpoint rule, put back onto the constraints after each step."""
    system = sr.compile(sr.library.build(name))
    x, h = system.layout, t_end / count
    state = system.assemble(velocities=velocities or {})
    states = [state]
    for _ in range(count):
        half = system.state(retract(x, state.q, h / 2 * state.v), state.v + h / 2 * system.acceleration(state), state.t)
        v = state.v + h * system.acceleration(half)
        q = system.assemble(near=system.state(retract(x, state.q, h * half.v))).q
        state = system.state(q, system.projector(system.state(q)) @ v, state.t + h)
        states.append(state)
    q, v, t = (np.array([getattr(s, key) for s in states]) for key in ("q", "v", "t"))
    return record(system, t, q, v, np.array([system.acceleration(s) for s in states]))


def spinning(rate=1.5, t_end=4.0, count=9, **more):
    """A pendulum that turns steadily."""
    system = sr.compile(sr.library.build("pendulum"))
    t = np.linspace(0.0, t_end, count)
    rows = t[:, None]
    return record(system, t, rate * rows, np.full_like(rows, rate), np.zeros_like(rows), **more)


def floats(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


# --- the motion in the file ----------------------------------------------------------------------------------------


def test_poses_in_the_file_are_those_of_a_turning_pendulum():
    data = page_data(spinning(), None)
    found = floats(data["poses"]).reshape(data["frames"], 1, 7)
    angle = 1.5 * np.linspace(0.0, 4.0, data["frames"])
    assert np.abs(found[:, 0, :3]).max() < 1e-6
    expected = np.column_stack([np.cos(angle / 2), 0 * angle, -np.sin(angle / 2), 0 * angle])  # about -y
    assert np.abs(np.abs(np.sum(found[:, 0, 3:] * expected, axis=1)) - 1).max() < 1e-6


def test_point_path_turns_with_its_body():
    when = np.array([0.0, 0.3, 1.9, 4.0])
    path = point_path(body_motion(spinning(), when), 0, np.array([1.0, 0.2, 0.0]))
    expected = np.column_stack([np.cos(1.5 * when), 0.2 + 0 * when, np.sin(1.5 * when)])
    np.testing.assert_allclose(path, expected, atol=1e-12)


def test_motion_uses_the_parameters_of_its_segment():
    system = sr.compile(sr.library.build("four_bar"))
    state = system.assemble()
    q = np.array([state.q] * 4)
    rest = np.zeros((4, 3))
    longer = np.array([2.0 if name == "L1" else x for name, x in system.parameters.items()])
    segments = (Segment(0, {"D": True}, system.p), Segment(2, {"D": True}, longer))
    traj = record(system, np.array([0.0, 1.0, 1.0, 2.0]), q, rest, rest, segments=segments)
    motion = body_motion(traj, np.array([0.5, 1.0, 1.5]))
    np.testing.assert_allclose(np.linalg.norm(motion[:, 1, :3], axis=1), [1.0, 2.0, 2.0])  # where the coupler starts


@pytest.mark.parametrize(
    ("duration", "speed"), [(0.03, 0.002), (0.5, 0.05), (1.5, 1.0), (10.0, 1.0), (60.0, 1.0), (1e4, 1e3), (0.0, 1.0)]
)
def test_playing_speed(duration, speed):
    assert playing_speed(duration) == pytest.approx(speed, rel=1e-12)


def test_frames_follow_play_time_and_the_limit_of_size(monkeypatch):
    traj = spinning()
    assert page_data(traj, None)["frames"] == 4 * 60 + 1
    assert page_data(traj, None, fps=10.0, speed=0.5)["frames"] == 8 * 10 + 1
    monkeypatch.setattr(animate, "SIZE_LIMIT", 2000)
    data = page_data(traj, None)
    assert len(data["poses"]) <= 2000 + 80
    assert floats(data["poses"]).size == 7 * data["frames"]


def test_a_single_row_is_a_still_picture():
    assert page_data(spinning(count=1, t_end=0.0), None)["frames"] == 1


# --- shapes --------------------------------------------------------------------------------------------------------


def distance(shape, point):
    """Distance of a point from a shape's surface; 0 inside."""
    if shape.kind == "ball":
        return max(float(np.linalg.norm(point - shape.points[0])) - shape.size, 0.0)
    if shape.kind == "bar":
        a, b = shape.points
        s = np.clip((point - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        return max(float(np.linalg.norm(a + s * (b - a) - point)) - shape.size, 0.0)
    n, ring = shape.normal, shape.points
    off = max(abs(float((point - ring[0]) @ n)) - shape.size, 0.0)
    sides = np.array(
        [np.cross(n, np.roll(ring, -1, axis=0)[k] - ring[k]) @ (point - ring[k]) for k in range(len(ring))]
    )
    if np.all(sides >= -1e-12) or np.all(sides <= 1e-12):
        return off
    return min(float(np.linalg.norm(point - corner)) for corner in ring)


@pytest.mark.parametrize("name", sr.library.names())
def test_bodies_reach_their_joints(name):
    model = sr.library.build(name).finalize()
    held = places(model, model.parameters)
    radius = thickness(model, model.parameters, 1.0)
    for body in model.bodies:
        shapes = body_shapes(model, body, held[body.name], model.parameters, radius)
        assert shapes
        for point in held[body.name]:
            extent = max(float(np.ptp(np.vstack([s.points for s in shapes]), axis=0).max()), radius)
            assert min(distance(s, point) for s in shapes) < 0.03 * extent + radius, (body.name, point)


def shapes_of(mass, inertia, com=(0, 0, 0), points=(), planar=False):
    body = Body("b", mass, np.array(com, dtype=float), np.zeros((3, 3)) if inertia is None else inertia)
    model = replace(sr.library.build("pendulum").finalize(), bodies=(body,), planar=planar)
    return body_shapes(model, body, np.array(points, dtype=float).reshape(-1, 3), {}, 0.01)


def test_inertia_of_common_solids_gives_them_back():
    (ball,) = shapes_of(2.0, sr.sphere(2.0, 0.3))
    assert (ball.kind, ball.size) == ("ball", pytest.approx(0.3, rel=2e-3))
    (disc,) = shapes_of(2.0, sr.cylinder(2.0, 0.5, 0.1, "y"))
    assert disc.size == pytest.approx(0.05)
    np.testing.assert_allclose(np.linalg.norm(disc.points, axis=1), 0.5, rtol=1e-3)
    assert abs(disc.normal[1]) == pytest.approx(1.0)
    (brick,) = shapes_of(2.0, sr.box(2.0, (0.6, 0.4, 0.2)), com=(1, 0, 0))
    assert brick.size == pytest.approx(0.1)
    np.testing.assert_allclose(np.abs(brick.points - [1, 0, 0]), np.tile([0.3, 0.2, 0.0], (4, 1)), atol=1e-12)
    (rod,) = shapes_of(2.0, sr.cylinder(2.0, 0.05, 1.2, "z"))
    assert (rod.kind, rod.size) == ("bar", pytest.approx(0.05, rel=1e-2))
    np.testing.assert_allclose(np.sort(rod.points[:, 2]), [-0.6, 0.6], atol=2e-3)


def test_joints_make_bars_plates_and_stars():
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    (bar,) = shapes_of(1.0, sr.rod(1.0, 1.0), com=(0.5, 0, 0), points=corners[:2])
    np.testing.assert_allclose(sorted(bar.points.tolist()), [[0, 0, 0], [1, 0, 0]])
    plate, ball = shapes_of(1.0, None, points=[(0.3, 0.3, 0), *corners])
    assert (plate.kind, len(plate.points), ball.kind) == ("plate", 3, "ball")  # what lies inside is no corner
    star = shapes_of(0.0, None, points=[*corners, (0, 0, 1)])
    assert [s.kind for s in star] == ["bar"] * 4
    (carriage,) = shapes_of(0.0, None)
    assert carriage.kind == "plate"


def test_one_number_of_planar_inertia_says_nothing_about_shape():
    points, square = [(0, 0, 0), (1, 0, 0)], np.diag([0.5, 1.0, 0.5])
    (bar,) = shapes_of(5.0, square, (0.5, 0, 0), points, planar=True)
    (disc,) = shapes_of(5.0, square, (0.5, 0, 0), points)
    assert (bar.kind, disc.kind) == ("bar", "plate")


def test_closures_cut_joints_springs_and_paths_are_marked():
    traj = run("bricard", 0.02, 2)
    data = page_data(traj, None)
    assert [j["name"] for j in data["joints"] if j["closes"]] == list(traj.system.groups)
    assert [path["name"] for path in data["paths"]] == ["P3"]
    data = page_data(run("andrews", 1e-4, 2), None)
    assert [line["kind"] for line in data["lines"]] == ["spring"]
    data = page_data(run("slider_crank", 0.02, 2), None)
    assert [(path["kind"], path["frame"]) for path in data["paths"]] == [("rail", -1)]
    assert data["planar"]


# --- the page ------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Elements, attributes and script texts, as a browser would find them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.scripts:
            self.scripts[-1] += data


def test_file_needs_nothing_else(tmp_path):
    path = write_animation(spinning(), tmp_path / "a.html")
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(https?|wss?|ftp):|//[\w.]+\.\w+/|@import|url\(", text)
    page = Page(text)
    assert not {"iframe", "object", "embed", "base", "form"} & set(page.tags)
    links = [value for name, value in page.attributes if name in ("src", "href", "srcset", "data", "action")]
    assert links == ["data:,"]
    assert "default-src 'none'" in text
    assert not re.search(r"\{\{\w+\}\}", text)  # every place of the template was filled


@pytest.mark.parametrize(
    "title", ["</script><script>alert(1)</script>", "\"'`${x}\\", "<!-- <b>&amp; \u2028", "{{data}}"]
)
def test_no_name_breaks_the_page(tmp_path, title):
    text = write_animation(spinning(), tmp_path / "a.html", title=title).read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags.count("script") == 2
    assert "b" not in page.tags
    assert json.loads(page.scripts[0])["title"] == title


def test_a_machine_without_bodies_has_curves_only():
    q, v = ca.SX.sym("</script>"), ca.SX.sym("v")
    system = sr.compile(sr.Lagrangian("odd", q, v, 0.5 * v**2))
    rows = np.zeros((3, 1))
    data = page_data(record(system, np.arange(3.0), rows, rows, rows), None)
    assert "not by bodies: there are only curves" in data["message"]
    assert "poses" not in data
    assert [c["title"] for c in data["curves"]] == ["coordinates", "velocities", "energies"]


def test_marks_tell_what_happened():
    traj = spinning()
    crossing = Crossing(1.0, traj.q[0], traj.v[0], np.array([1e-9]), 0, 1, text="kept to the branch")
    event = EventRecord("half", 2.0, traj.q[0], traj.v[0], -1, "motor off")
    marks = page_data(replace(traj, crossings=(crossing,), events=(event,)), None)["marks"]
    assert [(m["t"], m["label"]) for m in marks] == [(1.0, "×1"), (2.0, "•1")]
    assert "kept to the branch" in marks[0]["text"]
    assert "motor off" in marks[1]["text"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"path": "a.mp4"}, r"cannot write 'a\.mp4'; let the name end in \.html"),
        ({"fps": 0}, r"fps = 0; expected a positive number"),
        ({"speed": -1.0}, r"speed = -1\.0; expected a positive number"),
        ({"speed": float("nan")}, r"speed = nan"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, options, text):
    with pytest.raises(sr.SarrusError, match=text):
        write_animation(spinning(), **({"path": tmp_path / "a.html"} | options))


# --- in a browser --------------------------------------------------------------------------------------------------

STAGE = (slice(60, 600), slice(0, 640))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "velocities"),
    [("slider_crank", {"A": 3.0}), ("four_bar", {"A": 2.0}), ("stewart", {}), ("bricard", {})],
)
def test_picture_moves_with_time(tmp_path, name, velocities):
    path = write_animation(run(name, 0.6, 60, velocities), tmp_path / f"{name}.html")
    early, again, late = (picture(tmp_path, path, time) for time in (0.1, 0.1, 0.5))
    assert changed(early, again) == 0
    assert changed(early[STAGE], late[STAGE]) > 0.004
    assert changed(early[:, 660:], late[:, 660:]) > 1e-4  # the cursor in the curves


@pytest.mark.slow
def test_the_pendulum_is_drawn_where_it_is(tmp_path):
    """The ball at its end, found by its colour, is at the angle that the closed form gives."""
    path = write_animation(spinning(rate=np.pi / 4, t_end=8.0, count=30), tmp_path / "pendulum.html")
    ends = []
    for time in (0.0, 2.0, 4.0, 6.0):
        stage = picture(tmp_path, path, time)[STAGE]
        blue = np.argwhere((stage[..., 2] > stage[..., 0] + 45) & (np.ptp(stage, axis=-1) > 60))[:, ::-1]
        ends.append(blue.mean(axis=0))  # between pivot and end
    centre = np.mean(ends, axis=0)
    angle = [np.arctan2(-(y - centre[1]), x - centre[0]) for x, y in ends]  # the screen's y points down
    np.testing.assert_allclose(np.unwrap(angle), [0, np.pi / 2, np.pi, 3 * np.pi / 2], atol=0.05)


@pytest.mark.slow
def test_dark_and_narrow_pages_are_readable(tmp_path):
    path = write_animation(run("four_bar", 0.3, 30, {"A": 2.0}), tmp_path / "four_bar.html")
    light = picture(tmp_path, path, 0.1)
    dark = picture(tmp_path, path, 0.1, "--blink-settings=preferredColorScheme=0")
    assert np.median(light) > 230
    assert np.median(dark) < 60
    narrow = picture(tmp_path, path, 0.1, "--window-size=500,1400")
    assert changed(narrow[60:700], np.full_like(narrow[60:700], 255)) > 0.01


def test_page_plays_and_asks_the_network_for_nothing(tmp_path):
    path = write_animation(run("four_bar", 2.0, 100), tmp_path / "four_bar.html")
    foreign = tmp_path / "foreign.html"
    foreign.write_text('<img src="http://example.invalid/x.png">')
    for _ in range(5):  # on a busy machine the page may be looked at before it has drawn a second picture
        asked, dom = requests(tmp_path, path)
        if played := float(re.search(r'data-time="([\d.]+)"', dom)[1]):
            break
    assert played > 0  # no #t in the address: it plays
    assert int(re.search(r'data-items="(\d+)"', dom)[1]) > 10
    assert not asked
    assert requests(tmp_path, foreign)[0] == {"http://example.invalid/x.png"}  # it would be seen
