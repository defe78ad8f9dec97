"""Kpack archives in another scheme or of another level, or parts of them: the same code objects under the same keys."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.binary.kpack.select_entries import selected_fields, without_unnamed
from rocwheel.binary.kpack.toc import Scheme, read_toc
from rocwheel.binary.kpack.write_archive import DEFAULT_LEVEL, BlobWriter, compress_kernel
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import load
from rocwheel.core.workers import work_in_order

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.binary.kpack.write_archive import Sink
    from rocwheel.core.reading import Data

__all__ = ["Storing", "recompress_archive", "would_change"]

_PLACES = ("compression_scheme", "blobs", "zstd_offset", "zstd_size")


class Storing(msgspec.Struct, frozen=True):
    """How code objects are to be stored; without a level, zstd frames stay as they are and others get ``default``."""

    scheme: Scheme
    level: int | None = None
    default: int = DEFAULT_LEVEL


def would_change(archive: KpackArchive, storing: Storing) -> bool:
    """Return whether an archive has to be written again; if not, its bytes are what is wanted already."""
    return archive.scheme is not storing.scheme or (storing.scheme is Scheme.ZSTD and storing.level is not None)


def recompress_archive(
    data: Data, archive: KpackArchive, file: Sink, storing: Storing, executor: Executor, *, progress: Progress = SILENT
) -> int:
    """Write the archive ``data`` to ``file`` with its code objects stored as ``storing`` says; return what they take.

    ``archive`` is what was read from it, or a part of that (`select_entries`).
    The table keeps everything else, keys that nobody knows included. ``progress`` is told the sizes of code objects,
    not when stored. Memory holds 64 MiB of code objects at a time, or
    one that has more, and the bytes do not depend on the executor. Code objects that no key names are left out
    (`unnamed_remark`). Raises `KpackError` for damaged ones.
    """
    place = Place(archive.name, archive.toc_offset)
    toc = read_toc(bytes(load(data[archive.toc_offset :])), place)
    writer = BlobWriter(file, storing.scheme, archive.name)
    named = without_unnamed(archive)
    entries = _by_ordinal(named)
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


def _by_ordinal(archive: KpackArchive) -> list[KpackEntry]:
    entries = {entry.ordinal: entry for entry in archive.entries}
    return [entries[ordinal] for ordinal in range(len(archive.blobs))]


def _convert(data: Data, archive: KpackArchive, entry: KpackEntry, storing: Storing) -> Data:
    if archive.scheme is storing.scheme and (storing.scheme is Scheme.NONE or storing.level is None):
        return data[entry.offset : entry.offset + entry.stored_size]
    level = storing.default if storing.level is None else storing.level
    return compress_kernel(read_kernel(data, archive, entry), storing.scheme, level)
