"""Rules on libraries that are there, but where no run path leads."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.rules.missing_libraries import NOT_PROVIDED, SHIP
from rocwheel.audit.unresolved import find_unresolved, folders_with, host_hint, is_left_to_driver, where_else
from rocwheel.environment.known_libraries import driver_of_library
from rocwheel.environment.loader import SITE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.unresolved import UnresolvedLibrary
    from rocwheel.environment.loader import LoaderStop
    from rocwheel.environment.tree import InstalledFile

_UNREACHABLE = "unreachable-library"


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
    hint = host_hint(library.file) or ": only LD_LIBRARY_PATH or an earlier load would help"
    found = f"{library.words}, which is in {places}, but its run path doesn't lead there{hint}"
    whose = "its run path" if library.file is library.user else f"the run path of {library.file.name}"
    tool = "have rocwheel build set it" if subject.tree.is_prefix else f"run {_repair(subject, library.file, folders)}"
    owner = subject.tree.owners.get(library.file.distribution)
    entry = (owner.layout if owner else subject.tree.layout).spell(folders[0], library.file.folder)
    if entry is None:
        found = f"{library.words}, which is in {places}, but {_NO_WAY}"
        return Evidence(library.user.source, found, _MOVE, library.facts)
    remedy = f"Add {entry} to {whose} when linking, or {tool}."
    if package := _unrequired(subject, library, folders[0]):
        remedy = f"Require {package}, and add {entry} to {whose} when linking. rocwheel repair does both."
    return Evidence(library.user.source, found, remedy, library.facts)


def _repair(subject: Subject, file: InstalledFile, folders: Collection[str]) -> str:
    """Return the command of the repair that leads a file to one of the folders which have a library."""
    owner = subject.tree.owners.get(file.distribution)
    is_sdk_s = owner is not None and subject.sdk_folders.issuperset(folders)
    return subject.toolkit_of(owner).repair_command if owner and is_sdk_s else "rocwheel repair"


def _unrequired(subject: Subject, library: UnresolvedLibrary, folder: str) -> str:
    """Return the package outside the SDK, neither at hand nor required, that is known to have a library in a folder."""
    known = subject.assumed.get(f"{folder}/{library.name}")
    return "" if known is None or is_sdk_package(known.distribution) else known.distribution


def _inherited(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.missed:
            pair = process.file.path, search.name
            if pair in subject.inherited | subject.loaded_before:
                how = "by the RPATH of a file that loads it"
                if pair not in subject.inherited:
                    how = "because each extension module that loads it has loaded that before"
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
    return Evidence(file.source, f"opens {name} at run time, but {NOT_PROVIDED}", SHIP, (name,))


_NO_WAY = "no run path leads there from the folder of programs: the name of site-packages depends on the Python"
_MOVE = "Install the program in the package, and start it by a script of Python, or build a wheel for each Python."
_CLEAR = "Remove that file, or put the folder of the library first in the run path."


def _link(repair: str) -> str:
    return f"Link with a run path that leads there ('rocwheel runpath for' prints it), or run {repair}."


_LINK = _link("rocwheel repair")

RULES = (
    Rule(
        _UNREACHABLE,
        Severity.ERROR,
        "The run path alone leads to every NEEDED library.",
        _LINK,
        _unreachable,
    ),
    Rule(
        "inherited-run-path",
        Severity.WARNING,
        "A library finds what it needs by its own run path.",
        _LINK,
        _inherited,
    ),
    Rule(
        "unresolved-dlopen",
        Severity.ERROR,
        "The run path leads to every library that the settings say is opened by name.",
        _LINK,
        _unresolved_dlopen,
    ),
)
