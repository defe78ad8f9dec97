"""Hashes of files on disk."""

from __future__ import annotations

import hashlib
from typing import IO, TYPE_CHECKING

from rocwheel.foundation.files.reading.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["hash_file", "hash_rest"]

_STEP = 1 << 20


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits; raises `OSError`."""
    with open_regular(path) as file:
        return hash_rest(file).hex()


def hash_rest(file: IO[bytes], algorithm: str = "sha256", advance: Callable[[int], object] = id) -> bytes:
    """Return the hash of what an open file has from its place on, read in steps of 1 MiB; raises `OSError`.

    ``advance`` is called with the number of bytes of each step.
    """
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    while data := file.read(_STEP):
        hasher.update(data)
        advance(len(data))
    return hasher.digest()
