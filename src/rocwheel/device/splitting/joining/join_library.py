"""Joining one host file with the code in archives: a fat binary again."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import write_compressed_bundle
from rocwheel.binary.bundles.plain import BUNDLE_ALIGNMENT, lay_out_bundle, spell_host
from rocwheel.binary.bundles.runtimes import choose_version
from rocwheel.binary.bundles.storage import DEFAULT_LEVEL, announce_level, stronger_level
from rocwheel.binary.kpack.archive import KERNEL_LIMIT, iter_kernel
from rocwheel.core.patch import FilePatch
from rocwheel.core.reading import Data, FileRange, FileView, load
from rocwheel.core.scratch import no_room, open_temporary, path_of
from rocwheel.device.splitting.host.errors import NoRoomForCodeError
from rocwheel.device.splitting.host.fat_file import plan_fat_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.device.splitting.joining.find_code import UnitCode

__all__ = ["JoinStorage", "plan_join"]


class JoinStorage(msgspec.Struct, frozen=True, kw_only=True):
    """How bundles come back: each plain or compressed, as it was, as far as the host file tells."""

    compress: bool = False
    """Whether all of them are compressed."""
    level: int = DEFAULT_LEVEL
    """The zstd level. Where compressed bundles have no room in the file, higher ones are tried."""


@contextmanager
def plan_join(
    data: Data, units: Sequence[UnitCode], links: Sequence[int], storage: JoinStorage | None = None, *, name: str
) -> Iterator[FilePatch]:
    """Yield the patch that puts the code of ``units`` into the host file ``data``.

    ``links`` says which of them each wrapper points to.

    Bundles wait in a nameless file while the block lasts, so that memory holds a few megabytes of one, whatever their
    number and size. Where they have no room in the file, all are compressed, with the lowest level by which they fit.
    Raises `NotJoinableError` when they have no room at all, `KpackError` for damaged archives, and `WorkError` when
    there is no space for the nameless file.
    """
    with ExitStack() as stack:
        yield _fit(data, units, links, storage or JoinStorage(), name, stack)


def _fit(
    data: Data, units: Sequence[UnitCode], links: Sequence[int], storage: JoinStorage, name: str, stack: ExitStack
) -> FilePatch:
    level, packed = storage.level, [storage.compress or unit.was_compressed for unit in units]
    plain = _spool_plain(units, packed, name, stack)
    while True:
        found = _plan(data, _spool_packed(plain, packed, level, name, stack), links, name)
        if isinstance(found, FilePatch):
            return found
        if not all(packed):
            packed = [True] * len(units)
            plain = _spool_plain(units, packed, name, stack)
            continue
        raw_size = sum(map(len, plain))
        stronger = stronger_level(level, raw_size, found.size, found.room)
        if stronger is None:
            raise found
        announce_level(name, raw_size, stronger, found.size, found.room)
        level = stronger


def _plan(data: Data, bundles: Sequence[Data], links: Sequence[int], name: str) -> FilePatch | NoRoomForCodeError:
    try:
        return plan_fat_file(data, bundles, links, name=name)
    except NoRoomForCodeError as e:
        return e


def _spool_plain(units: Sequence[UnitCode], packed: Sequence[bool], name: str, stack: ExitStack) -> tuple[Data, ...]:
    writers = [
        partial(_write_bundle, unit, spell_hosts=is_packed and not unit.was_compressed)
        for unit, is_packed in zip(units, packed, strict=True)
    ]
    return stack.enter_context(_spooled(writers, name))


def _spool_packed(
    plain: Sequence[Data], packed: Sequence[bool], level: int, name: str, stack: ExitStack
) -> tuple[Data, ...]:
    """Return the bundles, those compressed that are to be ``packed``."""
    writers = [
        partial(_pack_bundle, bundle, level, name) for bundle, is_packed in zip(plain, packed, strict=True) if is_packed
    ]
    compressed = iter(stack.enter_context(_spooled(writers, name)))
    return tuple(next(compressed) if is_packed else bundle for bundle, is_packed in zip(plain, packed, strict=True))


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


def _write_bundle(unit: UnitCode, file: IO[bytes], *, spell_hosts: bool) -> None:
    """Write a plain bundle; between its payloads, and before an empty one at its end, stay holes."""
    start = file.tell()
    spelled = [spell_host(code.spelling) if spell_hosts else code.spelling for code in unit.entries]
    sizes = [code.entry.size if code.entry else 0 for code in unit.entries]
    header, offsets = lay_out_bundle([*zip(spelled, sizes, strict=True)])
    file.write(header)
    for code, offset in zip(unit.entries, offsets, strict=True):
        file.seek(start + offset)
        if code.file is None or code.entry is None:
            continue
        with code.file.content.view() as data:
            for piece in iter_kernel(data, code.file.archive, code.entry, limit=KERNEL_LIMIT):
                file.write(load(piece))


def _pack_bundle(plain: Data, level: int, name: str, file: IO[bytes]) -> None:
    version = choose_version(len(plain), source=name)
    write_compressed_bundle(file, [plain], version=version, level=level)
