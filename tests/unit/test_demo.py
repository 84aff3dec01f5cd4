"""`sarrus demo`: the motion agrees with one that shares no code with it, and the files are written."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sarrus import demo as module
from sarrus.cli import main
from sarrus.demo import demo


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return demo(tmp_path_factory.mktemp("demo"))


def crank(_t, y, g=9.81):
    """Unit links and masses, the coupler eliminated by hand: (1 + 4 s²) A'' + 4 s c A'² + g c = 0."""
    s, c = np.sin(y[0]), np.cos(y[0])
    return [y[1], -(4 * s * c * y[1] ** 2 + g * c) / (1 + 4 * s * s)]


def test_motion_is_that_of_the_machine_with_one_coordinate(result):
    traj = result.motion

    def upright(_t, y):
        return np.cos(y[0])

    exact = solve_ivp(
        crank, (0, 10), [module.START, module.PUSH], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=traj.t,
        events=upright,
    )  # fmt: skip
    # an error of the energy of 1000 rtol at most is what is asked of a run; it shifts the phase by as much, about
    np.testing.assert_allclose(traj["A"], exact.y[0], atol=1000 * module.RTOL)
    np.testing.assert_allclose(traj["B"], 2 * np.pi - 2 * exact.y[0], atol=2000 * module.RTOL)
    assert len(exact.t_events[0]) == 8
    np.testing.assert_allclose([c.t for c in traj.crossings], exact.t_events[0], atol=1000 * module.RTOL)
    for crossing in traj.crossings:
        assert abs(np.cos(crossing.q[0])) < 1e-6
        assert (crossing.rank, crossing.rank_before) == (0, 1)


def test_it_says_what_it_found(result):
    text = str(result)
    assert result.ok and result.branch < 1e-10
    for part in (
        "slider-crank",
        "rank 1",
        "rank 0",
        "Finished at t = 10 s",
        "audit of",
        "8 crossings",
        "two\nbranches",
    ):
        assert part in text, part
    assert "nan" not in text
    for path in result.files.values():
        assert str(path) in text


def test_a_branch_that_is_lost_would_show(result):
    """On the other branch, with the links folded, the closure holds as well: only `branch` can tell."""
    q = np.array([0.3, np.pi])
    assert result.motion.system.terms(result.motion.system.state(q)).phi == pytest.approx(0, abs=1e-15)
    assert abs(q[0] + q[1] / 2 - np.pi) > 1


def test_files(result):
    assert {path.name for path in result.files.values()} == {"sarrus-demo.html", "sarrus-demo.png"}
    assert result.files["plot"].read_bytes().startswith(b"\x89PNG")
    assert "</html>" in result.files["animate"].read_text(encoding="utf-8")
    assert result.failed == ()


def test_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "Written: sarrus-demo.html" in out and "Written: sarrus-demo.png" in out
    assert {path.name for path in tmp_path.iterdir()} == {"sarrus-demo.html", "sarrus-demo.png"}
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert main(["demo"]) == 0  # again, over the first
    assert {path.name for path in tmp_path.iterdir()} == set(before)


def test_command_as_json(capsys, tmp_path):
    assert main(["demo", "--json", "--folder", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    ordinary, singular, motion = data["ordinary"], data["singular"], data["motion"]
    assert data["check"]["mobility"] == 1
    assert (ordinary["rank"], singular["rank"]) == (1, 0)
    assert ordinary["velocities"] == {"A": 1.0, "B": pytest.approx(-2.0)}
    assert max(map(abs, singular["accelerations"].values())) < 100
    assert ordinary["loop_error"] < 1e-12 and singular["singular_values"][0] < 1e-12
    assert motion["status"]["code"] == "finished" and len(motion["crossings"]) == 8
    assert motion["audit"]["ok"] and motion["audit"]["loop"]["relative"] < 1e-12
    assert [Path(path).name for path in data["files"].values()] == ["sarrus-demo.html", "sarrus-demo.png"]


def test_without_matplotlib_it_says_so_and_goes_on(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "plots need matplotlib, which is not installed; get it with: pip install" in out
    assert {path.name for path in tmp_path.iterdir()} == {"sarrus-demo.html"}


def test_a_folder_that_cannot_be_written_to(capsys, tmp_path):
    folder = tmp_path / "none"
    assert main(["demo", "--folder", str(folder)]) == 2
    out, _ = capsys.readouterr()
    assert f"cannot write {str(folder / 'sarrus-demo.html')!r}" in out and "audit of" in out
