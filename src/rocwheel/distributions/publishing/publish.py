"""The job: distributions of a folder go to a store, and into the index there."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.pages.simple_pages import group_by_project
from rocwheel.distributions.index.placing.place_files import FilePlacement, Places
from rocwheel.distributions.index.reading.listing import list_folder
from rocwheel.distributions.index.reading.read_folder import Source, read_folders
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.distributions.publishing.pages import Pages
from rocwheel.distributions.publishing.published import Published, merge
from rocwheel.distributions.publishing.uploads import AT_ONCE, Upload, find_missing, list_stored, upload_all
from rocwheel.foundation.collecting import attempt_all, raise_all
from rocwheel.foundation.errors import InputError, ProblemsError
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.foundation.workers import open_workers
from rocwheel.stores.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.stores.store import Store

__all__ = ["PublishOptions", "PublishReport", "publish"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class PublishOptions(msgspec.Struct, frozen=True):
    """How to publish."""

    layout: Layout = Layout()
    upload_time: int | None = None
    """Of all files that are new, in microseconds since 1970; none for the time at which the store got each."""
    is_dry_run: bool = False
    """Whether to look at everything and change nothing."""


class PublishReport(msgspec.Struct, frozen=True):
    """What was published, or would be."""

    store: str
    index: str
    """The URL of the index."""
    uploaded: tuple[str, ...]
    """Names of the files that were not there."""
    present: tuple[str, ...]
    """Names of those that were."""
    listed: tuple[str, ...]
    """Names of those that the index has not listed before."""
    pages: tuple[str, ...]
    """Projects whose pages have changed."""
    ignored: tuple[str, ...]
    """Names in the folder that are neither wheels nor sdists, and of folders in it."""
    size: int
    """Bytes of what was uploaded."""
    is_dry_run: bool


def publish(
    dist_dir: Path, store: Store, options: PublishOptions | None = None, progress: Progress = SILENT
) -> PublishReport:
    """Publish the wheels and sdists that stand in ``dist_dir``, and return what was done.

    Everything is checked first: each file as `rocwheel.distributions.index.write_index` checks it, and against what is
    published. Then the files are stored, then the pages of their projects changed, then the page of all projects: the
    index never lists what is not there, also after a kill, and a new run does what is left to do. Others may publish at
    the same time. No file is replaced, nothing is removed, and yanked files stay so.

    Raises `InputError`, or `ProblemsError`, for what can't be published, before anything is changed; `StoreError` for
    what the store refuses.
    """
    options = options or PublishOptions()
    layout = options.layout
    listing = list_folder(dist_dir, dist_dir)
    source = Source(Places(dist_dir, dist_dir, FilePlacement.RELATIVE), listing, "")
    found = read_folders([source], {}, progress, None, {})
    uploads = {name: Upload(one.known.entry, one.known.stamp, one.metadata) for name, one in found.items()}
    projects = group_by_project(upload.entry for upload in uploads.values())
    pages = Pages(store, layout)
    before = _read_pages(pages, projects, store)
    _check(store, layout, projects, before)
    stored = list_stored(store, layout.files)
    known = {name: entry.sha256 for page in before.values() for name, entry in page.entries.items()}
    missing = find_missing(store, layout, uploads.values(), stored, known)
    changed: set[str] = {upload.entry.project for upload in uploads.values() if upload.entry.filename not in known}
    if not options.is_dry_run:
        upload_all(store, layout, dist_dir, missing, progress)
        changed = _write_pages(pages, _dated(store, options, projects, known), progress)
    listed = tuple(sorted(name for name in uploads if name not in known))
    uploaded = tuple(sorted(upload.entry.filename for upload in missing))
    return PublishReport(
        store=store.url,
        index=store.place(layout.index),
        uploaded=uploaded,
        present=tuple(sorted(uploads.keys() - set(uploaded))),
        listed=listed,
        pages=tuple(sorted(changed)),
        ignored=(*listing.ignored, *listing.subfolders),
        size=sum(upload.entry.size for upload in missing),
        is_dry_run=options.is_dry_run,
    )


def _read_pages(pages: Pages, projects: Mapping[str, object], store: Store) -> dict[str, Published]:
    """Return what is published of each project; raise everything that is wrong with the pages."""
    problems: list[RocwheelError] = []

    def read(project: str) -> Published:
        try:
            return pages.read(project)
        except StoreError:  # as it would fail for every other page
            raise
        except (InputError, ProblemsError) as e:
            problems.append(e)
            return Published()

    with open_workers(AT_ONCE) as executor:
        published = dict(zip(projects, executor.map(read, projects), strict=True))
    attempt_all(Pages.check_root, [pages], problems)
    raise_all(store.url, problems)
    return published


def _check(
    store: Store, layout: Layout, projects: Mapping[str, Sequence[IndexEntry]], before: Mapping[str, Published]
) -> None:
    problems: list[RocwheelError] = []

    def check(project: str) -> Published:
        place = store.place(layout.page(project, "json"))
        return merge(place, before[project], projects[project], layout.base)

    attempt_all(check, projects, problems)
    raise_all(store.url, problems)


def _dated(
    store: Store, options: PublishOptions, projects: Mapping[str, Sequence[IndexEntry]], known: Mapping[str, str]
) -> dict[str, list[IndexEntry]]:
    """Return the files of each project, new ones with the date that is given, else with that of the store's own clock.

    That is the same for whoever goes on with what another run has begun, and on whatever machine.
    """

    def date(entry: IndexEntry) -> IndexEntry:
        if entry.filename in known:
            return entry
        time = options.upload_time
        if time is None:
            modified = store.head(options.layout.file(entry.filename)).modified
            time = int((modified - _EPOCH).total_seconds() * 1_000_000) if modified else entry.upload_time
        return msgspec.structs.replace(entry, upload_time=time)

    with open_workers(AT_ONCE) as executor:
        return {project: list(executor.map(date, entries)) for project, entries in projects.items()}


def _write_pages(pages: Pages, projects: Mapping[str, Sequence[IndexEntry]], progress: Progress) -> set[str]:
    """Write the pages of projects and then that of all; return the projects whose pages have changed."""
    waiting = {project: entries for project, entries in projects.items() if not pages.stand(project, entries)}
    progress.begin("writing pages", len(waiting))
    changed = set()
    with open_workers(AT_ONCE) as executor:
        for project, has_changed in zip(
            waiting, executor.map(lambda item: pages.add(*item), waiting.items()), strict=True
        ):
            changed |= {project} if has_changed else set()
            progress.advance(1)
    pages.add_projects(projects)
    progress.end()
    return changed
