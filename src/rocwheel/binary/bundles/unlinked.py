"""Device code in object files that are not linked yet: one image for each target.

The new offload driver stores them as offload binaries in ``.llvm.offloading``, little-endian, aligned to 8 bytes, after
https://github.com/llvm/llvm-project/blob/main/llvm/include/llvm/Object/OffloadBinary.h:

=======  ===================================================================================================
part     fields
=======  ===================================================================================================
header   ``10 FF 10 AD``, u32 version, u64 total size, u64 offset of the entries, u64 size of the one entry
         (version 1) or number of entries (version 2)
entry    u16 image kind, u16 offload kind, u32 flags, u64 offset of the strings, u64 number of strings,
         u64 offset of the image, u64 size of the image
string   u64 offset of the key, u64 offset of the value, and in version 2 u64 size of the value
=======  ===================================================================================================

The old driver makes a section for each image, named ``__CLANG_OFFLOAD_BUNDLE__`` and the bundle entry id. Those of
other languages, such as SYCL, and for other makers' GPUs have ids of their own, ``sycl-spir64-unknown-unknown``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.code_objects.target_id import DEVICE_KINDS, BundleEntryId, TargetId, parse_target_id
from rocwheel.binary.elf.sections import Section, read_sections
from rocwheel.binary.kind import is_coff_object, is_elf64
from rocwheel.binary.pe.bytes import PeBytes
from rocwheel.binary.pe.object_file import ObjectSection, read_object_file
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.reading import Data

__all__ = ["OffloadImage", "read_offload_images"]

_SECTION = ".llvm.offloading"
_SECTION_PREFIX = "__CLANG_OFFLOAD_BUNDLE__"
_MAGIC = b"\x10\xff\x10\xad"
_HEADER = struct.Struct("<4sIQQQ")
_ENTRY = struct.Struct("<HHIQQQQ")
_ROW = struct.Struct("<QQ")
_STRING_SIZES = {1: 16, 2: 24}
_KINDS = {1: "openmp", 2: "cuda", 4: "hip", 8: "sycl"}
_STRING_LIMIT = 64
_AMD = frozenset({"", "amdgcn", "spirv64"})


class OffloadImage(msgspec.Struct, frozen=True):
    """An image for one target; ``offset`` and ``size`` say where it is in the file, in bytes."""

    kind: str
    triple: str
    arch: str
    """The processor as it is spelled, which may be another maker's, ``sm_80``; without one, the architecture."""
    target: TargetId | None
    offset: int
    size: int


def read_offload_images(data: Data, *, name: str) -> tuple[OffloadImage, ...]:
    """Return every image in the object file ``data``, ELF of 64 bits or of Windows; empty for any other file.

    Raises `ElfError` and `PeError` for damaged files and `DeviceCodeError` for damaged offload binaries.
    """
    images: list[OffloadImage] = []
    left = len(data)
    for section in _sections(data, name):
        if section.name == _SECTION:
            left -= section.size
            _require(left >= 0, Place(name, section.offset), f"a section {_SECTION}", "is one with others")
            images += _read_binaries(data, section, name)
        elif section.name.startswith(_SECTION_PREFIX):
            images += _read_section(section, Place(name, section.offset))
    return tuple(images)


def _sections(data: Data, name: str) -> tuple[Section | ObjectSection, ...]:
    if is_elf64(data):
        return read_sections(data, name=name)
    return read_object_file(PeBytes(data, name)).sections if is_coff_object(data) else ()


def _read_section(section: Section | ObjectSection, place: Place) -> Iterator[OffloadImage]:
    text = section.name.removeprefix(_SECTION_PREFIX)
    kind, _, rest = text.partition("-")
    fields = rest.split("-", 4)
    if rest and kind != "host" and (kind not in DEVICE_KINDS or fields[0] not in _AMD):
        arch = "".join(fields[4:]) or fields[0]
        yield OffloadImage(kind, "-".join(fields[:4]), arch, None, section.offset, section.size)
        return
    entry = BundleEntryId.parse(text, source=str(place))
    if not entry.is_host:
        yield OffloadImage(entry.kind, entry.triple, str(entry.target), entry.target, section.offset, section.size)


def _read_binaries(data: Data, section: Section | ObjectSection, name: str) -> Iterator[OffloadImage]:
    position = 0
    view = data[section.offset : section.offset + section.size]
    while position + _HEADER.size <= len(view):
        place = Place(name, section.offset + position)
        magic, version, size, entries, entry_count = _HEADER.unpack(bytes(view[position : position + _HEADER.size]))
        if magic != _MAGIC or version not in _STRING_SIZES:
            raise DeviceCodeError(
                place,
                f"an offload binary that starts with {magic!r}, version {version}",
                expected=f"{_MAGIC!r}, version 1 or 2",
            )
        if not _HEADER.size <= size <= len(view) - position:
            raise DeviceCodeError(
                place, f"an offload binary of {count(size, 'byte')}", expected=f"at most {len(view) - position}"
            )
        binary = view[position : position + size]
        for number in range(entry_count if version == 2 else 1):
            yield _read_entry(binary, entries + number * _ENTRY.size, version, place)
        position += -(-size // 8) * 8


def _read_entry(binary: Data, position: int, version: int, place: Place) -> OffloadImage:
    _require(position + _ENTRY.size <= len(binary), place, "an entry")
    _, kind, _, strings, string_count, offset, size = _ENTRY.unpack(bytes(binary[position : position + _ENTRY.size]))
    _require(offset + size <= len(binary), place, "an image")
    _require(string_count <= _STRING_LIMIT, place, "a table of strings")
    texts: dict[str, str] = {}
    for number in range(string_count):
        row = strings + number * _STRING_SIZES[version]
        _require(row + _STRING_SIZES[version] <= len(binary), place, "a table of strings")
        key, value = _ROW.unpack(bytes(binary[row : row + _ROW.size]))
        texts[_read_string(binary, key, place)] = _read_string(binary, value, place)
    arch, triple = texts.get("arch", ""), texts.get("triple", "")
    is_amd = triple.partition("-")[0] in _AMD
    target = parse_target_id(arch, source=str(place)) if arch and is_amd else None
    return OffloadImage(_KINDS.get(kind, str(kind)), triple, arch, target, place.offset + offset, size)


def _read_string(binary: Data, offset: int, place: Place) -> str:
    text, end, _ = bytes(binary[offset : offset + 4096]).partition(b"\0")
    _require(bool(end), place, "a string")
    return text.decode("utf-8", "backslashreplace")


def _require(condition: bool, place: Place, what: str, fault: str = "of an offload binary lies past its end") -> None:
    if not condition:
        raise DeviceCodeError(place, f"{what} {fault}")
