"""Writing the archives of one library: all of them in one pass over its bundles, with bounded memory.

Code objects are compressed by workers, several at a time, and written in the order of the bundles. So the bytes don't
depend on the number of workers, and a compressed bundle is decompressed once, whatever the number of its targets.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.kpack.toc import KernelKey
from rocwheel.binary.kpack.write_archive import ArchiveFacts, KpackWriter, compress_kernel
from rocwheel.foundation.files.file_view import Data
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.kpack.write_archive import Sink
    from rocwheel.device.splitting.files import SplitChoice
    from rocwheel.device.splitting.planning.library import LibraryPlan, PlannedArchive
    from rocwheel.device.splitting.planning.units import Unit

__all__ = ["OpenSink", "Workers", "write_archives"]

_BYTES_IN_WORK = 64 << 20
"""Code that is being compressed or waits to be written, in bytes; a single code object may have more."""


class OpenSink(Protocol):
    """Opens the file of an archive; it is whole when the block ends well."""

    def __call__(self, archive: PlannedArchive) -> AbstractContextManager[Sink]:
        """Return the file to write the archive to."""


class Workers(msgspec.Struct, frozen=True):
    """Who compresses, and who is told how much code is done."""

    executor: Executor
    progress: Progress = SILENT


class _Job(msgspec.Struct, frozen=True):
    """A code object on its way into its archive."""

    writer: KpackWriter
    keys: tuple[KernelKey, ...]
    size: int
    stored: Future[Data]


def write_archives(
    data: Data, library: LibraryPlan, choice: SplitChoice, open_sink: OpenSink, workers: Workers
) -> None:
    """Write all archives of ``library``, whose bytes are ``data``.

    Raises `DeviceCodeError` for damaged bundles, `KpackError` for archives that readers refuse, and what the files
    raise.
    """
    with ExitStack() as stack:
        writers: dict[tuple[str, str], KpackWriter] = {}
        for archive in library.archives:
            facts = ArchiveFacts(archive.group, archive.target, choice.scheme)
            sink = stack.enter_context(open_sink(archive))
            writers[archive.group, archive.target] = KpackWriter(sink, facts, name=archive.path)
        _write_units(data, library, writers, choice, workers)
        for writer in writers.values():
            writer.finish()


def _write_units(
    data: Data,
    library: LibraryPlan,
    writers: dict[tuple[str, str], KpackWriter],
    choice: SplitChoice,
    workers: Workers,
) -> None:
    waiting: deque[_Job] = deque()
    in_work = 0
    group_of = library.group_of()
    view = library.fat.view(data)
    for unit in library.units:
        group = group_of[unit.index]
        places = {
            unit.entries[found.position].offset: (writers[group.name, target], found.keys)
            for target in group.targets
            for found in group.keys_of(unit, target)
        }
        for entry, code in _iter_code(view, unit):
            while waiting and in_work + entry.size > _BYTES_IN_WORK:
                in_work -= _write_next(waiting, workers.progress)
            writer, keys = places[entry.offset]
            stored = workers.executor.submit(compress_kernel, code, choice.scheme, choice.level)
            kernel_keys = tuple(KernelKey(library.kernel_name, unit.index, key) for key in keys)
            waiting.append(_Job(writer, kernel_keys, entry.size, stored))
            in_work += entry.size
    while waiting:
        _write_next(waiting, workers.progress)


def _write_next(waiting: deque[_Job], progress: Progress) -> int:
    """Write the code object that has waited longest; return its size."""
    job = waiting.popleft()
    job.writer.add(job.keys, job.stored.result(), job.size)
    progress.advance(job.size)
    return job.size


def _iter_code(view: Data, unit: Unit) -> Iterator[tuple[BundleEntry, Data]]:
    """Yield each entry of a unit with its code, in file order; that of a plain bundle is read by whoever uses it."""
    code = bytearray()
    ordered = sorted(unit.entries, key=lambda entry: entry.offset)
    for entry, piece in iter_entries(view, unit.bundle, ordered):
        if len(piece) == entry.size:
            yield entry, piece
            continue
        code += piece if isinstance(piece, memoryview) else bytes(piece)
        if len(code) == entry.size:
            yield entry, memoryview(code)
            code = bytearray()
