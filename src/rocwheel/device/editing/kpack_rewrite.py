"""Compressing and pruning a kpack archive: code objects that stay are the same, and what its table says of them."""

from __future__ import annotations

from collections import defaultdict
from typing import IO, TYPE_CHECKING

from rocwheel.binary.code_objects import DeviceCodeError, Place, TargetId, parse_target_id
from rocwheel.binary.kpack.archive import KpackArchive, Scheme, read_archive
from rocwheel.binary.kpack.write import (
    LEVELS,
    FileSink,
    Storing,
    recompress_archive,
    select_entries,
    unnamed_remark,
    would_change,
)
from rocwheel.core.messages import count
from rocwheel.core.reading import iter_pieces
from rocwheel.core.workers import open_workers
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.rewrite_order import RewriteReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.kpack.archive import KpackEntry
    from rocwheel.core.reading import Data
    from rocwheel.device.editing.rewrite_order import RewriteOrder

__all__ = ["KpackRewrite"]


class KpackRewrite:
    """The rewriting of the archive ``name``, whose bytes are ``data``.

    An archive has no free space, so trimming does nothing. The constructor raises `InputError` for a damaged archive,
    for any other order than to compress or prune it, and when nothing would be left.
    """

    def __init__(self, data: Data, name: str, order: RewriteOrder) -> None:
        edit = order.edit
        if not (order.storage.compress if edit is None else isinstance(edit, Prune)):
            expected = "bundles: this edit is one of these"
            remedy = "Archives by themselves are changed by device compress, prune and retarget."
            raise DeviceCodeError(Place(name), "a kpack archive", expected=expected, remedy=remedy)
        self._data, self._order = data, order
        self._whole = read_archive(data, name=name)
        self._archive = _pruned(self._whole, edit) if isinstance(edit, Prune) else self._whole

    def write(self, file: IO[bytes]) -> RewriteReport:
        """Write the new archive, and return what was done; code objects that stay stored as they are keep their bytes.

        Raises `InputError` for damaged code objects, and `OSError` when writing fails.
        """
        archive, order, storing = self._archive, self._order, self._storing()
        changed = len(archive.blobs) if would_change(archive, storing) else 0
        gone = len(self._whole.blobs) - len(archive.blobs)
        if not changed and len(archive.entries) == len(self._whole.entries):
            for piece in iter_pieces(self._data[: len(self._data) - archive.trailing]):
                file.write(piece)
            return self._report(sum(blob.size for blob in archive.blobs), 0)
        order.progress.begin(f"rewriting {archive.name}", sum(entry.size for entry in self._each_once()))
        try:
            with open_workers(order.jobs) as executor:
                sink = FileSink(file)
                stored = recompress_archive(self._data, archive, sink, storing, executor, progress=order.progress)
        finally:
            order.progress.end()
        return self._report(stored, max(1, changed + gone), unnamed_remark(self._whole))

    def _each_once(self) -> Iterable[KpackEntry]:
        return {entry.ordinal: entry for entry in self._archive.entries}.values()

    def _storing(self) -> Storing:
        level = self._order.storage.archive_level
        if not self._order.storage.compress:
            return Storing(self._archive.scheme)
        return Storing(Scheme.ZSTD, None if level is None else min(level, LEVELS[-1]))

    def _report(self, size_after: int, changed: int, unnamed: str = "") -> RewriteReport:
        whole = self._whole
        rest = f"left out {count(whole.trailing, 'byte')} after the table of contents, which some readers refuse"
        remarks = (rest if whole.trailing else "", unnamed, self._lower_level())
        return RewriteReport(
            path=whole.name,
            bundles=len(whole.blobs),
            changed=changed,
            size_before=sum(blob.size for blob in whole.blobs),
            size_after=size_after,
            is_archive=True,
            warnings=tuple(f"{whole.name}: {remark}" for remark in remarks if remark),
        )

    def _lower_level(self) -> str:
        storage = self._order.storage
        if not storage.compress or storage.archive_level is None or storage.archive_level <= LEVELS[-1]:
            return ""
        return f"compressed with level {LEVELS[-1]}, the last for kpack archives, not {storage.archive_level}"


def _pruned(archive: KpackArchive, edit: Prune) -> KpackArchive:
    """Return the part of an archive that GPUs to keep need; raise `DeviceCodeError` when that is nothing."""
    targets = {text: parse_target_id(text, source=archive.name) for text in {e.target for e in archive.entries}}
    units: dict[str, list[TargetId]] = defaultdict(list)
    for entry in archive.entries:
        units[entry.key].append(targets[entry.target])
    needed = edit.needed(units.values())
    if not needed:
        raise edit.nothing_left(sorted(targets.values(), key=str), Place(archive.name))
    return select_entries(archive, (entry for entry in archive.entries if targets[entry.target] in needed))
