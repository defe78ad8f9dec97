"""Standard output and standard error, as consoles that print no control characters of others."""

from __future__ import annotations

import io
import os
import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from rocwheel.cli.output.printable import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

__all__ = ["LazyConsole", "messages", "prepare_streams", "results", "teller"]


_ASKED_FOR = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables by which Rich takes another output for a terminal."""


class LazyConsole:
    """A console that prints plain lines itself: to load Rich would take a fifth of the time of a short command.

    Rich prints what has markup, and everything from when it has been asked for, as a bar of its may be shown.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr

    @cached_property
    def rich(self) -> Console:
        """The console of Rich."""
        made: Console = import_module("rocwheel.cli.output.terminal").new_console(stderr=self._stderr, soft_wrap=True)
        return made

    @property
    def _is_rich_loaded(self) -> bool:
        return "rich" in vars(self)

    @property
    def _stream(self) -> TextIO | None:
        return sys.stderr if self._stderr else sys.stdout

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal, or is to be taken for one."""
        is_asked = self._is_rich_loaded or not _ASKED_FOR.isdisjoint(os.environ)
        return (is_asked or bool(self._stream and self._stream.isatty())) and self.rich.is_terminal

    def print(self, text: str, *, markup: bool = True) -> None:
        """Print one line: line ends and other control characters in it as escapes, since a name must not begin one."""
        line = in_one_line(text)
        if markup or self._is_rich_loaded:
            self.rich.print(line, markup=markup)
        elif self._stream:
            print(line, file=self._stream, flush=True)


messages = LazyConsole(stderr=True)
"""Standard error, for people."""
results = LazyConsole()
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
