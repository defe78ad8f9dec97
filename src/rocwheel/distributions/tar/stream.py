"""Reading all of a tar forward, within bounds of memory and to the zero blocks that have to end it."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from rocwheel.distributions.tar.header import BoundedTar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TAR_ERRORS", "open_tar_stream", "tar_members"]

TAR_ERRORS = (tarfile.TarError, ValueError, IndexError, OverflowError, EOFError)
"""What the standard library's reader raises for a malformed tar."""

_CHUNK = 1 << 16
_BUFFER = 1 << 15
"""Bytes that are asked for at a time, the best of 10 KiB to 8 MiB for many small and for few large files.

The standard library copies what is left of them for each header and each member that it reads or passes over: with
1 MiB, 40,000 files of 3 kB take 3.0 s of processor time, and with this 1.0 s. With its own 10 KiB, 512 MiB in eight
files take 0.48 s, with this 0.33 s.
"""


@contextmanager
def open_tar_stream(stream: IO[bytes]) -> Iterator[BoundedTar]:
    """Open a tar for one pass. Raises `tarfile.ReadError` when it doesn't begin as one."""
    with BoundedTar.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as tar:
        yield tar


def tar_members(tar: BoundedTar) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an open stream in their order.

    Raises one of `TAR_ERRORS`, and what reading raises, for a damaged header and when anything follows the end.
    """
    yield from tar.forward()
    rest = tar.fileobj
    while rest and (data := rest.read(_CHUNK)):
        if any(data):
            msg = "a block of zeros is between its members"
            raise tarfile.ReadError(msg)
