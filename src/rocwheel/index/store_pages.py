"""Changes the pages of an index in a store while other publishers may change them at the same time.

The JSON page of a project is authoritative. A publisher reads this page, adds files, and replaces the page unless
another publisher has done so in the meantime. In that case, the publisher starts over. The HTML page is generated from
the JSON page in the same way, and is read first. Therefore, the last publisher to replace the HTML page has seen the
latest JSON page.
"""

from __future__ import annotations

import posixpath
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, each_problem
from rocwheel.core.workers import attempt_all, open_workers
from rocwheel.index.extra_files import IndexContent
from rocwheel.index.pages import (
    FRONT_PAGE,
    GENERATOR,
    Page,
    families_in_root_page,
    group_by_project,
    is_as_made,
    make_variants_files,
)
from rocwheel.index.published import (
    PageReader,
    Published,
    ReadPages,
    RootPage,
    merge,
    parse_project,
    read_html_form,
    require_own,
)
from rocwheel.index.store_notes import NOTHING, First, NotesFile, NoteUpdate, load, swap, until_done
from rocwheel.index.upload_times import UploadTimes
from rocwheel.index.uploads import AT_ONCE
from rocwheel.index.write_index import IndexReport
from rocwheel.stores.store import StoreError
from rocwheel.stores.urls import is_url, make_address
from rocwheel.wheels.file_names import parse_file_name
from rocwheel.wheels.variants import merge_index_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.index.entry import IndexEntry
    from rocwheel.index.extra_files import NextExtras
    from rocwheel.index.pages import VariantsFile
    from rocwheel.index.store_notes import Noted, Notes
    from rocwheel.index.uploads import Layout, StoredIndex, Upload
    from rocwheel.index.yanked import Yanking
    from rocwheel.stores.store import LoadedFile, Store, StoredFile


class Pages(PageReader):
    """Reads and changes the pages of an index."""

    def __init__(
        self, store: Store, layout: Layout, stored: Mapping[str, StoredFile], noted: Mapping[str, Noted]
    ) -> None:
        super().__init__(store, layout, stored, noted)
        self._seen: dict[str, ReadPages] = {}
        self.times = UploadTimes(sys.maxsize)
        """The rules for dates according to the store's clock, if known. Dates in that clock's future are wrong."""
        self.noted: dict[str, Noted] = {}
        """The notes about the pages that were read or changed."""
        self.edited: list[str] = []
        """The locations of pages that were rewritten because no publisher had written them in this form."""

    def read(self, project: str) -> Published:
        """Return the contents of a project's page.

        Raise `InputError` for a damaged page or a page from another program.
        """
        found = self.find(project) or self.load(project)
        self._keep(project, found)
        return found.published

    def read_again(self, project: str) -> Noted | None:
        """Return the current note about a project's pages."""
        return self.load(project).note(project)

    def stand(self, project: str, entries: Sequence[IndexEntry]) -> bool:
        """Return whether the pages that were read already list these files and are the same in both formats."""
        seen = self._seen[project]
        # `add` checks the lists of variants instead.
        seen_now = seen.published.correct(self.times)
        known = all(entry.filename in seen.published.entries and not entry.label for entry in entries)
        return known and Page(seen.html.data, seen.json.data) == seen_now.render(project)

    def add(self, project: str, entries: Sequence[IndexEntry], bases: Mapping[str, str]) -> bool:
        """Add files to a project's page, and return whether the page has changed in either format.

        ``bases`` contains the relative path from the page to each file's folder, keyed by file name. The list of
        variants (a draft) is written first, including the variants that are already listed.
        """
        files = make_variants_files({project: entries}, ()).get(project, [])
        listed = [*entries, *(until_done(partial(self._add_variants, one)) for one in files)]
        place = self.place(project, "json")
        return self.change(project, lambda published: merge(place, published.correct(self.times), listed, bases))

    def change(self, project: str, make: Callable[[Published], Published]) -> bool:
        """Change the contents of a project's page, and return whether the page has changed in either format."""
        first = First(self._seen.pop(project, None))
        load = partial(self.load, project)
        before, after = until_done(lambda: self._swap_json(project, make, first.take(load)))
        second = First(after)
        html, done = until_done(lambda: self._follow_html(project, second.take(load)))
        has_changed = {"json": after.json is not before.json, "html": done.html is not html}
        left = {"json": self._has_left_json(project, before), "html": self._has_left_html(project, before, html)}
        self.edited += [self.place(project, form) for form in left if has_changed[form] and not left[form]]
        self._keep(project, done)
        return any(has_changed.values())

    def mark(self, project: str, yanking: Yanking) -> Published:
        """Change yank marks of the files that the page lists, and return the new contents.

        A mark that is only in the HTML page is a manual edit, and is respected. While a mark is being removed, it is
        also only in the HTML page for a time, but must not be respected. Therefore, the removal has three steps:

        1. The JSON page lists the file as not yanked. From then on, no mark in the HTML page is respected. 2. The HTML
        page loses the mark. 3. The JSON page omits the value, as for every other file.

        A publisher may read the HTML page before step 2 and the JSON page after step 3. This publisher notices that the
        HTML page has changed, and reads both pages again. Changes based on older pages are rejected because the JSON
        page has changed.
        """
        self.change(project, lambda published: published.mark(yanking))
        if yanking.unyanked:
            self.change(project, lambda published: published.settle(yanking.unyanked))
        return self._seen[project].published

    def _swap_json(
        self, project: str, make: Callable[[Published], Published], before: ReadPages
    ) -> tuple[ReadPages, ReadPages]:
        published = make(before.published)
        name = self._layout.page(project, "json")
        json = swap(self._store, name, published.render(project).json, before.json)
        return before, ReadPages(published, json, before.html)

    def _follow_html(self, project: str, read: ReadPages) -> tuple[LoadedFile, ReadPages]:
        """Replace the HTML page, and return its previous state."""
        html = swap(self._store, self._layout.page(project, "html"), read.published.render(project).html, read.html)
        return read.html, ReadPages(read.published, read.json, html)

    def _has_left_json(self, project: str, read: ReadPages) -> bool:
        """Return whether a publisher may have written this JSON page: it is in the notes or equals a generated page."""
        json, noted = read.json.data, self._noted.get(project)
        if read.json is NOTHING or (noted and noted.has_left(json)):
            return True
        try:
            listed = parse_project(self.place(project, "json"), project, json, b"")
        except InputError:
            return False
        return bool(listed.entries) and listed.render(project).json == json

    def _has_left_html(self, project: str, read: ReadPages, html: LoadedFile) -> bool:
        """Return whether a publisher may have written this HTML page, because it belongs to the JSON page in ``read``.

        If the JSON page is the page in the notes, the HTML page must also be the page in the notes. A killed publisher
        may have left an older HTML page next to a different JSON page.
        """
        noted = self._noted.get(project)
        if html is NOTHING or (noted and noted.has_left_html(html.data)):
            return True
        if noted and noted.html and noted.has_left(read.json.data) and html is read.html:
            return False
        return read_html_form(project, html.data, lambda *_: 0) is not None

    def _add_variants(self, made: VariantsFile) -> IndexEntry:
        name = self._layout.beside(made.entry.project, made.entry.filename)
        before = load(self._store, name)
        data = merge_index_files(self._store.place(name), before.data, made.data) if before.data else made.data
        swap(self._store, name, data, before)
        return msgspec.structs.replace(made.entry, size=len(data))

    def _keep(self, project: str, found: ReadPages) -> None:
        self._seen[project] = found
        if noted := found.note(project):
            self.noted[project] = noted


class FrontPage:
    """The front page of an index."""

    def __init__(self, index: StoredIndex, make: NextExtras) -> None:
        self._index = index
        self._store = index.store
        self._name = index.layout.beside("", FRONT_PAGE)
        self._make = make
        self._before = load(index.store, self._name) if self._name in index.stored else NOTHING
        self._require_own(self._before)
        self.edited: list[str] = []
        """The location of the page if it was edited and then rewritten."""

    def write(self, notes_file: NotesFile, notes: Notes) -> bool:
        """Regenerate the page from the notes, and return whether it has changed."""
        # The contents of families are read after the page. So the last publisher to write the page has seen the latest
        # contents.
        first = First(None if self._index.families else (self._before, notes))
        if not self._index.families and notes == notes_file.notes:
            # The notes may have changed before the page was read.
            if self._page(self._before, notes) == self._before.data:
                return False
            first = First(None)

        def read() -> tuple[LoadedFile, Notes]:
            page = load(
                self._store, self._name
            )  # read before the notes, so that the last publisher to replace the page has seen the latest notes
            self._require_own(page)
            return page, notes_file.read()

        def attempt() -> bool:
            before, noted = first.take(read)
            has_changed = swap(self._store, self._name, self._page(before, noted), before) is not before
            if has_changed and before is not NOTHING and not is_as_made(before.data):
                self.edited.append(self._store.place(self._name))
            return has_changed

        return until_done(attempt)

    def _page(self, before: LoadedFile, notes: Notes) -> bytes:
        """Return the content that replaces an earlier page."""
        content = self._content(self._index.layout, notes, self._index.family)
        content = msgspec.structs.replace(content, families=self._families())
        return self._make(before.data)(content)[FRONT_PAGE]

    def _families(self) -> dict[str, IndexContent]:
        """Return the contents of the family indexes in the notes, including current changes by other publishers."""
        layout = self._index.layout
        if not self._index.families:
            return {}
        named = families_in_root_page(load(self._store, layout.page("", "html")).data)
        layouts = {name: layout.of_family(name) for name in sorted(self._index.families | named)}
        return {
            name: self._content(one, NotesFile(self._store, one.index).notes, name) for name, one in layouts.items()
        }

    def _content(self, layout: Layout, notes: Notes, family: str) -> IndexContent:
        place = self._store.place(layout.page("", "json"))
        entries: list[IndexEntry] = []
        yanked: dict[str, str] = {}
        bases: dict[str, str] = {}
        for project, noted in notes.projects.items():
            published = parse_project(place, project, noted.page.encode(), b"")
            yanked |= published.yanked
            bases |= published.bases
            for name, entry in published.entries.items():
                sha256, about = notes.about.get(name, ("", entry.about))
                entries.append(msgspec.structs.replace(entry, about=about) if sha256 == entry.sha256 else entry)
        return IndexContent(group_by_project(entries), yanked, bases, family)

    def _require_own(self, page: LoadedFile) -> None:
        require_own(self._store.place(self._name), is_own=not page.data or GENERATOR.encode() in page.data)


class OneIndex:
    """The changes to an index.

    The constructor reads the contents of the pages and changes nothing. It appends problems with the pages to
    ``problems``.
    """

    def __init__(
        self,
        index: StoredIndex,
        uploads: Sequence[Upload],
        make_front: NextExtras | None,
        problems: list[RocwheelError],
    ) -> None:
        store, layout, stored = index.store, index.layout, index.stored
        self._index = index
        self._bases = {one.entry.filename: layout.base(layout.file(one.name)) for one in uploads}
        self.projects = group_by_project(one.entry for one in uploads)
        """The files to list, grouped by project."""
        self._pages = Pages(store, layout, stored, index.notes_file.notes.projects)
        self._root = RootPage(store, layout, stored, index.notes_file.notes.projects)
        listed = attempt_all(RootPage.read, [self._root], problems)
        self.listed = self.projects.keys() | {name for names in listed for name in names}
        """All current and future projects of the index."""
        fronts = [make_front] if make_front else []
        made = attempt_all(lambda make: FrontPage(index, make), fronts, problems)
        self._front = made[0] if made else None
        read = self._read_all(self.projects, problems)
        self.published: dict[str, Published] = dict(zip(self.projects, read, strict=True))
        """The previous contents of the pages, keyed by project."""
        if self._front:
            others = [name for name in sorted(self.listed - self.projects.keys()) if not self._pages.is_noted(name)]
            self._read_all(others, [])  # other publishers must repair their damaged pages
        attempt_all(self._check, self.projects, problems)

    @property
    def edited(self) -> list[str]:
        """The locations of edited pages that were rewritten."""
        return [*self._pages.edited, *self._root.edited, *(self._front.edited if self._front else ())]

    def known(self) -> dict[str, str]:
        """Return the hashes of the listed files, keyed by their name in the store."""
        found = {}
        for project, published in self.published.items():
            folder = posixpath.join("/", self._index.layout.index, project)
            for name, entry in published.entries.items():
                path = posixpath.normpath(posixpath.join(folder, published.bases[name], name))
                found[path.lstrip("/")] = entry.sha256
        return found

    def new(self) -> set[str]:
        """Return the names of the files that were not listed before."""
        return {
            entry.filename
            for project, entries in self.projects.items()
            for entry in entries
            if entry.filename not in self.published[project].entries
        }

    def write(self, dated: Mapping[str, Sequence[IndexEntry]], times: UploadTimes, progress: Progress) -> set[str]:
        """Write the pages of projects, then the page of all projects, then the front page. Return the changed projects.

        ``dated`` contains the files of each project, with dates for the new files. ``times`` contains the rules for the
        store's clock.
        """
        self._pages.times = times
        waiting = {project: entries for project, entries in dated.items() if not self._pages.stand(project, entries)}
        progress.begin("writing pages", len(waiting))
        changed = set()

        def add(item: tuple[str, Sequence[IndexEntry]]) -> bool:
            return self._pages.add(*item, self._bases)

        with open_workers(AT_ONCE) as executor:
            for project, has_changed in zip(waiting, executor.map(add, waiting.items()), strict=True):
                changed |= {project} if has_changed else set()
                progress.advance(1)
        self._root.add(dated, self._index.families, has_front_page=self._front is not None)
        self._finish(dated)
        progress.end()
        return changed

    def find(self, projects: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
        """Return the names of the files that each project's page lists, with the URLs of each file."""
        return {
            name: (self._address(project, f"{published.bases[name]}{name}"),)
            for project in projects.keys() & self.listed
            for published in [self._pages.read(project)]
            for name in published.entries.keys() & projects[project]
        }

    def _address(self, project: str, link: str) -> str:
        if is_url(link):
            return make_address(link)
        page = posixpath.join(self._index.store.url, self._index.layout.index, project)
        return make_address(posixpath.join(page, link))

    def mark(self, yanking: Yanking) -> IndexReport:
        """Change the yank marks of the files that pages list, and return the new contents of these projects' pages."""
        names = (*yanking.yanked, *yanking.unyanked)
        projects = sorted({parse_file_name(name).project for name in names})
        marked = {project: self._pages.mark(project, yanking) for project in projects}
        self._finish({})
        output = self._index.store.place(self._index.layout.index)
        listed = {project: list(published.entries) for project, published in marked.items()}
        yanked = {name: reason for one in marked.values() for name, reason in one.yanked.items()}
        return IndexReport(output, listed, (), (), yanked, edited=tuple(self.edited))

    def show(self) -> None:
        """Update the front page with the contents of the family indexes below."""
        if self._index.families:
            self._finish({})

    def _finish(self, entries: Mapping[str, Sequence[IndexEntry]]) -> None:
        """Write the notes, and then update the front page."""
        index, notes_file = self._index, self._index.notes_file
        # Noted projects had pages. If the store no longer lists the pages, someone removed them.
        gone = {name for name in notes_file.notes.projects if index.layout.page(name, "json") not in index.stored}
        about = {one.filename: (one.sha256, one.about) for some in entries.values() for one in some}
        update = NoteUpdate(self._pages.noted, about, gone - entries.keys())
        notes = notes_file.add(update, self._pages.read_again)
        if self._front:
            self._front.write(notes_file, notes)

    def _read_all(self, projects: Iterable[str], problems: list[RocwheelError]) -> list[Published]:
        def read(project: str) -> Published:
            try:
                return self._pages.read(project)
            except StoreError:  # all other pages would fail in the same way
                raise
            except (InputError, ProblemsError) as e:
                problems.extend(each_problem([e]))
                return Published()

        with open_workers(AT_ONCE) as executor:
            return list(executor.map(read, projects))

    def _check(self, project: str) -> Published:
        place = self._index.store.place(self._index.layout.page(project, "json"))
        return merge(place, self.published[project], self.projects[project], self._bases)
