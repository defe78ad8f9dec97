"""A distribution in a folder, known from an earlier run or just read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocwheel.distributions.index.notes.known_files import KnownFile

__all__ = ["Found"]


class Found(NamedTuple):
    """A distribution, known or just read."""

    known: KnownFile
    metadata: bytes | None = None
    """Its core metadata, if it was just read and has some to show."""
