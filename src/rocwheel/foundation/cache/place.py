"""Where the cache of this user is, and how large it may get."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.cache.cache_folder import cache_folder
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_LIMIT",
    "LIMIT_VARIABLE",
    "CachePlace",
    "cache_limit",
    "packed_cache",
    "parse_size",
]

LIMIT_VARIABLE = "ROCWHEEL_CACHE_LIMIT"

DEFAULT_LIMIT = 10 * 10**9
"""Bytes of packed members that are kept."""


class CachePlace(msgspec.Struct, frozen=True):
    """The folder of a cache, and how many bytes it may have after a build."""

    folder: Path
    limit: int = DEFAULT_LIMIT


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LARGEST = 1 << 63
"""Bytes; file systems count no further."""


def cache_limit(environment: Mapping[str, str]) -> int:
    """Return how many bytes packed members may have; raise `InputError` for a variable that says no size."""
    text = environment.get(LIMIT_VARIABLE, "")
    return parse_size(text, source=LIMIT_VARIABLE) if text else DEFAULT_LIMIT


def packed_cache(environment: Mapping[str, str]) -> CachePlace:
    """Return the place of this user's packed members. Raises what `cache_limit` does."""
    return CachePlace(cache_folder() / "packed", cache_limit(environment))


def parse_size(text: str, *, source: str) -> int:
    """Return the bytes of a size such as ``20GB``, ``1.5 TiB`` or ``0``; raise `InputError` for another text."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise InputError(source, f"is {quoted(text)}", expected="a size, such as 20GB or 500MiB")
    number, unit, binary = found.groups()
    size = float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()]
    if size > _LARGEST:
        raise InputError(source, f"is {quoted(text)}", expected="a size that a disk can have")
    return int(size)
