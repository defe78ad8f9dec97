"""Marks of yanked files (:pep:`592`) in an index that was published to a store, and in those of its families."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index.entries.file_name import parse_file_name
from rocwheel.distributions.index.notes.known_files import KNOWN_NAME, PUBLISHED_NAME
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES, families_in_root_page
from rocwheel.distributions.index.planning.yanked import KEEP_YANKED, NAME_REMEDY, Yanking, change_yanked, share_yanking
from rocwheel.distributions.index.report import IndexReport
from rocwheel.distributions.publishing.attempts import load
from rocwheel.distributions.publishing.layout import Layout
from rocwheel.distributions.publishing.notes import NotesFile
from rocwheel.distributions.publishing.one_index import OneIndex
from rocwheel.distributions.publishing.pages.root_page import has_root_page
from rocwheel.distributions.publishing.place import Place, find_families
from rocwheel.distributions.publishing.uploads import list_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rocwheel.core.errors import RocwheelError
    from rocwheel.distributions.index.placing.extra_files import NextExtras
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["change_published_marks", "is_family"]


def is_family(store: Store, name: str) -> bool:
    """Return whether the store is a published index whose page leads to that of a family of this name below it."""
    page = load(store, Layout("").page("", "html")).data
    return name in families_in_root_page(page)


def change_published_marks(
    store: Store, yanking: Yanking, make_front: NextExtras, family: str | None = None
) -> IndexReport:
    """Change marks in the index that the store is, and in those of families below it that list the files.

    With a ``family``, the marks are of its index alone, and the page for people of the one above it is brought up to
    date. Others may publish at the same time. The report has the projects of the files alone. Raises `InputError` for a
    store that is no published index and for files that no page lists, before anything is changed; `StoreError` for what
    the store refuses.
    """
    projects = _projects([*yanking.yanked, *yanking.unyanked])
    families = _find_families(store, list_stored(store, ""))
    if not {"", family or ""} <= {*families}:
        remedy = "Name the index that rocwheel publish has written with --output."
        raise InputError(store.url, "is not an index that rocwheel has published", remedy=remedy)
    notes = {name: NotesFile(store, name) for name in families}
    pages = list_stored(store, "")  # after the notes: what they name is listed, or gone
    problems: list[RocwheelError] = []
    indexes = {name: _open(store, name, pages, notes[name], make_front, problems) for name in families}
    raise_all(store.url, problems)
    marked = indexes if family is None else {family: indexes[family]}
    listed = {name: index.find(projects) for name, index in marked.items()}
    change_yanked({}, yanking, set[str]().union(*listed.values()), store.url)
    shared = share_yanking(yanking, listed)
    changed = [name for name in marked if shared[name] != KEEP_YANKED]
    reports = {name: indexes[name].mark(shared[name]) for name in changed if name}
    if "" in changed:
        reports[""] = indexes[""].mark(shared[""])
    else:
        indexes[""].show()
    first = reports.pop(family or "", None) or IndexReport(store.url, {}, (), ())
    edited = tuple(page for index in indexes.values() for page in index.edited)
    return IndexReport(first.output, first.projects, (), (), first.yanked, edited=edited, families=reports)


def _open(
    store: Store, family: str, pages: Mapping[str, StoredFile], notes: NotesFile, make_front: NextExtras,
    problems: list[RocwheelError],
) -> OneIndex:  # fmt: skip
    layout = Layout(family)
    index = Place(store, layout, pages, notes, family, find_families(layout, pages))
    has_front = index.layout.beside("", FRONT_PAGE) in pages
    return OneIndex(index, (), make_front if has_front else None, problems)


def _projects(names: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name in names:
        found[_project(name)].add(name)
    return found


def _project(name: str) -> str:
    try:
        return parse_file_name(name).project
    except InputError as e:
        raise InputError(name, e.found, expected=e.expected, remedy=NAME_REMEDY.format("in the index")) from e


def _find_families(store: Store, stored: Collection[str]) -> list[str]:
    """Return the folders of the store that are published indexes; that of all has no name.

    They have a page of all projects. That of a family that lists no file is left out.
    """
    folders = {posixpath.dirname(name) for name in stored if posixpath.basename(name) in PAGES}
    above = {"", *map(posixpath.dirname, folders)} & folders  # no project has a page in a folder below its own
    return [folder for folder in sorted(above) if not _is_local(folder, stored) and has_root_page(store, folder)]


def _is_local(folder: str, stored: Collection[str]) -> bool:
    """Return whether `rocwheel.distributions.index.write_index` has written an index, which was copied to the store."""
    known, published = (posixpath.join(folder, name) in stored for name in (KNOWN_NAME, PUBLISHED_NAME))
    return known and not published
