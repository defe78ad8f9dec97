"""Rules on what the loader finds: every NEEDED name resolves, by run paths alone, to the file that is meant."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.undeclared_uses import undeclared_uses
from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.installed.tree import InstalledFile
from rocwheel.linking.entries import is_origin_relative, split_run_path
from rocwheel.linking.hwcaps import has_level, searched_folders
from rocwheel.linking.loader import How, Refusal
from rocwheel.linking.run_path_choice import origin_relative
from rocwheel.linking.sdk_layout import find_sdk_library, other_versions
from rocwheel.linking.tree_disk import SITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject

__all__ = ["RULES"]

_SHOWN = 3


def _folders_of(subject: Subject, name: str) -> list[str]:
    """Return the folders of the packages that hold a library, the SDK's assumed ones included."""
    files = subject.tree.libraries.get(name, ())
    places = searched_folders((file.folder for file in files), subject.configuration.cpu_level)
    return [*places] or [posixpath.dirname(path) for path in subject.assumed if posixpath.basename(path) == name]


class _Miss(msgspec.Struct, frozen=True):
    """A library that a file doesn't find, be it the audited one or, in its process, one of the packages beside."""

    file: InstalledFile
    name: str
    user: InstalledFile
    """The audited file that is loaded."""
    refusal: Refusal | None = None
    """The file at which the loader stops."""

    @property
    def words(self) -> str:
        who = "" if self.file is self.user else f"loads {self.file.path}, which "
        return f"{who}needs {self.name}, which"


def _misses(subject: Subject) -> Iterator[_Miss]:
    """Give what files don't find; of packages that aren't audited themselves, for the first that loads them."""
    seen: set[tuple[str, str]] = set()
    for process in subject.processes:
        declared = subject.configuration.opened_by(process.file.path)
        missed = (search for search in process.missed if search.name not in declared)
        yield from (_Miss(process.file, search.name, process.file, search.refusal) for search in missed)
        for search in process.loader.missing:
            file = subject.file_of(process.loader.objects[search.requester].library)
            if file and subject.tree.is_context(file) and (file.path, search.name) not in seen:
                seen.add((file.path, search.name))
                yield _Miss(file, search.name, process.file, search.refusal)


def _unresolved(subject: Subject) -> Iterator[Evidence]:
    for miss in _misses(subject):
        if not miss.refusal and not _folders_of(subject, miss.name):
            absent = _absent_package(subject, miss.name)
            found = f"{miss.words} is in {absent}, which is absent" if absent else _absence(subject, miss)
            remedy = f"Install {absent}, or give it --with." if absent else _provision(subject, miss)
            yield Evidence(miss.user.source, found + _luck(miss.file), remedy)


def _provision(subject: Subject, miss: _Miss) -> str:
    """Return the remedy for a library that may be in what the file's package requires and is not at hand, else none."""
    owner = subject.tree.owners.get(miss.file.distribution)
    names = sorted(packages_elsewhere(subject.tree, owner)) if owner else []
    if (
        owner is None
        or not names
        or miss.name in subject.tree.libraries
        or other_versions(miss.name, subject.tree.libraries)
    ):
        return ""
    return f"If it is in what {owner.name} requires, give that --with: {', '.join(names)}. Else: {_SHIP}"


def _absent_package(subject: Subject, name: str) -> str:
    """Return the package of the SDK that has a library and is not there, though nothing else may come."""
    folder = find_sdk_library(name)
    package = folder.distribution if folder else ""
    given = (f"{owner.name}-" for owner in subject.tree.distributions)  # maybe those of one target family
    return "" if any(owner.startswith(f"{package}-") for owner in given) else package


def _absence(subject: Subject, miss: _Miss) -> str:
    found = f"{miss.words} none of the packages, the SDK and the allowed system libraries has"
    if others := [file.folder for file in subject.tree.libraries.get(miss.name, ())]:
        return f"{miss.words} only newer processors find, in {', '.join(others)}"
    others = other_versions(miss.name, subject.tree.libraries)
    return f"{found}; they have {', '.join(others)}" if others else found


def _luck(file: InstalledFile) -> str:
    """Tell by which of its entries the file may find a library on the builder's machine."""
    hosts = [entry for entry in split_run_path(file.run_path) if not is_origin_relative(entry)]
    more = f" or {len(hosts) - _SHOWN} more places" if len(hosts) > _SHOWN else ""
    return f" (only a host that has it in {', '.join(hosts[:_SHOWN])}{more} finds it)" if hosts else ""


def _unreachable(subject: Subject) -> Iterator[Evidence]:
    for miss in _misses(subject):
        folders = _folders_of(subject, miss.name)
        if miss.refusal:
            yield Evidence(miss.user.source, _stop(miss, miss.refusal), _CLEAR)
        elif folders and (miss.file.path, miss.name) not in subject.inherited:
            yield _out_of_reach(miss, folders, is_prefix=subject.tree.is_prefix)


def _stop(miss: _Miss, refusal: Refusal) -> str:
    place = posixpath.relpath(refusal.path, SITE) if refusal.path.startswith(SITE) else refusal.path
    return f"{miss.words} the loader looks for no further than {place}: {refusal.reason}"


def _out_of_reach(miss: _Miss, folders: list[str], *, is_prefix: bool) -> Evidence:
    luck = _luck(miss.file) or ": only LD_LIBRARY_PATH or an earlier load would help"
    places = ", ".join(folder or "the top folder" for folder in folders)
    found = f"{miss.words} is in {places}, where its run path doesn't lead{luck}"
    mender = "have rocwheel build set it" if is_prefix else "run rocwheel repair"
    whose = "its" if miss.file is miss.user else f"the other's ({miss.file.name})"
    remedy = f"Add {origin_relative(folders[0], miss.file.folder)} to {whose} run path when linking, or {mender}."
    return Evidence(miss.user.source, found, remedy)


def _relies_on_inheritance(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.missed:
            if (process.file.path, search.name) in subject.inherited:
                yield Evidence(process.file.source, f"finds {search.name} only by the RPATH of whoever loads it")


def _unresolved_dlopen(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        missing = {search.name for search in process.missed}
        for name in subject.configuration.opened_by(process.file.path):
            if name in missing and _folders_of(subject, name):
                yield Evidence(process.file.source, f"opens {name} at run time, which its run path doesn't lead to")
            elif name in missing:
                found = f"opens {name} at run time, which none of the packages, the SDK and the system has"
                yield Evidence(process.file.source, found, _SHIP)


def _undeclared(subject: Subject) -> Iterator[Evidence]:
    for use in undeclared_uses(subject):
        found = f"{use.file.path} loads {use.name} from {use.provider}, which it doesn't require"
        yield Evidence(use.owner.label, found)


def _unintended(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.loader.searches:
            if search.requester or search.found is None or search.how is How.LOADED:
                continue
            own = _own_libraries(subject, process.file, search.name)
            found = subject.file_of(process.loader.objects[search.found].library)
            other = "the system's" if search.how is How.SYSTEM else found.path if found else ""
            if own and other and (found is None or found.distribution != process.file.distribution):
                yield Evidence(
                    process.file.source, f"needs {search.name} and finds {other} before its own {own[0].path}"
                )


def _own_libraries(subject: Subject, user: InstalledFile, name: str) -> list[InstalledFile]:
    """Return the libraries of a name that a file's package ships for any processor of the file's machine."""
    machine = user.elf.machine if user.elf else 0
    return [
        file
        for file in subject.tree.libraries.get(name, ())
        if file.distribution == user.distribution and file.elf and file.elf.machine == machine
        if not has_level(file.folder)
    ]


_SHIP = "Ship the library, require the package that has it, or build against the SDK version that is required."
_CLEAR = "Leave out that file, or have the run path name the folder of the library first."
_LINK = "Link with a run path that leads there ('rocwheel runpath for' prints it), or run rocwheel repair."

RULES = (
    Rule(
        "unresolved-library",
        Severity.ERROR,
        "Every NEEDED library is in the packages, in the SDK, or one that every system has.",
        _SHIP,
        _unresolved,
    ),
    Rule(
        "unreachable-library",
        Severity.ERROR,
        "The run path leads to every NEEDED library, without LD_LIBRARY_PATH and without luck.",
        _LINK,
        _unreachable,
    ),
    Rule(
        "inherited-run-path",
        Severity.WARNING,
        "A library finds what it needs by its own run path.",
        _LINK,
        _relies_on_inheritance,
    ),
    Rule(
        "unresolved-dlopen",
        Severity.ERROR,
        "The run path leads to every library that the configuration says is opened by name.",
        _LINK,
        _unresolved_dlopen,
    ),
    Rule(
        "undeclared-requirement",
        Severity.WARNING,
        "A package requires every package whose libraries it loads.",
        "Add it to the dependencies; rocwheel repair does.",
        _undeclared,
    ),
    Rule(
        "unintended-library",
        Severity.WARNING,
        "Where a package has a library itself, it loads its own.",
        "Put the folder of its own library first in the run path.",
        _unintended,
    ),
)
