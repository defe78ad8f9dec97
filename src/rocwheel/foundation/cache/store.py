"""A folder of entries by key: safe for several processes at once, and for processes that are killed.

An entry is written under another name first, so that its own stands for all of its bytes. It is not synced to disk:
what a loss of power leaves of it is found out by its hash. An entry that is damaged is removed, and made anew by those
who asked for it.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from rocwheel.foundation.cache.entry import DamagedEntryError, Entry, parse_entry, render_head
from rocwheel.foundation.cache.upkeep import prune, remove_entry
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.writing.scratch import make_scratch_file

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RESERVE", "Store"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

RESERVE = 256 << 20
"""Bytes that are left free on the disk: what is built needs them more."""

_FRESH = 60
"""Seconds after which the use of an entry is noted again, in its time of last change."""


_OF_ONE_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST})
"""Errors of writing that need not meet the entries of other folders."""


class Store:
    """Entries below ``folder``. Without a folder that can be written it gives what is there, and keeps nothing more.

    It is pickled as its folder alone: each process finds out for itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        """Entries whose bytes had changed, or that were no files; they were removed where that could be done."""
        self._is_closed = False
        self._told: set[bool] = set()
        self._telling = Lock()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        """Let pickle take the folder."""
        return Store, (self.folder,)

    def path_of(self, key: bytes) -> Path:
        """Return where the entry of a key is, if there is one."""
        name = key.hex()
        return self.folder / name[:2] / name[2:]

    def has(self, key: bytes) -> bool:
        """Return whether there is an entry of a key; its bytes are not looked at."""
        return os.path.exists(self.path_of(key))  # noqa: PTH110 (a path that can't be looked at is no entry)

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key with bytes that have the right hash, none if there is no such entry."""
        path = self.path_of(key)
        try:
            entry = parse_entry(key, memoryview(_read(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedEntryError:
            self._drop(path)
            return None
        except OSError as e:
            self._report(self._culprit(path, path.parent), "read", e)
            return None
        _note_use(path)
        return entry

    def put(self, key: bytes, facts: bytes, data: bytes | bytearray | memoryview = b"") -> None:
        """Keep an entry, if that can be done; it takes the place of one that may be damaged."""
        if not self._is_closed:
            self.put_hashed(key, facts, data, hashlib.sha256(data).digest())

    def put_hashed(self, key: bytes, facts: bytes, data: bytes | bytearray | memoryview, sha256: bytes) -> None:
        """Keep an entry whose data has this hash."""
        if self._is_closed:
            return
        path = self.path_of(key)
        try:
            self._require_room(len(data))
            self._write(path, render_head(key, facts, len(data), sha256), data)
        except IsADirectoryError:
            self._pass_over(path)
        except OSError as e:
            self._report_write(path, e)

    def prune(self, limit: int) -> None:
        """Remove the entries that were not used for longest until those left have ``limit`` bytes at most.

        What stands in the way is warned of, unless there was trouble before.
        """
        try:
            done = prune(self.folder, limit)
        except InputError as e:
            self._tell(self.folder, e.found)
            return
        for unread in done.unreadable:
            self._tell(Path(unread.path), f"can't be read ({unread.reason})")
        for stuck in done.not_removed:
            self._tell(Path(stuck.path), f"can't be removed ({stuck.reason})")

    def _write(self, path: Path, head: bytes, data: bytes | bytearray | memoryview) -> None:
        descriptor, name = _with_parent(path, lambda: make_scratch_file(path))
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                for part in (head, data):
                    _write_all(file.fileno(), memoryview(part))
                # The lock that scratch files have ends with the file's closing: until then nobody takes it for a rest.
                Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise

    def _require_room(self, size: int) -> None:
        disk = _with_parent(self.folder / "entry", lambda: os.statvfs(self.folder))
        if disk.f_bavail * disk.f_frsize < size + RESERVE:
            raise OSError(errno.ENOSPC, f"less than {RESERVE >> 20} MiB of the disk would stay free")

    def _drop(self, path: Path) -> None:
        try:
            remove_entry(path)
        except OSError as e:
            if e.errno == errno.ENOTEMPTY:
                self._pass_over(path)
                return
            self._report_write(path, e)
        self.damaged.append(path)
        logger.warning("%s: was damaged, and is made anew", path)

    def _pass_over(self, path: Path) -> None:
        if path not in self.damaged:
            self.damaged.append(path)
            logger.warning("%s: is a folder in the place of a file, and is passed over", path)

    def _culprit(self, *paths: Path) -> Path:
        """Return the first path that the system knows; what is in a closed folder, it doesn't tell."""
        return next((path for path in paths if os.path.lexists(path)), self.folder)

    def _report_write(self, path: Path, error: OSError) -> None:
        is_of_one = error.errno in _OF_ONE_FOLDER
        self._report(self._culprit(path.parent) if is_of_one else self.folder, "written", error)

    def _report(self, culprit: Path, done: str, error: OSError) -> None:
        """Warn of trouble; where the whole folder has it, nothing more is kept."""
        self._tell(culprit, f"can't be {done} ({error.strerror or error})")
        self._is_closed = self._is_closed or culprit == self.folder

    def _tell(self, culprit: Path, found: str) -> None:
        """Warn of the first trouble, and of the first with the whole folder; it is enough to know of these."""
        is_whole = culprit == self.folder
        with self._telling:
            if self._told & {is_whole, True}:
                return
            self._told.add(is_whole)
        logger.warning("%s: %s; going on without %s", culprit, found, "the cache" if is_whole else "it")


def _with_parent(path: Path, act: Callable[[], _T]) -> _T:
    """Return what ``act`` returns, having made the folder of ``path`` if it is missing."""
    try:
        return act()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return act()


def _read(path: Path) -> bytearray:
    """Return the bytes of a file; raise `DamagedEntryError` for what is none, such as a folder, link or pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        if e.errno in {errno.ELOOP, errno.ENXIO}:  # a link, and a socket
            raise DamagedEntryError from e
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DamagedEntryError
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        data = bytearray(status.st_size)
        rest = memoryview(data)
        while rest and (count := file.readinto(rest)):
            rest = rest[count:]
        return data[: len(data) - len(rest)] if rest else data


def _write_all(descriptor: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _note_use(path: Path) -> None:
    with suppress(OSError):
        if path.stat().st_mtime + _FRESH < time.time():
            os.utime(path)
