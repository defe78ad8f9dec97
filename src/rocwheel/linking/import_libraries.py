"""Import libraries for Windows by their names: ``NAME.lib`` for most linkers, ``libNAME.dll.a`` for GNU ones alone."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.core.names import fold_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["GnuImportLibrary", "gnu_import_libraries"]

_GNU_PREFIX: Final = "lib"
_GNU_SUFFIX: Final = ".dll.a"
_SUFFIX: Final = ".lib"
_EXTENSION_MODULE: Final = ".pyd"


class GnuImportLibrary(msgspec.Struct, frozen=True):
    """An import library under the name that GNU linkers alone look for."""

    path: str
    expected: str
    """The path that MSVC, clang-cl and CMake look for: of ``lib/libx.dll.a``, ``lib/x.lib``."""
    beside: str
    """The path of one beside it that they do find, ``lib/x.lib`` or ``lib/libx.lib``; empty if there is none."""


def gnu_import_libraries(paths: Iterable[str]) -> Iterator[GnuImportLibrary]:
    """Yield each import library among ``paths`` whose name ends with ``.dll.a``, sorted; names are in any case.

    Those of Python's extension modules are left out: nobody links with them.
    """
    known = {fold_case(path): path for path in paths}
    for path in sorted(path for path in known.values() if path.lower().endswith(_GNU_SUFFIX)):
        stem = path[: -len(_GNU_SUFFIX)]
        if fold_case(stem + _EXTENSION_MODULE) in known:
            continue
        folder, name = posixpath.split(stem)
        expected = posixpath.join(folder, f"{_without_prefix(name)}{_SUFFIX}")
        beside = (known.get(fold_case(other)) for other in (expected, stem + _SUFFIX))
        yield GnuImportLibrary(path, expected, next((other for other in beside if other), ""))


def _without_prefix(name: str) -> str:
    return name[len(_GNU_PREFIX) :] if name.lower().startswith(_GNU_PREFIX) else name
