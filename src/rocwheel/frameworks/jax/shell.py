"""Parses shell scripts into words, expansions, and simple commands, as far as finding calls requires (POSIX.1-2017)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.words import reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.words import Language, Quoting


_NAME = re.compile(r"\$(?:\{(?:[^{}\n'\"`$]|\$\w+(?!\w)|\$\{[^{}\n]*\})*\}|[A-Za-z_]\w*|[0-9@*#?$!-])")
"""A name in braces matches as a whole. Otherwise, several names could match in exponentially many ways."""
_PARENTHESIS = re.compile(r"[()'\"\\\n]|[^()'\"\\\n]+")
_DEEPEST = 20


def end_of_expansion(text: str, start: int) -> int | None:
    """Return the end of the expansion that begins with a dollar sign at ``start``, or `None` if it is no expansion."""
    if text.startswith("$(", start):
        return _end_of_substitution(text, start + 2)
    match = _NAME.match(text, start)
    return match.end() if match else None


def _end_of_substitution(text: str, position: int) -> int | None:
    quotes = [""]  # the open quote inside each open parenthesis, the innermost last
    while match := _PARENTHESIS.match(text, position):
        mark, quote = match[0], quotes[-1]
        position = match.end()
        if quote == "'":
            quotes[-1] = "" if mark == "'" else quote
        elif mark == "\\":
            position += 1
        elif mark == '"' or (mark == "'" and not quote):
            quotes[-1] = "" if quote else mark
        elif mark == "(" and (not quote or text[match.start() - 1] == "$"):
            quotes.append("")
            if len(quotes) > _DEEPEST:
                return None
        elif mark == ")" and not quote:
            quotes.pop()
            if not quotes:
                return position
    return None


_DOUBLE = re.compile(
    r'(?P<continued>\\\n)|\\(?P<escaped>[$`"\\])|(?P<held>\x03[0-9]+\x03)|(?P<dollar>\$)'
    r"|(?P<tick>`[^`]*`)"
    r'|(?P<end>")|(?P<plain>[^\\$`"\x03]+|(?s:.))'
)
_MOST_UNENDED = 1000
"""The maximum number of unterminated expansions. The search for the end of each can scan the rest of the text."""


def held(index: int) -> str:
    r"""Return the placeholder for the reference with this index in a text for `WordReader`."""
    return f"\3{index}\3"


class WordReader:
    """A position in a text, and the current word at this position."""

    def __init__(self, text: str, first_line: int, references: Sequence[tuple[str, Language]]) -> None:
        self.text = text
        self.position = 0
        self.line = first_line
        self.first_line = first_line
        """The line on which the word begins."""
        self.unclosed: tuple[int, str] | None = None
        """The first unclosed quote: its line number, and the quote itself."""
        self._references = references
        self._parts: list[str] | None = None
        self._unended = 0

    @property
    def is_inside(self) -> bool:
        """Whether a word has begun, even if it is still an empty quoted string."""
        return self._parts is not None

    @property
    def word(self) -> str:
        """The word so far."""
        return "".join(self._parts or ())

    def take(self) -> str:
        """Return the word, and prepare for the next word."""
        word, self._parts = self.word, None
        return word

    def add(self, text: str) -> None:
        """Add literal text to the word. If there is no current word, begin one."""
        if self._parts is None:
            self._parts = []
            self.first_line = self.line
        self._parts.append(text)

    def read(self, kind: str, mark: str) -> None:
        """Read the part of a word that begins with ``mark``. The position is already after ``mark``."""
        if kind == "escaped":
            self.add(mark[1])
        elif kind == "single":
            self.add("")
            for part in re.split("(\3[0-9]+\3)", mark[1:-1]):
                if part.startswith("\3") and len(part) > 2:
                    self._held(part, "quoted")
                else:
                    self.add(part)
        elif kind == "double":
            self.add("")
            self._double()
        elif kind == "dollar":
            self._dollar("unquoted")
        elif kind == "tick":
            self.add(reference(mark, "shell", "unquoted"))
        elif kind == "held":
            self._held(mark, "unquoted")
        else:
            if mark == "'":
                self.unclosed = self.unclosed or (self.line, mark)
            self.add(mark)

    def _held(self, mark: str, quoting: Quoting) -> None:
        index = int(mark.strip("\3"))
        if index < len(self._references):
            text, language = self._references[index]
            self.add(reference(text, language, quoting))

    def _dollar(self, quoting: Quoting) -> None:
        start = self.position - 1
        end = end_of_expansion(self.text, start) if self._unended < _MOST_UNENDED else None
        if end is None:
            self._unended += 1
            self.add("$")
            return
        text = self.text[start:end]
        self.position = end
        self.line += text.count("\n")
        self.add(reference(text, "shell", quoting))

    def _double(self) -> None:
        line = self.line
        while match := _DOUBLE.match(self.text, self.position):
            self.position = match.end()
            kind = match.lastgroup
            if kind == "end":
                return
            if kind == "dollar":
                self._dollar("quoted")
                continue
            self.line += match[0].count("\n")
            if kind == "held":
                self._held(match[0], "quoted")
            elif kind == "tick":
                self.add(reference(match[0], "shell"))
            elif kind != "continued":
                self.add(match["escaped"] or match[0])
        self.unclosed = self.unclosed or (line, '"')


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
    """A simple command, including assignments but not redirections."""

    first_line: int
    last_line: int
    words: tuple[str, ...]
    array: tuple[str, ...] | None = None
    """The elements of the array if the last word begins an array: ``NAME=(...)``."""
    chained: bool = False
    """Whether the command runs only depending on the previous command's result, after ``&&`` or ``||``."""
    unclosed: tuple[int, str] | None = None
    """The first unclosed quote in the command: its line number, and the quote itself."""


def shell_commands(
    text: str, first_line: int = 1, references: Sequence[tuple[str, Language]] = ()
) -> Iterator[ShellCommand]:
    """Yield the simple commands in a script. In the text, results of `held` represent ``references``.

    Invalid shell syntax yields the recognizable commands. Here-documents are skipped.
    """
    return _Lexer(WordReader(text, first_line, references)).commands()


class _Lexer:
    """The state between tokens: the words of the current command, and the reader for the next word."""

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
                # A hash inside a word doesn't begin a comment.
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
        """Drop the target of a redirection, and the number of a file descriptor before the operator."""
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
