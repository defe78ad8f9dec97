"""How often Python's garbage collector runs: it takes long where many values stay."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["loading_without_collections", "rare_collections"]

_SELDOM = 200_000
"""New containers between two searches; 700 by default, of which ten thousand files have many times as many."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles seldom in a block that makes many values to keep, in all threads; memory stays bounded.

    Each search goes through what was made since the last ones, again and again: with a hundred thousand values, that
    is a third of the work with them.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _SELDOM) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def loading_without_collections() -> Iterator[None]:
    """Look for no cycles in a block that loads modules, and after it never among what has been made until then.

    Modules and their classes stay until the process ends, and nearly all of the garbage comes later. The documentation
    of `gc.freeze` names this order.
    """
    is_wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_wanted:
            gc.enable()
