"""A checkout as values: the texts of its files, and what git says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Checkout", "SourceFile", "read_source", "refuse_mixed"]

_LF, _CRLF = "\n", "\r\n"


class SourceFile(msgspec.Struct, frozen=True):
    """A text file. Bytes that are no UTF-8 are kept as Python's ``surrogateescape`` spells them."""

    text: str
    """The text, with ``\\n`` at the end of each line whatever the file has."""
    line_end: str = _LF
    is_executable: bool = False
    is_mixed: bool = False
    """Whether lines end in both ways: such a text keeps its ``\\r``."""

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.text.replace(_LF, self.line_end).encode(errors="surrogateescape")

    def with_text(self, text: str) -> SourceFile:
        """Return the same file with another text."""
        return msgspec.structs.replace(self, text=text)


def read_source(data: bytes, *, is_executable: bool = False) -> SourceFile:
    """Return a file of the given bytes."""
    text = data.decode(errors="surrogateescape")
    ends = text.count(_LF)
    if "\r" in text and text.count(_CRLF) == ends == text.count("\r"):
        return SourceFile(text.replace(_CRLF, _LF), _CRLF, is_executable)
    return SourceFile(text, _LF, is_executable, is_mixed="\r" in text)


class Checkout(msgspec.Struct, frozen=True):
    """The tracked text files of a git checkout, by their paths below its root."""

    files: dict[str, SourceFile]
    unread: dict[str, str] = {}
    """Why other files that name build.py were not read, by their paths."""

    def text(self, path: str) -> str:
        """Return a file's text, empty if there is no such file."""
        return self.files[path].text if path in self.files else ""

    def below(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files below a folder, sorted."""
        return (path for path in sorted(self.files) if path.startswith(f"{folder}/"))


def refuse_mixed(path: str, file: SourceFile) -> None:
    """Raise `InputError` for a file whose lines end in both ways: no edit could tell which way a new line ends."""
    if file.is_mixed:
        found = "has lines that end in CR LF, and others that don't"
        raise InputError(path, found, expected="one kind of line ends", remedy="Convert and commit it first.")
