"""Editing bundles where they are: each edit changes the entries of one bundle, and its result takes the old place.

Addresses, section sizes and relocations stay as they are.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundles.compressed import (
    RAW_SIZE_LIMIT,
    WrongHashError,
    decompress_bundle,
    find_inner_magic,
    iter_decompressed,
)
from rocwheel.binary.bundles.plain import BundlePart, spell_hosts, write_offload_bundle
from rocwheel.binary.bundles.sequence import Bundle, require_size
from rocwheel.binary.bundles.storage import BundleChange, BundleSlot, Storage, store_bundle
from rocwheel.binary.code_objects import DeviceCodeError, NoRoomError
from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.code_objects import CodeObject, Place
    from rocwheel.core.reading import Data

__all__ = ["BundleEdit", "bundle_parts", "edit_bundle", "edit_code_object", "list_slots"]

_ID = "hipv4-amdgcn-amd-amdhsa--"

logger = logging.getLogger(__name__)


class BundleEdit(Protocol):
    """A change of one bundle's entries; implementations are values, which several threads apply at the same time."""

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the new entries; the same tuple when nothing changes."""


def list_slots(data: Data, code: DeviceCode) -> tuple[BundleSlot, ...]:
    """Return the place of every bundle in the file ``data``: up to the next, or to the end of the section.

    The last bundle of a file that holds nothing else may take any size.
    """
    bundles = tuple(code.iter_bundles(data))
    end = code.section[1] if code.fat_binary else None
    stops = [*(bundle.start for bundle in bundles[1:]), end]
    return tuple(BundleSlot(bundle, stop) for bundle, stop in zip(bundles, stops, strict=False))


def bundle_parts(
    view: Data, bundle: Bundle, *, limit: int = RAW_SIZE_LIMIT, accept_wrong_hash: bool = False
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


def _raw_bundle(view: Data, bundle: Bundle, limit: int, *, accept_wrong_hash: bool) -> Data:
    if bundle.compressed is None:
        return view[bundle.start : bundle.stop]
    rest = view[bundle.start :]
    raw, wrong_hash = decompress_bundle(rest, bundle.compressed, place=bundle.place, limit=limit)
    if wrong_hash and not accept_wrong_hash:
        raise wrong_hash
    if wrong_hash:
        logger.warning("%s: %s", bundle.place, wrong_hash.found)
    return raw


def edit_bundle(view: Data, slot: BundleSlot, edit: BundleEdit | None, storage: Storage) -> BundleChange | None:
    """Return the change of the bundle in ``slot``, whose section is ``view``; none when it stays as it is.

    Without an ``edit``, a plain bundle is only compressed, byte for byte as it is, but for host entries that later
    readers refuse in compressed bundles (`OffloadBundle.short_host`). A compressed one that the runtimes which have to
    read it don't read is compressed again, and, if ``storage`` checks, one that has the magic of a bundle within, where
    it then has none and keeps its place, and, if it is to recompress, one that becomes smaller.
    Raises `DeviceCodeError` when the bundle is damaged, ambiguous, or outgrows its place.
    """
    raw = _edited(view, slot.bundle, edit, storage) if edit else None
    if raw is None and not _is_stored_well(slot.bundle, storage):
        raw = _as_it_is(view, slot.bundle, storage)
    if raw is None and edit is None and storage.check:
        _check(view, slot.bundle, storage)
        smaller = _recompressed(view, slot, storage) if storage.recompress else None
        return smaller or _without_inner_magic(view, slot, storage)
    return None if raw is None else store_bundle(slot, raw, storage)


def _without_inner_magic(view: Data, slot: BundleSlot, storage: Storage) -> BundleChange | None:
    bundle = slot.bundle
    if bundle.compressed is None or find_inner_magic(view[bundle.start : bundle.stop]) is None:
        return None
    try:
        change = store_bundle(slot, _as_it_is(view, bundle, storage), storage)
    except NoRoomError:
        return None
    return change if find_inner_magic(change.replacements[0].data) is None else None


def _recompressed(view: Data, slot: BundleSlot, storage: Storage) -> BundleChange | None:
    """Return the change that compresses a compressed bundle again; none where it would not become smaller."""
    bundle = slot.bundle
    if bundle.compressed is None:
        return None
    change = store_bundle(BundleSlot(bundle, None), _as_it_is(view, bundle, storage), storage)
    if change.size >= bundle.size:
        return None
    start = bundle.place.offset
    freed = Replacement(start + change.size, start + bundle.size)
    return change if slot.stop is None else msgspec.structs.replace(change, replacements=(*change.replacements, freed))


def _edited(view: Data, bundle: Bundle, edit: BundleEdit, storage: Storage) -> list[Data] | None:
    _refuse_ambiguous(bundle)
    parts = bundle_parts(view, bundle, limit=storage.limit, accept_wrong_hash=storage.accept_wrong_hash)
    edited = edit(parts, place=bundle.place)
    if edited is parts:
        return None
    is_compressed = bundle.compressed is not None or storage.compress
    return list(write_offload_bundle(spell_hosts(edited) if is_compressed else edited))


def _as_it_is(view: Data, bundle: Bundle, storage: Storage) -> list[Data]:
    """Return the plain bundle to compress."""
    if bundle.plain.short_host is None:
        return [_raw_bundle(view, bundle, storage.limit, accept_wrong_hash=storage.accept_wrong_hash)]
    parts = bundle_parts(view, bundle, limit=storage.limit, accept_wrong_hash=storage.accept_wrong_hash)
    return list(write_offload_bundle(spell_hosts(parts)))


def _check(view: Data, bundle: Bundle, storage: Storage) -> None:
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
    if repeated := bundle.plain.repeated:
        raise DeviceCodeError(
            bundle.place,
            f"the entry {repeated[0]!r} occurs more than once",
            expected="each once",
            remedy="Readers differ in which of them they take; build the file again.",
        )


def edit_code_object(data: Data, code: CodeObject, edit: BundleEdit, *, place: Place) -> tuple[Data, ...] | None:
    """Return, as buffers, the code object that ``edit`` adds, which takes the place of ``data``; none if it adds none.

    Raises `DeviceCodeError` when it takes ``data`` away or adds more than one, and for code of an unknown processor.
    """
    if code.target is None:
        found = f"a code object whose flags {code.flags:#x} name no processor"
        raise DeviceCodeError(place, found, expected="one for a processor that compilers know")
    old = BundlePart(f"{_ID}{code.target}", (data,))
    edited = edit((old,), place=place)
    new = [part for part in edited if part is not old]
    if not edited:
        raise DeviceCodeError(place, "a code object that is all for other targets", remedy="Leave the file out.")
    if len(new) > 1:
        targets = ", ".join(part.spelling.removeprefix(_ID) for part in new)
        raise DeviceCodeError(
            place,
            f"a code object, which is for one target, to be for {targets}",
            expected="one target",
            remedy="Make a file for each.",
        )
    return new[0].payload if new else None
