"""Converts the files of packages or prefixes to artifacts, and reports the results and the files' requirements."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

import msgspec

from rocwheel.artifacts.artifact import FileKind, path_fault
from rocwheel.artifacts.import_table import Destination, ImportRules, Origin, for_target
from rocwheel.artifacts.import_tree import ImportConflictError, ImportTree, LinkTree, Readable, SymlinkError
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import is_elf64
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileRange, load
from rocwheel.core.writing import new_folder
from rocwheel.targets.compatibility import GENERIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rocwheel.artifacts.import_table import ImportTable, OwnedArchive
    from rocwheel.artifacts.sdk_files import SourcePackage
    from rocwheel.core.reading import Data


HEAD = 256
"""The number of bytes that Linux examines at the start of a file."""
_LINE = re.compile(rb"#![ \t]*([^\n]+)")
_SPLIT = re.compile(r"-[iv]*S|--split-string=")
"""The option of ``env`` that is directly followed by the command, in the same word. Other options may precede it."""


def script_interpreter(head: bytes) -> str | None:
    """Return the path of a script's interpreter, or the name that ``env`` looks up, or `None` for other files.

    ``head`` is the first `HEAD` bytes of the file.
    """
    line = _LINE.match(head[:HEAD])
    words = line[1].decode("utf-8", "replace").split() if line else []
    if not words:
        return None
    return _looked_for(words[1:]) or words[0] if posixpath.basename(words[0]) == "env" else words[0]


def _looked_for(words: list[str]) -> str | None:
    """Return the program from the arguments of ``env``: the argument that follows the options and variables."""
    given = (_SPLIT.sub("", word, count=1) if _SPLIT.match(word) else word for word in words)
    return next((word for word in given if word and not word.startswith("-") and "=" not in word), None)


_CHECK = re.compile(rb'(?i)_import_check_files_for_\S{1,250}((?:\s+"\$\{_IMPORT_PREFIX\}/[^"]+")+)')
"""A check in the output of ``install(EXPORT)``, whose function names were uppercase before CMake 3.25."""
_FILE = re.compile(rb'"\$\{_IMPORT_PREFIX\}/([^"]+)"')
_PLACE = re.compile(r"(?:(.+)/)?(?:lib|lib64|share)/cmake/.+\.cmake")
"""The path of a file in a CMake package, relative to its prefix."""


def cmake_checked_files(path: str, text: bytes) -> list[str]:
    """Return the files whose existence is checked by a CMake file with imported targets, in order.

    The paths are in the tree that contains the CMake file at ``path``. Returns an empty list if ``path`` is not a path
    for CMake packages.
    """
    place = _PLACE.fullmatch(path)
    if place is None:
        return []
    names = (name for check in _CHECK.finditer(text) for name in _FILE.findall(check[1]))
    return [posixpath.normpath(f"{place[1] or '.'}/{os.fsdecode(name)}") for name in names]


class ImportedArtifact(msgspec.Struct, frozen=True, order=True):
    """A written artifact."""

    name: str
    files: int
    links: int
    size: int
    """The total size of the artifact's files in bytes."""


class MachineNeed(msgspec.Struct, frozen=True, order=True):
    """Something that must be present on the machine."""

    name: str
    """The SONAME of a library, or the name of a program or package."""
    needed_by: tuple[str, ...]
    """The paths in the prefix, or the packages, that have this requirement."""


class IncompletePackage(msgspec.Struct, frozen=True, order=True):
    """A file of a CMake package that checks for files that were not imported."""

    path: str
    """The path of the CMake file in the prefix."""
    missing: tuple[str, ...]
    """The paths of the missing files in the prefix."""


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results of an import."""

    version: str
    """The SDK version; empty if no source contains it."""
    artifacts: tuple[ImportedArtifact, ...]
    skipped: dict[str, int]
    """The number of files that were left out, keyed by the reason."""
    unmatched: tuple[str, ...]
    """Source paths that match no rule. They are in the catch-all artifact."""
    left_out: tuple[str, ...]
    """Packages of system libraries that were not requested."""
    dangling: tuple[str, ...]
    """Source paths of symlinks that were dropped because their targets are not in the sources."""
    unknown: tuple[str, ...] = ()
    """Packages that the table doesn't list. The paths of their files determine the artifacts."""
    unneeded: tuple[str, ...] = ()
    """Packages that are not part of ROCm and have no library that ROCm needs."""
    packages: tuple[MachineNeed, ...] = ()
    """Dependencies of the imported packages that were not imported, with the packages that need them."""
    edits: dict[str, int]
    """The number of times that each edit was applied, keyed by the edit's reason."""
    libraries: tuple[MachineNeed, ...]
    """Shared libraries that the machine must have."""
    programs: tuple[MachineNeed, ...]
    """Script interpreters that the machine must have."""
    incomplete: tuple[IncompletePackage, ...] = ()
    """Files of CMake packages that ``find_package`` can't load."""


class Description(TypedDict):
    """The part of a report that is based on the written files."""

    artifacts: tuple[ImportedArtifact, ...]
    libraries: tuple[MachineNeed, ...]
    programs: tuple[MachineNeed, ...]
    incomplete: tuple[IncompletePackage, ...]


class LibraryNeeds:
    """Finds the shared libraries that the files in a tree need. Files may be added between queries."""

    def __init__(self, tree: ImportTree, base_libraries: Iterable[str]) -> None:
        self._tree = tree
        self._base_libraries = tuple(base_libraries)
        self._needed: dict[str, tuple[str, ...]] = {}
        self._sonames: set[str] = set()

    def missing(self) -> tuple[MachineNeed, ...]:
        """Return the libraries that the files need, except libraries that are in the tree or that every machine has."""
        for path in self._tree.files.keys() - self._needed.keys():
            self._needed[path] = ()
            with FileRange.whole(self._tree.path_of(self._tree.files[path])).view() as data:
                if is_elf64(data):
                    self._needed[path], soname = _elf_facts(data, path)
                    self._sonames.add(soname)
        names = {posixpath.basename(path) for path in (*self._tree.files, *self._tree.links)}
        return system_requirements(self._needed, self._sonames | names, self._base_libraries)


def describe_files(tree: ImportTree, needs: LibraryNeeds) -> Description:
    """Examine every written file, and return the sizes, libraries, interpreters, and required files."""
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
                missing = [one for one in cmake_checked_files(path, bytes(load(data))) if one not in there]
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
    """Return the needed libraries that are not provided and that not every machine has."""
    known = {*provided, *base_libraries}
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for path, libraries in sorted(needed.items()):
        for library in libraries:
            if library not in known:
                missing[library].append(path)
    return tuple(MachineNeed(name, tuple(paths)) for name, paths in sorted(missing.items()))


def _elf_facts(data: Data, path: str) -> tuple[tuple[str, ...], str]:
    """Return a file's needed libraries and its SONAME. Both are empty for code objects."""
    elf = read_elf(data, name=path)
    return ((), "") if elf.kind is ElfKind.CODE_OBJECT else (elf.needed, elf.soname or "")


def _artifacts(tree: ImportTree, sizes: Counter[str]) -> tuple[ImportedArtifact, ...]:
    files = Counter(one.artifact_name for one in tree.files.values())
    links = Counter(one.artifact_name for one in tree.links.values())
    names = sorted({*files, *links})
    return tuple(ImportedArtifact(name, files[name], links[name], sizes[name]) for name in names)


class SourceMember(msgspec.Struct, frozen=True):
    """A file, link, or folder in a source."""

    origin: Origin
    kind: FileKind
    mode: int = 0o644
    link: str = ""
    """The raw target of a symlink. An absolute target is relative to the root of the source."""
    is_outside: bool = False
    """Whether an absolute symlink points outside the source."""
    same_as: str = ""
    """For a hard link that has no content, the source path of the file that has the content."""
    content: Readable | None = None


class Importer:
    """Accepts the members of sources one by one, then writes the links and creates the report."""

    def __init__(self, table: ImportTable, root: Path, *, strict: bool = False) -> None:
        self.rules = ImportRules(table)
        self.version = ""
        """The SDK version, which the caller sets."""
        self.left_out: list[str] = []
        """Packages of system libraries that were not requested."""
        self.unknown: list[str] = []
        """Packages that the table doesn't list."""
        self.unneeded: list[str] = []
        """Packages that are not part of ROCm and have no library that ROCm needs."""
        self.packages: tuple[MachineNeed, ...] = ()
        """The dependencies of the imported packages that were not imported."""
        self.sources: dict[str, SourcePackage] = {}
        """The packages that files come from, keyed by name. The caller sets them."""
        self.archives: dict[str, OwnedArchive] = {}
        """Device code archives that library markers point to, keyed by source path. The caller sets them."""
        self.kernels: dict[str, str] = {}
        """The GPU target of each kernel file for a single target, keyed by source path. The caller sets them."""
        self._tree = ImportTree(root, self.rules)
        self._needs = LibraryNeeds(self._tree, table.base_libraries)
        self._links = LinkTree()
        self._strict = strict
        self._skipped: Counter[str] = Counter()
        self._unmatched: list[str] = []
        self._is_any_matched = False
        self._problems: list[RocwheelError] = []

    def add(self, member: SourceMember) -> None:
        """Add a member. `finish` reports problems with it together with all other problems."""
        if member.kind is FileKind.DIRECTORY:
            return
        destination = self._place(member.origin)
        if destination and (fault := path_fault(destination.path)):
            source = f"{member.origin.path!r} in {member.origin.source}"
            self._problems.append(InputError(source, f"its path {fault}", remedy="Rename the file."))
        elif destination is None:
            self._links.leave_out(member.origin.path)
        elif member.kind is FileKind.SYMLINK:
            with self._collecting():
                self._links.add_link(member.origin, destination, member.link, is_outside=member.is_outside)
        else:
            self._add_file(member, destination)

    def refuse(self, problem: RocwheelError) -> None:
        """Record a problem with an entire source, which `finish` reports."""
        self._problems.append(problem)

    def missing_libraries(self) -> set[str]:
        """Return the shared libraries that the files need, except libraries that were added so far."""
        return {need.name for need in self._needs.missing()}

    def finish(self, sources: str) -> ImportReport:
        """Write the links and the manifests, and return the report.

        ``sources`` is the name of the sources in messages.
        """
        dangling = self._add_links()
        self._require_sound(sources)
        self._tree.add_declared()
        self._tree.write_manifests(self.version, self.sources)
        return ImportReport(
            version=self.version,
            skipped=dict(sorted(self._skipped.items())),
            unmatched=tuple(sorted(self._unmatched)),
            left_out=tuple(sorted(self.left_out)),
            dangling=tuple(dangling),
            unknown=tuple(sorted(self.unknown)),
            unneeded=tuple(sorted(self.unneeded)),
            packages=self.packages,
            edits={edit.rule.reason: edit.changes for edit in self.rules.edits if edit.changes},
            **describe_files(self._tree, self._needs),
        )

    def _require_sound(self, sources: str) -> None:
        """Raise all problems with the sources, including the problem that no file is from ROCm."""
        self._problems += [problem for edit in self.rules.edits if (problem := edit.problem)]
        if not self._problems and not (self._tree.files and self._is_any_matched):
            unmatched = f"no rule in the table matches any of its {count(len(self._unmatched), 'file')}"
            found = f"contains no ROCm files: {unmatched if self._unmatched else 'no file belongs to an artifact'}"
            self._problems.append(InputError(sources, found, remedy="Check the path, or the --table option."))
        if self._problems:
            subject = "the import"
            raise ProblemsError(subject, self._problems)

    def _place(self, origin: Origin) -> Destination | None:
        if reason := self.rules.skip_reason(origin.path, origin.package):
            self._skipped[reason] += 1
            return None
        destination = self.rules.place(origin.path, origin.package)
        archive = self.archives.get(origin.path)
        if archive and (destination is None or destination.target == GENERIC):
            destination = self.rules.place_archive(origin.path, archive)
        if destination:
            self._is_any_matched = True
            return for_target(destination, self.kernels.get(origin.path, GENERIC))
        self._unmatched.append(origin.path)
        destination = None if self._strict else self.rules.place_rest(origin.path)
        if destination is None:
            remedy = "Add a rule for the file, or exclude the file with [[skip]]."
            self._problems.append(InputError(str(origin), "does not match any rule in the table", remedy=remedy))
        return destination

    def _add_file(self, member: SourceMember, destination: Destination) -> None:
        with self._collecting():
            if member.content is not None:
                self._tree.add_file(destination, member.origin, member.content, member.mode)
            else:
                original = self._links.placed(member.same_as)
                self._tree.add_copy(destination, member.origin, original, member.mode)
            self._links.add_file(member.origin.path, destination)

    def _add_links(self) -> list[str]:
        moved, dangling = self._links.resolve(self._problems)
        for link in moved:
            with self._collecting():
                self._tree.add_link(*link)
        return dangling

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Record a conflict for `finish` instead of raising it, because there may be more conflicts."""
        try:
            yield
        except (ImportConflictError, SymlinkError) as e:
            self._problems.append(e)


@contextmanager
def importing(table: ImportTable, dest: Path, *sources: Path, strict: bool = False) -> Iterator[Importer]:
    """Yield an importer. Its artifacts appear at ``dest`` if the block succeeds; otherwise, they are removed.

    ``sources`` are the files that the importer reads. Raises `InputError` if ``dest`` exists and is not an empty
    folder, and `WorkError` if ``dest`` can't be written to.
    """
    with new_folder(dest, *sources) as root:
        yield Importer(table, root, strict=strict)
