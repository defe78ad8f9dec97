"""Applying an import table: where a file goes, and which artifact and component it belongs to."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.importing.table import load_table
from rocwheel.artifacts.importing.text_edit import TextEdit
from rocwheel.artifacts.model.names import GENERIC, ArtifactName
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.importing.kpack_archives import OwnedArchive
    from rocwheel.artifacts.importing.table import ArtifactRule, ComponentRule, FolderMove, ImportTable

__all__ = ["Destination", "ImportRules", "Origin", "for_target"]

_KPACK = re.compile(r"\.kpack/([^/]+)\.kpack")
"""Device code that was parted from its libraries; the file is called like its artifact (TheRock's build system)."""
_WITH_CODE = ("lib", "run", "test")
"""The components that have programs and libraries."""


class Origin(msgspec.Struct, frozen=True):
    """Where something came from, for messages and rules."""

    path: str
    """Relative to the root of the source."""
    source: str
    """The package file or the prefix."""
    package: str = ""
    """The name of the package, for sources that come in packages."""

    def __str__(self) -> str:
        return f"{self.path} of {self.source}"


class Destination(msgspec.Struct, frozen=True):
    """Where a file goes."""

    artifact: str
    component: str
    path: str
    """Relative to the prefix."""
    target: str = GENERIC
    """The GPU target that it is for."""

    @property
    def artifact_name(self) -> str:
        """The name of the artifact's folder."""
        return str(ArtifactName(self.artifact, self.component, self.target))


def for_target(destination: Destination, target: str) -> Destination:
    """Return where a file goes that is for one target; what is for none or for users of sources stays where it is."""
    if target == GENERIC or destination.target != GENERIC or destination.component not in _WITH_CODE:
        return destination
    return msgspec.structs.replace(destination, target=target)


class _Components:
    """Component rules, tried in order. Files that no rule matches belong to ``run``, as in TheRock."""

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
        """Return whether a path is among what the artifact takes of its packages."""
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
    """A table, ready to be applied."""

    def __init__(self, table: ImportTable) -> None:
        self.table = table
        self.edits = [TextEdit(rule) for rule in table.edit]
        self._artifacts = [_Artifact(rule, table) for rule in table.artifact]
        self._common = PathPatterns(table.common) if table.common else None
        contents = load_table(table.contents).artifact if table.contents else ()
        self._contents = [_Artifact(rule, table) for rule in contents]
        self._system = next((artifact for artifact in self._artifacts if artifact.rule.system), None)
        self._skips = [(skip, PathPatterns(skip.files)) for skip in table.skip]
        self._taken_for_system: set[str] = set()

    def rule_of_package(self, package: str) -> ArtifactRule | None:
        """Return the artifact rule that matches a package."""
        artifact = self._of_package(package)
        return artifact.rule if artifact else None

    def take_for_system(self, package: str) -> None:
        """Apply the rule of the operating system's libraries to a package that no rule matches."""
        self._taken_for_system.add(package)

    def skip_reason(self, path: str, package: str) -> str | None:
        """Return why a source path is left out, or None when it is not."""
        for skip, files in self._skips:
            if _is_one_of(package, skip.packages) and files.matches(path):
                return skip.reason
        artifact = self._of_package(package)
        if artifact and not artifact.wants(path):
            return f"not among what {artifact.rule.name} takes of its packages"
        return None

    def place(self, path: str, package: str) -> Destination | None:
        """Return where a source path goes.

        In a package, its package's rule says so; where no rule matches the package, what the path is, as in a prefix.
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
        """Return whether a file at this source path is one that ROCm has and other software has not."""
        is_common = self._common is not None and self._common.matches(path)
        return not is_common and self.place(path, "") is not None

    def place_archive(self, path: str, archive: OwnedArchive) -> Destination | None:
        """Return where an archive goes that the marker of a library leads to: to the library's artifact."""
        library = self.place(archive.library, "") or self.place_rest(archive.library)
        destination = _move(self.table.place, path)
        if library is None or destination is None:
            return None
        return msgspec.structs.replace(library, path=destination, target=archive.target)

    def place_rest(self, path: str) -> Destination | None:
        """Return where a source path goes that no rule matches: into the catch-all artifact, if the table has one."""
        if not self.table.catch_all:
            return None
        destination = self.added(self.table.catch_all, _move(self.table.place, path) or path)
        if destination.component == "lib" and self.table.catch_libraries:
            return self.added(self.table.catch_libraries, destination.path)
        return destination

    def added(self, artifact: str, destination: str) -> Destination:
        """Return where a file goes that the importer itself adds to an artifact."""
        known = next((a for a in self._artifacts if a.rule.name == artifact), None)
        if known:
            return known.at(destination)
        return Destination(artifact, _Components(self.table.component).of(destination), destination)


def _place_kpack(path: str) -> Destination | None:
    """Return where an archive of device code goes that is called like an artifact of one GPU."""
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
