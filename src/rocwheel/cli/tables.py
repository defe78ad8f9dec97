"""Prints results as tables that fit the terminal. No text is truncated, and no word is broken.

1. A table stays unchanged if the terminal is wide enough.
2. Otherwise, its columns shrink, the widest first, and their text wraps between words. Number columns don't wrap.
3. If words would break, or if wrapping takes more lines, columns move out of the table until the others fit. The
   widest column moves first, but the first column stays. The text of the moved columns is below the row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rocwheel.cli.output import is_silent, output_width
from rocwheel.cli.terminal import new_console
from rocwheel.core.messages import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Column, Table


UNLIMITED = 100_000
"""A width that exceeds any text."""
_MARGIN, _GAP, _BELOW, _HANGING = 2, 3, 4, 6
_WORD = re.compile(r"\s*(?:[+-]?[\d.,]+ (?:bytes|[kMGTP]B)\b|\S+)(?: \|)?\s*")
"""A word, or a size with its unit, and the bar at the end of a column's text."""


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's texts, and its widths in terminal characters."""

    heading: str
    cells: tuple[Text, ...]
    footer: Text | None
    is_right: bool

    @property
    def texts(self) -> tuple[Text, ...]:
        return (Text(self.heading, "bold"), *self.cells, *(() if self.footer is None else (self.footer,)))

    @property
    def natural(self) -> int:
        """The width of the longest line."""
        return max(cell_len(line) for text in self.texts for line in text.plain.splitlines() or [""])

    @property
    def least(self) -> int:
        """The width of the longest word, or of the longest number with its unit."""
        whole = self.texts[1:] if self.is_right else ()
        words = (word for text in self.texts for word in _WORD.findall(text.plain))
        return max([*(cell_len(word.strip()) for word in words), *(text.cell_len for text in whole)], default=0)

    def in_place(self, text: Text, width: int) -> Text:
        """Return text in this column, padded with spaces to this width."""
        spaces = Text(" " * (width - text.cell_len))
        return spaces + text if self.is_right else text + spaces


def fit_table(table: Table, width: int, rule: str = "─") -> Iterator[Table | Text]:
    """Yield the output for a table on a terminal with ``width`` columns: the table itself, or lines.

    Texts have no markup, and their line endings and other control characters become escapes. ``rule`` is the line below
    the headings.
    """
    table.columns = [_plain(column) for column in table.columns]
    if _natural_width(table) <= width:
        yield table
        return
    columns = [_read_column(table, column) for column in table.columns]
    below = list(_lines_with_columns_below(columns, width, rule * (width - 2)))
    widths = _narrowed(columns, width)
    wrapped = list(_wrapped_lines(columns, widths, rule * (width - 2))) if widths else below
    lines = wrapped if len(wrapped) <= len(below) else below
    yield from (Text(), *lines, Text()) if table.box else lines


def _natural_width(table: Table) -> int:
    console = Console(width=UNLIMITED)
    width: int = Measurement.get(console, console.options, table).maximum
    return width


def _plain(column: Column) -> Column:
    cells: list[RenderableType] = list(map(_plain_text, column.cells))
    return replace(column, header=_plain_text(column.header), footer=_plain_text(column.footer), _cells=cells)


def _plain_text(content: RenderableType) -> Text:
    return content if isinstance(content, Text) else Text(in_one_line(str(content)))


def _read_column(table: Table, column: Column) -> _Column:
    texts = tuple(cell for cell in column.cells if isinstance(cell, Text))
    footer = Text(str(column.footer)) if table.show_footer else None
    return _Column(str(column.header), texts, footer, column.justify == "right")


def _whole_width(widths: Sequence[int]) -> int:
    return _MARGIN + sum(widths) + _GAP * (len(widths) - 1)


def _narrowed(columns: Sequence[_Column], width: int) -> list[int]:
    """Return column widths that fit a total width, or `None` if some words don't fit."""
    widths, least = [column.natural for column in columns], [column.least for column in columns]
    if _whole_width(least) > width:
        return []
    for _ in range(_whole_width(widths) - width):
        free = (number for number, width in enumerate(widths) if width > least[number])
        widths[max(free, key=widths.__getitem__)] -= 1
    return widths


def _wrapped_lines(columns: Sequence[_Column], widths: Sequence[int], rule: str) -> Iterator[Text]:
    """Yield the lines of a table with these column widths."""
    for number, texts in enumerate(zip(*(one.texts for one in columns), strict=True)):
        if columns[0].footer is not None and number > len(columns[0].cells):
            yield Text()
        cells = [_wrap(text, width) or [Text()] for text, width in zip(texts, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=Text()):
            yield _joined(columns, parts, widths)
        if number == 0:
            yield Text(f" {rule}")


def _joined(columns: Sequence[_Column], texts: Sequence[Text], widths: Sequence[int]) -> Text:
    cells = (one.in_place(text, width) for one, text, width in zip(columns, texts, widths, strict=True))
    line = Text(" " * _MARGIN) + Text(" " * _GAP).join(cells)
    line.rstrip()
    return line


def _lines_with_columns_below(columns: Sequence[_Column], width: int, rule: str) -> Iterator[Text]:
    """Yield the lines of a table with the widest columns below its rows."""
    kept = list(columns)
    while len(kept) > 1 and _whole_width([one.natural for one in kept]) > width:
        kept.remove(max(kept[1:], key=lambda one: one.natural))
    moved = [one for one in columns if one not in kept]
    yield from _row(kept, [one.texts[0] for one in kept], width)
    yield Text(f" {rule}")
    for number in range(len(columns[0].cells)):
        yield from _row(kept, [one.cells[number] for one in kept], width)
        yield from _below([(one.heading, one.cells[number]) for one in moved], width)
    if columns[0].footer is not None:
        yield Text()
        yield from _row(kept, [one.texts[-1] for one in kept], width)
        yield from _below([(one.heading, one.texts[-1]) for one in moved], width)


def _row(columns: Sequence[_Column], texts: Sequence[Text], width: int) -> Iterator[Text]:
    if len(columns) == 1:
        yield from _hanging(texts[0], _MARGIN, width)
        return
    yield _joined(columns, texts, [one.natural for one in columns])


def _below(said: Iterable[tuple[str, Text]], width: int) -> Iterator[Text]:
    """Yield the text of columns below a row, if there is any."""
    parts = [Text(f"{heading}: " if heading else "") + text for heading, text in said if text.plain.strip()]
    if parts:
        yield from _hanging(Text(" | ").join(parts), _BELOW, width)


def _hanging(text: Text, indent: int, width: int) -> Iterator[Text]:
    """Yield text as lines with a hanging indent, unless a word needs the space."""
    for number, line in enumerate(_wrap(text, max(width - _HANGING, 1))):
        if line.cell_len > width and line.plain.endswith(" |"):
            line.right_crop(2)  # the end of the line replaces the space
        wanted = _HANGING if number else indent
        yield Text(" " * max(0, min(wanted, width - line.cell_len))) + line


def _wrap(text: Text, width: int) -> list[Text]:
    """Return text as lines of words. A word that is too wide is on a line by itself."""
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        breaks, used = [], 0
        for word in _WORD.finditer(line.plain):
            if used and used + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                used = 0
            used += cell_len(word[0])
        lines.extend(line.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def cell(text: str) -> Text:
    """Return a cell with a single line without markup. Control characters become escapes."""
    return Text(in_one_line(text))


def print_table(table: Table) -> None:
    """Print a table that fits the terminal, according to the rules in the module docstring.

    In a log or a pipe, the table is as wide as its text, so that no name is truncated or wrapped.
    """
    if is_silent():
        return
    console = new_console(width=UNLIMITED)
    rule = "-" if console.options.ascii_only else "─"
    for part in fit_table(table, output_width() or UNLIMITED, rule):
        console.print(part, soft_wrap=isinstance(part, Text))


def print_target_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print a row for each target: its name, its sizes, and the numbers of kernels and bundles."""
    table = Table("target", box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for heading in ("size", "in the file", "kernels", "bundles", "missing from"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    print_table(table)
