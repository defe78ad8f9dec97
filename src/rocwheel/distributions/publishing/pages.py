"""Pages of an index on a store, which other publishers change at the same time.

The JSON page of a project is what the index knows of it. A publisher loads it, adds its files, and replaces it if
nobody else has done so meanwhile; else it begins again. The HTML page is made of the JSON page in the same way, and
loaded before that: whoever replaces it last has seen the last JSON page.
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.distributions.index.pages.simple_pages import (
    FRONT_PAGE,
    Page,
    is_project_page,
    is_root_page,
    make_root_page,
)
from rocwheel.distributions.index.pages.variants_files import make_variants_files
from rocwheel.distributions.publishing.published import Published, merge, parse_project
from rocwheel.distributions.variants.index_file import merge_index_files
from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.errors import InputError
from rocwheel.stores.errors import MissingFileError, OutdatedError
from rocwheel.stores.store import LoadedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.pages.variants_files import VariantsFile
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.stores.store import Store

__all__ = ["Pages"]

T = TypeVar("T")

_NOTHING = LoadedFile(b"", None)
_ATTEMPTS = 100
_LONGEST = 2.0
"""Seconds of the longest pause after somebody else was faster."""
_FOREIGN = "Publish to another --output, or remove the page."


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Root(msgspec.Struct, frozen=True):
    projects: tuple[_Named, ...]


class Pages:
    """The pages of one index."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._seen: dict[str, tuple[Published, tuple[bytes, bytes]]] = {}

    def read(self, project: str) -> Published:
        """Return what a project's page lists; raise `InputError` for a page that somebody else made or has broken."""
        published, json, html = self._read(project)
        self._seen[project] = published, (html.data, json.data)
        return published

    def stand(self, project: str, entries: Sequence[IndexEntry]) -> bool:
        """Return whether the pages that were read list these files already, and are the same in both forms."""
        published, seen = self._seen[project]
        # What lists variants is looked at by `add`.
        known = all(entry.filename in published.entries and not entry.label for entry in entries)
        return known and published.render(project) == Page(*seen)

    def add(self, project: str, entries: Sequence[IndexEntry]) -> bool:
        """Add files to the page of a project, and return whether it has changed in either form.

        What lists their variants (a draft) comes first, with what is listed there already.
        """
        files = make_variants_files({project: entries}, ()).get(project, [])
        listed = [*entries, *(_until_done(partial(self._add_variants, one)) for one in files)]
        has_json = _until_done(lambda: self._add_json(project, listed))
        has_html = _until_done(lambda: self._follow_html(project))
        return has_json or has_html

    def _add_variants(self, made: VariantsFile) -> IndexEntry:
        name = self._layout.beside(made.entry.project, made.entry.filename)
        try:
            before = self._store.load(name)
            data = merge_index_files(self._store.place(name), before.data, made.data)
        except MissingFileError:
            before, data = _NOTHING, made.data
        self._swap(name, data, before)
        return msgspec.structs.replace(made.entry, size=len(data))

    def check_root(self) -> None:
        """Raise `InputError` for a page of all projects that somebody else made or has broken."""
        self._read_root()

    def add_projects(self, projects: Iterable[str]) -> bool:
        """Add projects to the page that lists them, and return whether it has changed in either form."""
        names = set(projects)
        has_json = _until_done(lambda: self._add_root_json(names))
        has_html = _until_done(self._follow_root_html)
        return has_json or has_html

    def _read(self, project: str) -> tuple[Published, LoadedFile, LoadedFile]:
        html = self._load(project, "html")
        json = self._load(project, "json")
        place = self._store.place(self._layout.page(project, "json"))
        if html.data and not is_project_page(html.data):
            page = self._store.place(self._layout.page(project, "html"))
            raise InputError(page, "a page that this command has not written", remedy=_FOREIGN)
        if not json.data:
            if html.data:
                raise InputError(place, "is missing beside index.html", remedy="Put it back, or remove that as well.")
            return Published(), json, html
        return parse_project(place, project, json.data, html.data), json, html

    def _add_json(self, project: str, entries: Sequence[IndexEntry]) -> bool:
        published, json, _ = self._read(project)
        page = merge(self._store.place(json_name := self._layout.page(project, "json")), published, entries,
                     self._layout.base).render(project).json  # fmt: skip
        return self._swap(json_name, page, json)

    def _follow_html(self, project: str) -> bool:
        published, _, html = self._read(project)
        return self._swap(self._layout.page(project, "html"), published.render(project).html, html)

    def _read_root(self) -> tuple[set[str], LoadedFile, LoadedFile]:
        html = self._load("", "html")
        json = self._load("", "json")
        if html.data and not is_root_page(html.data):
            page = self._store.place(self._layout.page("", "html"))
            raise InputError(page, "a page that this command has not written", remedy=_FOREIGN)
        if not json.data:
            return set(), json, html
        try:
            return {project.name for project in decode_json(json.data, _Root).projects}, json, html
        except msgspec.DecodeError as e:
            place = self._store.place(self._layout.page("", "json"))
            raise InputError(place, f"can't be read as the page of all projects ({e})", remedy="Put it back.") from e

    def _add_root_json(self, projects: set[str]) -> bool:
        listed, json, _ = self._read_root()
        return self._swap(self._layout.page("", "json"), make_root_page(listed | projects).json, json)

    def _follow_root_html(self) -> bool:
        listed, _, html = self._read_root()
        page = make_root_page(listed, has_front_page=FRONT_PAGE.encode() in html.data).html
        return self._swap(self._layout.page("", "html"), page, html)

    def _load(self, project: str, form: str) -> LoadedFile:
        try:
            return self._store.load(self._layout.page(project, form))
        except MissingFileError:
            return _NOTHING

    def _swap(self, name: str, data: bytes, before: LoadedFile) -> bool:
        if data == before.data:
            return False
        self._store.swap(name, data, before.e_tag)
        return True


def _until_done(attempt: Callable[[], T]) -> T:
    """Return what ``attempt`` returns, which begins anew while somebody else is faster."""
    for number in range(1, _ATTEMPTS + 1):
        try:
            return attempt()
        except OutdatedError:  # noqa: PERF203  # that is what the loop is for
            if number == _ATTEMPTS:
                raise
            time.sleep(random.uniform(0, min(0.02 * 2**number, _LONGEST)))  # noqa: S311  # nothing is secret here
    raise AssertionError
