"""The machine that a MODEL argument means."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

from sarrus.errors import SarrusError, UnknownNameError
from sarrus.model import library

ABOUT = "a library name, or file.py:function that returns a Mechanism or Lagrangian"


def load_model(text: str) -> Any:
    """The machine that a MODEL argument means.

    Args:
        text: a library name, or `file.py:function`.

    Returns:
        What the library or the function builds.
    """
    path, _, function = text.rpartition(":")
    if path.endswith(".py") and function:
        return _from_file(Path(path), function)
    if text.endswith((".xml", ".urdf", ".mjcf")):
        raise SarrusError(f"{text!r}: robot description files cannot be read yet; use file.py:function")
    if text.endswith(".py"):
        raise SarrusError(f"{text!r}: add the function that builds the machine, as in {text}:build")
    try:
        return library.build(text)
    except UnknownNameError as error:
        raise SarrusError(f"{error} Or name a function of your own: file.py:function.") from error


def _from_file(path: Path, function: str) -> Any:
    if not path.is_file():
        raise SarrusError(f"{str(path)!r}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        build = getattr(module, function, None)
        if not callable(build):
            known = ", ".join(n for n, x in vars(module).items() if callable(x) and not n.startswith("_"))
            raise SarrusError(f"{str(path)!r} has no function {function!r}; it has: {known or 'none'}")
        return build()
    except SarrusError:
        raise
    except Exception as error:  # whatever the user's own code raises, said with the place
        raise SarrusError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))


def _place(error: Exception, path: Path) -> str:
    """File and line of the user's code in which an error arose."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == str(path):
            line = frame.lineno
    return f"{str(path)!r}, line {line}" if line else repr(str(path))
