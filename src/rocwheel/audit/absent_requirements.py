"""Missing libraries that belong to packages which are required, but were not given."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.unresolved import UnresolvedLibrary
from rocwheel.core.messages import first_of
from rocwheel.installed.requirements import packages_elsewhere, required_distributions
from rocwheel.installed.tree import Distribution, InstalledFile
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.known.package_libraries import package_of_library
from rocwheel.linking.known.sdk_layout import other_versions, sdk_folders
from rocwheel.linking.known.sdk_names import is_sdk_package

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.audit.subject import Subject

__all__ = ["AbsentRequirement", "WhereElse", "absent_requirements", "absent_sibling", "where_else"]

_LIBRARY = re.compile(r"(?:lib)?([a-z0-9]+)")


class AbsentRequirement(msgspec.Struct, frozen=True):
    """A required package that isn't given, or several that it may be, and the libraries that are missing with it."""

    user: Distribution
    """The audited distribution, one of whose files is loaded."""
    owner: Distribution
    """The distribution that requires the package: the same, or a context package of which files are loaded."""
    packages: tuple[str, ...]
    libraries: tuple[UnresolvedLibrary, ...]


class WhereElse(msgspec.Struct, frozen=True):
    """What a finding says of a library that a required package may have which is not given."""

    words: str
    remedy: str


def where_else(subject: Subject, file: InstalledFile) -> WhereElse | None:
    """Return the required packages that may have what a file lacks; None where all that is installed is given.

    Packages of the SDK are left out: which libraries they have is known.
    """
    owner = subject.tree.owners.get(file.distribution)
    names = sorted(packages_elsewhere(subject.tree, owner)) if owner and not subject.is_closed else []
    if owner is None or not names:
        return None
    was, it = ("was", "it") if len(names) == 1 else ("were", "them")
    required = f"which {owner.name} requires and which {was} not given"
    found = f"which no given package has; it may be in {first_of(names)}, {required}"
    more = f": {', '.join(names)}" if len(names) > 1 else ""
    return WhereElse(found, f"Give {it} with --with, or use --with-requirements{more}.")


def absent_requirements(subject: Subject, libraries: Iterable[UnresolvedLibrary]) -> list[AbsentRequirement]:
    """Return the required packages that the missing libraries seem to belong to, as far as that shows.

    A library belongs to a package into whose folder the run path of its user leads: ``nvidia/cublas/lib`` is of
    ``nvidia-cublas-cu12``. Of several the one counts whose name the library begins with, else they all may have it. It
    also belongs to a package that the beginning of its name is a word of, ``libtorch_cpu.so`` to ``torch``, and to one
    that is known to bring it: ``libc10.so`` to ``torch``.
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
    """Return the package of the same SDK, required but not given, that has a library in any version; empty if none.

    The packages of an SDK are built together: it has the version that the others need, whatever the layout knows.
    """
    owner = subject.tree.owners.get(library.file.distribution)
    if owner is None or not is_sdk_package(owner.name):
        return ""
    alike = {library.name, *other_versions(library.name)}
    missing = required_distributions(subject.tree, owner) - {other.name for other in subject.tree.distributions}
    names = (f.distribution for f in sdk_folders() if f.distribution in missing and alike & {*f.libraries})
    return next(names, "")


def _packages_of(library: UnresolvedLibrary, required: Collection[str]) -> tuple[str, ...]:
    led_to = {name for folder in _folders(library.file) if (name := _package_in(folder, required))}
    alike = [name for name in sorted(led_to or required) if _is_alike(library.name, name)]
    if alike or led_to:
        return (max(alike, key=len),) if alike else tuple(sorted(led_to))
    known = package_of_library(library.name, required)
    return (known,) if known else ()


def _folders(file: InstalledFile) -> list[str]:
    """Return the folders that a file's run path leads to, relative to site-packages, those outside left out."""
    found = (resolve_entry(entry, file.folder) for entry in split_run_path(file.run_path))
    return [folder for folder in found if folder and not folder.startswith("..")]


def _package_in(folder: str, required: Collection[str]) -> str:
    """Return the required package whose name has the most of a folder's path; empty if none has its first part."""
    parts = folder.split("/")
    for count in range(len(parts), 0, -1):
        begin = canonicalize_name("-".join(parts[:count]))
        fitting = [name for name in sorted(required) if name == begin or name.startswith(f"{begin}-")]
        if fitting:
            return fitting[0] if len(fitting) == 1 or fitting[0] == begin else ""
    return ""


def _is_alike(library: str, package: str) -> bool:
    """Return whether a library's name begins with a word of a package's, of more than three letters."""
    match = _LIBRARY.match(library.lower())
    words = [word for word in package.split("-") if len(word) > 3]
    return match is not None and any(match[1].startswith(word) for word in words)
