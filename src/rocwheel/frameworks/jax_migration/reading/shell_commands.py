"""Simple commands of shell scripts, as far as calls of a program need them (POSIX.1-2017, "Shell Command Language").

Words are split and their quotes removed; expansions stay as they are written, as references.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.words import Language, reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ShellCommand", "held", "shell_commands"]

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
_DOUBLE = re.compile(
    r'(?P<continued>\\\n)|\\(?P<escaped>[$`"\\])|(?P<held>\x03[0-9]+\x03)|(?P<dollar>\$)'
    r"|(?P<tick>`[^`]*`)"
    r'|(?P<end>")|(?P<plain>[^\\$`"\x03]+|(?s:.))'
)
_NAME = re.compile(r"\$(?:\{(?:[^{}\n'\"`$]|\$\w+|\$\{[^{}\n]*\})*\}|[A-Za-z_]\w*|[0-9@*#?$!-])")
_PARENTHESIS = re.compile(r"[()'\"\\\n]|[^()'\"\\\n]+")
_DEEPEST = 20
_MOST_UNENDED = 1000
"""Looking for the end of an expansion may take the rest of the text; this many without one are looked at."""
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


def held(index: int) -> str:
    r"""Return characters that stand for the reference of this index in a text for `shell_commands`."""
    return f"\3{index}\3"


class _Lexer:
    """The state between tokens: the words of the command so far, and the one that is being read."""

    def __init__(self, text: str, first_line: int, references: Sequence[tuple[str, Language]]) -> None:
        self.text = text
        self.position = 0
        self.line = first_line
        self.references = references
        self.words: list[str] = []
        self.word: list[str] | None = None
        self.first_line = first_line
        self.heredocs: list[str] = []
        self.drops_word = False
        self.array: list[str] | None = None
        self.chained = False
        self.unended = 0

    def commands(self) -> Iterator[ShellCommand]:
        while match := _TOKEN.match(self.text, self.position):
            self.position = match.end()
            kind, mark = match.lastgroup or "", match[0]
            if kind == "comment" and self.word is not None:
                # A hash inside a word is a part of it.
                self.position = match.start() + 1
                self._add("#")
            elif kind == "heredoc":
                self._end_word()
                self.heredocs.append(match["end"])
            elif kind == "operator":
                yield from self._operator(mark)
            elif kind in {"blank", "continued", "comment"}:
                if kind == "blank":
                    self._end_word()
            else:
                self._part(kind, mark)
            self.line += mark.count("\n") if kind not in {"operator", "double", "dollar"} else 0
        self._end_word()
        yield from self._end_command()

    def _part(self, kind: str, mark: str) -> None:
        if kind == "escaped":
            self._add(mark[1])
        elif kind == "single":
            self._single(mark[1:-1])
        elif kind == "double":
            self._add("")
            self._double()
        elif kind == "dollar":
            self._dollar("unquoted")
        elif kind == "tick":
            self._add(reference(mark, "shell", "unquoted"))
        elif kind == "held":
            self._held(mark, "unquoted")
        else:
            self._add(mark)

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = []
            if not self.words and self.array is None:
                self.first_line = self.line
        self.word.append(text)

    def _single(self, text: str) -> None:
        parts = re.split("(\3[0-9]+\3)", text)
        self._add("")
        for part in parts:
            if part.startswith("\3") and len(part) > 2:
                self._held(part, "quoted")
            else:
                self._add(part)

    def _held(self, mark: str, quoting: str) -> None:
        index = int(mark.strip("\3"))
        if index < len(self.references):
            text, language = self.references[index]
            self._add(reference(text, language, "quoted" if quoting == "quoted" else "unquoted"))

    def _dollar(self, quoting: str) -> None:
        start = self.position - 1
        end = _end_of_expansion(self.text, start) if self.unended < _MOST_UNENDED else None
        if end is None:
            self.unended += 1
            self._add("$")
            return
        text = self.text[start:end]
        self.position = end
        self.line += text.count("\n")
        self._add(reference(text, "shell", "quoted" if quoting == "quoted" else "unquoted"))

    def _double(self) -> None:
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
                self._add(reference(match[0], "shell"))
            elif kind != "continued":
                self._add(match["escaped"] or match[0])

    def _operator(self, mark: str) -> Iterator[ShellCommand]:
        if mark in "<>":
            if self.word and "".join(self.word).isdecimal():
                self.word = None
            self._end_word()
            self.drops_word = self.text[self.position : self.position + 1] not in "<>&" or self.drops_word
            if self.text[self.position : self.position + 1] == "&":
                self.position += 1
                self.drops_word = True
            return
        if mark == "(" and self.word is not None and _ARRAY.fullmatch("".join(self.word)):
            self._end_word()
            self.array = []
            return
        self._end_word()
        if self.array is not None and mark == "\n":
            self.line += 1
            return
        yield from self._end_command()
        self.chained = self.text[self.position - 2 : self.position] in {"&&", "||"}
        if mark == "\n":
            self.line += 1
            self._skip_heredocs()

    def _end_word(self) -> None:
        if self.word is None:
            return
        word = "".join(self.word)
        self.word = None
        if self.drops_word:
            self.drops_word = False
        elif self.array is not None:
            self.array.append(word)
        else:
            self.words.append(word)

    def _end_command(self) -> Iterator[ShellCommand]:
        self.drops_word = False
        if self.words:
            array = None if self.array is None else tuple(self.array)
            yield ShellCommand(self.first_line, self.line, tuple(self.words), array, self.chained)
        self.words, self.array = [], None

    def _skip_heredocs(self) -> None:
        for end in self.heredocs:
            while self.position < len(self.text):
                newline = self.text.find("\n", self.position)
                stop = len(self.text) if newline < 0 else newline + 1
                found = self.text[self.position : stop].strip()
                self.position = stop
                self.line += 1
                if found == end:
                    break
        self.heredocs = []


def shell_commands(
    text: str, first_line: int = 1, references: Sequence[tuple[str, Language]] = ()
) -> Iterator[ShellCommand]:
    """Yield the simple commands of a script; the text may hold `references` by `held`.

    Text that no shell would read gives the commands that are seen in it; here-documents are passed over.
    """
    return _Lexer(text, first_line, references).commands()


def _end_of_expansion(text: str, start: int) -> int | None:
    """Return the end of an expansion that begins with a dollar sign; None if there is none."""
    if text.startswith("$(", start):
        return _end_of_substitution(text, start + 2)
    match = _NAME.match(text, start)
    return match.end() if match else None


def _end_of_substitution(text: str, position: int) -> int | None:
    depth, quote = 1, ""
    while match := _PARENTHESIS.match(text, position):
        mark = match[0]
        position = match.end()
        if mark == "\\":
            position += 1
        elif mark in {"'", '"'}:
            quote = "" if quote == mark else quote or mark
        elif quote == "'":
            continue
        elif mark == "(":
            depth += 1
            if depth > _DEEPEST:
                return None
        elif mark == ")":
            depth -= 1
            if not depth:
                return position
    return None
