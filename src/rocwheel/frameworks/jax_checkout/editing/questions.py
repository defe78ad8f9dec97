"""Marked comments that ask what the migration can't decide."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MARK", "Question", "ask", "questions_in", "without_question"]

MARK = "# rocwheel asks: "
"""How such a comment begins; its further lines begin with ``#`` and blanks."""

_WIDTH = 100
_INDENT = "#   "
_COMMENT = re.compile(r"^[ \t]*# rocwheel asks: .*\n(?:[ \t]*#   .*\n)*", re.MULTILINE)


class Question(msgspec.Struct, frozen=True):
    """A question with the file and the line where it stands."""

    path: str
    line: int
    text: str


def ask(text: str, indent: str = "") -> str:
    """Return the comment's lines."""
    lines = textwrap.wrap(
        MARK + text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def questions_in(path: str, text: str) -> Iterator[Question]:
    """Yield the questions that a file asks."""
    for match in _COMMENT.finditer(text):
        lines = [line.strip() for line in match[0].splitlines()]
        words = [lines[0].removeprefix(MARK), *(line.removeprefix("#").strip() for line in lines[1:])]
        yield Question(path, text.count("\n", 0, match.start()) + 1, " ".join(words))


def without_question(text: str, question: str) -> str:
    """Return a text without the comment that asks this."""
    for match in _COMMENT.finditer(text):
        if next(questions_in("", match[0])).text == question:
            return text[: match.start()] + text[match.end() :]
    return text
