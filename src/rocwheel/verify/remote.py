"""Compares builds and indexes at URLs with their manifests and pages. Each file is read only once and isn't stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count
from rocwheel.core.workers import serialized
from rocwheel.index.pages import METADATA_SUFFIX
from rocwheel.index.source import IndexSource, read_text, stream_file
from rocwheel.stores.open import open_file
from rocwheel.stores.store import MissingFileError, StoreError, UnlistableError
from rocwheel.stores.urls import is_same_server, shown_url, url_below
from rocwheel.verify.builds import extra_files
from rocwheel.verify.files import Fault, Verified
from rocwheel.wheels.build_manifest import MANIFEST_NAME, MOST_OF_MANIFEST, SUMS_NAME, parse_manifest, render_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.core.progress import Progress
    from rocwheel.index.source import ProjectListing
    from rocwheel.index.trust import ListedFile
    from rocwheel.stores.store import Store
    from rocwheel.wheels.build_manifest import BuildManifest


class _Stream(msgspec.Struct, frozen=True):
    """The record of a file, and the function that reads the file's bytes."""

    place: str
    read: Callable[[], Iterable[bytes]]
    sha256: str
    size: int | None = None


class _Counted:
    """A file in an index, whose bytes are counted as they are read."""

    def __init__(self, file: ListedFile) -> None:
        self.file = file
        self.size = file.size or 0
        """The listed size. HTML pages have no sizes, so the bytes are counted."""

    def read(self) -> Iterator[bytes]:
        """Yield the bytes of the file."""
        for piece in stream_file(self.file):
            if self.file.size is None:
                self.size += len(piece)
            yield piece


def has_manifest(url: str) -> bool:
    """Return whether the folder at a URL contains a build's manifest. Raises the store's errors."""
    store, name = open_file(url_below(url, MANIFEST_NAME))
    try:
        store.head(name)
    except MissingFileError:
        return False
    return True


def verify_build_at(url: str, executor: Executor, progress: Progress) -> Verified:
    """Compare a build's outputs with its manifest at ``url``.

    If the server lists the folder's contents, other files are also checked. Raises the same errors as `parse_manifest`,
    and the store's errors.
    """
    store, name = open_file(url)
    text = _read(store.stream(name), shown_url(url))
    manifest = parse_manifest(text, shown_url(url))
    streams = [
        _Stream(store.place(one.path), partial(store.stream, one.path), one.sha256, one.size)
        for one in manifest.outputs
    ]
    faults = _check(streams, executor, progress, f"verifying {name}")
    faults += [*_sums_faults(store, manifest), *_extra_faults(store, manifest)]
    size = sum(output.size for output in manifest.outputs)
    return Verified(shown_url(url), "build", len(manifest.outputs), size, tuple(faults))


def verify_index_at(url: str, executor: Executor, progress: Progress, *, has_links: bool = False) -> Verified:
    """Compare the files and core metadata in an index with its pages, in the form that the server provides.

    Files on other servers are compared only with ``has_links``. Raises `InputError` if no page lists projects, and the
    store's errors.
    """
    source = IndexSource(url)
    faults: list[Fault] = []
    read = partial(_read_listing, source)
    files: list[ListedFile] = []
    for project, found in zip(projects := source.projects(), executor.map(read, projects), strict=True):
        if isinstance(found, InputError):
            faults.append(_page_fault(found))
        elif found is None:
            faults.append(Fault("missing", f"{source.url}{project}/", "is missing", "the page of a project"))
        else:
            faults += map(_page_fault, found.problems)
            files += found.files
    here = [file for file in files if has_links or is_same_server(file.url, source.address)]
    found_faults, size = check_listed(here, executor, progress, source.url)
    return Verified(source.url, "index", len(here), size, (*faults, *found_faults), len(files) - len(here))


def check_listed(
    files: Sequence[ListedFile], executor: Executor, progress: Progress, place: str
) -> tuple[list[Fault], int]:
    """Compare files in the index at ``place``, and their core metadata, with the index's pages.

    Return the faults and the size.
    """
    counted = [_Counted(file) for file in files]
    streams = [_Stream(shown_url(one.file.url), one.read, one.file.sha256, one.file.size) for one in counted]
    streams += [_metadata(file) for file in files if file.metadata_sha256]
    faults = _check(streams, executor, progress, f"verifying {place}")
    return faults, sum(one.size for one in counted)


def _read_listing(source: IndexSource, project: str) -> ProjectListing | InputError | None:
    try:
        return source.read_project(project)
    except InputError as e:
        _raise_of_store(e)
        return e


def _page_fault(problem: RocwheelError) -> Fault:
    place, found = getattr(problem, "source", ""), getattr(problem, "found", str(problem))
    return Fault("damaged", str(place), found, getattr(problem, "expected", ""))


def _metadata(file: ListedFile) -> _Stream:
    url = f"{file.url}{METADATA_SUFFIX}"
    return _Stream(shown_url(url), lambda: [read_text(url)], file.metadata_sha256 or "")


def _check(streams: Sequence[_Stream], executor: Executor, progress: Progress, label: str) -> list[Fault]:
    progress.begin(label, sum(stream.size or 0 for stream in streams))
    check = partial(_fault, advance=serialized(progress.advance))
    faults = [fault for fault in executor.map(check, streams) if fault]
    progress.end()
    return faults


def _fault(stream: _Stream, advance: Callable[[int], object]) -> Fault | None:
    hasher, size = hashlib.sha256(), 0
    try:
        for piece in stream.read():
            size += len(piece)
            if stream.size is not None and size > stream.size:
                return Fault("changed", stream.place, f"has more than {stream.size} bytes", count(stream.size, "byte"))
            hasher.update(piece)
            advance(len(piece))
    except MissingFileError:
        return Fault("missing", stream.place, "is missing", "a file")
    except InputError as e:
        _raise_of_store(e)
        return Fault("damaged", stream.place, e.found, e.expected)
    if stream.size is not None and size != stream.size:
        return Fault("changed", stream.place, f"has {count(size, 'byte')}", count(stream.size, "byte"))
    if hasher.hexdigest() != stream.sha256:
        return Fault("changed", stream.place, f"has the SHA-256 {hasher.hexdigest()}", stream.sha256)
    return None


def _raise_of_store(error: InputError) -> None:
    """Raise an error that doesn't concern a single file, such as an error about a server that doesn't respond."""
    if isinstance(error, StoreError):
        raise error


def _sums_faults(store: Store, manifest: BuildManifest) -> Iterator[Fault]:
    expected, place = render_sums(manifest), store.place(SUMS_NAME)
    try:
        found = _read(store.stream(SUMS_NAME), place)
    except MissingFileError:
        return
    if found != expected:
        yield Fault("changed", place, "contains different checksums", "the checksums in the manifest")


def _extra_faults(store: Store, manifest: BuildManifest) -> Iterator[Fault]:
    with suppress(UnlistableError, MissingFileError):
        names = [stored.name for stored in store.list()]
        for name in extra_files(manifest, names):
            yield Fault("extra", store.place(name), "isn't in the manifest", "only files from this build")


def _read(pieces: Iterable[bytes], place: str) -> bytes:
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > MOST_OF_MANIFEST:
            raise InputError(place, f"is larger than {MOST_OF_MANIFEST >> 20} MiB", expected="a manifest")
    return bytes(data)
