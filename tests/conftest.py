"""Shared test set-up: strict floating point, an own compile cache, explicit seeds."""

import os
import shutil
import signal
import tempfile
import zlib

# Before NumPy loads: several test processes with several BLAS threads each would fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

SEED = int(os.environ.get("SARRUS_TEST_SEED", "20240229"))

# Derandomised and without a database: the same tree gives the same tests everywhere. No deadline, because
# the first example may compile C.
settings.register_profile("sarrus", derandomize=True, database=None, deadline=None, print_blob=True)
settings.load_profile("sarrus")

_TEMPORARY_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Point the compile cache away from the user's, once per run and before the workers start."""
    np.seterr(over="raise", invalid="raise", divide="raise")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background, where Ctrl-C is switched off
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        return  # a pytest-xdist worker inherits the variable, so that a machine is compiled once per run
    kept = os.environ.get("SARRUS_TEST_CACHE")
    if kept:
        os.environ["SARRUS_CACHE"] = os.path.abspath(kept)
        return
    folder = tempfile.mkdtemp(prefix="sarrus-tests-")
    config.stash[_TEMPORARY_CACHE] = folder
    os.environ["SARRUS_CACHE"] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the compile cache of this run."""
    folder = config.stash.get(_TEMPORARY_CACHE, None)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed with every run: -q suppresses the header, where it would otherwise stand."""
    terminalreporter.write_line(f"seed: {SEED} (set SARRUS_TEST_SEED to change it)")


@pytest.fixture(autouse=True)
def _strict_floating_point():
    """Turn overflow, division by zero and invalid operations into errors in every test."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        yield


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of this test: fixed by the run's seed and the test's name, not by the order of the tests."""
    value = zlib.crc32(f"{SEED}:{request.node.nodeid}".encode())
    print(f"seed of this test: {value}")
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Random generator of this test."""
    return np.random.default_rng(seed)
