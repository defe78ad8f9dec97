"""What publishers note of an index in a file beside its pages, changed until no other change comes between.

Of each project it has the page and the tags with which the store lists its two forms. It also has what the files say
to people, which no page lists. Whoever finds other tags, or no such file, reads the pages: they alone are the index.
"""

from __future__ import annotations

import posixpath
import random
import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.index.entry import About
from rocwheel.index.folder_notes import PUBLISHED_NAME
from rocwheel.index.pages import make_digest
from rocwheel.stores.store import LoadedFile, MissingFileError, OutdatedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.stores.store import Store


T = TypeVar("T")

NOTHING = LoadedFile(b"", None)
"""A file that is not there."""
ATTEMPTS = 100
_LONGEST = 2.0
"""Seconds of the longest pause after somebody else was faster."""


def until_done(attempt: Callable[[], T]) -> T:
    """Return what ``attempt`` returns, which begins anew while somebody else is faster."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except OutdatedError:  # noqa: PERF203  # that is what the loop is for
            if number == ATTEMPTS:
                raise
            time.sleep(random.uniform(0, min(0.02 * 2**number, _LONGEST)))  # noqa: S311  # nothing is secret here
    raise AssertionError


class First(msgspec.Struct):
    """A value for the first attempt alone: only later attempts ask the store.

    >>> page = First("as it was listed")
    >>> page.take(lambda: "as it is now"), page.take(lambda: "as it is now")
    ('as it was listed', 'as it is now')
    """

    value: object | None

    def take(self, read: Callable[[], T]) -> T:
        """Return the value at the first call, if there is one, and what ``read`` returns at all others."""
        value, self.value = self.value, None
        return read() if value is None else value  # type: ignore[return-value]  # whoever made it has the same type


def load(store: Store, name: str) -> LoadedFile:
    """Return a file, or `NOTHING` where there is none."""
    try:
        return store.load(name)
    except MissingFileError:
        return NOTHING


def swap(store: Store, name: str, data: bytes, before: LoadedFile) -> LoadedFile:
    """Replace a file unless it has these bytes already, and return its new state; raises as `Store.swap` does."""
    return before if data == before.data else LoadedFile(data, store.swap(name, data, before.e_tag))


_FORMAT = 1


class Noted(msgspec.Struct, frozen=True):
    """A project's pages that are the same in both forms."""

    tags: tuple[str, str]
    """With which the store lists the JSON page and the HTML page."""
    page: str
    """The JSON page."""
    digest: str
    """Of the project's name and the page: of damaged notes, nothing is taken for a page."""
    html: str = ""
    """The digest of the HTML page: one that has it is as a publisher has left it. Older notes have none."""

    @classmethod
    def of(cls, project: str, tags: tuple[str, str], page: str, html: bytes) -> Noted:
        """Return what to note of a project."""
        return cls(tags, page, _digest(project, page), make_digest(html))

    def has_left(self, json: bytes) -> bool:
        """Return whether a JSON page is the noted one."""
        return json == self.page.encode()

    def has_left_html(self, html: bytes) -> bool:
        """Return whether an HTML page is the noted one."""
        return bool(self.html) and make_digest(html) == self.html


class Notes(msgspec.Struct, frozen=True):
    """All that is noted."""

    format: int = _FORMAT
    projects: dict[str, Noted] = {}
    about: dict[str, tuple[str, About]] = {}
    """Hash of a file and what it says of itself, by file name."""

    def join(self, update: NoteUpdate) -> Notes:
        """Return the notes with what is new in place of what they have of the same projects and files."""
        projects = {name: one for name, one in {**self.projects, **update.projects}.items() if name not in update.gone}
        return Notes(_FORMAT, dict(sorted(projects.items())), dict(sorted({**self.about, **update.about}.items())))


class NoteUpdate(msgspec.Struct, frozen=True):
    """What is to be noted."""

    projects: dict[str, Noted]
    about: dict[str, tuple[str, About]]
    gone: set[str]
    """Projects that have no pages any more."""


class NotesFile:
    """The file with the notes of one index."""

    def __init__(self, store: Store, index: str) -> None:
        self._store = store
        self._name = posixpath.join(index, PUBLISHED_NAME)
        self._first, self.notes = self._load()

    def add(self, update: NoteUpdate, read_again: Callable[[str], Noted | None]) -> Notes:
        """Note what is new, with what others note meanwhile, and return all.

        ``read_again`` returns what there is to note of a project now: if somebody else has noted one as well, either
        may have seen the last of its pages.
        """
        first = First((self._first, self.notes))

        def attempt() -> Notes:
            before, notes = first.take(self._load)
            contested = [
                name
                for name, noted in update.projects.items()
                if notes.projects.get(name) not in (self.notes.projects.get(name), noted)
            ]
            found = {name: read_again(name) for name in contested}
            updated = {name: found.get(name, noted) for name, noted in update.projects.items()}
            projects = {name: noted for name, noted in updated.items() if noted is not None}
            joined = notes.join(msgspec.structs.replace(update, projects=projects))
            if joined != notes or not before.data:  # also without any projects: by it, an index above others is known
                swap(self._store, self._name, msgspec.json.encode(joined), before)
            return joined

        return until_done(attempt)

    def read(self) -> Notes:
        """Return what is noted now."""
        return self._load()[1]

    def _load(self) -> tuple[LoadedFile, Notes]:
        loaded = load(self._store, self._name)
        try:
            notes = decode_json(loaded.data, Notes) if loaded.data else Notes()
        except msgspec.DecodeError:  # damaged: the pages have all that is needed
            return loaded, Notes()
        if notes.format != _FORMAT:
            return loaded, Notes()
        whole = {name: one for name, one in notes.projects.items() if one.digest == _digest(name, one.page)}
        return loaded, msgspec.structs.replace(notes, projects=whole)


def _digest(project: str, page: str) -> str:
    return make_digest(f"{project}\0{page}".encode())
