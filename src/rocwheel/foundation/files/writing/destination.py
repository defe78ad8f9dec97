"""Where a command is to write, checked before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, read_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_destination", "check_other", "check_output"]


def check_destination(dest_dir: Path, *, option: str = "--dest-dir") -> None:
    """Raise `InputError` if something at or above ``dest_dir``, which ``option`` has named, is not a folder."""
    try:
        nearest = next(path for path in (dest_dir, *dest_dir.parents) if path.exists() or path.is_symlink())
        is_folder = nearest.is_dir()
    except OSError as e:
        raise read_error(dest_dir, e) from e
    if not is_folder:
        raise InputError(nearest, "not a folder", expected="a folder to write to", remedy=f"Change {option}.")


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise `InputError` where the file ``output`` can't go: a folder or device stands there, or a file above it.

    A link that leads nowhere is no fault: the file takes its place. ``-``, standard output elsewhere, is one.
    """
    if str(output) == "-":
        raise InputError(option, "is -, and nothing is written to standard output", remedy="Name a file.")
    check_destination(output.parent, option=option)
    try:
        is_other = output.exists() and not output.is_file()
    except OSError as e:
        raise read_error(output, e) from e
    if is_other:
        found = "a folder" if output.is_dir() else "not a regular file"
        raise InputError(output, found, expected="a file to write to", remedy=f"Change {option}.")


def check_other(output: Path, given: Path | None, what: str) -> None:
    """Raise `InputError` where the file ``output`` would take the place of ``given``, which is ``what`` and is read."""
    try:
        is_given = given is not None and output.resolve() == given.resolve()
    except (OSError, RuntimeError):  # a ring of links, which nothing is read from
        return
    if is_given:
        raise InputError(output, f"is {what}", expected="another file to write to")
