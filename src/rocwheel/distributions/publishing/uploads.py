"""Files that go to a store: which are there already, and the others."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.core.errors import read_error
from rocwheel.core.reading import ChangedFileError
from rocwheel.core.workers import open_workers, raise_all, serialised
from rocwheel.distributions.index.entries.entry import read_metadata
from rocwheel.distributions.publishing.known_bytes import put_same, require_same
from rocwheel.stores.store import UPLOADS, MissingStoreError, TakenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.distributions.publishing.layout import Layout
    from rocwheel.distributions.publishing.local import Upload
    from rocwheel.stores.store import Store, StoredFile

__all__ = ["AT_ONCE", "find_leftovers", "find_missing", "list_stored", "upload_all"]

Item = TypeVar("Item")

AT_ONCE = 16
"""Small requests under way at a time: each waits for its answer most of the while."""
_LARGE_AT_ONCE = 6
"""Large files under way at a time; each may hold 32 MiB in memory."""
_LARGE = 4 << 20


def list_stored(store: Store, folder: str) -> dict[str, StoredFile]:
    """Return the files in a folder of a store by their names there; none for a folder that is not there yet."""
    try:
        return {file.name: file for file in store.list(folder)}
    except MissingStoreError:
        if not store.is_folder:
            raise
        return {}


def find_leftovers(store: Store, uploads: Iterable[Upload]) -> tuple[str, ...]:
    """Return the names of unfinished uploads of other files than ``uploads``, which other runs began.

    They are under way, or their runs were killed. Those of ``uploads`` go when these are uploaded.
    """
    own = {upload.entry.sha256 for upload in uploads}
    found = (name.removeprefix(f"{UPLOADS}/").partition(".")[0] for name in list_stored(store, UPLOADS))
    return tuple(sorted({f"{UPLOADS}/{name}" for name in found if name not in own}))


def find_missing(
    store: Store, layout: Layout, uploads: Iterable[Upload], stored: Mapping[str, StoredFile], known: Mapping[str, str]
) -> list[Upload]:
    """Return those of ``uploads`` that are not on the store, or not with their core metadata.

    ``stored`` is what is there, by name, and ``known`` has the hashes of what pages list, by name on the store: of
    those files nothing is asked. Raises `TakenError`, or `ProblemsError`, for files of a name that have other bytes,
    and for core metadata that does.
    """
    missing, doubtful = [], []
    for upload in uploads:
        promised = _promised(layout, upload)
        present = [(stored[one.name], one) for one in promised if one.name in stored]
        if len(present) < len(promised):
            missing.append(upload)
        file, entry = stored.get(promised[0].name), upload.entry
        if not (file and known.get(file.name) == entry.sha256 and file.size == entry.size):
            doubtful += present

    def check(pair: tuple[StoredFile, _Promise]) -> None:
        require_same(store, pair[0], pair[1].size, pair[1].sha256)

    with open_workers(AT_ONCE) as executor:
        problems = [error for error in executor.map(partial(_find_taken, check), doubtful) if error]
    raise_all(store.url, problems)
    return missing


class _Promise(msgspec.Struct, frozen=True):
    """A file that has to be on the store."""

    name: str
    size: int | None
    """Unknown of core metadata, of which a page has the hash alone."""
    sha256: str


def _promised(layout: Layout, upload: Upload) -> list[_Promise]:
    """Return what a distribution consists of on the store: itself, and the core metadata that its page promises."""
    name, entry = layout.file(upload.name), upload.entry
    metadata = [_Promise(f"{name}.metadata", None, entry.metadata_sha256)] if entry.metadata_sha256 else []
    return [_Promise(name, entry.size, entry.sha256), *metadata]


def _find_taken(check: Callable[[Item], None], item: Item) -> RocwheelError | None:
    try:
        check(item)
    except TakenError as e:
        return e
    return None


def upload_all(store: Store, layout: Layout, uploads: Sequence[Upload], progress: Progress) -> None:
    """Store distributions, each before its metadata. Raises what goes wrong first."""
    if not uploads:
        return
    progress.begin("uploading", sum(upload.entry.size for upload in uploads))
    advance = serialised(progress.advance)

    def upload(one: Upload) -> None:
        _upload(store, layout.file(one.name), one)
        advance(one.entry.size)

    for at_once, is_large in ((_LARGE_AT_ONCE, True), (AT_ONCE, False)):
        some = [one for one in uploads if (one.entry.size > _LARGE) == is_large]
        with open_workers(at_once) as executor:
            for _ in executor.map(upload, sorted(some, key=lambda one: (-one.entry.size, one.name))):
                pass
    progress.end()


def _upload(store: Store, name: str, upload: Upload) -> None:
    """Store a file and its metadata; raise `ChangedFileError` before, if it is not the one that was read."""
    entry, path = upload.entry, upload.path
    metadata = _read_same_metadata(upload) if entry.metadata_sha256 else b""
    put_same(store, name, path, entry.size, entry.sha256, stamp=upload.stamp)
    if entry.metadata_sha256:
        put_same(store, f"{name}.metadata", metadata, len(metadata), entry.metadata_sha256)


def _read_same_metadata(upload: Upload) -> bytes:
    path = upload.path
    try:
        upload.stamp.require(path.stat(), str(path))  # what looks like damage would be the change
    except OSError as e:
        raise read_error(path, e) from e
    metadata = read_metadata(path)
    if hashlib.sha256(metadata).hexdigest() != upload.entry.metadata_sha256:
        raise ChangedFileError(str(path), "has other metadata than when it was read")
    return metadata
