"""The names of libraries in sources and binaries: what may be opened by name at run time."""

from __future__ import annotations

import re

__all__ = ["is_source", "mentioned_libraries"]

_SOURCE = ".py"
_IN_SOURCE = re.compile(rb"[\w+-]*\.so\b[.0-9]*|\blib[\w+-]{2,}")
# A name that ends a string; the search goes by its last part, which is rare, and looks back for the first.
_END = re.compile(rb"\.so[.0-9]*(?=\0)")
_START = re.compile(rb"[\w+.-]*\Z")
_LONGEST = 128


def is_source(name: str) -> bool:
    """Return whether a file, by its name, is text that opens libraries by name: Python's sources."""
    return name.endswith(_SOURCE)


def mentioned_libraries(data: bytes | memoryview, *, is_text: bool) -> frozenset[str]:
    """Return the names that may be of libraries: ``libdemo.so.1`` and, in the text of a program, ``libdemo``.

    In a binary they are strings that end with such a name, its own SONAME among them.
    """
    if is_text:
        return frozenset(match[0].decode(errors="replace") for match in _IN_SOURCE.finditer(data))
    found = set()
    for match in _END.finditer(data):
        head = _START.search(bytes(data[max(0, match.start() - _LONGEST) : match.start()]))
        found.add(((head[0] if head else b"") + match[0]).decode(errors="replace"))
    return frozenset(found)
