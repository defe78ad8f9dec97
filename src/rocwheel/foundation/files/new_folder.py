"""Folders of results, which appear under their names only when they are whole."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, read_error, write_error
from rocwheel.foundation.files.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["new_folder", "require_free"]


@contextmanager
def new_folder(dest: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``dest`` when the block ends well; otherwise nothing is left.

    Raises `InputError` when ``dest`` exists and is not an empty folder, `WorkError` when it can't be written.
    """
    require_free(dest)
    place = dest.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place) as folder:
            root = folder / "content"
            root.mkdir()
            yield root
            root.chmod(0o755)
            root.replace(place)
    except OSError as e:
        raise write_error(dest, e) from e


def require_free(dest: Path) -> None:
    """Raise `InputError` when a new folder can't become ``dest``, before everything is written."""
    try:
        if dest.is_dir() and not any(dest.iterdir()):
            _require_replaceable(dest)
            return
        exists = dest.is_symlink() or dest.exists()
    except OSError as e:
        raise read_error(dest, e) from e
    if exists:
        raise InputError(dest, "already exists", expected="a new or empty folder", remedy="Remove it first.")


def _require_replaceable(dest: Path) -> None:
    found = "is a mount point" if dest.is_mount() else "is the current folder" if dest.samefile(".") else ""
    if found:
        remedy = "Name a new folder below it."
        raise InputError(dest, f"{found}, and the result would take its place", remedy=remedy)
