"""The page of all projects of an index on a store, which other publishers change at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.distributions.index.pages.simple_pages import (
    FRONT_PAGE,
    families_in_root_page,
    is_root_page,
    make_root_page,
    projects_in_root_page,
)
from rocwheel.distributions.publishing.attempts import NOTHING, First, load, swap, until_done
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.stores.store import LoadedFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.stores.store import Store

__all__ = ["RootPage", "has_root_page", "require_own"]

_END = b"</body>\n</html>\n"


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Root(msgspec.Struct, frozen=True):
    projects: tuple[_Named, ...]


class _Read(msgspec.Struct, frozen=True):
    projects: frozenset[str]
    json: LoadedFile
    html: LoadedFile


class RootPage:
    """The page of all projects.

    ``stored`` is what the store lists of the index, and ``noted`` the projects that were noted before that: publishers
    note a project when both forms of the page list it.
    """

    def __init__(self, store: Store, layout: Layout, stored: Collection[str], noted: Collection[str]) -> None:
        self._store = store
        self._layout = layout
        self._stored = stored
        self._noted = frozenset(noted)
        self._first = First(None)
        self.edited: list[str] = []
        """The places of pages that no publisher has left so, and that were written again."""

    def read(self) -> frozenset[str]:
        """Return the projects that are listed; raise `InputError` for a page that somebody else made or has broken."""
        is_there = any(self._layout.page("", form) in self._stored for form in ("html", "json"))
        read = self._load() if is_there else _Read(frozenset(), NOTHING, NOTHING)
        self._first = First(read)
        return read.projects

    def add(self, projects: Iterable[str], families: Collection[str] = (), *, has_front_page: bool) -> bool:
        """Add projects, and, where there are none, the ways to a front page and to the indexes of ``families`` below.

        Return whether either form has changed.
        """
        names = frozenset(projects)
        before = until_done(lambda: self._add_json(names))
        self._first = First(before[1])
        is_new = until_done(lambda: self._follow_html(families, has_front_page=has_front_page))
        return before[0] or is_new

    def _add_json(self, names: frozenset[str]) -> tuple[bool, _Read]:
        read = self._first.take(self._load)
        listed = read.projects | names
        json = swap(self._store, self._layout.page("", "json"), make_root_page(listed).json, read.json)
        is_whole = _has_left_json(read.json.data) and not self._noted & names - read.projects
        if json is not read.json and read.json is not NOTHING and not is_whole:
            self.edited.append(self._place("json"))
        return json is not read.json, _Read(listed, json, read.html)

    def _follow_html(self, families: Collection[str], *, has_front_page: bool) -> bool:
        read = self._first.take(self._load)
        has_way = has_front_page or FRONT_PAGE.encode() in read.html.data
        # Named and not known: another has published it just now, or somebody has removed it.
        others = [name for name in families_in_root_page(read.html.data) - {*families} if self._has_family(name)]
        page = make_root_page(read.projects, has_front_page=has_way, families=sorted([*families, *others])).html
        has_changed = swap(self._store, self._layout.page("", "html"), page, read.html) is not read.html
        gone = self._noted & read.projects - projects_in_root_page(read.html.data)
        if has_changed and read.html is not NOTHING and (gone or not _has_left_html(read.html.data)):
            self.edited.append(self._place("html"))
        return has_changed

    def _has_family(self, name: str) -> bool:
        return bool(load(self._store, self._layout.of_family(name).page("", "html")).data)

    def _load(self) -> _Read:
        html = load(self._store, self._layout.page("", "html"))
        json = load(self._store, self._layout.page("", "json"))
        projects = _projects(json.data)
        is_begun = projects is not None and make_root_page(()).html.startswith(html.data)
        require_own(self._place("html"), is_own=not html.data or is_root_page(html.data) or is_begun)
        if projects is None and (json.data or html.data):
            if not _is_whole(html.data):
                found = "can't be read as the page of all projects, nor index.html beside it"
                raise InputError(self._place("json"), found, remedy="Put one of them back.")
            projects = projects_in_root_page(html.data)
        return _Read(projects or frozenset(), json, html)

    def _place(self, form: str) -> str:
        return self._store.place(self._layout.page("", form))


def _projects(json: bytes) -> frozenset[str] | None:
    """Return the projects that a JSON page lists; none for what is no such page."""
    try:
        return frozenset(one.name for one in decode_json(json, _Root).projects)
    except msgspec.DecodeError:
        return None


def _is_whole(html: bytes) -> bool:
    """Return whether an HTML page is there to its end; its list of projects may be older than the JSON page's."""
    return is_root_page(html) and html.endswith(_END)


def _has_left_json(json: bytes) -> bool:
    """Return whether a publisher may have left a JSON page so: as it would be made again."""
    projects = _projects(json)
    return projects is not None and make_root_page(projects).json == json


def _has_left_html(html: bytes) -> bool:
    """Return whether a publisher may have left an HTML page so."""
    families = sorted(families_in_root_page(html))
    has_front = FRONT_PAGE.encode() in html
    return make_root_page(projects_in_root_page(html), has_front_page=has_front, families=families).html == html


def has_root_page(store: Store, folder: str = "") -> bool:
    """Return whether a folder of the store has the page of all projects as rocwheel writes it; notes may be missing."""
    return is_root_page(load(store, Layout(folder).page("", "html")).data)


def require_own(place: str, *, is_own: bool) -> None:
    """Raise `InputError` for a page that no publisher has made."""
    if not is_own:
        remedy = "Name the folder of another index by --output, or remove the page."
        raise InputError(place, "a page that this command has not written", remedy=remedy)
