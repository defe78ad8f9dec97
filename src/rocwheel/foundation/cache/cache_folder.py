"""Where commands keep what they need not fetch or read again."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from rocwheel.foundation.errors import InputError

__all__ = ["cache_folder"]

_VARIABLE = "ROCWHEEL_CACHE_DIR"


def cache_folder() -> Path:
    """Return ``ROCWHEEL_CACHE_DIR``, else a folder among the user's caches; it may be removed at any time.

    These are in ``XDG_CACHE_HOME`` unless that is relative, which the XDG Base Directory Specification has ignored,
    else in ``.cache`` of ``HOME``, or of the home folder that the system knows where that is not absolute.
    Raises `InputError` where none of the variables is set for a user without a home folder.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if base.startswith("/") else _home() / ".cache", "rocwheel")


def _home() -> Path:
    named = os.environ.get("HOME", "")
    home = named if named.startswith("/") else _known_home()
    if not home:
        found, expected = "is not set, and this user has no home folder", "a folder for the cache of rocwheel"
        raise InputError(_VARIABLE, found, expected=expected, remedy=f"Set {_VARIABLE} to one.")
    return Path(home)


def _known_home() -> str:
    """Return the home folder that the system knows of this user, empty where it knows none, as in containers."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return home if home.startswith("/") else ""
