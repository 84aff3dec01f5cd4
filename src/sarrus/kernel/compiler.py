"""Find a C compiler and turn C text into a shared library."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sarrus.errors import CompilerError

INCLUDE = Path(__file__).parent / "include"
FLAGS = (
    "-std=c99",
    "-O2",
    "-fpeel-loops",  # the short loops of small machines
    "-fno-tree-slp-vectorize",  # pairs of numbers just written one by one would be read as one, which stalls
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)

_NO_COMPILER = """no C compiler was found, and Sarrus turns machines into C.
  Install one:          apt-get install gcc   (or clang, or your system's equivalent)
  or bring your own:    pip install ziglang   (a compiler as a Python package)
  or name one:          export SARRUS_CC=/path/to/cc"""


@functools.cache
def find_compiler() -> tuple[str, ...]:
    """The command that compiles C.

    Returns:
        Its words: `SARRUS_CC` or `CC` if set, else cc, gcc or clang, else the ziglang package.

    Raises:
        CompilerError: if there is none; the text says how to get one.
    """
    chosen = os.environ.get("SARRUS_CC") or os.environ.get("CC")
    if chosen:
        words = chosen.split()
        path = shutil.which(words[0])
        if path is None:
            raise CompilerError(f"the compiler {words[0]!r} named by SARRUS_CC or CC does not exist.\n{_NO_COMPILER}")
        return (path, *words[1:])
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise CompilerError(_NO_COMPILER)


def _tuning() -> tuple[str, ...]:
    return ("-mcpu=native",) if platform.machine() in ("arm64", "aarch64") else ("-march=native",)


@functools.cache
def toolchain_id() -> str:
    """A text that changes whenever the machine code would: compiler, its flags, headers and this processor."""
    command = find_compiler()
    binary = Path(shutil.which(command[0]) or command[0]).resolve()
    stat = binary.stat()
    headers = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(INCLUDE.glob("*.h")))).hexdigest()
    return "|".join([*command, str(binary), str(stat.st_size), str(stat.st_mtime_ns), *FLAGS, headers, _processor()])


def _processor() -> str:
    """Model and features of this processor, as the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    keep = ("model name", "flags", "Features", "CPU part")
    return "|".join(dict.fromkeys(line for line in lines if line.split("\t")[0].strip() in keep))


def compile_library(source: str) -> bytes:
    """Machine code of a C text, as the bytes of a shared library.

    Args:
        source: the C text; the package's own headers are on its include path.

    Returns:
        The library file's content.

    Raises:
        CompilerError: with the compiler's own words.
    """
    command = find_compiler()
    with tempfile.TemporaryDirectory(prefix="sarrus-") as folder:
        c_file, library = Path(folder) / "machine.c", Path(folder) / "machine.so"
        c_file.write_text(source)
        call = [
            *command,
            *FLAGS,
            *_tuning(),
            "-fvisibility=hidden",
            f"-I{INCLUDE}",
            str(c_file),
            "-o",
            str(library),
            "-lm",
        ]
        try:
            done = subprocess.run(call, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompilerError(
                f"the compiler {command[0]!r} could not be started: {error}.\n{_NO_COMPILER}"
            ) from error
        if done.returncode != 0 or not library.exists():
            said = (done.stderr or done.stdout).strip()[:2000]
            raise CompilerError(f"the compiler {' '.join(command)!r} failed (exit {done.returncode}):\n{said}")
        return library.read_bytes()
