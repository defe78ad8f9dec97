"""The Python part of a wheel's compatibility tag (:pep:`425`), by what its files are."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from rocwheel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.files import FileRange

__all__ = ["ANY_PYTHON", "is_extension_module", "python_tag"]

ANY_PYTHON = "py3-none"
"""The tag of wheels without extension modules."""

_OPTION = "--python"
_STABLE = ".abi3.so"
_PYTHON = re.compile(r"3\.([0-9]{1,2})(-ft)?")
_NAMED = re.compile(r"\.cpython-3([0-9]{1,2})(t?)-[\w-]+\.so$")
_ENTRY_POINT_STEP = 16 << 20


def is_extension_module(place: str, source: FileRange) -> bool:
    """Tell whether a shared library has the function by which Python would import it under its file name."""
    wanted = b"\0PyInit_" + posixpath.basename(place).partition(".")[0].encode() + b"\0"
    with source.map() as data:
        return any(
            wanted in bytes(data[start : start + _ENTRY_POINT_STEP + len(wanted)])
            for start in range(0, len(data), _ENTRY_POINT_STEP)
        )


def python_tag(extensions: Iterable[str], python: str = "") -> str:
    """Return the Python and ABI tags, ``cp312-cp312``, for a wheel with these extension modules.

    ``python`` is a version such as ``3.12``, or ``3.13-ft`` for the free-threaded build; without it the modules' names
    have to tell. Raises `InputError` when nothing tells, or when the names contradict it or each other.
    """
    modules = sorted(extensions)
    named = {place: _tag(*match.groups()) for place in modules if (match := _NAMED.search(place))}
    wanted = _asked_tag(python) if python else next(iter(named.values()), "")
    if not modules and python:
        remedy = "Leave it out: wheels without extension modules are for every Python."
        raise InputError(_OPTION, f"is {python}, yet no file is an extension module", remedy=remedy)
    if not modules:
        return ANY_PYTHON
    if not wanted:
        remedy = "Give --python, such as --python 3.12."
        raise InputError(modules[0], "is an extension module whose name tells no Python version", remedy=remedy)
    for place, tag in named.items():
        if tag != wanted:
            raise InputError(place, f"is an extension module for {tag}", expected=f"one for {wanted}")
    if all(place.endswith(_STABLE) for place in modules):
        return f"{wanted.partition('-')[0]}-abi3"
    return wanted


def _asked_tag(python: str) -> str:
    match = _PYTHON.fullmatch(python)
    if match is None:
        raise InputError(_OPTION, f"is {python!r}", expected="a version such as 3.12 or 3.13-ft")
    return _tag(match[1], "t" if match[2] else "")


def _tag(minor: str, threading: str) -> str:
    return f"cp3{minor}-cp3{minor}{threading}"
