"""The pages of the projects in an index: which of them stand as an earlier run has left them, and the others written.

Where nothing has changed, neither are the pages made again nor are those that stand there read. The stamps tell it: of
the distributions and of what was written for them, of the pages, and of the project's folder, which changes with every
file that comes or goes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.distributions.index.known_files import KnownProject
from rocwheel.distributions.index.previous import PAGES
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.files.file_stamp import FileStamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.distributions.index.known_files import KnownIndex
    from rocwheel.distributions.index.place_files import Places
    from rocwheel.distributions.index.read_folder import Found
    from rocwheel.distributions.index.simple_pages import Page

__all__ = ["find_standing", "write_page", "write_project"]


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


def write_project(folder: Path, page: Page, entries: Iterable[IndexEntry]) -> KnownProject:
    """Write the page of a project as `write_page` does, and return what to know of it."""
    write_page(folder, page)
    has_hidden = any(path.name.startswith(".") for path in folder.iterdir())
    # What another run is at work on goes without a trace in the folder's stamp, should that run be killed.
    return KnownProject(tuple(entry.filename for entry in entries), () if has_hidden else _stamps(str(folder)))


def _stamps(folder: str) -> tuple[FileStamp, ...]:
    """Return the stamps of a project's folder and its pages, links not followed; those alone that there are."""
    try:
        return tuple(FileStamp.of(os.lstat(path)) for path in (folder, *(f"{folder}/{page}" for page in PAGES)))
    except OSError:
        return ()
