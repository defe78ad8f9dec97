"""The calls of the old tool in a file on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.regular_files import open_regular
from rocwheel.frameworks.jax_migration.reading.read_calls import read_old_calls

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls

__all__ = ["read_calls_of_file"]

_LARGEST = 4 << 20


def read_calls_of_file(path: Path) -> OldCalls:
    """Return the calls in a file; raise `InputError` for one that can't be read, is no text, or is over 4 MiB."""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
    except OSError as e:
        raise read_error(path, e) from e
    if len(data) > _LARGEST:
        raise InputError(path, "is larger than 4 MiB", expected="a Makefile, a shell script, a workflow or Python")
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise InputError(path, f"is no text: {e.reason} at byte {e.start}", expected="UTF-8") from e
    return read_old_calls(text.removeprefix("\ufeff"), str(path))
