"""The curves are right, by closed forms and by other routes, and the figure is readable and gets written."""

import subprocess
import sys
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import sarrus as sr
from sarrus.dynamics.manifold import retract
from sarrus.simulation.driver import simulate
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory
from sarrus.view import plot
from sarrus.view.plot import curves, plot_trajectory


def record(system, t, q, v, a, u=None, **more):
    """A trajectory from arrays."""
    everything = dict.fromkeys(system.groups, True)
    u = np.zeros((len(t), system.layout.nu)) if u is None else u
    more = {"segments": (Segment(0, everything, system.p),)} | more
    return Trajectory(system, t, q, v, a, u, Status("finished", "", float(t[-1])), Stats("midpoint"), **more)


def run(name, t_end, count, velocities=None, inputs=0.0, **parameters):
    """A short run by the midpoint rule; nothing here depends on its accuracy."""
    system = sr.compile(sr.library.build(name, **parameters))
    x, h, u = system.layout, t_end / count, np.full(system.layout.nu, inputs)
    state = system.assemble(velocities=velocities or {})
    states = [state]
    for _ in range(count):
        half = system.state(
            retract(x, state.q, h / 2 * state.v), state.v + h / 2 * system.acceleration(state, u), state.t
        )
        v = state.v + h * system.acceleration(half, u)
        state = system.state(retract(x, state.q, h * half.v), v, state.t + h)
        states.append(state)
    q, v, t = (np.array([getattr(s, key) for s in states]) for key in ("q", "v", "t"))
    a = np.array([system.acceleration(s, u) for s in states])
    return record(system, t, q, v, a, np.tile(u, (len(t), 1)))


def circling(count=61, rate=2.0, **parameters):
    """A particle on a circle of 1 m that turns at a rate that follows from energy: exact values at each angle."""
    system = sr.compile(sr.library.build("particle_on_circle", mass=3.0, **parameters))
    angle = np.linspace(0.2, 2.9, count)
    speed = np.sqrt(100.0 - 2 * 9.81 * np.sin(angle))
    q = np.column_stack([np.cos(angle), np.sin(angle)])
    v = speed[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    a = np.array([system.acceleration(system.state(*one)) for one in zip(q, v, strict=True)])
    return record(system, angle / rate, q, v, a), angle, speed


def panel(traj, title):
    """Curves by title, with nothing but the recorded rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plot, "filled", lambda traj, count: traj)
        return {c.title: c for c in curves(traj)}[title]


def test_energy_and_constraint_force_of_a_particle_on_a_circle():
    traj, angle, speed = circling()
    energy = panel(traj, "energies").series
    np.testing.assert_allclose(energy["kinetic"], 0.5 * 3.0 * speed**2, rtol=1e-13)
    np.testing.assert_allclose(energy["total"], np.full(len(angle), 150.0), rtol=1e-13)
    force = panel(traj, "constraint forces |Aᵀλ|").series["circle"]
    np.testing.assert_allclose(force, np.abs(3.0 * (9.81 * np.sin(angle) - speed**2)), rtol=1e-12)


def test_loop_error_is_what_was_put_in():
    traj, _, _ = circling()
    q, v = traj.q.copy(), traj.v.copy()
    q[7] *= 1.001  # |p| - 1
    v[9] += 0.02 * q[9]  # along the radius
    error = panel(replace(traj, q=q, v=v), "loop error").series
    assert error["Φ [m or rad]"][7] == pytest.approx(1e-3, rel=1e-9)
    assert error["A v − a [m/s or rad/s]"][9] == pytest.approx(0.02, rel=1e-9)
    assert error["Φ [m or rad]"][3] < 1e-14


def test_a_constraint_that_is_off_has_neither_error_nor_force():
    traj, _, _ = circling()
    off = Segment(30, {"circle": False}, traj.system.p)
    traj = replace(traj, q=1.5 * traj.q, segments=(traj.segments[0], off))
    error = panel(traj, "loop error").series["Φ [m or rad]"]
    assert np.all(error[:30] > 0.49)
    assert np.all(error[30:] == plot.FLOOR)
    assert np.all(panel(traj, "constraint forces |Aᵀλ|").series["circle"][30:] == 0)
    assert np.all(np.isnan(panel(traj, "singular values").series["σ1"][30:]))


def test_parameters_are_those_of_the_segment():
    system = sr.compile(sr.library.build("pendulum"))
    angle = np.linspace(0.0, 1.0, 11)[:, None]
    second = Segment(5, {}, np.array([2.0 if name == "L" else 1.0 for name in system.layout.parameters]))
    traj = record(system, angle[:, 0], angle, np.ones_like(angle), np.zeros_like(angle))
    traj = replace(traj, segments=(*traj.segments, second))
    expected = np.where(np.arange(11) < 5, 1.0, 2.0) ** 2 / 2  # ½ m L² ω²
    np.testing.assert_allclose(panel(traj, "energies").series["kinetic"], expected)


def test_shares_and_singular_values_agree_with_the_system():
    traj = run("delta", 0.05, 5, inputs=0.7)
    forces, sigma = panel(traj, "constraint forces |Aᵀλ|").series, panel(traj, "singular values").series
    for k in (0, 3, 5):
        state = traj.system.state(traj.q[k], traj.v[k], traj.t[k])
        other = traj.system.constraint_forces(state, traj.u[k])
        for name, share in other.by_group.items():
            assert forces[name][k] == pytest.approx(np.linalg.norm(share), rel=1e-8)
        assert forces["total"][k] == pytest.approx(np.linalg.norm(other.generalised), rel=1e-8)
        values = traj.system.rank(state).singular_values
        np.testing.assert_allclose([s[k] for s in sigma.values()], values, rtol=1e-10)


def test_near_singular_positions_only_the_total_is_shown():
    system = sr.compile(sr.library.build("parallelogram"))
    state = system.assemble(velocities={"A0": 1.0})
    angles = (0.5, 1e-5)
    states = [system.assemble({"A0": angle}, velocities={"A0": 1.0}, near=state) for angle in angles]
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    a = np.array([system.acceleration(s) for s in states])
    forces = panel(record(system, np.array([0.0, 1.0]), q, v, a), "constraint forces |Aᵀλ|")
    shares = np.array([values for name, values in forces.series.items() if name != "total"])
    assert np.all(np.isfinite(forces.series["total"]))
    assert np.all(np.isfinite(shares[:, 0]))
    assert np.all(np.isnan(shares[:, 1]))
    assert "only the total is meaningful" in forces.note


def test_coordinates_are_sorted_by_what_they_measure():
    titles = {c.title: c for c in curves(run("planar_platform", 0.02, 2))}
    assert set(titles["shifts"].series) == {"platform.x", "platform.z"}
    assert titles["shifts"].unit == "m"
    assert "platform.angle" in titles["angles"].series
    assert titles["angular velocities"].unit == "rad/s"
    titles = {c.title: c for c in curves(run("rolling_disc", 0.02, 2))}
    assert set(titles["orientations (quaternions)"].series) == {f"disc.quat_wxyz.{c}" for c in "wxyz"}
    assert "angles" not in titles


def test_those_that_move_most_are_picked_in_their_own_order():
    t = np.linspace(0.0, 1.0, 5)
    series = {f"c{k}": np.sin(t) * (k % 7) for k in range(30)}
    assert plot.Curves("x", "m", t, series).pick(4) == ("c6", "c13", "c20", "c27")
    alike = {name: np.sin(t) * (1 + 1e-9 * k) for k, name in enumerate("abcdef")}
    assert plot.Curves("x", "m", t, alike).pick(2) == ("a", "b")
    low = {"large": np.full(5, 1.0), "falls": 10.0 ** -(8 * t)}
    assert plot.Curves("x", "1", t, low, log=True).pick(1) == ("falls",)


def test_long_runs_are_thinned_but_keep_what_matters():
    traj, _, _ = circling(count=20011)
    crossing = Crossing(float(traj.t[12345]), traj.q[0], traj.v[0], np.ones(1), 0, 1)
    traj = replace(traj, crossings=(crossing,), segments=(*traj.segments, replace(traj.segments[0], start=777)))
    rows = plot.thin(traj)
    assert len(rows) < plot.ROWS + 10
    assert {0, 776, 777, 12345, 20010} <= set(rows.tolist())


def test_curves_have_points_between_the_rows():
    """A pendulum that turns steadily, recorded at ten times only; two rows where an event changes its speed."""
    system = sr.compile(sr.library.build("pendulum"))
    t = np.array([0.0, 1.0, 2.0, 2.0, 3.0])
    rate = np.array([0.5, 0.5, 0.5, -2.0, -2.0])
    q = np.array([0.0, 0.5, 1.0, 1.0, -1.0])
    traj = record(system, t, q[:, None], rate[:, None], np.zeros((5, 1)))
    crossing = Crossing(1.2345, traj.q[0], traj.v[0], np.ones(1), 0, 1)
    segments = (traj.segments[0], replace(traj.segments[0], start=3))
    dense = plot.filled(replace(traj, segments=segments, crossings=(crossing,)))
    assert 400 < len(dense.t) < 420
    assert np.diff(dense.t).max() < 3.01 / plot.FILL
    assert np.sum(dense.t == 2.0) == 2
    assert 1.2345 in dense.t
    before = np.arange(len(dense.t)) < dense.segments[1].start
    expected = np.where(before, 0.5 * dense.t, 1.0 - 2.0 * (dense.t - 2.0))
    np.testing.assert_allclose(dense.q[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(dense.v[:, 0], np.where(before, 0.5, -2.0), atol=1e-12)


def test_dips_between_rows_are_shown():
    """Rows on both sides of the singular position of an equal slider-crank: its singular value vanishes between."""
    system = sr.compile(sr.library.build("slider_crank"))
    state = system.assemble(velocities={"A": 3.0})
    traj = simulate(system, state, t_end=1.0, max_step=0.02)  # so that values between rows are exact enough
    sigma = {c.title: c for c in curves(traj)}["singular values"]
    assert traj.crossings
    assert sigma.series["σ1"].min() < 1e-6
    assert sigma.t[np.argmin(sigma.series["σ1"])] == pytest.approx(traj.crossings[0].t, abs=1e-6)


def marked(traj):
    middle = float(traj.t[len(traj.t) // 2])
    crossing = Crossing(middle, traj.q[0], traj.v[0], np.array([1.0, 1e-9]), 1, 2, {"A": 0.8, "B": -0.6}, "passed")
    event = EventRecord("gate_$x$", 0.7 * float(traj.t[-1]), traj.q[0], traj.v[0], 1, "")
    return replace(traj, crossings=(crossing,), events=(event,))


def texts(figure):
    return [t.get_text() for t in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_figure_says_what_it_shows():
    traj = marked(run("stewart", 0.05, 4))
    figure = plot_trajectory(traj, title="my platform")
    found = " | ".join(texts(figure))
    for wanted in ("my platform", "angles", "[rad]", "[m]", "[J]", "time [s]", "×1", "•1", "8 of 12: those that move"):
        assert wanted in found, wanted
    assert "singular positions crossed: ×1 at 0.025 s" in found
    assert "'gate_$x$' at 0.035 s" in found
    lines = [x for ax in figure.axes for x in ax.lines if len(x.get_xdata()) and np.allclose(x.get_xdata(), 0.025)]
    assert len(lines) == len(figure.axes)  # the crossing is marked everywhere


@pytest.mark.parametrize("name", ["four_bar", "stewart"])
def test_nothing_overlaps_and_nothing_is_cut_off(name):
    figure = plot_trajectory(marked(run(name, 0.05, 4)))
    figure.draw_without_rendering()
    panels = [ax.get_tightbbox() for ax in figure.axes]
    for k, box in enumerate(panels):
        assert figure.bbox.padded(1).contains(box.x0, box.y0)
        assert figure.bbox.padded(1).contains(box.x1, box.y1)
        assert not any(box.padded(-1).overlaps(other) for other in panels[:k])
    for ax in figure.axes:
        words = [x.get_window_extent() for x in (*ax.texts, ax.title, ax._left_title, *ax.get_legend().get_texts())]
        words = [box for box in words if box.width > 1]
        assert not any(box.overlaps(other) for k, box in enumerate(words) for other in words[:k])
        assert not ax.get_window_extent().padded(-1).overlaps(ax.get_legend().get_window_extent())


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_file_is_of_the_kind_its_name_says(tmp_path, ending, start):
    path = tmp_path / f"figure.{ending}"
    plot_trajectory(circling()[0], path)
    assert path.read_bytes().startswith(start)


def test_a_flat_run_and_a_single_row_can_be_drawn():
    system = sr.compile(sr.library.build("pendulum"))
    one = np.zeros((1, 1))
    figure = plot_trajectory(record(system, np.zeros(1), one, one, one))
    figure.draw_without_rendering()
    assert "loop error" not in texts(figure)  # it has no constraints


def test_odd_names_are_printed_as_they_are(tmp_path):
    q, v = ca.SX.sym("_a$b^{$"), ca.SX.sym("v")
    system = sr.compile(sr.Lagrangian("<odd> $x$ & co", q, v, 0.5 * v**2, initial={"_a$b^{$": 0.5}))
    rows = np.zeros((3, 1))
    figure = plot_trajectory(record(system, np.arange(3.0), rows, rows, rows), tmp_path / "odd.svg")
    assert "<odd> $x$ & co" in texts(figure)
    assert " _a$b^{$" in texts(figure)
    assert "coordinates" in texts(figure)  # nobody knows what they measure


def test_unknown_ending_is_refused():
    with pytest.raises(sr.SarrusError, match=r"cannot write 'figure\.docx'; let the name end in \.png, \.svg, \.pdf"):
        plot_trajectory(circling()[0], "figure.docx")


def test_missing_matplotlib_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(sr.SarrusError, match=r"pip install 'sarrus\[plot\]'"):
        plot_trajectory(circling()[0])


def test_no_window_system_is_touched():
    code = (
        "import sys, numpy as np, sarrus as sr\n"
        "import sarrus.view.plot as plot\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from sarrus.simulation.trajectory import *\n"
        "s = sr.compile(sr.library.build('pendulum')); z = np.zeros((2, 1))\n"
        "traj = Trajectory(s, np.arange(2.0), z, z, z, z, Status('finished'), Stats('x'), (Segment(0, {}, s.p),))\n"
        "plot.plot_trajectory(traj)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
