"""Writes kpack archives in one pass: new ones, smaller ones, and ones in another scheme or of another level."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import IO, TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.kind import KPACK_MAGIC
from rocwheel.binary.kpack.archive import (
    ARCHIVE_LIMIT,
    FRAME_LIMIT,
    HEADER,
    SIZE,
    TOC_LIMIT,
    VERSION,
    Blob,
    KernelKey,
    KpackError,
    Scheme,
    TocEntry,
    decode_map,
    read_kernel,
    read_toc,
)
from rocwheel.core.compression import DEVICE_CODE_LEVEL, zstd
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import iter_pieces, load
from rocwheel.core.workers import work_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.core.reading import Data


LEVELS = range(1, 20)
"""The zstd levels that archives are written with."""
_ALIGNMENT = 64


class ArchiveSink(Protocol):
    """A file that is written from its beginning to its end, such as an `AtomicFile`."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Write bytes at the end."""

    def overwrite(self, offset: int, data: bytes, /) -> object:
        """Replace bytes that were written before."""


class FileSink:
    """An open file as a `ArchiveSink`; it is empty."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.write = file.write

    def overwrite(self, offset: int, data: bytes, /) -> None:
        """Replace bytes that were written before."""
        position = self._file.tell()
        self._file.seek(offset)
        self._file.write(data)
        self._file.seek(position)


class ArchiveSettings(msgspec.Struct, frozen=True):
    """What an archive says of itself: the name of its group, the GPU family it is for, and how it stores code."""

    group: str
    family: str
    scheme: Scheme = Scheme.ZSTD


def compress_kernel(code: Data, scheme: Scheme, level: int = DEVICE_CODE_LEVEL) -> Data:
    """Return a code object as an archive of this scheme stores it; same bytes, same result. For worker threads.

    Frames have a checksum, by which every reader sees damage: the format itself has none.
    """
    if scheme is Scheme.NONE:
        return code
    return memoryview(zstd.compress(load(code), options=_frame_options(level)))


def _frame_options(level: int) -> dict[int, int]:
    return {zstd.CompressionParameter.compression_level: level, zstd.CompressionParameter.checksum_flag: 1}


class KernelMeter:
    """Measures, to a few bytes, what `compress_kernel` makes with zstd of a code object that comes in pieces."""

    def __init__(self, size: int, level: int = DEVICE_CODE_LEVEL) -> None:
        """Begin with a code object of ``size`` bytes."""
        self._encoder = zstd.ZstdCompressor(options=_frame_options(level))
        self._encoder.set_pledged_input_size(size)
        self._made = 0

    def add(self, piece: Data) -> None:
        """Take the next bytes."""
        for part in iter_pieces(piece):
            self._made += len(self._encoder.compress(part))

    def finish(self) -> int:
        """Return the size of the frame, once all bytes are given."""
        return self._made + len(self._encoder.flush())


class BlobWriter:
    """Writes the code objects of an archive to a new file, as its scheme has them, and any table behind them."""

    def __init__(self, file: ArchiveSink, scheme: Scheme, name: str) -> None:
        self._file, self._scheme, self._name = file, scheme, name
        self._blobs: list[Blob] = []
        self._position = 0
        self._write(HEADER.pack(KPACK_MAGIC, VERSION, 0).ljust(_ALIGNMENT, b"\0"))
        if scheme is Scheme.ZSTD:
            self._write(SIZE.pack(0))

    @property
    def stored_size(self) -> int:
        """What the code objects take so far, in bytes."""
        return sum(blob.size for blob in self._blobs)

    def add(self, stored: Data) -> int:
        """Write what `compress_kernel` made of a code object; return its ordinal.

        Raises `KpackError` when the archive would be too large for a reader, or have too many code objects.
        """
        if len(self._blobs) == FRAME_LIMIT:
            raise KpackError(CodePlace(self._name), f"more than {FRAME_LIMIT} code objects", expected="more archives")
        self._require_room(len(stored) + SIZE.size)
        if self._scheme is Scheme.ZSTD:
            self._write(SIZE.pack(len(stored)))
        else:
            self._write(bytes(-self._position % _ALIGNMENT))
        self._blobs.append(Blob(self._position, len(stored)))
        for piece in iter_pieces(stored):
            self._write(piece)
        return len(self._blobs) - 1

    def finish(self, fields: Mapping[str, object]) -> None:
        """Write the table of contents: ``fields``, and where the code objects are after those about the format.

        Raises `KpackError` when that makes the archive or the table too large for a reader.
        """
        places: dict[str, object] = {"blobs": self._blobs}
        if self._scheme is Scheme.ZSTD:
            places = {"zstd_offset": _ALIGNMENT, "zstd_size": self._position - _ALIGNMENT}
            self._file.overwrite(_ALIGNMENT, SIZE.pack(len(self._blobs)))
        toc = msgspec.msgpack.encode({**fields, "compression_scheme": self._scheme.value, **places})
        self._require_room(len(toc))
        if len(toc) > TOC_LIMIT:
            found = f"a table of contents of {len(toc)} bytes"
            raise KpackError(CodePlace(self._name, self._position), found, expected=f"at most {TOC_LIMIT}")
        self._file.overwrite(0, HEADER.pack(KPACK_MAGIC, VERSION, self._position))
        self._write(toc)

    def _require_room(self, size: int) -> None:
        if self._position + size > ARCHIVE_LIMIT:
            found = f"an archive of more than {ARCHIVE_LIMIT} bytes, which some readers refuse"
            raise KpackError(CodePlace(self._name, self._position), found, expected="its host files in more archives")

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._position += len(data)


class KpackWriter:
    """Writes one archive to ``file``, which is new; what was added in the same order gives the same bytes.

    Call `add` for each code object, in a fixed order, and `finish` at the end; both raise `KpackError`.
    """

    def __init__(self, file: ArchiveSink, facts: ArchiveSettings, *, name: str) -> None:
        self._facts, self._name = facts, name
        self._blobs = BlobWriter(file, facts.scheme, name)
        self._entries: dict[KernelKey, TocEntry] = {}
        self._is_finished = False

    def add(self, keys: Iterable[KernelKey], stored: Data, size: int) -> int:
        """Write what `compress_kernel` made of a code object of ``size`` bytes, under all of ``keys``.

        Returns its ordinal. Raises `KpackError` for a key that was there before, for a code object without any bytes,
        and for one of another size that is not compressed.
        """
        assert not self._is_finished, "the archive is finished"
        # Keys have ``/`` in paths, on all systems.
        keys = [KernelKey(key.binary.replace("\\", "/"), key.index, key.target) for key in keys]
        twice = [key for number, key in enumerate(keys) if key in self._entries or key in keys[:number]]
        if twice:
            raise KpackError(CodePlace(self._name), f"{twice[0]} comes twice", expected="one code object for each key")
        if not size:
            raise KpackError(
                CodePlace(self._name), f"{keys[0]} is empty", expected="code: some readers refuse archives else"
            )
        if self._facts.scheme is Scheme.NONE and len(stored) != size:
            raise KpackError(CodePlace(self._name), f"{keys[0]} has {count(len(stored), 'byte')}", expected=f"{size}")
        ordinal = self._blobs.add(stored)
        self._entries.update(dict.fromkeys(keys, TocEntry(ordinal, size)))
        return ordinal

    def finish(self) -> None:
        """Write the table of contents; the archive is whole then. Its targets are those of all keys."""
        toc: dict[str, dict[str, object]] = {}
        for key, entry in sorted(self._entries.items()):
            toc.setdefault(f"{key.binary}#{key.index}", {})[key.target] = {
                "type": entry.type,
                "ordinal": entry.ordinal,
                "original_size": entry.original_size,
            }
        self._is_finished = True
        self._blobs.finish(
            {
                "format_version": VERSION,
                "group_name": self._facts.group,
                "gfx_arch_family": self._facts.family,
                "gfx_arches": sorted({key.target for key in self._entries}),
                "toc": toc,
            }
        )


def select_entries(archive: KpackArchive, kept: Iterable[KpackEntry]) -> KpackArchive:
    """Return ``archive`` with the ``kept`` ones of its entries, whose code objects are numbered anew, in their order.

    It lists the targets that are left. Code objects stay where they are: `recompress_archive` writes the new archive.
    """
    entries = tuple(kept)
    ordinals = sorted({entry.ordinal for entry in entries})
    new = {ordinal: number for number, ordinal in enumerate(ordinals)}
    left = {entry.target for entry in entries}
    return msgspec.structs.replace(
        archive,
        targets=tuple(target for target in archive.targets if target in left),
        blobs=tuple(archive.blobs[ordinal] for ordinal in ordinals),
        entries=tuple(msgspec.structs.replace(entry, ordinal=new[entry.ordinal]) for entry in entries),
    )


def _count_unnamed(archive: KpackArchive) -> int:
    """Return how many code objects of ``archive`` no key names: readers take them, and nobody finds them."""
    return len(archive.blobs) - len({entry.ordinal for entry in archive.entries})


def unnamed_remark(archive: KpackArchive) -> str:
    """Return what to report of an archive that is written without those; empty where it has none."""
    unnamed = _count_unnamed(archive)
    return f"left out {count(unnamed, 'code object')} that no key names" if unnamed else ""


def selected_fields(
    fields: Mapping[str, msgspec.Raw], archive: KpackArchive, place: CodePlace
) -> dict[str, msgspec.Raw | object]:
    """Return the ``fields`` of an old table as they are for ``archive``, a part of the old one or all of it.

    What is said of each entry beside its number stays, keys that nobody knows included.
    """
    ordinals = {(entry.key, entry.target): entry.ordinal for entry in archive.entries}
    table: dict[str, dict[str, object]] = {}
    for key, raw in decode_map(fields["toc"], "toc", place).items():
        for target, entry in decode_map(raw, f"toc entry {key!r}", place).items():
            if (key, target) in ordinals:
                values = decode_map(entry, f"toc entry {key!r} for {target!r}", place)
                table.setdefault(key, {})[target] = {**values, "ordinal": ordinals[key, target]}
    return {**fields, "gfx_arches": archive.targets, "toc": table}


_PLACES = ("compression_scheme", "blobs", "zstd_offset", "zstd_size")


class Storing(msgspec.Struct, frozen=True):
    """How code objects are to be stored; without a level, zstd frames stay as they are and others get ``default``."""

    scheme: Scheme
    level: int | None = None
    default: int = DEVICE_CODE_LEVEL


def would_change(archive: KpackArchive, storing: Storing) -> bool:
    """Return whether an archive has to be written again; if not, its bytes are what is wanted already."""
    return archive.scheme is not storing.scheme or (storing.scheme is Scheme.ZSTD and storing.level is not None)


def recompress_archive(
    data: Data,
    archive: KpackArchive,
    file: ArchiveSink,
    storing: Storing,
    executor: Executor,
    *,
    progress: Progress = SILENT,
) -> int:
    """Write the archive ``data`` to ``file`` with its code objects stored as ``storing`` says; return what they take.

    ``archive`` is what was read from it, or a part of that (`select_entries`).
    The table keeps everything else, keys that nobody knows included. ``progress`` is told the sizes of code objects,
    not when stored. Memory holds 64 MiB of code objects at a time, or
    one that has more, and the bytes do not depend on the executor. Code objects that no key names are left out
    (`unnamed_remark`). Raises `KpackError` for damaged ones.
    """
    place = CodePlace(archive.name, archive.toc_offset)
    toc = read_toc(bytes(load(data[archive.toc_offset :])), place)
    writer = BlobWriter(file, storing.scheme, archive.name)
    named = archive
    if _count_unnamed(archive):  # it lists the same targets without them
        named = msgspec.structs.replace(select_entries(archive, archive.entries), targets=archive.targets)
    by_ordinal = {entry.ordinal: entry for entry in named.entries}
    entries = [by_ordinal[ordinal] for ordinal in range(len(named.blobs))]
    work = ((max(entry.size, entry.stored_size), partial(_convert, data, archive, entry, storing)) for entry in entries)
    sizes = iter(entries)
    for stored in work_in_order(executor, work):
        writer.add(stored)
        progress.advance(next(sizes).size)
        del stored  # before the next is waited for
    is_part = named is not archive or len(archive.entries) < sum(1 for _ in toc.iter_entries(place))
    fields = selected_fields(toc.fields, named, place) if is_part else toc.fields
    writer.finish({key: raw for key, raw in fields.items() if key not in _PLACES})
    return writer.stored_size


def _convert(data: Data, archive: KpackArchive, entry: KpackEntry, storing: Storing) -> Data:
    if archive.scheme is storing.scheme and (storing.scheme is Scheme.NONE or storing.level is None):
        return data[entry.offset : entry.offset + entry.stored_size]
    level = storing.default if storing.level is None else storing.level
    return compress_kernel(read_kernel(data, archive, entry), storing.scheme, level)


ENTRY_RESERVE = 256
"""What an entry may take beside its code: its place in the table for three keys, padding and the size of its frame."""


def assign_shards(units: Sequence[Mapping[str, int]], *, limit: int = ARCHIVE_LIMIT) -> tuple[int, ...]:
    """Return the number of the archive that each of ``units`` goes into, counted from 0.

    A unit is what has to stay together, such as all code of a host file: by target, the bytes that it takes in the
    archive for that target, `ENTRY_RESERVE` for each code object included. The n-th archives of all targets belong
    together, so that one group's name stands for them. Units keep their order, and an archive is filled before the next
    begins. Raises `KpackError` for a unit that fits into no archive.
    """
    shards: list[int] = []
    filled: Counter[str] = Counter()
    for number, sizes in enumerate(units):
        for target, size in sizes.items():
            if size > limit:
                place, found = CodePlace(f"unit {number}"), f"{size} bytes of code for {target}"
                raise KpackError(place, found, expected=f"at most {limit}, which fit into an archive")
        shard = shards[-1] if shards else 0
        if any(filled[target] + size > limit for target, size in sizes.items()):
            shard, filled = shard + 1, Counter()
        filled.update(sizes)
        shards.append(shard)
    return tuple(shards)
