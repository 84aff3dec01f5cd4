"""Files and tables: exact round trips, no half-written files, errors that name the file and the cure."""

import builtins
import dataclasses
import errno
import importlib.util
import json
import os
import struct

import numpy as np
import pandas
import pytest
import xarray

import sarrus as sr
from sarrus.errors import SarrusError
from sarrus.io import trajectory_files
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory

HDF5 = importlib.util.find_spec("h5py") is not None
ENGINES = [
    "csv",
    "nc",
    pytest.param("nc4", marks=[] if HDF5 else pytest.mark.skip("h5py missing: no netCDF-4 written")),
]


def motion(name, awkward=True, count=7, **fields) -> Trajectory:
    """Numbers with all their digits; what they mean does not matter to a file."""
    system = sr.compile(sr.library.build(name))
    x, rng = system.layout, np.random.default_rng(3)
    q = system.retract(np.tile(system.assemble().q, (count, 1)), rng.normal(size=(count, x.nv)))
    v, a, u = (rng.normal(size=(count, n)) * 10.0 ** rng.integers(-9, 9, (count, n)) for n in (x.nv, x.nv, x.nu))
    t = np.cumsum(rng.uniform(size=count)) / 3
    t[4] = t[3]
    first = {group: True for group in x.groups}
    second = Segment(4, {group: False for group in x.groups}, system.p * (1 + 1 / 3))
    crossing = Crossing(t[2], q[2], v[2], np.array([1 / 3, 1e-17]), 1, 2, {"A": 0.1, "B": -2 / 3}, 'a "quoted", text\n')
    event = EventRecord("höhe < 0", t[3], q[3], v[3], -1, "switch")
    return Trajectory(
        system, t, q, v, a, u,
        Status("event", "at the stop", t[-1]),
        Stats("rk4", steps=6, evaluations=24, smallest_step=0.01, mean_step=float("inf"), seconds=1 / 7),
        (Segment(0, first, system.p), second), (crossing,), (event, event),
        {"method": "rk4", "rtol": float("nan"), "dt": 0.1, "nested": {"list": [1, 2.5, None, True, "x"]}} | fields,
    )  # fmt: skip


@pytest.fixture(scope="module")
def slider() -> Trajectory:
    return motion("slider_crank")


def same(x, y):
    """Exactly equal, arrays and records alike; nan equals nan."""
    if isinstance(x, np.ndarray):
        return isinstance(y, np.ndarray) and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=True)
    if dataclasses.is_dataclass(x):
        return type(x) is type(y) and all(same(getattr(x, f.name), getattr(y, f.name)) for f in dataclasses.fields(x))
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(x[k], y[k]) for k in x)
    if isinstance(x, (list, tuple)):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    return x == y or (x != x and y != y)


def saved(traj, tmp_path, kind, monkeypatch):
    path = tmp_path / f"run.{kind[:3].rstrip('4')}"
    if kind == "nc":
        monkeypatch.setattr(trajectory_files, "_has_hdf5", lambda: False)
    traj.save(path)
    return path


# --- round trips -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "name", ["slider_crank", "stewart", "rolling_disc", "underactuated_chain", "particle_on_circle"]
)
def test_round_trips_are_exact(name, kind, tmp_path, monkeypatch):
    traj = motion(name)  # with and without inputs, constraints, parameters, quaternions
    back = Trajectory.load(saved(traj, tmp_path, kind, monkeypatch), traj.system)
    for field in dataclasses.fields(Trajectory):
        if field.name != "system":
            assert same(getattr(back, field.name), getattr(traj, field.name)), field.name
    assert back.system.layout is traj.system.layout
    assert os.listdir(tmp_path) == [f"run.{kind[:3].rstrip('4')}"]


@pytest.mark.parametrize("kind", ENGINES)
def test_the_parameters_of_the_run_come_back(slider, kind, tmp_path, monkeypatch):
    other = dataclasses.replace(slider, system=slider.system.with_parameters(m2=1 / 3))
    back = Trajectory.load(str(saved(other, tmp_path, kind, monkeypatch)), slider.system)
    assert back.system.parameters == other.system.parameters != slider.system.parameters
    np.testing.assert_array_equal(back.lam, other.lam)


def test_names_with_commas_quotes_and_slashes(tmp_path):
    mech = sr.Mechanism('odd "names", all', planar=True)
    for k, name in enumerate(("left, upper", "right/lower", 'so-called "C"')):
        mech.revolute(name, mech.ground, mech.body(f"{name} {k}", 1.0, (1, 0)))
    system = sr.compile(mech)
    q = np.arange(6.0).reshape(2, 3)
    traj = Trajectory(
        system,
        np.array([0.0, 1.0]),
        q,
        q,
        q,
        np.zeros((2, 0)),
        Status("finished"),
        Stats("x"),
        (Segment(0, {}, system.p),),
    )
    for ending in ("csv", "nc"):
        traj.save(tmp_path / f"odd.{ending}")
        back = Trajectory.load(tmp_path / f"odd.{ending}", system)
        np.testing.assert_array_equal(back["right/lower"], q[:, 1])


def test_the_text_file_can_be_read_by_anything(slider, tmp_path):
    slider.save(tmp_path / "run.csv")
    table = pandas.read_csv(tmp_path / "run.csv", comment="#")
    assert list(table) == ["t", "A", "B", "A.v", "B.v", "A.a", "B.a", "A.u", "B.u"]
    np.testing.assert_allclose(table["B.v"], slider["B.v"], rtol=1e-15)
    header = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert header[0].startswith("# sarrus trajectory")
    strict = json.loads(header[1][2:], parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert strict["machine"]["name"] == "slider-crank"


@pytest.mark.parametrize("kind", ENGINES[1:])
def test_the_netcdf_file_can_be_read_by_anything(slider, kind, tmp_path, monkeypatch):
    path = saved(slider, tmp_path, kind, monkeypatch)
    with xarray.open_dataset(path, decode_times=False) as data:
        np.testing.assert_array_equal(data.v.sel(velocity="B"), slider["B.v"])
        assert data.time.attrs["units"] == "s" and data.v.attrs["units"] == "rad/s"


# --- tables ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["slider_crank", "stewart", "pendulum"])
def test_pandas(name):
    traj = motion(name)
    table = traj.to_pandas()
    assert table.index.name == "t" and table.columns.is_unique
    assert set(table) <= set(traj.names())
    for column in table:
        np.testing.assert_array_equal(table[column], np.ravel(traj[column]), err_msg=column)


def test_xarray(slider):
    data = slider.to_xarray()
    assert dict(data.sizes) == {"time": 7, "position": 2, "velocity": 2, "input": 2, "row": 1}
    np.testing.assert_array_equal(data.lam.sel(row="slider.height"), slider["slider.height.force"])
    np.testing.assert_array_equal(data.kinetic, slider["energy.kinetic"])
    units = {name: data[name].attrs["units"] for name in ("q", "v", "a", "lam", "kinetic", "dissipated")}
    assert units == {"q": "rad", "v": "rad/s", "a": "rad/s2", "lam": "N", "kinetic": "J", "dissipated": "W"}
    mixed = motion("rolling_disc").to_xarray()
    assert mixed.q.attrs["units"] == "m, m, m, 1, 1, 1, 1"
    assert mixed.sizes["input"] == 0


# --- what goes wrong while writing -----------------------------------------------------------------------------------
@pytest.mark.parametrize("ending", ["csv", "nc"])
@pytest.mark.parametrize("when", ["writing", "renaming"])
def test_a_full_disk_leaves_the_old_file(slider, tmp_path, ending, when, monkeypatch):
    path = tmp_path / f"run.{ending}"
    slider.save(path)
    old = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if when == "renaming":
        monkeypatch.setattr(os, "replace", full)
    elif ending == "csv":
        monkeypatch.setattr(np, "savetxt", full)
    else:
        monkeypatch.setattr(xarray.Dataset, "to_netcdf", full)
    with pytest.raises(
        SarrusError, match=rf"cannot write '.*run.{ending}': No space left on device.*save it elsewhere"
    ):
        slider.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [path.name]


def test_an_interruption_half_way_leaves_nothing_behind(slider, tmp_path, monkeypatch):
    def stop(file, *_, **__):
        file.write("1,2,3\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savetxt", stop)
    with pytest.raises(KeyboardInterrupt):
        slider.save(tmp_path / "run.csv")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["csv", "nc"])
def test_a_folder_that_does_not_exist(slider, tmp_path, ending):
    with pytest.raises(SarrusError, match=r"cannot write '.*missing/run.*Expected a folder that exists"):
        slider.save(tmp_path / "missing" / f"run.{ending}")


@pytest.mark.parametrize("name", ["run.xlsx", "run", "run.nc.gz"])
def test_unknown_endings(slider, tmp_path, name):
    for act in (slider.save, lambda path: Trajectory.load(path, slider.system)):
        with pytest.raises(
            SarrusError, match=r"unknown ending '.*'; expected '.nc' \(netCDF, small and fast\) or '.csv'"
        ):
            act(tmp_path / name)


# --- what goes wrong while reading -----------------------------------------------------------------------------------
def test_a_file_that_is_not_there(slider, tmp_path):
    with pytest.raises(SarrusError, match=r"there is no file '.*run.csv'; expected one that `Trajectory.save` wrote"):
        Trajectory.load(tmp_path / "run.csv", slider.system)


def damage(path, how, number):
    data = path.read_bytes()
    if how == "cut":
        data = data[: len(data) * 3 // 4]
    elif how == "empty":
        data = b""
    elif how == "other":
        data = b"A,B\n1,2\n"
    elif how == "header":
        data = data.replace(b'"segments"', b'"segmentz"')
    elif how == "record":
        data = data.replace(b'"evaluations": 24', b'"evaluations": 25')
    else:  # one bit of one number
        forms = [f"{number:.17g}".encode(), struct.pack(">d", number), struct.pack("<d", number)]
        (form,) = (form for form in forms if form in data)
        data = data.replace(form, form[:-2] + bytes([form[-2] ^ 1]) + form[-1:], 1)
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "empty", "other", "header", "record", "bit"])
@pytest.mark.parametrize("kind", ENGINES)
def test_damaged_files_are_refused(slider, tmp_path, kind, how, monkeypatch):
    path = saved(slider, tmp_path, kind, monkeypatch)
    damage(path, how, slider.v[1, 1])
    with pytest.raises(SarrusError, match=r"run\.(csv|nc)'.*") as error:
        Trajectory.load(path, slider.system)
    assert "cannot read" in str(error.value) or "netCDF-4" in str(error.value)


def test_every_way_of_cutting_a_text_file_is_noticed(slider, tmp_path):
    path = tmp_path / "run.csv"
    slider.save(path)
    data = path.read_bytes()
    for size in range(0, len(data) - 2, 97):
        path.write_bytes(data[:size])
        with pytest.raises(SarrusError, match="cannot read"):
            Trajectory.load(path, slider.system)


@pytest.mark.parametrize("ending", ["csv", "nc"])
def test_the_wrong_machine(slider, tmp_path, ending):
    path = tmp_path / f"run.{ending}"
    slider.save(path)
    with pytest.raises(
        SarrusError,
        match=r"motion of another machine: name 'slider-crank', but 'four-bar' has 'four-bar'; load it with",
    ):
        Trajectory.load(path, sr.compile(sr.library.build("four_bar")))
    with pytest.raises(SarrusError, match=r"another machine: inputs \['A', 'B'\], but 'slider-crank' has \['A'\]"):
        Trajectory.load(path, sr.compile(sr.library.build("slider_crank", motors=("A",))))


def test_a_format_of_another_time(slider, tmp_path, monkeypatch):
    monkeypatch.setattr(trajectory_files, "FORMAT", 99)
    slider.save(tmp_path / "run.csv")
    monkeypatch.undo()
    with pytest.raises(
        SarrusError, match=r"has format 99, expected 1; read it with the version of Sarrus that wrote it"
    ):
        Trajectory.load(tmp_path / "run.csv", slider.system)


# --- packages that are not installed ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("act", "package"),
    [
        (lambda traj, path: traj.to_pandas(), "pandas"),
        (lambda traj, path: traj.to_xarray(), "xarray"),
        (lambda traj, path: traj.save(path / "run.nc"), "xarray"),
        (lambda traj, path: Trajectory.load(path / "old.nc", traj.system), "xarray"),
    ],
)
def test_missing_packages_are_named_with_the_command(slider, tmp_path, act, package, monkeypatch):
    slider.save(tmp_path / "old.nc")
    find = importlib.import_module

    def without(name, *rest):
        if name == package:
            raise ImportError(f"No module named {name!r}")
        return find(name, *rest)

    monkeypatch.setattr(trajectory_files.importlib, "import_module", without)
    with pytest.raises(
        SarrusError, match=rf"needs the package '{package}', which is not installed: pip install 'sarrus\[files\]'"
    ):
        act(slider, tmp_path)
    slider.save(tmp_path / "run.csv")  # plain text needs nothing
    assert sorted(os.listdir(tmp_path)) == ["old.nc", "run.csv"]


def test_netcdf_4_without_its_packages(slider, tmp_path, monkeypatch):
    (tmp_path / "run.nc").write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setattr(trajectory_files, "_has_hdf5", lambda: False)
    with pytest.raises(SarrusError, match=r"run.nc' is netCDF-4 \(HDF5\), for which the packages h5netcdf and h5py"):
        Trajectory.load(tmp_path / "run.nc", slider.system)


def test_a_file_that_may_not_be_read(slider, tmp_path, monkeypatch):
    slider.save(tmp_path / "run.csv")
    plain = builtins.open

    def refuse(path, mode="r", *rest, **options):
        if "r" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return plain(path, mode, *rest, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(SarrusError, match=r"cannot read '.*run.csv': .*Permission denied"):
        Trajectory.load(tmp_path / "run.csv", slider.system)
