"""What a folder on this disk is, by the pages of a package index in it (:pep:`503`, :pep:`691`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.core.reading import read_regular
from rocwheel.distributions.index_reading.html_page import read_html_page
from rocwheel.distributions.index_reading.json_page import read_json_page
from rocwheel.distributions.index_reading.listing import RawPage, UnreadablePageError
from rocwheel.distributions.index_reading.trust import project_of, trusted_projects
from rocwheel.stores.urls import file_name_at

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["indexes_below", "is_local_index", "is_project_folder", "local_pages", "read_local_page"]

_PAGES = ("index.html", "index.json")


def local_pages(folder: Path) -> list[Path]:
    """Return the pages in a folder, HTML and JSON, whatever they are of."""
    return [path for name in _PAGES if (path := folder / name).is_file()]


def read_local_page(page: Path) -> RawPage:
    """Return what a page lists; raise `OSError` and `UnreadablePageError` for one that can't be read."""
    data = read_regular(page)
    return read_json_page(data) if page.suffix == ".json" else read_html_page(data)


def is_local_index(folder: Path) -> bool:
    """Return whether a folder has the page of all projects of an index: one that lists some, or can't be read.

    A page that lists distributions is another one: of a project, or of a folder of files.
    """
    pages = local_pages(folder)
    return not any(map(_listed_projects, pages)) and any(map(_may_list_projects, pages))


def indexes_below(folder: Path) -> list[Path]:
    """Return the indexes in folders right in that of an index: those of families, which its pages don't list."""
    listed = {project for page in local_pages(folder) for project in _listed(page)}
    below = sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in listed)
    return [path for path in below if is_local_index(path)]


def _listed(page: Path) -> tuple[str, ...]:
    try:
        return trusted_projects(read_local_page(page))
    except (OSError, UnreadablePageError):
        return ()


def is_project_folder(folder: Path) -> bool:
    """Return whether a folder has the page of one project of an index, which it is called by, with distributions."""
    name = canonicalize_name(folder.resolve().name)
    return any(name in _listed_projects(page) for page in local_pages(folder))


def _may_list_projects(page: Path) -> bool:
    try:
        return bool(trusted_projects(read_local_page(page)))
    except (OSError, UnreadablePageError):
        return True


def _listed_projects(page: Path) -> set[str]:
    """Return the projects of the distributions that a page lists."""
    try:
        files = read_local_page(page).files
    except (OSError, UnreadablePageError):
        return set()
    return {project_of(one.filename or file_name_at(one.url)) for one in files} - {""}
