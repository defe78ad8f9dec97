"""Folders with what publishers note of the files of a folder, so that they need not be read again.

Whoever misses a note reads the file: a folder may go at any time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.foundation.cache.cache_folder import cache_folder
from rocwheel.foundation.cache.folders import prune_folders
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["keep_published", "published_cache", "published_folder"]

_LIMIT = 100 * 10**6
"""Bytes of all notes; those of a thousand files have about half a million."""


def published_cache() -> Path:
    """Return the folder of all these folders."""
    return cache_folder() / "published"


def published_folder(dist_dir: Path) -> Path:
    """Return where what is known of the files of a folder is noted; raise `InputError` for a user without a cache."""
    return published_cache() / hashlib.sha256(os.fsencode(dist_dir.resolve())).hexdigest()[:16]


def keep_published(folder: Path) -> None:
    """Note that a folder was used now, and remove those that were not used for longest, if there are too many."""
    with suppress(OSError):
        os.utime(folder)
    with suppress(InputError):
        prune_folders(folder.parent, _LIMIT, needs_lock=False)
