"""What an index will hold, and which of it stands already: nothing is written yet.

Where nothing has changed, neither are the pages made again nor are those that stand there read. The stamps tell it: of
the distributions and of what was written for them, of the pages, and of the project's folder, which changes with every
file that comes or goes.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.index.entry import IndexEntry
from rocwheel.index.folder import Listed
from rocwheel.index.folder_notes import KnownProject
from rocwheel.index.pages import PAGES, VariantsFile, group_by_project, read_times
from rocwheel.index.placing import page_stamps
from rocwheel.index.yanked import change_yanked, read_yanked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from rocwheel.core.reading import FileStamp
    from rocwheel.index.folder import Source
    from rocwheel.index.folder_notes import KnownIndex
    from rocwheel.index.upload_times import UploadTimes
    from rocwheel.index.yanked import Yanking


def find_standing(
    output: Path,
    known: KnownIndex,
    sources: Iterable[Source],
    listed: Iterable[Listed],
    projects: Mapping[str, Iterable[IndexEntry]],
) -> dict[str, KnownProject]:
    """Return the projects whose pages, and all that they list, are certainly as the last run has left them."""
    beside = {source.placer: source.listing.beside for source in sources}
    stale = {one.known.entry.project for one in listed if not _stands(known, one, beside[one.placer])}
    return {
        project: noted
        for project, entries in projects.items()
        if project not in stale
        and (noted := known.projects.get(project))
        and noted.files == tuple([entry.filename for entry in entries])
        and noted.stamps
        and noted.stamps == page_stamps(f"{output}/{project}", with_folder=True)
    }


def _stands(known: KnownIndex, one: Listed, beside: Mapping[str, FileStamp]) -> bool:
    noted = one.found.known
    return noted is known.files.get(one.key) and one.placer.holds(noted, beside)


def is_standing_root(output: Path, known: KnownIndex, projects: Collection[str], families: Iterable[str]) -> bool:
    """Return whether the page that lists the projects certainly lists these and names these families.

    Then it is as the last run has left it.
    """
    root = known.root if known.is_finished else None
    if not (root and root.stamps and root.files == tuple(families)):
        return False
    return known.projects.keys() == set(projects) and root.stamps == page_stamps(str(output))


_PAGES = frozenset(PAGES)


class IndexPlan(msgspec.Struct, frozen=True, dict=True):
    """What an index will hold, and what of it stands already."""

    listed: dict[str, Listed]
    """By file name."""
    projects: dict[str, list[IndexEntry]]
    standing: dict[str, KnownProject]
    """Those of the projects that need no work."""
    changed: dict[str, list[IndexEntry]]
    """The others."""
    yanked: dict[str, str]
    """Reasons of what is yanked, by file name."""
    variants: dict[str, list[VariantsFile]] = {}
    """The files that list the variants of versions, by project."""

    @property
    def to_place(self) -> list[Listed]:
        """The distributions of the projects that have changed."""
        return [self.listed[entry.filename] for entries in self.changed.values() for entry in entries]

    @property
    def targets(self) -> list[Path]:
        """What is written for these, but for the pages and what stands beside them."""
        return [target for one in self.to_place for target in one.placer.targets(one.known)]

    @cached_property
    def bases(self) -> dict[str, str]:
        """What leads from a project's folder to each file."""
        bases = {places: places.base for places in {one.placer for one in self.listed.values()}}
        beside = {one.entry.filename: "" for files in self.variants.values() for one in files}
        return {name: bases[one.placer] for name, one in self.listed.items()} | beside

    def linked(self, project: str) -> list[IndexEntry]:
        """Return what the page of a project links to."""
        return [*self.projects[project], *(one.entry for one in self.variants.get(project, ()))]

    @cached_property
    def wanted(self) -> dict[str, AbstractSet[str]]:
        """The names that belong in each project's folder."""
        more: defaultdict[str, set[str]] = defaultdict(set)
        for project, files in self.variants.items():
            more[project].update(one.entry.filename for one in files)
        for entry in (one.known.entry for one in self.listed.values() if one.placer.holds_files):
            more[entry.project].add(entry.filename)
            if entry.metadata_sha256:
                more[entry.project].add(f"{entry.filename}.metadata")
        # One set for all that have their pages alone, as thousands may.
        return {project: _PAGES | more[project] if project in more else _PAGES for project in self.projects}


def date_listed(
    listed: Mapping[str, Listed], output: Path, known: KnownIndex, times: UploadTimes
) -> tuple[dict[str, Listed], tuple[str, ...]]:
    """Return distributions with the dates of their upload, and the names of new ones that are dated in the future."""
    pages: dict[str, dict[tuple[str, str], int]] = {}
    dated, future = dict(listed), []
    for name, one in listed.items():
        entry = one.known.entry
        if (noted := known.files.get(one.key)) is one.known and not times.is_future(entry.upload_time):
            continue
        if noted and noted.entry.sha256 == entry.sha256:
            earlier: int | None = noted.entry.upload_time
        else:
            if entry.project not in pages:
                pages[entry.project] = read_times(output / entry.project)
            earlier = pages[entry.project].get((name, entry.sha256))
        changed = one.known.stamp.modified // 1000
        dated[name] = _dated(one, times.choose(earlier, changed))
        if times.given is None and changed > times.now:
            future.append(name)
    return dated, tuple(future)


def _dated(one: Listed, time: int) -> Listed:
    if one.known.entry.upload_time == time:
        return one
    entry = msgspec.structs.replace(one.known.entry, upload_time=time)
    found = one.found._replace(known=msgspec.structs.replace(one.known, entry=entry))
    return one._replace(found=found)


def plan_index(
    output: Path, known: KnownIndex, sources: Sequence[Source], listed: dict[str, Listed], yanking: Yanking
) -> IndexPlan:
    """Return the plan for an index of what is ``listed`` of the sources; what can't be read may be yanked, too.

    Raises `InputError` for what can't be yanked.
    """
    names = {name for source in sources for name in source.listing.distributions}
    projects = group_by_project(one.known.entry for one in listed.values())
    standing = find_standing(output, known, sources, listed.values(), projects)
    edited = read_yanked(output, projects.keys() - standing.keys())
    yanked = change_yanked({**known.yanked, **edited}, yanking, names, _folder(listed, output))
    moved = {name for name in {**known.yanked, **yanked} if known.yanked.get(name) != yanked.get(name)}
    standing = {project: noted for project, noted in standing.items() if moved.isdisjoint(noted.files)}
    changed = {project: entries for project, entries in projects.items() if project not in standing}
    return IndexPlan(listed, projects, standing, changed, yanked)


def _folder(listed: Mapping[str, Listed], output: Path) -> Path | str:
    """Return what to name where it lacks a file: the only folder, else the index."""
    folders = {one.placer.dist_dir for one in listed.values()}
    return folders.pop() if len(folders) == 1 else str(output)
