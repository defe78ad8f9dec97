"""The rule on libraries that nothing provides: no package, no SDK, and not every system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_family_variant
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.unresolved import (
    absent_requirements,
    absent_sibling,
    find_unresolved,
    folders_with,
    host_hint,
    is_left_to_driver,
    where_else,
)
from rocwheel.core.messages import count, first_of
from rocwheel.environment.known_libraries import driver_of_library
from rocwheel.environment.sdk_layout import find_sdk_library, is_newer_than_layout, layout_releases, other_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.unresolved import AbsentRequirement, UnresolvedLibrary, WhereElse

_NAME = "unresolved-library"

NOT_PROVIDED = "no package, SDK library or allowed system library provides it"
"""The text of findings on a library that is nowhere."""

SHIP = "Ship the library, require the package that provides it, or build against the SDK version that is required."
"""The remedy for a library that is nowhere."""

_DRIVER = (
    "Open it by name (dlopen) where the package is to load on machines without it; else say in its docs what it needs."
)


def _missing(subject: Subject) -> Iterator[Evidence]:
    unresolved = [one for one in find_unresolved(subject, _NAME) if not one.stop]
    of_drivers = [one for one in unresolved if is_left_to_driver(subject, one)]
    for one in of_drivers:
        found = f"{one.words}, which comes with {driver_of_library(one.name)}"
        yield Evidence(one.user.source, found, _DRIVER, one.facts, Severity.NOTE)
    missing = [one for one in unresolved if one not in of_drivers and not folders_with(subject, one.name)]
    absent = absent_requirements(subject, (one for one in missing if not _is_judged_alone(subject, one)))
    yield from (_absent_requirement(subject, one) for one in absent)
    grouped = {(one.file.path, one.name) for group in absent for one in group.libraries}
    yield from _single(subject, (one for one in missing if (one.file.path, one.name) not in grouped))


def _is_judged_alone(subject: Subject, library: UnresolvedLibrary) -> bool:
    """Return whether it is known why a library is missing: no other package would have it."""
    if library.name in subject.tree.libraries:
        return True
    is_known = subject.other_versions(library.name) or find_sdk_library(library.name)
    return bool(is_known) and not absent_sibling(subject, library)


def _absent_requirement(subject: Subject, absent: AbsentRequirement) -> Evidence:
    names = sorted({library.name for library in absent.libraries})
    files = {library.file.path for library in absent.libraries}
    packages, them = " or ".join(absent.packages), "it" if len(absent.packages) == 1 else "them"
    which = f"{count(len(files), 'file needs', 'files need')} {count(len(names), 'library', 'libraries')}"
    through = "" if absent.owner is absent.user else f"loads files of {absent.owner.name}, which "
    found = f"{through}requires {packages}, not given, for which {which}: {first_of(names)}"
    remedy = f"Give {them} with --with, or use --with-requirements."
    # Not the libraries: which of them are missing changes with every version, and the finding stays the same.
    facts = (absent.owner.name, *absent.packages)
    return Evidence(absent.user.label, found, remedy, facts, None if subject.is_closed else Severity.WARNING)


def _single(subject: Subject, libraries: Iterable[UnresolvedLibrary]) -> Iterator[Evidence]:
    for library in libraries:
        severity = None
        if package := _absent_package(subject, library.name):
            found = f"{library.words}, but its package {package} is absent"
            remedy = f"Install {package}, or give it with --with."
        elif package := _package_of_newer_rocm(subject, library.name):
            releases = " and ".join(map(str, layout_releases()))
            table = f"this table of the SDK's libraries (ROCm {releases})"
            found = f"{library.words}, of a newer ROCm than {table}: give its {package} with --with"
            remedy = f"With the wheel of {package} that has it, it is known whether the library is found."
            severity = Severity.WARNING
        elif elsewhere := _where_else(subject, library):
            found, remedy, severity = f"{library.words}, {elsewhere.words}", elsewhere.remedy, Severity.WARNING
        else:
            found, remedy = _absence(subject, library), ""
        yield Evidence(library.user.source, found + host_hint(library.file), remedy, library.facts, severity)


def _absent_package(subject: Subject, name: str) -> str:
    """Return the SDK package that has a library and is absent from a closed set of packages; empty if there is none."""
    folder = find_sdk_library(name)
    package = folder.distribution if folder else ""
    given = (owner.name for owner in subject.tree.distributions)
    return "" if any(name == package or is_family_variant(name, package) for name in given) else package


def _package_of_newer_rocm(subject: Subject, name: str) -> str:
    """Return the SDK package that has a library in a later version than the known layout; empty if that is at hand."""
    older = (find_sdk_library(other) for other in other_versions(name)) if is_newer_than_layout(name) else ()
    package = next((folder.distribution for folder in older if folder), "")
    given = (owner.name for owner in subject.tree.distributions)
    is_complete = subject.settings.closed or any(one == package or is_family_variant(one, package) for one in given)
    return "" if is_complete else package


def _absence(subject: Subject, library: UnresolvedLibrary) -> str:
    if folders := [file.folder for file in subject.tree.libraries.get(library.name, ())]:
        return f"{library.words}, but only newer processors find it, in {', '.join(folders)}"
    found = f"{library.words}, but {NOT_PROVIDED}"
    others = subject.other_versions(library.name)
    return f"{found}; the packages and the SDK have other versions: {', '.join(others)}" if others else found


def _where_else(subject: Subject, library: UnresolvedLibrary) -> WhereElse | None:
    """Return where a library may be, unless it is at hand in a way that shows that no other package has it."""
    is_there = library.name in subject.tree.libraries or subject.other_versions(library.name)
    return None if is_there else where_else(subject, library.file)


RULES = (
    Rule(
        _NAME,
        Severity.ERROR,
        "Every NEEDED library is in the packages, in the SDK, or one that every system has.",
        SHIP,
        _missing,
    ),
)
