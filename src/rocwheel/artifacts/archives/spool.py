"""Decompressing a tar once, as a stream, into a nameless temporary file whose ranges every worker can read."""

from __future__ import annotations

import lzma
import os
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, cast

from rocwheel.core.compression import BOUND, BoundedStream, ExpansionError, most_unpacked, open_xz, zstd
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import open_regular, open_unchanged
from rocwheel.core.scratch import no_room, open_temporary, require_room, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["decompress", "peek"]

_CHUNK = 1 << 20
_STEP = 64 << 20
_DECODER_ERRORS = (EOFError, OSError, lzma.LZMAError, zstd.ZstdError)


def decompress(archive: Path, *, advance: Callable[[int], None] = SILENT.advance) -> IO[bytes]:
    """Decompress a ``.tar.xz`` or ``.tar.zst`` into a nameless temporary file and return that, open.

    The file lies in the folder that ``TMPDIR`` names and vanishes when closed, even by the death of the process.
    ``advance`` is called with the number of compressed bytes as they are read. Raises `InputError` when the archive
    can't be read, is corrupt or truncated, or holds far more than libraries do, `WorkError` when the temporary folder
    is about to be full or can't be written.
    """
    with ExitStack() as stack:
        try:
            spool = stack.enter_context(open_temporary())
            _fill(spool, archive, advance)
        except OSError as e:
            raise no_room(archive, "its decompressed content", e) from e
        stack.pop_all()
        return spool


def _fill(spool: IO[bytes], archive: Path, advance: Callable[[int], None]) -> None:
    size = 0
    for data in _decompressed_chunks(archive, advance):
        if size // _STEP != (size + len(data)) // _STEP:
            require_room(spool, _STEP)
        write_all(spool, data)
        size += len(data)


def peek(archive: Path, size: int) -> bytes:
    """Return the first ``size`` decompressed bytes of an archive, or fewer, or none, if it has no more."""
    try:
        with open_regular(archive) as raw, _decoder(archive, raw) as stream:
            return stream.read(size)
    except _DECODER_ERRORS:
        return b""


def _decompressed_chunks(archive: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    try:
        with open_unchanged(archive) as raw, _decoder(archive, raw) as stream:
            reported = 0
            bounded = BoundedStream(stream, most_unpacked(os.fstat(raw.fileno()).st_size))
            while data := bounded.read(_CHUNK):
                yield data
                advance(raw.tell() - reported)
                reported = raw.tell()
            advance(raw.tell() - reported)
    except ExpansionError as e:
        remedy = "If you trust it, unpack it by hand and give the folder."
        raise InputError(archive, str(e), expected=BOUND, remedy=remedy) from e
    except EOFError as e:
        raise InputError(
            archive, "is truncated: its compression has no end", remedy="Fetch it or make it again."
        ) from e
    except (lzma.LZMAError, zstd.ZstdError) as e:
        raise InputError(archive, f"can't be decompressed ({e})", remedy="Fetch it or make it again.") from e
    except OSError as e:
        raise read_error(archive, e) from e


def _decoder(archive: Path, raw: IO[bytes]) -> IO[bytes]:
    if archive.name.endswith(".xz"):
        return open_xz(raw)
    return cast("IO[bytes]", zstd.ZstdFile(raw))
