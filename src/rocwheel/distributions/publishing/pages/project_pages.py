"""Pages of projects on a store, which other publishers change at the same time.

The JSON page of a project is what the index knows of it. A publisher reads it, adds its files, and replaces it if
nobody else has done so meanwhile; else it begins again. The HTML page is made of the JSON page in the same way, and
read before that: whoever replaces it last has seen the last JSON page.
"""

from __future__ import annotations

import posixpath
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.pages.simple_pages import Page, is_absolute, is_project_page
from rocwheel.distributions.index.pages.upload_times import UploadTimes
from rocwheel.distributions.index.pages.variants_files import make_variants_files
from rocwheel.distributions.index.planning.yanked import yanked_in_json
from rocwheel.distributions.publishing.attempts import NOTHING, First, load, swap, until_done
from rocwheel.distributions.publishing.notes import Noted
from rocwheel.distributions.publishing.pages.html_form import read_html_form
from rocwheel.distributions.publishing.pages.published import MEND, BrokenPageError, Published, merge, parse_project
from rocwheel.distributions.publishing.pages.root_page import require_own
from rocwheel.distributions.variants.index_file import merge_index_files
from rocwheel.foundation.errors import InputError
from rocwheel.stores.errors import MissingFileError, OutdatedError
from rocwheel.stores.store import LoadedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.pages.variants_files import VariantsFile
    from rocwheel.distributions.index.planning.yanked import Yanking
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["Pages"]


class _Read(msgspec.Struct, frozen=True):
    """What the pages of a project were at one moment."""

    published: Published
    json: LoadedFile
    html: LoadedFile

    def note(self, project: str) -> Noted | None:
        """Return what there is to note: nothing while the two forms differ, or the store has no tags."""
        if self.json.e_tag is None or self.html.e_tag is None:
            return None
        if Page(self.html.data, self.json.data) != self.published.render(project):
            return None
        return Noted.of(project, (self.json.e_tag, self.html.e_tag), self.json.data.decode(), self.html.data)


class Pages:
    """The pages of one index; ``stored`` is what the store lists of it, and ``noted`` what was noted before that."""

    def __init__(
        self, store: Store, layout: Layout, stored: Mapping[str, StoredFile], noted: Mapping[str, Noted]
    ) -> None:
        self._store = store
        self._layout = layout
        self._stored = stored
        self._noted = noted
        self._seen: dict[str, _Read] = {}
        self.times = UploadTimes(sys.maxsize)
        """By the clock of the store, where it is known: dates of its future are wrong."""
        self.noted: dict[str, Noted] = {}
        """Of those that were read or changed."""
        self.edited: list[str] = []
        """The places of pages that no publisher has left so, and that were written again."""

    def read(self, project: str) -> Published:
        """Return what a project's page lists; raise `InputError` for a page that somebody else made or has broken."""
        found = self._find(project) or self._load(project)
        self._keep(project, found)
        return found.published

    def read_again(self, project: str) -> Noted | None:
        """Return what there is to note of a project's pages at this moment."""
        return self._load(project).note(project)

    def is_noted(self, project: str) -> bool:
        """Return whether the pages are what was noted of them, so that they need not be read."""
        noted = self._noted.get(project)
        return noted is not None and noted.tags == tuple(self._tag(project, form) for form in ("json", "html"))

    def stand(self, project: str, entries: Sequence[IndexEntry]) -> bool:
        """Return whether the pages that were read list these files already, and are the same in both forms."""
        seen = self._seen[project]
        # What lists variants is looked at by `add`.
        seen_now = seen.published.correct(self.times)
        known = all(entry.filename in seen.published.entries and not entry.label for entry in entries)
        return known and Page(seen.html.data, seen.json.data) == seen_now.render(project)

    def add(self, project: str, entries: Sequence[IndexEntry], bases: Mapping[str, str]) -> bool:
        """Add files to the page of a project, and return whether it has changed in either form.

        ``bases`` has what leads to each from the page, by file name. What lists their variants (a draft) comes first,
        with what is listed there already.
        """
        files = make_variants_files({project: entries}, ()).get(project, [])
        listed = [*entries, *(until_done(partial(self._add_variants, one)) for one in files)]
        place = self._place(project, "json")
        return self.change(project, lambda published: merge(place, published.correct(self.times), listed, bases))

    def change(self, project: str, make: Callable[[Published], Published]) -> bool:
        """Change what the page of a project lists, and return whether it has changed in either form."""
        first = First(self._seen.pop(project, None))
        load = partial(self._load, project)
        before, after = until_done(lambda: self._swap_json(project, make, first.take(load)))
        second = First(after)
        html, done = until_done(lambda: self._follow_html(project, second.take(load)))
        has_changed = {"json": after.json is not before.json, "html": done.html is not html}
        left = {"json": self._has_left_json(project, before), "html": self._has_left_html(project, before, html)}
        self.edited += [self._place(project, form) for form in left if has_changed[form] and not left[form]]
        self._keep(project, done)
        return any(has_changed.values())

    def mark(self, project: str, yanking: Yanking) -> Published:
        """Change marks of files that the page lists, and return what it lists then.

        A mark in the HTML page alone is somebody's edit, and counts. While a mark goes from both pages, it is in the
        HTML page alone, too, and must not count. So it goes in three steps:

        1. The JSON page says that the file is not yanked. From then on, no mark in the HTML page counts.
        2. The HTML page loses the mark.
        3. The JSON page says nothing of it, as of every other file.

        Whoever has read the HTML page before step 2 and the JSON page after step 3 sees that the HTML page has changed
        since, and reads both again. What somebody makes of older pages is refused, as the JSON page has changed.
        """
        self.change(project, lambda published: published.mark(yanking))
        if yanking.unyanked:
            self.change(project, lambda published: published.settle(yanking.unyanked))
        return self._seen[project].published

    def _swap_json(self, project: str, make: Callable[[Published], Published], before: _Read) -> tuple[_Read, _Read]:
        published = make(before.published)
        name = self._layout.page(project, "json")
        json = swap(self._store, name, published.render(project).json, before.json)
        return before, _Read(published, json, before.html)

    def _follow_html(self, project: str, read: _Read) -> tuple[LoadedFile, _Read]:
        """Replace the HTML page, and return what it was."""
        html = swap(self._store, self._layout.page(project, "html"), read.published.render(project).html, read.html)
        return read.html, _Read(read.published, read.json, html)

    def _has_left_json(self, project: str, read: _Read) -> bool:
        """Return whether a publisher may have left the JSON page so: as it was noted, or as it would be made again."""
        json, noted = read.json.data, self._noted.get(project)
        if read.json is NOTHING or (noted and noted.has_left(json)):
            return True
        try:
            listed = parse_project(self._place(project, "json"), project, json, b"")
        except InputError:
            return False
        return bool(listed.entries) and listed.render(project).json == json

    def _has_left_html(self, project: str, read: _Read, html: LoadedFile) -> bool:
        """Return whether a publisher may have left the HTML page so: it follows on the JSON page, which ``read`` has.

        So beside the noted JSON page there is the noted HTML page. Beside another one, a killed publisher may have left
        that of an older one.
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

    def _keep(self, project: str, found: _Read) -> None:
        self._seen[project] = found
        if noted := found.note(project):
            self.noted[project] = noted

    def _find(self, project: str) -> _Read | None:
        """Return what is known without a request: pages as they were noted, or that there are none."""
        tags = [self._tag(project, form) for form in ("json", "html")]
        if not any(self._layout.page(project, form) in self._stored for form in ("json", "html")):
            return _Read(Published(), NOTHING, NOTHING)
        if not self.is_noted(project):
            return None
        json = LoadedFile(self._noted[project].page.encode(), tags[0])
        published = self._parse(project, json, NOTHING)
        page = published.render(project)
        # Another version of rocwheel may have made other pages of the same files.
        is_same = page.json == json.data and self._noted[project].has_left_html(page.html)
        return _Read(published, json, LoadedFile(page.html, tags[1])) if is_same else None

    def _tag(self, project: str, form: str) -> str | None:
        stored = self._stored.get(self._layout.page(project, form))
        return stored.e_tag if stored else None

    def _load(self, project: str) -> _Read:
        return until_done(partial(self._load_once, project))

    def _load_once(self, project: str) -> _Read:
        """Return both pages; raise `OutdatedError` if the HTML page has marks of its own and is no longer the same.

        It may have been read before somebody has taken the marks away, and the JSON page after that.
        """
        found = self._load_both(project)
        if found.published.yanked != yanked_in_json(found.json.data):
            name = self._layout.page(project, "html")
            if load(self._store, name) != found.html:
                raise OutdatedError(self._store.place(name), "was changed while it was read", remedy="Try again.")
        return found

    def _load_both(self, project: str) -> _Read:
        html = load(self._store, self._layout.page(project, "html"))
        json = load(self._store, self._layout.page(project, "json"))
        if not (html.data or json.data):
            return _Read(Published(), json, html)
        is_own = not html.data or is_project_page(html.data) or self._is_begun(project, json, html)
        require_own(self._place(project, "html"), is_own=is_own)
        return _Read(self._parse(project, json, html), json, html)

    def _is_begun(self, project: str, json: LoadedFile, html: LoadedFile) -> bool:
        """Return whether an HTML page is the beginning of that which belongs to the JSON page."""
        try:
            published = parse_project(self._place(project, "json"), project, json.data, b"")
        except InputError:
            return False
        return bool(published.entries) and published.render(project).html.startswith(html.data)

    def _parse(self, project: str, json: LoadedFile, html: LoadedFile) -> Published:
        """Return what the JSON page lists; where nothing of it can be read, what the HTML page does, if it is whole."""
        place = self._place(project, "json")
        try:
            if not json.data:
                raise BrokenPageError(place, "is missing beside index.html, or empty", remedy=MEND)
            return parse_project(place, project, json.data, html.data)
        except BrokenPageError:
            if found := self._restore(project, html.data):
                return found
            raise

    def _restore(self, project: str, html: bytes) -> Published | None:
        """Return what an HTML page lists that is as publishers leave it, and that nothing noted is missing from."""
        noted, place = self._noted.get(project), self._place(project, "json")
        listed = parse_project(place, project, noted.page.encode(), html) if noted else Published()
        if noted and noted.has_left_html(html):
            return listed
        found = read_html_form(project, html, partial(self._size, project))
        return found if found and listed.entries.keys() <= found.entries.keys() else None

    def _size(self, project: str, base: str, filename: str) -> int:
        """Return the size of a file that a page lists; raise `InputError` where the store doesn't tell."""
        place, found = self._place(project, "json"), f"is broken, and the size of {filename} is not to be had"
        if is_absolute(base):
            raise InputError(place, f"{found}, as it is on another server", remedy=MEND)
        name = posixpath.normpath(posixpath.join("/", self._layout.index, project, base, filename))
        try:
            return self._store.head(name.lstrip("/")).size
        except MissingFileError as e:
            raise InputError(place, f"{found}, as it is gone from the store", remedy=MEND) from e

    def _place(self, project: str, form: str) -> str:
        return self._store.place(self._layout.page(project, form))
