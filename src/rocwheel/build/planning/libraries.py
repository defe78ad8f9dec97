"""Lists the libraries that the SDK's Python code loads, including their load order and their replacements for a GPU.

Once a process has loaded a DLL, Windows uses it for every later request for that file name. So if each DLL is loaded by
path after the DLLs that it imports, Windows never searches for a DLL elsewhere, such as in System32.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.names import fold_case
from rocwheel.device.edit_bundles import any_variant_runs
from rocwheel.targets.catalog import owned_targets
from rocwheel.targets.serving import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.build.planning.packages import PlacedPackage, PlanBasis
    from rocwheel.build.recipe import PublicLibrary


_Library = TypeVar("_Library", int, str)

_VERSION = re.compile(r"(?<!x86)_\d{1,2}$|(?<!gfx)(?<!\d)\d{4,5}$")
"""A version in one of three formats: ``_7`` (major), ``0713`` (two digits each), or ``07013`` (two and three digits).

The ``_64`` in ``x86_64`` is not a version.
"""


class ShippedDll(msgspec.Struct, frozen=True):
    """A DLL that a package ships."""

    package: str
    """The package's name in the recipe."""
    path: str
    """The DLL's path below the package's folder, such as ``bin/rocblas.dll``."""
    imports: tuple[str, ...] = ()
    """The file names of imported DLLs in the order of the import table, without delay-loaded DLLs."""
    is_optional: bool = False
    """Whether the DLL's package may be missing, like the packages for single GPUs."""

    @property
    def name(self) -> str:
        """The file name."""
        return posixpath.basename(self.path)

    @property
    def folder(self) -> str:
        """The folder below the package's folder."""
        return posixpath.dirname(self.path)


def dll_libraries(dlls: Sequence[ShippedDll], named: Mapping[str, PublicLibrary]) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries, keyed by short name: first the libraries in the recipe, then all other DLLs.

    The pattern of a shipped DLL is its file name, so that it matches only this file. A library in the recipe that no
    package ships keeps the recipe's pattern and is optional.
    """
    chosen = {short: _choose(dlls, library) for short, library in named.items()}
    shorts = _shorts(dlls, chosen)
    rows: dict[str, dict[str, Any]] = {}
    for short, dll, order in zip(shorts, dlls, load_orders(dlls), strict=True):
        rows[short] = {
            "package": dll.package,
            "directory": dll.folder,
            "pattern": dll.name,
            "optional": dll.is_optional,
            "needs": [shorts[needed] for needed in order],
        }
    found = {}
    for short, library in named.items():
        absent = {"package": library.package, "directory": library.directory, "pattern": library.pattern}
        number = chosen[short]
        found[short] = {**absent, "optional": True} if number is None else rows[shorts[number]]
    return found | rows


def _shorts(dlls: Sequence[ShippedDll], chosen: dict[str, int | None]) -> list[str]:
    """Return the short name of each DLL, either from the recipe or a unique one."""
    shorts = {number: short for short, number in reversed(chosen.items()) if number is not None}
    taken = set(chosen)
    for number, dll in enumerate(dlls):
        if number not in shorts:
            names = (short_name(dll.name), dll.name.lower().removesuffix(".dll"))
            shorts[number] = next((name for name in names if name and name not in taken), dll.name.lower())
            taken.add(shorts[number])
    return [shorts[number] for number in range(len(dlls))]


def short_name(file: str) -> str:
    """Return the short name of a DLL: ``amdhip64`` for ``amdhip64_7.dll``, ``hipblaslt`` for ``libhipblaslt.dll``."""
    return _VERSION.sub("", file.lower().removesuffix(".dll").removeprefix("lib"))


def load_orders(dlls: Sequence[ShippedDll]) -> list[list[int]]:
    """Return the direct and indirect dependencies of each DLL as indexes into ``dlls``, dependencies first.

    Imports are followed in the order of the import tables. If DLLs import each other, the DLL that is reached first is
    loaded last. When other DLLs need it, Windows finds it in the added folders. If several DLLs have the same file
    name, the first DLL is used.
    """
    numbers = {fold_case(dll.name): number for number, dll in reversed(list(enumerate(dlls)))}
    folded = (dict.fromkeys(map(fold_case, dll.imports)) for dll in dlls)
    tables = [[numbers[key] for key in keys if key in numbers] for keys in folded]
    return [_dependencies_first(number, tables.__getitem__)[:-1] for number in range(len(dlls))]


def _dependencies_first(start: _Library, needs: Callable[[_Library], Iterable[_Library]]) -> list[_Library]:
    """Return a library and all its direct and indirect dependencies, dependencies first."""
    order: list[_Library] = []
    entered = {start}
    stack = [(start, iter(needs(start)))]
    while stack:
        one, rest = stack[-1]
        needed = next((other for other in rest if other not in entered), None)
        if needed is None:
            stack.pop()
            order.append(one)
        else:
            entered.add(needed)
            stack.append((needed, iter(needs(needed))))
    return order


def _choose(dlls: Iterable[ShippedDll], library: PublicLibrary) -> int | None:
    """Return the index of the DLL that a library in the recipe refers to, or `None`."""
    pattern = fold_case(library.pattern)
    place = (library.package, library.directory)
    there = ((dll.name, number) for number, dll in enumerate(dlls) if (dll.package, dll.folder) == place)
    return min((one for one in there if fnmatchcase(fold_case(one[0]), pattern)), default=("", None))[1]


def windows_libraries(basis: PlanBasis, packages: Sequence[PlacedPackage]) -> dict[str, dict[str, Any]]:
    """Return the rows of ``LIBRARIES`` in ``_build_info.py`` (see ``sdk/README.md``)."""
    return dll_libraries(list(dict.fromkeys(_shipped(basis, packages))), basis.recipe.libraries)


def _shipped(basis: PlanBasis, packages: Sequence[PlacedPackage]) -> Iterator[ShippedDll]:
    folders = {library.directory for library in basis.recipe.libraries.values()}
    for package in packages:
        is_optional = basis.recipe.packages[package.key].kind == "device"
        for path, entry in sorted(package.placement.files.items(), key=lambda item: item[0]):
            image = basis.facts.pe(entry)
            if image and image.is_dll and path.lower().endswith(".dll") and posixpath.dirname(path) in folders:
                imports = tuple(dll.name for dll in image.imports if dll.functions)
                yield ShippedDll(package.key, path, imports, is_optional)


def overlaid_libraries(basis: PlanBasis, packages: Sequence[PlacedPackage]) -> dict[str, list[str]]:
    """Return the libraries to choose before a public library is loaded, keyed by the public library's short name.

    These are the library itself and all its dependencies, dependencies first, as paths below the package's folder. The
    result contains only libraries with replacements for GPUs, and omits public libraries that don't need them.
    """
    overlaid = _overlaid(packages)
    found: dict[str, list[str]] = {}
    for name, library in basis.recipe.libraries.items():
        own = [package for package in packages if package.key == library.package]
        files = {path: entry for package in own for path, entry in package.placement.files.items()}
        by_name = {posixpath.basename(path): path for path in reversed(list(files))}
        pattern = f"{library.directory}/{library.pattern}"
        path = min((path for path in files if fnmatchcase(path, pattern) and not split_overlay_path(path)), default="")

        def needs(path: str, files: Mapping[str, Entry] = files, by_name: Mapping[str, str] = by_name) -> list[str]:
            elf = basis.facts.elf(files[path])
            return [by_name[needed] for needed in elf.needed if needed in by_name] if elf else []

        needed = [one for one in _dependencies_first(path, needs) if one in overlaid] if path else []
        if needed:
            found[name] = needed
    return found


def common_gpus(basis: PlanBasis, packages: Sequence[PlacedPackage]) -> list[str]:
    """Return the GPUs that can use every library with replacements, because all these libraries keep code for them."""
    overlaid = _overlaid(packages)
    kept = [
        [parse_target_id(text, source=path) for text in basis.facts.codes(entry)]
        for package in packages
        for path, entry in package.placement.files.items()
        if path in overlaid
    ]
    # There must be code for every setting of a GPU's features, because the actual setting is unknown.
    return [
        gpu
        for gpu in owned_targets()
        if kept and all(any(any_variant_runs(code, TargetId(gpu)) for code in codes) for codes in kept)
    ]


def _overlaid(packages: Sequence[PlacedPackage]) -> set[str]:
    """Return the libraries that have replacements."""
    paths = (path for package in packages for path in package.placement.files)
    return {split[0] for path in paths if (split := split_overlay_path(path))}
