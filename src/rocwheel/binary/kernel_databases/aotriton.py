"""The targets of AOTriton's images (``.aks2``), after ROCm/aotriton v2src/packed_kernel.cc.

======  ==========================================================================================================
offset  what
======  ==========================================================================================================
0       ``AKS2``, u32 size of what follows the header when decompressed, u32 number of kernels, u32 size of the
        directory
16      xz: for each kernel u32 shared memory, u32 threads, u32 offset of its code object from the directory's end,
        u32 its size (0: no kernel), u32 size of its name, the name with a NUL byte; then the code objects
======  ==========================================================================================================
"""

from __future__ import annotations

import io
import lzma
import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.code_object import header_processor
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.elf.header import HEADER_SIZE
from rocwheel.core.compression import MOST_EXPANDED, open_xz
from rocwheel.core.reading import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from rocwheel.core.reading import Data

__all__ = ["image_processors", "is_image"]

_MAGIC = b"AKS2"
_HEADER = struct.Struct("<4sIII")
_ENTRY = struct.Struct("<IIIII")
_LARGEST_DIRECTORY = 16 << 20
_LARGEST = 1 << 30
"""Bytes of an image when decompressed; real ones have a few millions."""
_TRUSTED = 4 << 20
"""Bytes to which an image of any size may be decompressed; there are thousands of them in a package."""
_CHUNK = 1 << 20


class _Header(msgspec.Struct, frozen=True):
    size: int
    kernels: int
    directory_size: int


def is_image(data: Data) -> bool:
    """Return whether ``data`` is an image of AOTriton by its first bytes."""
    return bytes(data[: len(_MAGIC)]) == _MAGIC


def image_processors(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the processors of an image's code objects, sorted; those that are not known are left out.

    Raises `DeviceCodeError` for an image that AOTriton would refuse.
    """
    place = Place(name)
    header = _read_header(data, place)
    content = open_xz(io.BufferedReader(_Reader(data[_HEADER.size :]), _CHUNK))
    try:
        directory = content.read(header.directory_size)
        offsets = sorted(_offsets(directory, header, place))
        return tuple(sorted(_processors(content, offsets, place)))
    except (lzma.LZMAError, EOFError) as e:
        found = f"an image that can't be decompressed ({e})"
        raise DeviceCodeError(place, found, expected=f"{header.size} bytes in xz") from e


def _read_header(data: Data, place: Place) -> _Header:
    head = bytes(data[: _HEADER.size])
    if len(head) < _HEADER.size or not head.startswith(_MAGIC):
        raise DeviceCodeError(place, "no header of an image", expected="AKS2 and three numbers")
    header = _Header(*_HEADER.unpack(head)[1:])
    largest = min(_LARGEST, max(_TRUSTED, MOST_EXPANDED * len(data)))
    if not header.directory_size <= header.size <= largest or header.directory_size > _LARGEST_DIRECTORY:
        found = f"an image of {header.size} bytes with a directory of {header.directory_size}"
        raise DeviceCodeError(place, found, expected=f"at most {largest} and {_LARGEST_DIRECTORY}")
    if header.kernels > header.directory_size // (_ENTRY.size + 1):
        found = f"{header.kernels} kernels in a directory of {header.directory_size} bytes"
        raise DeviceCodeError(place, found, expected=f"at least {_ENTRY.size + 1} bytes for each")
    return header


def _offsets(directory: bytes, header: _Header, place: Place) -> Iterator[int]:
    """Yield where code objects begin, counted from the directory's end."""
    room = header.size - header.directory_size
    at = 0
    for _ in range(header.kernels):
        if at + _ENTRY.size > len(directory):
            raise DeviceCodeError(place, "a directory that ends in an entry", expected=f"{header.kernels} entries")
        _, _, offset, size, name_size = _ENTRY.unpack_from(directory, at)
        at += _ENTRY.size + name_size
        if at > len(directory) or offset + size > room:
            found = f"a kernel of {size} bytes at {offset}, of {room}, in a directory of {len(directory)} bytes"
            raise DeviceCodeError(place, found, expected="kernels inside of the image")
        if size:
            yield offset


def _processors(content: IO[bytes], offsets: list[int], place: Place) -> set[str]:
    found = set()
    head, end = b"", 0
    for offset in dict.fromkeys(offsets):
        _skip(content, offset - end, place)
        kept = head[len(head) - max(0, end - offset) :] if end > offset else b""
        head = kept + content.read(HEADER_SIZE - len(kept))
        end = offset + len(head)
        if processor := header_processor(head):
            found.add(processor)
    return found


def _skip(content: IO[bytes], size: int, place: Place) -> None:
    while size > 0:
        piece = content.read(min(size, _CHUNK))
        if not piece:
            raise DeviceCodeError(place, "an image that ends before its last kernel", expected="all its kernels")
        size -= len(piece)


class _Reader(io.RawIOBase):
    """The bytes of a view as a file to read forward."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        """Return that it can be read, as `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer with what comes next; 0 is the end."""
        view = memoryview(buffer)  # type: ignore[arg-type]  # a writable buffer, whatever its type
        piece = load(self._data[self._position : self._position + len(view)])
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
