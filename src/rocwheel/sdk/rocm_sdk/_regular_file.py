"""Reads files that lie among the packages without waiting for what no file is: a pipe or a device."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

__all__ = ["NotAFileError", "open_regular", "read_regular"]


class NotAFileError(OSError):
    """In place of a file is something else; the text says which."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path, self.found = path, next((name for test, name in KINDS if test(mode)), "something else")
        super().__init__(f"{path} is {self.found}, not a file")


OPENING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOINHERIT", "O_BINARY"))
"""How files are opened; no system has all of these."""

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises `NotAFileError` when it is none, `OSError` when it can't be opened."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise NotAFileError(path, mode)
    file = os.fdopen(os.open(path, OPENING), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):  # it was replaced in between
        file.close()
        raise NotAFileError(path, mode)
    return file


def read_regular(path: Path) -> str:
    """Return the text of a file in UTF-8, its line ends as they are.

    Raises as `open_regular` does, and `UnicodeDecodeError`.
    """
    try:
        with open_regular(path) as file:
            return file.read().decode()
    except OSError as e:
        if e.errno is None or e.filename:
            raise
        raise OSError(e.errno, e.strerror, str(path)) from e  # a read names no file
