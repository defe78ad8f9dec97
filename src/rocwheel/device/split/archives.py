"""Writing the archives of one library: all of them in one pass over its bundles, with bounded memory.

Code objects are compressed by workers, several at a time, and written in the order of the bundles. So the bytes don't
depend on the number of workers, and a compressed bundle is decompressed once, whatever the number of its targets.
"""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.kpack.archive import KernelKey
from rocwheel.binary.kpack.write import ArchiveFacts, KpackWriter, compress_kernel
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import Data
from rocwheel.core.workers import work_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.kpack.write import Sink
    from rocwheel.device.split.files import SplitChoice
    from rocwheel.device.split.units import LibraryPlan, PlannedArchive, Unit


class OpenSink(Protocol):
    """Opens the file of an archive; it is whole when the block ends well."""

    def __call__(self, archive: PlannedArchive) -> AbstractContextManager[Sink]:
        """Return the file to write the archive to."""


class Workers(msgspec.Struct, frozen=True):
    """Who compresses, and who is told how much code is done."""

    executor: Executor
    progress: Progress = SILENT
    jobs: int = 0
    """How many are to work where a step has workers of its own; 0 for one per core."""


class _Made(msgspec.Struct, frozen=True):
    """A code object as its archive stores it, on its way there; ``size`` is that of the code."""

    writer: KpackWriter
    keys: tuple[KernelKey, ...]
    size: int
    stored: Data


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
        for made in work_in_order(workers.executor, _iter_work(data, library, writers, choice)):
            made.writer.add(made.keys, made.stored, made.size)
            workers.progress.advance(made.size)
            del made  # before the next is waited for
        for writer in writers.values():
            writer.finish()


def _iter_work(
    data: Data, library: LibraryPlan, writers: dict[tuple[str, str], KpackWriter], choice: SplitChoice
) -> Iterator[tuple[int, Callable[[], _Made]]]:
    """Yield how many bytes each code object has, and what compresses it, in the order of the bundles."""
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
            writer, keys = places[entry.offset]
            kernel_keys = tuple(KernelKey(library.kernel_name, unit.index, key) for key in keys)
            yield entry.size, partial(_compress, writer, kernel_keys, code, choice)


def _compress(writer: KpackWriter, keys: tuple[KernelKey, ...], code: Data, choice: SplitChoice) -> _Made:
    return _Made(writer, keys, len(code), compress_kernel(code, choice.scheme, choice.level))


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
