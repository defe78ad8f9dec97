"""Checks of the files and folders that a command is given, in the words of all messages about files.

Lists of paths may be absent. Their hints have to say so: on Python 3.10, Typer takes a bare `list[Path]` for a class.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import map_collecting


def regular_place(path: Path) -> Path:
    """Return the path of a file or folder; raise `InputError` for anything else, before it is opened.

    A pipe would be waited for, a device read without end.
    """
    _existing(path)
    if not path.is_dir() and not path.is_file():
        raise InputError(path, "is not a regular file", expected="a file or a folder")
    return path


def regular_places(paths: list[Path] | None) -> list[Path]:
    """Return the paths of files and folders; raise `InputError` for anything else, for all at once."""
    return map_collecting("paths", regular_place, paths or [])


def regular_file(path: Path) -> Path:
    """Return the path of a file; raise `InputError` for anything else."""
    if regular_place(path).is_dir():
        raise _refusal(path, errno.EISDIR)
    return path


def folder_place(path: Path) -> Path:
    """Return the path of a folder; raise `InputError` for anything else."""
    if not _existing(path).is_dir():
        raise InputError(path, "is not a folder", remedy="Name a folder.")
    return path


def _existing(path: Path) -> Path:
    try:
        path.stat()
    except OSError as e:
        raise read_error(path, e) from e
    return path


def _refusal(path: Path, number: int) -> InputError:
    error: InputError = read_error(path, OSError(number, os.strerror(number)))
    return error
