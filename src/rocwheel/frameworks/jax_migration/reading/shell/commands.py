"""Simple commands of shell scripts, as far as calls of a program need them (POSIX.1-2017, "Shell Command Language")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax_migration.reading.shell.words import WordReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.words import Language

__all__ = ["ShellCommand", "shell_commands"]

_TOKEN = re.compile(
    r"(?P<continued>\\\n)"
    r"|(?P<escaped>\\(?s:.))"
    r"|(?P<single>'[^']*')"
    r'|(?P<double>")'
    r"|(?P<dollar>\$)"
    r"|(?P<tick>`(?:[^`\\]|\\(?s:.))*`)"
    r"|(?P<held>\x03[0-9]+\x03)"
    r"|(?P<blank>[ \t\r\f\v]+)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<heredoc><<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>[A-Za-z_]\w*)['\"]?)"
    r"|(?P<operator>[\n;&|()<>])"
    r"|(?P<plain>[^\\'\"$`\x03 \t\r\f\v\n;&|()<>\#]+)"
    r"|(?P<other>(?s:.))"
)
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")


class ShellCommand(msgspec.Struct, frozen=True):
    """A simple command with its assignments, redirections left out."""

    first_line: int
    last_line: int
    words: tuple[str, ...]
    array: tuple[str, ...] | None = None
    """The elements, if the last word begins an array: ``NAME=(...)``."""
    chained: bool = False
    """Whether it runs by the outcome of the one before it: behind ``&&`` or ``||``."""
    unclosed: tuple[int, str] | None = None
    """The first quote in it that has no end: its line and itself."""


def shell_commands(
    text: str, first_line: int = 1, references: Sequence[tuple[str, Language]] = ()
) -> Iterator[ShellCommand]:
    """Yield the simple commands of a script; the text may hold `references` by `held`.

    Text that no shell would read gives the commands that are seen in it; here-documents are passed over.
    """
    return _Lexer(WordReader(text, first_line, references)).commands()


class _Lexer:
    """The state between tokens: the words of the command so far, and the reader of the next one."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self.first_line = reader.line
        self.words: list[str] = []
        self.array: list[str] | None = None
        self.heredocs: list[str] = []
        self.drops_word = False
        self.chained = False

    def commands(self) -> Iterator[ShellCommand]:
        reader = self.reader
        while match := _TOKEN.match(reader.text, reader.position):
            reader.position = match.end()
            kind, mark = match.lastgroup or "", match[0]
            if kind == "comment" and reader.is_inside:
                # A hash inside a word is a part of it.
                reader.position = match.start() + 1
                reader.add("#")
            elif kind == "heredoc":
                self._end_word()
                self.heredocs.append(match["end"])
            elif kind == "operator":
                yield from self._operator(mark)
            elif kind == "blank":
                self._end_word()
            elif kind not in {"continued", "comment"}:
                reader.read(kind, mark)
            reader.line += mark.count("\n") if kind not in {"operator", "double", "dollar"} else 0
        self._end_word()
        yield from self._end_command()

    def _operator(self, mark: str) -> Iterator[ShellCommand]:
        reader = self.reader
        if mark in "<>":
            self._redirection()
            return
        if mark == "(" and _ARRAY.fullmatch(reader.word):
            self._end_word()
            self.array = []
            return
        self._end_word()
        if self.array is not None and mark == "\n":
            reader.line += 1
            return
        yield from self._end_command()
        self.chained = reader.text[reader.position - 2 : reader.position] in {"&&", "||"}
        if mark == "\n":
            reader.line += 1
            self._skip_heredocs()

    def _redirection(self) -> None:
        """Leave out what follows, and the number of a file descriptor before it."""
        reader = self.reader
        if reader.word.isdecimal():
            reader.take()
        self._end_word()
        following = reader.text[reader.position : reader.position + 1]
        self.drops_word = following not in "<>&" or self.drops_word
        if following == "&":
            reader.position += 1
            self.drops_word = True

    def _end_word(self) -> None:
        if not self.reader.is_inside:
            return
        word = self.reader.take()
        if self.drops_word:
            self.drops_word = False
        elif self.array is not None:
            self.array.append(word)
        else:
            if not self.words:
                self.first_line = self.reader.first_line
            self.words.append(word)

    def _end_command(self) -> Iterator[ShellCommand]:
        self.drops_word = False
        if self.words:
            array = None if self.array is None else tuple(self.array)
            reader, words = self.reader, tuple(self.words)
            yield ShellCommand(self.first_line, reader.line, words, array, self.chained, reader.unclosed)
            reader.unclosed = None
        self.words, self.array = [], None

    def _skip_heredocs(self) -> None:
        reader = self.reader
        for end in self.heredocs:
            while reader.position < len(reader.text):
                newline = reader.text.find("\n", reader.position)
                stop = len(reader.text) if newline < 0 else newline + 1
                found = reader.text[reader.position : stop].strip()
                reader.position = stop
                reader.line += 1
                if found == end:
                    break
        self.heredocs = []
