"""Kpack archives of version 1: code objects of many host files for one target or a few, and a table at the end.

======  =============================================================================================
offset  what
======  =============================================================================================
0       ``KPAK``
4       u32 version, 1
8       u64 offset of the table of contents, which takes the rest of the file
...     with the scheme ``none`` the code objects as they are, where the table says;
        with ``zstd-per-kernel``, in one place: u32 n, then n times u32 size and a zstd frame
======  =============================================================================================

Numbers are little-endian. Readers of the format: AMD's runtime (librocm_kpack), its Python tool, and hrx-system.
"""

from __future__ import annotations

import struct
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.binary.kind import KPACK_MAGIC
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.frames import read_frames
from rocwheel.binary.kpack.maps import CONTAINER_LIMIT
from rocwheel.binary.kpack.toc import Blob, Scheme, Toc, read_toc, split_key
from rocwheel.core.messages import count
from rocwheel.core.reading import load
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.kpack.toc import TocEntry
    from rocwheel.core.reading import Data

__all__ = ["ARCHIVE_LIMIT", "HEADER", "TOC_LIMIT", "VERSION", "KpackArchive", "KpackEntry", "read_archive"]

HEADER = struct.Struct("<4sIQ")
VERSION = 1
ARCHIVE_LIMIT = (1 << 31) - 1
"""The largest archive that every reader takes, in bytes."""
TOC_LIMIT = 64 << 20
"""The largest table of contents that is read, in bytes; those of ROCm's libraries take well under one million."""


class KpackEntry(msgspec.Struct, frozen=True):
    """A code object under one of the keys by which it is looked up; sizes in bytes, ``size`` when decompressed.

    ``index`` is none where other software uses a key of its own, which is then the whole of ``binary``.
    """

    binary: str
    index: int | None
    target: str
    ordinal: int
    size: int
    offset: int
    """Where it is stored, counted from the beginning of the archive."""
    stored_size: int

    @property
    def key(self) -> str:
        """The key in the table."""
        return self.binary if self.index is None else f"{self.binary}#{self.index}"


class KpackArchive(msgspec.Struct, frozen=True, dict=True):
    """An archive: what it says of itself, where its code objects are, and what readers may stumble over."""

    name: str
    targets: tuple[str, ...]
    scheme: Scheme
    group: str
    family: str
    blobs: tuple[Blob, ...]
    entries: tuple[KpackEntry, ...]
    toc_offset: int
    problems: tuple[str, ...] = ()
    trailing: int = 0
    """Bytes after the table of contents, which some readers refuse."""

    def find(self, binary: str, index: int, target: str) -> KpackEntry | None:
        """Return the code object of exactly this key and target, as runtimes look it up.

        They also ask that the archive lists the target.
        """
        return self._by_key.get((f"{binary}#{index}", target)) if target in self.targets else None

    @property
    def processors(self) -> frozenset[str]:
        """The processors that it lists, whatever their features."""
        return frozenset(map(processor_of, self.targets))

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], KpackEntry]:
        return {(entry.key, entry.target): entry for entry in self.entries}


def read_archive(data: Data, *, name: str) -> KpackArchive:
    """Read the table of the archive ``data``, and check that its code objects lie apart and inside; none is read.

    Raises `KpackError` for another kind or version of file, and when it is damaged; `ProblemsError` for several faults.
    """
    toc_offset = _read_header(data, name)
    place = Place(name, toc_offset)
    toc = read_toc(bytes(load(data[toc_offset:])), place)
    blobs = toc.blobs(place) if toc.scheme is Scheme.NONE else read_frames(data, toc, name, toc_offset)
    found = list(toc.iter_entries(place))
    problems = [*_misplaced(blobs, name, toc_offset), *_dangling(found, blobs, place)]
    raise_all(name, problems)
    entries = tuple(_entry(key, target, entry, blobs[entry.ordinal]) for key, target, entry in found)
    return KpackArchive(
        name,
        toc.targets,
        toc.scheme,
        toc.text("group_name", place),
        toc.text("gfx_arch_family", place),
        blobs,
        entries,
        toc_offset,
        tuple(_find_doubts(len(data), toc, entries, place)),
        len(data) - toc_offset - toc.size,
    )


def _read_header(data: Data, name: str) -> int:
    """Return where the table of contents begins."""
    head = bytes(data[: HEADER.size])
    if head[: len(KPACK_MAGIC)] != KPACK_MAGIC:
        raise KpackError(Place(name), f"a file that begins with {head[:4]!r}", expected="a kpack archive, with 'KPAK'")
    if len(head) < HEADER.size:
        raise KpackError(Place(name), f"a kpack archive of {count(len(head), 'byte')}", expected="at least 16")
    _, version, toc_offset = HEADER.unpack(head)
    if version != VERSION:
        found = f"a kpack archive of version {version}"
        raise KpackError(Place(name, 4), found, expected="version 1", remedy="Ask for a newer rocwheel.")
    if not HEADER.size <= toc_offset < len(data):
        found = f"a table of contents at {toc_offset:#x} of a file that ends at {len(data):#x}"
        remedy = "It is truncated or damaged: copy or build it again."
        raise KpackError(Place(name, 8), found, expected="one inside of the file", remedy=remedy)
    if len(data) - toc_offset > TOC_LIMIT:
        found = f"a table of contents of {len(data) - toc_offset} bytes"
        raise KpackError(Place(name, toc_offset), found, expected=f"at most {TOC_LIMIT}")
    return int(toc_offset)


def _misplaced(blobs: Sequence[Blob], name: str, toc_offset: int) -> Iterator[KpackError]:
    """Yield the error of each code object outside of its part of the file, or over another one."""
    for ordinal, blob in enumerate(blobs):
        if blob.offset < HEADER.size or blob.offset + blob.size > toc_offset:
            found = f"code object {ordinal}, of {count(blob.size, 'byte')}"
            expected = f"it between the header and the table of contents at {toc_offset:#x}"
            yield KpackError(Place(name, blob.offset), found, expected=expected)
    by_offset = sorted((blob.offset, blob.size, ordinal) for ordinal, blob in enumerate(blobs) if blob.size)
    for (offset, size, ordinal), (later, _, other) in pairwise(by_offset):
        if offset + size > later:
            found = f"code object {other} begins inside of code object {ordinal}, which ends at {offset + size:#x}"
            yield KpackError(Place(name, later), found)


def _dangling(found: Sequence[tuple[str, str, TocEntry]], blobs: Sequence[Blob], place: Place) -> Iterator[KpackError]:
    for key, target, entry in found:
        if entry.ordinal >= len(blobs):
            expected = f"one of {len(blobs)}" if blobs else "none, as there is no code object"
            yield KpackError(place, f"{key} for {target} has the ordinal {entry.ordinal}", expected=expected)


def _entry(key: str, target: str, entry: TocEntry, blob: Blob) -> KpackEntry:
    binary, index = split_key(key)
    return KpackEntry(binary, index, target, entry.ordinal, entry.original_size, blob.offset, blob.size)


def _find_doubts(size: int, toc: Toc, entries: Sequence[KpackEntry], place: Place) -> Iterator[str]:
    """Yield what some reader refuses or never finds, though this one reads it."""
    if rest := size - place.offset - toc.size:
        yield f"{place}: {count(rest, 'byte')} after the table of contents, which some readers refuse"
    if size > ARCHIVE_LIMIT:
        yield f"{place.name}: {size} bytes; some readers take at most {ARCHIVE_LIMIT}"
    if len(entries) > CONTAINER_LIMIT:
        yield f"{place}: {len(entries)} entries; some readers take at most {CONTAINER_LIMIT}"
    for entry in entries:
        if entry.target not in toc.targets:
            yield f"{place}: {entry.key} for {entry.target} is never found: gfx_arches does not list the target"
        if not entry.size:
            yield f"{place}: {entry.key} for {entry.target} is empty, which some readers refuse"
