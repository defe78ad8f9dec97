"""A simple index as a tree of static files, for ``file://`` and for any web server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.entry import IndexEntry
from rocwheel.distributions.index.known_files import KNOWN_NAME, KnownIndex, KnownProject, read_known, write_known
from rocwheel.distributions.index.listing import list_folder
from rocwheel.distributions.index.place_files import FilePlacement, Places
from rocwheel.distributions.index.places import check_output, check_targets
from rocwheel.distributions.index.previous import PAGES, read_previous, remove_stale
from rocwheel.distributions.index.project_pages import find_standing, note_project, write_page
from rocwheel.distributions.index.read_folder import Found, read_folder
from rocwheel.distributions.index.simple_pages import group_by_project, make_project_page, make_root_page
from rocwheel.distributions.index.yanked import KEEP_YANKED, Yanking, change_yanked, read_yanked
from rocwheel.foundation.files.scratch import remove_abandoned
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from rocwheel.distributions.index.known_files import KnownFile
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
    yanked: dict[str, str] = {}
    """Reasons of the files that are yanked (:pep:`592`), by name; empty for none."""


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
    yanking: Yanking = KEEP_YANKED,
) -> IndexReport:
    """Write a simple index over the wheels and sdists that stand in ``dist_dir`` into the folder ``output``.

    Each page is replaced as a whole, after the files that it lists and before the page that lists it: a reader sees
    each project either as it was or as it is now. What is gone is removed when no page lists it any more. Core metadata
    stands next to each file as ``FILE.metadata``. Only what an earlier run has written is replaced or removed. Files
    that an earlier run has read are not read again unless they have changed since. Files that were yanked stay so,
    but for the changes that ``yanking`` asks for.

    Raises `ProblemsError` with everything that is wrong in ``dist_dir``, before anything is written; with a list
    ``unread``, the problems of single files are appended to it, and the index lists all others. Raises `InputError` for
    folders that can't be used, and for what stands where the index has to go; `WorkError` when the index can't be
    written.
    """
    places = Places(dist_dir, output, placement)
    check_output(output, dist_dir, holds_files=places.holds_files)
    listing = list_folder(dist_dir, output)
    known = read_known(output)
    found = read_folder(dist_dir, listing, known.files, progress, unread)
    plan = _make_plan(places, known, found, listing.distributions, yanking)
    check_targets(output, plan.changed, [*plan.targets, output / KNOWN_NAME])
    previous = read_previous(output, known.written, plan.wanted)
    _remove_abandoned(dist_dir, output, {*previous, *plan.changed})
    if plan.changed or previous:
        # First: if this run is killed, the next one knows what it may have written.
        _note(plan, known.files, plan.standing, _join(previous, plan.wanted))
    placed = {name: one.known for name, one in plan.found.items()}
    placed |= {name: places.place(one) for name, one in plan.to_place.items()}
    begun = time.time_ns()
    _write_pages(plan)
    remove_stale(dist_dir, output, previous, plan.wanted)
    # Last: what is removed changes the folders' stamps.
    written = {project: note_project(output / project, entries, begun) for project, entries in plan.changed.items()}
    _note(plan, placed, {**plan.standing, **written}, plan.wanted)
    names = {project: [entry.filename for entry in entries] for project, entries in plan.projects.items()}
    return IndexReport(str(output), names, listing.ignored, listing.subfolders, plan.yanked)


class _Plan(msgspec.Struct, frozen=True):
    """What an index will hold, and what of it stands already."""

    places: Places
    found: dict[str, Found]
    projects: dict[str, list[IndexEntry]]
    wanted: dict[str, set[str]]
    """The names that belong in each project's folder."""
    standing: dict[str, KnownProject]
    """Those of the projects that need no work."""
    changed: dict[str, list[IndexEntry]]
    """The others."""
    yanked: dict[str, str]
    """Reasons of what is yanked, by file name."""

    @property
    def to_place(self) -> dict[str, Found]:
        """The distributions of the projects that have changed."""
        return {entry.filename: self.found[entry.filename] for entries in self.changed.values() for entry in entries}

    @property
    def targets(self) -> list[Path]:
        """What is written for these."""
        return [target for one in self.to_place.values() for target in self.places.targets(one.known)]


def _make_plan(
    places: Places, known: KnownIndex, found: dict[str, Found], names: Collection[str], yanking: Yanking
) -> _Plan:
    projects = group_by_project(one.known.entry for one in found.values())
    standing = find_standing(places, known, found, projects)
    edited = read_yanked(places.output, projects.keys() - standing.keys())
    yanked = change_yanked({**known.yanked, **edited}, yanking, names, places.dist_dir)
    moved = {name for name in {**known.yanked, **yanked} if known.yanked.get(name) != yanked.get(name)}
    standing = {project: noted for project, noted in standing.items() if moved.isdisjoint(noted.files)}
    wanted = _name_wanted(projects, holds_files=places.holds_files)
    changed = {project: entries for project, entries in projects.items() if project not in standing}
    return _Plan(places, found, projects, wanted, standing, changed, yanked)


def _name_wanted(projects: dict[str, list[IndexEntry]], *, holds_files: bool) -> dict[str, set[str]]:
    wanted = {project: {*PAGES} for project in projects}
    if holds_files:
        for project, entries in projects.items():
            wanted[project].update(entry.filename for entry in entries)
            wanted[project].update(f"{entry.filename}.metadata" for entry in entries if entry.metadata_sha256)
    return wanted


def _remove_abandoned(dist_dir: Path, output: Path, projects: Iterable[str]) -> None:
    """Remove what killed runs left, also where this run has nothing to write."""
    for folder in (dist_dir, output, *(output / project for project in projects)):
        remove_abandoned(folder)


def _note(
    plan: _Plan,
    files: Mapping[str, KnownFile],
    projects: Mapping[str, KnownProject],
    written: Mapping[str, Iterable[str]],
) -> None:
    names = {project: tuple(sorted(names)) for project, names in written.items()}
    known = KnownIndex(
        files=dict(files), written=names, base=plan.places.base, projects=dict(projects), yanked=plan.yanked
    )
    write_known(plan.places.output, known)


def _join(*parts: dict[str, set[str]]) -> dict[str, set[str]]:
    return {project: set().union(*(part.get(project, set()) for part in parts)) for part in parts for project in part}


def _write_pages(plan: _Plan) -> None:
    """Write the pages of what has changed, and then the one that lists all projects."""
    output, base = plan.places.output, plan.places.base
    for project, entries in plan.changed.items():
        write_page(output / project, make_project_page(project, entries, base, plan.yanked))
    write_page(output, make_root_page(plan.projects))
