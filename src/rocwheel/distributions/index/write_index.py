"""A simple index as a tree of static files, for ``file://`` and for any web server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.known_files import KNOWN_NAME, read_known, write_known
from rocwheel.distributions.index.listing import list_folder
from rocwheel.distributions.index.place_files import FilePlacement, Places
from rocwheel.distributions.index.places import check_output, check_targets
from rocwheel.distributions.index.previous import PAGES, read_previous, remove_stale
from rocwheel.distributions.index.read_folder import read_folder
from rocwheel.distributions.index.simple_pages import Page, group_by_project, make_project_page, make_root_page
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.files.scratch import remove_abandoned
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.distributions.index.entry import IndexEntry
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["FilePlacement", "IndexReport", "default_output", "write_index"]


class IndexReport(msgspec.Struct, frozen=True):
    """What an index holds."""

    output: str
    projects: dict[str, list[str]]
    """File names by project."""
    ignored: tuple[str, ...]
    """Names in the folder that are neither wheels nor sdists."""
    subfolders: tuple[str, ...]
    """Names of folders in it that hold distributions; these are not in the index."""


def default_output(dist_dir: Path) -> Path:
    """Return the absolute path where the index of ``dist_dir`` goes by default: folders side by side have one each."""
    folder = dist_dir.resolve()
    return folder.parent / ("simple" if folder.name in ("dist", "") else f"simple-{folder.name}")


def write_index(
    dist_dir: Path,
    output: Path,
    *,
    placement: FilePlacement = FilePlacement.RELATIVE,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
) -> IndexReport:
    """Write a simple index over the wheels and sdists that stand in ``dist_dir`` into the folder ``output``.

    Each page is replaced as a whole, after the files that it lists and before the page that lists it: a reader sees
    each project either as it was or as it is now. What is gone is removed when no page lists it any more. Core metadata
    stands next to each file as ``FILE.metadata``. Only what an earlier run has written is replaced or removed. Files
    that an earlier run has read are not read again unless they have changed since.

    Raises `ProblemsError` with everything that is wrong in ``dist_dir``, before anything is written; with a list
    ``unread``, the problems of single files are appended to it, and the index lists all others. Raises `InputError` for
    folders that can't be used, and for what stands where the index has to go; `WorkError` when the index can't be
    written.
    """
    places = Places(dist_dir, output, placement)
    check_output(output, dist_dir, holds_files=places.holds_files)
    listing = list_folder(dist_dir, output)
    known = read_known(output)
    found = read_folder(dist_dir, listing.distributions, known.files, progress, unread)
    projects = group_by_project(one.known.entry for one in found.values())
    targets = [target for one in found.values() for target in places.targets(one.known)]
    check_targets(output, projects, [*targets, output / KNOWN_NAME])
    wanted = _name_wanted(projects, places)
    previous = read_previous(output, known.written, wanted)
    _remove_abandoned(dist_dir, output, {*previous, *wanted})
    # First: if this run is killed, the next one knows what it may have written.
    write_known(output, known.files, _join(previous, wanted))
    placed = {name: places.place(one) for name, one in found.items()}
    base = places.base
    for project, entries in projects.items():
        _write_page(output / project, make_project_page(project, entries, base))
    _write_page(output, make_root_page(projects))
    remove_stale(dist_dir, output, previous, wanted)
    write_known(output, placed, wanted)
    names = {project: [entry.filename for entry in entries] for project, entries in projects.items()}
    return IndexReport(str(output), names, listing.ignored, listing.subfolders)


def _remove_abandoned(dist_dir: Path, output: Path, projects: Iterable[str]) -> None:
    """Remove what killed runs left, also where this run has nothing to write."""
    for folder in (dist_dir, output, *(output / project for project in projects)):
        remove_abandoned(folder)


def _name_wanted(projects: dict[str, list[IndexEntry]], places: Places) -> dict[str, set[str]]:
    """Return the names that belong in each project's folder."""
    wanted = {project: {*PAGES} for project in projects}
    if places.holds_files:
        for project, entries in projects.items():
            wanted[project].update(entry.filename for entry in entries)
            wanted[project].update(f"{entry.filename}.metadata" for entry in entries if entry.metadata_sha256)
    return wanted


def _join(*parts: dict[str, set[str]]) -> dict[str, set[str]]:
    return {project: set().union(*(part.get(project, set()) for part in parts)) for part in parts for project in part}


def _write_page(folder: Path, page: Page) -> None:
    write_changed(folder / "index.json", page.json)
    write_changed(folder / "index.html", page.html)
