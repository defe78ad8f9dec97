"""Lists what is in a folder, or fails: `Path.rglob` leaves out in silence what this user may not list."""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["list_below"]


def list_below(folder: Path) -> list[Path]:
    """Return all files, links and folders below a folder, sorted. Raises `OSError` where one can't be listed."""
    found = os.walk(folder, onerror=_refuse)
    return sorted(Path(parent, name) for parent, folders, files in found for name in (*folders, *files))


def _refuse(error: OSError) -> NoReturn:
    raise error
