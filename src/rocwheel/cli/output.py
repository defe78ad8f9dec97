"""What commands print: results to standard output, messages to standard error, safe on any terminal."""

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
from rocwheel.core.messages import in_one_line, printable
from rocwheel.core.shown_names import forget_names, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console


def output_width() -> int | None:
    """Return the columns of the terminal that standard output is, or those of ``COLUMNS``; none if it is no terminal.

    What scripts read has no width, even where somebody has exported that variable.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


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
        """Whether the output is a terminal, or is to be taken for one."""
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
"""Standard error, for people."""
results = LazyConsole()
"""Standard output, for text other than tables."""


_quiet = [False]
"""Whether only errors are printed, and documents that are asked for."""


def set_quiet(*, quiet: bool) -> None:
    """Print only errors from now on, or everything."""
    _quiet[0] = quiet


@contextmanager
def printing_errors() -> Iterator[None]:
    """Print what the block prints even where only errors are wanted, as it says what the command fails for."""
    before = _quiet[0]
    _quiet[0] = False
    try:
        yield
    finally:
        _quiet[0] = before


def is_silent() -> bool:
    """Return whether what is printed now is not wanted."""
    return _quiet[0]


def message_printer(*, quiet: bool) -> Callable[[str], object]:
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


_printed: list[str] = []
"""The kinds of the JSON documents that this run has printed."""


def begin_documents() -> None:
    """Forget the documents of a run before this one, what that one called files, and whether it was quiet."""
    _printed.clear()
    set_quiet(quiet=False)
    forget_names()


def is_document_printed() -> bool:
    """Return whether this run has printed a document."""
    return bool(_printed)


def print_json(kind: str, version: int, value: Any) -> None:
    """Print ``value`` as one JSON object that begins with its ``schema`` (such as ``rocwheel.plan/1``).

    It is UTF-8, as JSON always is (:rfc:`8259`). If a file name is not text, it is ASCII only, and the name's bytes
    are escapes as in Python's ``surrogateescape``.
    """
    document = {"schema": f"rocwheel.{kind}/{version}", **msgspec.to_builtins(value)}
    _printed.append(kind)
    try:
        data = msgspec.json.format(msgspec.json.encode(document))
    except UnicodeEncodeError:
        data = json.dumps(document, indent=2).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(shown(data.decode()).encode() + b"\n")


def print_result(kind: str, text: str, *, json: bool) -> None:
    """Print a text as it is, or as the only field of a JSON document."""
    if json:
        print_json(kind, 1, {"text": text})
    else:
        click.echo(text, nl=False)


def report_error(error: RocwheelError) -> None:
    """Print an error for people, to standard error."""
    first, *others = error.lines
    with printing_errors():
        _print_marked("[bold red]error:[/]", first)
        for line in others:
            messages.print(line, markup=False)


def report_first(subject: str, problems: Sequence[RocwheelError]) -> int:
    """Print at once what `raise_all` would raise, as results may follow from it. Return its exit status, 0 without."""
    from rocwheel.core.workers import raise_all  # short commands have nothing to read

    try:
        raise_all(subject, problems)
    except RocwheelError as e:
        report_error(e)
        return e.exit_status
    return 0


def report_document(error: RocwheelError) -> None:
    """Print the error that ends a command as a document, unless the command has printed one."""
    if not is_document_printed():
        print_json("errors", 1, {"exit_status": error.exit_status, "errors": list(_error_facts(error))})


def _error_facts(error: RocwheelError) -> Iterator[dict[str, str]]:
    """Yield the facts of an error, or of each problem that it holds."""
    for problem in each_problem([error]):
        facts = {name: str(getattr(problem, name, "")) for name in ("source", "found", "expected", "remedy")}
        yield {**facts, "text": str(problem)}


def report_warning(text: str) -> None:
    """Print a warning for people in one line, to standard error."""
    _print_marked("[bold yellow]warning:[/]", text)


def _print_marked(mark: str, text: str) -> None:
    from rich.markup import escape  # most runs have nothing to say

    messages.print(f"{mark} {escape(in_one_line(text))}")


def setup_logging(*, quiet: bool, verbose: bool) -> None:
    """Send log records to standard error: warnings by default, all with ``verbose``, errors only with ``quiet``."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s", handlers=[_MessageHandler()], force=True)


class _MessageHandler(logging.Handler):
    """Print records, each in its own line that is never folded, and warnings as `report_warning` does."""

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
"""The lines that are printed of a long list, unless all are asked for."""

_Line = TypeVar("_Line")


def first_lines(lines: Sequence[_Line], *, verbose: bool) -> tuple[Sequence[_Line], str]:
    """Return the lines of a list that are printed, and what is said of the others, such as ``and 64 more (-v)``."""
    if verbose or len(lines) <= MOST_LINES:
        return lines, ""
    return lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} more (-v)"


def print_line(text: object, *, err: bool = False) -> None:
    """Print one line, to standard error with ``err``: line ends and other control characters in it as escapes."""
    if not is_silent():
        click.echo(in_one_line(str(text)), err=err)


def print_text(text: object, *, err: bool = False) -> None:
    """Print lines that are ours, such as a table; control characters in them, but for line ends, as escapes."""
    if not is_silent():
        click.echo(printable(str(text)), err=err)
