"""Looks at what is there, or fails.

`Path.rglob` leaves out in silence what this user may not list. For `Path.exists` and its kin nothing is there, from
Python 3.14 on, where the disk fails or this user may not look.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["NOWHERE", "is_file", "is_folder", "is_there", "list_below"]

NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Why nothing is at a path. For other reasons it can't be told what is there."""


def list_below(folder: Path) -> list[Path]:
    """Return all files, links and folders below a folder, sorted. Raises `OSError` where one can't be listed."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = folder / entry.name
            yield path
            if entry.is_dir(follow_symlinks=False):  # `os.walk` follows a link that the disk does not tell as such
                yield from _walk(path)


def is_there(path: Path) -> bool:
    """Return whether a path leads to something. Raises `OSError` where that can't be told."""
    return _mode(path) != 0


def is_file(path: Path) -> bool:
    """Return whether a path leads to a file. Raises `OSError` where that can't be told."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether a path leads to a folder. Raises `OSError` where that can't be told."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as e:
        if e.errno in NOWHERE:
            return 0
        raise
