"""What every contestant is: something that gives accelerations to be audited, and runs many evaluations to be timed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Contestant:
    """One way to compute constrained accelerations, in working order.

    Attributes:
        name: column of the table.
        run: does about `count` evaluations, cycling through the sampled states; returns how many it did.
        accelerations: v̇ of every sampled state, in Sarrus' order, computed by the very calls that are timed.
        bound: largest relative error at which its time counts.
        settings: everything needed to run it again.
        trivial: as `run`, but with a call that does nothing: the cost of calling. None where there is none.
        peer: whether it is another package, against which ratios are formed.
    """

    name: str
    run: Callable[[int], int]
    accelerations: Callable[[], np.ndarray]
    bound: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    trivial: Callable[[int], int] | None = None
    peer: bool = True


def pointer(array: np.ndarray) -> int:
    """Address of a contiguous array of floats."""
    assert array.flags.c_contiguous and array.dtype == np.float64
    return array.ctypes.data


def build_helper(source: str, command: Sequence[str], timeout: float = 600.0) -> ctypes.CDLL:
    """Compile one of the timing loops beside this file, or take it from the cache, and load it.

    Args:
        source: file name.
        command: compiler with flags; source and output are appended.
        timeout: [s].

    Raises:
        RuntimeError: with the compiler's words.
    """
    path = HERE / source
    native = _processor() if any("native" in word for word in command) else ""
    key = hashlib.sha256("\0".join([path.read_text(), *command, native]).encode()).hexdigest()[:24]
    base = os.environ.get("SARRUS_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "sarrus")
    folder = Path(base) / "bench"
    library = folder / f"{path.stem}-{key}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fresh = Path(work) / library.name
            try:
                call = [*command, str(path), "-o", str(fresh)]
                done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=timeout)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise RuntimeError(f"{command[0]}: {error}") from error
            if done.returncode != 0:
                raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[:300]}")
            os.replace(fresh, library)
    return ctypes.CDLL(str(library))


def _processor() -> str:
    try:
        return next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return ""
