"""The folder above an index, given in place of it: the address of the other one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.distributions.index_reading.source import IndexSource
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, RocwheelError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["raise_for_folders"]

_NAME = "simple"
"""What the folder of an index is called, of `rocwheel index` and of most others."""
_PAGES = 3
"""Projects of which one has to have files: the page of a project that is called so is no index."""


def raise_for_folders(urls: Iterable[str]) -> None:
    """Raise `InputError` for what is the folder above an index, `ProblemsError` for several.

    To be asked when an index lacks what it was asked for: the pages below it are read.
    """
    problems = [
        InputError(IndexSource(url).url, f"is the folder above a package index, {below}", remedy="Give that address.")
        for url in urls
        if (below := _index_below(url))
    ]
    raise_all("indexes", problems)


def _index_below(url: str) -> str:
    """Return the URL of the index in a folder, as messages show it; empty where there is none."""
    source = IndexSource(f"{url.rstrip('/')}/{_NAME}")
    with suppress(RocwheelError):
        listings = (source.read_project(name) for name in source.projects()[:_PAGES])
        if any(listing is not None and listing.files for listing in listings):
            return source.url
    return ""
