"""Formats help. Lines break only between words, so that users can copy complete options and commands."""

from __future__ import annotations

import inspect
import os
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EXAMPLE = "Example: "
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""A word of a command line, which can contain quoted spaces."""
_CONTINUED = " \\"


class HelpFormatter(click.HelpFormatter):
    """Click's formatter, except that it never breaks words at hyphens or because of their length."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        indent = " " * self.current_indent
        paragraphs = ["\n".join(_fill(words, self.width, indent)) for words in map(str.split, text.split("\n\n"))]
        self.write("\n\n".join(paragraphs) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms with their descriptions. A long term's description is on the next line."""
        listed = list(rows)
        indent = " " * self.current_indent
        column = min(max((len(term) for term, _ in listed), default=0), col_max) + col_spacing
        hanging = indent + " " * column
        for term, text in listed:
            lines = _fill(text.split(), max(self.width, len(hanging) + 10), hanging)
            if len(term) <= column - col_spacing and lines:
                lines[0] = indent + term.ljust(column) + lines[0].removeprefix(hanging)
            else:
                lines.insert(0, indent + term)
            self.write("".join(f"{line.rstrip()}\n" for line in lines))

    def write_help(self, text: str) -> None:
        """Write a command's help: its paragraphs, and finally the example with one command on each line."""
        described, _, example = inspect.cleandoc(text).partition(_EXAMPLE)
        self.write_paragraph()
        with self.indentation():
            self.write_text(described.strip())
            if example:
                self.write(f"\n{' ' * self.current_indent}{_EXAMPLE.strip()}\n")
                for line in example.splitlines():
                    self.write("".join(f"{one}\n" for one in self._broken(line)))

    def _broken(self, command: str) -> list[str]:
        """Return the lines of a command. A shell reads them as a single line."""
        indent = " " * (self.current_indent + 2)
        lines = _fill(_WORD.findall(command), self.width - len(_CONTINUED), indent, "  ")
        return [f"{line}{_CONTINUED}" for line in lines[:-1]] + lines[-1:]


def _fill(words: Iterable[str], width: int, indent: str, hanging: str = "") -> list[str]:
    """Return the words as lines, without breaking any word."""
    return list(_lines(words, width, indent, hanging))


def _lines(words: Iterable[str], width: int, indent: str, hanging: str) -> Iterator[str]:
    line = indent
    for word in words:
        if line.strip() and len(line) + 1 + len(word) > width:
            yield line
            line = indent + hanging
        line += f" {word}" if line.strip() else word
    if line.strip():
        yield line


class HelpContext(click.Context):
    """The context of a command that uses this formatter."""

    formatter_class = HelpFormatter

    def make_formatter(self) -> click.HelpFormatter:
        """Return a formatter whose lines have at most 80 characters, or as many as ``COLUMNS`` specifies."""
        columns = os.environ.get("COLUMNS", "")
        wide = int(columns) if columns.isdecimal() else 0
        return self.formatter_class(width=self.terminal_width, max_width=wide or self.max_content_width)
