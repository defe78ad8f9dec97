"""What each file of a wheel finds, and where."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.linking.tree_disk import SITE, place_of
from rocwheel.repair.comparing.ways import find_ways

if TYPE_CHECKING:
    from rocwheel.audit.subject import Process, Subject
    from rocwheel.installed.tree import Distribution
    from rocwheel.linking.loader import Search

__all__ = ["Found", "what_files_find", "what_is_found"]


class Found(msgspec.Struct, frozen=True):
    """Where a file finds one library."""

    library: str
    where: Literal["wheel", "package", "system", "kept", "nothing"]
    """``kept``: only in folders that the old run path named already, on a machine that has it there."""
    place: str = ""
    """The package's name; the folder in the wheel; the folders that are kept, with colons between.

    Those are named as in site-packages, and outside of it as the run path has them.
    """


def what_files_find(subject: Subject, owner: Distribution) -> dict[str, tuple[Found, ...]]:
    """Return what each loadable file of a wheel finds of what it needs or opens by name, by the member's name."""
    processes = [process for process in subject.processes if process.file.distribution == owner.source]
    return {process.file.member: _finds(subject, owner, process) for process in processes}


def what_is_found(subject: Subject, owner: Distribution, process: Process, user: str, name: str) -> Found | None:
    """Return where a file of a process, given by its place, finds a library; None if it doesn't look for it."""
    objects = process.loader.objects
    searches = (search for search in process.loader.searches if search.name == name)
    asked = (search for search in searches if place_of(objects[search.requester].library) == user)
    return next((_found(subject, owner, process, search) for search in asked), None)


def _finds(subject: Subject, owner: Distribution, process: Process) -> tuple[Found, ...]:
    own = {search.name: search for search in process.loader.searches if search.requester == 0}
    return tuple(_found(subject, owner, process, search) for search in own.values())


def _found(subject: Subject, owner: Distribution, process: Process, search: Search) -> Found:
    if search.found is None:
        ways = find_ways(subject, process, search.requester, search.name, ())
        folders = ":".join(words for folder, words in ways.folders.items() if not _is_at_hand(subject, folder))
        return Found(search.name, "kept" if folders else "nothing", folders)
    library = process.loader.objects[search.found].library
    provider = subject.provider_of(library)
    if provider == owner.name:
        return Found(search.name, "wheel", posixpath.dirname(place_of(library)))
    return Found(search.name, "package", provider) if provider else Found(search.name, "system")


def _is_at_hand(subject: Subject, folder: str) -> bool:
    """Return whether a folder is one of the packages at hand: nothing is known of those around site-packages."""
    return f"{folder}/".startswith(f"{SITE}/") and subject.disk.is_folder(folder)
