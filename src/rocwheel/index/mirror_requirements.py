"""Finds the requirements of a mirror's files in the same indexes that an installer would use.

As in uv, a project belongs to the first index that contains it. Later indexes are not consulted for this name.
Otherwise, anyone who can write to a later index could replace a package with a newer version (dependency confusion,
:pep:`708`).
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError, RocwheelError, read_error
from rocwheel.core.workers import raise_all
from rocwheel.index.entry import read_metadata
from rocwheel.index.mirror_choice import choose_variants, is_devel
from rocwheel.index.pages import METADATA_SUFFIX
from rocwheel.index.source import fetch_file, read_text
from rocwheel.index.trust import ListedFile
from rocwheel.stores.urls import shown_url
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import (
    RequirementError,
    group_by_extra,
    is_refusing,
    marker_holds_for,
    parse_requirement,
    parse_requires_txt,
    read_build_requires,
    to_requires_dist,
)
from rocwheel.wheels.sdist import read_listed_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from packaging.specifiers import Specifier, SpecifierSet

    from rocwheel.index.mirror_choice import Choice
    from rocwheel.index.source import IndexSource, ProjectListing


class Dependencies(msgspec.Struct, frozen=True):
    """The requirements of a distribution."""

    requires: tuple[Requirement, ...]
    extras: tuple[str, ...]
    """The normalized names of the distribution's extras."""
    by_extra: dict[str, list[Requirement]]
    """The requirements whose markers mention an extra (`group_by_extra`)."""


class DependencyReader:
    """Reads the requirements of files in an index, once per file."""

    def __init__(self, folder: Path) -> None:
        """Set the folder to which files without separate core metadata are downloaded."""
        self._folder = folder
        self._known: dict[str, Dependencies] = {}
        self.fetched: set[str] = set()
        """The names of the files that were downloaded into the folder to read their requirements."""

    def read(self, file: ListedFile) -> Dependencies:
        """Return the requirements of a file. Raise `InputError` for malformed or unexpected metadata."""
        if file.filename not in self._known:
            self._known[file.filename] = self._read(file)
        return self._known[file.filename]

    def _read(self, file: ListedFile) -> Dependencies:
        if file.metadata_sha256 and file.filename.endswith(".whl"):
            return _parse(file, self._read_promised(file, file.metadata_sha256), ())
        if fetch_file(self._folder, file):
            self.fetched.add(file.filename)
        path = self._folder / file.filename
        try:
            lines: tuple[str, ...] = ()
            if not path.name.endswith(".whl"):
                listed = parse_requires_txt(read_listed_requirements(path, file.project))
                lines = (*(to_requires_dist(*line) for line in listed), *read_build_requires(path))
            return _parse(file, read_metadata(path), lines)
        except OSError as e:
            raise read_error(path, e) from e

    def _read_promised(self, file: ListedFile, sha256: str) -> bytes:
        """Return the core metadata next to a file (:pep:`658`), from an earlier run or from the index."""
        local = self._folder / f"{file.filename}{METADATA_SUFFIX}"
        if local.is_file():
            data = local.read_bytes()
            if hashlib.sha256(data).hexdigest() == sha256:
                return data
        parts = urlsplit(file.url)
        url = urlunsplit(parts._replace(path=f"{parts.path}{METADATA_SUFFIX}"))
        data = read_text(url)
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise InputError(
                shown_url(url), f"has the SHA-256 {found}", expected=sha256, remedy="Contact the publisher."
            )
        return data


def _parse(file: ListedFile, data: bytes, lines: tuple[str, ...]) -> Dependencies:
    try:
        metadata = parse_core_metadata(data)[0]
        requires = tuple(map(parse_requirement, dict.fromkeys((*metadata.get("requires_dist", ()), *lines))))
    except (CoreMetadataError, RequirementError) as e:
        raise InputError(shown_url(file.url), f"has requirements that can't be read: {e}") from e
    extras = {canonicalize_name(extra) for extra in metadata.get("provides_extra", ())}
    extras |= {canonicalize_name(name) for line in lines for name in _named_extras(line)}
    return Dependencies(requires, tuple(sorted(extras)), group_by_extra(requires))


def _named_extras(line: str) -> list[str]:
    return [line.rpartition('extra == "')[2].rstrip('"')] if 'extra == "' in line else []


class PackageFinder:
    """The projects of several indexes. Several threads may use this object at the same time for different projects."""

    def __init__(self, sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool]) -> None:
        """Set the indexes, in order of precedence, and the machines and GPUs for which packages are wanted."""
        self._sources = sources
        self._choice = choice
        self._serves = serves
        self._read: dict[str, tuple[ProjectListing, ...]] = {}
        self._known: dict[str, tuple[ListedFile, ...]] = {}
        self._ignored: dict[str, list[str]] = {}
        self._problems: list[RocwheelError] = []
        self._lock = threading.Lock()

    def has(self, project: str) -> bool:
        """Return whether an index has a page for a project. Raises the same errors as `IndexSource.read_project`."""
        return bool(self._listings(project))

    def offered(self, project: str) -> tuple[ListedFile, ...]:
        """Return the files of a project that the machines can install. `check` raises the problems with its pages."""
        if project not in self._known:
            listings = self._listings(project)
            ignored = [name for listing in listings for name in listing.ignored]
            problems = [problem for listing in listings for problem in listing.problems]
            found = unite((file for one in listings for file in self._suiting(one, ignored)), problems)
            with self._lock:
                self._ignored[project] = ignored
                self._problems += problems
                self._known[project] = found
        return self._known[project]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names on the pages that belong to neither wheels nor sdists, and unwanted wheel variants."""
        return tuple(name for project in sorted(self._ignored) for name in self._ignored[project])

    def check(self, where: str) -> None:
        """Raise the problems with the pages that were read, as `raise_all` does."""
        raise_all(where, self._problems)

    def _listings(self, project: str) -> tuple[ProjectListing, ...]:
        """Return the listing from the first index with the project, or from all indexes if the project is pooled."""
        if project not in self._read:
            found = (listing for source in self._sources if (listing := source.read_project(project)))
            is_pooled = project in self._choice.pooled
            self._read[project] = tuple(found if is_pooled else islice(found, 1))
        return self._read[project]

    def _suiting(self, listing: ProjectListing, ignored: list[str]) -> Iterator[ListedFile]:
        files = [file for file in listing.files if self._choice.machines.fits(file)]
        if self._choice.variants:
            yield from choose_variants(listing, files, self._serves)
            return
        ignored += [file.filename for file in files if file.label]
        yield from (file for file in files if not file.label)


def unite(
    files: Iterable[ListedFile], problems: list[RocwheelError], remedy: str = "Mirror one of the indexes."
) -> tuple[ListedFile, ...]:
    """Return each file once, from the first index that contains it.

    Errors about different files with the same name are appended to ``problems``.
    """
    found: dict[str, ListedFile] = {}
    for file in files:
        first = found.setdefault(file.filename, file)
        if first.sha256 != file.sha256:
            text = f"is a different file at {shown_url(file.url)}"
            problems.append(InputError(shown_url(first.url), text, remedy=remedy))
    return tuple(found.values())


_DEVICE = "device"
"""The selector's extra that represents one of the extras ``device-gfx...``, depending on the machine's GPUs."""


class Followed(msgspec.Struct, frozen=True):
    """The requirements of the wanted files."""

    files: tuple[ListedFile, ...]
    required: tuple[str, ...]
    """Normalized names of all requirements, including requirements for other GPUs."""
    absent: tuple[str, ...]
    """Requirements that no file in the indexes satisfies."""
    unusable: dict[str, tuple[str, ...]]
    """The names of packages for other GPUs that a file requires without an extra, keyed by that file."""


def follow(
    roots: Sequence[ListedFile],
    choice: Choice,
    serves: Callable[[str], bool],
    offered: Callable[[str], Sequence[ListedFile]],
    read: Callable[[ListedFile], Dependencies],
) -> Followed:
    """Return the direct and indirect requirements of ``roots`` for the machines in ``choice``.

    ``offered`` returns the files of a project that these machines can install. ``read`` returns the requirements of a
    file. For ``serves``, see `choose_projects`. Raises `InputError` for a requested extra that a project doesn't have,
    or `ProblemsError` for several extras.
    """
    following = _Following(choice, serves, offered, read)
    for file in roots:
        following.take_root(file)
    following.finish()
    raise_all("--project", list(following.missing_extras(roots)))
    return Followed(
        tuple(following.files.values()),
        tuple(following.required),
        tuple(sorted(following.absent)),
        {name: tuple(sorted(needed)) for name, needed in sorted(following.unusable.items())},
    )


class _Following:
    """The requirements that were found so far, and the requirements that are still to be followed."""

    def __init__(
        self,
        choice: Choice,
        serves: Callable[[str], bool],
        offered: Callable[[str], Sequence[ListedFile]],
        read: Callable[[ListedFile], Dependencies],
    ) -> None:
        self._choice = choice
        self._serves = serves
        self._offered = offered
        self._read = read
        self._interpreters = choice.machines.interpreters
        self._waiting: list[tuple[ListedFile, str]] = []
        self._done: set[tuple[str, str]] = set()
        self._begun: set[str] = set()
        self._offers: dict[str, list[Offer]] = {}
        self.files: dict[str, ListedFile] = {}
        self.required: dict[str, None] = {}
        self.absent: set[str] = set()
        self.unusable: defaultdict[str, set[str]] = defaultdict(set)

    def take_root(self, file: ListedFile) -> None:
        """Add a wanted file with the requested extras, or with all extras."""
        self._waiting += [(file, extra) for extra in ("", *self._root_extras(file))]

    def _root_extras(self, file: ListedFile) -> Iterator[str]:
        provided = self._read(file).extras
        asked = self._choice.extras.get(file.project)
        for extra in provided:
            is_for_gpu = extra.startswith(f"{_DEVICE}-gfx") and self._serves(extra)
            if asked is None:
                if self._serves(extra) and (self._choice.devel or not is_devel(extra)):
                    yield extra
            elif extra in asked or (_DEVICE in asked and is_for_gpu):
                yield extra

    def missing_extras(self, roots: Sequence[ListedFile]) -> Iterator[InputError]:
        """Yield an error for each requested extra that no file of its project has."""
        for project, asked in self._choice.extras.items():
            files = [file for file in roots if file.project == project]
            provided = {extra for file in files for extra in self._read(file).extras}
            for extra in asked if files else ():
                if extra not in provided and not (extra == _DEVICE and _has_device(provided)):
                    expected = f"one of {', '.join(sorted(provided))}" if provided else "no extras"
                    yield InputError("--project", f"{project} has no extra {extra}", expected=expected)

    def finish(self) -> None:
        """Follow all pending requirements, and the requirements that they add."""
        while self._waiting:
            file, extra = self._waiting.pop()
            if (file.filename, extra) not in self._done:
                self._done.add((file.filename, extra))
                for requirement in self._requires(file, extra):
                    if self._holds(requirement, extra):
                        self._take(requirement, file, extra)
                self._begun.add(file.filename)

    def _requires(self, file: ListedFile, extra: str) -> Sequence[Requirement]:
        """Return the requirements that may apply with an extra.

        Requirements that apply with every extra are included only the first time.
        """
        found = self._read(file)
        if not extra or file.filename not in self._begun:
            return found.requires
        return (*found.by_extra.get(extra, ()), *found.by_extra.get("", ()))

    def _holds(self, requirement: Requirement, extra: str) -> bool:
        if is_refusing(requirement):
            return False
        return requirement.marker is None or marker_holds_for(str(requirement.marker), extra, self._interpreters)

    def _take(self, requirement: Requirement, by: ListedFile, extra: str) -> None:
        name = canonicalize_name(requirement.name)
        self.required[name] = None
        if not self._serves(name):
            if not extra:
                self.unusable[by.filename].add(name)
            return
        files = self._pick(name, requirement.specifier) if requirement.url is None else []
        if not files:
            self.absent.add(f"{name}{requirement.specifier}")
        for file in files:
            self.files[file.filename] = file
            extras = map(canonicalize_name, requirement.extras)
            self._waiting += [(file, each) for each in ("", *extras)]

    def _pick(self, name: str, specifier: SpecifierSet) -> list[ListedFile]:
        """Return the newest files that satisfy a requirement, and the files that satisfy all requirements so far."""
        if name not in self._offers:
            offered = self._offered(name)
            each = self._choice.machines.each()
            self._offers[name] = [Offer([file for file in offered if machine.fits(file)]) for machine in each]
        offers = self._offers[name]
        picked = [file for offer in offers for file in offer.newest(specifier)]
        picked += [file for offer in offers for file in offer.newest_for_all(specifier)]
        return list({file.filename: file for file in picked}.values())


def _has_device(extras: Iterable[str]) -> bool:
    return any(extra.startswith(f"{_DEVICE}-gfx") for extra in extras)


class _Newest:
    """The newest of several versions that satisfies more and more specifiers. Each version is discarded only once."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._versions = versions
        self._at = self._satisfied = 0

    def find(self, specifiers: Sequence[Specifier]) -> Version | None:
        """Return the newest version that satisfies these specifiers, which include those from earlier calls."""
        while self._at < len(self._versions):
            version = self._versions[self._at]
            if all(one.contains(version, prereleases=True) for one in specifiers[self._satisfied :]):
                self._satisfied = len(specifiers)
                return version
            self._at += 1
            self._satisfied = 0
        return None


class _Search:
    """A search for the version to install: the newest version, or a pinned yanked version."""

    def __init__(self, finals: Sequence[Version], good: Sequence[Version], every: Sequence[Version]) -> None:
        self._finals, self._good, self._every = _Newest(finals), _Newest(good), _Newest(every)
        self._specifiers: list[Specifier] = []
        self._allows_prereleases = self._is_pinned = False

    def find(self, more: Iterable[Specifier]) -> Version | None:
        """Return the version that satisfies these specifiers and those from earlier calls."""
        for one in more:
            self._specifiers.append(one)
            self._allows_prereleases |= bool(one.prereleases)
            self._is_pinned |= one.operator in {"==", "==="}
        found = None if self._allows_prereleases else self._finals.find(self._specifiers)
        if found is None:
            found = self._good.find(self._specifiers)
        return self._every.find(self._specifiers) if found is None and self._is_pinned else found


class Offer:
    """The files of a project that one machine can install."""

    def __init__(self, files: Iterable[ListedFile]) -> None:
        self._files = _by_version(files)
        every = sorted(self._files, reverse=True)
        good = [version for version in every if any(file.yanked is None for file in self._files[version])]
        self._lists = [version for version in good if not version.is_prerelease], good, every
        self._known: dict[str, Version | None] = {}
        self._for_all = _Search(*self._lists)
        self._joined: set[str] = set()

    def newest(self, specifier: SpecifierSet) -> Sequence[ListedFile]:
        """Return the files of the version to install for one requirement."""
        text = str(specifier)
        if text not in self._known:
            self._known[text] = _Search(*self._lists).find(specifier)
        return self._of(self._known[text])

    def newest_for_all(self, specifier: SpecifierSet) -> Sequence[ListedFile]:
        """Return the files of the version to install for this requirement and those from earlier calls."""
        more = () if str(specifier) in self._joined else specifier
        self._joined.add(str(specifier))
        return self._of(self._for_all.find(more))

    def _of(self, version: Version | None) -> Sequence[ListedFile]:
        return self._files[version] if version is not None else ()


def _by_version(files: Iterable[ListedFile]) -> Mapping[Version, list[ListedFile]]:
    found: defaultdict[Version, list[ListedFile]] = defaultdict(list)
    for file in files:
        found[Version(file.version)].append(file)
    return found
