"""The remedy for a path that is not there: what the user may have meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["absent_remedy", "find_below", "looks_like_host"]

_HOST = re.compile(r"(([a-z\d-]+\.)+(ai|app|cloud|com|dev|edu|io|local|net|org)(:\d+)?|[\w.-]+:\d+)/", re.IGNORECASE)
"""A host name with a usual ending, or a host and a port: the part of a URL behind ``https://``."""
_PATTERN = re.compile(r"[*?\[]")
_GPU = re.compile(r"gfx[\da-f]{3,4}(?![\w.])")
_MOST_FOLDERS = 100


def absent_remedy(place: Path | str) -> str:
    """Return what helps where ``place`` is not there: a pattern, a URL without its scheme, a GPU; empty for others.

    >>> absent_remedy("dist/*.whl")
    'No file fits this pattern.'
    """
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
