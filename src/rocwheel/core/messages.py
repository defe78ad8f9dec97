"""Helpers for messages: counts with nouns, quoted inputs, printable text, and probable causes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.shown_names import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as ``1 change`` or ``2 changes``; ``plural`` is for irregular plurals.

    >>> count(0, "change"), count(1, "entry", "entries")
    ('0 changes', '1 entry')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_of(texts: Sequence[str], most: int = 3, *, more: str = " and {} more") -> str:
    """Return the first ``most`` of ``texts`` on one line. ``more`` is the format for the number of other texts."""
    rest = more.format(len(texts) - most) if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


_LONGEST = 200
_LONGEST_MESSAGE = 1000


def quoted(value: str | bytes) -> str:
    """Return the ``repr`` of a value. If the text is long, return its beginning and its length."""
    if len(value) <= _LONGEST:
        return repr(value)
    unit = "bytes" if isinstance(value, bytes) else "characters"
    return f"{value[:_LONGEST]!r}... ({len(value)} {unit})"


def shortened(message: str) -> str:
    """Return a library's message about a value, or only the message's beginning if the message is long."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}... ({len(message)} characters)"


_HOST = re.compile(r"(([a-z\d-]+\.)+(ai|app|cloud|com|dev|edu|io|local|net|org)(:\d+)?|[\w.-]+:\d+)/", re.IGNORECASE)
"""A host name with a common ending, or a host and a port. This is the part of a URL after ``https://``."""
_PATTERN = re.compile(r"[*?\[]")
_GPU = re.compile(r"gfx[\da-f]{3,4}(?![\w.])")
_MOST_FOLDERS = 100


def absent_remedy(place: Path | str) -> str:
    """Return a remedy for a missing ``place``, or an empty string.

    The remedies are for a pattern, a URL without its scheme, a GPU, and ``-``.

    >>> absent_remedy("dist/*.whl")
    'No file matches this pattern.'
    """
    if str(place) == "-":
        return "rocwheel doesn't read standard input here. Pass a file."
    if looks_like_host(place):
        return "A URL begins with https:// or s3://."
    if _GPU.match(str(place)):
        return "This is a GPU target. See --help for the option that accepts it. Separate several targets with ';'."
    return "No file matches this pattern." if _PATTERN.search(str(place)) else ""


def looks_like_host(place: Path | str) -> bool:
    """Return whether a path might be a URL without its scheme: it begins with a host name, and no such file exists.

    Text with a leading ``./`` is a path.
    """
    first = str(place).partition("/")[0]
    return bool(_HOST.match(f"{place}/")) and not Path(first).exists()


def find_below(folder: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """Return the first subfolder of ``folder`` that is wanted, for example, because it contains wheels, or `None`.

    Checks at most a hundred folders, and skips folders that can't be read.
    """
    try:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())[:_MOST_FOLDERS]
        return next((path for path in folders if any(map(is_wanted, path.iterdir()))), None)
    except OSError:
        return None


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters in ASCII and ISO 8859, line and paragraph separators, and marks that change the text direction."""

_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#[a-z]*\[)", re.MULTILINE)
"""The beginning of a workflow command in the logs of GitHub Actions, Azure Pipelines, and TeamCity.

The first kind is recognized only at the beginning of a line: ``::``. The other kinds are recognized anywhere: ``##[``
and ``##vso[``.
"""


def printable(text: str) -> str:
    """Return ``text`` with control characters and the beginnings of workflow commands escaped.

    Tabs and line endings stay unchanged. File names can contain all of these. The names of remote files replace the
    paths of their placeholders, and secrets in the command line's URLs are removed.
    """
    return _without_commands(_without_controls(text))


def in_one_line(text: str) -> str:
    """Return the result of `printable` with line endings and tabs also escaped. A name must not begin a line."""
    return _without_commands(_without_controls(text).replace("\n", "\\n").replace("\t", "\\t"))


def _without_controls(text: str) -> str:
    return _CONTROL.sub(lambda match: _escape(match[0]), shown(text))


def _without_commands(text: str) -> str:
    return _COMMAND.sub(lambda match: match[0][:-1] + _escape(match[0][-1]), text)


def printable_json(document: str) -> str:
    """Return a JSON document in its output form, with the same values that `printable` shows, except for escapes.

    Control characters in it are already escaped, and no line begins with a name.
    """
    return _COMMAND.sub(lambda match: rf"{match[0][:-1]}\u{ord(match[0][-1]):04x}", shown(document))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}"
