"""Rewriting bundles where they are: each edit changes the entries of one bundle, and its result takes the old place.

Addresses, section sizes and relocations stay as they are; what a bundle gives back is filled with zeros.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundle_readers import choose_version, is_read_by
from rocwheel.binary.bundle_sequence import Bundle, require_size
from rocwheel.binary.compressed_bundle import (
    RAW_SIZE_LIMIT,
    CompressedBundle,
    Method,
    WrongHashError,
    compress_bundle,
    decompress_bundle,
    header_version,
    iter_decompressed,
)
from rocwheel.binary.device_code import DeviceCode, read_device_code
from rocwheel.binary.device_error import DeviceCodeError, NotTrimmableError
from rocwheel.binary.fat_trim import plan_fat_trim
from rocwheel.binary.file_patch import FilePatch, Replacement
from rocwheel.binary.offload_bundle import RUNTIME_HEADER_LIMIT, BundlePart, spell_hosts, write_offload_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from rocwheel.binary.device_error import Place

__all__ = [
    "BundleChange",
    "BundleEdit",
    "BundleSlot",
    "Storage",
    "bundle_parts",
    "device_patch",
    "edit_bundle",
    "iter_changes",
    "list_slots",
    "patched_size",
]

_STRONGER_LEVELS = (15, 19)

logger = logging.getLogger(__name__)


class BundleEdit(Protocol):
    """A change of one bundle's entries; implementations are plain picklable values, so that workers can apply them."""

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the new entries; the same tuple when nothing changes."""


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """How edited bundles are stored."""

    compress: bool = False
    """Whether plain bundles become compressed ones; compressed ones stay so."""
    version: int | None = None
    """The header version to insist on; by default the one that the most ROCm releases read."""
    rocm: str = ""
    """The oldest ROCm release that has to read the result; empty for any that reads compressed bundles."""
    level: int = 9
    """The zstd level. When a bundle outgrows its place, higher ones are tried."""
    limit: int = RAW_SIZE_LIMIT
    """The largest plain bundle to hold in memory, in bytes."""
    check: bool = False
    """Whether compressed bundles that stay as they are, of up to ``limit`` bytes, are read whole to find damage."""
    accept_wrong_hash: bool = False
    """Whether a bundle whose hash is wrong is taken as it is, with a warning in the log, rather than refused."""

    def accepts(self, version: int) -> bool:
        """Tell whether a bundle that is compressed in header ``version`` may stay so."""
        if self.version is not None:
            return version == self.version
        return is_read_by(version, self.rocm)


class BundleSlot(msgspec.Struct, frozen=True):
    """A bundle and the place it may take: up to ``stop`` among the bytes it was found in; none if there is no end."""

    bundle: Bundle
    stop: int | None


def list_slots(data: memoryview, code: DeviceCode) -> tuple[BundleSlot, ...]:
    """Return the place of every bundle in the file ``data``: up to the next, or to the end of the section.

    The last bundle of a file that holds nothing else may take any size.
    """
    bundles = tuple(code.iter_bundles(data))
    end = code.section[1] if code.fat_binary else None
    stops = [*(bundle.start for bundle in bundles[1:]), end]
    return tuple(BundleSlot(bundle, stop) for bundle, stop in zip(bundles, stops, strict=False))


def bundle_parts(
    view: memoryview, bundle: Bundle, *, limit: int = RAW_SIZE_LIMIT, accept_wrong_hash: bool = False
) -> tuple[BundlePart, ...]:
    """Return the entries of ``bundle`` with their payloads; ``view`` is what it was found in.

    Raises `DeviceCodeError` for a damaged payload, for one larger than ``limit``, and for one of which the header has
    another hash, unless ``accept_wrong_hash``.
    """
    raw = _raw_bundle(view, bundle, limit, accept_wrong_hash=accept_wrong_hash)
    return tuple(
        BundlePart(entry.spelling, (raw[entry.offset : entry.stop],) if entry.size else ())
        for entry in bundle.plain.entries
    )


def _raw_bundle(view: memoryview, bundle: Bundle, limit: int, *, accept_wrong_hash: bool) -> memoryview:
    if bundle.compressed is None:
        return view[bundle.start : bundle.stop]
    rest = view[bundle.start :]
    raw, wrong_hash = decompress_bundle(rest, bundle.compressed, place=bundle.place, limit=limit)
    if wrong_hash and not accept_wrong_hash:
        raise wrong_hash
    if wrong_hash:
        logger.warning("%s: %s", bundle.place, wrong_hash.found)
    return raw


class BundleChange(msgspec.Struct, frozen=True):
    """What becomes of a bundle: its new size in bytes, and the replacements in its file, in rising order."""

    bundle: Bundle
    size: int
    replacements: tuple[Replacement, ...]

    @property
    def version(self) -> int | None:
        """The header version of the compressed bundle that was written; none for a plain one."""
        return header_version(bytes(self.replacements[0].data[:8]))

    def placed(self, start: int) -> tuple[Replacement, ...]:
        """Return the replacements that put the new bundle, without zeros behind it, at ``start`` instead."""
        by = start - self.replacements[0].start
        written = (change for change in self.replacements if len(change.data))
        return tuple(Replacement.of(change.start + by, change.data) for change in written)


def edit_bundle(view: memoryview, slot: BundleSlot, edit: BundleEdit | None, storage: Storage) -> BundleChange | None:
    """Return the change of the bundle in ``slot``, whose section is ``view``; none when it stays as it is.

    Without an ``edit``, a plain bundle is only compressed, byte for byte as it is, but for host entries that later
    readers refuse in compressed bundles (`OffloadBundle.short_host`). A compressed one that the runtimes which have to
    read it don't read is compressed anew.
    Raises `DeviceCodeError` when the bundle is damaged, ambiguous, or outgrows its place.
    """
    raw = _edited(view, slot.bundle, edit, storage) if edit else None
    if raw is None and not _is_stored_well(slot.bundle, storage):
        raw = _as_it_is(view, slot.bundle, storage)
    if raw is None and edit is None and storage.check:
        _check(view, slot.bundle, storage)
    return None if raw is None else _fit(slot, raw, storage)


def _edited(view: memoryview, bundle: Bundle, edit: BundleEdit, storage: Storage) -> list[memoryview] | None:
    _refuse_ambiguous(bundle)
    parts = bundle_parts(view, bundle, limit=storage.limit, accept_wrong_hash=storage.accept_wrong_hash)
    edited = edit(parts, place=bundle.place)
    if edited is parts:
        return None
    is_compressed = bundle.compressed is not None or storage.compress
    return list(write_offload_bundle(spell_hosts(edited) if is_compressed else edited))


def _as_it_is(view: memoryview, bundle: Bundle, storage: Storage) -> list[memoryview]:
    """Return the plain bundle to compress."""
    if bundle.plain.short_host is None:
        return [_raw_bundle(view, bundle, storage.limit, accept_wrong_hash=storage.accept_wrong_hash)]
    parts = bundle_parts(view, bundle, limit=storage.limit, accept_wrong_hash=storage.accept_wrong_hash)
    return list(write_offload_bundle(spell_hosts(parts)))


def _check(view: memoryview, bundle: Bundle, storage: Storage) -> None:
    """Stream a compressed bundle, so that memory doesn't depend on its size."""
    if bundle.compressed is None:
        return
    require_size(bundle, storage.limit)
    try:
        deque(iter_decompressed(view[bundle.start :], bundle.compressed, place=bundle.place), maxlen=0)
    except WrongHashError as e:
        if not storage.accept_wrong_hash:
            raise
        logger.warning("%s: %s", bundle.place, e.found)


def _is_stored_well(bundle: Bundle, storage: Storage) -> bool:
    if bundle.compressed is None:
        return not storage.compress
    return storage.accepts(bundle.compressed.version) and bundle.plain.short_host is None


def _refuse_ambiguous(bundle: Bundle) -> None:
    spellings = [entry.spelling for entry in bundle.plain.entries]
    for spelling in spellings:
        if spellings.count(spelling) > 1:
            raise DeviceCodeError(
                bundle.place,
                f"the entry {spelling!r} occurs more than once",
                expected="each once",
                remedy="Readers differ in which of them they take; build the file again.",
            )


def _fit(slot: BundleSlot, raw: list[memoryview], storage: Storage) -> BundleChange:
    bundle = slot.bundle
    is_plain = bundle.compressed is None and not storage.compress
    if is_plain and len(raw[0]) > RUNTIME_HEADER_LIMIT:
        raise DeviceCodeError(
            bundle.place,
            f"needs a header of {len(raw[0])} bytes",
            expected=f"at most {RUNTIME_HEADER_LIMIT}, which the runtime reads of a plain bundle",
            remedy="Compress the device code (--compress).",
        )
    room = None if slot.stop is None else slot.stop - bundle.start
    for new in [raw] if is_plain else _compressions(raw, bundle, storage):
        size = sum(map(len, new))
        if room is None or size <= room:
            return BundleChange(bundle, size, tuple(_replace(bundle.place.offset, new, room or size)))
    remedy = (
        "Compress the device code to make room (--compress)." if is_plain else "Leave out other targets to make room."
    )
    raise DeviceCodeError(bundle.place, f"needs {size} bytes", expected=f"at most {room}", remedy=remedy)


def _replace(offset: int, buffers: list[memoryview], room: int) -> Iterator[Replacement]:
    """Give each buffer as it is, so that a plain bundle is never copied together, and the rest as zeros."""
    stop = offset + room
    for buffer in buffers:
        yield Replacement(offset, offset + len(buffer), buffer)
        offset += len(buffer)
    if offset < stop:
        yield Replacement(offset, stop, b"")


def _compressions(raw: list[memoryview], bundle: Bundle, storage: Storage) -> Iterator[list[memoryview]]:
    version, method = _format_of(bundle.compressed, sum(map(len, raw)), storage, str(bundle.place))
    for level in (storage.level, *(level for level in _STRONGER_LEVELS if level > storage.level)):
        yield [memoryview(compress_bundle(raw, version=version, level=level, method=method))]


def _format_of(old: CompressedBundle | None, raw_size: int, storage: Storage, source: str) -> tuple[int, Method]:
    method = Method.ZSTD if old is None or old.version == 1 else old.method
    kept = old.version if old and storage.accepts(old.version) else storage.version
    return choose_version(raw_size, rocm=storage.rocm, wanted=kept, source=source), method


def iter_changes(
    data: memoryview,
    code: DeviceCode,
    slots: Sequence[BundleSlot],
    edit: BundleEdit | None,
    storage: Storage,
    *,
    executor: Executor | None = None,
    jobs: int = 1,
) -> Iterator[BundleChange]:
    """Give the changes of the whole file ``data``, in rising order, as they are made.

    The ``executor`` works on ``jobs`` bundles at a time, and memory holds no more of them than that and one; of those
    that were plain and stay so, only the headers. Raises `DeviceCodeError` as `edit_bundle` does.
    """
    work = partial(edit_bundle, code.view(data), edit=edit, storage=storage)
    for change in map(work, slots) if executor is None else _in_window(executor, work, slots, jobs):
        if change is not None:
            yield change


def _in_window(
    executor: Executor, work: Callable[[BundleSlot], BundleChange | None], slots: Iterable[BundleSlot], jobs: int
) -> Iterator[BundleChange | None]:
    """Do what ``executor.map`` does, without letting results pile up while the first is waited for."""
    waiting: deque[Future[BundleChange | None]] = deque()
    for slot in slots:
        if len(waiting) == jobs:
            yield waiting.popleft().result()
        waiting.append(executor.submit(work, slot))
    while waiting:
        yield waiting.popleft().result()


def patched_size(data: memoryview, code: DeviceCode, slots: Sequence[BundleSlot], last: BundleChange | None) -> int:
    """Return the size of the file after its ``last`` change.

    A file of bundles and nothing else ends with its last bundle then: many readers refuse bytes after it.
    """
    if code.fat_binary or last is None:
        return len(data)
    bundle = slots[-1].bundle
    return bundle.start + last.size if last.bundle == bundle else bundle.stop


def device_patch(
    data: memoryview,
    *,
    name: str,
    edit: BundleEdit | None = None,
    storage: Storage,
    trim: bool = False,
    executor: Executor | None = None,
) -> FilePatch | None:
    """Return all changes of the file ``data`` at once; none when it has no bundles or none changes.

    With ``trim``, the space that they free is taken out where that can be done. The patch holds the new bundles in
    memory: with compression, about a tenth of the device code. Use `iter_changes` to have one at a time.
    Raises `InputError` as `read_device_code` and `edit_bundle` do.
    """
    code = read_device_code(data, name=name)
    if code is None:
        return None
    slots = list_slots(data, code)
    changes = tuple(iter_changes(data, code, slots, edit, storage, executor=executor, jobs=len(slots)))
    if trim and (trimmed := _trim(data, name, code, changes)):
        return trimmed
    if not changes:
        return None
    replacements = tuple(replacement for change in changes for replacement in change.replacements)
    return FilePatch(patched_size(data, code, slots, changes[-1]), replacements)


def _trim(data: memoryview, name: str, code: DeviceCode, changes: Sequence[BundleChange]) -> FilePatch | None:
    """Return the changes of a shared library without the space that they free; none if that can't be taken out."""
    if code.fat_binary is None or code.fat_binary.is_kpacked:
        return None
    try:
        return plan_fat_trim(data, name=name, changes=changes)
    except NotTrimmableError as e:
        logger.info("not trimmed: %s", e)
        return None
