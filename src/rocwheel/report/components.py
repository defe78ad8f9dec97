"""Which part of a package a file is: its artifact says so, or else its path (``components.toml``)."""

from __future__ import annotations

from functools import cache

import msgspec

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.foundation.parsing.tables import read_table

__all__ = ["component_of"]


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    files: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    component: tuple[_Row, ...]


def component_of(path: str) -> str:
    """Return the component of a file by its relative path, such as ``lib`` or ``kernels``."""
    return next(name for name, patterns in _rows() if patterns.matches(path))


@cache
def _rows() -> tuple[tuple[str, PathPatterns], ...]:
    table = read_table(__package__, "components.toml", _Table)
    return tuple((row.name, PathPatterns(row.files)) for row in table.component)
