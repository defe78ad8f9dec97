"""A disk that shows a folder and fails where its plan says so, by mfusepy; it is what the server of a mount runs."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.faults.fuse.plan import Manner, is_nameless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trials.faults.fuse.plan import SharedPlan

__all__ = ["FailingDisk", "serve"]

_WRITEBACK = 1 << 16
"""``FUSE_CAP_WRITEBACK_CACHE``: the system takes what is written, and gives it to the disk later."""
_KEPT_FLAGS = ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND)
_STATUS = ("mode", "ino", "nlink", "uid", "gid", "size", "rdev", "blocks", "blksize")
_TIMES = ("atime", "mtime", "ctime")


class FailingDisk:
    """The operations, named and called as mfusepy wants them; each raises `OSError` where it fails."""

    use_ns = True

    def __init__(self, folder: str, plan: SharedPlan, *, is_late: bool) -> None:
        self._folder, self._plan, self._is_late = folder, plan, is_late
        self._uncached, self._writable = set[int](), set[int]()
        """The files that are open without the system's cache, and those that may be written, by handle."""

    def init_with_config(self, connection: Any, config: Any) -> None:
        """Have each question reach the disk, files have the numbers of the folder, and writes come late if wanted."""
        config.entry_timeout = config.attr_timeout = config.negative_timeout = 0
        config.use_ino = 1
        if self._is_late:
            connection.want |= _WRITEBACK

    def _place(self, path: str) -> Path:
        return Path(self._folder + path)

    def getattr(self, path: str, handle: Any = None) -> dict[str, int]:
        """Return what ``lstat`` does; of what has no name any more, what ``fstat`` does.

        libFUSE itself looks for a free name before it hides a file.
        """
        if handle or not is_nameless(path):
            self._plan.meet("getattr", path)
        found = os.fstat(handle.fh) if handle else os.lstat(self._place(path))
        status = {f"st_{name}": getattr(found, f"st_{name}") for name in _STATUS}
        return status | {f"st_{name}": getattr(found, f"st_{name}_ns") for name in _TIMES}

    def readdir(self, path: str, _: int) -> Iterator[tuple[str, dict[str, int], int]]:
        """Yield names with kind and number: an entry without a number counts as removed."""
        manner = self._plan.meet("readdir", path)
        with os.scandir(self._place(path)) as entries:
            rows = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
        for name, status in reversed(rows) if manner == Manner.TURNED else rows:
            yield name, {"st_mode": status.st_mode, "st_ino": status.st_ino}, 0

    def readlink(self, path: str) -> str:
        """Return where a symlink leads."""
        self._plan.meet("readlink", path)
        return str(self._place(path).readlink())

    def statfs(self, path: str) -> dict[str, int]:
        """Return the room of the disk."""
        self._plan.meet("statfs", path)
        facts = os.statvfs(self._place(path))
        return {name: getattr(facts, name) for name in dir(facts) if name.startswith("f_")}

    def mkdir(self, path: str, mode: int) -> None:
        """Make a folder."""
        self._change("mkdir", path, lambda: self._place(path).mkdir(mode))

    def unlink(self, path: str) -> None:
        """Remove a file. To remove one that it hid is libFUSE's own doing."""
        if is_nameless(path):
            self._place(path).unlink()
        else:
            self._change("unlink", path, self._place(path).unlink)

    def rmdir(self, path: str) -> None:
        """Remove a folder."""
        self._change("rmdir", path, self._place(path).rmdir)

    def symlink(self, path: str, goal: str) -> None:
        """Make a symlink."""
        self._change("symlink", path, lambda: self._place(path).symlink_to(goal))

    def rename(self, old: str, new: str) -> None:
        """Give another name. To remove a file that is open, libFUSE has it hidden until it is closed."""
        operation, path = ("unlink", old) if is_nameless(new) else ("rename", new)
        self._change(operation, path, lambda: self._place(old).rename(self._place(new)))

    def link(self, path: str, goal: str) -> None:
        """Give one more name."""
        self._change("link", path, lambda: self._place(path).hardlink_to(self._place(goal)))

    def chmod(self, path: str, mode: int) -> None:
        """Set the mode."""
        self._change("chmod", path, lambda: self._place(path).chmod(mode))

    def chown(self, path: str, user: int, group: int) -> None:
        """Set the owner."""
        self._change("chown", path, lambda: os.lchown(self._place(path), user, group))

    def utimens(self, path: str, times: tuple[int, int]) -> None:
        """Set the times."""
        self._change("utimens", path, lambda: os.utime(self._place(path), ns=times, follow_symlinks=False))

    def truncate(self, path: str, size: int) -> None:
        """Set the size."""
        self._change("truncate", path, lambda: os.truncate(self._place(path), size))

    def _change(self, operation: str, path: str, change: Any) -> None:
        manner = self._plan.meet(operation, path)
        change()
        if manner == Manner.DONE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def open(self, path: str, handle: Any) -> int:
        """Open a file; where reads are to give less, without the cache, which would ask for the rest."""
        self._plan.meet("open", path)
        return self._opened(path, handle, handle.flags & _KEPT_FLAGS)

    def create(self, path: str, mode: int, handle: Any) -> int:
        """Make a file and open it."""
        manner = self._plan.meet("create", path)
        self._opened(path, handle, (handle.flags & _KEPT_FLAGS) | os.O_CREAT | os.O_EXCL, mode)
        if manner == Manner.DONE:
            os.close(handle.fh)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return 0

    def _opened(self, path: str, handle: Any, flags: int, mode: int = 0) -> int:
        if self._is_late and flags & os.O_ACCMODE == os.O_WRONLY:  # the cache reads what it writes a part of
            flags = flags & ~os.O_ACCMODE | os.O_RDWR
        handle.fh = os.open(self._place(path), flags, mode)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self._writable.add(handle.fh)
        if self._plan.is_half and not is_nameless(path) and not mode:
            handle.direct_io = True
            self._uncached.add(handle.fh)
        return 0

    def read(self, path: str, size: int, offset: int, handle: Any) -> bytes:
        """Return bytes; fewer where the plan wants it."""
        manner = self._plan.meet("read", path)
        if manner == Manner.HALF and handle.fh in self._uncached:
            size = max(size // 2, 1)
        return os.pread(handle.fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, handle: Any) -> int:
        """Write bytes."""
        self._plan.meet("write", path)
        return os.pwrite(handle.fh, data, offset)

    def flush(self, path: str, handle: Any) -> None:
        """Do nothing: a file is closed, and what was written can still be told as lost."""
        if handle.fh in self._writable:
            self._plan.meet("flush", path)

    def fsync(self, path: str, *_: Any) -> None:
        """Do nothing, as the folder is in memory."""
        self._plan.meet("fsync", path)

    def release(self, _: str, handle: Any) -> None:
        """Close a file."""
        self._uncached.discard(handle.fh)
        self._writable.discard(handle.fh)
        os.close(handle.fh)


def serve(folder: str, mountpoint: str, plan: SharedPlan, *, is_late: bool) -> None:
    """Mount the disk, and serve it until it is taken away. Raises `RuntimeError` where it can't be mounted."""
    import mfusepy  # noqa: PLC0415 (it is there only where the fuse library is)

    disk = FailingDisk(folder, plan, is_late=is_late)
    mfusepy.FUSE(disk, mountpoint, raw_fi=True, foreground=True, nothreads=True, fsname="rocwheel")
