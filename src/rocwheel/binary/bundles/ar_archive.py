"""Static libraries (``ar`` archives) in the System V form that GNU and LLVM write, and in that of BSD and Darwin.

Long names are in a table of their own, or before the bytes of the member (``#1/12``: the first twelve bytes).

See https://www.freebsd.org/cgi/man.cgi?query=ar&sektion=5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import AR_MAGIC
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.reading import Data

__all__ = ["AR_HEADER_SIZE", "ArHeader", "ArMember", "ArPart", "iter_ar_members", "iter_ar_parts", "parse_ar_header"]

AR_HEADER_SIZE: Final = 60
"""Bytes of a member's header: name 16, times and ids 32, size 10, end 2."""
_LONGEST_NAME = 4096
"""Bytes; paths have no more. Many members of a damaged archive may have one long name."""
_DEEPEST = 8
"""Archives around one; none that is built for a linker is in another."""
_HEADER_END = b"`\n"
_NAME_BEFORE = b"#1/"


class ArHeader(msgspec.Struct, frozen=True):
    """The header of a member: its name as it stands there, without the blanks behind it, and its size in bytes."""

    name: bytes
    size: int

    @property
    def padded_size(self) -> int:
        """Bytes up to the next header, which begins at an even offset."""
        return self.size + self.size % 2


def parse_ar_header(header: bytes) -> ArHeader | None:
    """Parse the header of a member; none for bytes that are not one, or not a whole one."""
    size = header[48:58].strip()
    if header[58:] != _HEADER_END or not size.isdigit():
        return None
    return ArHeader(header[:16].rstrip(), int(size))


class ArMember(msgspec.Struct, frozen=True):
    """A member of an archive: its name and where its bytes are."""

    name: str
    offset: int
    size: int


class ArPart(msgspec.Struct, frozen=True):
    """Whatever a header stands before: a member, or a table; its name as it stands there, and where its bytes are."""

    start: int
    """Where the header is."""
    name: bytes
    offset: int
    size: int

    @property
    def index_width(self) -> int | None:
        """The bytes of each big-endian number in a symbol index; none for anything else.

        First is the count of symbols, then for each the offset of its member's header.
        """
        return {b"/": 4, b"/SYM64/": 8}.get(self.name)


def iter_ar_parts(data: Data, *, name: str) -> Iterator[ArPart]:
    """Yield everything in the archive ``data``, its symbol and name tables included.

    Raises `DeviceCodeError` for damaged headers, for members past the end, and for names that don't fit in the member.
    """
    position = len(AR_MAGIC)
    while position + AR_HEADER_SIZE <= len(data):
        start = position + AR_HEADER_SIZE
        header = parse_ar_header(bytes(data[position:start]))
        if header is None:
            found = f"{bytes(data[position : position + 16])!r} where an archive member should start"
            raise DeviceCodeError(Place(name, position), found)
        if header.size > len(data) - start:
            found = f"a member of {count(header.size, 'byte')}, of which {len(data) - start} are there"
            raise DeviceCodeError(Place(name, position), found, expected="a whole archive", remedy="Build it again.")
        part_name, used = _name_before(data, position, header, name)
        yield ArPart(position, part_name, start + used, header.size - used)
        position = start + header.padded_size


def _name_before(data: Data, position: int, header: ArHeader, name: str) -> tuple[bytes, int]:
    """Return the name of a part, and how many of the bytes behind its header are that name, as BSD and Darwin have it.

    Zeros behind such a name align what follows.
    """
    length = header.name.removeprefix(_NAME_BEFORE)
    if length == header.name or not length.isdigit():
        return header.name, 0
    size = int(length)
    if size > min(header.size, _LONGEST_NAME):
        found = f"a name of {count(size, 'byte')} in a member of {count(header.size, 'byte')}"
        raise DeviceCodeError(Place(name, position), found, expected=f"up to {_LONGEST_NAME} bytes, all in the member")
    return bytes(data[position + AR_HEADER_SIZE :][:size]).rstrip(b"\0"), size


def iter_ar_members(data: Data, *, name: str, depth: int = 0) -> Iterator[ArMember]:
    """Yield the members of the archive ``data``, without its symbol and name tables.

    ``depth`` is how many archives it is in. Raises `DeviceCodeError` as `iter_ar_parts` does, for names of more than
    4096 bytes, and for archives that are too deep in others.
    """
    if depth > _DEEPEST:
        found = f"an archive that is in {depth} others"
        raise DeviceCodeError(Place(name), found, expected="object files: linkers take them from no archive in another")
    names = b""
    for part in iter_ar_parts(data, name=name):
        if part.name == b"//":
            names = bytes(data[part.offset :][: part.size])
        elif part.index_width is None:
            yield ArMember(_member_name(part.name, names, Place(name, part.start)), part.offset, part.size)


def _member_name(text: bytes, names: bytes, place: Place) -> str:
    if text.startswith(b"/") and text[1:].isdigit():
        start = int(text[1:])
        # Microsoft's tools end names with a zero, others with a slash and a newline.
        text, _, rest = names[start : start + _LONGEST_NAME + 1].replace(b"\0", b"\n").partition(b"\n")
        if not rest and len(text) > _LONGEST_NAME:
            raise DeviceCodeError(place, f"a name of more than {_LONGEST_NAME} bytes", expected="that of a file")
    return text.removesuffix(b"/").decode("utf-8", "backslashreplace")
