"""`sarrus simulate`: the right motion, as text and as JSON, its files, failures that lose nothing, wrong calls."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import sarrus as sr
from sarrus.cli import main
from sarrus.simulation.settings import METHODS
from sarrus.simulation.trajectory import Trajectory


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["simulate", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def data_of(text: str) -> dict:
    """JSON without the words NaN and Infinity, which are none."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


# --- the motion ------------------------------------------------------------------------------------------------------
def test_text(capsys):
    code, out, err = run(capsys, "slider_crank", "--t-end", 10, "--rtol", 1e-10)
    assert (code, err) == (0, "")
    assert out.startswith("slider-crank: 0 to 10 s, ")
    for part in (
        "start  A = 0.785398, B = 4.71239; velocities A = 0, B = 0", "end    A = -0.155459, B = ",
        "Finished at t = 10 s.", "dop853, rtol 1e-10: ", "4 singular positions crossed:\n  t = 1.16",
        "rank 0 instead of 1", "loop error ", "energy balance ", "result: fine\n",
    ):  # fmt: skip
        assert part in out, part


@pytest.mark.parametrize(("t", "angle"), [(1, -1.14204632), (2, -3.79341650), (5, 0.63183131), (10, -0.15545912)])
def test_slider_crank_reaches_its_reference(t, angle, capsys):
    """Sheet 12.1: the angle of the crank of the reduced equation of motion."""
    code, out, err = run(capsys, "slider_crank", "--t-end", t, "--rtol", "1e-11", "--json")
    data = data_of(out)
    assert (code, err) == (0, "")
    assert data["final"]["t"] == t
    assert data["final"]["positions"]["A"] == pytest.approx(angle, abs=2e-8)
    assert data["final"]["positions"]["B"] == pytest.approx(2 * np.pi - 2 * angle, abs=4e-8)
    passed = {1: 0, 2: 1, 5: 2, 10: 4}
    assert len(data["crossings"]) == passed[t]
    for crossing in data["crossings"]:
        assert (crossing["rank"], crossing["rank_before"]) == (0, 1)
        assert np.cos(crossing["positions"]["A"]) == pytest.approx(0, abs=1e-6)


def test_json_has_everything(capsys):
    code, out, err = run(capsys, "four_bar", "--t-end", 1, "--set", "A=0.3", "--velocity", "A=2", "--json")
    data = data_of(out)
    assert (code, err) == (0, "")
    assert (data["machine"], data["problem"], data["errors"], data["files"]) == ("four-bar", "", [], {})
    assert data["status"]["code"] == "finished" and data["status"]["ok"]
    assert data["stats"]["method"] == "dop853" and data["stats"]["steps"] > 5
    assert data["settings"]["rtol"] == 1e-8
    assert data["start"]["positions"]["A"] == 0.3 and data["start"]["velocities"]["A"] == 2.0
    audit = data["audit"]
    assert audit["ok"] and audit["rank"] == [2, 2] and audit["by_group"]["D"] < 1e-12
    for name in ("loop", "velocity", "acceleration", "motion", "energy"):
        assert 0 <= audit[name]["relative"] < audit["limits"][name] <= 1e-5
    system = sr.compile(sr.library.build("four_bar"))
    traj = sr.simulate(system, system.assemble({"A": 0.3}, velocities={"A": 2.0}), 1.0)
    assert data["rows"] == len(traj)
    assert list(data["final"]["positions"].values()) == pytest.approx(traj.final.q.tolist(), abs=1e-12)
    assert list(data["final"]["velocities"].values()) == pytest.approx(traj.final.v.tolist(), abs=1e-12)


def test_every_setting_reaches_the_simulation(capsys):
    words = ["parallelogram", "--t-end", "0.5", "--velocity", "A0=1", "--set", "A0=1.1", "--json"]
    words += ["--active", "C2=off", "--method", "dopri5", "--rtol", "1e-9", "--atol", "1e-7", "--max-step", "0.01"]
    words += ["--crossing", "stop", "--drift", "baumgarte", "--max-steps", "1000"]
    code, out, _ = run(capsys, *words)
    data = data_of(out)
    assert code == 0
    settings = data["settings"]
    assert (settings["method"], settings["rtol"], settings["max_step"]) == ("dopri5", 1e-9, 0.01)
    assert (settings["crossing"], settings["drift"]) == ("stop", "baumgarte")
    assert set(settings["atol"]) == {1e-7}
    assert data["audit"]["rank"] == [2, 2]  # three with C2
    assert data["stats"]["steps"] >= 50
    assert data["audit"]["by_group"]["C1"] < 1e-6


def test_an_input_holds_a_pendulum_where_it_is(capsys):
    words = ["pendulum", "--t-end", 3, "--set", "A=-1.3", "--param", "L=0.7", "--param", "m=2"]
    torque = float(2 * 9.81 * 0.7 * np.cos(1.3))
    code, out, _ = run(capsys, *words, "--input", f"A={torque!r}", "--json")
    data = data_of(out)
    assert code == 0 and data["final"]["positions"]["A"] == pytest.approx(-1.3, abs=1e-7)
    assert data["final"]["velocities"]["A"] == pytest.approx(0, abs=1e-7)
    code, out, _ = run(capsys, *words, "--input", "A=0.5")
    assert "inputs: A=0.5\n" in out and "parameters: L=0.7, m=2\n" in out
    code, out, _ = run(capsys, *words, "--json")
    assert abs(data_of(out)["final"]["positions"]["A"] + 1.3) > 1e-3  # without, it swings


def test_fixed_steps(capsys):
    code, out, _ = run(capsys, "particle_on_circle", "--t-end", 1, "--method", "variational", "--dt", 1e-3, "--json")
    data = data_of(out)
    assert code == 0
    assert data["stats"]["steps"] == 1000 and data["stats"]["rtol"] is None
    assert "energy" not in data["audit"]["limits"] and data["audit"]["energy"]["relative"] < 1e-4


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("ggl", ["--method", "radau"]), ("ggl-implicit", ["--method", "ida"]), ("null-space", []),
        ("index-3", ["--method", "generalized-alpha", "--dt", 1e-3]),
    ],
)  # fmt: skip
def test_formulations(form, words, capsys):
    code, out, err = run(capsys, "slider_crank", "--t-end", 2, "--formulation", form, *words, "--json")
    data = data_of(out)
    assert (code, err) == (0, ""), data["problem"]
    assert data["settings"]["formulation"] == form and data["settings"]["method"] == data["stats"]["method"]
    assert data["final"]["positions"]["A"] == pytest.approx(-3.79341650, abs=2e-3 if "--dt" in words else 2e-5)
    assert len(data["crossings"]) == 1


def test_methods_that_choose_their_form(capsys):
    code, out, _ = run(capsys, "four_bar", "--t-end", 1, "--velocity", "A=1", "--method", "ida")
    assert code == 0 and "ida, rtol 1e-08: " in out and "result: fine" in out
    code, out, _ = run(capsys, "four_bar", "--t-end", 1, "--method", "ida", "--json")
    assert data_of(out)["settings"]["formulation"] == "ggl"


@pytest.mark.parametrize(
    ("option", "times"),
    [
        (["--samples", 5], np.linspace(0, 1, 5)),
        (["--output-step", 0.25], np.linspace(0, 1, 5)),
        (["--output-step", 0.3], [0, 0.3, 0.6, 0.9]),
        (["--output-step", 0.1], np.linspace(0, 1, 11)),
    ],
)
def test_output_times(option, times, capsys, tmp_path):
    path = tmp_path / "run.csv"
    code, _, _ = run(capsys, "slider_crank", "--t-end", 1, "--velocity", "A=2", *option, "--out", path)
    assert code == 0
    traj = Trajectory.load(path, sr.compile(sr.library.build("slider_crank")))
    np.testing.assert_allclose(traj.t, times, atol=1e-15)


# --- files -----------------------------------------------------------------------------------------------------------
def test_files(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--report", "r.html", "--animate", "a.html", "--plot", "p.png", "--out", "run.nc"]
    code, out, err = run(capsys, "four_bar", "--t-end", 0.5, "--velocity", "A=2", *words)
    assert (code, err) == (0, "")
    for name in ("r.html", "a.html", "p.png", "run.nc"):
        assert f"written: {name}\n" in out
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    assert "<h2>Audit</h2>" in Path("r.html").read_text() and "<h2>" not in Path("a.html").read_text()
    system = sr.compile(sr.library.build("four_bar"))
    traj = Trajectory.load("run.nc", system)
    assert traj.t[-1] == 0.5 and traj["A.v"][0] == 2.0
    further = sr.simulate(system, traj, 1.0)
    assert (further.t[0], further.t[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_file_that_cannot_be_written_loses_nothing(json_wanted, capsys, tmp_path):
    gone = tmp_path / "gone"
    words = ["--out", gone / "run.nc", "--plot", gone / "p.png", "--animate", tmp_path / "a.html"]
    words += ["--json"] if json_wanted else []
    code, out, err = run(capsys, "slider_crank", "--t-end", 2, *words)
    assert code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    first, second = err.splitlines()
    assert f"cannot write {str(gone / 'run.nc')!r}: " in first and "Expected a folder that exists" in first
    assert f"cannot write {str(gone / 'p.png')!r}: No such file or directory; expected a folder" in second
    rescued = Path(first.rpartition("The motion is saved as ")[2].strip("'"))
    assert Trajectory.load(rescued, sr.compile(sr.library.build("slider_crank"))).t[-1] == 2.0
    rescued.unlink()
    rescued.parent.rmdir()
    if json_wanted:
        data = data_of(out)
        assert data["final"]["positions"]["A"] == pytest.approx(-3.79341650, abs=1e-5)
        assert list(data["files"]) == ["animate"] and len(data["errors"]) == 2
    else:
        assert "A = -3.7934" in out and "result: fine" in out and f"written: {tmp_path / 'a.html'}" in out


def test_a_path_that_is_a_folder(capsys, tmp_path):
    (tmp_path / "a.html").mkdir()
    code, out, err = run(capsys, "four_bar", "--t-end", 0.1, "--animate", tmp_path / "a.html")
    assert code == 2 and "result: fine" in out
    assert f"cannot write {str(tmp_path / 'a.html')!r}: Is a directory" in err


def test_a_full_disk(tmp_path):
    """The system stops every file at 2000 bytes: nothing can be saved, everything is printed."""
    code = "import sarrus.cli as c; raise SystemExit(c.main())"
    words = ["simulate", "slider_crank", "--t-end", "2", "--out", "run.csv", "--animate", "a.html"]
    call = [sys.executable, "-c", code, *words]
    subprocess.run([*call[:3], *words[:4]], check=True, capture_output=True, cwd=tmp_path)  # compiled from here on

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = subprocess.run(call, capture_output=True, text=True, preexec_fn=small, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "end    A = -3.7934" in done.stdout and "result: fine" in done.stdout
    assert "cannot write 'run.csv': File too large" in done.stderr
    assert "cannot write 'a.html': File too large" in done.stderr
    assert "Traceback" not in done.stderr and "is saved" not in done.stderr
    assert not (tmp_path / "run.csv").exists()


def test_files_are_written_though_nobody_reads_the_output(tmp_path):
    """As in `sarrus simulate … | head -1`."""
    code = "import sarrus.cli as c; raise SystemExit(c.main())"
    call = [sys.executable, "-c", code, "simulate", "four_bar", "--t-end", "0.1", "--out", str(tmp_path / "run.csv")]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in errors and (tmp_path / "run.csv").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("a bad font")])
def test_whatever_happens_while_a_file_is_written(error, capsys, tmp_path, monkeypatch):
    def fail(self, path):
        raise error

    monkeypatch.setattr(Trajectory, "report", fail)
    words = ["--report", tmp_path / "r.html", "--animate", tmp_path / "a.html"]
    code, out, err = run(capsys, "four_bar", "--t-end", 0.1, *words)
    assert code == 2 and "result: fine" in out and (tmp_path / "a.html").exists()
    assert "r.html': " in err and ("interrupted" in err or "ValueError: a bad font" in err)


def test_without_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["--plot", tmp_path / "p.png", "--animate", tmp_path / "a.html"]
    code, out, err = run(capsys, "four_bar", "--t-end", 0.1, *words)
    assert code == 2 and "result: fine" in out and (tmp_path / "a.html").exists()
    assert "plots need matplotlib, which is not installed; get it with: pip install 'sarrus[plot]'" in err


# --- runs that fail --------------------------------------------------------------------------------------------------
def test_a_run_that_fails_is_exit_code_1_and_kept(capsys, tmp_path):
    path = tmp_path / "run.csv"
    code, out, err = run(capsys, "four_bar", "--t-end", 5, "--max-steps", 7, "--out", path)
    assert (code, err) == (1, "")
    assert "Stopped after the largest number of steps allowed at t = " in out and "result: the run failed" in out
    assert "Raise `max_steps`" in out
    assert len(Trajectory.load(path, sr.compile(sr.library.build("four_bar")))) == 8
    code, out, _ = run(capsys, "four_bar", "--t-end", 5, "--max-steps", 7, "--json")
    data = data_of(out)
    assert code == 1 and data["status"]["code"] == "too many steps" and not data["status"]["ok"]
    assert 0 < data["final"]["t"] < 5 and data["problem"] == data["status"]["message"]


def test_stopping_at_a_singular_position_as_asked_is_fine(capsys):
    code, out, _ = run(capsys, "slider_crank", "--t-end", 5, "--crossing", "stop", "--json")
    data = data_of(out)
    assert (code, data["status"]["code"]) == (0, "crossing")
    assert data["final"]["t"] == data["crossings"][0]["t"] == pytest.approx(4.65240206 / 4, abs=1e-6)


def test_a_bad_audit_is_exit_code_1(capsys):
    """Without drift correction, and with long steps, the closure opens."""
    words = ["four_bar", "--t-end", 0.4, "--velocity", "A=2", "--method", "euler", "--dt", 0.01, "--drift", "free"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (1, "")
    assert "Finished at t = 0.4 s." in out and "result: four-bar: loop error " in out and "Keep drift='project'" in out
    code, out, _ = run(capsys, *words, "--json")
    data = data_of(out)
    assert code == 1 and data["status"]["ok"] and not data["audit"]["ok"]
    assert data["audit"]["loop"]["relative"] > data["audit"]["limits"]["loop"]
    assert "loop error" in data["problem"]


def test_an_interrupted_run_is_printed_and_saved(capsys, tmp_path):
    path = tmp_path / "run.csv"
    words = ["slider_crank", "--t-end", 1e7, "--velocity", "A=2", "--output-step", 1e3, "--out", path]
    run(capsys, "slider_crank", "--t-end", 1, "--json")  # compiled from here on
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        code, out, err = run(capsys, *words)
    finally:
        timer.cancel()
    assert (code, err) == (1, "")
    assert "Interrupted at t = " in out and "result: the run failed" in out
    traj = Trajectory.load(path, sr.compile(sr.library.build("slider_crank")))
    assert traj.status.code == "interrupted" and 0 < traj.t[-1] < 1e7


# --- wrong calls -----------------------------------------------------------------------------------------------------
WRONG = [
    (["four_bar", "--set", "A0.3"], "--set 'A0.3': expected NAME=NUMBER, as in --set A=0.3"),
    (["four_bar", "--set", "=0.3"], "--set '=0.3': expected NAME=NUMBER"),
    (["four_bar", "--set", "A="], "--set 'A=': expected NAME=NUMBER"),
    (["four_bar", "--set", "A=much"], "--set A=much: 'much' is no number"),
    (["four_bar", "--set", "A=1", "--set", "A=2"], "'A' was given before"),
    (["four_bar", "--set", "A=nan"], "'A': expected finite numbers"),
    (["four_bar", "--set", "A=1,2"], "'A': expected 1 value(s)"),
    (["four_bar", "--set", "crank=1"], "unknown coordinate 'crank'. Known: 'A', 'B', 'C'"),
    (["four_bar", "--set", "A=3"], "constraint 'D' cannot be satisfied"),
    (["four_bar", "--velocity", "a=1"], "unknown velocity 'a'"),
    (["four_bar", "--velocity", "A"], "--velocity 'A': expected NAME=NUMBER"),
    (["four_bar", "--input", "B=1"], "unknown input 'B'"),
    (["four_bar", "--param", "L9=1"], "unknown parameter 'L9'. Known: 'm1', 'L1'"),
    (["four_bar", "--param", "L1=1,2"], "parameter 'L1': expected a finite number"),
    (["four_bar", "--active", "E=off"], "unknown constraint 'E'"),
    (["four_bar", "--active", "D=0"], "--active D=0: expected on or off, got '0'"),
    (["four_bar", "--method", "rk45"], "method: unknown choice 'rk45'; use 'dop853'"),
    (["four_bar", "--formulation", "ggi"], "unknown formulation 'ggi'. Did you mean 'ggl'"),
    (["four_bar", "--formulation", "ggl"], "makes a DAE of index 2, which method 'dop853' does not take"),
    (["four_bar", "--formulation", "ggl", "--method", "rk4", "--dt", "0.1"], "methods that do: 'radau', 'ida'"),
    (["four_bar", "--method", "generalized-alpha"], "'generalized-alpha' takes fixed steps: give their length"),
    (["four_bar", "--method", "ida", "--crossing", "stop"], "crossing='stop': not with method 'ida'"),
    (["four_bar", "--method", "rk4"], "method 'rk4' takes fixed steps: give their length"),
    (["four_bar", "--dt", "0.1"], "chooses its own steps"),
    (["four_bar", "--rtol", "0"], "rtol: expected a positive number, got 0.0"),
    (["four_bar", "--crossing", "jump"], "crossing: unknown choice 'jump'"),
    (["four_bar", "--drift", "ignore"], "drift: unknown choice 'ignore'"),
    (["four_bar", "--t-end", "0"], "t_end: expected a finite time after the start"),
    (["four_bar", "--samples", "1"], "--samples 1: expected 2 or more"),
    (["four_bar", "--output-step", "0"], "--output-step 0: expected a positive number of seconds"),
    (["four_bar", "--out", "run.mat"], "--out 'run.mat': expected a name that ends in .nc or .csv"),
    (["four_bar", "--plot", "p.html"], "--plot 'p.html': expected a name that ends in .png or .svg or .pdf"),
    (["four_bar", "--report", "report"], "--report 'report': expected a name that ends in .html"),
    (["four_bar", "--report", "a.html", "--animate", "a.html"], "--animate 'a.html': --report writes this file too"),
    (["fourbar"], "unknown machine 'fourbar'. Did you mean 'four_bar'"),
]


@pytest.mark.parametrize(("words", "text"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_calls_name_the_culprit(words, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [words[0], "--t-end", "1", *words[1:]]  # the last --t-end counts
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "") and err.startswith("sarrus: ") and text in err
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (2, "") and text in data_of(out)["error"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "required: model, --t-end"),
        (["four_bar"], "required: --t-end"),
        (["four_bar", "--t-end", "soon"], "--t-end: invalid float value: 'soon'"),
        (["four_bar", "--t-end", "1", "--samples", "3", "--output-step", "0.1"], "not allowed with argument"),
    ],
)
def test_calls_without_what_is_needed(words, text, capsys):
    with pytest.raises(SystemExit) as caught:
        run(capsys, *words)
    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_help_tells_about_exit_codes(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # no word is broken
    with pytest.raises(SystemExit) as caught:
        run(capsys, "--help")
    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert "Exit code 0: fine; 1: the run failed" in " ".join(out.split())
    for option in ("--t-end", "--set", "--velocity", "--input", "--param", "--active", "--report", "--out"):
        assert option in out
    words = set(out.translate(str.maketrans(",:;", "   ")).split())
    assert not [name for name in (*METHODS, *(form.name for form in sr.formulations())) if name not in words]
