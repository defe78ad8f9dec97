"""The interface of every place that holds files by name: folders, S3 buckets and web servers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.core.reading import FileStamp


class StoreError(WorkError):
    """Something that a store refused or could not do; ``source`` is the URL of the file or of the store."""


class MissingFileError(StoreError):
    """The store has no file of that name."""


class MissingStoreError(StoreError):
    """There is no such bucket, server or folder."""


class ForbiddenError(StoreError):
    """The store knows who asks, and doesn't allow it."""


class CredentialsError(StoreError):
    """There are no credentials, or the store doesn't accept them."""


class ClockError(StoreError):
    """The clock of this machine is too far from that of the store for its signatures to be valid."""


class PassingError(StoreError):
    """What often passes, so that the store is asked again: it was there at the last attempt, too."""

    attempts = 1
    """How often the store was asked."""

    def add_attempts(self, attempts: int, seconds: float) -> None:
        """Say how often the store was asked in all, and for how long."""
        self.found = f"{self.args[1]}, after {count(attempts, 'attempt')} in {seconds:.1f} s"
        self.attempts = attempts


class BusyError(PassingError):
    """The store was overloaded or out of order."""

    def __init__(
        self, source: Path | str, found: str, *, expected: str = "", remedy: str = "", retry_after: float = 0.0
    ) -> None:
        self.retry_after = retry_after
        """Seconds after which the store wants to be asked again; none (0) where it doesn't say."""
        super().__init__(source, found, expected=expected, remedy=remedy)


class BrokenTransferError(PassingError):
    """The connection ended in the middle of a file."""


class TakenError(StoreError):
    """A file that was to be created is there already."""


class OutdatedError(StoreError):
    """A file that was to be replaced is no longer what it was when it was read."""


class UnlistableError(StoreError):
    """The store can't say what it holds."""


class RangesIgnoredError(StoreError):
    """A web server sends whole files only."""


class MissingExtraError(InputError):
    """The library for stores is not installed."""


def taken(place: str) -> TakenError:
    """Return the error for a new file whose name another one has."""
    return TakenError(place, "is there already", remedy="Give the new file another name or version.")


def outdated(place: str) -> OutdatedError:
    """Return the error for a file that is another one than at first."""
    return OutdatedError(place, "was changed meanwhile by somebody else", remedy="Try again.")


UPLOADS = ".rocwheel-uploads"
"""The folder in a store where large files are until they are whole; what a killed run leaves there says so."""
HASHES = ".rocwheel-sha256"
"""The folder beside large files with a note of the hash of each."""


def checked_name(url: str, name: str) -> str:
    """Return a name; raise `InputError` for one that is empty or leads out of the store at ``url``."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name:
        raise InputError(url, f"can't hold a file named {quoted(name)}", expected="a path without '..' and empty parts")
    return name


_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".whl": "application/zip",
    ".gz": "application/gzip",
    ".metadata": "text/plain; charset=utf-8",
    ".toml": "application/toml",
}


def content_type(name: str) -> str:
    """Return the content type to store a file with."""
    return next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), "application/octet-stream")


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

    All raise a `rocwheel.stores.store.StoreError` that names the file's URL. Answers that say "later" and transfers
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
        advance: Callable[[int], object] = id,
    ) -> None:
        """Store a file, which appears only when it is whole; ``sha256`` is noted beside where the store can do that.

        With ``create``, raises `TakenError` where a file of that name is, whatever its bytes. Raises `ChangedFileError`
        if ``source`` changes meanwhile, or is not the file that had ``stamp`` when it was read: nothing is stored then.
        ``advance`` is called with the number of bytes of a large file as they are read to be sent.
        """

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has the tag with which it was loaded, or create it where that is none.

        Return the tag that it has now. Raises `OutdatedError` when somebody else was faster.
        """

    def delete(self, name: str) -> None:
        """Remove a file; nothing where there is none."""
