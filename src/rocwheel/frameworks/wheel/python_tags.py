"""The Python part of a wheel's compatibility tag (:pep:`425`), by the files of the wheel."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.core.reading import FileRange

__all__ = ["ANY_PYTHON", "is_importable_by_name", "python_tag"]

ANY_PYTHON = "py3-none"
"""The tag of wheels without extension modules."""

_OPTION = "--python"
_STABLE = ".abi3.so"
_PYTHON = re.compile(r"3\.([0-9]{1,2})")
_FREE_THREADED = re.compile(r"3\.(1[3-9]|[2-9][0-9])-ft")
_MINORS = range(100)
_MICROS = range(50)
_NAMED = re.compile(r"\.cpython-3([0-9]{1,2})(t?)-[\w-]+\.so$")
_ENTRY_POINT_STEP = 16 << 20


def is_importable_by_name(place: str, source: FileRange) -> bool:
    """Return whether a shared library has the function by which Python imports it under its file name."""
    wanted = b"\0PyInit_" + posixpath.basename(place).partition(".")[0].encode() + b"\0"
    with source.view() as data:
        return any(
            wanted in bytes(data[start : start + _ENTRY_POINT_STEP + len(wanted)])
            for start in range(0, len(data), _ENTRY_POINT_STEP)
        )


def python_tag(extensions: Iterable[str], python: str = "", requires_python: str = "") -> str:
    """Return the Python and ABI tags, ``cp312-cp312``, for a wheel with these extension modules.

    ``python`` is a version such as ``3.12``, or ``3.13-ft`` for the free-threaded build; without it the modules' names
    decide or, where all are for the stable ABI, the oldest Python of ``requires_python``. Raises `InputError` when
    nothing decides, or when the names and ``requires_python`` contradict it or each other.
    """
    modules = sorted(extensions)
    if not modules:
        return _without_modules(python)
    named = {place: _tag(*match.groups()) for place in modules if (match := _NAMED.search(place))}
    is_stable = all(place.endswith(_STABLE) for place in modules)
    wanted = _asked_tag(python) if python else next(iter(named.values()), "")
    wanted = wanted or (_oldest_tag(requires_python) if is_stable else "")
    if not wanted:
        remedy = "Give --python, such as --python 3.12."
        raise InputError(modules[0], "is an extension module whose name has no Python version", remedy=remedy)
    _check_modules(modules, named, wanted)
    _check_requirement(modules[0], wanted, requires_python, is_stable=is_stable)
    return f"{wanted.partition('-')[0]}-abi3" if is_stable else wanted


def _without_modules(python: str) -> str:
    if python:
        remedy = "Leave it out: wheels without extension modules are for every Python."
        raise InputError(_OPTION, f"is {python}, but no file is an extension module", remedy=remedy)
    return ANY_PYTHON


def _asked_tag(python: str) -> str:
    match = _PYTHON.fullmatch(python) or _FREE_THREADED.fullmatch(python)
    if match is None:
        raise InputError(_OPTION, f"is {python!r}", expected="a version such as 3.12 or 3.13-ft")
    return _tag(match[1], "t" if match.re is _FREE_THREADED else "")


def _oldest_tag(requires_python: str) -> str:
    """Return the tag of the oldest Python that is allowed; empty if all are allowed."""
    specifiers = SpecifierSet(requires_python)
    oldest = next((minor for minor in _MINORS if _admits(specifiers, minor)), 0)
    return _tag(str(oldest), "") if oldest else ""


def _check_modules(modules: Iterable[str], named: Mapping[str, str], wanted: str) -> None:
    """Raise `InputError` for a module that the Python of a tag would not import."""
    for place in modules:
        if named.get(place, wanted) != wanted:
            raise InputError(place, f"is an extension module for {named[place]}", expected=f"a module for {wanted}")
        if place.endswith(_STABLE) and wanted.endswith("t"):
            found = "is for the stable ABI, which free-threaded Pythons don't load"
            raise InputError(place, found, expected=f"a module for {wanted}")


def _check_requirement(place: str, tag: str, requires_python: str, *, is_stable: bool) -> None:
    """Raise `InputError` if no Python of a tag is allowed. With the stable ABI, later Pythons count as well."""
    specifiers, minor = SpecifierSet(requires_python), int(tag.partition("-")[0].removeprefix("cp3"))
    if not any(_admits(specifiers, later) for later in (_MINORS[minor:] if is_stable else (minor,))):
        remedy = "Correct --python, or the description's requires-python."
        raise InputError(place, f"is for Python 3.{minor}", expected=f"one of {requires_python}", remedy=remedy)


def _admits(specifiers: SpecifierSet, minor: int) -> bool:
    """Return whether any release of a minor version fits."""
    return any(specifiers.contains(f"3.{minor}.{micro}") for micro in _MICROS)


def _tag(minor: str, threading: str) -> str:
    return f"cp3{minor}-cp3{minor}{threading}"
