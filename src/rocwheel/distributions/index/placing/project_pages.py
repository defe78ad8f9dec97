"""The pages of the projects in an index: written, and noted for the next run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.core.reading import FileStamp
from rocwheel.core.scratch import is_scratch
from rocwheel.distributions.index.notes.known_files import KnownProject, settled
from rocwheel.distributions.index.pages.simple_pages import PAGES, make_digest
from rocwheel.distributions.index.write_changed import write_changed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.pages.simple_pages import Page

__all__ = ["note_project", "note_root", "page_stamps", "write_page"]


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


def note_root(output: Path, families: Iterable[str], digests: tuple[str, ...], written_at: int) -> KnownProject:
    """Return what to know of the page that lists the projects, and names ``families``; else as `note_project`."""
    return KnownProject(tuple(families), settled(page_stamps(str(output)), written_at), digests)


def note_project(
    folder: Path, entries: Iterable[IndexEntry], digests: tuple[str, ...], written_at: int
) -> KnownProject:
    """Return what to know of a project whose folder has all that belongs there, and nothing that is stale.

    ``written_at`` is when the writing of its pages began, in nanoseconds since 1970.
    """
    # What another run is at work on goes without a trace in the folder's stamp, should that run be killed.
    is_at_work = any(is_scratch(path.name) for path in folder.iterdir())
    stamps = () if is_at_work else settled(page_stamps(str(folder), with_folder=True), written_at)
    return KnownProject(tuple(entry.filename for entry in entries), stamps, digests)


def page_stamps(folder: str, *, with_folder: bool = False) -> tuple[FileStamp, ...]:
    """Return the stamps of a folder's pages, its own before them, links not followed; none unless all are there."""
    of, lstat = FileStamp.of, os.lstat  # asked for thousands of folders
    html, json = PAGES
    try:
        pages = of(lstat(f"{folder}/{html}")), of(lstat(f"{folder}/{json}"))
        return (of(lstat(folder)), *pages) if with_folder else pages
    except OSError:
        return ()
