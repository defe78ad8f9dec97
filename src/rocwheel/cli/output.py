"""Prints results to standard output and messages to standard error, safely on any terminal."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
import msgspec

from rocwheel.core.errors import RocwheelError, each_problem
from rocwheel.core.messages import in_one_line, printable, printable_json
from rocwheel.core.shown_names import forget_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console


def output_width() -> int | None:
    """Return the width of standard output's terminal in columns, or ``COLUMNS``, or `None` if there is no terminal.

    Output for scripts has no width, even if a user has exported that variable.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_ASKED_FOR = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables that make Rich treat any output as a terminal."""


class LazyConsole:
    """A console that prints plain lines itself, because loading Rich would take a fifth of a short command's time.

    Rich prints text with markup. After Rich has been used once, it prints everything, because it may be displaying a
    progress bar.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr

    @cached_property
    def rich(self) -> Console:
        """Rich's console."""
        from rocwheel.cli.terminal import new_console

        return new_console(stderr=self._stderr, soft_wrap=True)

    @property
    def _is_rich_loaded(self) -> bool:
        return "rich" in vars(self)

    @property
    def _stream(self) -> TextIO | None:
        return sys.stderr if self._stderr else sys.stdout

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal, or should be treated as a terminal."""
        is_asked = self._is_rich_loaded or not _ASKED_FOR.isdisjoint(os.environ)
        return (is_asked or bool(self._stream and self._stream.isatty())) and self.rich.is_terminal

    def print(self, text: str, *, markup: bool = True) -> None:
        """Print one line. Control characters, such as line endings, are escaped."""
        if is_silent():
            return
        line = in_one_line(text)
        if markup or self._is_rich_loaded:
            self.rich.print(line, markup=markup)
        elif self._stream:
            print(line, file=self._stream, flush=True)


messages = LazyConsole(stderr=True)
"""Standard error, for messages to users."""
results = LazyConsole()
"""Standard output, for text other than tables."""


_quiet = [False]
"""Whether only errors and requested documents are printed."""


def set_quiet(*, quiet: bool) -> None:
    """From now on, print only errors, or print everything."""
    _quiet[0] = quiet


@contextmanager
def printing_errors() -> Iterator[None]:
    """Print the output of the block even if only errors are wanted, because it explains why the command fails."""
    before = _quiet[0]
    _quiet[0] = False
    try:
        yield
    finally:
        _quiet[0] = before


def is_silent() -> bool:
    """Return whether the current output is unwanted."""
    return _quiet[0]


def message_printer(*, quiet: bool) -> Callable[[str], object]:
    """Return a function that prints a sentence for users, or does nothing if they want no messages."""
    return (lambda _: None) if quiet else lambda text: messages.print(text, markup=False)


def prepare_streams() -> None:
    """Make standard output accept any text, and either write all of it or fail.

    Characters that its encoding doesn't support, and bytes in file names that aren't text, are written as escapes.
    """
    if sys.stdout is None:  # the caller closed the stream
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        raw = sys.stdout.buffer
        if isinstance(raw, io.RawIOBase):
            # PYTHONUNBUFFERED: Python doesn't notice when a full disk cuts a write short.
            buffered = io.BufferedWriter(raw)
            sys.stdout = io.TextIOWrapper(buffered, encoding=sys.stdout.encoding, line_buffering=True)
        sys.stdout.reconfigure(errors="backslashreplace")


_printed: list[str] = []
"""The kinds of the JSON documents that this run printed."""


def begin_documents() -> None:
    """Reset the state from an earlier run: its documents, its names for files, and whether it was quiet."""
    _printed.clear()
    set_quiet(quiet=False)
    forget_names()


def is_document_printed() -> bool:
    """Return whether this run printed a document."""
    return bool(_printed)


def print_json(kind: str, version: int, value: Any) -> None:
    """Print ``value`` as a JSON object that begins with its ``schema``, such as ``rocwheel.plan/1``.

    The output is UTF-8, as all JSON is (:rfc:`8259`). If a file name isn't valid text, the output is ASCII, and the
    name's bytes are escaped as in Python's ``surrogateescape``.
    """
    document = {"schema": f"rocwheel.{kind}/{version}", **msgspec.to_builtins(value)}
    _printed.append(kind)
    try:
        data = msgspec.json.format(msgspec.json.encode(document))
    except UnicodeEncodeError:
        data = json.dumps(document, indent=2).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(printable_json(data.decode()).encode() + b"\n")


def print_result(kind: str, text: str, *, json: bool) -> None:
    """Print text unchanged, or as the only field of a JSON document."""
    if json:
        print_json(kind, 1, {"text": text})
    else:
        click.echo(text, nl=False)


def report_error(error: RocwheelError) -> None:
    """Print an error for users to standard error."""
    first, *others = error.lines
    with printing_errors():
        _print_marked("[bold red]error:[/]", first)
        for line in others:
            messages.print(line, markup=False)


def report_first(subject: str, problems: Sequence[RocwheelError]) -> int:
    """Print the errors that `raise_all` would raise, before any results. Return the exit status, which can be 0."""
    from rocwheel.core.workers import raise_all  # short commands have nothing to read

    try:
        raise_all(subject, problems)
    except RocwheelError as e:
        report_error(e)
        return e.exit_status
    return 0


def report_document(error: RocwheelError) -> None:
    """Print the error that ends a command as a document, unless the command has already printed a document."""
    if not is_document_printed():
        print_json("errors", 1, {"exit_status": error.exit_status, "errors": list(_error_facts(error))})


def _error_facts(error: RocwheelError) -> Iterator[dict[str, str]]:
    """Yield the data of an error, or of each problem in the error."""
    for problem in each_problem([error]):
        facts = {name: str(getattr(problem, name, "")) for name in ("source", "found", "expected", "remedy")}
        yield {**facts, "text": str(problem)}


def report_warning(text: str) -> None:
    """Print a warning for users as a single line to standard error."""
    _print_marked("[bold yellow]warning:[/]", text)


def _print_marked(mark: str, text: str) -> None:
    from rich.markup import escape  # most runs print no warning

    messages.print(f"{mark} {escape(in_one_line(text))}")


def setup_logging(*, quiet: bool, verbose: bool) -> None:
    """Send log records to standard error: warnings by default, all with ``verbose``, only errors with ``quiet``."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s", handlers=[_MessageHandler()], force=True)


class _MessageHandler(logging.Handler):
    """Prints each record on its own line, without wrapping. Warnings look like those from `report_warning`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        if record.levelno >= logging.ERROR:
            with printing_errors():
                self._emit(record)
        else:
            self._emit(record)

    def _emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.WARNING and not record.exc_info:
            report_warning(record.getMessage())
        elif not record.exc_info:
            messages.print(record.getMessage(), markup=False)
        else:
            self._emit_with_traceback(record)

    def _emit_with_traceback(self, record: logging.LogRecord) -> None:
        from rich.logging import RichHandler

        handler = RichHandler(console=messages.rich, show_time=False, show_path=False)
        handler.setFormatter(self.formatter)
        handler.emit(record)


MOST_LINES = 10
"""The maximum number of lines printed from a long list, unless the user asks for all lines."""

_Line = TypeVar("_Line")


def first_lines(lines: Sequence[_Line], *, verbose: bool) -> tuple[Sequence[_Line], str]:
    """Return the lines to print from a list, and a note about the other lines, such as ``and 64 more (-v)``."""
    if verbose or len(lines) <= MOST_LINES:
        return lines, ""
    return lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} more (-v)"


def print_line(text: object, *, err: bool = False) -> None:
    """Print a line, to standard error with ``err``. Line endings and other control characters become escapes."""
    if not is_silent():
        click.echo(in_one_line(str(text)), err=err)


def print_text(text: object, *, err: bool = False) -> None:
    """Print rocwheel's own lines, such as a table. Control characters except for line endings become escapes."""
    if not is_silent():
        click.echo(printable(str(text)), err=err)
