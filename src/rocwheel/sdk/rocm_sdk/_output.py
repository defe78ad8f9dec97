"""Standard output and error, whose failures are no errors of files, and text without control characters."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO


class OutputError(Exception):
    """Standard output can't be written. It is no OSError: argparse ignores these, commands take them for files'."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"the output: can't be written ({reason.strerror}). Check where it goes.")
        self.is_broken_pipe = isinstance(reason, BrokenPipeError)


class _Output:
    """A stream that raises `OutputError` when it can't be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as e:
            raise OutputError(e) from e

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as e:
            raise OutputError(e) from e


class _Messages(_Output):
    """A stream that loses what can't be written: there is nowhere left to say so."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OutputError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OutputError:
            return


def prepare_streams() -> None:
    """Make standard output either write all or raise `OutputError`, and standard error never fail.

    One that the caller closed leads nowhere.
    """
    sys.stdout = _Output(_buffered(sys.stdout or _nowhere()))
    sys.stderr = _Messages(sys.stderr or _nowhere())


def drop_output() -> None:
    """Redirect standard output to nowhere, so that Python's own last flush doesn't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", errors="backslashreplace")


def _buffered(stream: TextIO) -> TextIO:
    """Return a stream with a buffer. Without (PYTHONUNBUFFERED), Python overlooks that a disk cut a write short."""
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


CONTROL = (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Those of ASCII and ISO 8859, separators of lines and paragraphs, and what turns the direction of text around."""

ESCAPES = {code: f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" for code in CONTROL}


def printable(text: str) -> str:
    """Return a text with control characters as escapes, except tabs and line ends."""
    return text.translate(ESCAPES)


def in_one_line(text: str) -> str:
    """Return a text as `printable` does, with tabs and line ends as escapes, too: a name must not begin a line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def warn(text: str) -> None:
    """Print a warning to standard error."""
    sys.stderr.write(f"rocm-sdk: warning: {in_one_line(text)}\n")


def listed(names: list[str], shown: int = 3) -> str:
    """Return names for a message, the first few of many."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
