"""Dotted keys of TOML, for each part of which the standard library goes through all those before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LONGEST_KEY", "longest_key"]

LONGEST_KEY = 64
"""Parts of a dotted key that anybody may write."""

_TOKEN = re.compile(
    rb"""
    (?P<begins> \"\"\" | ''' )
    | (?P<part> " (?: \\. | [^"\\\n] )* "? | ' [^'\n]* '? | [A-Za-z0-9_-]+ )
    | \# [^\n]*
    | (?P<dot> [ \t]* \. [ \t]* )
    | [ \t]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDS = {
    b'"""': re.compile(rb'\\.|(?P<end>"{3,5})', re.DOTALL),
    b"'''": re.compile(rb"(?P<end>'{3,5})"),
}
"""Of strings of several lines: up to two quotes before the three that end one belong to it."""


def longest_key(text: bytes) -> int:
    """Return how many parts the longest dotted key has; of numbers and times, which have dots too, likewise.

    A key is on one line, so that lines of few dots are of no interest. Text that isn't TOML gets a number, too: what
    decodes it says what is wrong.
    """
    if max((line.count(b".") for line in text.split(b"\n")), default=0) < LONGEST_KEY:
        return 1
    longest = parts = 0
    is_joined = False
    for token in _iter_tokens(text):
        if token["part"]:
            parts = parts + 1 if is_joined else 1
            longest = max(longest, parts)
        is_joined = bool(token["dot"]) and parts > 0
        parts = parts if token["part"] or is_joined else 0
    return longest


def _iter_tokens(text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the tokens; of a string of several lines, only what begins it."""
    at = 0
    while token := _TOKEN.match(text, at):
        yield token
        at = _end_of_string(text, token) if token["begins"] else token.end()


def _end_of_string(text: bytes, beginning: re.Match[bytes]) -> int:
    """Return where a string of several lines ends; nothing that is looked at here is looked at again."""
    for found in _ENDS[beginning["begins"]].finditer(text, beginning.end()):
        if found["end"]:
            return found.end()
    return len(text)
