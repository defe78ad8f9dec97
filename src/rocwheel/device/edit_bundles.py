"""Edits a file's bundles in place, sequentially or with several workers, and removes code that no GPU needs.

Addresses, section sizes, and relocations don't change.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.bundles.compressed import (
    RAW_SIZE_LIMIT,
    WrongHashError,
    decompress_bundle,
    find_inner_magic,
    iter_decompressed,
)
from rocwheel.binary.bundles.device_code import DeviceCode, iter_ar_members, read_device_code, read_offload_images
from rocwheel.binary.bundles.plain import CODE_ENTRY, BundlePart, spell_hosts, write_offload_bundle
from rocwheel.binary.bundles.sequence import Bundle, require_size
from rocwheel.binary.bundles.storage import BundleChange, BundleSlot, Storage, store_bundle
from rocwheel.binary.code_objects import DeviceCodeError, NoRoomError, NotTrimmableError, TargetId
from rocwheel.binary.kind import is_ar_archive
from rocwheel.binary.pe.header import is_pe64
from rocwheel.binary.pe.rewrite import SignedFileError, edited_image
from rocwheel.core.errors import InputError
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import Data
from rocwheel.device.trim import plan_trim
from rocwheel.targets.compatibility import Fit, covers, fit
from rocwheel.targets.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from rocwheel.binary.bundles.storage import BundleChange, Storage
    from rocwheel.binary.code_objects import CodeObject, CodePlace


logger = logging.getLogger(__name__)


class BundleEdit(Protocol):
    """A change to the entries of one bundle. Implementations are immutable, so several threads can share them."""

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the new entries, or the same tuple if nothing changes."""


def list_slots(data: Data, code: DeviceCode) -> tuple[BundleSlot, ...]:
    """Return the space for every bundle in the file ``data``: up to the next bundle, or to the end of the section.

    If a file contains only bundles, the last bundle can be of any size.
    """
    bundles = tuple(code.iter_bundles(data))
    end = code.section[1] if code.fat_binary else None
    stops = [*(bundle.start for bundle in bundles[1:]), end]
    return tuple(BundleSlot(bundle, stop) for bundle, stop in zip(bundles, stops, strict=False))


def bundle_parts(
    view: Data, bundle: Bundle, *, limit: int = RAW_SIZE_LIMIT, accept_wrong_hash: bool = False
) -> tuple[BundlePart, ...]:
    """Return the entries of ``bundle`` with their payloads; ``view`` is the data that contains the bundle.

    Raises `DeviceCodeError` for a damaged payload, and for a payload larger than ``limit``. Also raises it for a
    payload whose hash differs from the header, unless ``accept_wrong_hash`` is true.
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
    """Return the change for the bundle in ``slot`` of the section ``view``, or `None` if the bundle doesn't change.

    Without an ``edit``, a plain bundle is compressed with the same content, except host entries that later readers
    refuse in compressed bundles (`OffloadBundle.short_host`). A compressed bundle is compressed again if the required
    runtimes can't read it, or to save space if ``storage`` recompresses. If ``storage`` checks, it is also compressed
    again to remove an inner magic number, provided that the result fits. Raises `DeviceCodeError` if the bundle is
    damaged, is ambiguous, or doesn't fit.
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
    """Return the change that recompresses a compressed bundle, or `None` if it wouldn't make the bundle smaller."""
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
    if repeated := bundle.plain.repeated:
        raise DeviceCodeError(
            bundle.place,
            f"the entry {repeated[0]!r} occurs more than once",
            expected="unique entries",
            remedy="Rebuild the file, because different readers use different entries.",
        )
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
    """Stream a compressed bundle, so that memory use doesn't depend on its size."""
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


def edit_code_object(data: Data, code: CodeObject, edit: BundleEdit, *, place: CodePlace) -> tuple[Data, ...] | None:
    """Return, as buffers, the code object that ``edit`` adds to replace ``data``, or `None` if it adds no code object.

    Raises `DeviceCodeError` for an unknown processor, and if the edit removes ``data`` or adds several code objects.
    """
    if code.target is None:
        found = f"a code object whose flags {code.flags:#x} don't identify a processor"
        raise DeviceCodeError(place, found, expected="a code object for a known processor")
    old = BundlePart(f"{CODE_ENTRY}{code.target}", (data,))
    edited = edit((old,), place=place)
    new = [part for part in edited if part is not old]
    if not edited:
        raise DeviceCodeError(place, "a code object that is only for other targets", remedy="Leave the file out.")
    if len(new) > 1:
        targets = ", ".join(part.spelling.removeprefix(CODE_ENTRY) for part in new)
        raise DeviceCodeError(
            place,
            f"a code object, which can't be for several targets ({targets})",
            expected="one target",
            remedy="Make a separate file for each target.",
        )
    return new[0].payload if new else None


def iter_changes(
    data: Data,
    code: DeviceCode,
    slots: Sequence[BundleSlot],
    edit: BundleEdit | None,
    storage: Storage,
    *,
    executor: Executor | None = None,
    jobs: int = 1,
) -> Iterator[BundleChange]:
    """Yield the changes to the complete file ``data``, in ascending order, as they become available.

    The ``executor`` processes ``jobs`` bundles at a time. At most ``jobs`` + 1 bundles and ``storage.limit`` bytes of
    decompressed code are in memory. Only the headers of bundles that stay plain are in memory. Raises the same errors
    as `edit_bundle`.
    """
    work = partial(edit_bundle, code.view(data), edit=edit, storage=storage)
    for change in map(work, slots) if executor is None else _in_window(executor, work, slots, jobs, storage.limit):
        if change is not None:
            yield change


def _in_window(
    executor: Executor,
    work: Callable[[BundleSlot], BundleChange | None],
    slots: Iterable[BundleSlot],
    jobs: int,
    limit: int,
) -> Iterator[BundleChange | None]:
    """Work like ``executor.map``, but submit at most ``jobs`` slots and ``limit`` bytes to decompress at a time."""
    waiting: deque[tuple[int, Future[BundleChange | None]]] = deque()
    for slot in slots:
        size = slot.bundle.raw_size if slot.bundle.compressed else 0
        while waiting and (len(waiting) == jobs or sum(held for held, _ in waiting) + size > limit):
            yield waiting.popleft()[1].result()
        waiting.append((size, executor.submit(work, slot)))
    while waiting:
        yield waiting.popleft()[1].result()


def patched_size(data: Data, code: DeviceCode, slots: Sequence[BundleSlot], last: BundleChange | None) -> int:
    """Return the size of the file after its ``last`` change.

    A file that contains only bundles ends with its last bundle, because many readers refuse bytes after it.
    """
    if code.fat_binary or last is None:
        return len(data)
    bundle = slots[-1].bundle
    return bundle.start + last.size if last.bundle == bundle else bundle.stop


def device_patch(
    data: Data,
    *,
    name: str,
    edit: BundleEdit | None = None,
    storage: Storage,
    trim: bool = False,
    executor: Executor | None = None,
) -> FilePatch | None:
    """Return all changes to the file ``data`` at once, or `None` if it has no bundles or no changes.

    With ``trim``, freed space is removed if possible. The patch keeps the new bundles in memory. If compressed, they
    take up about a tenth of the device code's size. To keep only one bundle in memory at a time, use `iter_changes`.
    Raises the same errors as `read_device_code` and `edit_bundle`, and `SignedFileError` if a signature would become
    invalid.
    """
    code = read_device_code(data, name=name)
    if code is None:
        return None
    slots = list_slots(data, code)
    changes = tuple(iter_changes(data, code, slots, edit, storage, executor=executor, jobs=len(slots)))
    patch = None
    if trim and code.fat_binary is not None and not code.fat_binary.is_kpacked:
        try:
            patch = plan_trim(data, name=name, changes=changes)
        except (NotTrimmableError, SignedFileError) as e:
            logger.info("not trimmed: %s", e)
    if patch is None:
        size = patched_size(data, code, slots, changes[-1] if changes else None)
        patch = FilePatch(size, tuple(replacement for change in changes for replacement in change.replacements))
    if is_pe64(data):
        patch = edited_image(data, patch, name=name)
    return None if patch.is_identity else patch


class UnlinkedCodeError(InputError):
    """An error for device code that isn't linked into code objects yet and therefore has no bundles to edit."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            "device code that isn't linked yet",
            expected="bundles, as in shared libraries, programs, and objects compiled without -fgpu-rdc",
            remedy="Compile the file with --offload-arch for the targets, or link the file and edit the result.",
        )


class BundlePlaces(msgspec.Struct, frozen=True):
    """The bundles in ``data``, which is a file, or an archive member at the offset ``base``."""

    base: int
    data: Data
    code: DeviceCode
    slots: tuple[BundleSlot, ...]

    def replacements(self, change: BundleChange) -> Iterator[Replacement]:
        """Yield a change's replacements, with offsets in the file."""
        for new in change.replacements:
            yield Replacement(new.start + self.base, new.stop + self.base, new.data)

    def patched_size(self, last: BundleChange | None) -> int:
        """Return the size of ``data`` after its ``last`` change."""
        return patched_size(self.data, self.code, self.slots, last)


def list_places(data: Data, *, name: str) -> tuple[BundlePlaces, ...]:
    """Return all bundles of the file ``name``, or an empty tuple for code objects and files without device code.

    Raises `UnlinkedCodeError` if some code is in images of object files. Also raises the same errors as
    `read_device_code`.
    """
    if not is_ar_archive(data):
        return _places(data, 0, name)
    members = tuple(iter_ar_members(data, name=name))
    return tuple(
        place
        for member in members
        for place in _member_places(data[member.offset :][: member.size], member.offset, f"{name}({member.name})")
    )


def _places(data: Data, base: int, name: str) -> tuple[BundlePlaces, ...]:
    code = read_device_code(data, name=name)
    if code is None and any(image.target for image in read_offload_images(data, name=name)):
        raise UnlinkedCodeError(name)
    slots = list_slots(data, code) if code else ()
    return (BundlePlaces(base, data, code, slots),) if code and slots else ()


def _member_places(data: Data, base: int, name: str) -> tuple[BundlePlaces, ...]:
    """Return the bundles of a member, which must keep its size."""
    places = _places(data, base, name)
    if any(place.code.fat_binary is None for place in places):
        raise InputError(
            name,
            "a bundle file in an archive",
            expected="object files",
            remedy="Remove the member from the archive first.",
        )
    return places


def any_variant_runs(code: TargetId, wanted: TargetId) -> bool:
    """Return whether any GPU that matches ``wanted`` runs ``code``.

    For example, ``gfx90a`` matches all of its variants, and ``gfx90a:xnack+`` also runs code that doesn't set xnack.
    """
    agent = TargetId(wanted.processor, **(code.features | wanted.features))
    return fit(code, agent) is not Fit.NONE


def is_any_kept(codes: Iterable[TargetId], keep: Sequence[TargetId]) -> bool:
    """Return whether any GPU that matches ``keep`` runs any of ``codes``."""
    return any(any_variant_runs(code, wanted) for code in codes for wanted in keep)


def needed_code(codes: Iterable[TargetId], keep: Sequence[TargetId]) -> frozenset[TargetId]:
    """Return the targets in one bundle's ``codes`` that the GPUs in ``keep`` need.

    The result includes all targets of the processors of these GPUs. Code for a generic processor stays as long as a GPU
    that it covers lacks processor-specific code for some feature setting. The same is true of SPIR-V. If ``keep``
    contains a generic processor, the generic code stays, but not the code for its members.
    """
    offered = frozenset(codes)
    return frozenset(code for code in offered if any(_needs(wanted, code, offered) for wanted in keep))


def _needs(wanted: TargetId, code: TargetId, offered: frozenset[TargetId]) -> bool:
    if not any_variant_runs(code, wanted):
        return False
    own = [other for other in offered if other.processor == wanted.processor]
    return code.processor == wanted.processor or not covers(own, wanted)


class Prune(msgspec.Struct, frozen=True):
    """Keeps the host entries and the code that the GPUs in ``keep`` need, and removes entries without code.

    Raises `DeviceCodeError` if no device code would be left, unless ``allow_empty`` is true. If an older runtime finds
    a bundle without code for one GPU, it rejects every GPU in the machine.
    """

    keep: tuple[TargetId, ...]
    allow_empty: bool = False

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the entries to keep."""
        targets = [part.target for part in parts]
        needed = needed_code((t for t, part in zip(targets, parts, strict=True) if t and part.size), self.keep)
        kept = tuple(
            part
            for target, part in zip(targets, parts, strict=True)
            if target is None or (part.size > 0 and target in needed)
        )
        if len(kept) == len(parts):
            return parts
        if not self.allow_empty and not any(part.size for part in kept):
            offered = [part.target for part in parts if part.target and part.size]
            raise self.nothing_left(offered, place)
        return kept

    def needed(self, units: Iterable[Iterable[TargetId]]) -> frozenset[TargetId]:
        """Return the targets whose code stays in an archive; ``units`` contains the targets of each unit.

        If one unit needs a target, the target stays for all units, because runtimes expect code for each listed target
        in every unit.
        """
        return frozenset(target for targets in units for target in needed_code(targets, self.keep))

    def nothing_left(self, targets: Iterable[TargetId], place: CodePlace) -> DeviceCodeError:
        """Return the error for a file that has code for ``targets``, but not for any of the targets to keep."""
        offered = ", ".join(map(str, sorted(targets, key=id_sort_key)))
        return DeviceCodeError(
            place,
            "has no code for any of the targets to keep",
            expected=f"code for one of {', '.join(map(str, self.keep))}",
            remedy=f"It has code for {offered}." if offered else "It has no code at all.",
        )
