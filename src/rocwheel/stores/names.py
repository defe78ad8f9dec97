"""Names of files in a store: paths with ``/`` that lead nowhere else."""

from __future__ import annotations

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.quoting import quoted

__all__ = ["HASHES", "UPLOADS", "checked_name"]

UPLOADS = ".rocwheel-uploads"
"""The folder in a store where large files are until they are whole; what a killed run leaves there says so."""
HASHES = ".rocwheel-sha256"
"""The folder beside large files with a note of the hash of each."""


def checked_name(url: str, name: str) -> str:
    """Return a name; raise `InputError` for one that is empty or leads out of the store at ``url``."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name:
        raise InputError(url, f"can't hold a file named {quoted(name)}", expected="a path without '..' and empty parts")
    return name
