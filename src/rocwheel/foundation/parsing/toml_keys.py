"""Dotted keys of TOML, for each part of which the standard library goes through all those before it."""

from __future__ import annotations

import re

__all__ = ["LONGEST_KEY", "longest_key"]

LONGEST_KEY = 64
"""Parts of a dotted key that anybody may write."""

_TOKEN = re.compile(
    rb"""
    \"\"\" (?: \\. | [^\\] )*? (?: \"\"\" | \Z )
    | ''' .*? (?: ''' | \Z )
    | (?P<part> " (?: \\. | [^"\\\n] )* "? | ' [^'\n]* '? | [A-Za-z0-9_-]+ )
    | \# [^\n]*
    | (?P<dot> [ \t]* \. [ \t]* )
    | [ \t]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def longest_key(text: bytes) -> int:
    """Return how many parts the longest dotted key has; of numbers and times, which have dots too, likewise.

    A key is on one line, so that lines of few dots are of no interest. What is no TOML counts somehow.
    """
    if max((line.count(b".") for line in text.split(b"\n")), default=0) < LONGEST_KEY:
        return 1
    longest = parts = 0
    is_joined = False
    for token in _TOKEN.finditer(text):
        if token["part"]:
            parts = parts + 1 if is_joined else 1
            longest = max(longest, parts)
        is_joined = bool(token["dot"]) and parts > 0
        parts = parts if token["part"] or is_joined else 0
    return longest
