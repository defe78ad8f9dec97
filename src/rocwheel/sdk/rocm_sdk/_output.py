"""Standard output, whose failures are no errors of files, and standard error, whose failures stop nothing."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

__all__ = ["OutputError", "drop_output", "prepare_streams"]


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
