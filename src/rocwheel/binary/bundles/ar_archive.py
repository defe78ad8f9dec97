"""Static libraries (``ar`` archives) in the System V form that GNU and LLVM write, long names included.

See https://www.freebsd.org/cgi/man.cgi?query=ar&sektion=5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import AR_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ArMember", "iter_ar_members"]

_HEADER_SIZE = 60
_HEADER_END = b"`\n"


class ArMember(msgspec.Struct, frozen=True):
    """A member of an archive: its name and where its bytes are."""

    name: str
    offset: int
    size: int


def iter_ar_members(data: memoryview, *, name: str) -> Iterator[ArMember]:
    """Yield the members of the archive ``data``, without its symbol and name tables.

    Raises `DeviceCodeError` for damaged headers and for members past the end.
    """
    names = b""
    position = len(AR_MAGIC)
    while position + _HEADER_SIZE <= len(data):
        header = bytes(data[position : position + _HEADER_SIZE])
        text, size_text = header[:16].rstrip(), header[48:58].strip()
        start = position + _HEADER_SIZE
        if header[58:] != _HEADER_END or not size_text.isdigit():
            raise DeviceCodeError(Place(name, position), f"{header[:16]!r} where an archive member should start")
        size = int(size_text)
        if size > len(data) - start:
            found = f"a member of {size} bytes, of which {len(data) - start} are there"
            raise DeviceCodeError(Place(name, position), found, expected="a whole archive", remedy="Build it again.")
        if text == b"//":
            names = bytes(data[start : start + size])
        elif text not in {b"/", b"/SYM64/"}:
            yield ArMember(_member_name(text, names), start, size)
        position = start + size + size % 2


def _member_name(text: bytes, names: bytes) -> str:
    if text.startswith(b"/") and text[1:].isdigit():
        text = names[int(text[1:]) :].partition(b"\n")[0]
    return text.removesuffix(b"/").decode("utf-8", "backslashreplace")
