"""Stores the notes of publishers about an index in a file next to its pages.

For each project, the notes contain the page, and the tags that the store lists for the page's two formats. The notes
also contain information about the files that no page lists. If the tags differ or the file is missing, a publisher
reads the pages, which are authoritative. A change is repeated until no other change interferes.
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
"""Represents a file that doesn't exist."""
ATTEMPTS = 100
_LONGEST = 2.0
"""The longest pause after another publisher made a change first, in seconds."""


def until_done(attempt: Callable[[], T]) -> T:
    """Return the result of ``attempt``, and repeat it while other publishers make changes first."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except OutdatedError:  # noqa: PERF203 # the purpose of the loop
            if number == ATTEMPTS:
                raise
            time.sleep(random.uniform(0, min(0.02 * 2**number, _LONGEST)))  # noqa: S311 # not a secret
    raise AssertionError


class First(msgspec.Struct):
    """A value for the first attempt only. Later attempts query the store.

    >>> page = First("as it was listed")
    >>> page.take(lambda: "as it is now"), page.take(lambda: "as it is now")
    ('as it was listed', 'as it is now')
    """

    value: object | None

    def take(self, read: Callable[[], T]) -> T:
        """Return the value, if there is one, on the first call. Return the result of ``read`` on all other calls."""
        value, self.value = self.value, None
        return read() if value is None else value  # type: ignore[return-value] # the caller provides a value of the same type


def load(store: Store, name: str) -> LoadedFile:
    """Return a file, or `NOTHING` if it doesn't exist."""
    try:
        return store.load(name)
    except MissingFileError:
        return NOTHING


def swap(store: Store, name: str, data: bytes, before: LoadedFile) -> LoadedFile:
    """Replace a file unless it already has these bytes, and return the new state.

    Raises the same errors as `Store.swap`.
    """
    return before if data == before.data else LoadedFile(data, store.swap(name, data, before.e_tag))


_FORMAT = 1


class Noted(msgspec.Struct, frozen=True):
    """The pages of a project that have the same contents in both formats."""

    tags: tuple[str, str]
    """The tags that the store lists for the JSON page and the HTML page."""
    page: str
    """The JSON page."""
    digest: str
    """A digest of the project's name and the page, so that damaged notes are not mistaken for a page."""
    html: str = ""
    """The digest of the HTML page, which identifies a publisher's output. Older notes don't have this digest."""

    @classmethod
    def of(cls, project: str, tags: tuple[str, str], page: str, html: bytes) -> Noted:
        """Return the note for a project."""
        return cls(tags, page, _digest(project, page), make_digest(html))

    def has_left(self, json: bytes) -> bool:
        """Return whether a JSON page equals the noted JSON page."""
        return json == self.page.encode()

    def has_left_html(self, html: bytes) -> bool:
        """Return whether an HTML page equals the noted HTML page."""
        return bool(self.html) and make_digest(html) == self.html


class Notes(msgspec.Struct, frozen=True):
    """All notes about an index."""

    format: int = _FORMAT
    projects: dict[str, Noted] = {}
    about: dict[str, tuple[str, About]] = {}
    """The hash of each file and the information about it, keyed by file name."""

    def join(self, update: NoteUpdate) -> Notes:
        """Return the notes with the projects and files in ``update`` applied."""
        projects = {name: one for name, one in {**self.projects, **update.projects}.items() if name not in update.gone}
        return Notes(_FORMAT, dict(sorted(projects.items())), dict(sorted({**self.about, **update.about}.items())))


class NoteUpdate(msgspec.Struct, frozen=True):
    """Changes to the notes."""

    projects: dict[str, Noted]
    about: dict[str, tuple[str, About]]
    gone: set[str]
    """Projects that no longer have pages."""


class NotesFile:
    """The file with the notes about an index."""

    def __init__(self, store: Store, index: str) -> None:
        self._store = store
        self._name = posixpath.join(index, PUBLISHED_NAME)
        self._first, self.notes = self._load()

    def add(self, update: NoteUpdate, read_again: Callable[[str], Noted | None]) -> Notes:
        """Add notes, merge them with concurrent changes, and return all notes.

        ``read_again`` returns the current note for a project. It is called if another publisher has also noted the
        project, because either publisher may have seen the latest pages.
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
            if (
                joined != notes or not before.data
            ):  # write it even without projects, because the file marks a family's index for the index above it
                swap(self._store, self._name, msgspec.json.encode(joined), before)
            return joined

        return until_done(attempt)

    def read(self) -> Notes:
        """Return the current notes."""
        return self._load()[1]

    def _load(self) -> tuple[LoadedFile, Notes]:
        loaded = load(self._store, self._name)
        try:
            notes = decode_json(loaded.data, Notes) if loaded.data else Notes()
        except msgspec.DecodeError:  # the notes are damaged, but the pages contain everything that is needed
            return loaded, Notes()
        if notes.format != _FORMAT:
            return loaded, Notes()
        whole = {name: one for name, one in notes.projects.items() if one.digest == _digest(name, one.page)}
        return loaded, msgspec.structs.replace(notes, projects=whole)


def _digest(project: str, page: str) -> str:
    return make_digest(f"{project}\0{page}".encode())
