"""Finds device code in files of any kind. A file's bytes, not its name, determine the kind.

The files can be fat binaries, bundle files, standalone code objects, object files that aren't linked yet, and static
libraries.

A static library is an ``ar`` archive. Long member names are in a separate table, or precede the member's bytes
(``#1/12``: the first twelve bytes). See https://www.freebsd.org/cgi/man.cgi?query=ar&sektion=5.

The new offload driver stores the images of an object file as offload binaries in ``.llvm.offloading``. They are
little-endian and aligned to 8 bytes. See
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

The old driver creates a section for each image. The section's name is ``__CLANG_OFFLOAD_BUNDLE__`` plus the bundle
entry ID. Images for other languages, such as SYCL, and for other vendors' GPUs have different IDs, such as
``sycl-spir64-unknown-unknown``.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bundles.plain import BundleEntry, OffloadBundle
from rocwheel.binary.bundles.sequence import Bundle, iter_bundles
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import (
    DEVICE_KINDS,
    BundleEntryId,
    CodeObject,
    CodePlace,
    DeviceCodeError,
    TargetId,
    is_code_object,
    parse_target_id,
    read_code_object,
)
from rocwheel.binary.elf.header import ElfSection, read_sections
from rocwheel.binary.kind import AR_MAGIC, is_ar_archive, is_bundle, is_coff_object, is_elf64
from rocwheel.binary.pe.header import PeBytes
from rocwheel.binary.pe.object_file import ObjectSection, read_object_file
from rocwheel.core.messages import count
from rocwheel.core.reading import Data

if TYPE_CHECKING:
    from collections.abc import Iterator


AR_HEADER_SIZE: Final = 60
"""The size in bytes of a member's header: name 16, times and IDs 32, size 10, end marker 2."""
_LONGEST_NAME = 4096
"""The longest name in bytes; paths can't be longer. In a damaged archive, many members may share one long name."""
_MOST_PARTS = 1 << 17
"""The maximum number of parts.

The import library of a DLL has at most 65,535 functions, with a member for each. In Debian 12's mingw-w64, the largest
import library has 5,436 members (``libmincore.a``), and the largest static library has 251 (``libgcc.a``).
"""
_DEEPEST = 8
"""The maximum depth to which archives may be nested. An archive for a linker contains no other archives."""
_HEADER_END = b"`\n"
_ODD_NUMBER = re.compile(rb"/(?:[\s+-]+[0-9_]+|[0-9]+_[0-9_]+)/?")
"""A name that GNU ar treats as the number of another name, and that LLVM reports as damage."""
_NAME_BEFORE = b"#1/"


class ArHeader(msgspec.Struct, frozen=True):
    """A member's header: its name as stored, without trailing blanks, and its size in bytes."""

    name: bytes
    size: int

    @property
    def padded_size(self) -> int:
        """The number of bytes up to the next header, which starts at an even offset."""
        return self.size + self.size % 2


def parse_ar_header(header: bytes) -> ArHeader | None:
    """Parse a member's header; return `None` if the bytes aren't a complete header."""
    size = header[48:58].strip()
    if header[58:] != _HEADER_END or not size.isdigit():
        return None
    return ArHeader(header[:16].rstrip(), int(size))


class ArMember(msgspec.Struct, frozen=True):
    """A member of an archive: its name and the range of its bytes."""

    name: str
    offset: int
    size: int


class ArPart(msgspec.Struct, frozen=True):
    """A part of an archive, either a member or a table: its name as stored, and the range of its bytes."""

    start: int
    """The offset of the header."""
    name: bytes
    offset: int
    size: int

    @property
    def index_width(self) -> int | None:
        """The size in bytes of each big-endian number in a symbol index, or `None` for any other part.

        An index starts with the number of symbols. Then, for each symbol, it has the offset of the member's header.
        """
        return {b"/": 4, b"/SYM64/": 8}.get(self.name)


def iter_ar_parts(data: Data, *, name: str) -> Iterator[ArPart]:
    """Yield every part of the archive ``data``, including its symbol table and its name table.

    Raises `DeviceCodeError` for damaged headers, truncated members and headers, names that extend past their member,
    and too many parts.
    """
    position, names, number = len(AR_MAGIC), b"", 0
    while position + AR_HEADER_SIZE <= len(data):
        start, number = position + AR_HEADER_SIZE, number + 1
        if number > _MOST_PARTS:
            found = f"more than {_MOST_PARTS} members"
            raise DeviceCodeError(CodePlace(name), found, expected="an archive of fewer object files")
        header = parse_ar_header(bytes(data[position:start]))
        if header is None:
            found = f"{bytes(data[position : position + 16])!r} where an archive member should start"
            raise DeviceCodeError(CodePlace(name, position), found)
        if header.size > len(data) - start:
            label = _member_name(header.name, names, CodePlace(name, position))
            found = (
                f"the member {label!r} of {count(header.size, 'byte')}, of which only {len(data) - start} are present"
            )
            raise DeviceCodeError(
                CodePlace(name, position), found, expected="a complete archive", remedy="Rebuild the file."
            )
        names = bytes(data[start : start + header.size]) if header.name == b"//" else names
        part_name, used = _name_before(data, position, header, name)
        yield ArPart(position, part_name, start + used, header.size - used)
        position = start + header.padded_size
    if rest := bytes(data[position:]).strip(b"\n"):
        found = f"{count(len(rest), 'byte')} where an archive member should start"
        raise DeviceCodeError(
            CodePlace(name, position), found, expected="a complete archive", remedy="Rebuild the file."
        )


def _name_before(data: Data, position: int, header: ArHeader, name: str) -> tuple[bytes, int]:
    """Return a part's name, and the number of bytes that the name takes up after the header.

    BSD and Darwin store names after the header. Zeros after such a name align the data that follows.
    """
    length = header.name.removeprefix(_NAME_BEFORE)
    if length == header.name or not length.isdigit():
        return header.name, 0
    size = int(length)
    if size > min(header.size, _LONGEST_NAME):
        found = f"a name of {count(size, 'byte')} in a member of {count(header.size, 'byte')}"
        raise DeviceCodeError(
            CodePlace(name, position), found, expected=f"at most {_LONGEST_NAME} bytes, all inside the member"
        )
    return bytes(data[position + AR_HEADER_SIZE :][:size]).rstrip(b"\0"), size


def iter_ar_members(data: Data, *, name: str, depth: int = 0) -> Iterator[ArMember]:
    """Yield the members of the archive ``data``, without its symbol table and name table.

    ``depth`` is the number of archives that surround this archive. Raises the same errors as `iter_ar_parts`. Also
    raises `DeviceCodeError` for names longer than 4096 bytes, for name numbers that aren't digits, and for archives
    that are nested too deeply.
    """
    if depth > _DEEPEST:
        found = f"an archive inside {depth} other archives"
        raise DeviceCodeError(
            CodePlace(name), found, expected="object files, because linkers don't read nested archives"
        )
    names = b""
    for part in iter_ar_parts(data, name=name):
        if part.name == b"//":
            names = bytes(data[part.offset :][: part.size])
        elif part.index_width is None:
            yield ArMember(_member_name(part.name, names, CodePlace(name, part.start)), part.offset, part.size)


def _member_name(text: bytes, names: bytes, place: CodePlace) -> str:
    if text.startswith(b"/") and text[1:].isdigit():
        start = int(text[1:])
        # Microsoft's tools end names with a NUL byte, other tools with a slash and a newline.
        text, _, rest = names[start : start + _LONGEST_NAME + 1].replace(b"\0", b"\n").partition(b"\n")
        if not rest and len(text) > _LONGEST_NAME:
            raise DeviceCodeError(place, f"a name of more than {_LONGEST_NAME} bytes", expected="a file name")
    elif _ODD_NUMBER.fullmatch(text):
        found = f"a member with the name {text.decode()!r}"
        raise DeviceCodeError(place, found, expected="a slash and digits, such as '/0'", remedy="Rebuild the file.")
    return text.removesuffix(b"/").decode("utf-8", "backslashreplace")


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
    """An image for one target; ``offset`` and ``size`` are its range in the file, in bytes."""

    kind: str
    triple: str
    arch: str
    """The processor as written in the image, which might be another vendor's, such as ``sm_80``.

    If the image has no processor, this is the architecture.
    """
    target: TargetId | None
    offset: int
    size: int


def read_offload_images(data: Data, *, name: str) -> tuple[OffloadImage, ...]:
    """Return every image in the object file ``data``, or an empty tuple if it isn't 64-bit ELF or Windows COFF.

    Raises `ElfError` and `PeError` for damaged files, and `DeviceCodeError` for damaged offload binaries.
    """
    images: list[OffloadImage] = []
    left = len(data)
    for section in _sections(data, name):
        if section.name == _SECTION:
            left -= section.size
            _require(
                left >= 0, CodePlace(name, section.offset), f"a section {_SECTION}", "overlaps another such section"
            )
            images += _read_binaries(data, section, name)
        elif section.name.startswith(_SECTION_PREFIX):
            images += _read_section(section, CodePlace(name, section.offset))
    return tuple(images)


def _sections(data: Data, name: str) -> tuple[ElfSection | ObjectSection, ...]:
    if is_elf64(data):
        return read_sections(data, name=name)
    return read_object_file(PeBytes(data, name)).sections if is_coff_object(data) else ()


def _read_section(section: ElfSection | ObjectSection, place: CodePlace) -> Iterator[OffloadImage]:
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


def _read_binaries(data: Data, section: ElfSection | ObjectSection, name: str) -> Iterator[OffloadImage]:
    position = 0
    view = data[section.offset : section.offset + section.size]
    while position + _HEADER.size <= len(view):
        place = CodePlace(name, section.offset + position)
        magic, version, size, entries, entry_count = _HEADER.unpack(bytes(view[position : position + _HEADER.size]))
        if magic != _MAGIC or version not in _STRING_SIZES:
            raise DeviceCodeError(
                place,
                f"an offload binary that starts with {magic!r} and has version {version}",
                expected=f"{_MAGIC!r} and version 1 or 2",
            )
        if not _HEADER.size <= size <= len(view) - position:
            raise DeviceCodeError(
                place, f"an offload binary of {count(size, 'byte')}", expected=f"at most {len(view) - position}"
            )
        binary = view[position : position + size]
        for number in range(entry_count if version == 2 else 1):
            yield _read_entry(binary, entries + number * _ENTRY.size, version, place)
        position += -(-size // 8) * 8


def _read_entry(binary: Data, position: int, version: int, place: CodePlace) -> OffloadImage:
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


def _read_string(binary: Data, offset: int, place: CodePlace) -> str:
    text, end, _ = bytes(binary[offset : offset + 4096]).partition(b"\0")
    _require(bool(end), place, "a string")
    return text.decode("utf-8", "backslashreplace")


def _require(
    condition: bool, place: CodePlace, what: str, fault: str = "in an offload binary extends past its end"
) -> None:
    if not condition:
        raise DeviceCodeError(place, f"{what} {fault}")


_TRIPLE = "amdgcn-amd-amdhsa"


class DeviceCode(msgspec.Struct, frozen=True):
    """A file with device code; at most one of ``fat_binary`` and ``code_object`` is set.

    ``section`` is the range of bytes that contains the bundles: offset and size.
    """

    name: str
    section: tuple[int, int]
    fat_binary: FatBinary | None = None
    code_object: CodeObject | None = None

    def view(self, data: Data) -> Data:
        """Return the bytes that contain the bundles, as a part of ``data``, which is the entire file."""
        return data[self.section[0] : sum(self.section)]

    def iter_bundles(self, data: Data, *, strict: bool = True) -> Iterator[Bundle]:
        """Yield the bundles; a standalone code object has no bundles.

        Each bundle's ``start`` is relative to the beginning of `view`.

        Raises `DeviceCodeError` for damaged bundles and, if ``strict``, for wrappers that don't point to a bundle.
        """
        if self.code_object is not None:
            return iter(())
        if self.fat_binary is not None:
            return self.fat_binary.iter_bundles(data, strict=strict)
        return iter_bundles(data, name=self.name)


def read_device_code(data: Data, *, name: str) -> DeviceCode | None:
    """Return the device code in ``data``, the bytes of the file ``name``, or `None` if there is no device code.

    Raises `InputError` (`ElfError`, `DeviceCodeError`) for damaged files.
    """
    if is_bundle(data):
        return DeviceCode(name, (0, len(data)))
    if is_code_object(data):
        return DeviceCode(name, (0, 0), code_object=read_code_object(data, place=CodePlace(name)))
    fat_binary = read_fat_binary(data, name=name)
    if fat_binary is None:
        return None
    size = 0 if fat_binary.is_kpacked or fat_binary.is_empty else fat_binary.section.size
    return DeviceCode(name, (fat_binary.section.offset, size), fat_binary)


class CodeSource(msgspec.Struct, frozen=True):
    """A bundle and the bytes that contain it.

    A standalone code object, and the images of an object file that isn't linked yet, are represented as a plain bundle.
    The entries of that bundle specify the location of the code.
    """

    view: Data
    bundle: Bundle


def iter_code_sources(data: Data, *, name: str) -> Iterator[CodeSource]:
    """Yield every source of code for AMD GPUs in the file ``name``, in file order.

    For object files, yield the images of both offload drivers; for archives, yield the images of every member. For a
    compressed bundle, decompress only the beginning. Raises `InputError` for damaged files.
    """
    return _iter_code_sources(data, name, 0)


def _iter_code_sources(data: Data, name: str, depth: int) -> Iterator[CodeSource]:
    """Yield the sources of code in a file that is inside ``depth`` nested archives."""
    if is_ar_archive(data):
        for member in iter_ar_members(data, name=name, depth=depth):
            content = data[member.offset : member.offset + member.size]
            yield from _iter_code_sources(content, f"{name}({member.name})", depth + 1)
        return
    code = read_device_code(data, name=name)
    if code is None or code.code_object is not None:
        target = code.code_object.target if code and code.code_object else None
        entries = _image_entries(data, name) if code is None else ()
        if target is not None:
            entries = (BundleEntry(BundleEntryId("", _TRIPLE, target), str(target), 0, len(data)),)
        if entries:
            yield CodeSource(data, Bundle(CodePlace(name, entries[0].offset), 0, len(data), OffloadBundle(entries, 0)))
        return
    for bundle in code.iter_bundles(data):
        yield CodeSource(code.view(data), bundle)


def _image_entries(data: Data, name: str) -> tuple[BundleEntry, ...]:
    return tuple(
        BundleEntry(
            BundleEntryId(image.kind, image.triple, image.target),
            f"{image.kind}-{image.triple}-{image.arch}",
            image.offset,
            image.size,
        )
        for image in read_offload_images(data, name=name)
        if image.target is not None
    )


def device_targets(data: Data, *, name: str) -> tuple[TargetId, ...]:
    """Return every target for which the file ``name`` contains code, without duplicates, in order of appearance.

    Raises the same errors as `iter_code_sources`.
    """
    sources = iter_code_sources(data, name=name)
    return tuple(dict.fromkeys(target for source in sources for target in source.bundle.targets))
