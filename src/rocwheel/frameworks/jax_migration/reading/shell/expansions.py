"""Where an expansion of the shell ends that begins with a dollar sign (POSIX.1-2017, "Word Expansions")."""

from __future__ import annotations

import re

__all__ = ["end_of_expansion"]

_NAME = re.compile(r"\$(?:\{(?:[^{}\n'\"`$]|\$\w+|\$\{[^{}\n]*\})*\}|[A-Za-z_]\w*|[0-9@*#?$!-])")
_PARENTHESIS = re.compile(r"[()'\"\\\n]|[^()'\"\\\n]+")
_DEEPEST = 20


def end_of_expansion(text: str, start: int) -> int | None:
    """Return the end of an expansion that begins with a dollar sign at ``start``; ``None`` if there is none."""
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
