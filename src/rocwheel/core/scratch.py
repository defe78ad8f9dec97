"""Creates unnamed temporary files, hidden files and folders next to the output, and locks on folders.

Hidden names end with a special suffix, and each file or folder is locked (flock(2)) while the process that created it
is running. Therefore, the next process in the folder can recognize and remove leftovers from killed processes.

A folder's lock (flock(2)) is on the folder itself. The lock leaves no file behind, and is released when the process
ends.
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
"""The number of bytes that must stay free on a disk."""

_NAMELESS = re.compile(r"/proc/\d+/fd/\d+$")
_REMEDY = "Check the disk, or set TMPDIR to another folder."


def open_temporary(folder: Path | None = None, *, buffering: int = 0) -> IO[bytes]:
    """Open an unnamed file in ``folder``, or in the folder for temporary files if ``folder`` is `None`.

    The file is unbuffered by default, so that closing it doesn't write bytes again that a full disk rejected. Raises
    `WorkError` if the folder in ``TMPDIR`` can't be used, and `OSError` if the file can't be created.
    """
    place = folder or temporary_folder()
    with tempfile.TemporaryFile(prefix="rocwheel-", buffering=0, dir=place) as made:
        raw = _Raw(os.dup(made.fileno()), "r+b")
    size = buffering if buffering >= 0 else io.DEFAULT_BUFFER_SIZE
    file = _Buffered(raw, size) if size else raw
    file.folder = str(place)
    return file


class _Nameless(io.IOBase):
    """A file whose close method raises an error if the disk rejected bytes, unless another error is active.

    Network file systems and quotas may report a rejected write only on close. Raises `WorkError`.
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
    """An unbuffered file."""


class _Buffered(_Nameless, io.BufferedRandom):
    """A buffered file."""


def temporary_folder() -> str:
    """Return the folder for temporary files.

    Raises `WorkError` if the folder in ``TMPDIR`` is unusable, because Python would silently use a different folder.
    """
    named = os.environ.get("TMPDIR")
    if not named:
        return tempfile.gettempdir()
    if not (Path(named).is_dir() and os.access(named, os.W_OK | os.X_OK)):
        source, found = "TMPDIR", f"is {named}, a folder where files can't be created{_reason(named)}"
        raise WorkError(source, found, remedy="Correct or unset the variable.")
    return named


def _reason(folder: str) -> str:
    """Return in parentheses why no file can be created in a folder, or an empty string if a file can be created."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as e:
        return f" ({e.strerror})"
    return ""


def write_all(file: IO[bytes], data: bytes | bytearray | memoryview) -> None:
    """Write all of ``data`` to an unbuffered ``file``, with several writes if needed. Raises `OSError` on failure."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file.fileno(), rest) :]


def require_room(file: IO[bytes], size: int) -> None:
    """Raise `OSError` if writing ``size`` more bytes to ``file`` would fill its disk. Small sizes aren't checked."""
    disk = os.fstatvfs(file.fileno())
    if size >= _RESERVE and disk.f_bavail * disk.f_frsize < size + _RESERVE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def require_reserve(file: IO[bytes]) -> None:
    """Raise `OSError` if the disk of ``file`` is almost full. A stream of unknown length may be endless."""
    disk = os.fstatvfs(file.fileno())
    if disk.f_bavail * disk.f_frsize < _RESERVE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def path_of(file: IO[bytes]) -> str:
    """Return a path that lets threads and other processes of the same user open ``file`` while it is open here."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def unreadable(what: str, error: OSError) -> WorkError:
    """Return the error for data (``what``) that can no longer be read from a temporary file."""
    found = f"{what} can't be read ({error.strerror or error})"
    return WorkError(_folder_name(), found, remedy=limit_remedy(error) or _REMEDY)


def range_error(path: str, error: OSError) -> InputError:
    """Return the error for a file that can't be read. ``path`` can be a result of `path_of`."""
    return unreadable("a temporary file", error) if _NAMELESS.match(path) else read_error(path, error)


def no_room(source: Path | str, what: str, error: OSError) -> WorkError:
    """Return the error for data (``what``) from ``source`` that can't be written to a temporary file."""
    found = f"{what} can't be written to {_folder_name()} ({error.strerror})"
    return WorkError(
        source, found, remedy=limit_remedy(error) or "Free some space in this folder, or set TMPDIR to another folder."
    )


def _folder_name() -> str:
    return os.environ.get("TMPDIR") or tempfile.tempdir or "the temporary folder"


_MARK = ".rocwheel"
_NAME = re.compile(rf"^\..+\.[a-z0-9_]{{8}}{re.escape(_MARK)}$")
"""Matches the prefix, eight characters, and the suffix. `tempfile` chooses the characters for folders.

Files have digits.
"""
_PERMISSIONS, _FOLDER_MODE, _FILE_MODE = 0o777, 0o700, 0o600
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 200
"""The maximum length of the original name in bytes. A file name has at most 255 bytes."""

_visited: set[tuple[str, int, int]] = set()
"""The folders that this process checked for leftovers from dead processes, as paths, devices, and inodes.

File systems reuse the inode of a removed folder, and another folder can later have the same path.
"""


def is_scratch(name: str) -> bool:
    """Return whether a name belongs to a scratch file or folder."""
    return name.startswith(".") and bool(_NAME.match(name))


def make_scratch_file(path: Path) -> tuple[int, str]:
    """Create an empty file next to ``path``. Return its descriptor, which keeps it locked, and its path.

    On the first use of a folder, also remove leftovers from dead processes.
    """
    _visit(path.parent)
    return _locked(lambda: _make_file(path))


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield a folder next to ``path`` that is removed at the end of the block.

    The block can move finished files out of it.

    Raises `OSError` if the folder can't be created. Files that can't be removed at that point are removed by the next
    process.
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
    """Create the file like mkstemp(3), but without leaving a file if Ctrl-C interrupts the creation."""
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
        with suppress(FileNotFoundError):  # removed just before it was opened
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), name


def _prefix(path: Path) -> str:
    return f".{cut_name(path.name.lstrip('.'), _LONGEST)}."


def _locked(make: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    while True:
        descriptor, name = make()
        with suppress(OSError):  # some network file systems have no locks; nothing is removed on them
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if Path(name).exists():
            return descriptor, name
        os.close(descriptor)  # removed just before it was locked


def _visit(folder: Path) -> None:
    with suppress(OSError):  # the code that uses the folder reports the error
        if _identity(folder, folder.stat()) not in _visited:
            remove_abandoned(folder)


def _identity(folder: Path, status: os.stat_result) -> tuple[str, int, int]:
    return str(folder), status.st_dev, status.st_ino


def remove_abandoned(folder: Path, names: Iterable[str] | None = None) -> tuple[Path, ...]:
    """Remove the scratch files and folders that killed processes left behind in a folder, and return their paths.

    If the folder was just listed, ``names`` contains all candidates. Otherwise, the folder is listed. Files that belong
    to a live process, even on another machine, are locked and remain. The files of other users also remain.
    """
    removed = []
    with suppress(OSError), _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as parent:
        _visited.add(_identity(folder, os.fstat(parent)))
        for name in _names_of_scratch(parent) if names is None else filter(is_scratch, names):
            with suppress(OSError):  # removed in the meantime, or locked
                if _remove_unlocked(name, parent):
                    removed.append(folder / name)
    return tuple(removed)


def _names_of_scratch(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if is_scratch(entry.name))


def _remove_unlocked(name: str, parent: int) -> bool:
    """Remove a file or folder that isn't locked. Return whether rocwheel had created it.

    Uses descriptors and follows no links, because names can change in a folder that others can write to.
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
    """Return whether a process of this user could have created the file.

    A file has the mode of the final file if its process was killed just before renaming. In a folder with the setgid
    bit, folders also have this bit.
    """
    mode = status.st_mode
    is_ours = stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and mode & _PERMISSIONS == _FOLDER_MODE)
    return is_ours and status.st_uid == os.geteuid()


def _remove_tree(name: str, parent: int) -> None:
    """Remove a folder with all its contents, including folders without write permission."""
    for _, folders, _, descriptor in os.fwalk(name, dir_fd=parent):
        for folder in folders:
            with suppress(OSError):  # a link
                _open_up(folder, descriptor)
    # rmtree() follows no links in the folder. Its parameter for a descriptor is new in Python 3.11.
    shutil.rmtree(f"/proc/self/fd/{parent}/{name}")


def _open_up(folder: str, parent: int) -> None:
    with _opened(folder, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, parent) as descriptor:
        # fchmod(2) needs a readable descriptor, which the mode of a folder may forbid.
        Path(f"/proc/self/fd/{descriptor}").chmod(_FOLDER_MODE)


@contextmanager
def _opened(path: str | Path, flags: int, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_TIMEOUT = 600.0
"""The number of seconds that a process waits for another process."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
"""The first and the longest pause between attempts, in seconds."""
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
    """Create a folder if needed, and lock it during the block. Afterwards, remove the folder if it is empty.

    If the folder is locked, wait, and warn after ``silence`` seconds. ``on_no_lock`` receives the reason if the folder
    can't be opened or if the file system doesn't support locks, as with some network file systems. By default, it warns
    that other processes aren't locked out. Raises `WorkError` if the folder can't be created, or is still locked after
    ``timeout`` seconds.
    """
    try:
        descriptor = _lock(folder, timeout, silence, on_no_lock or partial(_warn, folder))
    except OSError as e:
        raise write_error(folder, e) from e
    try:
        yield
    finally:
        with suppress(OSError):  # the folder contains files
            folder.rmdir()
        os.close(descriptor)


def _lock(folder: Path, timeout: float, silence: float, on_no_lock: Callable[[OSError], None]) -> int:
    """Return a descriptor that keeps the folder locked, if locks are available."""
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
            os.close(descriptor)  # removed, and perhaps created again, before it was locked
            continue
        waited = time.monotonic() - start
        if waited >= timeout:
            found, remedy = (
                "is still being written to by another run",
                "Wait until that run ends, then run the command again.",
            )
            raise WorkError(folder, found, remedy=remedy)
        if not is_told and waited >= silence:
            logger.warning("%s: is being written to by another run; waiting until it ends", folder)
            is_told = True
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _warn(folder: Path, error: OSError) -> None:
    logger.warning("%s: can't be locked (%s); don't let two runs write to it at the same time", folder, error.strerror)


def is_at(descriptor: int, folder: Path) -> bool:
    """Return whether an open folder is still at its path."""
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False
