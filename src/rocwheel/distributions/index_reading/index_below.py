"""Whether there is an index at an address, or below it: the folder above one is often given in place of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index_reading.source import IndexSource
from rocwheel.stores.urls import url_below

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["find_index", "raise_for_folders"]

_NAME = "simple"
"""What the folder of an index is called, of `rocwheel index` and of most others."""
_PROJECTS = 3
"""Of which one has to have files: a page with links to folders is no index yet, nor is a project that is called so."""


def find_index(url: str) -> str | None:
    """Return the URL of the package index that is at a URL, or below it; none where there is none that can be read."""
    return next(filter(_is_index, (url, url_below(url, _NAME))), None)


def raise_for_folders(urls: Iterable[str]) -> None:
    """Raise `InputError` for what is the folder above an index, `ProblemsError` for several.

    To be asked when an index lacks what it was asked for: the pages below it are read.
    """
    problems = [_folder_error(url, below) for url in urls if _is_index(below := url_below(url, _NAME))]
    raise_all("indexes", problems)


def _folder_error(url: str, below: str) -> InputError:
    found = f"is the folder above a package index, {IndexSource(below).url}"
    return InputError(IndexSource(url).url, found, remedy="Give that address.")


def _is_index(url: str) -> bool:
    """Return whether the page at a URL lists projects of which the first have files."""
    source = IndexSource(url)
    with suppress(RocwheelError):
        listings = (source.read_project(name) for name in source.projects()[:_PROJECTS])
        return any(listing is not None and listing.files for listing in listings)
    return False
