"""What the packages need of Windows, decided here; `calls` asks Windows for it."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any, Literal, TypeVar

    from .calls import WindowsCalls

    Result = TypeVar("Result")

__all__ = ["Windows"]

LOCKED_BYTE = 1 << 30
"""Position of the byte that stands for a file's lock: a locked byte can't be read, so none of the file's own."""

LOCK_PAUSE = 0.1
"""Seconds between two questions whether a lock is free: Python has no call that waits for one of Windows."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts at files that another program, such as a virus scanner, has open for a moment."""

PREFIX = "\\\\?\\"
"""What begins a path that may be longer than 259 characters and is taken literally ("Naming Files, Paths")."""

REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]')
DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])[ ]*([.].*)?", re.IGNORECASE)
"""Names that are devices in every folder, whatever their suffix."""


class Windows:
    """A system whose files are known by names in any case, and whose users may not make symbolic links."""

    is_windows: Literal[True] = True
    program_suffix = ".exe"
    libraries = "*.dll"

    def __init__(self, calls: WindowsCalls) -> None:
        self.calls = calls

    @contextmanager
    def locked(self, file: IO[bytes]) -> Iterator[None]:
        """Hold the lock of a file that is open for writing; wait for whoever has it.

        Windows takes it from a process that ends, however that comes.
        """
        while not self.calls.try_lock(file.fileno(), LOCKED_BYTE):
            self.calls.pause(LOCK_PAUSE)
        try:
            yield
        finally:
            self.calls.unlock(file.fileno(), LOCKED_BYTE)

    def patiently(self, action: Callable[..., Result], *arguments: Any) -> Result:
        """Do something with files, again after a while where they are in use. Raises what the last attempt raises."""
        for pause in PAUSES:
            try:
                return action(*arguments)
            except PermissionError:  # noqa: PERF203 (ERROR_ACCESS_DENIED and ERROR_SHARING_VIOLATION)
                self.calls.pause(pause)
        return action(*arguments)

    def move_folder(self, new: Path, place: Path) -> None:
        """Give a folder another name in one step, where there may be an empty folder, which goes before."""
        if place.exists():
            self.patiently(place.rmdir)
        self.patiently(new.rename, place)

    def empty_folder(self, folder: Path, first: str) -> None:
        """Remove what a folder holds, one file before the others."""
        (folder / first).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                self.patiently(shutil.rmtree, path)
            else:
                path.unlink(missing_ok=True)

    def set_folder_mode(self, folder: Path, mode: int) -> None:
        """Give a folder its permissions: Windows knows one, which is to write."""
        folder.chmod(mode)

    def set_file_mode(self, file: IO[Any], mode: int) -> None:
        """Give an open file its permissions."""
        Path(file.name).chmod(mode)

    def may_trust(self, folder: Path, package: Path) -> bool:  # noqa: ARG002 (`Posix` asks it)
        """Return whether a folder beside a package is as good as that: who may make one there, Windows does not say."""
        return True

    def extended(self, path: Path) -> Path:
        """Return a path by which a file is reached however long it is."""
        text = str(path)
        if text.startswith(PREFIX):
            return path
        if text.startswith("\\\\"):
            return Path(f"{PREFIX}UNC\\{text[2:]}")
        return Path(PREFIX + text) if text[1:3] == ":\\" else path

    def plain(self, text: str) -> str:
        """Return a text with paths as people write them."""
        return text.replace(f"{PREFIX}UNC\\", "\\\\").replace(PREFIX, "")

    def name_fault(self, path: str) -> str:
        """Return why no file can have a path of an archive, whose folders are parted by ``/``; empty when one can.

        The rules: https://learn.microsoft.com/windows/win32/fileio/naming-a-file. Windows itself would take a name
        with a colon for a stream of another file, and leave out dots and blanks at an end.
        """
        for name in path.split("/"):
            refused = REFUSED.search(name)
            if refused:
                return f"{name!r} has {refused[0]!r}, which no name of Windows has"
            if name not in (".", "..") and name.endswith((".", " ")):
                return f"{name!r} ends with {name[-1]!r}, which Windows leaves out"
            if DEVICES.fullmatch(name):
                return f"{name!r} is a device of Windows"
        return ""
