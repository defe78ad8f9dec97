"""Kpack archives that somebody wrote without compression, compressed code object by code object."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.recompress import Storing, recompress_archive, would_change
from rocwheel.binary.kpack.select_entries import unnamed_remark
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import convert_all
from rocwheel.core.writing import atomic_file
from rocwheel.packages.plan import PlanWarning
from rocwheel.packages.preparing.prepared_catalog import PreparedCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.device.splitting.write_archives import Workers

__all__ = ["compress_archives"]

_STORING = Storing(Scheme.ZSTD)
_SUFFIX = ".kpack"
_Made = tuple[Entry, PlanWarning | None]


def compress_archives(catalog: Catalog, folder: Path, workers: Workers) -> PreparedCatalog:
    """Return the catalogue with compressed archives, written below ``folder``, in the place of plain ones.

    Archives with compressed code objects stay as they are. A warning names those without the code objects that they had
    and no key named. Raises, for all archives together, `KpackError` for damaged ones; `OSError` when writing fails.
    """
    places = [place for place, entry in enumerate(catalog.entries) if _is_archive(entry)]
    sizes = sum(entry.source.size for place in places if (entry := catalog.entries[place]).source)
    workers.progress.begin("compressing archives", sizes)
    make = partial(_compressed, catalog, folder=folder, workers=workers)
    try:
        made = dict(zip(places, convert_all(catalog.root, make, places), strict=True))
    finally:
        workers.progress.end()
    entries = tuple(made[place][0] if place in made else entry for place, entry in enumerate(catalog.entries))
    warnings = tuple(warning for _, warning in made.values() if warning)
    return PreparedCatalog(msgspec.structs.replace(catalog, entries=entries), warnings)


def _is_archive(entry: Entry) -> bool:
    if entry.kind is not FileKind.FILE or entry.source is None or not entry.path.endswith(_SUFFIX):
        return False
    with entry.source.view() as data:
        return is_kpack(data)


def _compressed(catalog: Catalog, place: int, *, folder: Path, workers: Workers) -> _Made:
    entry, warning = catalog.entries[place], None
    assert entry.source is not None
    with entry.source.view() as data:
        archive = read_archive(data, name=f"{entry.artifact}: {entry.path}")
        if would_change(archive, _STORING):
            path = folder / f"{place}.kpack"
            with atomic_file(path) as file:
                recompress_archive(data, archive, file, _STORING, workers.executor)
            entry = msgspec.structs.replace(entry, source=FileRange.whole(path))
            if remark := unnamed_remark(archive):
                warning = PlanWarning("unnamed-code", archive.name, remark, "Nothing needs to be done.")
    workers.progress.advance(len(data))
    return entry, warning
