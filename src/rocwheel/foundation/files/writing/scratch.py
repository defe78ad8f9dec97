"""Hidden files and folders in which outputs are made, next to where they will be, and what dead processes left of them.

Their names end with a mark, and each is locked (flock(2)) while its process lives. So whoever works in a folder next
can tell what a killed process has left there, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.foundation.files.names import cut_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["is_scratch", "make_scratch_file", "remove_abandoned", "scratch_folder"]

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
