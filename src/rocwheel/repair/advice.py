"""The shortest run path that leads a file to its libraries, wherever the packages that hold them are installed."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.errors import InputError
from rocwheel.linking.hwcaps import searched_folders
from rocwheel.linking.run_path_choice import origin_relative
from rocwheel.linking.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.installed.tree import Tree
    from rocwheel.linking.hwcaps import CpuLevel
    from rocwheel.linking.loader import System

__all__ = ["RunPathAdvice", "RunPathEntry", "advise_run_path", "choose_folders", "library_folders", "normalized_place"]


class RunPathEntry(msgspec.Struct, frozen=True):
    """One entry: as run paths spell it, the folder relative to site-packages, and the libraries it is there for."""

    entry: str
    folder: str
    libraries: tuple[str, ...]


class RunPathAdvice(msgspec.Struct, frozen=True):
    """A run path and what it is for; ``system`` are needed libraries that every system has."""

    entries: tuple[RunPathEntry, ...]
    system: tuple[str, ...]
    missing: tuple[str, ...]
    """What neither the packages nor the system has."""

    @property
    def values(self) -> tuple[str, ...]:
        """The entries as run paths spell them."""
        return tuple(entry.entry for entry in self.entries)


def normalized_place(text: str, file_name: str) -> str:
    """Return where a file is installed, relative to site-packages, with or without these words and the file's name.

    Raises `InputError` for a place that is outside of site-packages, and for one whose last part may be a folder: it is
    neither the file's name nor that of a shared library.
    """
    place = "" if text == "site-packages" else text.removeprefix("site-packages/")
    if text.endswith("/") or text == "site-packages":
        place = posixpath.join(place, file_name)
    normal = posixpath.normpath(place)
    if posixpath.isabs(normal) or normal.startswith(".."):
        expected = "a path below site-packages, such as site-packages/my_package/_ext.so"
        raise _place_error(text, "outside of site-packages", expected)
    last = posixpath.basename(place)
    if last != file_name and ".so" not in last:
        folder = text or "site-packages"
        expected = f"{folder}/ for a folder, or a path that ends with {file_name} or the name of a shared library"
        raise _place_error(text, "a folder, or the file's name there", expected)
    return normal


def _place_error(text: str, found: str, expected: str) -> InputError:
    return InputError(f"--at {text or repr(text)}", found, expected=expected)


def library_folders(
    tree: Tree, sdk_packages: Iterable[str], machine: int, cpu_level: CpuLevel = "x86-64"
) -> dict[str, tuple[str, ...]]:
    """Return SONAME to the folders that hold its library: those of the tree, then those of SDK packages by name.

    Libraries for another than ``machine``, by its number in ELF, don't count: the loader passes over them.
    Folders for some processors alone are left out: the loader looks into them by itself. What lies nowhere else is, for
    a processor of ``cpu_level``, in the folder above.
    """
    machines = tree.library_machines
    found = {
        name: dict.fromkeys(searched_folders((f.folder for f in files if machines[f.path] == machine), cpu_level))
        for name, files in tree.libraries.items()
    }
    wanted = set(sdk_packages)
    for folder in sdk_folders():
        if folder.distribution in wanted:
            for name in folder.libraries:
                found.setdefault(name, {}).setdefault(folder.folder)
    return {name: tuple(folders) for name, folders in found.items() if folders}


def choose_folders(
    names: Sequence[str], folders: Mapping[str, Sequence[str]], own: str = ""
) -> dict[str, tuple[str, ...]]:
    """Return as few folders as hold all of ``names`` that any folder holds, each with the names it is there for.

    Of folders that hold as many, the file's ``own`` comes first, then the one that is listed first.
    """
    candidates = list(dict.fromkeys([own, *(folder for name in names for folder in folders.get(name, ()))]))
    waiting = [name for name in dict.fromkeys(names) if folders.get(name)]
    chosen: dict[str, tuple[str, ...]] = {}
    while waiting:
        best = max(candidates, key=lambda folder: sum(folder in folders[name] for name in waiting))
        chosen[best] = tuple(name for name in waiting if best in folders[name])
        waiting = [name for name in waiting if best not in folders[name]]
    return {folder: chosen[folder] for folder in candidates if folder in chosen}


def advise_run_path(
    elf: Elf, place: str, folders: Mapping[str, Sequence[str]], system: System, dlopen: Sequence[str] = ()
) -> RunPathAdvice:
    """Return the shortest run path for a file at ``place`` (relative to site-packages) and what it opens by name."""
    optional = {filtee.name for filtee in elf.filtees if filtee.is_optional} - {*elf.needed, *dlopen}
    names = list(dict.fromkeys([*elf.wanted, *dlopen]))
    own = posixpath.dirname(place)
    chosen = choose_folders(names, folders, own)
    entries = tuple(RunPathEntry(origin_relative(folder, own), folder, found) for folder, found in chosen.items())
    others = [name for name in names if not folders.get(name)]
    known = tuple(name for name in others if system.find(name, elf.machine) is not None)
    return RunPathAdvice(entries, known, tuple(name for name in others if name not in {*known, *optional}))
