"""The names of libraries in sources and binaries: what may be opened by name at run time.

A binary that puts names together has ``lib%s.so``, ``lib{}.so`` or a bare ``.so`` among them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.core.reading import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.reading import Data

__all__ = ["is_source", "mentioned_in_binary", "mentioned_in_source"]

_SOURCE = ".py"
# The searches go by a part of a name that is rare, and look back for its beginning: tried at every place, a name that
# begins with any word takes the square of the time where a text has a long run of letters, such as embedded data.
_IN_SOURCE = re.compile(rb"\.so\b[.0-9]*|\blib[\w+-]{2,}(?P<ending>\.so\b[.0-9]*)?")
_LOADER_WORD = re.compile(rb"\b(?:add_dll_directory|rocm_sdk)\b")
_SOURCE_START = re.compile(rb"[\w+-]*\Z")
_END = re.compile(rb"\.so[.0-9]*(?=\0)")
"""What ends a string of a binary."""
_START = re.compile(rb"[\w+.%{}-]*\Z")
"""What a name may have before that, a directive for a name that is put together (``lib%s.so``) included."""
_LONGEST = 128
"""Bytes that are looked back."""
_PIECE = 4 << 20


def is_source(name: str) -> bool:
    """Return whether a file, by its name, is text that opens libraries by name: Python's sources."""
    return name.endswith(_SOURCE)


def mentioned_in_source(text: bytes) -> frozenset[str]:
    """Return the names that may be of libraries in the text of a program: ``libdemo.so.1``, and ``libdemo``.

    ``add_dll_directory`` and ``rocm_sdk`` are among them, where a program tells Windows' loader of folders.
    """
    words = (word.decode() for word in _LOADER_WORD.findall(text))
    return frozenset((*_source_names(text), *words))


def _source_names(text: bytes) -> Iterator[str]:
    searched = 0
    for match in _IN_SOURCE.finditer(text):
        is_beginning = match[0].startswith(b"lib") and match["ending"] is None
        first = match.start() if is_beginning else max(searched, match.start() - _LONGEST)
        yield (_last(_SOURCE_START, text[first : match.start()]) + match[0]).decode(errors="replace")
        searched = match.end()


def mentioned_in_binary(data: Data) -> frozenset[str]:
    """Return the names of libraries with which strings of a binary end, its own SONAME among them."""
    found: set[str] = set()
    for start in range(0, len(data), _PIECE):
        # The parts overlap, and are not copied where they are in memory already.
        first = max(start - 2 * _LONGEST, 0)
        found.update(_names(load(data[first : start + _PIECE]), start - first))
    return frozenset(found)


def _names(window: memoryview, known: int) -> Iterator[str]:
    """Yield the names that end behind the first ``known`` bytes, which were searched before."""
    for match in _END.finditer(window):
        if match.end() >= known:
            before = window[max(0, match.start() - _LONGEST) : match.start()]
            yield (_last(_START, before) + match[0]).decode(errors="replace")


def _last(name: re.Pattern[bytes], text: bytes | memoryview) -> bytes:
    found = name.search(text)
    return found[0] if found else b""
