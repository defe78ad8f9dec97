"""Joining one host file with the code in archives: a fat binary again."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

from rocwheel.binary.bundles.compressed.content import write_compressed_bundle
from rocwheel.binary.bundles.parts import BUNDLE_ALIGNMENT, lay_out_bundle
from rocwheel.binary.bundles.runtimes import choose_version
from rocwheel.binary.kpack.read_kernel import KERNEL_LIMIT, iter_kernel
from rocwheel.device.splitting.host.errors import NotJoinableError
from rocwheel.device.splitting.host.fat_file import plan_fat_file
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.reading.file_view import Data, FileView, load
from rocwheel.foundation.files.temporary_file import no_room, open_temporary, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.device.splitting.joining.find_code import UnitCode
    from rocwheel.foundation.files.patch import FilePatch

__all__ = ["plan_join"]

_LEVEL = 9
"""The zstd level of bundles that come back: they have to fit where they were before."""


@contextmanager
def plan_join(data: Data, units: Sequence[UnitCode], links: Sequence[int], *, name: str) -> Iterator[FilePatch]:
    """Yield the patch that puts the code of ``units`` into the host file ``data``.

    ``links`` says which of them each wrapper points to.

    Bundles wait in a nameless file while the block lasts, so that memory holds a few megabytes of one, whatever their
    number and size. They are plain; where these have no room in the file, since they were compressed before it was
    split, they are compressed again.
    Raises `NotJoinableError` when they have no room at all, `KpackError` for damaged archives, and `WorkError` when
    there is no space for the nameless file.
    """
    with ExitStack() as stack:
        plain = stack.enter_context(_spooled([partial(_write_bundle, unit) for unit in units], name))
        try:
            patch = plan_fat_file(data, plain, links, name=name)
        except NotJoinableError:
            packed = stack.enter_context(_spooled([partial(_pack_bundle, bundle, name) for bundle in plain], name))
            patch = plan_fat_file(data, packed, links, name=name)
        yield patch


@contextmanager
def _spooled(writers: Iterable[Callable[[IO[bytes]], None]], name: str) -> Iterator[tuple[Data, ...]]:
    """Yield the bundles that ``writers`` write where a nameless file stands."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_temporary(buffering=-1))
            places = []
            for write in writers:
                start = file.seek(-(-file.tell() // BUNDLE_ALIGNMENT) * BUNDLE_ALIGNMENT)
                write(file)
                places.append((start, file.tell()))
            file.truncate()
            file.flush()
        except OSError as e:
            raise no_room(name, "its device code", e) from e
        yield tuple(FileView(FileRange(path_of(file), start, stop - start)) for start, stop in places)


def _write_bundle(unit: UnitCode, file: IO[bytes]) -> None:
    """Write a plain bundle; between its payloads, and before an empty one at its end, stay holes."""
    start = file.tell()
    header, offsets = lay_out_bundle([(code.spelling, code.entry.size if code.entry else 0) for code in unit.entries])
    file.write(header)
    for code, offset in zip(unit.entries, offsets, strict=True):
        file.seek(start + offset)
        if code.file is None or code.entry is None:
            continue
        with code.file.content.view() as data:
            for piece in iter_kernel(data, code.file.archive, code.entry, limit=KERNEL_LIMIT):
                file.write(load(piece))


def _pack_bundle(plain: Data, name: str, file: IO[bytes]) -> None:
    version = choose_version(len(plain), source=name)
    write_compressed_bundle(file, [plain], version=version, level=_LEVEL)
