"""What the packages need of Linux and its kin, in the form that `windows` has it too."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO, Any, Literal, TypeVar

    Result = TypeVar("Result")

__all__ = ["Posix"]


class Posix:
    """A system with symbolic links, and whose programs replace one another."""

    is_windows: Literal[False] = False
    program_suffix = ""
    """What the names of programs end with."""
    libraries = "*.so*"
    """Pattern of the names of shared libraries."""

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing; wait for whoever has it."""
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file gives it back

    def patiently(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Do something with files once: nobody else keeps them from it for a moment."""
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Give a folder another name in one step, where there may be an empty folder."""
        new.replace(place)

    def extended(self, path: Path) -> Path:
        """Return a path by which a file is reached however long it is: the path itself."""
        return path

    def plain(self, text: str) -> str:
        """Return a text with paths as people write them: the text itself."""
        return text

    def name_fault(self, path: str) -> str:  # noqa: ARG002 (`Windows` asks it)
        """Return why no file can have a path of an archive: any name is fine."""
        return ""
