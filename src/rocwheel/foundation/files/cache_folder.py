"""Where commands keep what they need not fetch or read again."""

from __future__ import annotations

import os
from pathlib import Path

from rocwheel.foundation.errors import InputError

__all__ = ["cache_folder"]

_VARIABLE = "ROCWHEEL_CACHE_DIR"


def cache_folder() -> Path:
    """Return ``ROCWHEEL_CACHE_DIR``, else a folder among the user's caches; it may be removed at any time.

    These are in ``XDG_CACHE_HOME`` unless that is relative, which the XDG Base Directory Specification has ignored.
    Raises `InputError` where none of the variables is set for a user without a home folder.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if base.startswith("/") else _home() / ".cache", "rocwheel")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as e:  # HOME is not set, and the system knows no such user, as in containers
        found, expected = "is not set, and this user has no home folder", "a folder for the cache of rocwheel"
        raise InputError(_VARIABLE, found, expected=expected, remedy=f"Set {_VARIABLE} to one.") from e
