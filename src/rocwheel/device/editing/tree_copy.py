"""Copying trees of files: listing them, copying files, and making the new folder that appears when it is whole."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, read_error, write_error
from rocwheel.foundation.files.modes import safe_mode
from rocwheel.foundation.files.regular_files import open_unchanged
from rocwheel.foundation.files.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["copy_file", "list_tree", "new_folder", "require_regular"]

_PERMISSIONS = "Check its permissions."


@contextmanager
def new_folder(output: Path, *sources: Path) -> Iterator[Path]:
    """Yield the path of a folder to make, which becomes ``output`` when the block ends well; nothing is left otherwise.

    ``sources`` are what is copied. Raises `InputError` when ``output`` exists or is in one of them, `InputError` or
    `WorkError` for what the block can't read or write.
    """
    for source in sources:
        if source.is_dir() and output.resolve().is_relative_to(source.resolve()):
            raise InputError(output, f"a folder in {source}, which is copied", expected="one outside of it")
    if output.exists() or output.is_symlink():
        raise InputError(output, "exists already", expected="a folder to make", remedy="Remove it or name another.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(output) as folder:
            made = folder / output.name
            yield made
            made.rename(output)
    except OSError as e:
        raise _copy_error(e, sources, output) from e


def _copy_error(error: OSError, sources: tuple[Path, ...], output: Path) -> InputError:
    if error.filename and any(Path(error.filename).is_relative_to(source) for source in sources):
        return read_error(error.filename, error, remedy=_PERMISSIONS)
    return write_error(output, error, remedy="Check the free space.")


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
