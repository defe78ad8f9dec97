"""The front page of an index on a store: made of what is noted, after that, until it shows the last notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.pages.page_digest import is_as_made
from rocwheel.distributions.index.pages.simple_pages import (
    FRONT_PAGE,
    GENERATOR,
    families_in_root_page,
    group_by_project,
)
from rocwheel.distributions.index.placing.extra_files import IndexContent
from rocwheel.distributions.publishing.attempts import NOTHING, First, load, swap, until_done
from rocwheel.distributions.publishing.notes import NotesFile
from rocwheel.distributions.publishing.pages.published import parse_project
from rocwheel.distributions.publishing.pages.root_page import require_own

if TYPE_CHECKING:
    from rocwheel.distributions.index.entries.entry import IndexEntry
    from rocwheel.distributions.index.placing.extra_files import NextExtras
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.distributions.publishing.notes import Notes
    from rocwheel.distributions.publishing.place import Place
    from rocwheel.stores.store import LoadedFile

__all__ = ["FrontPage"]


class FrontPage:
    """The front page of one index."""

    def __init__(self, place: Place, make: NextExtras) -> None:
        self._place = place
        self._store = place.store
        self._name = place.layout.beside("", FRONT_PAGE)
        self._make = make
        self._before = load(place.store, self._name) if self._name in place.stored else NOTHING
        self._require_own(self._before)
        self.edited: list[str] = []
        """The place of the page if somebody had edited it and it was written again."""

    def write(self, notes_file: NotesFile, notes: Notes) -> bool:
        """Replace the page by one of what is noted, and return whether that has changed it."""
        # What families list is read after the page, by whoever writes it: who is last has seen the last of them.
        first = First(None if self._place.families else (self._before, notes))
        if not self._place.families and notes == notes_file.notes:
            # Nobody has looked whether the notes were still those when the page was read.
            if self._page(self._before, notes) == self._before.data:
                return False
            first = First(None)

        def read() -> tuple[LoadedFile, Notes]:
            page = load(self._store, self._name)  # before the notes: who replaces it last has seen the last of them
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
        """Return the page that follows on another one."""
        content = self._content(self._place.layout, notes, self._place.family)
        content = msgspec.structs.replace(content, families=self._families())
        return self._make(before.data)(content)[FRONT_PAGE]

    def _families(self) -> dict[str, IndexContent]:
        """Return what the indexes of families below list, as far as it is noted; also of what others publish now."""
        layout = self._place.layout
        if not self._place.families:
            return {}
        named = families_in_root_page(load(self._store, layout.page("", "html")).data)
        layouts = {name: layout.of_family(name) for name in sorted(self._place.families | named)}
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
