"""The common interface of folders, S3 buckets, and web servers that store files by name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count, quoted
from rocwheel.core.progress import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.core.reading import FileStamp


class StoreError(WorkError):
    """A store rejected a request or couldn't complete it. ``source`` is the URL of the file or of the store."""


class MissingFileError(StoreError):
    """The store has no file with that name."""


class MissingStoreError(StoreError):
    """The bucket, server, or folder doesn't exist."""


class ForbiddenError(StoreError):
    """The store identified the user but doesn't allow access."""


class CredentialsError(StoreError):
    """Credentials are missing or invalid."""


class ClockError(StoreError):
    """The clock of this machine differs from the store's clock by so much that signatures are invalid."""


class PassingError(StoreError):
    """A temporary error occurred. The request was retried, and the last attempt also failed."""

    attempts = 1
    """The number of attempts."""

    def add_attempts(self, attempts: int, seconds: float) -> None:
        """Add the total number of attempts and their duration to the message."""
        self.found = f"{self.args[1]}, after {count(attempts, 'attempt')} in {seconds:.1f} s"
        self.attempts = attempts


class BusyError(PassingError):
    """The store was overloaded or unavailable."""

    def __init__(
        self, source: Path | str, found: str, *, expected: str = "", remedy: str = "", retry_after: float = 0.0
    ) -> None:
        self.retry_after = retry_after
        """The wait in seconds that the store requests before a retry, or 0 if unknown."""
        super().__init__(source, found, expected=expected, remedy=remedy)


class BrokenTransferError(PassingError):
    """The connection ended in the middle of a file."""


class TakenError(StoreError):
    """A file that should be created already exists."""


class OutdatedError(StoreError):
    """A file that should be replaced has changed since it was read."""


class UnlistableError(StoreError):
    """The store can't list its contents."""


class RangesIgnoredError(StoreError):
    """A web server sends only whole files."""


class MissingExtraError(InputError):
    """The library for stores is not installed."""


def taken(place: str) -> TakenError:
    """Return the error for a new file whose name is already in use."""
    return TakenError(place, "already exists", remedy="Use a different name or version for the new file.")


def outdated(place: str) -> OutdatedError:
    """Return the error for a file that has changed."""
    return OutdatedError(place, "was changed by another process in the meantime", remedy="Try again.")


UPLOADS = ".rocwheel-uploads"
"""The folder in a store for incomplete large files. Its content shows whether killed runs have left files behind."""
HASHES = ".rocwheel-sha256"
"""The folder next to large files that contains a record with the hash of each of these files."""


def checked_name(url: str, name: str) -> str:
    """Return ``name``. Raise `InputError` if it is empty or points outside the store at ``url``."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name:
        raise InputError(
            url, f"can't contain a file named {quoted(name)}", expected="a path without '..' or empty parts"
        )
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
    """Return the content type to store with a file."""
    return next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), "application/octet-stream")


class StoredFile(msgspec.Struct, frozen=True):
    """A store's information about a file, without the file's bytes."""

    name: str
    """The path below the store's URL, with ``/`` between folders."""
    size: int
    """The size in bytes, or -1 if a listing doesn't contain it."""
    e_tag: str | None = None
    """A value that changes whenever the bytes change, or `None` if the store has no tags."""
    modified: datetime | None = None
    """The time of the last modification according to the store's clock, in UTC."""
    sha256: str = ""
    """The recorded hash in hexadecimal; empty if there is no record."""


def is_same_tag(before: str | None, now: str | None) -> bool:
    """Return whether two tags may belong to the same bytes. Listings of some stores omit the quotes.

    >>> is_same_tag("1f", '"1f"'), is_same_tag('"1f"', '"2e"'), is_same_tag(None, '"2e"')
    (True, False, True)
    """
    return before is None or now is None or before.strip('"') == now.strip('"')


class LoadedFile(msgspec.Struct, frozen=True):
    """The content and the tag of a small file at one point in time."""

    data: bytes
    e_tag: str | None


class Store(Protocol):
    """Files with names. Several threads may call every method at the same time.

    All methods raise a `rocwheel.stores.store.StoreError` with the file's URL. Temporary errors and interrupted
    transfers are retried first, with increasing pauses.
    """

    @property
    def url(self) -> str:
        """The URL as shown in messages, without a password or query. A query may contain a signature."""

    @property
    def is_folder(self) -> bool:
        """Whether the store is a folder on this machine.

        Such a store uses this machine's clock and is created on first write.
        """

    def place(self, name: str) -> str:
        """Return the URL of a file as shown in messages."""

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the files in and below the folder ``prefix``, sorted by name.

        Names are relative to the store's URL, not to the prefix. Raises `UnlistableError` for a server without
        listings.
        """

    def head(self, name: str) -> StoredFile:
        """Return the store's information about a file. Raise `MissingFileError` if the file doesn't exist."""

    def load(self, name: str) -> LoadedFile:
        """Return the bytes of a small file with the tag for `swap`. Raises the same errors as `head`."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file. Raises the same errors as `head`."""

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to, but not including, ``stop``.

        The result is shorter if the file ends earlier.

        Raises the same errors as `head`, and `RangesIgnoredError` for a server that sends only whole files.
        """

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` in chunks. An interrupted transfer resumes where it stopped.

        ``e_tag`` is the tag of the file whose remaining bytes are requested. Raises the same errors as `head`, and
        `OutdatedError` if the file is replaced before the transfer ends. If a server sends only whole files, the bytes
        before ``start`` are read and discarded.
        """

    def put(
        self,
        name: str,
        source: bytes | Path,
        *,
        create: bool = True,
        sha256: str = "",
        stamp: FileStamp | None = None,
        advance: Callable[[int], object] = SILENT.advance,
    ) -> None:
        """Store a file, which appears only when it is complete. ``sha256`` is recorded if the store supports hashes.

        With ``create``, raises `TakenError` if a file with that name exists, regardless of its bytes. If ``source``
        changes in the meantime or no longer has ``stamp``, raises `ChangedFileError` without storing anything.
        ``advance`` is called repeatedly with the number of bytes that were read from a large file.
        """

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a small file if it still has the tag that it was loaded with, or create it if the tag is `None`.

        Return the new tag. Raises `OutdatedError` if another writer was faster.
        """

    def delete(self, name: str) -> None:
        """Remove a file if it exists."""
