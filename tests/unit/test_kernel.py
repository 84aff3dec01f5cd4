"""The cache of compiled machines: reuse, repair, many processes at once, places where nothing can be written."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import sarrus as sr
from sarrus.kernel import cache, compiler

MACHINE = "parallelogram"


@pytest.fixture
def empty_cache(tmp_path, monkeypatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("SARRUS_CACHE", str(place))
    return place


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    """A cache with one machine in it, never loaded by this process (a damaged library in use would kill it)."""
    place = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SARRUS_CACHE", str(place))
        build()
    return place


def build() -> sr.System:
    return sr.compile(sr.library.build(MACHINE))


def acceleration(system: sr.System) -> np.ndarray:
    return system.acceleration(system.assemble(velocities={"A0": 1.0}), [0.5])


def refuse(*arguments):
    raise AssertionError("this must not be called again")


def intact(place: Path) -> dict[str, list[Path]]:
    """Files by kind, each checked to be what its name says; nothing else may be there."""
    files = {"so": [], "json": []}
    for path in place.iterdir():
        assert not path.name.startswith(".new-"), f"left over: {path}"
        files[path.suffix[1:]].append(path)
        key = path.stem.rsplit("-", 1)[0]
        found = cache.fetch(key, path.suffix[1:])
        assert found is not None and found[0] == path
    return files


def test_compiling_writes_one_library_and_one_record(empty_cache):
    build()
    assert {kind: len(files) for kind, files in intact(empty_cache).items()} == {"so": 1, "json": 1}


def test_the_second_compile_derives_nothing_and_starts_no_compiler(empty_cache, monkeypatch):
    first = acceleration(build())
    monkeypatch.setattr("sarrus.dynamics.compile._derive", refuse)
    monkeypatch.setattr("sarrus.kernel.compiler.compile_library", refuse)
    monkeypatch.setattr("subprocess.run", refuse)
    np.testing.assert_array_equal(acceleration(build()), first)
    with pytest.raises(AssertionError, match="must not be called"):
        sr.compile(sr.library.build(MACHINE, length=0.7))  # and the trap does work


def test_a_changed_description_is_another_machine(empty_cache):
    build()
    sr.compile(sr.library.build(MACHINE, length=0.7))
    assert len(intact(empty_cache)["json"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.body("extra", 1.0, (0.1, 0.2, 0.3), np.eye(3)) and m.free("free", "extra"),
        lambda m: m.motor("B"),
        lambda m: m.spring("s", sr.point_on("coupler", (1, 0)), sr.point_on("ground"), 1.0),
        lambda m: m.force("push", sr.point_on("coupler", (1, 0)), (1, 0, 0)),
        lambda m: m.frame("mark", sr.point_on("coupler", (1, 0))),
        lambda m: m.close("C1 again", sr.curve_on("ground", lambda p: p[0] - 0.54), sr.point_on("crank0", (1, 0))),
        lambda m: m.prescribe("drive", "A0", lambda t: 1 + t * t),
        lambda m: m.prescribe("drive", "A0", lambda t: 1 + t * t * t),
        lambda m: m.couple("gear", {"A0": 1.0, "A1": -1.0}),
        lambda m: m.joint_spring("coil", "A0", 1.0),
    ],
)
def test_every_part_is_in_the_key(change):
    from sarrus.symbolic.digest import describe

    mech = sr.library.build(MACHINE)
    before = describe(mech.finalize())
    change(mech)
    after = describe(mech.finalize())
    assert before is not None and after is not None and before != after


def test_user_functions_of_the_kinematics_are_derived_each_time(empty_cache, monkeypatch):
    def machine(factor: float) -> sr.Mechanism:
        mech = sr.library.build(MACHINE)
        mech.constrain("own", lambda k: factor * (k.coordinate("A0") - 1.0))
        return mech

    sr.compile(machine(1.0))
    system = sr.compile(machine(-3.0))
    state = system.assemble()
    np.testing.assert_allclose(system.terms(state).A[-1], [-3.0, 0, 0, 0])
    assert intact(empty_cache)["json"] == []


@pytest.mark.parametrize("kind", ["so", "json"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "append", "garbage"])
def test_damaged_files_are_rebuilt(damage, kind, filled, empty_cache, tmp_path, monkeypatch):
    shutil.copytree(filled, empty_cache)
    (path,) = empty_cache.glob(f"*.{kind}")
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    elif damage == "flip":
        content[len(content) // 3] ^= 0x40
    elif damage == "empty":
        content = bytearray()
    elif damage == "append":
        content += b"\0"
    else:
        content = bytearray(b"not what it was")
    path.write_bytes(bytes(content))
    shutil.copytree(empty_cache, tmp_path / "copy")
    with monkeypatch.context() as patch:  # loading damaged code could kill this process, so ask first
        patch.setenv("SARRUS_CACHE", str(tmp_path / "copy"))
        assert cache.fetch(path.stem.rsplit("-", 1)[0], kind) is None
        assert not (tmp_path / "copy" / path.name).exists()
    result = acceleration(build())
    assert np.all(np.isfinite(result))
    assert {k: len(v) for k, v in intact(empty_cache).items()} == {"so": 1, "json": 1}


def test_a_file_that_cannot_be_read_is_rebuilt(filled, empty_cache, monkeypatch):
    shutil.copytree(filled, empty_cache)
    (path,) = empty_cache.glob("*.json")
    read, refused = Path.read_bytes, []

    def fails_once(self):
        if self == path and not refused:
            refused.append(self)
            raise PermissionError(13, "Permission denied", str(self))
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", fails_once)
    assert np.all(np.isfinite(acceleration(build())))
    assert refused == [path]


def test_left_overs_of_a_killed_process_do_no_harm(filled, empty_cache, monkeypatch):
    shutil.copytree(filled, empty_cache)
    (empty_cache / ".new-abc").write_bytes(b"half a file")
    monkeypatch.setattr("sarrus.dynamics.compile._derive", refuse)
    assert np.all(np.isfinite(acceleration(build())))


def test_a_failed_write_leaves_nothing_behind(empty_cache, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        cache.store("key", "json", b"content")
    assert list(empty_cache.iterdir()) == []


PROCESS = f"""
import numpy as np, sarrus as sr
system = sr.compile(sr.library.build({MACHINE!r}))
print(*system.acceleration(system.assemble(velocities={{"A0": 1.0}}), [0.5]).tolist())
"""


def test_many_processes_fill_one_empty_cache(empty_cache):
    environment = {**os.environ, "SARRUS_CACHE": str(empty_cache), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-W", "error::RuntimeWarning", "-c", PROCESS]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = [subprocess.Popen(call, env=environment, **pipes) for _ in range(6)]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 6, outputs
    assert len({out for out, _ in outputs}) == 1 and outputs[0][0].strip()
    files = intact(empty_cache)
    assert files["so"] and files["json"]
    np.testing.assert_array_equal(acceleration(build()), [float(x) for x in outputs[0][0].split()])


# --- where it is -----------------------------------------------------------------------------------------------------
@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Stands for /tmp."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_places_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path / "named"))
    assert cache.folder() == tmp_path / "named"
    monkeypatch.delenv("SARRUS_CACHE")
    assert cache.folder() == tmp_path / "xdg" / "sarrus"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == tmp_path / "home" / ".cache" / "sarrus"


@pytest.mark.parametrize("why", ["no permission", "below a file"])
def test_a_place_that_cannot_be_written_falls_back(why, tmp_path, temporary, monkeypatch):
    named = tmp_path / "named"
    if why == "below a file":
        (tmp_path / "file").write_text("")
        named = tmp_path / "file" / "cache"
    else:
        named.mkdir(mode=0o555)
        access = os.access  # root may write anywhere, so the answer is given here
        monkeypatch.setattr("os.access", lambda path, mode: Path(path) != named and access(path, mode))
    monkeypatch.setenv("SARRUS_CACHE", str(named))
    place = cache.folder()
    assert place.parent == temporary and re.fullmatch(r"sarrus-\d+", place.name)
    assert place.stat().st_mode & 0o077 == 0, "others must not be able to plant code there"
    assert np.all(np.isfinite(acceleration(build())))
    assert intact_names(place) == {".so", ".json"}
    if why == "no permission":
        assert list(named.iterdir()) == []


def intact_names(place: Path) -> set[str]:
    return {path.suffix for path in place.iterdir()}


def test_a_fallback_folder_open_to_others_is_not_trusted(tmp_path, temporary, monkeypatch):
    """In a shared /tmp anybody can make the folder first, and put a library there that would be loaded."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path / "file" / "cache"))
    planted = temporary / f"sarrus-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    place = cache.folder()
    assert place != planted or place.stat().st_mode & 0o077 == 0


def test_the_toolchain_is_in_the_key():
    text = compiler.toolchain_id()
    assert compiler.find_compiler()[0] in text
    assert all(flag in text for flag in compiler.FLAGS)
    assert cache.key_of("a", "bc") != cache.key_of("ab", "c")
    assert cache.key_of("a") == cache.key_of(b"a")
