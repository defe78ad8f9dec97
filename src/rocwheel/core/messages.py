"""Parts of messages: counts with their nouns, quotes of inputs, text that is safe to print, and likely meanings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.shown_names import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, such as ``1 change`` and ``2 changes``; ``plural`` is for other endings than "s".

    >>> count(0, "change"), count(1, "entry", "entries")
    ('0 changes', '1 entry')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_of(texts: Sequence[str], most: int = 3, *, more: str = " and {} more") -> str:
    """Return the first ``most`` of ``texts`` as one line, and how many more there are, worded as ``more`` has it."""
    rest = more.format(len(texts) - most) if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


_LONGEST = 200
_LONGEST_MESSAGE = 1000


def quoted(value: str | bytes) -> str:
    """Return the value as Python spells it; of a long one the beginning, and how long it is."""
    if len(value) <= _LONGEST:
        return repr(value)
    unit = "bytes" if isinstance(value, bytes) else "characters"
    return f"{value[:_LONGEST]!r}... ({len(value)} {unit})"


def shortened(message: str) -> str:
    """Return what a library says of such a value, which it may quote in full; of a long message the beginning."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}... ({len(message)} characters)"


_HOST = re.compile(r"(([a-z\d-]+\.)+(ai|app|cloud|com|dev|edu|io|local|net|org)(:\d+)?|[\w.-]+:\d+)/", re.IGNORECASE)
"""A host name with a usual ending, or a host and a port: the part of a URL behind ``https://``."""
_PATTERN = re.compile(r"[*?\[]")
_GPU = re.compile(r"gfx[\da-f]{3,4}(?![\w.])")
_MOST_FOLDERS = 100


def absent_remedy(place: Path | str) -> str:
    """Return what helps where ``place`` is not there: a pattern, a URL without its scheme, a GPU, ``-``; else empty.

    >>> absent_remedy("dist/*.whl")
    'No file fits this pattern.'
    """
    if str(place) == "-":
        return "Standard input is not read; name a file."
    if looks_like_host(place):
        return "A URL begins with https:// or s3://."
    if _GPU.match(str(place)):
        return "This is a GPU target; --help names the option that takes it."
    return "No file fits this pattern." if _PATTERN.search(str(place)) else ""


def looks_like_host(place: Path | str) -> bool:
    """Return whether a path may be a URL without its scheme: it begins with a host name, and no such folder is here.

    ``./`` before it makes it a path.
    """
    first = str(place).partition("/")[0]
    return bool(_HOST.match(f"{place}/")) and not Path(first).exists()


def find_below(folder: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """Return the first folder in ``folder`` that holds what is wanted, such as wheels; None where none does.

    At most a hundred folders are looked into, and those that can't be read are passed over.
    """
    try:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())[:_MOST_FOLDERS]
        return next((path for path in folders if any(map(is_wanted, path.iterdir()))), None)
    except OSError:
        return None


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
