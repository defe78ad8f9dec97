"""Short names of all DLLs that ship, and which others are to be loaded before each, by the import tables.

Windows takes a DLL that a process has for every later one of that file name. Whoever loads DLLs by their paths, each
after those that it imports, never has one looked for, be it in System32.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.foundation.windows_names import fold_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.packages.recipe.recipe import PublicLibrary

__all__ = ["ShippedDll", "dll_libraries", "load_order", "short_name"]

_VERSION = re.compile(r"(?<!x86)_\d{1,2}$|(?<!gfx)(?<!\d)\d{4,5}$")
"""A version in one of three spellings: ``_7`` (major), ``0713`` (two digits each), ``07013`` (two and three).

``_64`` of ``x86_64`` is none.
"""


class ShippedDll(msgspec.Struct, frozen=True):
    """A DLL that a package ships."""

    package: str
    """The package's name in the recipe."""
    path: str
    """Below the folder of the package, such as ``bin/rocblas.dll``."""
    imports: tuple[str, ...] = ()
    """File names of the DLLs that are loaded with it, in the import table's order; no delay-loaded ones."""
    is_optional: bool = False
    """Whether its package need not be installed, as those for single GPUs."""

    @property
    def name(self) -> str:
        """The file name."""
        return posixpath.basename(self.path)

    @property
    def folder(self) -> str:
        """The folder below that of the package."""
        return posixpath.dirname(self.path)


def dll_libraries(dlls: Sequence[ShippedDll], named: Mapping[str, PublicLibrary]) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries by short name: those that a recipe has named, then all other DLLs.

    The pattern of a DLL that ships is its file name, so that no other can be taken for it. A library of the recipe that
    doesn't ship keeps the recipe's pattern, and is optional.
    """
    chosen = {short: _choose(dlls, library) for short, library in named.items()}
    shorts = {dll: short for short, dll in reversed(chosen.items()) if dll}
    for dll in dlls:
        if dll not in shorts:
            shorts[dll] = _free_name(dll.name, {*named, *shorts.values()})
    found = {short: _row(dll, dlls, shorts) if dll else _absent(named[short]) for short, dll in chosen.items()}
    return found | {short: _row(dll, dlls, shorts) for dll, short in shorts.items() if short not in found}


def short_name(file: str) -> str:
    """Return the short name of a DLL: ``amdhip64`` for ``amdhip64_7.dll``, ``hipblaslt`` for ``libhipblaslt.dll``."""
    return _VERSION.sub("", file.lower().removesuffix(".dll").removeprefix("lib"))


def load_order(dll: ShippedDll, dlls: Iterable[ShippedDll]) -> list[ShippedDll]:
    """Return what a DLL needs among those that ship, also by way of others, each after what it needs itself.

    Imports are followed in the order of the tables. Where DLLs import one another, the first of them that is reached
    comes last: its import by the others is found by Windows, in the folders that were added. Of several DLLs of one
    file name, the first is meant.
    """
    by_name: dict[str, ShippedDll] = {}
    for other in dlls:
        by_name.setdefault(fold_case(other.name), other)
    order: dict[ShippedDll, None] = {}
    entered = {dll}
    stack = [(dll, iter(dll.imports))]
    while stack:
        one, imports = stack[-1]
        needed = next((by_name[key] for name in imports if (key := fold_case(name)) in by_name), None)
        if needed is None:
            stack.pop()
            order[one] = None
        elif needed not in entered:
            entered.add(needed)
            stack.append((needed, iter(needed.imports)))
    del order[dll]
    return list(order)


def _choose(dlls: Iterable[ShippedDll], library: PublicLibrary) -> ShippedDll | None:
    """Return the DLL that a library of the recipe is."""
    there = (dll for dll in dlls if (dll.package, dll.folder) == (library.package, library.directory))
    pattern = fold_case(library.pattern)
    return min((dll for dll in there if fnmatchcase(fold_case(dll.name), pattern)), key=lambda d: d.name, default=None)


def _free_name(file: str, taken: set[str]) -> str:
    names = (short_name(file), file.lower().removesuffix(".dll"))
    return next((name for name in names if name and name not in taken), file.lower())


def _row(dll: ShippedDll, dlls: Iterable[ShippedDll], shorts: Mapping[ShippedDll, str]) -> dict[str, Any]:
    return {
        "package": dll.package,
        "directory": dll.folder,
        "pattern": dll.name,
        "optional": dll.is_optional,
        "needs": [shorts[needed] for needed in load_order(dll, dlls)],
    }


def _absent(library: PublicLibrary) -> dict[str, Any]:
    return {"package": library.package, "directory": library.directory, "pattern": library.pattern, "optional": True}
