"""Rules on libraries that are there, but where no run path leads."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.misses import find_misses, folders_with, host_hint
from rocwheel.audit.rules.missing_libraries import NOT_PROVIDED, SHIP
from rocwheel.linking.run_path_choice import origin_relative
from rocwheel.linking.tree_disk import SITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.misses import Miss
    from rocwheel.audit.subject import Subject
    from rocwheel.linking.loader import Refusal

__all__ = ["RULES"]


def _unreachable(subject: Subject) -> Iterator[Evidence]:
    for miss in find_misses(subject):
        folders = folders_with(subject, miss.name)
        if miss.refusal:
            yield Evidence(miss.user.source, _stop(miss, miss.refusal), _CLEAR)
        elif folders and (miss.file.path, miss.name) not in subject.inherited:
            yield _out_of_reach(miss, folders, is_prefix=subject.tree.is_prefix)


def _stop(miss: Miss, refusal: Refusal) -> str:
    place = posixpath.relpath(refusal.path, SITE) if refusal.path.startswith(SITE) else refusal.path
    return f"{miss.words}, but the loader stops its search at {place}: {refusal.reason}"


def _out_of_reach(miss: Miss, folders: list[str], *, is_prefix: bool) -> Evidence:
    places = ", ".join(folder or "the top folder" for folder in folders)
    hint = host_hint(miss.file) or ": only LD_LIBRARY_PATH or an earlier load would help"
    found = f"{miss.words}, which is in {places}, but its run path doesn't lead there{hint}"
    whose = "its run path" if miss.file is miss.user else f"the run path of {miss.file.name}"
    tool = "have rocwheel build set it" if is_prefix else "run rocwheel repair"
    entry = origin_relative(folders[0], miss.file.folder)
    return Evidence(miss.user.source, found, f"Add {entry} to {whose} when linking, or {tool}.")


def _inherited(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.missed:
            if (process.file.path, search.name) in subject.inherited:
                yield Evidence(process.file.source, f"finds {search.name} only by the RPATH of a file that loads it")


def _unresolved_dlopen(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        missing = {search.name for search in process.missed}
        for name in subject.settings.opened_by(process.file.path):
            if name in missing and folders_with(subject, name):
                found = f"opens {name} at run time, but its run path doesn't lead there"
                yield Evidence(process.file.source, found)
            elif name in missing:
                yield Evidence(process.file.source, f"opens {name} at run time, but {NOT_PROVIDED}", SHIP)


_CLEAR = "Remove that file, or put the folder of the library first in the run path."
_LINK = "Link with a run path that leads there ('rocwheel runpath for' prints it), or run rocwheel repair."

RULES = (
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
