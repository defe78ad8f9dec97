"""An index on a store, and which indexes of families are below it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.notes.known_files import PUBLISHED_NAME
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.distributions.publishing.notes import NotesFile
from rocwheel.stores.store import Store, StoredFile

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Place", "find_families"]


class Place(msgspec.Struct, frozen=True):
    """An index on a store, and what is known of it before any page is read."""

    store: Store
    layout: Layout
    stored: Mapping[str, StoredFile]
    """What the store lists of it, after the notes were read."""
    notes_file: NotesFile
    family: str = ""
    """Whose index it is; empty for that of all."""
    families: frozenset[str] = frozenset()
    """Whose indexes are below it, or will be."""


def find_families(layout: Layout, stored: Collection[str]) -> frozenset[str]:
    """Return the names of the folders right below an index that are published indexes, too.

    ``stored`` are the names of the files that the store lists there.
    """
    notes = (name for name in stored if posixpath.basename(name) == PUBLISHED_NAME)
    folders = {posixpath.dirname(name) for name in notes}
    found = {posixpath.basename(folder) for folder in folders if posixpath.dirname(folder) == layout.index}
    return frozenset(name for name in found if name and layout.of_family(name).page("", "html") in stored)
