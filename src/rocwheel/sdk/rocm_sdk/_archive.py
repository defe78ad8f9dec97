"""Reads the archive of development files: a tar, plain or compressed by xz or zstd."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from importlib import import_module

from ._place import DevelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["open_archive"]

DECOMPRESSORS = {
    ".xz": (("lzma",), "a Python with the module lzma"),
    ".zst": (("compression.zstd", "backports.zstd"), "Python 3.14, or: pip install backports.zstd"),
}
"""Suffix -> modules that can open it, the first that there is; what is needed if there is none."""


@contextmanager
def open_archive(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive for one pass over its members. Raises `DevelError` when this Python can't decompress it."""
    with _open_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        yield tar


def _open_stream(archive: Path) -> IO[bytes]:
    if archive.suffix not in DECOMPRESSORS:
        return archive.open("rb")
    names, needed = DECOMPRESSORS[archive.suffix]
    for name in names:
        try:
            module = import_module(name)
        except ImportError:
            continue
        stream: IO[bytes] = module.open(archive, "rb")
        return stream
    msg = f"{archive}: reading it needs {needed}"
    raise DevelError(msg)
