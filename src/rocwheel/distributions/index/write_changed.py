"""Writing of a file whose bytes are wanted, not its date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.reading import open_regular
from rocwheel.core.writing import atomic_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_changed"]


def write_changed(path: Path, data: bytes) -> bytes | None:
    """Write a file unless it holds ``data`` already, so that web caches and syncs see no change.

    Return the bytes that it held instead, if any.
    """
    try:
        with open_regular(path) as file:
            present = file.read()
    except OSError:
        present = None
    if present == data:
        return None
    with atomic_file(path) as writer:
        writer.write(data)
    return present
