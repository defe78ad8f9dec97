"""The seam to every place that holds files by name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.foundation.files.reading.file_stamp import FileStamp

__all__ = ["LoadedFile", "Store", "StoredFile", "is_same_tag"]


class StoredFile(msgspec.Struct, frozen=True):
    """What a store says of a file without its bytes."""

    name: str
    """Below the store's URL, with ``/`` between folders."""
    size: int
    """Bytes; -1 where a listing doesn't tell."""
    e_tag: str | None = None
    """Changes with the bytes; none where the store has no such thing."""
    modified: datetime | None = None
    """By the clock of the store, in UTC."""
    sha256: str = ""
    """In hexadecimal, as whoever put the file has noted it beside; empty where nobody has."""


def is_same_tag(before: str | None, now: str | None) -> bool:
    """Return whether two tags can be those of the same bytes: listings of some stores have them without quotes.

    >>> is_same_tag("1f", '"1f"'), is_same_tag('"1f"', '"2e"'), is_same_tag(None, '"2e"')
    (True, False, True)
    """
    return before is None or now is None or before.strip('"') == now.strip('"')


class LoadedFile(msgspec.Struct, frozen=True):
    """A small file and its state, of one moment."""

    data: bytes
    e_tag: str | None


class Store(Protocol):
    """Files by name. Every method may be called by several threads at once.

    All raise a `rocwheel.stores.errors.StoreError` that names the file's URL. Answers that say "later" and transfers
    that end early are tried again, with growing pauses, before that is raised.
    """

    @property
    def url(self) -> str:
        """The URL as messages show it: without a password and without the query, which may hold a signature."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of this machine: with its clock, and made when something is put into it."""

    def place(self, name: str) -> str:
        """Return the URL of a file as messages show it."""

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in the folder ``prefix`` and below, in order of their names.

        Names are below the store's URL, not below the prefix. Raises `UnlistableError` for a server that can't say.
        """

    def head(self, name: str) -> StoredFile:
        """Return what the store says of a file; raise `MissingFileError` where there is none."""

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file with the tag that `swap` wants; raises as `head` does."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file; raises as `head` does."""

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to ``stop``, fewer where the file ends before.

        Raises as `head` does, and `RangesIgnoredError` for a server that sends whole files only.
        """

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in pieces; a transfer that ends early is taken up where it ended.

        ``e_tag`` is that of the file as it was seen before, of whose bytes these are to be the rest. Raises as `head`
        does, and `OutdatedError` when the file was replaced since, or is replaced meanwhile. Where a server sends
        whole files only, what lies before ``start`` is read and thrown away.
        """

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
    ) -> None:
        """Store a file, which appears only when it is whole; ``sha256`` is noted beside where the store can do that.

        With ``create``, raises `TakenError` where a file of that name is, whatever its bytes. Raises `ChangedFileError`
        if ``source`` changes meanwhile, or is not the file that had ``stamp`` when it was read: nothing is stored then.
        """

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has the tag with which it was loaded, or create it where that is none.

        Return the tag that it has now. Raises `OutdatedError` when somebody else was faster.
        """

    def delete(self, name: str) -> None:
        """Remove a file; nothing where there is none."""
