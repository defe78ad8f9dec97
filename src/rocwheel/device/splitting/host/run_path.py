"""Setting the run path of a host file in the pass that takes its device code out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.foundation.files.file_view import Data, FileView, join_data
from rocwheel.foundation.patch import FilePatch

if TYPE_CHECKING:
    from rocwheel.linking.run_path_choice import SetRunpath

__all__ = ["with_run_path"]


class _Patched(msgspec.Struct, frozen=True):
    """A range of a file that is not written yet."""

    data: Data
    patch: FilePatch
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> _Patched:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return msgspec.structs.replace(self, start=self.start + start, stop=self.start + stop)

    def read(self) -> bytes:
        """Return the bytes of the range."""
        return join_data(self.patch.apply(self.data, self.start, self.stop))


def with_run_path(data: Data, patch: FilePatch, run_path: SetRunpath, *, name: str) -> FilePatch:
    """Return the patch that does to ``data`` what ``patch`` does, and sets its run path.

    Raises `ElfError` as `plan_runpath` does; nothing is written to learn what the file will be.
    """
    view = FileView(_Patched(data, patch, 0, patch.size))
    return patch.then(plan_runpath(view, run_path.value, run_path.tag, name=name))
