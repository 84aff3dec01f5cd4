"""Finding and running the C compiler, and what is said when there is none or it fails."""

import ctypes
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import CompilerError, SarrusError
from sarrus.kernel import compiler

CURES = r"apt-get install gcc(.|\n)*pip install ziglang(.|\n)*export SARRUS_CC="
SOURCE = '__attribute__((visibility("default"))) double twice(double x) { return 2 * x; }'


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """No remembered compiler, no variables, an empty cache; forgotten again afterwards."""
    for name in ("SARRUS_CC", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path / "cache"))
    compiler.find_compiler.cache_clear()
    compiler.toolchain_id.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    compiler.find_compiler.cache_clear()
    compiler.toolchain_id.cache_clear()


@pytest.fixture
def bare(fresh, tmp_path):
    """A machine without any compiler."""
    (tmp_path / "bin").mkdir()
    fresh.setenv("PATH", str(tmp_path / "bin"))
    find = importlib.util.find_spec
    fresh.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "ziglang" else find(name, *rest))
    return fresh


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def twice_of(content: bytes, tmp_path: Path) -> float:
    path = tmp_path / "twice.so"
    path.write_bytes(content)
    function = ctypes.CDLL(str(path)).twice
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return function(21.0)


def test_no_compiler(bare):
    with pytest.raises(CompilerError, match=r"^no C compiler was found(.|\n)*" + CURES):
        compiler.find_compiler()


def test_compile_without_a_compiler(bare):
    with pytest.raises(CompilerError, match=CURES):
        sr.compile(sr.library.build("pendulum"))
    assert issubclass(CompilerError, SarrusError)


def test_check_without_a_compiler_reports_it(bare):
    result = sr.check(sr.library.build("pendulum"))
    assert len(result.problems) == 1 and "no C compiler was found" in result.problems[0]


@pytest.mark.parametrize("variable", ["SARRUS_CC", "CC"])
def test_a_named_compiler_that_does_not_exist(variable, fresh):
    fresh.setenv(variable, "/opt/nowhere/mycc -O3")
    with pytest.raises(CompilerError, match=f"compiler '/opt/nowhere/mycc' named by.*{variable}(.|\n)*{CURES}"):
        compiler.find_compiler()


def test_order_of_choice(fresh, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    fresh.setenv("PATH", str(folder))
    for name in ("clang", "gcc", "cc"):  # each found one outranks those before
        path = script(folder / name, "exit 0\n")
        compiler.find_compiler.cache_clear()
        assert compiler.find_compiler() == (str(path),)
    own = script(tmp_path / "own", "exit 0\n")
    fresh.setenv("CC", f"{own} --for-cc")
    compiler.find_compiler.cache_clear()
    assert compiler.find_compiler() == (str(own), "--for-cc")
    fresh.setenv("SARRUS_CC", f"{own} --first --second")
    compiler.find_compiler.cache_clear()
    assert compiler.find_compiler() == (str(own), "--first", "--second")


def test_the_choice_is_made_once(fresh):
    first = compiler.find_compiler()
    fresh.setenv("SARRUS_CC", "/opt/nowhere/mycc")
    assert compiler.find_compiler() is first


def test_another_compiler_is_another_key(fresh, tmp_path):
    ids = []
    for name in ("one", "two"):
        fresh.setenv("SARRUS_CC", str(script(tmp_path / name, "exit 0\n")))
        compiler.find_compiler.cache_clear()
        compiler.toolchain_id.cache_clear()
        ids.append(compiler.toolchain_id())
    assert ids[0] != ids[1]


def test_a_failing_compiler_shows_its_words(fresh, tmp_path):
    path = script(tmp_path / "grumpy", "echo 'machine.c:1: I am out of patience' >&2\nexit 3\n")
    fresh.setenv("SARRUS_CC", str(path))
    with pytest.raises(CompilerError, match=r"'.*grumpy' failed \(exit 3\):\nmachine.c:1: I am out of patience"):
        sr.compile(sr.library.build("pendulum"))


def test_words_on_the_other_channel_are_shown_too(fresh, tmp_path):
    fresh.setenv("SARRUS_CC", str(script(tmp_path / "mumbler", "echo 'licence expired'\nexit 1\n")))
    with pytest.raises(CompilerError, match="licence expired"):
        compiler.compile_library(SOURCE)


def test_a_compiler_that_writes_nothing(fresh, tmp_path):
    fresh.setenv("SARRUS_CC", str(script(tmp_path / "lazy", "exit 0\n")))
    with pytest.raises(CompilerError, match=r"'.*lazy' failed \(exit 0\)"):
        compiler.compile_library(SOURCE)


def test_a_compiler_that_cannot_be_started(fresh, tmp_path):
    path = tmp_path / "broken"
    path.write_text("#!/opt/nowhere/interpreter\n")
    path.chmod(0o755)
    fresh.setenv("SARRUS_CC", str(path))
    with pytest.raises(CompilerError, match=f"'.*broken' could not be started(.|\n)*{CURES}"):
        compiler.compile_library(SOURCE)


def test_a_failure_leaves_the_cache_without_a_library(fresh, tmp_path):
    fresh.setenv("SARRUS_CC", str(script(tmp_path / "grumpy", "exit 3\n")))
    with pytest.raises(CompilerError, match="grumpy"):
        sr.compile(sr.library.build("pendulum"))
    assert list((tmp_path / "cache").glob("*.so")) == []
    assert list((tmp_path / "cache").glob(".new-*")) == []


def test_wrong_c_is_the_compilers_to_explain(fresh):
    with pytest.raises(CompilerError, match="nonsense"):
        compiler.compile_library("int nonsense = ;")


def test_the_library_works(fresh, tmp_path):
    assert twice_of(compiler.compile_library(SOURCE), tmp_path) == 42.0


def test_extra_words_reach_the_compiler(fresh, tmp_path):
    fresh.setenv("SARRUS_CC", f"{compiler.find_compiler()[0]} -DFACTOR=3")
    compiler.find_compiler.cache_clear()
    content = compiler.compile_library(SOURCE.replace("2 * x", "FACTOR * x"))
    assert twice_of(content, tmp_path) == 63.0


def test_zig_is_the_last_resort(bare):
    bare.setattr("importlib.util.find_spec", lambda name, *rest: object() if name == "ziglang" else None)
    assert compiler.find_compiler() == (sys.executable, "-m", "ziglang", "cc")


ZIG = importlib.util.find_spec("ziglang") is not None


@pytest.mark.skipif(not ZIG, reason="the zig extra (package ziglang) is not installed in this environment")
def test_zig_compiles_a_machine(fresh, tmp_path):
    """The extra's compiler gives the same accelerations as the system's."""
    machine = sr.library.build("slider_crank")
    usual = sr.compile(machine)
    state = usual.assemble(velocities={"A": 1.0})
    (tmp_path / "bin").mkdir()
    fresh.setenv("PATH", str(tmp_path / "bin"))
    fresh.setenv("SARRUS_CACHE", str(tmp_path / "zig"))
    compiler.find_compiler.cache_clear()
    compiler.toolchain_id.cache_clear()
    system = sr.compile(machine)
    assert compiler.find_compiler()[1:] == ("-m", "ziglang", "cc")
    np.testing.assert_allclose(system.acceleration(state), usual.acceleration(state), rtol=1e-12)
