"""Results as text: lines and tables."""

from __future__ import annotations

from dataclasses import replace

import typer
from rich.console import RenderableType
from rich.table import Table

from rocwheel.cli.output.consoles import new_console
from rocwheel.cli.output.printable import printable

__all__ = ["print_line", "print_table"]

_UNLIMITED = 100_000


def print_line(text: object, *, err: bool = False) -> None:
    """Print a line of text, to standard error with ``err``; control characters in it, but for line ends, as escapes."""
    typer.echo(printable(str(text)), err=err)


def print_table(table: Table) -> None:
    """Print a table as wide as its text, so that no name is cut short or folded in a log."""
    table.columns = [replace(column, _cells=list(map(_printable_cell, column.cells))) for column in table.columns]
    new_console(width=_UNLIMITED).print(table)


def _printable_cell(content: RenderableType) -> RenderableType:
    return printable(content) if isinstance(content, str) else content
