"""Results as lines of text."""

from __future__ import annotations

import typer

from rocwheel.cli.output.printable import printable

__all__ = ["print_line"]


def print_line(text: object, *, err: bool = False) -> None:
    """Print a line of text, to standard error with ``err``; control characters in it, but for line ends, as escapes."""
    typer.echo(printable(str(text)), err=err)
