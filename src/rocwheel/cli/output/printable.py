"""Text that is safe to print: control characters, which names in files may hold, as escapes."""

from __future__ import annotations

import re

from rocwheel.core.remote_placeholders import shown

__all__ = ["in_one_line", "printable"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Those of ASCII and ISO 8859, separators of lines and paragraphs, and what turns the direction of text around."""


def printable(text: str) -> str:
    """Return ``text`` with control characters as escapes, except tabs and line ends: file names may contain them.

    Files that stand for others, as for wheels at a URL, go by the names of these.
    """
    return _CONTROL.sub(lambda match: _escape(ord(match[0])), shown(text))


def in_one_line(text: str) -> str:
    """Return ``text`` as `printable` does, with line ends and tabs as escapes, too: a name must not begin a line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: int) -> str:
    return f"\\x{character:02x}" if character < 1 << 8 else f"\\u{character:04x}"
