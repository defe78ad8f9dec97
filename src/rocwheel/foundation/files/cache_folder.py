"""Where commands keep what they need not fetch or read again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]

_VARIABLE = "ROCWHEEL_CACHE_DIR"


def cache_folder() -> Path:
    """Return ``ROCWHEEL_CACHE_DIR``, else a folder among the user's caches; it may be removed at any time.

    These are in ``XDG_CACHE_HOME`` unless that is relative, which the XDG Base Directory Specification has ignored.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if base.startswith("/") else Path.home() / ".cache", "rocwheel")
