"""Copying trees of files: listing them, and copying files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rocwheel.core.errors import InputError
from rocwheel.core.reading import open_unchanged
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import safe_mode

__all__ = ["copy_file", "list_tree", "require_regular"]

_PERMISSIONS = "Check its permissions."


def list_tree(folder: Path) -> list[Path]:
    """List all that is below ``folder``; raise `InputError`, or `ProblemsError`, for folders that can't be listed."""
    errors: list[OSError] = []
    walk = os.walk(folder, onerror=errors.append)
    paths = sorted(Path(root, name) for root, folders, files in walk for name in (*folders, *files))
    problems = [InputError(e.filename, f"can't be listed ({e.strerror})", remedy=_PERMISSIONS) for e in errors]
    raise_all(str(folder), problems)
    return paths


def require_regular(path: Path) -> None:
    """Raise `InputError` for what is neither a file nor a folder: a pipe would be waited for, a device has no end."""
    if not path.is_file():
        raise InputError(path, "is not a regular file", expected="only files, folders and links", remedy="Remove it.")


def copy_file(path: Path, made: Path) -> None:
    """Copy a file with its times, and its permissions as far as they are safe."""
    with open_unchanged(path) as file, made.open("xb") as copy:
        shutil.copyfileobj(file, copy)
    shutil.copystat(path, made)
    made.chmod(safe_mode(path.stat().st_mode))
