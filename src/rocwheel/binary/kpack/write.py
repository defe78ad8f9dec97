"""Writes kpack archives in one pass: new archives, selections from archives, and recompressed archives."""

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
"""The zstd levels for archives."""
_ALIGNMENT = 64


class ArchiveSink(Protocol):
    """A file that is written sequentially, such as an `AtomicFile`."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Append bytes."""

    def overwrite(self, offset: int, data: bytes, /) -> object:
        """Replace bytes that were written earlier."""


class FileSink:
    """An `ArchiveSink` for an open, empty file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.write = file.write

    def overwrite(self, offset: int, data: bytes, /) -> None:
        """Replace bytes that were written earlier."""
        position = self._file.tell()
        self._file.seek(offset)
        self._file.write(data)
        self._file.seek(position)


class ArchiveSettings(msgspec.Struct, frozen=True):
    """An archive's metadata: its group name, its GPU family, and its storage scheme."""

    group: str
    family: str
    scheme: Scheme = Scheme.ZSTD


def compress_kernel(code: Data, scheme: Scheme, level: int = DEVICE_CODE_LEVEL) -> Data:
    """Return a code object in the form in which this scheme stores it; suitable for worker threads.

    Identical input produces identical output. Frames have a checksum, because the archive format itself has no checksum
    that reveals damage.
    """
    if scheme is Scheme.NONE:
        return code
    return memoryview(zstd.compress(load(code), options=_frame_options(level)))


def _frame_options(level: int) -> dict[int, int]:
    return {zstd.CompressionParameter.compression_level: level, zstd.CompressionParameter.checksum_flag: 1}


class KernelMeter:
    """Measures the zstd size of a code object that arrives in pieces, accurate to a few bytes of `compress_kernel`."""

    def __init__(self, size: int, level: int = DEVICE_CODE_LEVEL) -> None:
        """Start measuring a code object of ``size`` bytes."""
        self._encoder = zstd.ZstdCompressor(options=_frame_options(level))
        self._encoder.set_pledged_input_size(size)
        self._made = 0

    def add(self, piece: Data) -> None:
        """Add the next bytes."""
        for part in iter_pieces(piece):
            self._made += len(self._encoder.compress(part))

    def finish(self) -> int:
        """Return the size of the frame. Call this method after all bytes have been added."""
        return self._made + len(self._encoder.flush())


class BlobWriter:
    """Writes an archive's code objects to a new file in the format of the archive's scheme. A table may follow."""

    def __init__(self, file: ArchiveSink, scheme: Scheme, name: str) -> None:
        self._file, self._scheme, self._name = file, scheme, name
        self._blobs: list[Blob] = []
        self._position = 0
        self._write(HEADER.pack(KPACK_MAGIC, VERSION, 0).ljust(_ALIGNMENT, b"\0"))
        if scheme is Scheme.ZSTD:
            self._write(SIZE.pack(0))

    @property
    def stored_size(self) -> int:
        """The total stored size of the code objects so far, in bytes."""
        return sum(blob.size for blob in self._blobs)

    def add(self, stored: Data) -> int:
        """Write a code object in the form that `compress_kernel` returns, and return its ordinal.

        Raises `KpackError` if the archive would be too large for a reader or contain too many code objects.
        """
        if len(self._blobs) == FRAME_LIMIT:
            raise KpackError(
                CodePlace(self._name),
                f"more than {FRAME_LIMIT} code objects",
                expected="code objects split across more archives",
            )
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
        """Write the table of contents: ``fields``, then the format and the positions of the code objects.

        Raises `KpackError` if the archive or the table becomes too large for a reader.
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
            found = f"an archive of more than {ARCHIVE_LIMIT} bytes, which some readers reject"
            raise KpackError(
                CodePlace(self._name, self._position), found, expected="host files split across more archives"
            )

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._position += len(data)


class KpackWriter:
    """Writes one archive to ``file``, which must be new; the output depends only on the additions and their order.

    Call `add` for each code object, in a fixed order, and `finish` at the end. Both methods raise `KpackError`.
    """

    def __init__(self, file: ArchiveSink, facts: ArchiveSettings, *, name: str) -> None:
        self._facts, self._name = facts, name
        self._blobs = BlobWriter(file, facts.scheme, name)
        self._entries: dict[KernelKey, TocEntry] = {}
        self._is_finished = False

    def add(self, keys: Iterable[KernelKey], stored: Data, size: int) -> int:
        """Write a code object of ``size`` bytes, as returned by `compress_kernel`, and record it under all of ``keys``.

        Returns its ordinal. Raises `KpackError` for a repeated key, an empty code object, and an uncompressed code
        object of the wrong size.
        """
        assert not self._is_finished, "the archive is finished"
        # Paths in keys use ``/`` on all systems.
        keys = [KernelKey(key.binary.replace("\\", "/"), key.index, key.target) for key in keys]
        twice = [key for number, key in enumerate(keys) if key in self._entries or key in keys[:number]]
        if twice:
            raise KpackError(CodePlace(self._name), f"{twice[0]} occurs twice", expected="one code object for each key")
        if not size:
            raise KpackError(
                CodePlace(self._name),
                f"{keys[0]} is empty",
                expected="code, because some readers reject archives with empty code objects",
            )
        if self._facts.scheme is Scheme.NONE and len(stored) != size:
            raise KpackError(CodePlace(self._name), f"{keys[0]} has {count(len(stored), 'byte')}", expected=f"{size}")
        ordinal = self._blobs.add(stored)
        self._entries.update(dict.fromkeys(keys, TocEntry(ordinal, size)))
        return ordinal

    def finish(self) -> None:
        """Write the table of contents, which completes the archive. The archive lists the targets of all keys."""
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
    """Return ``archive`` with only the ``kept`` entries; their code objects are renumbered in the same order.

    The result lists the remaining targets. This function doesn't move code objects: `recompress_archive` writes the new
    archive.
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
    """Return the number of code objects in ``archive`` without a key, which readers accept but never find."""
    return len(archive.blobs) - len({entry.ordinal for entry in archive.entries})


def unnamed_remark(archive: KpackArchive) -> str:
    """Return a remark about code objects that were omitted because they have no key, or an empty string."""
    unnamed = _count_unnamed(archive)
    return f"left out {count(unnamed, 'code object')} that no key refers to" if unnamed else ""


def selected_fields(
    fields: Mapping[str, msgspec.Raw], archive: KpackArchive, place: CodePlace
) -> dict[str, msgspec.Raw | object]:
    """Return the ``fields`` of an old table, adapted to ``archive``, which is all or part of the old archive.

    The other values in entries, including unknown keys, don't change.
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
    """Settings for storing code objects. Without a level, zstd frames don't change, and other code uses ``default``."""

    scheme: Scheme
    level: int | None = None
    default: int = DEVICE_CODE_LEVEL


def would_change(archive: KpackArchive, storing: Storing) -> bool:
    """Return whether an archive must be rewritten because it doesn't match the settings."""
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
    """Write the archive ``data`` to ``file``, store code objects according to ``storing``, and return their total size.

    ``archive`` is the parsed archive, or a part of it (`select_entries`). Everything else in the table, including
    unknown keys, doesn't change. ``progress`` advances by the decompressed size of each code object. At any time, 64
    MiB of code objects, or one larger code object, is in memory. The output doesn't depend on the executor. Code
    objects without a key are omitted (`unnamed_remark`). Raises `KpackError` for damaged code objects.
    """
    place = CodePlace(archive.name, archive.toc_offset)
    toc = read_toc(bytes(load(data[archive.toc_offset :])), place)
    writer = BlobWriter(file, storing.scheme, archive.name)
    named = archive
    if _count_unnamed(archive):  # the archive lists the same targets without them
        named = msgspec.structs.replace(select_entries(archive, archive.entries), targets=archive.targets)
    by_ordinal = {entry.ordinal: entry for entry in named.entries}
    entries = [by_ordinal[ordinal] for ordinal in range(len(named.blobs))]
    work = ((max(entry.size, entry.stored_size), partial(_convert, data, archive, entry, storing)) for entry in entries)
    sizes = iter(entries)
    for stored in work_in_order(executor, work):
        writer.add(stored)
        progress.advance(next(sizes).size)
        del stored  # before waiting for the next result
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
"""The maximum space for an entry in addition to its code: table entries for three keys, padding, and the frame size."""


def assign_shards(units: Sequence[Mapping[str, int]], *, limit: int = ARCHIVE_LIMIT) -> tuple[int, ...]:
    """Return the archive number for each of ``units``, starting at 0.

    A unit is code that must stay together, such as all code of a host file. A unit maps each target to its size in
    bytes in the archive for that target, including `ENTRY_RESERVE` for each code object. The n-th archives of all
    targets belong together and have the same group name. The order of the units doesn't change, and each archive is
    filled before the next archive begins. Raises `KpackError` for a unit that doesn't fit into any archive.
    """
    shards: list[int] = []
    filled: Counter[str] = Counter()
    for number, sizes in enumerate(units):
        for target, size in sizes.items():
            if size > limit:
                place, found = CodePlace(f"unit {number}"), f"{size} bytes of code for {target}"
                raise KpackError(place, found, expected=f"at most {limit} in an archive")
        shard = shards[-1] if shards else 0
        if any(filled[target] + size > limit for target, size in sizes.items()):
            shard, filled = shard + 1, Counter()
        filled.update(sizes)
        shards.append(shard)
    return tuple(shards)
