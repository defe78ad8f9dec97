"""Permissions of what is made next to the packages: whoever may use the packages may use it, whatever the umask."""

from __future__ import annotations

import stat
from typing import NamedTuple

from .._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Modes", "make_folder", "modes_like", "write_text"]


class Modes(NamedTuple):
    """Permission bits by kind of file."""

    folder: int
    """With the bit that passes the group on to what is made inside."""

    program: int
    file: int


def modes_like(folder: Path) -> Modes:
    """Return the modes that suit a folder which an installer made."""
    mode = stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU
    return Modes(mode & 0o2777, mode & 0o777, mode & 0o666)


def make_folder(path: Path, modes: Modes) -> None:
    """Make a folder, and those above it that don't exist."""
    if not path.parent.is_dir():
        make_folder(path.parent, modes)
    path.mkdir()
    this_platform().set_folder_mode(path, modes.folder)


def write_text(path: Path, text: str, modes: Modes) -> None:
    """Write a file anew with the permissions that ``modes`` has for files; a link in its place isn't followed."""
    path.unlink(missing_ok=True)
    with path.open("x", encoding="utf-8") as file:
        this_platform().set_file_mode(file, modes.file)
        file.write(text)
