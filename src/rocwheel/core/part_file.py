"""Fetches a file in pieces, possibly in several runs. The file gets its final name when it is complete.

Until then, its bytes are in a hidden file next to it, with a stamp that identifies the complete file. If a run was
killed, the next run resumes the download if the file at the source still has the same stamp.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, WorkError, write_error
from rocwheel.core.names import cut_name
from rocwheel.core.reading import belongs_to_user, read_regular
from rocwheel.core.scratch import require_reserve
from rocwheel.core.writing import atomic_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK = 1 << 20
_LONGEST = 160
"""The maximum length of the original name in the name of a part, in bytes. A file name has at most 255 bytes."""
_PART, _STAMP = ".rocwheel-part", ".rocwheel-part.json"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Known properties of a file before the download."""

    source: str
    """The origin, for messages."""
    size: int | None = None
    """The size in bytes."""
    version: str = ""
    """A value that changes with the bytes at the source, such as an ETag. Empty if there is no such value."""
    sha256: str = ""
    """The SHA-256 in hexadecimal. Empty if unknown."""
    modified: int | None = None
    """The modification time to set, in nanoseconds since 1970. If it is `None`, the time of the last write remains."""


class _Stamp(msgspec.Struct, frozen=True):
    """The identity of the complete file for which a part was written."""

    expected: Expected
    boot: str
    """The boot ID of the machine that wrote the part. After a crash, zeros may replace the written bytes."""


def is_part(name: str) -> bool:
    """Return whether a name belongs to an unfinished file or its stamp."""
    return name.startswith(".") and name.endswith((_PART, _STAMP))


def receive(
    path: Path,
    expected: Expected,
    read: Callable[[int], Iterator[bytes]],
    advance: Callable[[int], None] = lambda _: None,
) -> str:
    """Write the bytes from ``read`` to ``path``, and return their SHA-256.

    ``read`` receives the number of existing bytes.

    The file appears only when all bytes are available and match the expected size and hash, if these are known. It then
    replaces an existing file. ``advance`` is called with the number of received bytes, starting with the bytes from an
    earlier run.

    Raises `InputError` for unexpected bytes, `WorkError` if another process fetches the same file or writing fails, and
    any errors that ``read`` raises. The bytes received so far are kept for the next run.
    """
    with _opened(path, expected) as part:
        is_resumed = part.take_up(advance)
        part.fill(read, advance)
        fault = part.fault()
        if fault and is_resumed:  # the bytes from the earlier run may be wrong
            advance(-part.size)
            part.restart()
            part.fill(read, advance)
            fault = part.fault()
        if fault:
            part.remove()
            raise fault
        part.commit()
        return part.sha256


class _Part:
    """The bytes received so far."""

    def __init__(self, path: Path, expected: Expected, file: IO[bytes]) -> None:
        self.size = 0
        self._path = path
        self._expected = expected
        self._file = file
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def take_up(self, advance: Callable[[int], None]) -> bool:
        """Reuse the bytes from an earlier run if they belong to the same file. Return whether any bytes were reused."""
        stamp = _Stamp(self._expected, _read_boot_id())
        if self._may_continue(stamp):
            self._file.seek(0)
            while block := self._file.read(_BLOCK):
                self._digest.update(block)
                self.size += len(block)
            advance(self.size)
        if not self.size:
            self.restart()
            with atomic_file(_stamp_path(self._path)) as file:
                file.write(msgspec.json.encode(stamp))
        return bool(self.size)

    def _may_continue(self, stamp: _Stamp) -> bool:
        size, status = self._expected.size, os.fstat(self._file.fileno())
        if not belongs_to_user(status) or (size is not None and status.st_size > size):
            return False
        known = _read_stamp(_stamp_path(self._path))
        if known is None or known.expected != stamp.expected:
            return False
        # Without a hash, bytes lost in a crash or by a failing disk would go unnoticed.
        if not stamp.expected.sha256:
            return bool(stamp.expected.version) and known.boot == stamp.boot and self._is_on_disk()
        return True

    def _is_on_disk(self) -> bool:
        """Return whether the disk accepted all bytes. The system reports a late write error to the next caller."""
        with suppress(OSError):
            os.fsync(self._file.fileno())
            return True
        return False

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self.size = 0

    def fill(self, read: Callable[[int], Iterator[bytes]], advance: Callable[[int], None]) -> None:
        """Append the missing bytes. Stop at the first extra byte."""
        size = self._expected.size
        if self.size == size:
            return
        self._file.seek(self.size)
        for block in read(self.size):
            if size is None:
                self._require_reserve()
            self._file.write(block)
            self._digest.update(block)
            self.size += len(block)
            advance(len(block))
            if size is not None and self.size > size:
                return

    def _require_reserve(self) -> None:
        """Raise `OSError` if the disk is almost full, and remove the bytes: their source may be endless."""
        try:
            require_reserve(self._file)
        except OSError:
            self.remove()
            raise

    def fault(self) -> InputError | None:
        """Return the error if the bytes are complete but wrong, or `None`."""
        expected, remedy = self._expected, "Try again later, or report this problem to the publisher."
        if expected.size is not None and self.size != expected.size:
            found = f"has {'more than ' if self.size > expected.size else ''}{min(self.size, expected.size)} bytes"
            return InputError(expected.source, found, expected=f"{expected.size} bytes", remedy=remedy)
        if expected.sha256 and self.sha256 != expected.sha256:
            found = f"has the SHA-256 {self.sha256}"
            return InputError(expected.source, found, expected=expected.sha256, remedy=remedy)
        return None

    def commit(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        os.fchmod(self._file.fileno(), 0o644)
        if self._expected.modified is not None:
            with suppress(OverflowError):  # an invalid date for a file
                os.utime(self._file.fileno(), ns=(self._expected.modified, self._expected.modified))
        # Remove the stamp first, because nothing searches for the stamp of a complete file.
        _stamp_path(self._path).unlink(missing_ok=True)
        _part_path(self._path).replace(self._path)

    def forget(self) -> None:
        """Make the next run start from the beginning, unless a hash verifies the bytes.

        The disk might have lost some of the bytes.
        """
        if not self._expected.sha256:
            with suppress(OSError):
                _stamp_path(self._path).unlink()

    def remove(self) -> None:
        for path in (_part_path(self._path), _stamp_path(self._path)):
            with suppress(OSError):
                path.unlink()


@contextmanager
def _opened(path: Path, expected: Expected) -> Iterator[_Part]:
    place, part = _part_path(path), None
    try:
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise WorkError(path, "isn't a regular file, so it can't be replaced", remedy="Choose another folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Doesn't follow a link that someone else created there.
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=_BLOCK) as file:
            _lock(file, path)
            part = _Part(path, expected, file)
            yield part
    except OSError as e:
        if part:
            part.forget()
        raise write_error(path, e) from e


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        raise WorkError(path, "is being downloaded by another process", remedy="Wait until that process ends.") from e
    except OSError:  # some network file systems have no locks
        return
    if not _is_at(file, _part_path(path)):
        raise WorkError(path, "was downloaded by another process in the meantime", remedy="Run the command again.")


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file still has its original name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    return False


def _read_stamp(path: Path) -> _Stamp | None:
    try:
        return decode_json(read_regular(path), _Stamp)
    except (OSError, msgspec.DecodeError):
        return None


def _read_boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _part_path(path: Path) -> Path:
    return path.with_name(_hidden(path.name) + _PART)


def _stamp_path(path: Path) -> Path:
    return path.with_name(_hidden(path.name) + _STAMP)


def _hidden(name: str) -> str:
    kept = cut_name(name, _LONGEST)
    return f".{name}" if kept == name else f".{kept}.{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
