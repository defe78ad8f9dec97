"""Whether the files of a wheel find their libraries once it is installed beside the packages that it needs."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, ClassVar

from rocwheel.audit.disks import SITE, TreeDisk
from rocwheel.audit.loader import Library, Loader
from rocwheel.audit.run_path_entries import resolve_entry, split_run_path
from rocwheel.audit.systems import AllowedLibraries, system_library_patterns
from rocwheel.binary.elf import ElfKind
from rocwheel.errors import InputError, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rocwheel.binary.elf import Elf

__all__ = ["RunPathError", "WrongRunPathsError", "wrong_run_paths"]

_BUILD_FOLDER = re.compile(r"_solib|\.runfiles(/|$)|/execroot/|(^|/)external/")


class RunPathError(InputError):
    """A file of a wheel whose run path is wrong, or that needs what nothing brings."""

    exit_status: ClassVar[int] = 1


class WrongRunPathsError(ProblemsError):
    """Everything that is wrong with the run paths of a wheel, which is therefore not written."""

    exit_status: ClassVar[int] = 1

    def __init__(self, wheel: str, problems: Sequence[RunPathError]) -> None:
        super().__init__(f"{wheel} is not written", problems)


def wrong_run_paths(
    files: Mapping[str, Elf], companions: Mapping[str, Elf], meant: Collection[str] = ()
) -> list[RunPathError]:
    """Return what is wrong with the run paths of ``files``, installed beside ``companions``; both by their place.

    ``meant`` are entries that are right wherever they lead: absolute ones as they are written, and folders in
    site-packages that the SDK's packages may have. ``LD_LIBRARY_PATH`` is taken to be unset, and of the
    system only what every supported one has counts.
    """
    disk = TreeDisk({**companions, **files}, {})
    problems: list[RunPathError] = []
    for place, elf in sorted(files.items()):
        if elf.kind in (ElfKind.SHARED_OBJECT, ElfKind.EXECUTABLE):
            problems += _entry_problems(place, elf, disk, meant)
            problems += _missing(place, elf, disk)
    return problems


def _missing(place: str, elf: Elf, disk: TreeDisk) -> Iterator[RunPathError]:
    loader = Loader(disk, AllowedLibraries(system_library_patterns()))
    loader.load(Library(f"{SITE}/{place}", f"{SITE}/{place}", elf))
    for search in loader.missing:
        requester = loader.objects[search.requester].library
        path = posixpath.relpath(requester.path, SITE)
        through = "" if path == place else f" (loaded by {place})"
        searched = requester.elf.runpath or requester.elf.rpath if requester.elf else None
        found = f"needs {search.name}, which is not found{through}; it searches {searched or 'the system only'}"
        remedy = "Link it with a run path that leads there, and name the package that brings it."
        yield RunPathError(path, found, remedy=remedy)


def _entry_problems(place: str, elf: Elf, disk: TreeDisk, meant: Collection[str]) -> Iterator[RunPathError]:
    entries = split_run_path(elf.runpath if elf.runpath is not None else elf.rpath)
    for entry in dict.fromkeys(entries):
        if entries.count(entry) > 1:
            yield RunPathError(place, f"has the run path entry {entry!r} {entries.count(entry)} times", expected="once")
        if reason := _fault(entry, posixpath.dirname(place), disk, meant):
            yield RunPathError(place, f"has the run path entry {entry!r}, {reason}")


def _fault(entry: str, folder: str, disk: TreeDisk, meant: Collection[str]) -> str:
    if entry in meant:
        return ""
    if _BUILD_FOLDER.search(entry):
        return "which is a folder of the build"
    if entry.startswith("/"):
        eaten = entry.startswith("/..")
        return "which looks like $ORIGIN expanded by a shell" if eaten else "which is absolute and not said to be meant"
    target = resolve_entry(entry, folder)
    if target is None:
        return "which is relative to the folder that a program happens to run in"
    found = target in meant or disk.is_folder(posixpath.normpath(posixpath.join(SITE, target)))
    return "" if found else "which leads to no folder of the packages"
