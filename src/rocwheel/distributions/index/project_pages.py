"""The pages of the projects in an index: which of them stand as an earlier run has left them, and the others written.

Where nothing has changed, neither are the pages made again nor are those that stand there read. The stamps tell it: of
the distributions and of what was written for them, of the pages, and of the project's folder, which changes with every
file that comes or goes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.distributions.index.known_files import KnownProject, settled
from rocwheel.distributions.index.previous import PAGES
from rocwheel.distributions.index.simple_pages import make_digest
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.scratch import is_scratch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.distributions.index.known_files import KnownIndex
    from rocwheel.distributions.index.read_folder import Listed
    from rocwheel.distributions.index.simple_pages import Page

__all__ = ["find_standing", "is_standing_root", "note_project", "note_root", "write_page"]


def find_standing(
    output: Path, known: KnownIndex, listed: Iterable[Listed], projects: Mapping[str, Iterable[IndexEntry]]
) -> dict[str, KnownProject]:
    """Return the projects whose pages, and all that they list, are certainly as the last run has left them."""
    stale = {one.known.entry.project for one in listed if not _stands(known, one)}
    return {
        project: noted
        for project, entries in projects.items()
        if project not in stale
        and (noted := known.projects.get(project))
        and set(noted.files) == {entry.filename for entry in entries}
        and noted.stamps
        and noted.stamps == _stamps(f"{output}/{project}", with_folder=True)
    }


def _stands(known: KnownIndex, one: Listed) -> bool:
    return one.known is known.files.get(one.key) and one.places.holds(one.known)


def is_standing_root(output: Path, known: KnownIndex, projects: Collection[str]) -> bool:
    """Return whether the page that lists the projects certainly lists these, as the last run has left it."""
    stamps = known.root.stamps if known.root and known.is_finished else ()
    return bool(stamps) and known.projects.keys() == set(projects) and stamps == _stamps(str(output))


def write_page(folder: Path, page: Page, noted: KnownProject | None) -> list[str]:
    """Write a page in both forms, unless it stands there already.

    Return the paths of those whose bytes were not the ``noted`` ones: somebody has edited them.
    """
    edited = []
    digests = noted.digests if noted and len(noted.digests) == len(PAGES) else ("", "")
    # JSON first: the HTML page tells whose the folder is.
    for name, data, digest in (("index.json", page.json, digests[1]), ("index.html", page.html, digests[0])):
        replaced = write_changed(folder / name, data)
        if digest and replaced is not None and make_digest(replaced) != digest:
            edited.append(str(folder / name))
    return edited


def note_root(output: Path, digests: tuple[str, ...], written_at: int) -> KnownProject:
    """Return what to know of the page that lists the projects, of these digests; ``written_at`` as of a project's."""
    return KnownProject((), settled(_stamps(str(output)), written_at), digests)


def note_project(
    folder: Path, entries: Iterable[IndexEntry], digests: tuple[str, ...], written_at: int
) -> KnownProject:
    """Return what to know of a project whose folder has all that belongs there, and nothing that is stale.

    ``written_at`` is when the writing of its pages began, in nanoseconds since 1970.
    """
    # What another run is at work on goes without a trace in the folder's stamp, should that run be killed.
    is_at_work = any(is_scratch(path.name) for path in folder.iterdir())
    stamps = () if is_at_work else settled(_stamps(str(folder), with_folder=True), written_at)
    return KnownProject(tuple(entry.filename for entry in entries), stamps, digests)


def _stamps(folder: str, *, with_folder: bool = False) -> tuple[FileStamp, ...]:
    """Return the stamps of a folder's pages, its own before them, links not followed; none unless all are there."""
    paths = [folder] if with_folder else []
    try:
        return tuple(FileStamp.of(os.lstat(path)) for path in (*paths, *(f"{folder}/{page}" for page in PAGES)))
    except OSError:
        return ()
