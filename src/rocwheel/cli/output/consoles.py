"""Standard output and standard error, as consoles that print no control characters of others."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment

from rocwheel.cli.output.printable import printable

__all__ = ["messages", "new_console", "prepare_streams", "results", "teller"]


class _Printable:
    """What Rich prints, with control characters as escapes: names in files may hold any."""

    def __init__(self, renderable: Any) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class _PrintableHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(renderable) for renderable in renderables]


class _Terminal(Console):
    """A console that escapes control characters before Rich leaves some of them out."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print the objects."""
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **settings)


def new_console(**settings: Any) -> Console:
    """Return a console that prints no control characters but its own."""
    console = _Terminal(highlight=False, emoji=False, **settings)
    console.push_render_hook(_PrintableHook())
    return console


messages = new_console(stderr=True, soft_wrap=True)
"""Standard error, for people."""
results = new_console(soft_wrap=True)
"""Standard output, for text other than tables."""


def teller(*, quiet: bool) -> Callable[[str], object]:
    """Return what prints a sentence for people, or nothing where they want none."""
    return (lambda _: None) if quiet else lambda text: messages.print(text, markup=False)


def prepare_streams() -> None:
    """Make standard output accept any text, and either write all of it or fail.

    Characters that its encoding lacks, and bytes of file names that are not text, are written as escapes.
    """
    if sys.stdout is None:  # closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        raw = sys.stdout.buffer
        if isinstance(raw, io.RawIOBase):
            # PYTHONUNBUFFERED: Python doesn't notice when a full disk cuts a write short.
            buffered = io.BufferedWriter(raw)
            sys.stdout = io.TextIOWrapper(buffered, encoding=sys.stdout.encoding, line_buffering=True)
        sys.stdout.reconfigure(errors="backslashreplace")
