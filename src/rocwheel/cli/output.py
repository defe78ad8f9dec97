"""What commands print: results to standard output, messages to standard error."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeElapsedColumn, TransferSpeedColumn
from rich.progress import Progress as Bar
from rich.segment import Segment
from rich.text import Text

from rocwheel.foundation.errors import ProblemsError
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from rocwheel.foundation.errors import RocwheelError

__all__ = [
    "JsonOption",
    "QuietOption",
    "VerboseOption",
    "cell",
    "make_progress",
    "messages",
    "prepare_streams",
    "print_json",
    "print_line",
    "print_table",
    "print_text",
    "printable",
    "report_error",
    "report_failure",
    "report_warning",
    "results",
    "setup_logging",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON (versioned, documented).")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no messages except errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print more about what is done and why.")]

_UNLIMITED = 100_000
_printed: list[str] = []
"""The kinds of the JSON documents that this run has printed."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Those of ASCII and ISO 8859, separators of lines and paragraphs, and what turns the direction of text around."""


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


def _console(**settings: Any) -> Console:
    """Return a console that prints no control characters but its own."""
    console = _Terminal(highlight=False, emoji=False, **settings)
    console.push_render_hook(_PrintableHook())
    return console


def printable(text: str) -> str:
    """Return ``text`` with control characters as escapes, except tabs and line ends: file names may contain them."""
    return _CONTROL.sub(lambda match: _escape(ord(match[0])), text)


def _escape(character: int) -> str:
    return f"\\x{character:02x}" if character < 1 << 8 else f"\\u{character:04x}"


def cell(text: str) -> Text:
    """Return a cell of a table, whose text is no markup, with the characters escaped that Rich would leave out."""
    return Text(printable(text))


messages = _console(stderr=True, soft_wrap=True)
"""Standard error, for people."""
results = _console(soft_wrap=True)
"""Standard output, for text other than tables."""


def prepare_streams() -> None:
    """Make standard output accept any text, and either write all of it or fail.

    Characters that its encoding lacks, and bytes of file names that are not text, are written as escapes.
    """
    _printed.clear()
    if sys.stdout is None:  # closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        raw = sys.stdout.buffer
        if isinstance(raw, io.RawIOBase):
            # PYTHONUNBUFFERED: Python doesn't notice when a full disk cuts a write short.
            buffered = io.BufferedWriter(raw)
            sys.stdout = io.TextIOWrapper(buffered, encoding=sys.stdout.encoding, line_buffering=True)
        sys.stdout.reconfigure(errors="backslashreplace")


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
    sys.stdout.buffer.write(data + b"\n")


def print_line(text: object, *, err: bool = False) -> None:
    """Print a line of text, to standard error with ``err``; control characters in it, but for line ends, as escapes."""
    typer.echo(printable(str(text)), err=err)


def print_table(table: Table) -> None:
    """Print a table as wide as its text, so that no name is cut short or folded in a log."""
    table.columns = [replace(column, _cells=list(map(_printable_cell, column.cells))) for column in table.columns]
    _console(width=_UNLIMITED).print(table)


def _printable_cell(content: RenderableType) -> RenderableType:
    return printable(content) if isinstance(content, str) else content


def report_error(error: RocwheelError) -> None:
    """Print an error for people, to standard error."""
    messages.print(f"[bold red]error:[/] {escape(printable(str(error)))}")


def report_failure(error: RocwheelError, *, json: bool = False) -> None:
    """Print the error that ends a command; with ``json`` also as a document, unless the command has printed one."""
    report_error(error)
    if json and not _printed:
        print_json("errors", 1, {"exit_status": error.exit_status, "errors": list(_error_facts(error))})


def _error_facts(error: RocwheelError) -> Iterator[dict[str, str]]:
    """Yield the facts of an error, or of each problem that it holds."""
    if isinstance(error, ProblemsError):
        for problem in error.problems:
            yield from _error_facts(problem)
        return
    facts = {name: str(getattr(error, name, "")) for name in ("source", "found", "expected", "remedy")}
    yield {**facts, "text": str(error)}


def report_warning(text: str) -> None:
    """Print a warning for people, to standard error."""
    messages.print(f"[bold yellow]warning:[/] {escape(printable(text))}")


def setup_logging(*, quiet: bool, verbose: bool) -> None:
    """Send log records to standard error: warnings by default, all with ``verbose``, errors only with ``quiet``."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s", handlers=[_MessageHandler()], force=True)


class _MessageHandler(RichHandler):
    """Print records, each in its own line that is never folded, and warnings as `report_warning` does."""

    def __init__(self) -> None:
        super().__init__(console=messages, show_time=False, show_path=False)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        if record.levelno == logging.WARNING and not record.exc_info:
            report_warning(record.getMessage())
        elif not record.exc_info:
            messages.print(record.getMessage(), markup=False)
        else:
            super().emit(record)


def make_progress(*, quiet: bool) -> Progress:
    """Return a bar on a terminal, plain lines in a log, nothing when ``quiet``."""
    if quiet:
        return SILENT
    return _BarProgress() if messages.is_terminal else _LineProgress()


class _BarProgress:
    def __init__(self) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeElapsedColumn(),
            console=messages,
            transient=True,
        )
        self._task: TaskID | None = None

    def begin(self, label: str, total: int) -> None:
        self.end()
        self._task = self._bar.add_task(label, total=total)
        self._bar.start()

    def advance(self, amount: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, amount)

    def end(self) -> None:
        if self._task is not None:
            self._bar.stop()
            self._bar.remove_task(self._task)
            self._task = None


class _LineProgress:
    """Print a line when a step begins, and one at each quarter of it."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._reported = "", 0, 0, 0

    def begin(self, label: str, total: int) -> None:
        self._label, self._total, self._done, self._reported = printable(label), total, 0, 0
        messages.print(f"{self._label} ...", markup=False)

    def advance(self, amount: int) -> None:
        self._done += amount
        quarter = 4 * self._done // self._total if self._total else 4
        if self._reported < quarter < 4:
            self._reported = quarter
            messages.print(f"{self._label} {25 * quarter} %", markup=False)

    def end(self) -> None:
        self._label = ""


def print_text(kind: str, text: str, *, json: bool) -> None:
    """Print a text as it is, or as the only field of a JSON document."""
    if json:
        print_json(kind, 1, {"text": text})
    else:
        typer.echo(text, nl=False)
