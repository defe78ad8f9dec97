"""Decompressing a tar once, as a stream, into a nameless temporary file whose ranges every worker can read."""

from __future__ import annotations

import lzma
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from rocwheel.foundation.errors import InputError, WorkError, read_error
from rocwheel.foundation.files import open_regular
from rocwheel.foundation.progress import SILENT
from rocwheel.foundation.zstd import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["decompress", "peek", "range_path"]

_CHUNK = 1 << 20
_DECODER_ERRORS = (EOFError, OSError, lzma.LZMAError, zstd.ZstdError)


def decompress(archive: Path, *, advance: Callable[[int], None] = SILENT.advance) -> IO[bytes]:
    """Decompress a ``.tar.xz`` or ``.tar.zst`` into a nameless temporary file and return that, open.

    The file lies in the folder that ``TMPDIR`` names and vanishes when closed, even by the death of the process.
    ``advance`` is called with the number of compressed bytes as they are read. Raises `InputError` when the archive
    can't be read or is corrupt or truncated, `WorkError` when the temporary folder is full or can't be written.
    """
    folder = "the temporary folder"
    with ExitStack() as stack:
        try:
            folder = _temporary_folder()
            # Unbuffered: what a full disk has not taken must not be tried again when the file closes.
            spool = stack.enter_context(tempfile.TemporaryFile(prefix="rocwheel-", buffering=0, dir=folder))
            for data in _decompressed_chunks(archive, advance):
                _write(spool, data)
        except OSError as e:
            raise _no_room(folder, e) from e
        stack.pop_all()
        return spool


def _temporary_folder() -> str:
    """Return the folder for temporary files. Python would silently use another if that of ``TMPDIR`` is unusable."""
    named = os.environ.get("TMPDIR")
    if not named:
        return tempfile.gettempdir()
    if not (Path(named).is_dir() and os.access(named, os.W_OK | os.X_OK)):
        source, found = "TMPDIR", f"names {named}, where no file can be made"
        raise WorkError(source, found, remedy="Correct or unset it.")
    return named


def peek(archive: Path, size: int) -> bytes:
    """Return the first ``size`` decompressed bytes of an archive, or fewer, or none, if it has no more."""
    try:
        with open_regular(archive) as raw, _decoder(archive, raw) as stream:
            return stream.read(size)
    except _DECODER_ERRORS:
        return b""


def range_path(spool: IO[bytes]) -> str:
    """Return a path by which threads and other processes of the same user open ``spool`` while it is open here."""
    return f"/proc/{os.getpid()}/fd/{spool.fileno()}"


def _decompressed_chunks(archive: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    try:
        with open_regular(archive) as raw, _decoder(archive, raw) as stream:
            reported = 0
            while data := stream.read(_CHUNK):
                yield data
                advance(raw.tell() - reported)
                reported = raw.tell()
            advance(raw.tell() - reported)
    except EOFError as e:
        raise InputError(
            archive, "is truncated: its compression has no end", remedy="Fetch it or make it again."
        ) from e
    except (lzma.LZMAError, zstd.ZstdError) as e:
        raise InputError(archive, f"cannot be decompressed ({e})", remedy="Fetch it or make it again.") from e
    except OSError as e:
        raise read_error(archive, e) from e


def _decoder(archive: Path, raw: IO[bytes]) -> IO[bytes]:
    if archive.name.endswith(".xz"):
        return lzma.LZMAFile(raw)
    return cast("IO[bytes]", zstd.ZstdFile(raw))


def _write(spool: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[spool.write(rest) :]


def _no_room(folder: str, error: OSError) -> WorkError:
    remedy = "Set TMPDIR to a folder with room for them."
    return WorkError(folder, f"cannot take the decompressed artifacts ({error.strerror})", remedy=remedy)
