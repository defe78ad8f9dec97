"""Reads RECORD, the list of a distribution's files, without waiting for what stands in its place.

RECORD: https://packaging.python.org/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import csv
import io
import os
from errno import ENOENT
from pathlib import Path

from ..._distributions import find_distribution
from ..._packages import metadata_folder
from ..._platform import this_platform
from ..._regular_file import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[str, Path, str, str]

__all__ = ["RECORD_ERRORS", "read_inside", "read_outside"]

RECORD_ERRORS = (UnicodeDecodeError, csv.Error, OSError)
"""What is raised for a RECORD that can't be read."""


def read_inside(dist: str) -> list[Row]:
    """Return name, path, hash and size of each file of a distribution in site-packages.

    Raises `FileNotFoundError` without RECORD, another of `RECORD_ERRORS` when it can't be read.
    """
    return [row for row in _read_rows(dist) if not _is_outside(row[0]) and not row[0].endswith(".pyc")]


def read_outside(dist: str) -> list[Row]:
    """Return those elsewhere, such as scripts, where RECORD has them; after ``--target``, that is a wrong place.

    Raises as `read_inside` does.
    """
    return [row for row in _read_rows(dist) if _is_outside(row[0])]


def _is_outside(name: str) -> bool:
    return name.startswith(("../", "/"))


def _read_rows(dist: str) -> list[Row]:
    found = find_distribution(dist)
    folder = metadata_folder(Path(str(found.locate_file(""))), dist)
    if folder is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), "RECORD")
    text = read_regular(folder / "RECORD")
    # Not by `str.splitlines`, for which names may have ends of lines in them.
    cells = [(*row, "", "")[:3] for row in csv.reader(io.StringIO(text, newline="")) if row]
    site = Path(str(found.locate_file("")))
    # Names are UTF-8, also where Python takes those of files for ASCII.
    return [(name, _locate(site, os.fsdecode(name.encode())), digest, size) for name, digest, size in cells]


def _locate(site: Path, name: str) -> Path:
    """Return the path of a file. Installers count ``..`` from the path of a folder, not from where a link leads."""
    path = site / name
    return this_platform().extended(Path(os.path.normpath(path)) if _is_outside(name) else path)
