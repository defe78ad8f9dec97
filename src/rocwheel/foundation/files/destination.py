"""A folder to write to, checked before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, read_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_destination"]


def check_destination(dest_dir: Path) -> None:
    """Raise `InputError` if something at or above ``dest_dir`` is not a folder."""
    try:
        nearest = next(path for path in (dest_dir, *dest_dir.parents) if path.exists() or path.is_symlink())
        is_folder = nearest.is_dir()
    except OSError as e:
        raise read_error(dest_dir, e) from e
    if not is_folder:
        raise InputError(nearest, "not a folder", expected="a folder to write to", remedy="Change --dest-dir.")
