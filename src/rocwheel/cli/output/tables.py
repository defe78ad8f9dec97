"""Results as tables, which fit the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rocwheel.cli.output.fitting import UNLIMITED, fit_table
from rocwheel.cli.output.printable import in_one_line
from rocwheel.cli.output.terminal import new_console
from rocwheel.cli.output.width import output_width

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["cell", "print_table", "print_target_table"]


def cell(text: str) -> Text:
    """Return a cell of one line, whose text is no markup: control characters in it as escapes."""
    return Text(in_one_line(text))


def print_table(table: Table) -> None:
    """Print a table so that it fits the terminal, by the rule of `fit_table`.

    Elsewhere, as in a log or a pipe, it is as wide as its text, so that no name is cut short or folded.
    """
    console = new_console(width=UNLIMITED)
    rule = "-" if console.options.ascii_only else "─"
    for part in fit_table(table, output_width() or UNLIMITED, rule):
        console.print(part, soft_wrap=isinstance(part, Text))


def print_target_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print a row for each target: its name, sizes, and how many kernels and bundles there are."""
    table = Table("target", box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for heading in ("size", "in the file", "kernels", "bundles", "missing from"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    print_table(table)
