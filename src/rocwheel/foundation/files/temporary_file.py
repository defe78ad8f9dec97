"""Temporary files without a name: they vanish when closed, even by the death of the process."""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.foundation.errors import InputError, WorkError, limit_remedy, read_error

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "no_room",
    "open_temporary",
    "path_of",
    "range_error",
    "require_room",
    "temporary_folder",
    "unreadable",
    "write_all",
]

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


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
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
