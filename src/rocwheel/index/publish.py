"""Publishes the distributions of a folder to a store and updates the index there."""

from __future__ import annotations

import posixpath
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import raise_all
from rocwheel.index.extra_files import NextExtras
from rocwheel.index.families import taken_by
from rocwheel.index.folder_notes import KNOWN_NAME, LINKS_NAME, PUBLISHED_NAME
from rocwheel.index.pages import FRONT_PAGE, PAGES, families_in_root_page
from rocwheel.index.published import has_root_page
from rocwheel.index.store_notes import NotesFile, load
from rocwheel.index.store_pages import OneIndex
from rocwheel.index.upload_times import UploadTimes, read_clock, to_microseconds
from rocwheel.index.uploads import (
    Layout,
    Local,
    StoredIndex,
    find_family_indexes,
    find_leftovers,
    find_missing,
    list_stored,
    read_local,
    upload_all,
)
from rocwheel.index.write_index import IndexReport
from rocwheel.index.yanked import KEEP_YANKED, NAME_REMEDY, Yanking, change_yanked, share_yanking
from rocwheel.stores.folder import FolderStore
from rocwheel.wheels.file_names import parse_file_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.uploads import Upload
    from rocwheel.stores.store import Store, StoredFile


def is_family(store: Store, name: str) -> bool:
    """Return whether the store is a published index whose page links to the index of a family with this name."""
    page = load(store, Layout("").page("", "html")).data
    return name in families_in_root_page(page)


def change_published_marks(
    store: Store, yanking: Yanking, make_front: NextExtras, family: str | None = None
) -> IndexReport:
    """Change yank marks in the store's index, and in the family indexes below it that list the files.

    If a ``family`` is specified, only its index gets the marks, and the front page of the index above it is updated.
    Other publishers may run at the same time. The report contains only the projects of the files. Before any change,
    raises `InputError` if the store is not a published index or if no page lists a file. Raises `StoreError` for
    requests that the store rejects.
    """
    names = [*yanking.yanked, *yanking.unyanked]
    projects: dict[str, set[str]] = defaultdict(set)
    for name in names:
        projects[_project(name)].add(name)
    stored = list_stored(store, "")
    if LINKS_NAME in stored:
        raise InputError(store.url, "is an index of links", remedy="Yank the file in the index that contains it.")
    families = _find_families(store, stored)
    if not {"", family or ""} <= {*families}:
        remedy = "Use --output to specify the index that rocwheel publish wrote."
        raise InputError(store.url, "is not an index that rocwheel published", remedy=remedy)
    notes = {name: NotesFile(store, name) for name in families}
    # List the pages after reading the notes, so that a noted file that is not listed is certainly gone.
    pages = list_stored(store, "")
    problems: list[RocwheelError] = []
    indexes = {name: _open(store, name, pages, notes[name], make_front, problems) for name in families}
    raise_all(store.url, problems)
    marked = indexes if family is None else {family: indexes[family]}
    listed = {name: index.find(projects) for name, index in marked.items()}
    change_yanked({}, yanking, set[str]().union(*listed.values()), store.url)
    shared = share_yanking(yanking, listed)
    changed = [name for name in marked if shared[name] != KEEP_YANKED]
    reports = {name: indexes[name].mark(shared[name]) for name in changed if name}
    if "" in changed:
        reports[""] = indexes[""].mark(shared[""])
    else:
        indexes[""].show()
    first = reports.pop(family or "", None) or IndexReport(store.url, {}, (), ())
    edited = tuple(page for index in indexes.values() for page in index.edited)
    return IndexReport(first.output, first.projects, (), (), first.yanked, edited=edited, families=reports)


def _open(
    store: Store, family: str, pages: Mapping[str, StoredFile], notes: NotesFile, make_front: NextExtras,
    problems: list[RocwheelError],
) -> OneIndex:  # fmt: skip
    layout = Layout(family)
    index = StoredIndex(store, layout, pages, notes, family, find_family_indexes(layout, pages))
    has_front = index.layout.beside("", FRONT_PAGE) in pages
    return OneIndex(index, (), make_front if has_front else None, problems)


def _project(name: str) -> str:
    try:
        return parse_file_name(name).project
    except InputError as e:
        raise InputError(name, e.found, expected=e.expected, remedy=NAME_REMEDY.format("in the index")) from e


def _find_families(store: Store, stored: Collection[str]) -> list[str]:
    """Return the folders of the store that are published indexes. The main index has an empty name.

    Each of them has a page of all projects. A family index without files is omitted.
    """
    folders = {posixpath.dirname(name) for name in stored if posixpath.basename(name) in PAGES}
    above = {"", *map(posixpath.dirname, folders)} & folders  # no project has a page in a folder below its own folder
    return [folder for folder in sorted(above) if not _is_local(folder, stored) and has_root_page(store, folder)]


def _is_local(folder: str, stored: Collection[str]) -> bool:
    """Return whether the store contains a copy of an index that `rocwheel.index.write_index` wrote."""
    known, published = (posixpath.join(folder, name) in stored for name in (KNOWN_NAME, PUBLISHED_NAME))
    return known and not published


class PublishOptions(msgspec.Struct, frozen=True):
    """The options for publishing."""

    layout: Layout = Layout()
    upload_time: int | None = None
    """The date of all new files, in microseconds since 1970, or `None` for the time at which the store received each
    file.
    """
    is_dry_run: bool = False
    """Whether everything is checked but nothing is changed."""
    make_front: NextExtras | None = None
    """A function that returns the maker of front pages. With `None`, existing front pages remain."""
    cache: Path | None = None
    """A folder for this machine's records, so that files need not be read again."""


class PublishedFamily(msgspec.Struct, frozen=True):
    """The files and pages in a family's index that were published or, in a dry run, would be."""

    index: str
    listed: tuple[str, ...]
    pages: tuple[str, ...]


class PublishReport(msgspec.Struct, frozen=True):
    """The files and pages that were published or, in a dry run, would be."""

    store: str
    index: str
    """The URL of the index."""
    uploaded: tuple[str, ...]
    """The names of the new files. For a family's file, the name begins with the family's folder."""
    present: tuple[str, ...]
    """The names of the files that were already in the store."""
    listed: tuple[str, ...]
    """The names of the files that the index did not list before."""
    pages: tuple[str, ...]
    """Projects whose pages have changed."""
    ignored: tuple[str, ...]
    """The names of entries in the folder that are neither distributions nor family folders."""
    size: int
    """The total size of the uploaded files in bytes."""
    is_dry_run: bool
    families: dict[str, PublishedFamily] = {}
    """The family indexes, keyed by the name of their folder. Each index also lists the shared files."""
    leftovers: tuple[str, ...] = ()
    """The names of other unfinished uploads in the store. Their runs were killed or are still active."""
    edited: tuple[str, ...] = ()
    """The URLs of edited or damaged pages. These pages were restored, except for marks of yanked files."""


def publish(
    dist_dir: Path, store: Store, options: PublishOptions | None = None, progress: Progress = SILENT
) -> PublishReport:
    """Publish the wheels and sdists in ``dist_dir``, and return a report.

    Everything is checked first: each file as in `rocwheel.index.write_index`, and also against the published files.
    Then the files are stored, then the pages of their projects are changed, and then the page of all projects.
    Therefore, the index never lists a missing file, even if the run is killed, and a new run completes the work. Other
    publishers may run at the same time. No file is replaced or removed, and yanked files remain yanked.

    Before any change, raises `InputError` or `ProblemsError` for files that can't be published. Raises `StoreError` for
    requests that the store rejects.
    """
    options = options or PublishOptions()
    local = read_local(dist_dir, options.cache, progress)
    _require_apart(dist_dir, store, options.layout)
    work = _Work(store, options, progress, local)
    work.check()
    changed = work.predict() if options.is_dry_run else work.write()
    return work.report(changed)


def _require_apart(dist_dir: Path, store: Store, layout: Layout) -> None:
    """Raise `InputError` if files would be stored below their source folder, where the next run would find them."""
    if not isinstance(store, FolderStore):
        return
    source, place = dist_dir.resolve(), (store.folder / layout.files).resolve()
    if place != source and place.is_relative_to(source):
        found = f"would store its files in {place}, below their source folder"
        raise InputError(
            store.folder, found, expected="a store next to that folder or above it", remedy="Choose a different STORE."
        )


class _Work:
    """The indexes of a run, both the main index and family indexes, and the files to upload."""

    def __init__(self, store: Store, options: PublishOptions, progress: Progress, local: Local) -> None:
        self._store, self._options, self._progress, self._local = store, options, progress, local
        layout = options.layout
        layouts = {family: layout.of_family(family) for family in local.groups}
        notes = {family: NotesFile(store, one.index) for family, one in layouts.items()}
        # List the files after reading the notes, so that a noted file that is not listed is certainly gone.
        self._stored = list_stored(store, layout.files)
        pages = self._pages = list_stored(store, layout.index)
        self._problems: list[RocwheelError] = []
        places = {family: StoredIndex(store, one, pages, notes[family], family) for family, one in layouts.items()}
        below = find_family_indexes(layout, pages) | local.groups.keys() - {""}
        places[""] = msgspec.structs.replace(places[""], families=below)
        self._indexes = {
            family: OneIndex(places[family], uploads, options.make_front, self._problems)
            for family, uploads in local.groups.items()
        }
        if store.is_folder:
            self._times = read_clock(time.time_ns() // 1000, options.upload_time)
        else:
            self._times = UploadTimes(sys.maxsize, options.upload_time)  # the store's clock doesn't matter here
        self._missing: list[Upload] = []
        self._leftovers: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise all problems that prevent publishing, and find the files to upload."""
        listed = self._indexes[""].listed
        for family in self._local.groups:
            if taken := taken_by(family, listed):
                place = self._store.place(self._layout.of_family(family).index)
                remedy = "Rename the folder, or publish it separately with a different --output."
                self._problems.append(
                    InputError(place, f"is {taken}, so it can't be the index of a folder", remedy=remedy)
                )
        for layout in map(self._layout.of_family, self._local.groups):
            if layout.beside("", LINKS_NAME) in self._pages:
                place = self._store.place(layout.index)
                self._problems.append(InputError(place, "is an index of links", remedy="Choose a different --output."))
        raise_all(self._store.url, self._problems)
        known: dict[str, str] = {}
        for index in self._indexes.values():
            known |= index.known()
        self._leftovers = find_leftovers(self._store, self._local.uploads.values())
        self._missing = find_missing(self._store, self._layout, self._local.uploads.values(), self._stored, known)

    def predict(self) -> dict[str, set[str]]:
        """Return the projects in each index whose pages would change because of new files."""
        return {
            family: {project for project, entries in index.projects.items() if index.new() & {*_names(entries)}}
            for family, index in self._indexes.items()
        }

    def write(self) -> dict[str, set[str]]:
        """Upload the missing files and change the pages. Return the projects in each index whose pages have changed."""
        if isinstance(self._store, FolderStore):
            self._store.tidy()
        upload_all(self._store, self._layout, self._missing, self._progress)
        stored = self._stored
        if self._missing and self._options.upload_time is None:
            stored = list_stored(self._store, self._layout.files)  # the store's clock determines the dates
        return {
            family: self._indexes[family].write(
                self._dated(family, self._indexes[family], stored), self._times, self._progress
            )
            for family in sorted(self._indexes, reverse=True)  # the index that links to the other indexes comes last
        }

    def report(self, changed: Mapping[str, set[str]]) -> PublishReport:
        """Return a report of the changes that were made or, in a dry run, would be."""
        indexes = {family: self._report_one(family, changed[family]) for family in self._indexes}
        uploaded = {upload.name for upload in self._missing}
        first = indexes.pop("")
        return PublishReport(
            store=self._store.url,
            index=first.index,
            uploaded=tuple(sorted(uploaded)),
            present=tuple(sorted(self._local.uploads.keys() - uploaded)),
            listed=first.listed,
            pages=first.pages,
            ignored=self._local.ignored,
            size=sum(upload.entry.size for upload in self._missing),
            is_dry_run=self._options.is_dry_run,
            families=indexes,
            leftovers=self._leftovers,
            edited=tuple(page for index in self._indexes.values() for page in index.edited),
        )

    def _report_one(self, family: str, changed: set[str]) -> PublishedFamily:
        place = self._store.place(self._layout.of_family(family).index)
        return PublishedFamily(place, tuple(sorted(self._indexes[family].new())), tuple(sorted(changed)))

    @property
    def _layout(self) -> Layout:
        return self._options.layout

    def _dated(self, family: str, index: OneIndex, stored: Mapping[str, StoredFile]) -> dict[str, list[IndexEntry]]:
        """Return the files of each project. New files have the specified date, or a date from the store's clock.

        Any run on any machine that continues the work uses the same dates. For a folder, this is the clock of this
        machine or of another machine that writes there. Dates in the future are replaced with the current date.
        """
        new = index.new()
        names = {one.entry.filename: self._layout.file(one.name) for one in self._local.groups[family]}

        def date(entry: IndexEntry) -> IndexEntry:
            if entry.filename not in new:
                return entry
            file = stored.get(names[entry.filename])
            changed = to_microseconds(file.modified) if file and file.modified else entry.upload_time
            return msgspec.structs.replace(entry, upload_time=self._times.choose(None, changed))

        return {project: [date(entry) for entry in entries] for project, entries in index.projects.items()}


def _names(entries: Sequence[IndexEntry]) -> list[str]:
    return [entry.filename for entry in entries]
