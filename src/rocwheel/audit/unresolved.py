"""Finds the libraries that audited files need but can't find, and the packages that contain these libraries."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.core.messages import first_of
from rocwheel.environment.known_libraries import driver_of_library, package_of_library
from rocwheel.environment.loader import LoaderStop
from rocwheel.environment.requirements import packages_elsewhere, required_distributions
from rocwheel.environment.run_path_entries import is_origin_relative, resolve_entry, searched_folders, split_run_path
from rocwheel.environment.sdk_layout import other_versions, sdk_folders
from rocwheel.environment.tree import Distribution, InstalledFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.audit.subject import Subject


class UnresolvedLibrary(msgspec.Struct, frozen=True):
    """A library that a file can't find.

    The file is audited, or belongs to a context package that an audited file loads.
    """

    file: InstalledFile
    name: str
    """The library's name as given in the file."""
    user: InstalledFile
    """The audited file that is loaded."""
    stop: LoaderStop | None = None
    """The file where the loader stops its search."""

    @property
    def words(self) -> str:
        """The beginning of a finding's text: the file that needs the library, and the library."""
        through = "" if self.file is self.user else f"loads {self.file.path}, which "
        return f"{through}needs {self.name}"

    @property
    def facts(self) -> tuple[str, str]:
        """The facts that identify this library: its name, and the path of the file that needs it."""
        return self.name, self.file.path


def find_unresolved(subject: Subject, rule: str) -> Iterator[UnresolvedLibrary]:
    """Yield the libraries that files can't find, except for files that ignore ``rule``.

    If a context package can't find a library, the library is yielded only for the first audited file that loads the
    package.
    """
    seen: set[tuple[str, str]] = set()
    for process in subject.processes:
        if subject.settings.is_ignored_at(rule, process.file.path):
            continue
        declared = subject.settings.opened_by(process.file.path)
        missed = (search for search in process.missed if search.name not in declared)
        yield from (UnresolvedLibrary(process.file, search.name, process.file, search.stop) for search in missed)
        for search in process.loader.missing:
            file = subject.file_of(process.loader.objects[search.requester].library)
            if file and subject.tree.is_context(file) and (file.path, search.name) not in seen:
                seen.add((file.path, search.name))
                yield UnresolvedLibrary(file, search.name, process.file, search.stop)


def folders_with(subject: Subject, name: str) -> list[str]:
    """Return the folders in the packages, including an assumed SDK, that contain a library."""
    files = subject.tree.libraries.get(name, ())
    places = searched_folders((file.folder for file in files), subject.settings.cpu_level)
    return [*places] or [posixpath.dirname(path) for path in subject.assumed if posixpath.basename(path) == name]


def is_left_to_driver(subject: Subject, library: UnresolvedLibrary) -> bool:
    """Return whether the machine's driver must provide a library, because the package and its requirements don't.

    Another package might have a loader for the driver, like ROCm's OpenCL loader. Such a loader doesn't help users
    without ROCm.
    """
    owner = subject.tree.owners.get(library.file.distribution)
    names = {owner.name, *subject.required.get(owner.name, ())} if owner else set()
    holders = {subject.provider_of_file(file) for file in subject.tree.libraries.get(library.name, ())}
    is_assumed = any(posixpath.basename(path) == library.name for path in subject.assumed)
    return bool(driver_of_library(library.name)) and not holders & names and not is_assumed


def host_hint(file: InstalledFile) -> str:
    """Return a note about folders on the host where the file may still find a library, or an empty string."""
    return _host_hint(file.run_path)


@lru_cache(maxsize=16)
def _host_hint(run_path: str | None) -> str:
    hosts = [entry for entry in split_run_path(run_path) if not is_origin_relative(entry)]
    folders = first_of(hosts, more=" or {} more folders")
    return f" (the file finds the library only on hosts that have it in {folders})" if hosts else ""


_LIBRARY = re.compile(r"(?:lib)?([a-z0-9]+)")


class AbsentRequirement(msgspec.Struct, frozen=True):
    """A required package that isn't given, or several candidates for it, and the missing libraries."""

    user: Distribution
    """The audited distribution that contains the loaded file."""
    owner: Distribution
    """The distribution that requires the package: the user itself, or a context package whose files the user loads."""
    packages: tuple[str, ...]
    libraries: tuple[UnresolvedLibrary, ...]


class WhereElse(msgspec.Struct, frozen=True):
    """The text and remedy for a library that might be in a required package that isn't given."""

    words: str
    remedy: str


def where_else(subject: Subject, file: InstalledFile) -> WhereElse | None:
    """Return the required packages that might contain a missing library, or `None` if all packages are given.

    The result excludes SDK packages, because their libraries are known.
    """
    owner = subject.tree.owners.get(file.distribution)
    names = sorted(packages_elsewhere(subject.tree, owner)) if owner and not subject.is_closed else []
    if owner is None or not names:
        return None
    was, it = ("was", "it") if len(names) == 1 else ("were", "them")
    required = f"which {owner.name} requires but which {was} not given"
    found = f"which no given package contains; it may be in {first_of(names)}, {required}"
    more = f": {', '.join(names)}" if len(names) > 1 else ""
    return WhereElse(found, f"Add {it} with --with, or use --with-requirements{more}.")


def absent_requirements(subject: Subject, libraries: Iterable[UnresolvedLibrary]) -> list[AbsentRequirement]:
    """Return the required packages that probably contain the missing libraries.

    A library belongs to a package if its user's run path points into the package's folder. For example,
    ``nvidia/cublas/lib`` belongs to ``nvidia-cublas-cu12``. If several packages match, the package whose name is the
    start of the library's name is chosen. If there is no such package, all matching packages are included.

    A library also belongs to a package if its name begins with a word in the package's name, as with
    ``libtorch_cpu.so`` and ``torch``. Some packages are known to contain a library: for example, ``torch`` contains
    ``libc10.so``.
    """
    elsewhere: dict[str, frozenset[str]] = {}
    found: dict[tuple[str, str, tuple[str, ...]], list[UnresolvedLibrary]] = defaultdict(list)
    for library in libraries:
        owner = subject.tree.owners.get(library.file.distribution)
        if owner is not None and owner.dist_info:
            if owner.source not in elsewhere:
                elsewhere[owner.source] = packages_elsewhere(subject.tree, owner)
            sibling = absent_sibling(subject, library)
            if packages := (sibling,) if sibling else _packages_of(library, elsewhere[owner.source]):
                user = subject.tree.owners.get(library.user.distribution, owner)
                found[user.source, owner.source, packages].append(library)
    owners = subject.tree.owners
    return [
        AbsentRequirement(owners[user], owners[owner], packages, tuple(group))
        for (user, owner, packages), group in found.items()
    ]


def absent_sibling(subject: Subject, library: UnresolvedLibrary) -> str:
    """Return the SDK package with any version of a library that is required but not given, or an empty string.

    The packages of an SDK are built together. Therefore, the package contains the required version, regardless of the
    known layout.
    """
    owner = subject.tree.owners.get(library.file.distribution)
    if owner is None or not is_sdk_package(owner.name):
        return ""
    alike = {library.name, *other_versions(library.name)}
    missing = required_distributions(subject.tree, owner) - {other.name for other in subject.tree.distributions}
    names = (f.distribution for f in sdk_folders() if f.distribution in missing and alike & {*f.libraries})
    return next(names, "")


def _packages_of(library: UnresolvedLibrary, required: Collection[str]) -> tuple[str, ...]:
    led_to = _led_to(library.file.run_path, library.file.folder, frozenset(required))
    alike = [name for name in sorted(led_to or required) if _is_alike(library.name, name)]
    if alike or led_to:
        return (max(alike, key=len),) if alike else tuple(sorted(led_to))
    known = package_of_library(library.name, required)
    return (known,) if known else ()


@lru_cache(maxsize=16)
def _led_to(run_path: str | None, folder: str, required: frozenset[str]) -> frozenset[str]:
    """Return the required packages whose folders are listed in the run path of a file in ``folder``."""
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    inside = [place for place in found if place and not place.startswith("..")]
    return frozenset(name for place in inside if (name := _package_in(place, required)))


def _package_in(folder: str, required: Collection[str]) -> str:
    """Return the required package whose name best matches a folder's path, or an empty string if there is no match."""
    parts = folder.split("/")
    for count in range(len(parts), 0, -1):
        begin = canonicalize_name("-".join(parts[:count]))
        fitting = [name for name in sorted(required) if name == begin or name.startswith(f"{begin}-")]
        if fitting:
            return fitting[0] if len(fitting) == 1 or fitting[0] == begin else ""
    return ""


def _is_alike(library: str, package: str) -> bool:
    """Return whether a library's name begins with a word of at least four letters from a package's name."""
    match = _LIBRARY.match(library.lower())
    words = [word for word in package.split("-") if len(word) > 3]
    return match is not None and any(match[1].startswith(word) for word in words)
