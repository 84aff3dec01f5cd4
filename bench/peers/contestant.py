"""What every contestant is: something that gives accelerations to be audited, and runs many evaluations to be timed."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sarrus.kernel import cache

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


def build_helper(source: str, command: Sequence[str], timeout: float = 900.0) -> ctypes.CDLL:
    """Compile one of the timing loops beside this file, or take it from Sarrus' cache, and load it.

    Args:
        source: file name.
        command: compiler with flags; source and output are appended.
        timeout: [s].

    Raises:
        RuntimeError: with the compiler's words.
    """
    path = HERE / source
    key = cache.key_of("bench", path.read_bytes(), *command)
    found = cache.fetch(key, "so")
    if found:
        return ctypes.CDLL(str(found[0]))
    print(f"compiling {source}, kept in the cache ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "loop.so"
        try:
            call = [*command, str(path), "-o", str(fresh)]
            done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=timeout)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{command[0]}: {error}") from error
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[:300]}")
        return ctypes.CDLL(str(cache.store(key, "so", fresh.read_bytes())))
