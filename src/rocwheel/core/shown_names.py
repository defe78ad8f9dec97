"""The names by which messages and results call files that were brought from elsewhere, in place of their paths here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path


_names: dict[str, str] = {}


def show_as(path: Path, name: str) -> None:
    """Have a file, or a folder of files, shown as ``name``."""
    _names[str(path)] = name


def forget_names() -> None:
    """Show every file by its path again, as a run begins."""
    _names.clear()


def shown(text: str) -> str:
    """Return a text with the names of what is elsewhere in place of its paths here."""
    for path, name in _names.items():
        text = text.replace(path, name)
    return text


def place_of(file: str) -> str:
    """Return the URL that a file of this name stands for; the name itself if it stands for none, or is a whole path."""
    if os.path.isabs(file):  # noqa: PTH117
        return file
    for path, name in _names.items():
        if os.path.basename(path) == file:  # noqa: PTH119  # asked for each finding
            return name
        if os.path.isfile(os.path.join(path, file)):  # noqa: PTH113, PTH118
            return f"{name}/{quote(file)}"
    return file
