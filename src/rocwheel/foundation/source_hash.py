"""Which code this is, for what is kept of its results: other code may make something else of the same values."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["source_hash"]


@cache
def source_hash(place: Path) -> bytes:
    """Return the hash of a module, or of the names and bytes of all modules of a package."""
    if not place.is_dir():
        return hashlib.sha256(place.read_bytes()).digest()
    hasher = hashlib.sha256()
    for path in sorted(place.glob("*.py*")):
        hasher.update(b"%s\n" % path.name.encode() + source_hash(path))
    return hasher.digest()
