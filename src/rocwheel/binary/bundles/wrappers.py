"""Wrappers of device code in host files: an array of them, one for each translation unit.

Each has 24 bytes, as clang's ``CGCUDANV.cpp`` emits them: u32 magic, u32 version (1), u64 pointer to a bundle, u64
zero. The magic is ``HIPF`` as a number, so ``FPIH`` as bytes; ``HIPK`` when the device code was moved to a kpack
archive: the pointer is then to a marker, and the u32 behind it is the index of the bundle in the archive. Several
wrappers may point to one bundle (relocatable device code).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.elf.relocations import Pointer

if TYPE_CHECKING:
    from rocwheel.binary.bounded_bytes import BoundedBytes

__all__ = ["CodeSection", "Wrapper", "pack_wrapper_head", "read_wrapper", "wrapper_starts"]

POINTER_OFFSET = 8
"""Where in a wrapper the pointer to its bundle is."""
INDEX_OFFSET = 16
_WRAPPER = struct.Struct("<II")
_WRAPPER_SIZE = 24
_INDEX = struct.Struct("<I")
_HIPF = 0x48495046
_HIPK = 0x4B504948


class CodeSection(msgspec.Struct, frozen=True):
    """A section of device code or markers, whatever the format of its file: what both kinds of headers say."""

    name: str
    address: int
    """Where the linker means it to be loaded; in a DLL counted from zero, not from the image base."""
    offset: int
    size: int
    """Bytes, those in the file for a DLL: it has more in memory where code was taken out."""
    is_empty: bool
    """Whether it takes no bytes of the file."""


class Wrapper(msgspec.Struct, frozen=True):
    """A wrapper: where it is in the file, whether its code is in a kpack archive, and where it points."""

    offset: int
    is_kpack: bool
    pointer: Pointer
    index: int = 0
    """The index of its bundle in the archive; without one it means nothing."""

    @property
    def leads_to(self) -> str:
        """Where it points, for messages: pointers below all addresses of the file, or into no section, have none."""
        target = self.pointer.target
        return f"address {target:#x}" if target >= 0 else "another section or nowhere"


def pack_wrapper_head(*, is_kpack: bool) -> bytes:
    """Return the magic and version of a wrapper, whose code is in a kpack archive or in the file."""
    return _WRAPPER.pack(_HIPK if is_kpack else _HIPF, 1)


def wrapper_starts(size: int) -> range:
    """Return where wrappers begin in a section of ``size`` bytes."""
    return range(0, size - size % _WRAPPER_SIZE, _WRAPPER_SIZE)


def read_wrapper(source: BoundedBytes, offset: int, pointer: Pointer) -> Wrapper:
    """Return the wrapper at a file offset; raise `DeviceCodeError` for one of an unknown kind."""
    magic, version = source.unpack(_WRAPPER, offset, "a wrapper")
    if magic not in {_HIPF, _HIPK} or version != 1:
        raise DeviceCodeError(
            Place(source.name, offset),
            f"a fat binary wrapper of magic {magic:#x} and version {version}",
            expected=f"{_HIPF:#x} (HIPF) or {_HIPK:#x} (HIPK) and version 1",
        )
    (index,) = source.unpack(_INDEX, offset + INDEX_OFFSET, "a wrapper")
    return Wrapper(offset, magic == _HIPK, pointer, index)
