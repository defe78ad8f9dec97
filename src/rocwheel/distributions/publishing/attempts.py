"""Changes of files on a store that others change, too: repeated until no other change came between."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.stores.store import LoadedFile, MissingFileError, OutdatedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.stores.store import Store

__all__ = ["ATTEMPTS", "NOTHING", "First", "load", "swap", "until_done"]

T = TypeVar("T")

NOTHING = LoadedFile(b"", None)
"""A file that is not there."""
ATTEMPTS = 100
_LONGEST = 2.0
"""Seconds of the longest pause after somebody else was faster."""


def until_done(attempt: Callable[[], T]) -> T:
    """Return what ``attempt`` returns, which begins anew while somebody else is faster."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except OutdatedError:  # noqa: PERF203  # that is what the loop is for
            if number == ATTEMPTS:
                raise
            time.sleep(random.uniform(0, min(0.02 * 2**number, _LONGEST)))  # noqa: S311  # nothing is secret here
    raise AssertionError


class First(msgspec.Struct):
    """A value for the first attempt alone: only later attempts ask the store.

    >>> page = First("as it was listed")
    >>> page.take(lambda: "as it is now"), page.take(lambda: "as it is now")
    ('as it was listed', 'as it is now')
    """

    value: object | None

    def take(self, read: Callable[[], T]) -> T:
        """Return the value at the first call, if there is one, and what ``read`` returns at all others."""
        value, self.value = self.value, None
        return read() if value is None else value  # type: ignore[return-value]  # whoever made it has the same type


def load(store: Store, name: str) -> LoadedFile:
    """Return a file, or `NOTHING` where there is none."""
    try:
        return store.load(name)
    except MissingFileError:
        return NOTHING


def swap(store: Store, name: str, data: bytes, before: LoadedFile) -> LoadedFile:
    """Replace a file unless it has these bytes already, and return its new state; raises as `Store.swap` does."""
    return before if data == before.data else LoadedFile(data, store.swap(name, data, before.e_tag))
