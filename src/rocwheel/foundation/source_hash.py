"""A hash of rocwheel's own source code: results that are kept are not used with other code."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["source_hash"]

_SUFFIXES = frozenset({".py", ".pyc", ".toml"})
"""Of code, without source if it was installed so, and of the tables that it reads."""


@cache
def source_hash(place: Path) -> bytes:
    """Return the hash of a module, or of the names and bytes of all modules and tables of a package and those below."""
    if not place.is_dir():
        return hashlib.sha256(place.read_bytes()).digest()
    hasher = hashlib.sha256()
    for path in sorted(place.iterdir()):
        if path.suffix in _SUFFIXES or (path.is_dir() and path.name != "__pycache__"):
            hasher.update(b"%s\n" % path.name.encode() + source_hash(path))
    return hasher.digest()
