"""The table of an import (TOML): from source paths to artifact names, components and destinations."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.names import GENERIC, ArtifactName
from rocwheel.artifacts.model.paths import path_fault
from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "AddedFile",
    "ArtifactRule",
    "ComponentRule",
    "Edit",
    "FolderMove",
    "ImportTable",
    "Link",
    "Skip",
    "load_table",
]


class FolderMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Moves what is in one folder of the source to a folder of the prefix."""

    source: str = msgspec.field(name="from")
    """A folder, each segment a shell pattern; empty for the root."""
    destination: str = msgspec.field(name="to")
    """A folder of the prefix; empty for its root."""

    def move(self, path: str) -> str | None:
        """Return where the path ends up, or None when it is not in the folder."""
        patterns = self.source.split("/") if self.source else []
        segments = path.split("/")
        depth = len(patterns)
        if len(segments) <= depth or not all(map(fnmatchcase, segments, patterns)):
            return None
        return "/".join(([self.destination] if self.destination else []) + segments[depth:])


class ComponentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which files are of one component."""

    name: str
    files: tuple[str, ...]
    """Patterns of destinations."""


class ArtifactRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which packages or files belong to one artifact; without either it matches what no other rule matches."""

    name: str
    packages: tuple[str, ...] = ()
    """Shell patterns of package names, for sources that come in packages."""
    files: tuple[str, ...] = ()
    """Patterns of destinations, for sources that don't."""
    place: tuple[FolderMove, ...] = ()
    """Tried before the places of the table."""
    component: tuple[ComponentRule, ...] = ()
    """Tried before the components of the table."""
    system: bool = False
    """Whether these are libraries of the operating system, imported only when asked for."""
    only: tuple[str, ...] = ()
    """Patterns of destinations, when what else the packages hold is left out."""


class Skip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that are left out, and why."""

    files: tuple[str, ...]
    """Patterns of source paths."""
    reason: str
    packages: tuple[str, ...] = ("*",)


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of text that makes files work from their new place."""

    files: tuple[str, ...]
    """Patterns of destinations."""
    find: str
    """A regular expression; ``^`` and ``$`` match at lines."""
    replace: str
    reason: str
    sources: tuple[str, ...] = ("**",)
    """Patterns of source paths that the file must also match."""
    when: str = ""
    """A regular expression: a file that says so needs the edit, and it is an error when the edit does not fit it.

    Without it the edit is made where it fits.
    """


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A symlink that is added when what it points to was imported."""

    path: str
    to: str
    """Relative to the folder of ``path``; each segment a shell pattern, of whose matches the last by name is taken."""
    artifact: str


class AddedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small text file that is added when what it is for was imported."""

    path: str
    text: str
    beside: str
    """The destination that must be there."""
    artifact: str
    reason: str


class ImportTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of an importer, each list in order: the first that fits wins."""

    artifact: tuple[ArtifactRule, ...]
    place: tuple[FolderMove, ...]
    component: tuple[ComponentRule, ...]
    base_libraries: tuple[str, ...]
    """SONAMEs that every machine has: glibc's, libstdc++'s and libgcc's."""
    base_packages: tuple[str, ...] = ()
    """Shell patterns of the packages that have these libraries."""
    maintainers: tuple[str, ...] = ()
    """Shell patterns: packages of these maintainers are ROCm's, though no entry names them."""
    contents: str = ""
    """A table that comes with rocwheel: its artifacts take, by files, what is in packages that no entry names."""
    catch_all: str = ""
    """The artifact of files that no rule matches; without it such files are errors."""
    catch_libraries: str = ""
    """The artifact of shared libraries that no rule matches, when it is another one."""
    version_from: tuple[str, ...] = ()
    """Shell patterns of the packages, or patterns of the files, whose version is the SDK's; the first found wins."""
    common: tuple[str, ...] = ()
    """Patterns of files that other software has at the same paths: they alone don't make a prefix one of ROCm."""
    skip: tuple[Skip, ...] = ()
    edit: tuple[Edit, ...] = ()
    link: tuple[Link, ...] = ()
    file: tuple[AddedFile, ...] = ()


_BAD_EXPRESSION = (re.error, IndexError, OverflowError, RecursionError)
"""What ``re`` raises: the latter ones for a group of an unknown name, for huge repetitions and for deep nesting."""


def load_table(source: Path | str) -> ImportTable:
    """Read a table from a file, or the table of that name that comes with rocwheel.

    Raises `InputError` when it can't be read, is malformed, or holds an invalid regular expression; `ProblemsError`
    for names that artifacts can't have, and for places outside the prefix.
    """
    try:
        data = (resources.files(__package__) / source).read_bytes() if isinstance(source, str) else read_regular(source)
    except OSError as e:
        raise read_error(source, e, remedy="Check the --table option.") from e
    try:
        table = decode_toml(data, ImportTable)
        _check_expressions(table)
    except (msgspec.DecodeError, *_BAD_EXPRESSION) as e:
        raise InputError(source, f"not an import table: {e}", expected="TOML as docs/debian.md describes it") from e
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
