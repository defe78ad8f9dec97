"""The names of libraries in sources and binaries: what may be opened by name at run time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.foundation.file_view import iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.foundation.file_view import Data

__all__ = ["is_source", "mentioned_in_binary", "mentioned_in_source"]

_SOURCE = ".py"
_IN_SOURCE = re.compile(rb"[\w+-]*\.so\b[.0-9]*|\blib[\w+-]{2,}")
# A name that ends a string; the search goes by its last part, which is rare, and looks back for the first.
_END = re.compile(rb"\.so[.0-9]*(?=\0)")
_START = re.compile(rb"[\w+.-]*\Z")
_LONGEST = 128


def is_source(name: str) -> bool:
    """Return whether a file, by its name, is text that opens libraries by name: Python's sources."""
    return name.endswith(_SOURCE)


def mentioned_in_source(text: bytes) -> frozenset[str]:
    """Return the names that may be of libraries in the text of a program: ``libdemo.so.1``, and ``libdemo``."""
    return frozenset(match[0].decode(errors="replace") for match in _IN_SOURCE.finditer(text))


def mentioned_in_binary(data: Data) -> frozenset[str]:
    """Return the names of libraries with which strings of a binary end, its own SONAME among them."""
    found: set[str] = set()
    tail = b""
    for piece in iter_pieces(data):
        window = tail + bytes(piece)
        found.update(_names(window, len(tail)))
        tail = window[-2 * _LONGEST :]
    return frozenset(found)


def _names(window: bytes, known: int) -> Iterator[str]:
    """Yield the names that end behind the first ``known`` bytes, which were searched before."""
    for match in _END.finditer(window):
        if match.end() >= known:
            head = _START.search(window[max(0, match.start() - _LONGEST) : match.start()])
            yield ((head[0] if head else b"") + match[0]).decode(errors="replace")
