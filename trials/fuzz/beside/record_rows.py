"""Rows of CSV read by hand as :rfc:`4180` has them, held against those that rocwheel has of a RECORD by `csv`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.wheels.record import RecordEntry

__all__ = ["compare_rows", "read_rows"]

_FIELD = re.compile(r'"((?:[^"]|"")*)"|([^",\r\n]*)')
_END = re.compile(r",|\r?\n|\Z")
_CELLS = 3


def compare_rows(entries: Iterable[RecordEntry], text: str) -> None:
    """Require that a RECORD has the rows that the RFC says, if it is one by the RFC."""
    rows = read_rows(text)
    if rows is not None:
        theirs = [tuple([*row, "", ""][:_CELLS]) for row in rows]
        own = [(entry.path, entry.hash, entry.size) for entry in entries]
        require(own == theirs, f"rows {own}, by RFC 4180 they are {theirs}")


def read_rows(text: str) -> list[list[str]] | None:
    """Return the rows without empty lines; none where the RFC has no answer, as to quotes amid a field.

    Lines may end without a carriage return, as those of RECORD do.
    """
    rows: list[list[str]] = []
    row: list[str] = []
    position = line = 0
    while position < len(text):
        field = _FIELD.match(text, position)
        end = field and _END.match(text, field.end())
        if not field or not end:
            return None
        is_empty = end[0] != "," and end.start() == line
        row += [] if is_empty else [field[2] if field[1] is None else field[1].replace('""', '"')]
        position = end.end()
        if end[0] != ",":
            rows += [row] if row else []
            row, line = [], position
    return [*rows, [*row, ""]] if row else rows  # a comma at the end has an empty field behind it
