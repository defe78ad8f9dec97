"""Words of a shell script: their quotes are removed, and expansions stay as they are written, as references."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from rocwheel.frameworks.jax.words import Language, reference
from rocwheel.frameworks.jax_migration.reading.shell.expansions import end_of_expansion

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WordReader", "held"]

Quoting = Literal["quoted", "unquoted"]

_DOUBLE = re.compile(
    r'(?P<continued>\\\n)|\\(?P<escaped>[$`"\\])|(?P<held>\x03[0-9]+\x03)|(?P<dollar>\$)'
    r"|(?P<tick>`[^`]*`)"
    r'|(?P<end>")|(?P<plain>[^\\$`"\x03]+|(?s:.))'
)
_MOST_UNENDED = 1000
"""Looking for the end of an expansion may take the rest of the text; this many without one are looked at."""


def held(index: int) -> str:
    r"""Return characters that stand for the reference of this index in a text for `WordReader`."""
    return f"\3{index}\3"


class WordReader:
    """A place in a text, and the word that is being read there."""

    def __init__(self, text: str, first_line: int, references: Sequence[tuple[str, Language]]) -> None:
        self.text = text
        self.position = 0
        self.line = first_line
        self.first_line = first_line
        """The line in which the word begins."""
        self.unclosed: tuple[int, str] | None = None
        """The first quote without an end: its line and itself."""
        self._references = references
        self._parts: list[str] | None = None
        self._unended = 0

    @property
    def is_inside(self) -> bool:
        """Whether a word has begun, be it an empty one in quotes."""
        return self._parts is not None

    @property
    def word(self) -> str:
        """The word so far."""
        return "".join(self._parts or ())

    def take(self) -> str:
        """Return the word, which ends here."""
        word, self._parts = self.word, None
        return word

    def add(self, text: str) -> None:
        """Add literal text to the word, which begins with it if there is none."""
        if self._parts is None:
            self._parts = []
            self.first_line = self.line
        self._parts.append(text)

    def read(self, kind: str, mark: str) -> None:
        """Read the part of a word that begins with ``mark``, behind which the position is."""
        if kind == "escaped":
            self.add(mark[1])
        elif kind == "single":
            self._single(mark[1:-1])
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

    def _single(self, text: str) -> None:
        self.add("")
        for part in re.split("(\3[0-9]+\3)", text):
            if part.startswith("\3") and len(part) > 2:
                self._held(part, "quoted")
            else:
                self.add(part)

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
