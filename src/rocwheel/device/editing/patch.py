"""The changes of a whole file: its bundles edited one by one, by several workers."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import DeviceCode, read_device_code
from rocwheel.binary.code_objects import NotTrimmableError
from rocwheel.binary.pe.header import is_pe64
from rocwheel.binary.pe.rewrite import SignedFileError, edited_image
from rocwheel.core.patch import FilePatch
from rocwheel.device.editing.bundle import edit_bundle, list_slots
from rocwheel.device.trimming.trim import plan_trim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from rocwheel.binary.bundles.storage import BundleChange, BundleSlot, Storage
    from rocwheel.core.reading import Data
    from rocwheel.device.editing.bundle import BundleEdit

__all__ = ["device_patch", "iter_changes", "patched_size"]

logger = logging.getLogger(__name__)


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
    """Yield the changes of the whole file ``data``, in rising order, as they are made.

    The ``executor`` works on ``jobs`` bundles at a time, and memory holds no more of them than that and one, nor more
    than ``storage.limit`` bytes of decompressed code; of those that were plain and stay so, only the headers.
    Raises `DeviceCodeError` as `edit_bundle` does.
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
    """Do what ``executor.map`` does, but give it no more than workers can take, and ``limit`` bytes to decompress."""
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

    A file of bundles and nothing else ends with its last bundle then: many readers refuse bytes after it.
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
    """Return all changes of the file ``data`` at once; none when it has no bundles or none changes.

    With ``trim``, the space that they free is taken out where that can be done. The patch holds the new bundles in
    memory: with compression, about a tenth of the device code. Use `iter_changes` to have one at a time.
    Raises `InputError` as `read_device_code` and `edit_bundle` do, and `SignedFileError` where a signature would become
    void.
    """
    code = read_device_code(data, name=name)
    if code is None:
        return None
    slots = list_slots(data, code)
    changes = tuple(iter_changes(data, code, slots, edit, storage, executor=executor, jobs=len(slots)))
    patch = _trim(data, name, code, changes) if trim else None
    if patch is None:
        size = patched_size(data, code, slots, changes[-1] if changes else None)
        patch = FilePatch(size, tuple(replacement for change in changes for replacement in change.replacements))
    if is_pe64(data):
        patch = edited_image(data, patch, name=name)
    return None if patch.is_identity else patch


def _trim(data: Data, name: str, code: DeviceCode, changes: Sequence[BundleChange]) -> FilePatch | None:
    """Return what `plan_trim` does; none for files that can't be trimmed, such as programs."""
    if code.fat_binary is None or code.fat_binary.is_kpacked:
        return None
    try:
        return plan_trim(data, name=name, changes=changes)
    except (NotTrimmableError, SignedFileError) as e:
        logger.info("not trimmed: %s", e)
        return None
