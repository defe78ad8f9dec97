"""Temporary files and folders: nameless ones, hidden ones beside the output, and the lock of a folder.

Their names end with a mark, and each is locked (flock(2)) while its process lives. So whoever works in a folder next
can tell what a killed process has left there, and removes it.

The lock (flock(2)) is on the folder itself: it leaves no file, and goes with the process however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.core.errors import InputError, WorkError, limit_remedy, read_error, write_error
from rocwheel.core.names import cut_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType


_RESERVE = 64 << 20
"""Bytes that are left to others on a disk."""

_NAMELESS = re.compile(r"/proc/\d+/fd/\d+$")
_REMEDY = "Check its disk, or set TMPDIR to another folder."


def open_temporary(folder: Path | None = None, *, buffering: int = 0) -> IO[bytes]:
    """Open a file without a name in ``folder``, or in the folder for temporary files if that is ``None``.

    It is unbuffered by default: what a full disk has not taken must not be tried again when the file closes.
    Raises `WorkError` when ``TMPDIR`` names a folder that can't be used, and `OSError` when the file can't be made.
    """
    place = folder or temporary_folder()
    with tempfile.TemporaryFile(prefix="rocwheel-", buffering=0, dir=place) as made:
        raw = _Raw(os.dup(made.fileno()), "r+b")
    size = buffering if buffering >= 0 else io.DEFAULT_BUFFER_SIZE
    file = _Buffered(raw, size) if size else raw
    file.folder = str(place)
    return file


class _Nameless(io.IOBase):
    """A file whose close raises where the disk has not taken all, unless another error, which says more, is on its way.

    A network file system tells only then of bytes that it took before; so do quotas. Raises `WorkError`.
    """

    folder = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OSError as e:
            if error is None:
                found = f"a temporary file can't be written ({e.strerror or e})"
                raise WorkError(self.folder, found, remedy=limit_remedy(e) or _REMEDY) from e


class _Raw(_Nameless, io.FileIO):
    """An unbuffered one."""


class _Buffered(_Nameless, io.BufferedRandom):
    """A buffered one."""


def temporary_folder() -> str:
    """Return the folder for temporary files.

    Python would silently use another if that of ``TMPDIR`` is unusable: this raises `WorkError`.
    """
    named = os.environ.get("TMPDIR")
    if not named:
        return tempfile.gettempdir()
    if not (Path(named).is_dir() and os.access(named, os.W_OK | os.X_OK)):
        source, found = "TMPDIR", f"names {named}, where no file can be made"
        raise WorkError(source, found, remedy="Correct or unset it.")
    return named


def write_all(file: IO[bytes], data: bytes | bytearray | memoryview) -> None:
    """Write all of ``data`` to an unbuffered ``file``, where one write may take less; raise `OSError` if it can't."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file.fileno(), rest) :]


def require_room(file: IO[bytes], size: int) -> None:
    """Raise `OSError` when ``size`` more bytes of ``file``, if that is much, would fill its disk for others."""
    disk = os.fstatvfs(file.fileno())
    if size >= _RESERVE and disk.f_bavail * disk.f_frsize < size + _RESERVE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def path_of(file: IO[bytes]) -> str:
    """Return a path by which threads and other processes of the same user open ``file`` while it is open here."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def unreadable(what: str, error: OSError) -> WorkError:
    """Return the error to raise when ``what`` can't be read from a temporary file any more."""
    found = f"{what} can't be read ({error.strerror or error})"
    return WorkError(_folder_name(), found, remedy=limit_remedy(error) or _REMEDY)


def range_error(path: str, error: OSError) -> InputError:
    """Return the error to raise for a file that can't be read, where ``path`` may be one of `path_of`."""
    return unreadable("a temporary file", error) if _NAMELESS.match(path) else read_error(path, error)


def no_room(source: Path | str, what: str, error: OSError) -> WorkError:
    """Return the error to raise when ``what``, which comes from ``source``, can't be written to a temporary file."""
    found = f"{what} can't be written to {_folder_name()} ({error.strerror})"
    return WorkError(source, found, remedy=limit_remedy(error) or "Make room there, or set TMPDIR to another folder.")


def _folder_name() -> str:
    return os.environ.get("TMPDIR") or tempfile.tempdir or "the temporary folder"


_MARK = ".rocwheel"
_NAME = re.compile(rf"^\..+\.[a-z0-9_]{{8}}{re.escape(_MARK)}$")
"""Names of the prefix and suffix below, and eight characters: those of `tempfile` for folders, digits for files."""
_PERMISSIONS, _FOLDER_MODE, _FILE_MODE = 0o777, 0o700, 0o600
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 200
"""Bytes of a name that are kept: a file name has at most 255."""

_visited: set[tuple[str, int, int]] = set()
"""Folders in which this process has looked for what dead ones have left: paths, devices and inodes.

Disks give the inode of a folder that was removed to the next; a path alone may be another folder's by then.
"""


def is_scratch(name: str) -> bool:
    """Return whether a name is one of those that scratch files and folders get."""
    return name.startswith(".") and bool(_NAME.match(name))


def make_scratch_file(path: Path) -> tuple[int, str]:
    """Make an empty file next to ``path``; return its descriptor, which holds the lock, and its path.

    The first time that the process works in the folder, what dead processes left there is removed.
    """
    _visit(path.parent)
    return _locked(lambda: _make_file(path))


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield a folder next to ``path``, which goes with the block; what is whole can be renamed out of it.

    Raises `OSError` when it can't be made. What can't be removed is left to the next process.
    """
    _visit(path.parent)
    descriptor, name = _locked(lambda: _make_folder(path))
    try:
        yield Path(name)
    finally:
        with suppress(OSError), _opened(path.parent, os.O_RDONLY | os.O_DIRECTORY) as parent:
            _remove_tree(Path(name).name, parent)
        os.close(descriptor)


def _make_file(path: Path) -> tuple[int, str]:
    """Make the file as mkstemp(3) does, but leave none where Ctrl-C comes while the disk makes it."""
    while True:
        name = str(path.parent.absolute() / f"{_prefix(path)}{secrets.token_hex(4)}{_MARK}")
        try:
            return os.open(name, _NEW_FILE, _FILE_MODE), name
        except FileExistsError:
            continue
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def _make_folder(path: Path) -> tuple[int, str]:
    while True:
        name = tempfile.mkdtemp(prefix=_prefix(path), suffix=_MARK, dir=path.parent)
        with suppress(FileNotFoundError):  # removed in the moment before it was opened
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), name


def _prefix(path: Path) -> str:
    return f".{cut_name(path.name.lstrip('.'), _LONGEST)}."


def _locked(make: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    while True:
        descriptor, name = make()
        with suppress(OSError):  # some network file systems have no locks; nothing is removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if Path(name).exists():
            return descriptor, name
        os.close(descriptor)  # removed in the moment before it was locked


def _visit(folder: Path) -> None:
    with suppress(OSError):  # whoever works there tells what is wrong
        if _identity(folder, folder.stat()) not in _visited:
            remove_abandoned(folder)


def _identity(folder: Path, status: os.stat_result) -> tuple[str, int, int]:
    return str(folder), status.st_dev, status.st_ino


def remove_abandoned(folder: Path, names: Iterable[str] | None = None) -> tuple[Path, ...]:
    """Remove the scratch files and folders that killed processes left in a folder, and return their paths.

    ``names`` are all that may be such, where the folder has been listed just before; else it is listed. Those that a
    living process works on, even on another machine, are locked and stay, as do those of other users.
    """
    removed = []
    with suppress(OSError), _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as parent:
        _visited.add(_identity(folder, os.fstat(parent)))
        for name in _names_of_scratch(parent) if names is None else filter(is_scratch, names):
            with suppress(OSError):  # gone meanwhile, or locked
                if _remove_unlocked(name, parent):
                    removed.append(folder / name)
    return tuple(removed)


def _names_of_scratch(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if is_scratch(entry.name))


def _remove_unlocked(name: str, parent: int) -> bool:
    """Remove what is not locked, and return whether it was ours.

    All goes by descriptors and no link is followed: in a folder that others can write to, names change their meaning.
    """
    if not _is_ours(os.stat(name, dir_fd=parent, follow_symlinks=False)):
        return False
    with _opened(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, parent) as descriptor:
        status = os.fstat(descriptor)
        if not _is_ours(status):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(status.st_mode):
            _remove_tree(name, parent)
        else:
            os.unlink(name, dir_fd=parent)
    return True


def _is_ours(status: os.stat_result) -> bool:
    """Return whether this user's process can have made this.

    A file has the mode of the final one when its process was killed just before the renaming. Below a folder with
    setgid, folders have it, too.
    """
    mode = status.st_mode
    is_ours = stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and mode & _PERMISSIONS == _FOLDER_MODE)
    return is_ours and status.st_uid == os.geteuid()


def _remove_tree(name: str, parent: int) -> None:
    """Remove a folder and all below it, folders that forbid writing included."""
    for _, folders, _, descriptor in os.fwalk(name, dir_fd=parent):
        for folder in folders:
            with suppress(OSError):  # a link
                _open_up(folder, descriptor)
    # Which follows no links below; the parameter that takes a descriptor is new in Python 3.11.
    shutil.rmtree(f"/proc/self/fd/{parent}/{name}")


def _open_up(folder: str, parent: int) -> None:
    with _opened(folder, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, parent) as descriptor:
        # fchmod(2) wants a descriptor to read by, which a folder may forbid.
        Path(f"/proc/self/fd/{descriptor}").chmod(_FOLDER_MODE)


@contextmanager
def _opened(path: str | Path, flags: int, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_TIMEOUT = 600.0
"""Seconds that a process waits for another."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
"""Seconds."""
_HELD = (errno.EWOULDBLOCK, errno.EACCES)

logger = logging.getLogger(__name__)


@contextmanager
def locked_folder(
    folder: Path,
    timeout: float = _TIMEOUT,
    *,
    silence: float = 0.0,
    on_no_lock: Callable[[OSError], None] | None = None,
) -> Iterator[None]:
    """Make a folder if it is not there, and hold its lock during the block; afterwards an empty one is removed.

    A process that finds it locked says so in a warning after ``silence`` seconds, and waits. Where the file system has
    no locks, as some of networks, or the folder can't be opened, ``on_no_lock`` is told why, by default in a warning
    that nothing keeps others out. Raises `WorkError` when the folder can't be made, or is still locked after
    ``timeout`` seconds.
    """
    try:
        descriptor = _lock(folder, timeout, silence, on_no_lock or partial(_warn, folder))
    except OSError as e:
        raise write_error(folder, e) from e
    try:
        yield
    finally:
        with suppress(OSError):  # it has files
            folder.rmdir()
        os.close(descriptor)


def _lock(folder: Path, timeout: float, silence: float, on_no_lock: Callable[[OSError], None]) -> int:
    """Return a descriptor of the folder that has its lock, if there are locks."""
    start, pause, is_told = time.monotonic(), _FIRST_PAUSE, False
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno not in _HELD:
                on_no_lock(e)
                return descriptor
            os.close(descriptor)
        else:
            if is_at(descriptor, folder):
                return descriptor
            os.close(descriptor)  # removed, and perhaps made again, before it was locked
            continue
        waited = time.monotonic() - start
        if waited >= timeout:
            found, remedy = "is still being written by another run", "Wait for its end, and run it again."
            raise WorkError(folder, found, remedy=remedy)
        if not is_told and waited >= silence:
            logger.warning("%s: is being written by another run; waiting for its end", folder)
            is_told = True
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _warn(folder: Path, error: OSError) -> None:
    logger.warning("%s: can't be locked (%s), so let no two runs write it at the same time", folder, error.strerror)


def is_at(descriptor: int, folder: Path) -> bool:
    """Return whether an open folder still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False
