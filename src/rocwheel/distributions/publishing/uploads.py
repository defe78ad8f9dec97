"""Files that go to a store: which are there already, and the others."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.entries.entry import IndexEntry
from rocwheel.distributions.publishing.known_bytes import put_same, require_same
from rocwheel.foundation.collecting import raise_all, serialised
from rocwheel.foundation.files.file_stamp import ChangedFileError, FileStamp
from rocwheel.foundation.workers import open_workers
from rocwheel.stores.errors import MissingStoreError, TakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.foundation.progress import Progress
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["AT_ONCE", "Upload", "find_missing", "list_stored", "upload_all"]

AT_ONCE = 6
"""Requests under way at a time; each may hold a file of 32 MiB in memory."""


class Upload(msgspec.Struct, frozen=True):
    """A distribution that was read, and what belongs beside it."""

    entry: IndexEntry
    stamp: FileStamp
    metadata: bytes | None
    """The core metadata whose hash the entry has."""


def list_stored(store: Store, folder: str) -> dict[str, StoredFile]:
    """Return the files in a folder of a store by their names there; none where there is no store yet."""
    try:
        return {file.name: file for file in store.list(folder)}
    except MissingStoreError:
        if store.url.startswith("s3:"):
            raise
        return {}


def find_missing(
    store: Store, layout: Layout, uploads: Iterable[Upload], stored: Mapping[str, StoredFile], known: Mapping[str, str]
) -> list[Upload]:
    """Return those of ``uploads`` that are not, or not wholly, on the store.

    ``stored`` is what is there, by name, and ``known`` has the hashes of what pages list, by file name: those files
    aren't read again. Raises `TakenError`, or `ProblemsError`, for files of a name that have other bytes.
    """
    problems: list[RocwheelError] = []
    missing = []
    for upload in uploads:
        file = stored.get(layout.file(upload.entry.filename))
        beside = f"{layout.file(upload.entry.filename)}.metadata" in stored or upload.metadata is None
        if file is None or not beside:
            missing.append(upload)
        if file is not None:
            is_known = known.get(upload.entry.filename) == upload.entry.sha256 and file.size == upload.entry.size
            problems += () if is_known else _problem(lambda: require_same(store, file, *_size_and_hash(upload)))  # noqa: B023
    raise_all(store.url, problems)
    return missing


def _size_and_hash(upload: Upload) -> tuple[int, str]:
    return upload.entry.size, upload.entry.sha256


def _problem(check: Callable[[], None]) -> list[RocwheelError]:
    try:
        check()
    except TakenError as e:
        return [e]
    return []


def upload_all(store: Store, layout: Layout, dist_dir: Path, uploads: Sequence[Upload], progress: Progress) -> None:
    """Store distributions, each before its metadata. Raises what goes wrong first."""
    if not uploads:
        return
    progress.begin("uploading", sum(upload.entry.size for upload in uploads))
    advance = serialised(progress.advance)

    def upload(one: Upload) -> None:
        _upload(store, layout.file(one.entry.filename), dist_dir / one.entry.filename, one)
        advance(one.entry.size)

    with open_workers(AT_ONCE) as executor:
        for _ in executor.map(upload, sorted(uploads, key=lambda one: (-one.entry.size, one.entry.filename))):
            pass
    progress.end()


def _upload(store: Store, name: str, path: Path, upload: Upload) -> None:
    was_put = put_same(store, name, path, upload.entry.size, upload.entry.sha256)
    try:
        upload.stamp.require(path.stat(), str(path))
    except (OSError, ChangedFileError):
        if was_put:  # what nobody has checked
            store.delete(name)
        raise
    if upload.metadata is not None:
        digest = hashlib.sha256(upload.metadata).hexdigest()
        put_same(store, f"{name}.metadata", upload.metadata, len(upload.metadata), digest)
