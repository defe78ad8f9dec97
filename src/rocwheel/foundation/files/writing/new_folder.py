"""Folders of results, which appear under their names only when they are whole."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, read_error, write_error
from rocwheel.foundation.files.writing.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["new_folder", "require_free"]


@contextmanager
def new_folder(dest: Path, *sources: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``dest`` when the block ends well; otherwise nothing is left.

    ``sources`` are what the block reads. Raises `InputError` when ``dest`` exists and is not an empty folder, is in one
    of them, or is one; `InputError` for what the block can't read there, and `WorkError` for what it can't write.
    """
    require_free(dest, *sources)
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
        raise _error(e, dest, sources) from e


def require_free(dest: Path, *sources: Path) -> None:
    """Raise `InputError` when a new folder can't become ``dest``, before everything is written."""
    for source in sources:
        if source.is_dir() and dest.resolve().is_relative_to(source.resolve()):
            raise InputError(dest, f"a folder in {source}, which is copied", expected="one outside of it")
        if source.is_file() and dest.exists() and dest.samefile(source):
            expected, remedy = "a new or empty folder", "Name another one."
            raise InputError(dest, "is a file to read", expected=expected, remedy=remedy)
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


def _error(error: OSError, dest: Path, sources: tuple[Path, ...]) -> InputError:
    if error.filename and any(Path(error.filename).is_relative_to(source) for source in sources):
        return read_error(error.filename, error, remedy="Check its permissions.")
    return write_error(dest, error)
