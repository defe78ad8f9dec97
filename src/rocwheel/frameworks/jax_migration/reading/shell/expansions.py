"""Where an expansion of the shell ends that begins with a dollar sign (POSIX.1-2017, "Word Expansions")."""

from __future__ import annotations

import re

__all__ = ["end_of_expansion"]

_NAME = re.compile(r"\$(?:\{(?:[^{}\n'\"`$]|\$\w+(?!\w)|\$\{[^{}\n]*\})*\}|[A-Za-z_]\w*|[0-9@*#?$!-])")
"""A name within braces is taken whole: else each of several is read in as many ways as it has letters."""
_PARENTHESIS = re.compile(r"[()'\"\\\n]|[^()'\"\\\n]+")
_DEEPEST = 20


def end_of_expansion(text: str, start: int) -> int | None:
    """Return the end of an expansion that begins with a dollar sign at ``start``; ``None`` if there is none."""
    if text.startswith("$(", start):
        return _end_of_substitution(text, start + 2)
    match = _NAME.match(text, start)
    return match.end() if match else None


def _end_of_substitution(text: str, position: int) -> int | None:
    quotes = [""]  # the open quote of each parenthesis that is open, the innermost last
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
