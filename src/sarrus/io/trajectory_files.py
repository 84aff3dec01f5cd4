"""Trajectories as files (netCDF, or CSV with a header of comments), pandas tables and xarray datasets.

Both kinds of file hold t, q, v, a and u with all their digits, and as JSON everything else; what follows from these
is computed again. A file is written under another name first and renamed when it is complete.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.errors import SarrusError
from sarrus.simulation import access
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory

if TYPE_CHECKING:
    from sarrus.dynamics.system import System

FORMAT = 1
TITLE = "# sarrus trajectory"
ARRAYS = ("t", "q", "v", "a", "u")


def save(traj: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a trajectory to a file whose ending says how.

    A file that is there already is replaced only when the new one is complete.

    Args:
        traj: the motion.
        path: ends in `.nc` (netCDF) or `.csv` (plain text).
    """
    path = Path(path)
    write = _kind(path, {".nc": _write_netcdf, ".csv": _write_csv})
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(traj, part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except (OSError, RuntimeError) as error:  # HDF5 reports a full disk as either
        raise SarrusError(
            f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}. Expected a folder that exists, "
            "may be written to and has room; the trajectory itself is untouched: save it elsewhere"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `save` could not write: better before a long computation than after it.

    Args:
        path: as for `save`.
    """
    path = Path(path)
    _kind(path, {".nc": None, ".csv": None})
    if path.suffix.lower() == ".nc":
        _optional("xarray", "a '.nc' file")
    if not os.access(path.parent, os.W_OK):
        raise SarrusError(f"cannot write {str(path)!r}: expected a folder that exists and may be written to")


def load(path: str | os.PathLike[str], system: System) -> Trajectory:
    """Read a trajectory that `save` wrote.

    Args:
        path: the file.
        system: the machine that moved; its parameters are set to those of the run.
    """
    path = Path(path)
    read = _kind(path, {".nc": _read_netcdf, ".csv": _read_csv})
    if not path.is_file():
        raise SarrusError(f"there is no file {str(path)!r}; expected one that `Trajectory.save` wrote")
    try:
        data, arrays = read(path)
        checksum = data.pop("checksum")
        _check_machine(path, data, system)
        if checksum != _checksum(data, arrays):
            raise ValueError("its contents do not match their checksum")
        return _trajectory(_revived(data), arrays, system)
    except SarrusError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError) as error:
        raise SarrusError(
            f"cannot read {str(path)!r}: {error}. Expected a complete file that `Trajectory.save` wrote; it is "
            "damaged, or something else: save the motion again, or take a copy of the file"
        ) from error


def _kind(path: Path, known: Mapping[str, Any]) -> Any:
    if path.suffix.lower() not in known:
        raise SarrusError(
            f"{str(path)!r}: unknown ending {path.suffix!r}; expected '.nc' (netCDF, small and fast) "
            "or '.csv' (plain text)"
        )
    return known[path.suffix.lower()]


def _optional(module: str, purpose: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SarrusError(
            f"{purpose} needs the package {module!r}, which is not installed: pip install 'sarrus[files]'"
        ) from error


# --- everything but the arrays ---------------------------------------------------------------------------------------
def _description(traj: Trajectory) -> dict[str, Any]:
    """All that is not a long array, as plain data."""
    data = {
        "format": FORMAT,
        "machine": _machine(traj.system),
        "p": traj.system.p,
        "rows": len(traj),
        "status": asdict(traj.status),
        "stats": asdict(traj.stats),
        "segments": [vars(segment) for segment in traj.segments],
        "crossings": [vars(crossing) for crossing in traj.crossings],
        "events": [vars(event) for event in traj.events],
        "settings": traj.settings,
    }
    data = _plain(data)
    return data | {"checksum": _checksum(data, {key: getattr(traj, key) for key in ARRAYS})}


def _machine(system: System) -> dict[str, Any]:
    x = system.layout
    return {
        "name": x.name,
        "positions": list(x.q_names),
        "velocities": list(x.v_names),
        "inputs": list(x.u_names),
        "constraints": [row.name for row in x.rows],
        "parameters": list(x.parameters),
    }


def _check_machine(path: Path, data: Mapping[str, Any], system: System) -> None:
    if data["format"] != FORMAT:
        raise SarrusError(
            f"{str(path)!r} has format {data['format']!r}, expected {FORMAT}; "
            "read it with the version of Sarrus that wrote it"
        )
    for what, expected in _machine(system).items():
        found = data["machine"][what]
        if found != expected:
            raise SarrusError(
                f"{str(path)!r} holds a motion of another machine: {what} {found!r}, but {system.name!r} has "
                f"{expected!r}; load it with the machine that was simulated"
            )


def _trajectory(data: Mapping[str, Any], arrays: Mapping[str, np.ndarray], system: System) -> Trajectory:
    p = np.array(data["p"], dtype=float)
    if not np.array_equal(p, system.p):
        system = system.with_parameters(**dict(zip(system.layout.parameters, p.tolist(), strict=True)))

    def vectors(record: Mapping[str, Any], *keys: str) -> dict[str, Any]:
        return {**record, **{key: np.array(record[key], dtype=float) for key in keys}}

    return Trajectory(
        system,
        **arrays,
        status=Status(**data["status"]),
        stats=Stats(**data["stats"]),
        segments=tuple(Segment(**vectors(s, "p")) for s in data["segments"]),
        crossings=tuple(Crossing(**vectors(c, "q", "v", "singular_values")) for c in data["crossings"]),
        events=tuple(EventRecord(**vectors(e, "q", "v")) for e in data["events"]),
        settings=data["settings"],
    )


def _checksum(data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> int:
    total = zlib.crc32(json.dumps(data).encode())
    for key in ARRAYS:
        total = zlib.crc32(np.ascontiguousarray(arrays[key], dtype="<f8").tobytes(), total)
    return total


def _plain(value: Any) -> Any:
    """What JSON knows; numbers that are not finite, which it does not know, in an envelope."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return {"not finite": str(value)} if isinstance(value, float) and not np.isfinite(value) else value


def _revived(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return [_revived(entry) for entry in value]
    if isinstance(value, dict):
        return (
            float(value["not finite"]) if set(value) == {"not finite"} else {k: _revived(x) for k, x in value.items()}
        )
    return value


def _widths(machine: Mapping[str, Any]) -> list[int]:
    nq, nv, nu = (len(machine[key]) for key in ("positions", "velocities", "inputs"))
    return [1, nq, nv, nv, nu]


# --- plain text ------------------------------------------------------------------------------------------------------
def _write_csv(traj: Trajectory, path: Path) -> None:
    table = np.column_stack([getattr(traj, key) for key in ARRAYS])
    x = traj.system.layout
    names = ["t", *x.q_names, *access.velocity_names(x), *(f"{n}.a" for n in x.v_names), *(f"{n}.u" for n in x.u_names)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"{TITLE}\n# {json.dumps(_description(traj), allow_nan=False)}\n")
        csv.writer(file, lineterminator="\n").writerow(names)
        np.savetxt(file, table, fmt="%.17g", delimiter=",")


def _read_csv(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with open(path, encoding="utf-8", newline="") as file:
        if file.readline().rstrip() != TITLE:
            raise ValueError(f"its first line is not {TITLE!r}")
        data = json.loads(file.readline().removeprefix("# "))
        next(csv.reader(file))  # the names, which may contain commas and line ends
        body = file.read()
    widths = _widths(data["machine"])
    table = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2) if body.strip() else np.zeros((0, sum(widths)))
    if table.shape != (data["rows"], sum(widths)):
        raise ValueError(f"it has {table.shape[0]} rows and {table.shape[1]} columns, expected {data['rows']} rows")
    parts = np.split(table, np.cumsum(widths)[:-1], axis=1)
    arrays = {key: np.ascontiguousarray(part) for key, part in zip(ARRAYS, parts, strict=True)}
    arrays["t"] = arrays["t"][:, 0]
    return data, arrays


# --- netCDF and tables -----------------------------------------------------------------------------------------------
DIMENSIONS = {"q": "position", "v": "velocity", "a": "velocity", "u": "input", "lam": "row"}


def _dataset(traj: Trajectory, keys: tuple[str, ...]) -> Any:
    xarray = _optional("xarray", "a dataset")
    x, units = traj.system.layout, access.units(traj.system)
    labels = {
        "position": list(x.q_names),
        "velocity": list(x.v_names),
        "input": list(x.u_names),
        "row": [row.name for row in x.rows],
    }
    variables = {}
    coordinates: dict[str, Any] = {"time": ("time", traj.t, {"units": "s"})}
    for key in keys:
        dimension = DIMENSIONS[key]
        variables[key] = (("time", dimension), getattr(traj, key), _unit_attribute(units.get(key, [])))
        if labels[dimension]:  # netCDF stores no list of no names
            coordinates[dimension] = (dimension, labels[dimension])
    return xarray.Dataset(variables, coordinates, {"title": f"motion of {x.name}"})


def _unit_attribute(units: list[str]) -> dict[str, str]:
    """One unit where all agree, otherwise one for each column."""
    return {"units": units[0] if len(set(units)) == 1 else ", ".join(units)} if any(units) else {}


def to_xarray(traj: Trajectory) -> Any:
    """A dataset with q, v, a, u, lam and the energies over time, names as coordinates, units as attributes.

    Args:
        traj: the motion.
    """
    data = _dataset(traj, tuple(DIMENSIONS))
    for name in access.ENERGIES:
        unit = "W" if name in ("dissipated", "applied") else "J"
        data[name] = ("time", np.asarray(getattr(traj.energy, name)), {"units": unit})
    return data.assign_attrs(status=str(traj.status), stats=str(traj.stats))


def to_pandas(traj: Trajectory) -> Any:
    """A table over time: every number that `traj.names()` lists, except poses and shares of forces.

    Args:
        traj: the motion.
    """
    pandas = _optional("pandas", "a table")
    x = traj.system.layout
    columns = dict(zip(x.q_names, traj.q.T, strict=True))
    columns |= dict(zip(access.velocity_names(x), traj.v.T, strict=True))
    columns |= {f"{name}.a": part for name, part in zip(x.v_names, traj.a.T, strict=True)}
    columns |= {f"{name}.u": part for name, part in zip(x.u_names, traj.u.T, strict=True)}
    columns |= {f"{row.name}.force": part for row, part in zip(x.rows, traj.lam.T, strict=True)}
    columns |= {f"energy.{name}": np.asarray(getattr(traj.energy, name)) for name in access.ENERGIES}
    return pandas.DataFrame(columns, index=pandas.Index(traj.t, name="t"))


def _write_netcdf(traj: Trajectory, path: Path) -> None:
    data = _dataset(traj, tuple(key for key in ("q", "v", "a", "u") if getattr(traj, key).shape[1]))
    data.attrs["sarrus"] = json.dumps(_description(traj), allow_nan=False)
    # in memory first: HDF5 ends the whole process when a disk fills up while it writes
    path.write_bytes(data.to_netcdf(engine="h5netcdf" if _has_hdf5() else "scipy"))


def _read_netcdf(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    xarray = _optional("xarray", "a '.nc' file")
    content = path.read_bytes()
    if not content.startswith((b"CDF", b"\x89HDF")):
        raise ValueError("it is no netCDF file")
    engine = "scipy" if content.startswith(b"CDF") else "h5netcdf"
    if engine == "h5netcdf" and not _has_hdf5():
        raise SarrusError(
            f"{str(path)!r} is netCDF-4 (HDF5), for which the packages h5netcdf and h5py are needed: "
            "pip install 'sarrus[files]' h5py"
        )
    with xarray.open_dataset(io.BytesIO(content), engine=engine, decode_times=False) as data:
        if "sarrus" not in data.attrs:
            raise ValueError("it is a netCDF file without the mark of a trajectory")
        description = json.loads(data.attrs["sarrus"])
        empty = np.zeros((data.sizes["time"], 0))  # what has no columns is left out of the file
        found = {key: data[key].values if key in data else empty for key in ARRAYS[1:]}
        arrays = {"t": data["time"].values, **found}
        return description, {key: np.array(values, dtype=float) for key, values in arrays.items()}


def _has_hdf5() -> bool:
    """Whether netCDF-4 can be written and read; netCDF-3, which SciPy knows, holds the same."""
    return all(importlib.util.find_spec(name) for name in ("h5netcdf", "h5py"))
