"""Text for terminals: control characters, which names of files and settings may hold, as escapes."""

from __future__ import annotations

import re

__all__ = ["in_one_line", "listed", "printable"]

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Those of ASCII and ISO 8859, separators of lines and paragraphs, and what turns the direction of text around."""


def printable(text: str) -> str:
    """Return a text with control characters as escapes, except tabs and line ends."""
    return CONTROL.sub(lambda match: _escape(ord(match[0])), text)


def in_one_line(text: str) -> str:
    """Return a text as `printable` does, with tabs and line ends as escapes, too: a name must not begin a line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def listed(names: list[str], shown: int = 3) -> str:
    """Return names for a message, the first few of many."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def _escape(character: int) -> str:
    return f"\\x{character:02x}" if character < 1 << 8 else f"\\u{character:04x}"
