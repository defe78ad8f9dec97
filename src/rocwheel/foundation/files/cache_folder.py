"""Where commands keep what they need not fetch or read again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]

_VARIABLE = "ROCWHEEL_CACHE_DIR"


def cache_folder() -> Path:
    """Return ``ROCWHEEL_CACHE_DIR``, else a folder among the user's caches (XDG); it may be removed at any time."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rocwheel")
    return Path(os.environ.get(_VARIABLE) or own)
