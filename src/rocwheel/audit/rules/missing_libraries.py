"""The rule on libraries that nothing provides: no package, no SDK, and not every system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.unresolved import find_unresolved, folders_with, host_hint
from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.linking.sdk_layout import find_sdk_library, other_versions
from rocwheel.linking.sdk_names import is_family_variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.unresolved import UnresolvedLibrary

__all__ = ["NOT_PROVIDED", "RULES", "SHIP"]

NOT_PROVIDED = "no package, SDK library or allowed system library provides it"
"""The text of findings on a library that is nowhere."""

SHIP = "Ship the library, require the package that provides it, or build against the SDK version that is required."
"""The remedy for a library that is nowhere."""


def _missing(subject: Subject) -> Iterator[Evidence]:
    for library in find_unresolved(subject):
        if library.stop or folders_with(subject, library.name):
            continue
        if package := _absent_package(subject, library.name):
            found = f"{library.words}, but its package {package} is absent"
            remedy = f"Install {package}, or give it with --with."
        else:
            found, remedy = _absence(subject, library), _remedy(subject, library)
        yield Evidence(library.user.source, found + host_hint(library.file), remedy, library.facts)


def _absent_package(subject: Subject, name: str) -> str:
    """Return the SDK package that has a library and is absent from a closed set of packages; empty if there is none."""
    folder = find_sdk_library(name)
    package = folder.distribution if folder else ""
    given = (owner.name for owner in subject.tree.distributions)
    return "" if any(name == package or is_family_variant(name, package) for name in given) else package


def _absence(subject: Subject, library: UnresolvedLibrary) -> str:
    if folders := [file.folder for file in subject.tree.libraries.get(library.name, ())]:
        return f"{library.words}, but only newer processors find it, in {', '.join(folders)}"
    found = f"{library.words}, but {NOT_PROVIDED}"
    others = other_versions(library.name, subject.tree.libraries)
    return f"{found}; the packages and the SDK have other versions: {', '.join(others)}" if others else found


def _remedy(subject: Subject, library: UnresolvedLibrary) -> str:
    """Return a remedy that names the required packages that are not given; empty where none of them can help."""
    owner = subject.tree.owners.get(library.file.distribution)
    names = sorted(packages_elsewhere(subject.tree, owner)) if owner else []
    is_there = library.name in subject.tree.libraries or other_versions(library.name, subject.tree.libraries)
    if owner is None or not names or is_there:
        return ""
    required = f"If a package that {owner.name} requires provides it, give that with --with: {', '.join(names)}."
    return f"{required} Otherwise: {SHIP}"


RULES = (
    Rule(
        "unresolved-library",
        Severity.ERROR,
        "Every NEEDED library is in the packages, in the SDK, or one that every system has.",
        SHIP,
        _missing,
    ),
)
