"""Computes a linked file's run path from the packages that a user specifies, for ``rocwheel runpath for``.

The audit, the repair, and wheel builds also use this module.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.environment.known_libraries import allowed_libraries, known_package_folders
from rocwheel.environment.read_tree import read_tree
from rocwheel.environment.run_path_choice import LibraryPlaces, choose_folders, fewest_folders, origin_relative
from rocwheel.environment.run_path_entries import searched_folders
from rocwheel.environment.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.environment.loader import SystemLibraries
    from rocwheel.environment.run_path_entries import CpuLevel
    from rocwheel.environment.sdk_layout import SdkFolder
    from rocwheel.environment.tree import Tree


def assumed_sdk_folders(tree: Tree, *, closed: bool | None = None) -> tuple[SdkFolder, ...]:
    """Return the folders of the SDK packages that aren't given but are assumed to be installed with the tree.

    The result is empty if ``closed`` is true, which means that the tree is complete. If it is `None`, an installed
    environment counts as complete.
    """
    if tree.is_installed if closed is None else closed:
        return ()
    given = {owner.name for owner in tree.distributions}
    return tuple(folder for folder in sdk_folders() if folder.distribution not in given)


def assumed_package_folders(tree: Tree, *, closed: bool | None = None) -> tuple[SdkFolder, ...]:
    """Return the folders of known non-SDK packages, such as torch, that files need and that aren't given.

    A package is included if files need one of its libraries and no given package has that library. For ``closed``, see
    `assumed_sdk_folders`.
    """
    if tree.is_installed if closed is None else closed:
        return ()
    given = {owner.name for owner in tree.distributions}
    needed = {name for file in tree.files if file.elf for name in file.elf.wanted} - tree.libraries.keys()
    return tuple(
        folder
        for folder in known_package_folders()
        if folder.distribution not in given and not needed.isdisjoint(folder.libraries)
    )


def places_for_machine(
    tree: Tree, assumed: Iterable[SdkFolder], machine: int, cpu_level: CpuLevel = "x86-64"
) -> LibraryPlaces:
    """Return the folders with libraries: first the folders in the tree, then the ``assumed`` folders.

    Libraries for an ELF machine number other than ``machine`` are ignored, because the loader skips them. Folders for
    only some processors are omitted, because the loader searches them automatically. A library that is only in such
    folders counts as being in the parent folder if a processor of ``cpu_level`` finds it.
    """
    machines = tree.library_machines
    found = {
        name: dict.fromkeys(searched_folders((f.folder for f in files if machines[f.path] == machine), cpu_level))
        for name, files in tree.libraries.items()
    }
    for folder in assumed:
        for name in folder.libraries:
            found.setdefault(name, {}).setdefault(folder.folder)
    providers = {name: tuple(folders) for name, folders in found.items() if folders}
    known = {folder for folders in providers.values() for folder in folders} | {file.folder for file in tree.files}
    return LibraryPlaces(providers, frozenset(known))


def missing_libraries(
    elf: Elf, dlopen: Sequence[str], places: LibraryPlaces, system: SystemLibraries
) -> tuple[str, ...]:
    """Return the libraries that a file needs or opens by name (``dlopen``), but that no package and no system provides.

    An optional filtee is included only if it is also needed or opened.
    """
    optional = {filtee.name for filtee in elf.filtees if filtee.is_optional} - {*elf.needed, *dlopen}
    names = [name for name in dict.fromkeys([*elf.wanted, *dlopen]) if name not in optional]
    return tuple(name for name in names if name not in places.providers and system.find(name, elf.machine) is None)


class RunPathEntry(msgspec.Struct, frozen=True):
    """An entry: its text in run paths, its folder relative to site-packages, and the libraries in the folder."""

    entry: str
    folder: str
    libraries: tuple[str, ...]


class RunPathAdvice(msgspec.Struct, frozen=True):
    """A run path and its purpose."""

    entries: tuple[RunPathEntry, ...]
    system: tuple[str, ...]
    """Needed libraries that every system has."""
    missing: tuple[str, ...]
    """Needed libraries that neither the packages nor the system has."""

    @property
    def values(self) -> tuple[str, ...]:
        """The texts of the entries in run paths."""
        return tuple(entry.entry for entry in self.entries)


def advise(
    file: Path, at: str, packages: Sequence[str], dlopen: Sequence[str] = (), cpu_level: CpuLevel = "x86-64"
) -> RunPathAdvice:
    """Return the shortest run path for a file whose installed path in site-packages is ``at``.

    ``packages`` are wheels, folders, or names of SDK packages with a known layout. ``dlopen`` are libraries that the
    file opens by name. A processor of ``cpu_level`` must find all libraries. Raises `InputError` for packages that
    don't exist, a path outside site-packages, and files that can't be read.
    """
    known = {folder.distribution for folder in sdk_folders()}
    layout = [folder for folder in sdk_folders() if folder.distribution in packages]
    paths = [Path(package) for package in packages if package not in known]
    for path in paths:
        if not path.exists():
            expected = f"a wheel, a folder, or one of {', '.join(sorted(known))}"
            msg = f"--with {path}"
            raise InputError(msg, "doesn't exist", expected=expected)
    place = normalized_place(at, file.name)
    elf = _read(file)
    places = places_for_machine(read_tree(paths), layout, elf.machine, cpu_level)
    return advise_run_path(elf, place, places, allowed_libraries(), dlopen)


def _read(file: Path) -> Elf:
    with FileRange.whole(file).view() as data:
        return read_elf(data, name=str(file))


def normalized_place(text: str, file_name: str) -> str:
    """Return the installed path of a file, relative to site-packages.

    The leading ``site-packages/`` is optional, and so is the file's name after a slash. Raises `InputError` for a path
    outside site-packages. Also raises `InputError` if the last part may be a folder, because it is neither the file's
    name nor the name of a shared library.
    """
    place = "" if text == "site-packages" else text.removeprefix("site-packages/")
    if text.endswith("/") or text == "site-packages":
        place = posixpath.join(place, file_name)
    normal = posixpath.normpath(place)
    if posixpath.isabs(normal) or normal.startswith(".."):
        expected = "a relative path in site-packages, such as site-packages/my_package/_ext.so"
        raise _place_error(text, "is outside site-packages", expected)
    last = posixpath.basename(place)
    if last != file_name and ".so" not in last:
        folder = text or "site-packages"
        expected = f"{folder}/ for a folder, or a path that ends with {file_name} or the name of a shared library"
        raise _place_error(text, "is ambiguous, because it may be a folder or the file", expected)
    return normal


def _place_error(text: str, found: str, expected: str) -> InputError:
    return InputError(f"--at {text or repr(text)}", found, expected=expected)


def advise_run_path(
    elf: Elf, place: str, places: LibraryPlaces, system: SystemLibraries, dlopen: Sequence[str] = ()
) -> RunPathAdvice:
    """Return the shortest run path for a file at ``place``, relative to site-packages.

    Its current run path is ignored.

    ``dlopen`` are libraries that the file opens by name. They are treated in the same way as libraries that it needs.
    """
    names = list(dict.fromkeys([*elf.wanted, *dlopen]))
    own = posixpath.dirname(place)
    chosen = choose_folders(names, fewest_folders(names, places, own), places)
    entries = tuple(RunPathEntry(origin_relative(folder, own), folder, found) for folder, found in chosen.items())
    others = [name for name in names if name not in places.providers]
    known = tuple(name for name in others if system.find(name, elf.machine) is not None)
    return RunPathAdvice(entries, known, missing_libraries(elf, dlopen, places, system))
