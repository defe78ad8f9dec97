"""Which files CMake packages check for when ``find_package`` loads them: without one of them it fails."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["checked_files"]

_CHECK = re.compile(rb'(?i)_import_check_files_for_\S{1,250}((?:\s+"\$\{_IMPORT_PREFIX\}/[^"]+")+)')
"""What ``install(EXPORT)`` writes, in capitals before CMake 3.25."""
_FILE = re.compile(rb'"\$\{_IMPORT_PREFIX\}/([^"]+)"')


def checked_files(text: bytes) -> Iterator[str]:
    """Yield the paths, relative to the prefix, that a CMake file of imported targets checks for."""
    for check in _CHECK.finditer(text):
        for path in _FILE.findall(check[1]):
            yield posixpath.normpath(path.decode("utf-8", "surrogateescape"))
