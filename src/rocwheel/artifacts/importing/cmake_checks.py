"""Which files CMake packages check for when ``find_package`` loads them: without one of them it fails."""

from __future__ import annotations

import os
import posixpath
import re

__all__ = ["checked_files"]

_CHECK = re.compile(rb'(?i)_import_check_files_for_\S{1,250}((?:\s+"\$\{_IMPORT_PREFIX\}/[^"]+")+)')
"""What ``install(EXPORT)`` writes, in capitals before CMake 3.25."""
_FILE = re.compile(rb'"\$\{_IMPORT_PREFIX\}/([^"]+)"')
_PLACE = re.compile(r"(?:(.+)/)?(?:lib|lib64|share)/cmake/.+\.cmake")
"""Where such a file is below the prefix that it is for."""


def checked_files(path: str, text: bytes) -> list[str]:
    """Return the files that a CMake file of imported targets checks for, in its order.

    They are in the tree in which the file is at ``path``; one that is not where packages of CMake are has none.
    """
    place = _PLACE.fullmatch(path)
    if place is None:
        return []
    names = (name for check in _CHECK.finditer(text) for name in _FILE.findall(check[1]))
    return [posixpath.normpath(f"{place[1] or '.'}/{os.fsdecode(name)}") for name in names]
