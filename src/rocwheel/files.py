"""Reading ranges of files and writing files that appear only when whole."""

from __future__ import annotations

import mmap
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.errors import InputError, WorkError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileRange", "atomic_file"]


class FileRange(msgspec.Struct, frozen=True, order=True):
    """``size`` bytes of the file ``path`` from ``offset``: a whole file, or a member of an uncompressed archive."""

    path: str
    offset: int
    size: int

    @classmethod
    def whole(cls, path: Path) -> FileRange:
        """Return the range that covers all of ``path``."""
        return cls(str(path), 0, path.stat().st_size)

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return FileRange(self.path, self.offset + start, stop - start)

    @contextmanager
    def map(self) -> Iterator[memoryview]:
        """Map the range read-only; pages are read when touched and leave with the block.

        Raises `InputError` when the file can't be opened or has become shorter than the range.
        """
        if self.size == 0:
            yield memoryview(b"")
            return
        start = self.offset - self.offset % mmap.ALLOCATIONGRANULARITY
        with _open_for_reading(self.path) as file:
            if os.fstat(file.fileno()).st_size < self.offset + self.size:
                raise InputError(
                    self.path, "shorter than when it was listed", remedy="Leave the inputs alone during a build."
                )
            with mmap.mmap(
                file.fileno(), self.offset - start + self.size, access=mmap.ACCESS_READ, offset=start
            ) as mapping:
                view = memoryview(mapping)
                part = view[self.offset - start :]
                try:
                    yield part
                finally:
                    part.release()
                    view.release()


def _open_for_reading(path: str) -> IO[bytes]:
    try:
        return Path(path).open("rb")
    except OSError as e:
        raise InputError(path, f"cannot be read ({e.strerror})", remedy="Check that it exists and may be read.") from e


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its name, synced to disk, only when the block ends well.

    Raises `WorkError` when the folder can't be written or the disk is full; nothing is left behind then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as e:
        raise _write_error(path, e) from e
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as e:
        raise _write_error(path, e) from e
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 (a plain name, already at hand)


def _write_error(path: Path, error: OSError) -> WorkError:
    return WorkError(
        path, f"cannot be written ({error.strerror})", remedy="Check the free space and the permissions of its folder."
    )
