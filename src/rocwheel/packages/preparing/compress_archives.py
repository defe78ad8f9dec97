"""Kpack archives that somebody wrote without compression, compressed code object by code object."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import Catalog, Entry, FileKind
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.recompress import Storing, recompress_archive, would_change
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.foundation.collecting import convert_all
from rocwheel.foundation.files.atomic_file import atomic_file
from rocwheel.foundation.files.file_range import FileRange

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.device.splitting.write_archives import Workers

__all__ = ["compress_archives"]

_STORING = Storing(Scheme.ZSTD)
_SUFFIX = ".kpack"


def compress_archives(catalog: Catalog, folder: Path, workers: Workers) -> Catalog:
    """Return the catalogue with compressed archives, written below ``folder``, in the place of plain ones.

    Archives with compressed code objects stay as they are. Raises, for all archives together, `KpackError` for damaged
    ones; `OSError` when writing fails.
    """
    places = [place for place, entry in enumerate(catalog.entries) if _is_archive(entry)]
    sizes = sum(entry.source.size for place in places if (entry := catalog.entries[place]).source)
    workers.progress.begin("compressing archives", sizes)
    make = partial(_compressed, catalog, folder=folder, workers=workers)
    try:
        made = dict(zip(places, convert_all(catalog.root, make, places), strict=True))
    finally:
        workers.progress.end()
    entries = (made.get(place, entry) for place, entry in enumerate(catalog.entries))
    return msgspec.structs.replace(catalog, entries=tuple(entries))


def _is_archive(entry: Entry) -> bool:
    if entry.kind is not FileKind.FILE or entry.source is None or not entry.path.endswith(_SUFFIX):
        return False
    with entry.source.view() as data:
        return is_kpack(data)


def _compressed(catalog: Catalog, place: int, *, folder: Path, workers: Workers) -> Entry:
    entry = catalog.entries[place]
    assert entry.source is not None
    with entry.source.view() as data:
        archive = read_archive(data, name=f"{entry.artifact}: {entry.path}")
        if would_change(archive, _STORING):
            path = folder / f"{place}.kpack"
            with atomic_file(path) as file:
                recompress_archive(data, archive, file, _STORING, workers.executor)
            entry = msgspec.structs.replace(entry, source=FileRange.whole(path))
    workers.progress.advance(len(data))
    return entry
