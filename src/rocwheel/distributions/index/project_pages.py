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
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.scratch import is_scratch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.distributions.index.known_files import KnownIndex
    from rocwheel.distributions.index.place_files import Places
    from rocwheel.distributions.index.read_folder import Found
    from rocwheel.distributions.index.simple_pages import Page

__all__ = ["find_standing", "note_project", "write_page"]


def find_standing(
    places: Places, known: KnownIndex, found: Mapping[str, Found], projects: Mapping[str, Iterable[IndexEntry]]
) -> dict[str, KnownProject]:
    """Return the projects whose pages, and all that they list, are certainly as the last run has left them."""
    if known.base != places.base:
        return {}
    stale = {one.known.entry.project for name, one in found.items() if not _stands(places, known, name, one)}
    return {
        project: noted
        for project, entries in projects.items()
        if project not in stale
        and (noted := known.projects.get(project))
        and set(noted.files) == {entry.filename for entry in entries}
        and noted.stamps
        and noted.stamps == _stamps(f"{places.output}/{project}")
    }


def _stands(places: Places, known: KnownIndex, name: str, one: Found) -> bool:
    return one.known is known.files.get(name) and places.holds(one.known)


def write_page(folder: Path, page: Page) -> None:
    """Write a page in both forms, unless it stands there already."""
    write_changed(folder / "index.json", page.json)
    write_changed(folder / "index.html", page.html)


def note_project(folder: Path, entries: Iterable[IndexEntry], written_at: int) -> KnownProject:
    """Return what to know of a project whose folder has all that belongs there, and nothing that is stale.

    ``written_at`` is when the writing of its pages began, in nanoseconds since 1970.
    """
    # What another run is at work on goes without a trace in the folder's stamp, should that run be killed.
    is_at_work = any(is_scratch(path.name) for path in folder.iterdir())
    stamps = () if is_at_work else settled(_stamps(str(folder)), written_at)
    return KnownProject(tuple(entry.filename for entry in entries), stamps)


def _stamps(folder: str) -> tuple[FileStamp, ...]:
    """Return the stamps of a project's folder and its pages, links not followed; none unless all are there."""
    try:
        return tuple(FileStamp.of(os.lstat(path)) for path in (folder, *(f"{folder}/{page}" for page in PAGES)))
    except OSError:
        return ()
