"""Chooses the projects, files, and variants that a mirror copies from an index, and the machines that it serves."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.index.source import read_text
from rocwheel.stores.urls import shown_url
from rocwheel.wheels.file_names import without_label
from rocwheel.wheels.requirements import ALL_INTERPRETERS, Interpreter, platforms_of_tag, read_specifier, tag_minors
from rocwheel.wheels.tags import is_known_platform
from rocwheel.wheels.variants import index_file_name, load_draft, parse_variants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from packaging.tags import Tag

    from rocwheel.index.source import ProjectListing
    from rocwheel.index.trust import ListedFile
    from rocwheel.wheels.variants import Properties


_PYTHON = re.compile(r"3\.(\d{1,3})", re.ASCII)
_PATCH = re.compile(r"v?\d+\.\d+\.(\d{1,9})", re.ASCII)


class Machines(msgspec.Struct, frozen=True):
    """The machines that will install from a mirror."""

    platforms: tuple[str, ...] = ()
    """Platform tags such as ``linux_x86_64`` or ``win_amd64``, for any C library and version.

    Empty means all platforms.
    """
    pythons: tuple[str, ...] = ()
    """Python versions such as ``3.12``. Empty means all versions."""

    def check(self) -> None:
        """Raise `InputError` for an invalid platform or Python version, or `ProblemsError` for several problems."""
        problems = [
            InputError("--platform", f"is {word!r}", expected="a platform such as linux_x86_64 or win_amd64")
            for word in self.platforms
            if word == "any" or not is_known_platform(word)
        ]
        problems += [
            InputError("--python-version", f"is {word!r}", expected="a Python 3 version such as 3.12")
            for word in self.pythons
            if not _PYTHON.fullmatch(word)
        ]
        raise_all("the machines", problems)

    @property
    def interpreters(self) -> tuple[Interpreter, ...]:
        """The interpreters for which requirement markers are evaluated."""
        systems = self._systems or tuple(dict.fromkeys(platform for _, platform in ALL_INTERPRETERS))
        return tuple(product(self._minors or tuple(dict.fromkeys(minor for minor, _ in ALL_INTERPRETERS)), systems))

    @property
    def shown(self) -> str:
        """A description of the machines for messages, with a leading space. Empty if there are no restrictions."""
        return f" for {', '.join((*self.platforms, *self.pythons))}" if self.platforms or self.pythons else ""

    def each(self) -> Iterator[Machines]:
        """Yield each combination of platform and Python version, because an installer chooses files for only one."""
        for platform, python in product(self.platforms or ("",), self.pythons or ("",)):
            yield Machines((platform,) if platform else (), (python,) if python else ())

    def fits(self, file: ListedFile) -> bool:
        """Return whether one of the machines can install a file, based on its name and its Requires-Python."""
        if self._minors and not any(_allows(file.requires_python, minor) for minor in self._minors):
            return False
        if not file.filename.endswith(".whl"):
            return True
        return any(self._fits_tag(tag) for tag in parse_wheel_filename(without_label(file.filename))[3])

    @property
    def _minors(self) -> tuple[int, ...]:
        return tuple(int(word.partition(".")[2]) for word in self.pythons)

    @property
    def _systems(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(system for word in self.platforms for system in platforms_of_tag(word)))

    def _fits_tag(self, tag: Tag) -> bool:
        is_python = not self._minors or (tag.interpreter[2:3] != "2" and set(self._minors) & {*tag_minors(tag)})
        is_system = not self._systems or tag.platform == "any" or set(self._systems) & {*platforms_of_tag(tag.platform)}
        return bool(is_python and is_system)


def _allows(requires_python: str | None, minor: int) -> bool:
    """Return whether any release of a Python version is allowed. A malformed specifier allows all versions."""
    try:
        specifier = read_specifier(requires_python or "")
    except InvalidSpecifier:
        return True
    return any(specifier.contains(f"3.{minor}.{patch}") for patch in _patches(specifier))


def _patches(specifiers: SpecifierSet) -> set[int]:
    """Return patch numbers to check.

    If any release of a version is allowed, a release with one of these numbers is also allowed. The range that a
    specifier allows starts and ends at the versions in the specifier. The result contains these versions and their
    neighbors, including the first version and one version after the last.
    """
    texts = (specifier.version.removesuffix(".*") for specifier in specifiers)
    named = {int(match[1]) for text in texts if (match := _PATCH.match(text))}
    near = {patch + step for patch in named for step in (-1, 0, 1) if patch + step >= 0}
    return {0, *near, max(named, default=0) + 2}


LATEST = "latest"
"""A value that selects the newest version of each project, instead of a version specifier."""
_DEVEL = re.compile(r"(^|-)devel(-|$)")
_WILDCARDS = "*?["
_WITH_EXTRAS = re.compile(r"([\w.-]+)\s*\[([\w\s.,-]*)\]", re.ASCII)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The projects and files that a mirror contains."""

    projects: tuple[str, ...]
    """The names of projects, or patterns for names, such as ``rocm*``."""
    version: str = ""
    """A version specifier such as ``==7.2.*``, or `LATEST`. Empty means all versions."""
    devel: bool = False
    """Whether patterns also match development packages. A package that is specified by name is always included."""
    extras: dict[str, tuple[str, ...]] = {}
    """The extras whose requirements are wanted, keyed by normalized project name.

    For other projects, all extras are wanted.
    """
    requirements: bool = False
    """Whether to include the requirements of the files."""
    variants: bool = False
    """Whether to include wheel variants (:pep:`825`, a draft)."""
    machines: Machines = Machines()
    pooled: frozenset[str] = frozenset()
    """Normalized names of projects whose versions come from all indexes instead of only the first one."""

    def check(self) -> None:
        """Raise `InputError` for an invalid version specifier."""
        try:
            _ = self.version == LATEST or read_specifier(self.version)
        except InvalidSpecifier as e:
            source, found = "--version", f"is {self.version!r}"
            raise InputError(source, found, expected=f"a version specifier such as '==7.2.*', or {LATEST}") from e
        self.machines.check()


def is_pattern(text: str) -> bool:
    """Return whether a project name is a pattern for several projects."""
    return any(character in text for character in _WILDCARDS)


def split_extras(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the name or pattern of a project, and its normalized extras, or `None` if there are no brackets."""
    match = _WITH_EXTRAS.fullmatch(text)
    if match is None:
        return text, None
    return match[1], tuple(canonicalize_name(extra) for extra in match[2].split(",") if extra.strip())


def is_devel(name: str) -> bool:
    """Return whether a normalized name of a project or extra is for development."""
    return _DEVEL.search(name) is not None


def normalized_pattern(text: str) -> str:
    """Return a name or pattern in the normalized form of project names (:pep:`503`)."""
    return re.sub(r"[-_.]+", "-", text).lower()


def choose_projects(choice: Choice, present: Sequence[str], serves: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the wanted projects in ``present``: named projects, and matching projects for the wanted GPUs.

    ``serves`` returns whether the project with this name is for any of these GPUs or for all GPUs.
    """
    patterns = [normalized_pattern(text) for text in choice.projects]
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
    """Return the files of a project that have a wanted version, sorted by version and name."""
    found = sorted(files, key=lambda file: (Version(file.version), file.filename))
    if choice.version != LATEST:
        specifier = SpecifierSet(choice.version, prereleases=True)
        return tuple(file for file in found if specifier.contains(file.version))
    versions = {Version(file.version) for file in found if file.yanked is None}
    newest = max({version for version in versions if not version.is_prerelease} or versions, default=None)
    return tuple(file for file in found if Version(file.version) == newest)


def unmatched(choice: Choice, present: Sequence[str], where: str) -> list[InputError]:
    """Return an error for each name or pattern that doesn't match any project in ``present``."""
    return [
        InputError(text, f"is not a project in {where}", remedy="Correct the name.")
        for text in choice.projects
        if not any(fnmatchcase(project, normalized_pattern(text)) for project in present)
    ]


def choose_variants(
    listing: ProjectListing, files: Sequence[ListedFile], serves: Callable[[str], bool]
) -> tuple[ListedFile, ...]:
    """Return the project's files without unwanted variants.

    Variants for one of the GPUs, and variants for no specific GPU, are wanted.
    ``serves`` returns whether a target is wanted. Raises `InputError` for variants that the index's list doesn't
    contain, and for an unreadable list. Raises `ProblemsError` for several problems.
    """
    names = dict.fromkeys(index_file_name(file.filename) for file in files if file.label)
    known = dict(map_collecting(listing.project, lambda name: (name, _read(listing, name)), names))
    judged = map_collecting(listing.project, lambda file: (file, _is_wanted(file, known, serves)), files)
    return tuple(file for file, is_wanted in judged if is_wanted)


def _read(listing: ProjectListing, name: str) -> dict[str, Properties]:
    url = listing.variants.get(name)
    if url is None:
        found = f"has wheel variants, but its page doesn't list {name}"
        raise InputError(listing.project, found, remedy="Contact the publisher, or omit --variants.")
    return parse_variants(read_text(url), source=shown_url(url))[1]


def _is_wanted(file: ListedFile, known: dict[str, dict[str, Properties]], serves: Callable[[str], bool]) -> bool:
    if not file.label:
        return True
    provider = load_draft().provider
    variants = known[index_file_name(file.filename)]
    if file.label not in variants:
        found = f"is a wheel variant that {index_file_name(file.filename)} doesn't list"
        expected = f"one of {', '.join(map(quoted, sorted(variants)))}"
        raise InputError(file.filename, found, expected=expected, remedy="Contact the publisher.")
    values = variants[file.label].get(provider.namespace, {}).get(provider.feature, ())
    return not values or any(map(serves, values))
