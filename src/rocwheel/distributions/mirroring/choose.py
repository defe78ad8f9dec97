"""Which projects and files of an index a mirror takes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.distributions.formats.requirements.requirements import read_specifier
from rocwheel.distributions.mirroring.machines import Machines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rocwheel.distributions.index_reading.trust import ListedFile

__all__ = [
    "LATEST",
    "Choice",
    "choose_files",
    "choose_projects",
    "is_devel",
    "is_pattern",
    "normalised_pattern",
    "split_extras",
]

LATEST = "latest"
"""In place of a version specifier: the newest version of each project."""
_DEVEL = re.compile(r"(^|-)devel(-|$)")
_WILDCARDS = "*?["
_WITH_EXTRAS = re.compile(r"([\w.-]+)\s*\[([\w\s.,-]*)\]", re.ASCII)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a mirror takes."""

    projects: tuple[str, ...]
    """Names of projects, or patterns of names such as ``rocm*``."""
    version: str = ""
    """A version specifier such as ``==7.2.*``, or `LATEST`; empty for all versions."""
    devel: bool = False
    """Whether packages for development are among it that a pattern matches; one that is named always is."""
    extras: dict[str, tuple[str, ...]] = {}
    """Of named projects, by normalised names: the extras whose requirements are wanted; of others, all are."""
    requirements: bool = False
    """Whether what the files require is wanted as well."""
    variants: bool = False
    """Whether wheel variants (:pep:`825`, a draft) are."""
    machines: Machines = Machines()
    pooled: frozenset[str] = frozenset()
    """Normalised names of projects whose versions in all indexes count, and not those of the first that has it."""

    def check(self) -> None:
        """Raise `InputError` for a version that is no specifier."""
        try:
            _ = self.version == LATEST or read_specifier(self.version)
        except InvalidSpecifier as e:
            source, found = "--version", f"is {self.version!r}"
            raise InputError(source, found, expected=f"a version specifier such as '==7.2.*', or {LATEST}") from e
        self.machines.check()


def is_pattern(text: str) -> bool:
    """Return whether a name of a project stands for several."""
    return any(character in text for character in _WILDCARDS)


def split_extras(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the name or pattern of a project, and the normalised extras in brackets behind it, if there are any."""
    match = _WITH_EXTRAS.fullmatch(text)
    if match is None:
        return text, None
    return match[1], tuple(canonicalize_name(extra) for extra in match[2].split(",") if extra.strip())


def is_devel(name: str) -> bool:
    """Return whether a normalised name of a project or an extra is one for development."""
    return _DEVEL.search(name) is not None


def normalised_pattern(text: str) -> str:
    """Return a name or pattern as the normalised names of projects are spelled (:pep:`503`)."""
    return re.sub(r"[-_.]+", "-", text).lower()


def choose_projects(choice: Choice, present: Sequence[str], serves: Callable[[str], bool]) -> tuple[str, ...]:
    """Return those of the projects ``present`` that are wanted: named, or matched and for the wanted GPUs.

    ``serves`` says of the name of a project whether it is for any of these, or for all GPUs.
    """
    patterns = [normalised_pattern(text) for text in choice.projects]
    named = {text for text in patterns if not is_pattern(text)}
    return tuple(
        project
        for project in present
        if project in named
        or (
            any(fnmatchcase(project, pattern) for pattern in patterns)
            and serves(project)
            and (choice.devel or not is_devel(project))
        )
    )


def choose_files(choice: Choice, files: Iterable[ListedFile]) -> tuple[ListedFile, ...]:
    """Return those files of one project that are of a wanted version, in the order of versions and names."""
    found = sorted(files, key=lambda file: (Version(file.version), file.filename))
    if choice.version != LATEST:
        specifier = SpecifierSet(choice.version, prereleases=True)
        return tuple(file for file in found if specifier.contains(file.version))
    versions = {Version(file.version) for file in found if file.yanked is None}
    newest = max({version for version in versions if not version.is_prerelease} or versions, default=None)
    return tuple(file for file in found if Version(file.version) == newest)


def unmatched(choice: Choice, present: Sequence[str], where: str) -> list[InputError]:
    """Return an error for each name or pattern that none of the projects ``present`` in the indexes fits."""
    return [
        InputError(text, f"is no project of {where}", remedy="Correct the name.")
        for text in choice.projects
        if not any(fnmatchcase(project, normalised_pattern(text)) for project in present)
    ]
