"""Writes indexes whose pages link to files on other servers: an index for each stream, and a combined index.

Next to its pages, each index stores the hash of every file that it has ever listed. A file whose hash has changed is
rejected, even if the upstream index removed the file in the meantime. Everything is read and checked before anything is
written.
"""

from __future__ import annotations

import hashlib
import posixpath
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress, step
from rocwheel.core.workers import open_workers, raise_all, serialized
from rocwheel.index.entry import IndexEntry
from rocwheel.index.folder_notes import LINKS_NAME
from rocwheel.index.pages import (
    METADATA_SUFFIX,
    group_by_project,
    is_project_page,
    is_root_page,
    make_project_page,
    make_root_page,
)
from rocwheel.index.published import require_own
from rocwheel.index.source import read_text
from rocwheel.index.store_notes import NOTHING, load, swap, until_done
from rocwheel.index.upload_times import parse_time, to_microseconds
from rocwheel.index.uploads import AT_ONCE, Layout, list_stored
from rocwheel.index.upstreams import choose_links
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import ForbiddenError, MissingFileError, StoreError
from rocwheel.stores.urls import shown_url
from rocwheel.stores.web import find_web_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.index.pages import Page
    from rocwheel.index.trust import ListedFile
    from rocwheel.index.upstreams import Upstreams
    from rocwheel.stores.store import LoadedFile, Store


_FORMAT = 1
_FORMS = ("json", "html")
"""The formats of pages. The JSON page comes first, because the HTML page indicates which program owns the folder."""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """The information about a file that doesn't change as long as its hash remains the same."""

    sha256: str
    size: int
    upload_time: int
    """The upload time in microseconds since 1970."""
    metadata_sha256: str = ""
    """The hash of the core metadata on the other server; empty if the server has no core metadata for the file."""


class LinkNotes(msgspec.Struct, frozen=True):
    """The contents of `LINKS_NAME`."""

    format: int = _FORMAT
    streams: tuple[str, ...] = ()
    """The streams below the united index."""
    pages: tuple[str, ...] = ()
    """The projects that have pages."""
    files: dict[str, dict[str, Seen]] = {}
    """Every file that the index has listed, keyed by project and file name."""


class LinkedIndex(msgspec.Struct, frozen=True):
    """The contents of an index, and the changes since the previous run."""

    index: str
    """The location of the index."""
    projects: dict[str, list[str]]
    """The file names of each project."""
    yanked: dict[str, str]
    """The reasons for yanking files, keyed by file name."""
    new: tuple[str, ...]
    """Names of the files that the index didn't list before."""
    removed: tuple[str, ...]
    """Names of the files that the other indexes no longer list."""
    changed: tuple[str, ...]
    """Projects whose pages have changed or, in a dry run, would change."""


def write_links(
    upstreams: Upstreams, store: Store, layout: Layout, *, is_dry_run: bool = False, progress: Progress = SILENT
) -> dict[str, LinkedIndex]:
    """Write the indexes of all streams to a store, and return them, keyed by stream.

    The united index has an empty name.

    The pages contain the hashes, yank marks, dates, and required Python versions from the other indexes. Sizes and
    dates that a page lacks are requested from the file's server. Core metadata is listed only if the server provides it
    with the correct hash. Before any change, raises all problems: the problems from `choose_links`, and changed hashes.
    Files that no longer exist on their server are omitted, and the errors about them are raised at the end.
    """
    with step(progress, "reading the indexes"):
        chosen = choose_links(upstreams)
    problems: list[RocwheelError] = []
    seen: dict[tuple[str, str], Seen] = {}

    def attempt() -> dict[str, LinkedIndex]:
        problems.clear()
        if isinstance(store, FolderStore) and not is_dry_run:
            list_stored(store, layout.index)
            store.tidy()  # these are unfinished files of killed runs
        works = {stream: _Work(store, layout.of_family(stream)) for stream in chosen}
        gone = [_Work(store, layout.of_family(stream)) for stream in works[""].notes.streams if stream not in chosen]
        changed = [error for stream, work in works.items() for error in work.changed_hashes(chosen[stream])]
        raise_all(store.url, [*changed, *(error for work in gone for error in work.changed_hashes(chosen[""]))])
        for stream, work in works.items():
            work.read_pages(chosen[stream])
        known = {(name, one.sha256): one for work in works.values() for name, one in work.seen.items()}
        files = [file for groups in chosen.values() for group in groups.values() for file in group]
        _examine(files, known, seen, problems, progress)
        if not any((file.filename, file.sha256) in seen for file in files):
            raise_all(store.url, problems)
        names = [stream for stream in chosen if stream]
        return {  # the index that links to the other indexes comes last
            stream: works[stream].write(chosen[stream], seen, () if stream else names, is_dry_run=is_dry_run)
            for stream in reversed(chosen)
        }

    written = until_done(attempt)
    raise_all(store.url, problems)
    return dict(reversed(written.items()))


class _Work:
    """The work on one index of the store."""

    def __init__(self, store: Store, layout: Layout) -> None:
        """Read the notes. Raise `InputError` if the folder contains an index of files instead of an index of links."""
        self._store, self._layout = store, layout
        self._before = load(store, self._name)
        self.notes = _read_notes(self._place, self._before)
        self._pages: dict[str, bytes] = {}
        html = load(store, layout.page("", "html")).data
        require_own(store.place(layout.page("", "html")), is_own=not html or is_root_page(html))
        if html and self._before is NOTHING:
            found = "is an index of files, not an index of links"
            raise InputError(store.place(layout.page("", "html")), found, remedy="Choose a different --output.")

    @property
    def _name(self) -> str:
        return posixpath.join(self._layout.index, LINKS_NAME)

    @property
    def _place(self) -> str:
        return self._store.place(self._name)

    @property
    def seen(self) -> dict[str, Seen]:
        """The files that the index has listed, keyed by name."""
        return {name: one for files in self.notes.files.values() for name, one in files.items()}

    def changed_hashes(self, chosen: Mapping[str, Sequence[ListedFile]]) -> Iterator[InputError]:
        """Yield an error for each file whose hash differs from the hash that this index listed."""
        for project, files in chosen.items():
            known = self.notes.files.get(project, {})
            for file in files:
                before = known.get(file.filename)
                if before and before.sha256 != file.sha256:
                    found = f"has the SHA-256 {file.sha256}, but this index already listed another hash"
                    remedy = f"Contact the publisher. If you trust the new file, remove its entry from {self._place}."
                    yield InputError(shown_url(file.url), found, expected=before.sha256, remedy=remedy)

    def write(
        self,
        chosen: Mapping[str, Sequence[ListedFile]],
        seen: Mapping[tuple[str, str], Seen],
        streams: Sequence[str],
        *,
        is_dry_run: bool,
    ) -> LinkedIndex:
        """Write the hashes, then the pages of projects, then the page of all projects. Finally, remove other pages."""
        found = {
            project: [one for one in files if (one.filename, one.sha256) in seen] for project, files in chosen.items()
        }
        found = {project: files for project, files in found.items() if files}
        pages = {project: _make_page(project, files, seen) for project, files in found.items()}
        facts = {
            project: {file.filename: seen[file.filename, file.sha256] for file in files}
            for project, files in found.items()
        }
        before = self._pages
        listed = {name for page in before.values() for name in _listed_names(page)}
        report = self._report(found, listed, [name for name, page in pages.items() if before.get(name) != page.json])
        if is_dry_run:
            return report
        notes = self.notes
        files = {name: {**notes.files.get(name, {}), **facts.get(name, {})} for name in {*notes.files, *facts}}
        ordered = {name: dict(sorted(files[name].items())) for name in sorted(files)}
        gone = [stream for stream in notes.streams if stream not in streams]
        self._note(LinkNotes(_FORMAT, (*streams, *gone), tuple(sorted({*pages, *notes.pages})), ordered))
        with open_workers(AT_ONCE) as executor:
            for _ in executor.map(self._write_page, pages, pages.values()):
                pass
        self._write_page("", make_root_page(pages, families=sorted(streams)))
        for stream in gone:
            _Work(self._store, self._layout.of_family(stream)).remove()
        for project in {*notes.pages} - pages.keys():
            self._remove_page(project)
        self._note(LinkNotes(_FORMAT, (*streams,), tuple(sorted(pages)), ordered))
        return report

    def remove(self) -> None:
        """Remove the pages of an index that is no longer needed. The hashes stay."""
        if self._before is NOTHING:
            return
        self._remove_page("")
        for project in self.notes.pages:
            self._remove_page(project)
        self._note(msgspec.structs.replace(self.notes, pages=()))

    def _report(
        self, found: Mapping[str, Sequence[ListedFile]], listed: set[str], changed: Sequence[str]
    ) -> LinkedIndex:
        files = [file for group in found.values() for file in group]
        names = {file.filename for file in files}
        return LinkedIndex(
            index=self._store.place(self._layout.index) if self._layout.index else self._store.url,
            projects={project: [file.filename for file in group] for project, group in found.items()},
            yanked={file.filename: file.yanked for file in files if file.yanked is not None},
            new=tuple(sorted(names - listed)),
            removed=tuple(sorted(listed - names)),
            changed=tuple(changed),
        )

    def read_pages(self, projects: Iterable[str]) -> None:
        """Read the existing JSON pages of projects. Raise `InputError` for pages that this command did not write."""

        def read(project: str) -> tuple[str, bytes]:
            html = load(self._store, self._layout.page(project, "html"))
            place = self._store.place(self._layout.page(project, "html"))
            require_own(place, is_own=not html.data or is_project_page(html.data))
            return project, load(self._store, self._layout.page(project, "json")).data

        with open_workers(AT_ONCE) as executor:
            found = executor.map(read, sorted({*projects, *self.notes.pages}))
            self._pages = {project: data for project, data in found if data}

    def _write_page(self, project: str, page: Page) -> None:
        for form in _FORMS:
            name = self._layout.page(project, form)
            swap(self._store, name, page.json if form == "json" else page.html, load(self._store, name))

    def _remove_page(self, project: str) -> None:
        for form in reversed(_FORMS):
            self._store.delete(self._layout.page(project, form))

    def _note(self, notes: LinkNotes) -> None:
        self._before = swap(self._store, self._name, msgspec.json.format(msgspec.json.encode(notes)), self._before)


def _read_notes(place: str, before: LoadedFile) -> LinkNotes:
    if before is NOTHING:
        return LinkNotes()
    try:
        notes = decode_json(before.data, LinkNotes)
    except msgspec.DecodeError as e:
        remedy = "Restore the file from a copy. Without it, changed hashes can't be detected."
        raise InputError(place, f"can't be read ({e})", remedy=remedy) from e
    if notes.format != _FORMAT:
        found, expected = f"has format {notes.format}", f"format {_FORMAT}"
        raise InputError(place, found, expected=expected, remedy="Use a newer version of rocwheel.")
    return notes


class _ListedNames(msgspec.Struct):
    class _File(msgspec.Struct):
        filename: str = ""

    files: tuple[_File, ...] = ()


def _listed_names(page: bytes) -> list[str]:
    with suppress(msgspec.DecodeError):  # a damaged page is rewritten
        return [file.filename for file in decode_json(page, _ListedNames).files]
    return []


def _make_page(project: str, files: Sequence[ListedFile], seen: Mapping[tuple[str, str], Seen]) -> Page:
    entries = [_make_entry(file, seen[file.filename, file.sha256]) for file in files]
    # The page must not contain the user and password that are needed to read the other index.
    bases = {file.filename: f"{shown_url(file.url).rpartition('/')[0]}/" for file in files}
    yanked = {file.filename: file.yanked for file in files if file.yanked is not None}
    return make_project_page(project, group_by_project(entries)[project], bases, yanked)


def _make_entry(file: ListedFile, seen: Seen) -> IndexEntry:
    return IndexEntry(
        filename=file.filename,
        project=file.project,
        version=file.version,
        identity=file.filename,
        size=seen.size,
        sha256=file.sha256,
        requires_python=file.requires_python,
        metadata_sha256=seen.metadata_sha256 or None,
        upload_time=seen.upload_time,
    )


def _examine(
    files: Iterable[ListedFile],
    known: Mapping[tuple[str, str], Seen],
    seen: dict[tuple[str, str], Seen],
    problems: list[RocwheelError],
    progress: Progress,
) -> None:
    """Add the information about files to ``seen``.

    Append errors about files that no longer exist to ``problems``, and raise all other problems.
    """
    waiting = {(file.filename, file.sha256): file for file in files if (file.filename, file.sha256) not in seen}
    now = time.time_ns() // 1000
    progress.begin("reading file information", len(waiting))
    advance: Callable[[int], object] = serialized(progress.advance)

    def examine(key: tuple[str, str]) -> Seen | InputError:
        try:
            return _find_facts(waiting[key], known.get(key), now)
        except (MissingFileError, ForbiddenError) as e:
            return StoreError(e.source, e.found, remedy="Contact the publisher. The index doesn't list the file.")
        except StoreError:  # all other files would fail in the same way
            raise
        except InputError as e:
            return e
        finally:
            advance(1)

    refused: list[RocwheelError] = []
    with open_workers(AT_ONCE) as executor:
        for key, found in zip(waiting, executor.map(examine, waiting), strict=True):
            if isinstance(found, Seen):
                seen[key] = found
            else:
                (problems if isinstance(found, StoreError) else refused).append(found)
    progress.end()
    raise_all("files", refused)


def _find_facts(file: ListedFile, known: Seen | None, now: int) -> Seen:
    """Return information about a file from the page, an earlier run, or the file's server, in that order."""
    size, date = file.size, None
    with suppress(InputError):  # the date is malformed or absent
        date = parse_time(file.upload_time or "")
    if date is not None and date > now:  # the page would change on each run
        date = known.upload_time if known else now
    if known:
        size = known.size if size is None else size
        date = known.upload_time if date is None else date
    if size is None or date is None:
        stored = find_web_file(file.url)
        if size is None and stored.size < 0:
            raise InputError(shown_url(file.url), "has no size", remedy="Mirror the index.")
        size = stored.size if size is None else size
        if date is None:
            date = to_microseconds(stored.modified) if stored.modified else now
    return Seen(file.sha256, size, min(date, now), _find_metadata(file, known))


def _find_metadata(file: ListedFile, known: Seen | None) -> str:
    """Return the hash of the core metadata next to a file, or an empty string if its server has no such metadata.

    Raises `InputError` for metadata whose hash differs from the hash on the page.
    """
    wanted = file.metadata_sha256 or ""
    if not wanted or (known and known.metadata_sha256 == wanted):
        return wanted
    url = f"{file.url}{METADATA_SUFFIX}"
    try:
        found = hashlib.sha256(read_text(url)).hexdigest()
    except (MissingFileError, ForbiddenError):
        return ""
    if found != wanted:
        raise InputError(shown_url(url), f"has the SHA-256 {found}", expected=wanted, remedy="Contact the publisher.")
    return wanted
