"""The names of fetched files in messages and results, instead of their local paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path


_names: dict[str, str] = {}


def show_as(path: Path, name: str) -> None:
    """Show a file or folder as ``name``."""
    _names[str(path)] = name


def forget_names() -> None:
    """Show every file with its path again, as at the start of a run."""
    _names.clear()


def shown(text: str) -> str:
    """Return a text in which the names of remote files replace their local paths."""
    for path, name in _names.items():
        text = text.replace(path, name)
    return text


def place_of(file: str) -> str:
    """Return the URL for this file name. Return the name itself if it has no URL or is a complete path."""
    if os.path.isabs(file):  # noqa: PTH117
        return file
    for path, name in _names.items():
        if os.path.basename(path) == file:  # noqa: PTH119  # asked for each finding
            return name
        if os.path.isfile(os.path.join(path, file)):  # noqa: PTH113, PTH118
            return f"{name}/{quote(file)}"
    return file
