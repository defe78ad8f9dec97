"""Short names of all DLLs that ship, and which others are to be loaded before each, by the import tables.

Once a process has a DLL, Windows uses it for every later request of that file name. So if DLLs are loaded by their
paths, each after those that it imports, none is ever looked for elsewhere, such as in System32.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.names import fold_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.packages.recipe.recipe import PublicLibrary

__all__ = ["ShippedDll", "dll_libraries", "load_orders", "short_name"]

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
    shorts = _shorts(dlls, chosen)
    rows = {
        shorts[number]: _row(dlls[number], [shorts[needed] for needed in order])
        for number, order in enumerate(load_orders(dlls))
    }
    found = {
        short: _absent(named[short]) if number is None else rows[shorts[number]] for short, number in chosen.items()
    }
    return found | rows


def _shorts(dlls: Sequence[ShippedDll], chosen: dict[str, int | None]) -> list[str]:
    """Return the short name of each DLL: that of the recipe, else one that no other has."""
    shorts = {number: short for short, number in reversed(chosen.items()) if number is not None}
    taken = set(chosen)
    for number, dll in enumerate(dlls):
        if number not in shorts:
            shorts[number] = _free_name(dll.name, taken)
            taken.add(shorts[number])
    return [shorts[number] for number in range(len(dlls))]


def short_name(file: str) -> str:
    """Return the short name of a DLL: ``amdhip64`` for ``amdhip64_7.dll``, ``hipblaslt`` for ``libhipblaslt.dll``."""
    return _VERSION.sub("", file.lower().removesuffix(".dll").removeprefix("lib"))


def load_orders(dlls: Sequence[ShippedDll]) -> list[list[int]]:
    """Return for each DLL all others that it needs, directly or through others, dependencies first.

    DLLs are numbered as they are given. Imports are followed in the order of the tables. Where DLLs import one another,
    the first of them that is reached comes last: its import by the others is found by Windows, in the folders that were
    added. Of several DLLs of one file name, the first is meant.
    """
    numbers = {fold_case(dll.name): number for number, dll in reversed(list(enumerate(dlls)))}
    tables = [tuple(_known(dll.imports, numbers)) for dll in dlls]
    return [_load_order(number, tables) for number in range(len(dlls))]


def _known(imports: Iterable[str], numbers: Mapping[str, int]) -> Iterator[int]:
    """Yield the numbers of the DLLs that ship among some imports, each once."""
    keys = dict.fromkeys(fold_case(name) for name in imports)
    yield from (numbers[key] for key in keys if key in numbers)


def _load_order(start: int, tables: Sequence[Sequence[int]]) -> list[int]:
    order: list[int] = []
    entered = {start}
    stack = [(start, iter(tables[start]))]
    while stack:
        one, imports = stack[-1]
        needed = next((number for number in imports if number not in entered), None)
        if needed is None:
            stack.pop()
            order.append(one)
        else:
            entered.add(needed)
            stack.append((needed, iter(tables[needed])))
    return order[:-1]


def _choose(dlls: Iterable[ShippedDll], library: PublicLibrary) -> int | None:
    """Return the number of the DLL that a library of the recipe is."""
    pattern = fold_case(library.pattern)
    place = (library.package, library.directory)
    there = ((dll.name, number) for number, dll in enumerate(dlls) if (dll.package, dll.folder) == place)
    return min((one for one in there if fnmatchcase(fold_case(one[0]), pattern)), default=("", None))[1]


def _free_name(file: str, taken: set[str]) -> str:
    names = (short_name(file), file.lower().removesuffix(".dll"))
    return next((name for name in names if name and name not in taken), file.lower())


def _row(dll: ShippedDll, needs: list[str]) -> dict[str, Any]:
    return {
        "package": dll.package,
        "directory": dll.folder,
        "pattern": dll.name,
        "optional": dll.is_optional,
        "needs": needs,
    }


def _absent(library: PublicLibrary) -> dict[str, Any]:
    return {"package": library.package, "directory": library.directory, "pattern": library.pattern, "optional": True}
