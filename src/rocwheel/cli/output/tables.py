"""Results as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from rocwheel.cli.output.printable import printable
from rocwheel.cli.output.terminal import new_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["cell", "print_table"]

_UNLIMITED = 100_000


def cell(text: str) -> Text:
    """Return a cell of a table, whose text is no markup, with the characters escaped that Rich would leave out."""
    return Text(printable(text))


def print_table(table: Table) -> None:
    """Print a table as wide as its text, so that no name is cut short or folded in a log."""
    table.columns = [replace(column, _cells=list(map(_printable_cell, column.cells))) for column in table.columns]
    new_console(width=_UNLIMITED).print(table)


def _printable_cell(content: RenderableType) -> RenderableType:
    return printable(content) if isinstance(content, str) else content
