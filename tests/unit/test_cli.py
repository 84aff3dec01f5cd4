"""The command line: list and check, as text and as JSON, good and wrong arguments, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sarrus as sr
from sarrus.cli import load_model, main

GOOD = """
import sarrus as sr
from helper_of_pendulum import LENGTH

def build():
    mech = sr.Mechanism("mine", planar=True)
    bar = mech.body("bar", 1.0, com=(LENGTH / 2, 0), inertia=0.1)
    mech.revolute("A", mech.ground, bar)
    return mech

def wreck():
    mech = sr.Mechanism("wreck", planar=True)
    mech.revolute("A", mech.ground, mech.body("ghost"))
    return mech

def broken():
    raise RuntimeError("the spring is missing")

def nothing():
    return None

value = 3
"""


@pytest.fixture
def file(tmp_path) -> Path:
    (tmp_path / "helper_of_pendulum.py").write_text("LENGTH = 0.5\n")
    path = tmp_path / "machine.py"
    path.write_text(GOOD)
    return path


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("helper_of_pendulum", None)


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


# --- list ------------------------------------------------------------------------------------------------------------
def test_list(capsys):
    code, out, err = run(capsys, "list")
    assert code == 0 and err == ""
    for name in sr.library.names():
        assert name in out


def test_list_as_json(capsys):
    code, out, _ = run(capsys, "list", "--json")
    rows = json.loads(out)
    assert code == 0 and [row["name"] for row in rows] == list(sr.library.names())
    assert all(row["about"] and not row["about"].endswith(".") for row in rows)


# --- check -----------------------------------------------------------------------------------------------------------
def test_check(capsys):
    code, out, err = run(capsys, "check", "four_bar")
    assert (code, err) == (0, "")
    assert "so mobility 3 - 2 = 1" in out and "D.y" in out


@pytest.mark.parametrize(("name", "rank"), [("bricard", 4), ("parallelogram", 3), ("sarrus", 4), ("four_bar", 2)])
def test_check_as_json(name, rank, capsys):
    code, out, err = run(capsys, "check", name, "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert (data["mobility"], data["rank"], data["problems"]) == (1, rank, [])
    assert data["redundant"] and all(isinstance(x, str) for x in data["redundant"])
    assert len(data["singular_values"]) == min(data["rows"], data["velocities"])


def test_check_a_file(file, capsys):
    code, out, err = run(capsys, "check", f"{file}:build")
    assert (code, err) == (0, "") and out.startswith("mine\n")
    code, out, err = run(capsys, "check", f"{file}:build", "--json")
    assert (code, json.loads(out)["mobility"]) == (0, 1)


def test_a_machine_with_problems_is_exit_code_1(file, capsys):
    code, out, err = run(capsys, "check", f"{file}:wreck")
    assert (code, err) == (1, "") and "problem: " in out and "'ghost'" in out
    code, out, err = run(capsys, "check", f"{file}:wreck", "--json")
    data = json.loads(out)
    assert (code, err) == (1, "") and len(data["problems"]) == 1 and "'ghost'" in data["problems"][0]


WRONG = [
    ("fourbar", "unknown machine 'fourbar'. Did you mean 'four_bar'"),
    ("FOLDER/none.py:build", "none.py': no such file"),
    ("FOLDER/machine.py:missing", "machine.py' has no function 'missing'; it has: build, wreck, broken, nothing"),
    ("FOLDER/machine.py:value", "machine.py' has no function 'value'"),
    ("FOLDER/machine.py", "machine.py': add the function that builds the machine"),
    ("robot.urdf", "'robot.urdf': robot description files cannot be read yet"),
    ("FOLDER/machine.py:broken", "the spring is missing"),
    ("FOLDER/machine.py:nothing", "NoneType"),
    ("FOLDER/syntax.py:build", "syntax.py"),
]


@pytest.mark.parametrize(("model", "text"), WRONG, ids=[m for m, _ in WRONG])
def test_wrong_models_are_exit_code_2(model, text, file, capsys):
    (file.parent / "syntax.py").write_text("def build(:\n")
    model = model.replace("FOLDER", str(file.parent))
    code, out, err = run(capsys, "check", model)
    assert (code, out) == (2, "") and err.startswith("sarrus: ") and text in err
    code, out, err = run(capsys, "check", model, "--json")
    assert (code, err) == (2, "") and text in json.loads(out)["error"]


def test_the_path_is_left_as_it_was(file):
    before = list(sys.path)
    load_model(f"{file}:build")
    assert sys.path == before


def test_relative_paths(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert load_model("machine.py:build").name == "mine"


@pytest.mark.parametrize("words", [[], ["fly"], ["check"], ["check", "a", "b"], ["list", "--yaml"]])
def test_wrong_calls(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and "usage: sarrus" in err


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["check", "--help"]])
def test_help_and_version(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    out, _ = capsys.readouterr()
    assert sr.__version__ in out if words == ["--version"] else "usage: sarrus" in out


# --- as a program ----------------------------------------------------------------------------------------------------
def test_as_a_program(file):
    program = Path(sys.executable).parent / "sarrus"
    environment = {**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning"}
    module = [sys.executable, "-c", "import sarrus.cli as c; raise SystemExit(c.main())"]
    call = [str(program)] if program.exists() else module

    def program_run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([*call, *words], capture_output=True, text=True, env=environment, check=False)

    done = program_run("check", f"{file}:build", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == "mine"
    assert program_run("check", f"{file}:wreck").returncode == 1
    done = program_run("check", "fourbar")
    assert done.returncode == 2 and "four_bar" in done.stderr and "Traceback" not in done.stderr


def test_output_into_a_closed_pipe_is_no_traceback():
    """As in `sarrus list | head -1`."""
    code = "import sarrus.cli as c; raise SystemExit(c.main(['list', '--json']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in errors
