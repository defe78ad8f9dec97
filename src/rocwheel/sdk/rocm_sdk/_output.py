"""Writes to standard output and error with a separate error type, and escapes control characters in text."""

from __future__ import annotations

import io
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO


class OutputError(Exception):
    """Standard output can't be written to.

    This is not an `OSError`, because argparse ignores such errors, and commands attribute them to files.
    """

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"the output: can't be written ({reason.strerror}). Check the destination.")
        self.is_broken_pipe = isinstance(reason, BrokenPipeError)


class _Output:
    """A stream that raises `OutputError` when a write fails."""

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
    """A stream that silently drops text that it can't write, because there is nowhere to report the failure."""

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
    """Make standard output either write everything or raise `OutputError`, and make standard error ignore failures.

    Text for a closed stream is dropped.
    """
    sys.stdout = _Output(_buffered(sys.stdout or _nowhere()))
    sys.stderr = _Messages(sys.stderr or _nowhere())


def drop_output() -> None:
    """Redirect standard output to the null device, so that Python's final flush doesn't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", errors="backslashreplace")


def _buffered(stream: TextIO) -> TextIO:
    """Return a buffered stream. Without a buffer (PYTHONUNBUFFERED), Python ignores partial writes."""
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


CONTROL = (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""ASCII and ISO 8859 control characters, line and paragraph separators, and bidirectional control characters."""

ESCAPES = {code: f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" for code in CONTROL}


COMMAND = re.compile(r"^\s*:(?=:)|#(?=#[a-z]*\[)", re.MULTILINE)
"""The beginning of a workflow command in the log of a CI service, such as ``::`` or ``##[``."""


def printable(text: str) -> str:
    """Return text with its control characters and workflow commands escaped, except for tabs and line endings."""
    return without_commands(text.translate(ESCAPES))


def in_one_line(text: str) -> str:
    """Return text with its control characters escaped, including tabs and line endings.

    A name must not be able to start a new line.
    """
    return without_commands(text.translate(ESCAPES).replace("\n", "\\n").replace("\t", "\\t"))


def without_commands(text: str) -> str:
    """Return text in which no line begins a workflow command."""
    return COMMAND.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}", text)


def warn(text: str) -> None:
    """Print a warning to standard error."""
    sys.stderr.write(f"rocm-sdk: warning: {in_one_line(text)}\n")


def listed(names: list[str], shown: int = 3) -> str:
    """Return names formatted for a message, limited to the first few names of a long list."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
