"""Rewriting bundles where they are: each edit changes the entries of one bundle, and its result takes the old place.

Addresses, section sizes and relocations stay as they are; what a bundle gives back is filled with zeros.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundle_readers import choose_version
from rocwheel.binary.bundle_sequence import Bundle
from rocwheel.binary.compressed_bundle import (
    RAW_SIZE_LIMIT,
    CompressedBundle,
    Method,
    compress_bundle,
    decompress_bundle,
)
from rocwheel.binary.device_code import DeviceCode, read_device_code
from rocwheel.binary.device_error import DeviceCodeError
from rocwheel.binary.file_patch import FilePatch, Replacement
from rocwheel.binary.offload_bundle import RUNTIME_HEADER_LIMIT, BundlePart, write_offload_bundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.binary.device_error import Place

__all__ = [
    "BundleEdit",
    "BundleSlot",
    "Storage",
    "bundle_parts",
    "device_patch",
    "edit_bundle",
    "iter_replacements",
    "list_slots",
    "patched_size",
]

_STRONGER_LEVELS = (15, 19)


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


def bundle_parts(view: memoryview, bundle: Bundle, *, limit: int = RAW_SIZE_LIMIT) -> tuple[BundlePart, ...]:
    """Return the entries of ``bundle`` with their payloads; ``view`` is what it was found in.

    Raises `DeviceCodeError` for a damaged payload, and for one larger than ``limit``.
    """
    if bundle.compressed is None:
        raw = view[bundle.start : bundle.stop]
    else:
        raw, _ = decompress_bundle(view[bundle.start :], bundle.compressed, place=bundle.place, limit=limit)
    return tuple(
        BundlePart(entry.spelling, (raw[entry.offset : entry.stop],) if entry.size else ())
        for entry in bundle.plain.entries
    )


def edit_bundle(view: memoryview, slot: BundleSlot, edit: BundleEdit | None, storage: Storage) -> Replacement | None:
    """Return the new bytes for a slot, relative to ``view``; none when nothing changes.

    Without an ``edit``, a plain bundle is only compressed, byte for byte as it is.
    Raises `DeviceCodeError` when the bundle is damaged, ambiguous, or outgrows its place.
    """
    bundle = slot.bundle
    if edit is None:
        if bundle.compressed is not None or not storage.compress:
            return None
        return _fit(slot, [view[bundle.start : bundle.stop]], storage)
    _refuse_ambiguous(bundle)
    parts = bundle_parts(view, bundle, limit=storage.limit)
    edited = edit(parts, place=bundle.place)
    if edited is parts:
        return None
    return _fit(slot, list(write_offload_bundle(edited)), storage)


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


def _fit(slot: BundleSlot, raw: list[memoryview], storage: Storage) -> Replacement:
    bundle = slot.bundle
    is_plain = bundle.compressed is None and not storage.compress
    if is_plain and len(raw[0]) > RUNTIME_HEADER_LIMIT:
        raise DeviceCodeError(
            bundle.place,
            f"needs a header of {len(raw[0])} bytes",
            expected=f"at most {RUNTIME_HEADER_LIMIT}, which the runtime reads of a plain bundle",
            remedy="Compress the device code.",
        )
    room = None if slot.stop is None else slot.stop - bundle.start
    for new in [b"".join(raw)] if is_plain else _compressions(raw, bundle, storage):
        if room is None or len(new) <= room:
            return Replacement(bundle.start, bundle.start + (room or len(new)), new)
    remedy = "Compress the device code to make room." if is_plain else "Leave out other targets to make room."
    raise DeviceCodeError(bundle.place, f"needs {len(new)} bytes", expected=f"at most {room}", remedy=remedy)


def _compressions(raw: list[memoryview], bundle: Bundle, storage: Storage) -> Iterable[bytes]:
    version, method = _format_of(bundle.compressed, sum(map(len, raw)), storage, str(bundle.place))
    for level in (storage.level, *(level for level in _STRONGER_LEVELS if level > storage.level)):
        yield compress_bundle(raw, version=version, level=level, method=method)


def _format_of(old: CompressedBundle | None, raw_size: int, storage: Storage, source: str) -> tuple[int, Method]:
    if old is None or storage.version is not None or old.version == 1:
        wanted, method = storage.version, Method.ZSTD
    else:
        wanted, method = old.version, old.method
    return choose_version(raw_size, rocm=storage.rocm, wanted=wanted, source=source), method


def iter_replacements(
    data: memoryview,
    code: DeviceCode,
    slots: Sequence[BundleSlot],
    edit: BundleEdit | None,
    storage: Storage,
    *,
    executor: Executor | None = None,
) -> Iterator[Replacement]:
    """Give the changes of the whole file ``data``, in rising order, as they are made.

    Each takes as much memory as its bundle needs. Raises `DeviceCodeError` as `edit_bundle` does.
    """
    view, base = code.view(data), code.section[0]
    work = partial(edit_bundle, view, edit=edit, storage=storage)
    for replacement in (executor.map if executor else map)(work, slots):
        if replacement is not None:
            yield Replacement(base + replacement.start, base + replacement.stop, replacement.data)


def patched_size(data: memoryview, code: DeviceCode, slots: Sequence[BundleSlot], last: Replacement | None) -> int:
    """Return the size of the file after its ``last`` change.

    A file of bundles and nothing else ends with its last bundle then: many readers refuse bytes after it.
    """
    if code.fat_binary or last is None:
        return len(data)
    bundle = slots[-1].bundle
    return last.stop if last.start == bundle.start else bundle.stop


def device_patch(
    data: memoryview,
    *,
    name: str,
    edit: BundleEdit | None = None,
    storage: Storage,
    executor: Executor | None = None,
) -> FilePatch | None:
    """Return all changes of the file ``data`` at once; none when it has no bundles or none changes.

    The patch holds the new bundles in memory: with compression, about a tenth of the device code. Use
    `iter_replacements` to have one at a time. Raises `InputError` as `read_device_code` and `edit_bundle` do.
    """
    code = read_device_code(data, name=name)
    if code is None:
        return None
    slots = list_slots(data, code)
    changes = tuple(iter_replacements(data, code, slots, edit, storage, executor=executor))
    return FilePatch(patched_size(data, code, slots, changes[-1]), changes) if changes else None
