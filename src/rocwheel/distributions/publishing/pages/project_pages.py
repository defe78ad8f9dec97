"""Pages of projects on a store, which other publishers change at the same time.

The JSON page of a project is what the index knows of it. A publisher reads it, adds its files, and replaces it if
nobody else has done so meanwhile; else it begins again. The HTML page is made of the JSON page in the same way, and
read before that: whoever replaces it last has seen the last JSON page.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.distributions.index.pages.simple_pages import Page
from rocwheel.distributions.index.pages.upload_times import UploadTimes
from rocwheel.distributions.index.pages.variants_files import make_variants_files
from rocwheel.distributions.publishing.attempts import NOTHING, First, load, swap, until_done
from rocwheel.distributions.publishing.pages.html_form import read_html_form
from rocwheel.distributions.publishing.pages.page_reader import PageReader, ReadPages
from rocwheel.distributions.publishing.pages.published import Published, merge, parse_project
from rocwheel.distributions.variants.index_file import merge_index_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.pages.variants_files import VariantsFile
    from rocwheel.distributions.index.planning.yanked import Yanking
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.distributions.publishing.notes import Noted
    from rocwheel.stores.store import LoadedFile, Store, StoredFile

__all__ = ["Pages"]


class Pages:
    """The pages of one index; ``stored`` is what the store lists of it, and ``noted`` what was noted before that."""

    def __init__(
        self, store: Store, layout: Layout, stored: Mapping[str, StoredFile], noted: Mapping[str, Noted]
    ) -> None:
        self._store = store
        self._layout = layout
        self._noted = noted
        self._reader = PageReader(store, layout, stored, noted)
        self._seen: dict[str, ReadPages] = {}
        self.times = UploadTimes(sys.maxsize)
        """By the clock of the store, where it is known: dates of its future are wrong."""
        self.noted: dict[str, Noted] = {}
        """Of those that were read or changed."""
        self.edited: list[str] = []
        """The places of pages that no publisher has left so, and that were written again."""

    def read(self, project: str) -> Published:
        """Return what a project's page lists; raise `InputError` for a page that somebody else made or has broken."""
        found = self._reader.find(project) or self._reader.load(project)
        self._keep(project, found)
        return found.published

    def read_again(self, project: str) -> Noted | None:
        """Return what there is to note of a project's pages at this moment."""
        return self._reader.load(project).note(project)

    def is_noted(self, project: str) -> bool:
        """Return whether the pages are what was noted of them, so that they need not be read."""
        return self._reader.is_noted(project)

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
        place = self._reader.place(project, "json")
        return self.change(project, lambda published: merge(place, published.correct(self.times), listed, bases))

    def change(self, project: str, make: Callable[[Published], Published]) -> bool:
        """Change what the page of a project lists, and return whether it has changed in either form."""
        first = First(self._seen.pop(project, None))
        load = partial(self._reader.load, project)
        before, after = until_done(lambda: self._swap_json(project, make, first.take(load)))
        second = First(after)
        html, done = until_done(lambda: self._follow_html(project, second.take(load)))
        has_changed = {"json": after.json is not before.json, "html": done.html is not html}
        left = {"json": self._has_left_json(project, before), "html": self._has_left_html(project, before, html)}
        self.edited += [self._reader.place(project, form) for form in left if has_changed[form] and not left[form]]
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

    def _swap_json(
        self, project: str, make: Callable[[Published], Published], before: ReadPages
    ) -> tuple[ReadPages, ReadPages]:
        published = make(before.published)
        name = self._layout.page(project, "json")
        json = swap(self._store, name, published.render(project).json, before.json)
        return before, ReadPages(published, json, before.html)

    def _follow_html(self, project: str, read: ReadPages) -> tuple[LoadedFile, ReadPages]:
        """Replace the HTML page, and return what it was."""
        html = swap(self._store, self._layout.page(project, "html"), read.published.render(project).html, read.html)
        return read.html, ReadPages(read.published, read.json, html)

    def _has_left_json(self, project: str, read: ReadPages) -> bool:
        """Return whether a publisher may have left the JSON page so: as it was noted, or as it would be made again."""
        json, noted = read.json.data, self._noted.get(project)
        if read.json is NOTHING or (noted and noted.has_left(json)):
            return True
        try:
            listed = parse_project(self._reader.place(project, "json"), project, json, b"")
        except InputError:
            return False
        return bool(listed.entries) and listed.render(project).json == json

    def _has_left_html(self, project: str, read: ReadPages, html: LoadedFile) -> bool:
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

    def _keep(self, project: str, found: ReadPages) -> None:
        self._seen[project] = found
        if noted := found.note(project):
            self.noted[project] = noted
