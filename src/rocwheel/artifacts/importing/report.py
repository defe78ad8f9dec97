"""What an import made, and what its files need from the operating system."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypedDict

import msgspec

from rocwheel.artifacts.importing.cmake_checks import checked_files
from rocwheel.artifacts.importing.interpreter import HEAD, script_interpreter
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import is_elf64
from rocwheel.core.reading import FileRange, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.importing.tree import ImportTree
    from rocwheel.core.reading import Data

__all__ = [
    "ImportReport",
    "ImportedArtifact",
    "IncompletePackage",
    "LibraryNeeds",
    "MachineNeed",
    "describe",
    "system_requirements",
]


class ImportedArtifact(msgspec.Struct, frozen=True, order=True):
    """One artifact that was written."""

    name: str
    files: int
    links: int
    size: int
    """Bytes of its files."""


class MachineNeed(msgspec.Struct, frozen=True, order=True):
    """Something that the machine must have."""

    name: str
    """The SONAME of a library, a program, or a package."""
    needed_by: tuple[str, ...]
    """Paths in the prefix, or packages."""


class IncompletePackage(msgspec.Struct, frozen=True, order=True):
    """A file of a CMake package that checks for others that were not imported."""

    path: str
    """In the prefix."""
    missing: tuple[str, ...]
    """What it checks for, in the prefix."""


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import made."""

    version: str
    """The SDK's version; empty when no source states it."""
    artifacts: tuple[ImportedArtifact, ...]
    skipped: dict[str, int]
    """How many files were left out, by reason."""
    unmatched: tuple[str, ...]
    """Source paths that no rule matched; they are in the catch-all artifact."""
    left_out: tuple[str, ...]
    """Packages of system libraries that were not asked for."""
    dangling: tuple[str, ...]
    """Source paths of symlinks that were dropped because their target is not among the sources."""
    unknown: tuple[str, ...] = ()
    """Packages that the table does not name; their files are placed by what they are."""
    unneeded: tuple[str, ...] = ()
    """Packages that are not ROCm's and hold no library that it needs."""
    packages: tuple[MachineNeed, ...] = ()
    """Packages that the imported ones depend on and that were not imported; needed by packages."""
    edits: dict[str, int]
    """How often each edit was made, by its reason."""
    libraries: tuple[MachineNeed, ...]
    """Shared libraries that the machine must have."""
    programs: tuple[MachineNeed, ...]
    """Interpreters of scripts that the machine must have."""
    incomplete: tuple[IncompletePackage, ...] = ()
    """Files of CMake packages that ``find_package`` can't load."""


class Description(TypedDict):
    """The part of a report that comes from looking at the written files."""

    artifacts: tuple[ImportedArtifact, ...]
    libraries: tuple[MachineNeed, ...]
    programs: tuple[MachineNeed, ...]
    incomplete: tuple[IncompletePackage, ...]


class LibraryNeeds:
    """The shared libraries that the files of a tree need; files may be added between two questions."""

    def __init__(self, tree: ImportTree, base_libraries: Iterable[str]) -> None:
        self._tree = tree
        self._base_libraries = tuple(base_libraries)
        self._needed: dict[str, tuple[str, ...]] = {}
        self._sonames: set[str] = set()

    def missing(self) -> tuple[MachineNeed, ...]:
        """Return the libraries that the files need, that are not among them and that not every machine has."""
        for path in self._tree.files.keys() - self._needed.keys():
            self._needed[path] = ()
            with FileRange.whole(self._tree.path_of(self._tree.files[path])).view() as data:
                if is_elf64(data):
                    self._needed[path], soname = _elf_facts(data, path)
                    self._sonames.add(soname)
        names = {posixpath.basename(path) for path in (*self._tree.files, *self._tree.links)}
        return system_requirements(self._needed, self._sonames | names, self._base_libraries)


def describe(tree: ImportTree, needs: LibraryNeeds) -> Description:
    """Look at every file that was written: its size, the libraries, the interpreter and the files that it needs."""
    sizes: Counter[str] = Counter()
    programs: defaultdict[str, list[str]] = defaultdict(list)
    incomplete: list[IncompletePackage] = []
    there = {*tree.files, *tree.links}
    for path, destination in tree.files.items():
        source = FileRange.whole(tree.path_of(destination))
        sizes[destination.artifact_name] += source.size
        with source.view() as data:
            if program := script_interpreter(bytes(load(data[:HEAD]))):
                programs[program].append(path)
            if path.endswith(".cmake"):
                missing = [one for one in checked_files(path, bytes(load(data))) if one not in there]
                incomplete += [IncompletePackage(path, tuple(missing))] if missing else []
    return {
        "artifacts": _artifacts(tree, sizes),
        "libraries": needs.missing(),
        "programs": tuple(MachineNeed(name, tuple(sorted(paths))) for name, paths in sorted(programs.items())),
        "incomplete": tuple(sorted(incomplete)),
    }


def system_requirements(
    needed: dict[str, tuple[str, ...]], provided: Iterable[str], base_libraries: Iterable[str]
) -> tuple[MachineNeed, ...]:
    """Return the libraries that files need, that do not come with them and that not every machine has."""
    known = {*provided, *base_libraries}
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for path, libraries in sorted(needed.items()):
        for library in libraries:
            if library not in known:
                missing[library].append(path)
    return tuple(MachineNeed(name, tuple(paths)) for name, paths in sorted(missing.items()))


def _elf_facts(data: Data, path: str) -> tuple[tuple[str, ...], str]:
    """Return what a file needs and its SONAME; nothing for code objects."""
    elf = read_elf(data, name=path)
    return ((), "") if elf.kind is ElfKind.CODE_OBJECT else (elf.needed, elf.soname or "")


def _artifacts(tree: ImportTree, sizes: Counter[str]) -> tuple[ImportedArtifact, ...]:
    files = Counter(one.artifact_name for one in tree.files.values())
    links = Counter(one.artifact_name for one in tree.links.values())
    names = sorted({*files, *links})
    return tuple(ImportedArtifact(name, files[name], links[name], sizes[name]) for name in names)
