"""Results as lines of text."""

from __future__ import annotations

import typer

from rocwheel.cli.output.printable import in_one_line, printable

__all__ = ["print_line", "print_text"]


def print_line(text: object, *, err: bool = False) -> None:
    """Print one line, to standard error with ``err``: line ends and other control characters in it as escapes."""
    typer.echo(in_one_line(str(text)), err=err)


def print_text(text: object, *, err: bool = False) -> None:
    """Print lines that are ours, such as a table; control characters in them, but for line ends, as escapes."""
    typer.echo(printable(str(text)), err=err)
