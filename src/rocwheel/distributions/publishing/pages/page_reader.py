"""Reading the pages of projects on a store: as they were noted, or both forms, a damaged one by the other."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.distributions.index.pages.simple_pages import Page, is_absolute, is_project_page
from rocwheel.distributions.index.planning.yanked import yanked_in_json
from rocwheel.distributions.publishing.attempts import NOTHING, load, until_done
from rocwheel.distributions.publishing.notes import Noted
from rocwheel.distributions.publishing.pages.html_form import read_html_form
from rocwheel.distributions.publishing.pages.published import MEND, BrokenPageError, Published, parse_project
from rocwheel.distributions.publishing.pages.root_page import require_own
from rocwheel.stores.store import LoadedFile, MissingFileError, OutdatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["PageReader", "ReadPages"]


class ReadPages(msgspec.Struct, frozen=True):
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


class PageReader:
    """Reads the pages of one index; ``stored`` is what the store lists of it, ``noted`` what was noted before that."""

    def __init__(
        self, store: Store, layout: Layout, stored: Mapping[str, StoredFile], noted: Mapping[str, Noted]
    ) -> None:
        self._store = store
        self._layout = layout
        self._stored = stored
        self._noted = noted

    def is_noted(self, project: str) -> bool:
        """Return whether the pages are what was noted of them, so that they need not be read."""
        noted = self._noted.get(project)
        return noted is not None and noted.tags == tuple(self._tag(project, form) for form in ("json", "html"))

    def find(self, project: str) -> ReadPages | None:
        """Return what is known without a request: pages as they were noted, or that there are none."""
        tags = [self._tag(project, form) for form in ("json", "html")]
        if not any(self._layout.page(project, form) in self._stored for form in ("json", "html")):
            return ReadPages(Published(), NOTHING, NOTHING)
        if not self.is_noted(project):
            return None
        json = LoadedFile(self._noted[project].page.encode(), tags[0])
        published = self._parse(project, json, NOTHING)
        page = published.render(project)
        # Another version of rocwheel may have made other pages of the same files.
        is_same = page.json == json.data and self._noted[project].has_left_html(page.html)
        return ReadPages(published, json, LoadedFile(page.html, tags[1])) if is_same else None

    def _tag(self, project: str, form: str) -> str | None:
        stored = self._stored.get(self._layout.page(project, form))
        return stored.e_tag if stored else None

    def load(self, project: str) -> ReadPages:
        """Return what a project's pages are now; raises what is wrong with them."""
        return until_done(partial(self._load_once, project))

    def _load_once(self, project: str) -> ReadPages:
        """Return both pages; raise `OutdatedError` if the HTML page has marks of its own and is no longer the same.

        It may have been read before somebody has taken the marks away, and the JSON page after that.
        """
        found = self._load_both(project)
        if found.published.yanked != yanked_in_json(found.json.data):
            name = self._layout.page(project, "html")
            if load(self._store, name) != found.html:
                raise OutdatedError(self._store.place(name), "was changed while it was read", remedy="Try again.")
        return found

    def _load_both(self, project: str) -> ReadPages:
        html = load(self._store, self._layout.page(project, "html"))
        json = load(self._store, self._layout.page(project, "json"))
        if not (html.data or json.data):
            return ReadPages(Published(), json, html)
        is_own = not html.data or is_project_page(html.data) or self._is_begun(project, json, html)
        require_own(self.place(project, "html"), is_own=is_own)
        return ReadPages(self._parse(project, json, html), json, html)

    def _is_begun(self, project: str, json: LoadedFile, html: LoadedFile) -> bool:
        """Return whether an HTML page is the beginning of that which belongs to the JSON page."""
        try:
            published = parse_project(self.place(project, "json"), project, json.data, b"")
        except InputError:
            return False
        return bool(published.entries) and published.render(project).html.startswith(html.data)

    def _parse(self, project: str, json: LoadedFile, html: LoadedFile) -> Published:
        """Return what the JSON page lists; where nothing of it can be read, what the HTML page does, if it is whole."""
        place = self.place(project, "json")
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
        noted, place = self._noted.get(project), self.place(project, "json")
        listed = parse_project(place, project, noted.page.encode(), html) if noted else Published()
        if noted and noted.has_left_html(html):
            return listed
        found = read_html_form(project, html, partial(self._size, project))
        return found if found and listed.entries.keys() <= found.entries.keys() else None

    def _size(self, project: str, base: str, filename: str) -> int:
        """Return the size of a file that a page lists; raise `InputError` where the store doesn't tell."""
        place, found = self.place(project, "json"), f"is broken, and the size of {filename} is not to be had"
        if is_absolute(base):
            raise InputError(place, f"{found}, as it is on another server", remedy=MEND)
        name = posixpath.normpath(posixpath.join("/", self._layout.index, project, base, filename))
        try:
            return self._store.head(name.lstrip("/")).size
        except MissingFileError as e:
            raise InputError(place, f"{found}, as it is gone from the store", remedy=MEND) from e

    def place(self, project: str, form: str) -> str:
        """Return the URL of a page as messages show it."""
        return self._store.place(self._layout.page(project, form))
