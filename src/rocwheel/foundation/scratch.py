"""Hidden files and folders in which outputs are made, next to where they will be, and what dead processes left of them.

Their names end with a mark, and each is locked (flock(2)) while its process lives. So whoever works in a folder next
can tell what a killed process has left there, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["make_scratch_file", "remove_abandoned", "scratch_folder"]

_MARK = ".rocwheel"
_NAME = re.compile(rf"^\..+\.[a-z0-9_]{{8}}{re.escape(_MARK)}$")
"""How `tempfile` makes names of the prefix and suffix below."""
_FILE_MODE, _FOLDER_MODE = stat.S_IFREG | 0o600, stat.S_IFDIR | 0o700
_LONGEST = 200
"""Characters of a name that are kept: a file name has at most 255 bytes."""

_visited: set[str] = set()


def make_scratch_file(path: Path) -> tuple[int, str]:
    """Make an empty file next to ``path``; return its descriptor, which holds the lock, and its path.

    The first time that the process works in the folder, what dead processes left there is removed.
    """
    _visit(path.parent)
    return _locked(lambda: tempfile.mkstemp(prefix=_prefix(path), suffix=_MARK, dir=path.parent))


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
        with suppress(OSError):
            _remove_tree(Path(name))
        os.close(descriptor)


def _make_folder(path: Path) -> tuple[int, str]:
    name = tempfile.mkdtemp(prefix=_prefix(path), suffix=_MARK, dir=path.parent)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), name


def _prefix(path: Path) -> str:
    return f".{path.name.lstrip('.')[:_LONGEST]}."


def _locked(make: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    while True:
        descriptor, name = make()
        with suppress(OSError):  # some network file systems have no locks; nothing is removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if Path(name).exists():
            return descriptor, name
        os.close(descriptor)  # removed in the moment before it was locked


def _visit(folder: Path) -> None:
    place = os.path.realpath(folder)
    if place not in _visited:
        _visited.add(place)
        remove_abandoned(folder)


def remove_abandoned(folder: Path) -> tuple[Path, ...]:
    """Remove the scratch files and folders that killed processes left in a folder, and return their paths.

    Those that a living process works on, even on another machine, are locked and stay.
    """
    try:
        found = sorted(path for path in folder.iterdir() if _NAME.match(path.name))
    except OSError:
        return ()
    removed = []
    for path in found:
        with suppress(OSError):  # gone meanwhile, locked, or not ours
            if _remove_unlocked(path):
                removed.append(path)
    return tuple(removed)


def _remove_unlocked(path: Path) -> bool:
    mode = path.lstat().st_mode
    if mode not in {_FILE_MODE, _FOLDER_MODE}:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if mode == _FILE_MODE:
            path.unlink()
        else:
            _remove_tree(path)
    finally:
        os.close(descriptor)
    return True


def _remove_tree(folder: Path) -> None:
    """Remove a folder and all below it, folders that forbid writing included."""
    for root, folders, _ in os.walk(folder):
        for name in folders:
            place = Path(root, name)
            if not place.is_symlink():
                place.chmod(0o700)
    shutil.rmtree(folder)
