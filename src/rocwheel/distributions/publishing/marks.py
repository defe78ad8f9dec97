"""Marks of yanked files (:pep:`592`) in an index that was published to a store, and in those of its families."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.distributions.index.entries.entry import parse_file_name
from rocwheel.distributions.index.notes.known_files import PUBLISHED_NAME
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE
from rocwheel.distributions.index.planning.yanked import Yanking, change_yanked
from rocwheel.distributions.index.report import IndexReport
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.distributions.publishing.notes import NotesFile
from rocwheel.distributions.publishing.one_index import OneIndex, Place
from rocwheel.distributions.publishing.uploads import list_stored
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.distributions.index.placing.extra_files import NextExtras
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["change_published_marks"]


def change_published_marks(store: Store, yanking: Yanking, make_front: NextExtras) -> IndexReport:
    """Change marks in the index that the store is, and in those of families below it that list the files.

    Others may publish at the same time. The report has the projects of the files alone. Raises `InputError` for a store
    that is no published index and for files that no page lists, before anything is changed; `StoreError` for what the
    store refuses.
    """
    projects = _projects([*yanking.yanked, *yanking.unyanked])
    families = _find_families(list_stored(store, ""))
    if "" not in families:
        remedy = "Name the index that rocwheel publish has written with --output."
        raise InputError(store.url, "is not an index that rocwheel has published", remedy=remedy)
    notes = {family: NotesFile(store, family) for family in families}
    pages = list_stored(store, "")  # after the notes: what they name is listed, or gone
    problems: list[RocwheelError] = []
    indexes = {family: _open(store, family, pages, notes[family], make_front, problems) for family in families}
    raise_all(store.url, problems)
    listed = {family: index.find(projects) for family, index in indexes.items()}
    change_yanked({}, yanking, set().union(*listed.values()), store.url)
    reports = {
        family: index.mark(_among(yanking, listed[family])) for family, index in indexes.items() if listed[family]
    }
    first = reports.pop("", None) or IndexReport(store.url, {}, (), ())
    return IndexReport(first.output, first.projects, (), (), first.yanked, families=reports)


def _open(
    store: Store, family: str, pages: Mapping[str, StoredFile], notes: NotesFile, make_front: NextExtras,
    problems: list[RocwheelError],
) -> OneIndex:  # fmt: skip
    index = Place(store, Layout(family), pages, notes, family)
    has_front = index.layout.beside("", FRONT_PAGE) in pages
    return OneIndex(index, (), make_front if has_front else None, problems)


def _projects(names: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name in names:
        found[parse_file_name(name).project].add(name)
    return found


def _find_families(stored: Iterable[str]) -> list[str]:
    """Return the folders of the store that are published indexes; that of all has no name."""
    return sorted(posixpath.dirname(name) for name in stored if posixpath.basename(name) == PUBLISHED_NAME)


def _among(yanking: Yanking, names: set[str]) -> Yanking:
    yanked = {name: reason for name, reason in yanking.yanked.items() if name in names}
    return Yanking(yanked, tuple(name for name in yanking.unyanked if name in names))
