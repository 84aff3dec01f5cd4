"""Every public name exists and has a docstring; functions and classes explain their arguments.

An argument is explained by a line under `Args:`, or by the words "as for `other`", where `other` is a public
function or a method of the same class that explains it.
"""

import enum
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any

import pytest

import sarrus

REFERENCE = re.compile(r"\bas for `(?:\w+\.)*(\w+)`")
SECTION = re.compile(r"^\s*(Args|Arguments|Attributes|Parameters):\s*$", re.MULTILINE)


def documented(text: str | None) -> set[str]:
    """Collect the names explained in the argument sections of a Google-style docstring."""
    names: set[str] = set()
    if not text:
        return names
    text = inspect.cleandoc(text)
    for match in SECTION.finditer(text):
        for line in text[match.end() :].lstrip("\n").splitlines():
            if line.strip() and not line.startswith(" "):
                break  # the next section
            # "name:", "name (type):", "name, other:", "*args:"
            head = re.match(r"^\s+((?:\*{0,2}\w+)(?:\s*[,/]\s*\*{0,2}\w+)*)\s*(?:\([^)]*\))?:", line)
            if head:
                names.update(part.strip(" *`") for part in re.split(r"[,/]", head.group(1)))
    return names


def arguments(function: Any) -> set[str]:
    """List the arguments a caller can give, without self and private ones."""
    parameters = inspect.signature(function).parameters
    return {name for name in parameters if name not in ("self", "cls") and not name.startswith("_")}


def own_init(cls: type) -> bool:
    """Say whether a class of this package takes arguments of its own."""
    if issubclass(cls, enum.Enum | BaseException):
        return False  # made by the package, or by a message
    return any("__init__" in vars(base) for base in cls.__mro__ if base.__module__.startswith("sarrus"))


def members() -> Iterator[tuple[str, Any]]:
    """Give (dotted name, object) for every public name, public submodules' names and public methods."""
    for name in sarrus.__all__:
        value = getattr(sarrus, name)
        yield f"sarrus.{name}", value
        if isinstance(value, types.ModuleType):
            for inner in getattr(value, "__all__", ()):
                yield f"sarrus.{name}.{inner}", getattr(value, inner)
        elif inspect.isclass(value):
            for inner, method in vars(value).items():
                if not inner.startswith("_") and isinstance(
                    method, types.FunctionType | staticmethod | classmethod | property
                ):
                    yield f"sarrus.{name}.{inner}", method


PUBLIC = dict(members())


def test_all_is_complete_and_without_repetition():
    assert len(set(sarrus.__all__)) == len(sarrus.__all__)
    assert [name for name in sarrus.__all__ if not hasattr(sarrus, name)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_docstring(name):
    value = PUBLIC[name]
    if isinstance(value, str | int | float | tuple):
        return  # constants such as __version__ are explained where they are set
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    text = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    assert text and text.strip(), f"{name} has no docstring"


def explained(name: str) -> set[str]:
    """Collect the arguments that a public name explains, itself or by reference."""
    value = PUBLIC[name]
    texts = [value.__doc__, value.__init__.__doc__] if inspect.isclass(value) else [value.__doc__]
    names = set().union(*map(documented, texts))
    text = "\n".join(filter(None, texts))
    for other in REFERENCE.findall(text):
        target = f"{name.rpartition('.')[0]}.{other}"
        if target in PUBLIC and target != name:
            names |= documented(PUBLIC[target].__doc__)
    return names


# Methods must have a docstring, but a short one may explain obvious arguments in its sentence.
CALLABLES = [
    name
    for name, value in PUBLIC.items()
    if (inspect.isclass(value) and own_init(value))
    or (isinstance(value, types.FunctionType) and not inspect.isclass(PUBLIC.get(name.rpartition(".")[0])))
]


@pytest.mark.parametrize("name", CALLABLES)
def test_public_name_documents_its_arguments(name):
    missing = sorted(arguments(PUBLIC[name]) - explained(name))
    assert not missing, f"{name}: not explained under 'Args:': {', '.join(missing)}"


def test_reading_of_argument_sections():
    text = """Sum.

    Args:
        x: First.
            More about it: at length.
        y, z (float): Others.
        *rest: What is left.

    Returns:
        total: the sum.
    """
    assert documented(text) >= {"x", "y", "z", "rest"}
    assert "total" not in documented(text)
