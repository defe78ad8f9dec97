"""The transfer of artifact archives from a store into a folder: verified, parallel, taken up where it ended."""

from __future__ import annotations

import posixpath
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.fetching.checksums import (
    CHECKSUM_FILES,
    CHECKSUM_SUFFIXES,
    MAX_CHECKSUMS_SIZE,
    match_checksums,
    parse_checksums,
)
from rocwheel.core.errors import InputError, RocwheelError, write_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.part_file import Expected, receive
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, convert_all, open_workers, raise_all, serialised, worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from rocwheel.stores.store import Store, StoredFile

__all__ = ["FetchedArchive", "fetch_files", "read_checksums", "with_sizes"]


class FetchedArchive(msgspec.Struct, frozen=True):
    """An archive that is in the folder now."""

    name: str
    """Of its file."""
    bytes: int
    sha256: str
    verified: str
    """What it was compared with: ``sha256``, ``size`` where the store has no checksum of it, or ``nothing``."""
    is_new: bool
    """Whether it was not there before."""


def read_checksums(store: Store, files: Iterable[StoredFile], wanted: Iterable[StoredFile]) -> dict[str, str]:
    """Return the SHA-256 of those files that are ``wanted`` of which the store has one, by name.

    It is looked for beside each, ``NAME.sha256sum``, in lists, ``SHA256SUMS``, of the whole store and of the folder of
    a file, and in what the store notes of a file. Raises `InputError` for files of checksums that can't be read or
    contradict each other.
    """
    present = {file.name for file in files}
    wanted = tuple(wanted)
    names = {stored.name for stored in wanted}
    with open_workers(_WORKERS) as executor:
        futures = [executor.submit(_read_list, store, name, present) for name in _lists(names) if name in present]
        futures += [
            executor.submit(_read_beside, store, name + suffix, name)
            for name in names for suffix in CHECKSUM_SUFFIXES if name + suffix in present
        ]  # fmt: skip
    found = {stored.name: stored.sha256 for stored in wanted if stored.sha256}
    for part in convert_all(store.url, Future.result, futures):
        for name, digest in part.items():
            if name in names and found.setdefault(name, digest) != digest:
                remedy = "Ask who publishes it."
                raise InputError(store.place(name), "has several checksums in the store", remedy=remedy)
    return found


_WORKERS = 8
"""Small files that are asked for at a time."""


def _lists(names: Iterable[str]) -> list[str]:
    """Return the names that lists of checksums may have, in the store itself and in the folders of files."""
    folders = {"", *map(posixpath.dirname, names)}
    return [posixpath.join(folder, name) for folder in sorted(folders) for name in CHECKSUM_FILES]


def _read_list(store: Store, name: str, present: Collection[str]) -> dict[str, str]:
    """Return the checksums of the files in the folder of a list, and below it, by their names in the store."""
    start = name[: len(name) - len(posixpath.basename(name))]
    inside = [other.removeprefix(start) for other in present if other.startswith(start)]
    return {start + other: digest for other, digest in match_checksums(_read_file(store, name), inside).items()}


def _read_beside(store: Store, name: str, only: str) -> dict[str, str]:
    """Return the checksum of the one file that a file of checksums stands beside."""
    found = match_checksums(_read_file(store, name, only), (only,))
    if not found:
        raise InputError(store.place(name), f"has no checksum of {only}", remedy="Ask who publishes it.")
    return found


def _read_file(store: Store, name: str, only: str = "") -> dict[str, str]:
    data = bytearray()
    for block in store.stream(name):
        data += block
        if len(data) > MAX_CHECKSUMS_SIZE:
            expected = f"at most {MAX_CHECKSUMS_SIZE} bytes, as a list of checksums"
            raise InputError(store.place(name), "is too long", expected=expected)
    return parse_checksums(bytes(data), store.place(name), only)


def with_sizes(store: Store, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
    """Return the files with what the store says of each by itself, where its list has not told the size."""
    with open_workers(_WORKERS) as executor:
        return tuple(executor.map(lambda file: file if file.size >= 0 else store.head(file.name), files))


def fetch_files(
    store: Store,
    files: Sequence[StoredFile],
    dest_dir: Path,
    checksums: dict[str, str],
    *,
    jobs: int = 4,
    progress: Progress = SILENT,
) -> tuple[FetchedArchive, ...]:
    """Bring files into ``dest_dir``, ``jobs`` at a time, and return what is there now, in their order.

    A file appears when it is whole and verified. One that is there already stays if it has the checksum, or, where the
    store has none, the size and the date of the one there; else it is fetched anew. Of a transfer that was ended, the
    rest is fetched. The failures of all files are raised together (`ProblemsError` for several), when all others are
    there: `StoreError` for what the store doesn't give, `InputError` for bytes that are not those promised, and
    `WorkError` when writing fails.
    """
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    advance = serialised(progress.advance)
    problems: list[RocwheelError] = []
    progress.begin("fetching", sum(max(stored.size, 0) for stored in files))
    try:
        with open_workers(worker_count(jobs)) as executor:
            fetch = partial(_fetch, store, dest_dir, checksums, advance)
            futures = [executor.submit(fetch, stored) for stored in files]
            fetched = attempt_all(Future.result, futures, problems)
    finally:
        progress.end()
    raise_all(store.url, problems)
    return tuple(fetched)


def _fetch(
    store: Store, dest_dir: Path, checksums: dict[str, str], advance: Callable[[int], None], stored: StoredFile
) -> FetchedArchive:
    path, sha256 = dest_dir / stored.name, checksums.get(stored.name, "")
    verified = "sha256" if sha256 else "size" if stored.size >= 0 else "nothing"
    present = _present(path, stored, sha256)
    if present:
        advance(max(stored.size, 0))
        return FetchedArchive(stored.name, path.stat().st_size, present, verified, is_new=False)
    expected = Expected(
        source=store.place(stored.name),
        size=stored.size if stored.size >= 0 else None,
        version=stored.e_tag or (stored.modified.isoformat() if stored.modified else ""),
        sha256=sha256,
        modified=round(stored.modified.timestamp() * 10**6) * 1000 if stored.modified else None,
    )
    digest = receive(path, expected, partial(store.stream, stored.name, e_tag=stored.e_tag), advance)
    return FetchedArchive(stored.name, path.stat().st_size, digest, verified, is_new=True)


def _present(path: Path, stored: StoredFile, sha256: str) -> str:
    """Return the SHA-256 of what is there already, if that is the archive; empty otherwise."""
    try:
        status = path.stat()
        if stored.size not in {-1, status.st_size}:
            return ""
        if not sha256 and not (stored.modified and int(status.st_mtime) == int(stored.modified.timestamp())):
            return ""
        found = hash_file(path)
    except OSError:
        return ""
    return found if sha256 in {"", found} else ""
