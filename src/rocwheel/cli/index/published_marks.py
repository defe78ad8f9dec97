"""Marks of yanked files in indexes on stores: which index a file is in by default, and what is there now."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import change_published_marks, is_family
from rocwheel.index.published import has_root_page
from rocwheel.index.uploads import Layout
from rocwheel.stores.open import open_store
from rocwheel.stores.store import StoreError
from rocwheel.stores.urls import is_url, parse_url, split_file_url

if TYPE_CHECKING:
    from rocwheel.index.write_index import IndexReport
    from rocwheel.index.yanked import Yanking

__all__ = ["change_published", "file_name", "index_of_file", "is_published", "local_path"]


def change_published(place: str, yanking: Yanking) -> IndexReport:
    """Change marks in the published index at a URL or path; raises as `change_published_marks` does.

    Where it is that of a family, the page for people of the index above it is brought up to date, too; whoever may not
    read that one changes the marks of the family alone.
    """
    above, _, name = place.rstrip("/").rpartition("/")
    family = unquote(name) if is_url(place) else name
    is_below = bool(above) and not above.endswith("/")  # not the whole bucket
    if is_below and _leads_to(above, family):
        return change_published_marks(open_store(above), yanking, next_front_page, family)
    return change_published_marks(open_store(place), yanking, next_front_page)


def _leads_to(above: str, family: str) -> bool:
    try:
        return is_family(open_store(above), family)
    except StoreError:
        return False


def index_of_file(url: str) -> str:
    """Return the URL of the index of a published file, where `rocwheel publish` has it by default."""
    folder = url.rpartition("/")[0]
    above = [folder.rpartition("/")[0], folder.rpartition("/")[0].rpartition("/")[0]]  # a family's file lies deeper
    places = [f"{one}/{Layout().index}" for one in above]
    return next((place for place in places if place.count("/") > 2 and has_root_page(open_store(place))), places[0])


def file_name(url: str) -> str:
    """Return the name of the file at a URL; raises as `split_file_url` does."""
    return split_file_url(url)[1]


def is_published(folder: str) -> bool:
    """Return whether a folder is an index, whoever has written it."""
    return has_root_page(open_store(folder))


def local_path(url: str) -> str:
    """Return the path that a file:// URL means; raises as `parse_url` does."""
    parse_url(url)
    return unquote(urlsplit(url).path)
