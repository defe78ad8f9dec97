"""The front page of an index on a store: made of what is noted, after that, until it shows the last notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, GENERATOR, group_by_project
from rocwheel.distributions.index.placing.extra_files import IndexContent
from rocwheel.distributions.publishing.attempts import NOTHING, First, load, swap, until_done
from rocwheel.distributions.publishing.published import parse_project
from rocwheel.distributions.publishing.root_page import require_own

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.placing.extra_files import NextExtras
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.distributions.publishing.notes import Notes, NotesFile
    from rocwheel.stores.store import LoadedFile, Store

__all__ = ["FrontPage"]


class FrontPage:
    """The front page of one index."""

    def __init__(
        self, store: Store, layout: Layout, stored: Collection[str], make: NextExtras, family: str = ""
    ) -> None:
        self._store = store
        self._name = layout.beside("", FRONT_PAGE)
        self._place = store.place(layout.page("", "json"))
        self._make = make
        self._family = family
        self._before = load(store, self._name) if self._name in stored else NOTHING
        self._require_own(self._before)

    def write(self, notes_file: NotesFile, notes: Notes) -> bool:
        """Replace the page by one of what is noted, and return whether that has changed it."""
        first = First((self._before, notes))

        def read() -> tuple[LoadedFile, Notes]:
            page = load(self._store, self._name)  # before the notes: who replaces it last has seen the last of them
            self._require_own(page)
            return page, notes_file.read()

        def attempt() -> bool:
            before, noted = first.take(read)
            files = self._make(before.data)(self._content(noted))
            return swap(self._store, self._name, files[FRONT_PAGE], before) is not before

        return until_done(attempt)

    def _content(self, notes: Notes) -> IndexContent:
        entries: list[IndexEntry] = []
        yanked: dict[str, str] = {}
        bases: dict[str, str] = {}
        for project, noted in notes.projects.items():
            published = parse_project(self._place, project, noted.page.encode(), b"")
            yanked |= published.yanked
            bases |= published.bases
            for name, entry in published.entries.items():
                sha256, about = notes.about.get(name, ("", entry.about))
                entries.append(msgspec.structs.replace(entry, about=about) if sha256 == entry.sha256 else entry)
        return IndexContent(group_by_project(entries), yanked, bases, self._family)

    def _require_own(self, page: LoadedFile) -> None:
        require_own(self._store.place(self._name), is_own=not page.data or GENERATOR.encode() in page.data)
