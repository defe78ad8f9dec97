"""Files that appear only when they are whole."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.foundation.errors import WorkError, write_error
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.regular_files import read_at
from rocwheel.foundation.files.writing.scratch import make_scratch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["AtomicFile", "atomic_file"]

_WRITEBACK_STEP = 16 << 20
_MOST_LINKS = 40
"""That Linux follows, path_resolution(7)."""


class AtomicFile:
    """A temporary file next to ``path``. `commit` syncs it to disk and gives it that name; otherwise no trace is left.

    Creating, writing and committing it raise `WorkError` when the folder can't be written or the disk is full. Writes
    are buffered: a full disk may show only at a later step. With ``makes_folder``, folders on the way are made.
    """

    def __init__(self, path: Path, *, mode: int = 0o644, makes_folder: bool = True) -> None:
        self.path = path
        self._mode = mode
        with self._reporting():
            if path.exists():
                _require_replaceable(path)
            elif makes_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = make_scratch_file(path)
        self._temporary, self._is_gone = Path(temporary), False
        self.file: IO[bytes] = os.fdopen(descriptor, "w+b")
        self.stamp: FileStamp | None = None
        """That of the file when it had got its name."""
        self._writeback_begun = 0
        self._is_synced = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes at the current position."""
        with self._reporting():
            self.file.write(data)
            if self.file.tell() - self._writeback_begun >= _WRITEBACK_STEP:
                self._begin_writeback()

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes that were written before, without moving the current position."""
        with self._reporting():
            position = self.file.tell()
            self.file.seek(offset)
            self.file.write(data)
            self.file.seek(position)

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes that were written before, without moving the current position."""
        with self._reporting():
            self.file.flush()
            return read_at(self.file.fileno(), stop - start, start)

    def tell(self) -> int:
        """Return the current position, in bytes from the beginning of the file."""
        return self.file.tell()

    def begin_writeback(self) -> None:
        """Have the kernel begin to write to disk what is left, while other files are written; nothing comes later."""
        with self._reporting():
            self._begin_writeback()

    def _begin_writeback(self) -> None:
        """Have the kernel begin to write to disk what has come since, so that `commit` finds little left to sync.

        Linux begins writeback of a range that the process no longer needs; it doesn't wait for the disk.
        """
        self.file.flush()
        size = self.file.tell() - self._writeback_begun
        os.posix_fadvise(self.file.fileno(), self._writeback_begun, size, os.POSIX_FADV_DONTNEED)
        self._writeback_begun += size

    def sync(self) -> None:
        """Wait until all bytes are on the disk, so that `commit` need not; none may be written any more."""
        with self._reporting():
            self.file.flush()
            os.fsync(self.file.fileno())
            self._is_synced = True

    def commit(self) -> None:
        """Sync the bytes to disk and give the file its name; it is discarded when that fails."""
        self._finish(self._replace)

    def commit_new(self) -> bool:
        """Do as `commit` does if nothing has that name, and return whether nothing had; else the file is discarded.

        One step of the file system finds that out and gives the name. Where it has no links for that, it takes two.
        """
        return self._finish(self._link)

    def _finish(self, give_name: Callable[[], bool]) -> bool:
        try:
            with self._reporting(), self.file:
                if not self._is_synced:
                    self.sync()
                os.fchmod(self.file.fileno(), self._mode)
                is_named = give_name()
                self.stamp = FileStamp.of(os.fstat(self.file.fileno()))
                return is_named
        finally:
            self.discard()

    def _replace(self) -> bool:
        self._temporary.replace(self.path)
        self._is_gone = True
        return True

    def _link(self) -> bool:
        try:
            os.link(self._temporary, self.path)
        except FileExistsError:
            return False
        except OSError:
            return not os.path.lexists(self.path) and self._replace()
        return True

    def discard(self) -> None:
        """Remove the temporary file; harmless after `commit`."""
        if self._is_gone:
            return
        with suppress(OSError):
            self.file.close()
        # What can't be removed, as where the file system has turned read-only, must not hide why the work failed.
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)
            self._is_gone = True

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise write_error(self.path, e) from e


def _require_replaceable(path: Path) -> None:
    """Refuse to take the name of what is neither a file nor a symlink to something, and that of an open file."""
    if not (path.is_file() or path.is_dir()) or _leads_to_open_file(path):
        # Taking the name of a device or a pipe would replace it: as root, even /dev/null.
        raise WorkError(path, "is not a regular file, so it can't be replaced", remedy="Name another output.")
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _leads_to_open_file(path: Path) -> bool:
    """Return whether a path is that of a file which a process has open, such as ``/dev/stdout``, by links or itself.

    Whatever that file is, its name there is a link of the system, which others need.
    """
    for _ in range(_MOST_LINKS):
        if path.parent.resolve().is_relative_to("/proc"):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return True


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[AtomicFile]:
    """Open an `AtomicFile` that is committed when the block ends well, and discarded otherwise."""
    target = AtomicFile(path, mode=mode)
    try:
        yield target
        target.commit()
    finally:
        target.discard()
