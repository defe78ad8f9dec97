"""Compressing a kpack archive: its code objects stay, and so does everything that its table says of them."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.recompress import Storing, recompress_archive, would_change
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.binary.kpack.write_archive import LEVELS, FileSink
from rocwheel.device.editing.rewrite_order import RewriteReport
from rocwheel.foundation.files.file_view import iter_pieces
from rocwheel.foundation.workers import open_workers

if TYPE_CHECKING:
    from rocwheel.device.editing.rewrite_order import RewriteOrder
    from rocwheel.foundation.files.file_view import Data

__all__ = ["KpackRewrite"]


class KpackRewrite:
    """The rewriting of the archive ``name``, whose bytes are ``data``.

    An archive has no free space, so trimming does nothing. The constructor raises `InputError` for a damaged archive
    and for any other order than to compress it.
    """

    def __init__(self, data: Data, name: str, order: RewriteOrder) -> None:
        if order.edit is not None or not order.storage.compress:
            expected = "bundles: the code in an archive is for the targets of its package"
            remedy = "Archives for other targets leave a folder or a wheel whole: prune that."
            raise DeviceCodeError(Place(name), "a kpack archive", expected=expected, remedy=remedy)
        self._data, self._order = data, order
        self._archive = read_archive(data, name=name)

    def write(self, file: IO[bytes]) -> RewriteReport:
        """Write the archive with compressed code objects, and return what was done; one that has them is copied.

        Raises `InputError` for damaged code objects, and `OSError` when writing fails.
        """
        archive, level = self._archive, self._order.storage.archive_level
        storing = Storing(Scheme.ZSTD, None if level is None else min(level, LEVELS[-1]))
        if not would_change(archive, storing):
            for piece in iter_pieces(self._data):
                file.write(piece)
            return self._report(sum(blob.size for blob in archive.blobs), changed=False)
        with open_workers(self._order.jobs) as executor:
            stored = recompress_archive(self._data, archive, FileSink(file), storing, executor)
        return self._report(stored, changed=True)

    def _report(self, size_after: int, *, changed: bool) -> RewriteReport:
        number = len(self._archive.blobs)
        return RewriteReport(
            path=self._archive.name,
            bundles=number,
            changed=number if changed else 0,
            size_before=sum(blob.size for blob in self._archive.blobs),
            size_after=size_after,
            is_archive=True,
        )
