"""Reads import tables (TOML), which define the artifact, component, path, and edits for each file."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.artifacts.artifact import ArtifactName, path_fault
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.markers import find_split_library, leads_to
from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import FileRange, read_regular
from rocwheel.targets.compatibility import GENERIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


class FolderMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Moves the contents of a source folder to a folder in the prefix."""

    source: str = msgspec.field(name="from")
    """A folder in the source; its path segments are shell patterns, and an empty path is the root."""
    destination: str = msgspec.field(name="to")
    """A folder in the prefix; an empty path is the root of the prefix."""

    def move(self, path: str) -> str | None:
        """Return the new path, or `None` if the path is not in the source folder."""
        patterns = self.source.split("/") if self.source else []
        segments = path.split("/")
        depth = len(patterns)
        if len(segments) <= depth or not all(map(fnmatchcase, segments, patterns)):
            return None
        return "/".join(([self.destination] if self.destination else []) + segments[depth:])


class ComponentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files that belong to a component."""

    name: str
    files: tuple[str, ...]
    """Patterns for destination paths."""


class ArtifactRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packages or files that belong to an artifact.

    A rule without packages and files matches everything that no other rule matches.
    """

    name: str
    packages: tuple[str, ...] = ()
    """Shell patterns for package names, for sources that consist of packages."""
    files: tuple[str, ...] = ()
    """Patterns for destination paths, for sources that don't consist of packages."""
    place: tuple[FolderMove, ...] = ()
    """Moves that are tried before the moves of the table."""
    component: tuple[ComponentRule, ...] = ()
    """Component rules that are tried before the component rules of the table."""
    system: bool = False
    """Whether the packages contain operating system libraries, which are imported only on request."""
    only: tuple[str, ...] = ()
    """Patterns for the destination paths to import if the other files in the packages are left out."""


class Skip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that aren't imported, and the reason."""

    files: tuple[str, ...]
    """Patterns for source paths."""
    reason: str
    packages: tuple[str, ...] = ("*",)


class EditRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit that adapts text files to their new location."""

    files: tuple[str, ...]
    """Patterns for destination paths."""
    find: str
    """A regular expression where ``^`` and ``$`` match at line boundaries."""
    replace: str
    reason: str
    sources: tuple[str, ...] = ("**",)
    """Patterns for source paths that the file must also match."""
    when: str = ""
    """A regular expression for files that need the edit. If such a file doesn't match ``find``, that is an error.

    If ``when`` is empty, the edit is optional.
    """


class AddedLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A symlink that is added if its target was imported."""

    path: str
    to: str
    """The target, relative to the folder of ``path``.

    Each segment is a shell pattern. If several names match, the last one in sorted order is used.
    """
    artifact: str


class AddedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small text file that is added if another file was imported."""

    path: str
    text: str
    beside: str
    """The destination path of the other file."""
    artifact: str
    reason: str


class ImportTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of an importer. In each list, the first match is used."""

    artifact: tuple[ArtifactRule, ...]
    place: tuple[FolderMove, ...]
    component: tuple[ComponentRule, ...]
    base_libraries: tuple[str, ...]
    """The SONAMEs of the libraries that every machine has: those of glibc, libstdc++, and libgcc."""
    base_packages: tuple[str, ...] = ()
    """Shell patterns for the packages that contain these libraries."""
    maintainers: tuple[str, ...] = ()
    """Shell patterns for maintainers whose packages belong to ROCm, even if no rule lists the packages."""
    contents: str = ""
    """The name of a built-in table. Its rules for files apply to packages that no rule lists."""
    catch_all: str = ""
    """The artifact for files that match no rule. If it is empty, such files are errors."""
    catch_libraries: str = ""
    """The artifact for shared libraries that match no rule, if it differs from the artifact for other files."""
    version_from: tuple[str, ...] = ()
    """Patterns for packages or files whose version is the SDK's version. The first match is used."""
    common: tuple[str, ...] = ()
    """Patterns for files that other software also installs. A prefix with only such files is not a ROCm prefix."""
    skip: tuple[Skip, ...] = ()
    edit: tuple[EditRule, ...] = ()
    link: tuple[AddedLink, ...] = ()
    file: tuple[AddedFile, ...] = ()


_BAD_EXPRESSION = (re.error, IndexError, OverflowError, RecursionError)
"""The exceptions that ``re`` raises, including errors for unknown groups, huge repetitions, and deep nesting."""


def load_import_table(source: Path | str) -> ImportTable:
    """Read a table from a file, or the built-in table with that name.

    Raises `InputError` if the table can't be read, is malformed, or contains an invalid regular expression. Raises
    `ProblemsError` for invalid artifact names and for paths outside the prefix.
    """
    try:
        data = (resources.files(__package__) / source).read_bytes() if isinstance(source, str) else read_regular(source)
    except OSError as e:
        raise read_error(source, e, remedy="Check the --table option.") from e
    try:
        table = decode_toml(data, ImportTable)
        _check_expressions(table)
    except (msgspec.DecodeError, *_BAD_EXPRESSION) as e:
        raise InputError(source, f"is not an import table: {e}", expected="TOML as described in docs/debian.md") from e
    if problems := [*_name_problems(table), *_place_problems(table)]:
        raise ProblemsError(str(source), problems)
    return table


def _name_problems(table: ImportTable) -> Iterator[InputError]:
    names = {rule.name for rule in table.artifact} | {link.artifact for link in table.link}
    names |= {file.artifact for file in table.file}
    names |= {table.catch_all, table.catch_libraries}
    components = {rule.name for rule in table.component} | {"run"}
    for name in sorted(names - {""}):
        for component in sorted(components):
            if problem := _name_problem(str(ArtifactName(name, component, GENERIC))):
                yield problem


def _name_problem(name: str) -> InputError | None:
    try:
        ArtifactName.parse(name)
    except InputError as e:
        return e
    return None


def _place_problems(table: ImportTable) -> Iterator[InputError]:
    places = [*table.place, *(place for rule in table.artifact for place in rule.place)]
    added = [*(link.path for link in table.link), *(file.path for file in table.file)]
    for path in [*(place.destination for place in places if place.destination), *added]:
        if fault := path_fault(path):
            yield InputError(repr(path), fault, expected="a path inside the prefix")


def _check_expressions(table: ImportTable) -> None:
    for edit in table.edit:
        re.compile(edit.find, re.MULTILINE).sub(edit.replace, "")
        re.compile(edit.when, re.MULTILINE)


class TextEdit:
    """An edit of the table, with a count of its replacements."""

    def __init__(self, rule: EditRule) -> None:
        self.rule = rule
        self.changes = 0
        """The number of replacements so far."""
        self.missed: list[str] = []
        """The files that match ``when`` but not ``find``."""
        self._files = PathPatterns(rule.files)
        self._sources = PathPatterns(rule.sources)
        self._find = re.compile(rule.find, re.MULTILINE)
        self._when = re.compile(rule.when, re.MULTILINE) if rule.when else None

    def applies_to(self, destination: str, source: str) -> bool:
        """Return whether the edit applies to this file."""
        return self._files.matches(destination) and self._sources.matches(source)

    def make(self, text: str, source: str) -> str:
        """Return the edited text, and count the replacements."""
        edited, changes = self._find.subn(self.rule.replace, text)
        self.changes += changes
        if not changes and self._when and self._when.search(text):
            self.missed.append(source)
        return edited

    @property
    def problem(self) -> InputError | None:
        """An error if the edit is needed by some files but doesn't match them; otherwise, `None`."""
        if not self.missed:
            return None
        return InputError(
            f"the edit {self.rule.find!r}",
            f"does not match {', '.join(self.missed)}, even though there is a match for {self.rule.when!r}",
            expected=f"a match (the reason for the edit: {self.rule.reason})",
            remedy="Check the file, and adjust the table (--table).",
        )


def edited_bytes(data: bytes, edits: Iterable[TextEdit], source: str) -> bytes:
    """Return the content of a file after these edits. Bytes that are not valid UTF-8 stay unchanged."""
    text = data.decode("utf-8", "surrogateescape")
    for edit in edits:
        text = edit.make(text, source)
    return text.encode("utf-8", "surrogateescape")


_KPACK = re.compile(r"\.kpack/([^/]+)\.kpack")
"""The path of device code that was split from its libraries.

TheRock's build system names the file after its artifact.
"""
_WITH_CODE = ("lib", "run", "test")
"""The components that contain programs and libraries."""


class Origin(msgspec.Struct, frozen=True):
    """The source of a file or link, for messages and rules."""

    path: str
    """The path relative to the root of the source."""
    source: str
    """The package file or the prefix."""
    package: str = ""
    """The package name, for sources that consist of packages."""

    def __str__(self) -> str:
        return f"{self.path} in {self.source}"


class Destination(msgspec.Struct, frozen=True):
    """The artifact, component, and path that a file goes to."""

    artifact: str
    component: str
    path: str
    """The path relative to the prefix."""
    target: str = GENERIC
    """The GPU target that the file is for."""

    @property
    def artifact_name(self) -> str:
        """The name of the artifact's folder."""
        return str(ArtifactName(self.artifact, self.component, self.target))


def for_target(destination: Destination, target: str) -> Destination:
    """Return the destination of a file for a single target.

    A destination that already has a target, or that is for developers, stays unchanged.
    """
    if target == GENERIC or destination.target != GENERIC or destination.component not in _WITH_CODE:
        return destination
    return msgspec.structs.replace(destination, target=target)


class _Components:
    """Component rules, which are tried in order. Files that match no rule belong to ``run``, as in TheRock."""

    def __init__(self, rules: Iterable[ComponentRule]) -> None:
        self._rules = [(rule.name, PathPatterns(rule.files)) for rule in rules]

    def of(self, path: str) -> str:
        return next((name for name, files in self._rules if files.matches(path)), "run")


class _Artifact:
    def __init__(self, rule: ArtifactRule, table: ImportTable) -> None:
        self.rule = rule
        self._files = PathPatterns(rule.files) if rule.files else None
        self._only = PathPatterns(rule.only)
        self._places = rule.place + table.place
        self._components = _Components(rule.component + table.component)

    def takes(self, destination: str) -> bool:
        return self._files is not None and self._files.matches(destination)

    def wants(self, path: str) -> bool:
        """Return whether a file with this path in the artifact's packages becomes part of the artifact."""
        if not self.rule.only:
            return True
        destination = _move(self._places, path)
        return destination is not None and self._only.matches(destination)

    def place(self, path: str) -> Destination | None:
        destination = _move(self._places, path)
        return None if destination is None else self.at(destination)

    def at(self, destination: str) -> Destination:
        return Destination(self.rule.name, self._components.of(destination), destination)


class ImportRules:
    """A table that is prepared for lookups."""

    def __init__(self, table: ImportTable) -> None:
        self.table = table
        self.edits = [TextEdit(rule) for rule in table.edit]
        self._artifacts = [_Artifact(rule, table) for rule in table.artifact]
        self._common = PathPatterns(table.common) if table.common else None
        contents = load_import_table(table.contents).artifact if table.contents else ()
        self._contents = [_Artifact(rule, table) for rule in contents]
        self._system = next((artifact for artifact in self._artifacts if artifact.rule.system), None)
        self._skips = [(skip, PathPatterns(skip.files)) for skip in table.skip]
        self._taken_for_system: set[str] = set()

    def rule_of_package(self, package: str) -> ArtifactRule | None:
        """Return the artifact rule that matches a package, or `None`."""
        artifact = self._of_package(package)
        return artifact.rule if artifact else None

    def is_of_rocm(self, package: str) -> bool:
        """Return whether a package belongs to ROCm and not to the operating system."""
        rule = self.rule_of_package(package)
        return rule is not None and not rule.system

    def take_for_system(self, package: str) -> None:
        """Apply the rule for operating system libraries to a package that matches no rule."""
        self._taken_for_system.add(package)

    def skip_reason(self, path: str, package: str) -> str | None:
        """Return the reason why a source path is left out, or `None` if it isn't."""
        for skip, files in self._skips:
            if _is_one_of(package, skip.packages) and files.matches(path):
                return skip.reason
        artifact = self._of_package(package)
        if artifact and not artifact.wants(path):
            return f"the artifact {artifact.rule.name} doesn't include this file from its packages"
        return None

    def place(self, path: str, package: str) -> Destination | None:
        """Return the destination of a source path, or `None` if no rule matches.

        For a file in a package, the package's rule determines the destination. If there is no such rule, the path
        determines the destination, as in a prefix.
        """
        if artifact := self._of_package(package):
            return artifact.place(path)
        if (destination := _move(self.table.place, path)) is None:
            return None
        if kpack := _place_kpack(destination):
            return kpack
        artifacts = self._contents if package else self._artifacts
        return next((a.at(destination) for a in artifacts if a.takes(destination)), None)

    def _of_package(self, package: str) -> _Artifact | None:
        if package in self._taken_for_system:
            return self._system
        return next((one for one in self._artifacts if package and _is_one_of(package, one.rule.packages)), None)

    def tells(self, path: str) -> bool:
        """Return whether a file at this source path can only come from ROCm, not from other software."""
        is_common = self._common is not None and self._common.matches(path)
        return not is_common and self.place(path, "") is not None

    def place_archive(self, path: str, archive: OwnedArchive) -> Destination | None:
        """Return the destination of an archive that a library's marker points to. It goes to the library's artifact."""
        library = self.place(archive.library, "") or self.place_rest(archive.library)
        destination = _move(self.table.place, path)
        if library is None or destination is None:
            return None
        return msgspec.structs.replace(library, path=destination, target=archive.target)

    def place_rest(self, path: str) -> Destination | None:
        """Return the destination of a source path that matches no rule, which is in the catch-all artifact.

        Returns `None` if the table has no catch-all artifact.
        """
        if not self.table.catch_all:
            return None
        destination = self.added(self.table.catch_all, _move(self.table.place, path) or path)
        if destination.component == "lib" and self.table.catch_libraries:
            return self.added(self.table.catch_libraries, destination.path)
        return destination

    def added(self, artifact: str, destination: str) -> Destination:
        """Return the destination of a file that the importer itself adds to an artifact."""
        known = next((a for a in self._artifacts if a.rule.name == artifact), None)
        if known:
            return known.at(destination)
        return Destination(artifact, _Components(self.table.component).of(destination), destination)


@cache
def _debian_rules() -> ImportRules:
    return ImportRules(load_import_table("debian.toml"))


def is_rocm_package(package: str) -> bool:
    """Return whether a Debian package belongs to ROCm and not to the operating system."""
    return _debian_rules().is_of_rocm(package)


def _place_kpack(path: str) -> Destination | None:
    """Return the destination of a device code archive that is named after the artifact of a single GPU."""
    match = _KPACK.fullmatch(path)
    if not match:
        return None
    try:
        name = ArtifactName.parse(match[1])
    except InputError:
        return None
    is_for_gpu = name.component in _WITH_CODE and name.target.startswith("gfx")
    return Destination(name.name, name.component, path, name.target) if is_for_gpu else None


def _move(places: Iterable[FolderMove], path: str) -> str | None:
    return next((moved for place in places if (moved := place.move(path)) is not None), None)


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_SUFFIX = ".kpack"


class OwnedArchive(NamedTuple):
    """The library that owns an archive, as a path relative to the prefix, and the target of the archive's code."""

    library: str
    target: str
    """The target, or `GENERIC` if the archive is for several targets."""


def find_owned_archives(files: Mapping[str, Path]) -> dict[str, OwnedArchive]:
    """Return the archives in ``files`` that library markers point to. Paths are relative to the prefix.

    If several libraries share an archive, the first library by path is used. Damaged files are skipped.
    """
    archives = [path for path in sorted(files) if path.endswith(_SUFFIX)]
    places = list(_iter_places(files)) if archives else []
    owners = {path: next((lib for lib, place in places if leads_to(place, path)), None) for path in archives}
    targets = {path: _target(files[path]) for path, library in owners.items() if library}
    return {path: OwnedArchive(library, targets[path]) for path, library in owners.items() if library and targets[path]}


def _iter_places(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield each split library with each archive path in its markers. Paths are relative to the prefix."""
    for path, file in sorted(files.items()):
        with suppress(InputError), FileRange.whole(file).view() as data:
            library = find_split_library(data, name=path)
            for search in dict.fromkeys(
                p for unit in (library.units if library else ()) for p in unit.marker.search_paths
            ):
                yield path, posixpath.normpath(posixpath.join(posixpath.dirname(path), search))


def _target(file: Path) -> str:
    """Return the target of an archive, or an empty string if the file is not an archive."""
    with suppress(InputError), FileRange.whole(file).view() as data:
        if is_kpack(data):
            processors = read_archive(data, name=str(file)).processors
            return min(processors) if len(processors) == 1 else GENERIC
    return ""
