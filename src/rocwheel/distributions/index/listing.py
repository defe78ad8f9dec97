"""What stands in a folder of distributions, by names alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.index.known_files import KNOWN_NAME
from rocwheel.distributions.index.previous import PAGES
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SUFFIXES", "Listing", "list_folder"]

SUFFIXES = (".whl", ".tar.gz")
"""How the names of the files that an index lists end."""


class Listing(msgspec.Struct, frozen=True):
    """The names in a folder, sorted."""

    distributions: tuple[str, ...]
    ignored: tuple[str, ...]
    """Files that are neither wheels nor sdists, those that an index consists of apart."""
    subfolders: tuple[str, ...]
    """Folders in it that hold distributions, at any depth."""


def list_folder(dist_dir: Path, output: Path) -> Listing:
    """Return what stands in ``dist_dir``; ``output`` is no subfolder, nor is a folder that has the pages of an index.

    Raises `InputError` for a folder that can't be listed or holds no distributions itself.
    """
    try:
        entries = sorted(os.scandir(dist_dir), key=lambda entry: entry.name)
        names = [entry.name for entry in entries if not entry.is_dir()]
        folders = [entry.name for entry in entries if entry.is_dir() and _is_subfolder(dist_dir / entry.name, output)]
    except OSError as e:
        remedy = "Give the folder that holds the wheels and sdists."
        raise InputError(dist_dir, f"cannot be listed ({e.strerror})", remedy=remedy) from e
    distributions = tuple(filter(_is_distribution, names))
    if not distributions:
        remedy = f"Index its folders one by one: {', '.join(folders)}." if folders else ""
        raise InputError(dist_dir, "holds no distributions", expected="*.whl or *.tar.gz files", remedy=remedy)
    others = (name for name in names if not _is_distribution(name) and name not in (*PAGES, KNOWN_NAME))
    return Listing(distributions, tuple(name for name in others if not name.endswith(".metadata")), tuple(folders))


def _is_distribution(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _is_subfolder(folder: Path, output: Path) -> bool:
    if folder.resolve() == output.resolve() or (folder / PAGES[1]).exists():
        return False
    return any(_is_distribution(name) for _, _, names in os.walk(folder) for name in names)
