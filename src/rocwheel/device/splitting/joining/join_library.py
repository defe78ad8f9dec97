"""Joining one host file with the code in archives: a fat binary again."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from rocwheel.binary.bundles.compressed.content import compress_bundle
from rocwheel.binary.bundles.compressed.versions import choose_version
from rocwheel.binary.bundles.parts import BUNDLE_ALIGNMENT, BundlePart, write_offload_bundle
from rocwheel.binary.kpack.read_kernel import read_kernel
from rocwheel.device.splitting.host.errors import NotJoinableError
from rocwheel.device.splitting.host.fat_file import plan_fat_file
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_view import Data, FileView, iter_pieces
from rocwheel.foundation.files.temporary_file import no_room, open_temporary, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.device.splitting.joining.find_code import FoundCode, UnitCode
    from rocwheel.foundation.patch import FilePatch

__all__ = ["plan_join"]

_LEVEL = 9


@contextmanager
def plan_join(data: Data, units: Sequence[UnitCode], links: Sequence[int], *, name: str) -> Iterator[FilePatch]:
    """Yield the patch that puts the code of ``units`` into the host file ``data``.

    ``links`` says which of them each wrapper points to.

    Bundles wait in a nameless file while the block lasts. They are plain; where these have no room in the file, since
    they were compressed before it was split, they are compressed again.
    Raises `NotJoinableError` when they have no room at all, `KpackError` for damaged archives, and `WorkError` when
    there is no space for the nameless file.
    """
    with ExitStack() as stack:
        try:
            plain = stack.enter_context(_spooled(units, name, compressed=False))
            patch = plan_fat_file(data, plain, links, name=name)
        except NotJoinableError:
            packed = stack.enter_context(_spooled(units, name, compressed=True))
            patch = plan_fat_file(data, packed, links, name=name)
        yield patch


@contextmanager
def _spooled(units: Sequence[UnitCode], name: str, *, compressed: bool) -> Iterator[tuple[Data, ...]]:
    """Yield the bundles of ``units``, kept in a nameless file."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_temporary(buffering=-1))
            places = [_write_bundle(file, unit, name, compressed=compressed) for unit in units]
            file.flush()
        except OSError as e:
            raise no_room(name, "its device code", e) from e
        yield tuple(FileView(FileRange(path_of(file), start, stop - start)) for start, stop in places)


def _write_bundle(file: IO[bytes], unit: UnitCode, name: str, *, compressed: bool) -> tuple[int, int]:
    start = -(-file.tell() // BUNDLE_ALIGNMENT) * BUNDLE_ALIGNMENT
    file.seek(start)
    with ExitStack() as stack:
        raw = list(write_offload_bundle([_part(code, stack) for code in unit.entries]))
        if compressed:
            version = choose_version(sum(map(len, raw)), source=name)
            raw = [memoryview(compress_bundle(raw, version=version, level=_LEVEL))]
        for buffer in raw:
            for piece in iter_pieces(buffer):
                file.write(piece)
    return start, file.tell()


def _part(code: FoundCode, stack: ExitStack) -> BundlePart:
    if code.file is None or code.entry is None:
        return BundlePart(code.spelling)
    data = stack.enter_context(code.file.content.view())
    return BundlePart(code.spelling, (read_kernel(data, code.file.archive, code.entry),))
