"""Which host files need not be the same in all shards, read from ``may_differ.toml``; each row names its source."""

from __future__ import annotations

from functools import cache

import msgspec

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.core.decoding import read_table

__all__ = ["may_differ"]


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    files: tuple[str, ...]
    reason: str
    source: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[_Row, ...]


@cache
def _rows() -> tuple[tuple[PathPatterns, str], ...]:
    table = read_table("rocwheel.device.merging", "may_differ.toml", _Table)
    return tuple((PathPatterns(row.files), row.reason) for row in table.row)


def may_differ(path: str) -> str | None:
    """Return why a path of the prefix may hold other bytes in other shards; none where it may not."""
    return next((reason for patterns, reason in _rows() if patterns.matches(path)), None)
