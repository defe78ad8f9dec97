"""Rules about libraries that a file needs or opens: they exist, and the loader finds them through the run path."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_family_variant, is_sdk_package
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
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.known_libraries import driver_of_library
from rocwheel.environment.requirements import required_distributions
from rocwheel.environment.sdk_layout import find_sdk_library, is_newer_than_layout, layout_releases, other_versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.unresolved import AbsentRequirement, UnresolvedLibrary, WhereElse
    from rocwheel.environment.loader import LoaderStop
    from rocwheel.environment.tree import InstalledFile


_UNRESOLVED = "unresolved-library"
_UNREACHABLE = "unreachable-library"

NOT_PROVIDED = "neither the packages, the SDK, nor the allowed system libraries include it"
"""The text of findings about a library that nothing provides."""

_SHIP = "Ship the library, require the package that provides it, or build against the required SDK version."
"""The remedy for a library that nothing provides."""

_DRIVER = (
    "Tell users that the package needs this driver. To load the file without the driver, open the library with dlopen."
)


def _missing(subject: Subject) -> Iterator[Evidence]:
    unresolved = [one for one in find_unresolved(subject, _UNRESOLVED) if not one.stop]
    of_drivers = [one for one in unresolved if is_left_to_driver(subject, one)]
    for one in of_drivers:
        found = f"{one.words}, which is part of {driver_of_library(one.name)}"
        yield Evidence(one.user.source, found, _DRIVER, one.facts, Severity.NOTE)
    missing = [
        one
        for one in unresolved
        if one not in of_drivers and not folders_with(subject, one.name) and not _may_be_unread(subject, one)
    ]
    absent = absent_requirements(subject, (one for one in missing if not _is_judged_alone(subject, one)))
    yield from (_absent_requirement(subject, one) for one in absent)
    grouped = {(one.file.path, one.name) for group in absent for one in group.libraries}
    yield from _single(subject, (one for one in missing if (one.file.path, one.name) not in grouped))


def _may_be_unread(subject: Subject, library: UnresolvedLibrary) -> bool:
    """Return whether a missing library might be in a given package that couldn't be read."""
    unread = subject.tree.unread
    owner = subject.tree.owners.get(library.file.distribution)
    if not unread or owner is None:
        return False
    return (
        bool(unread & required_distributions(subject.tree, owner)) or _absent_package(subject, library.name) in unread
    )


def _is_judged_alone(subject: Subject, library: UnresolvedLibrary) -> bool:
    """Return whether the reason for a missing library is known, so that no other package needs to be considered."""
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
    found = f"{through}requires {packages}, which isn't given, and {which} from that package: {first_of(names)}"
    remedy = f"Add {them} with --with, or use --with-requirements."
    # The facts omit the libraries. The set of missing libraries changes with every version, but the finding must not.
    facts = (absent.owner.name, *absent.packages)
    return Evidence(absent.user.label, found, remedy, facts, None if subject.is_closed else Severity.WARNING)


def _single(subject: Subject, libraries: Iterable[UnresolvedLibrary]) -> Iterator[Evidence]:
    for library in libraries:
        severity = None
        if package := _absent_package(subject, library.name):
            found = f"{library.words}, but its package {package} isn't installed"
            remedy = f"Install {package}, or add it with --with."
        elif package := _package_of_newer_rocm(subject, library.name):
            releases = " and ".join(map(str, layout_releases()))
            table = f"rocwheel's list of SDK libraries (ROCm {releases})"
            found = f"{library.words}, which is from a newer ROCm version than {table}"
            found += f": add {package} of that version with --with"
            remedy = f"With the correct wheel of {package}, the audit can check whether the file finds the library."
            severity = Severity.WARNING
        elif elsewhere := _where_else(subject, library):
            found, remedy, severity = f"{library.words}, {elsewhere.words}", elsewhere.remedy, Severity.WARNING
        else:
            found, remedy = _absence(subject, library), ""
        yield Evidence(library.user.source, found + host_hint(library.file), remedy, library.facts, severity)


def _absent_package(subject: Subject, name: str) -> str:
    """Return the SDK package that contains a library but is missing from a complete set, or an empty string."""
    folder = find_sdk_library(name)
    package = folder.distribution if folder else ""
    given = (owner.name for owner in subject.tree.distributions)
    return "" if any(name == package or is_family_variant(name, package) for name in given) else package


def _package_of_newer_rocm(subject: Subject, name: str) -> str:
    """Return the SDK package that contains a later version of a library than the known layout does.

    Return an empty string if there is no such package, or if the package is given.
    """
    older = (find_sdk_library(other) for other in other_versions(name)) if is_newer_than_layout(name) else ()
    package = next((folder.distribution for folder in older if folder), "")
    given = (owner.name for owner in subject.tree.distributions)
    is_complete = subject.settings.closed or any(one == package or is_family_variant(one, package) for one in given)
    return "" if is_complete else package


def _absence(subject: Subject, library: UnresolvedLibrary) -> str:
    if folders := [file.folder for file in subject.tree.libraries.get(library.name, ())]:
        return f"{library.words}, but only newer CPUs find the library (in {', '.join(folders)})"
    found = f"{library.words}, but {NOT_PROVIDED}"
    others = subject.other_versions(library.name)
    return f"{found}; the packages and the SDK have different versions: {', '.join(others)}" if others else found


def _where_else(subject: Subject, library: UnresolvedLibrary) -> WhereElse | None:
    """Return the packages that might have a library, or `None` if it is certain that no other package has it."""
    is_there = library.name in subject.tree.libraries or subject.other_versions(library.name)
    return None if is_there else where_else(subject, library.file)


def _unreachable(subject: Subject) -> Iterator[Evidence]:
    for library in find_unresolved(subject, _UNREACHABLE):
        folders = folders_with(subject, library.name)
        if not library.stop and is_left_to_driver(subject, library):
            continue
        if library.stop:
            yield Evidence(library.user.source, _stop(library, library.stop), _CLEAR, library.facts)
        elif folders and (library.file.path, library.name) not in subject.inherited | subject.loaded_before:
            yield _out_of_reach(subject, library, folders)


def _stop(library: UnresolvedLibrary, stop: LoaderStop) -> str:
    place = posixpath.relpath(stop.path, SITE) if stop.path.startswith(SITE) else stop.path
    return f"{library.words}, but the loader stops its search at {place}: {stop.reason}"


def _out_of_reach(subject: Subject, library: UnresolvedLibrary, folders: list[str]) -> Evidence:
    places = ", ".join(folder or "the top folder" for folder in folders)
    hint = host_hint(library.file) or ": the library loads only with LD_LIBRARY_PATH, or if it is already in memory"
    found = f"{library.words}, which is in {places}, but its run path doesn't lead there{hint}"
    whose = "its run path" if library.file is library.user else f"the run path of {library.file.name}"
    tool = (
        "use rocwheel build to set it" if subject.tree.is_prefix else f"run {_repair(subject, library.file, folders)}"
    )
    owner = subject.tree.owners.get(library.file.distribution)
    entry = (owner.layout if owner else subject.tree.layout).spell(folders[0], library.file.folder)
    if entry is None:
        found = f"{library.words}, which is in {places}, but {_NO_WAY}"
        return Evidence(library.user.source, found, _MOVE, library.facts)
    remedy = f"Add {entry} to {whose} when linking, or {tool}."
    if package := _unrequired(subject, library, folders[0]):
        remedy = f"Require {package}, and add {entry} to {whose} when linking. 'rocwheel repair' does both."
    return Evidence(library.user.source, found, remedy, library.facts)


def _repair(subject: Subject, file: InstalledFile, folders: Collection[str]) -> str:
    """Return the repair command that adds a library's folder to a file's run path."""
    owner = subject.tree.owners.get(file.distribution)
    is_sdk_s = owner is not None and subject.sdk_folders.issuperset(folders)
    return subject.toolkit_of(owner).repair_command if owner and is_sdk_s else "'rocwheel repair'"


def _unrequired(subject: Subject, library: UnresolvedLibrary, folder: str) -> str:
    """Return the non-SDK package that is known to contain a library in a folder, but is neither given nor required."""
    known = subject.assumed.get(f"{folder}/{library.name}")
    return "" if known is None or is_sdk_package(known.distribution) else known.distribution


def _inherited(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.missed:
            pair = process.file.path, search.name
            if pair in subject.inherited | subject.loaded_before:
                how = "through the RPATH of a file that loads it"
                if pair not in subject.inherited:
                    how = "because each extension module that loads this file has already loaded the library"
                found = f"finds {search.name} only {how}"
                remedy = _link(_repair(subject, process.file, folders_with(subject, search.name)))
                yield Evidence(process.file.source, found, remedy, (search.name,))


def _unresolved_dlopen(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        missing = {search.name for search in process.missed}
        for name in subject.settings.opened_by(process.file.path):
            if name in missing and (folders := folders_with(subject, name)):
                found = f"opens {name} at run time, but its run path doesn't lead there"
                yield Evidence(process.file.source, found, _link(_repair(subject, process.file, folders)), (name,))
            elif name in missing and not driver_of_library(name):
                yield _unprovided(subject, process.file, name)


def _unprovided(subject: Subject, file: InstalledFile, name: str) -> Evidence:
    if elsewhere := where_else(subject, file):
        found = f"opens {name} at run time, {elsewhere.words}"
        return Evidence(file.source, found, elsewhere.remedy, (name,), Severity.WARNING)
    return Evidence(file.source, f"opens {name} at run time, but {NOT_PROVIDED}", _SHIP, (name,))


_NO_WAY = "no run path can lead from a program's folder to site-packages, whose path depends on the Python version"
_MOVE = (
    "Install the program in the package and start it from a Python script, or build a wheel for each Python version."
)
_CLEAR = "Remove that file, or move the library's folder to the start of the run path."


def _link(repair: str) -> str:
    return f"Link with the run path that 'rocwheel runpath for' prints, or run {repair}."


_LINK = _link("'rocwheel repair'")

RULES = (
    Rule(
        _UNRESOLVED,
        Severity.ERROR,
        "Every NEEDED library is in the packages or the SDK, or is part of every system.",
        _SHIP,
        _missing,
    ),
    Rule(
        _UNREACHABLE,
        Severity.ERROR,
        "The run path points to every NEEDED library.",
        _LINK,
        _unreachable,
    ),
    Rule(
        "inherited-run-path",
        Severity.WARNING,
        "A library finds its dependencies through its own run path.",
        _LINK,
        _inherited,
    ),
    Rule(
        "unresolved-dlopen",
        Severity.ERROR,
        "The run path points to every library that the settings list under dlopen.",
        _LINK,
        _unresolved_dlopen,
    ),
)
