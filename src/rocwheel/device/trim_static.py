"""Removes the free space after the device code in object files, and in static libraries of object files.

Nothing in an object file has an address yet. Relocations refer to ``.hip_fatbin`` or to a symbol in it, and the linker
finds everything else through section headers. So the section ends with its last bundle, the data after it moves up, and
no bundle moves. In a static library (``ar``), members move closer together, and the symbol index gets the new offsets.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bounded_bytes import OffsetMoves
from rocwheel.binary.bundles.device_code import AR_HEADER_SIZE, ArPart, iter_ar_members, iter_ar_parts
from rocwheel.binary.bundles.wrappers import FatBinary, elf_code_section, read_fat_binary
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, NotTrimmableError
from rocwheel.binary.elf.header import (
    E_SHOFF,
    ET_REL,
    SECTION_LAYOUT,
    SHT_RELA,
    SHT_SYMTAB,
    ElfBytes,
    ElfSection,
    Header,
    read_header,
    read_section_table,
)
from rocwheel.binary.elf.patch import patch_of_writes
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT
from rocwheel.binary.kind import AR_MAGIC, is_elf64
from rocwheel.core.messages import count
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import Data
from rocwheel.device.trim_space import page_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.binary.bundles.storage import BundleChange

_RELA = struct.Struct("<QQq")
_OFFSET = struct.Struct("<Q")
_MOST_SECTIONS = 0xFF00
"""The number of sections at which symbols begin to store section numbers in a separate table."""
_BSD_INDEX = "__.SYMDEF"
_SIZE_START, _SIZE_STOP = 48, 58


class _ObjectFile(msgspec.Struct, frozen=True):
    """An object file with device code."""

    data: Data
    fat: FatBinary
    header: Header
    sections: tuple[ElfSection, ...]
    section: ElfSection
    """``.hip_fatbin``."""

    @property
    def index(self) -> int:
        """The number of the device code section."""
        return self.sections.index(self.section)

    @property
    def stop(self) -> int:
        """The file offset after the device code section."""
        return self.section.offset + self.section.size


def is_object_file(data: Data, *, name: str) -> bool:
    """Return whether ``data`` is an ELF object file; raise `ElfError` for a damaged header."""
    return is_elf64(data) and read_header(ElfBytes(data, name)).type == ET_REL


def require_trimmable_archive(data: Data, *, name: str) -> None:
    """Check whether free space can be removed from the static library ``data``, before any work on the bundles.

    Raises `NotTrimmableError` if a member with device code isn't an ELF object file, or if the library has a BSD symbol
    index. Raises `DeviceCodeError` for an index that refers to missing members.
    """
    for member in iter_ar_members(data, name=name):
        if member.name.startswith(_BSD_INDEX):
            raise NotTrimmableError(CodePlace(name), "a BSD symbol index", expected="a GNU or LLVM symbol index")
        _require_trimmable_member(data[member.offset :][: member.size], f"{name}({member.name})")
    parts = tuple(iter_ar_parts(data, name=name))
    places = {0, *(part.start for part in parts)}
    for part in parts:
        for place in _indexed(data, part):
            if place not in places:
                found = f"a symbol index with offset {place:#x}, but no member begins there"
                at = CodePlace(name, part.offset)
                raise DeviceCodeError(at, found, expected="a valid index", remedy="Rebuild the index with ranlib.")


def _require_trimmable_member(data: Data, name: str) -> None:
    fat = read_fat_binary(data, name=name)
    if fat is None:
        return
    if not is_object_file(data, name=name):
        raise NotTrimmableError(
            CodePlace(name), "device code in a file that isn't an ELF object", expected="ELF objects"
        )
    read_trimmable_object(data, fat)


def plan_object_trim(data: Data, *, name: str, changes: Sequence[BundleChange]) -> FilePatch:
    """Return the patch that applies ``changes`` to the bundles of the object file ``data`` and trims the file.

    Raises `NotTrimmableError` if a symbol or relocation refers to a location after the last bundle. Also raises it if
    the section has other data, or if there are 65280 sections or more. Raises a different `InputError` for damaged
    files.
    """
    fat = read_fat_binary(data, name=name)
    assert fat is not None, "the changes are to the file's bundles"
    file = read_trimmable_object(data, fat)
    bundles = tuple(fat.iter_bundles(data))
    if not bundles:
        return FilePatch(len(data), ())
    made = {change.bundle.start: change for change in changes}
    last = bundles[-1]
    size = made[last.start].size if last.start in made else last.size
    used = min(page_end(last.start + size), file.section.size)
    unit = max([8, *(section.alignment for section in file.sections if section.offset >= file.stop)])
    gain = (file.section.size - used) // unit * unit
    if gain == 0:
        return FilePatch(len(data), tuple(new for change in changes for new in change.replacements))
    moved = OffsetMoves(((file.stop, -gain),))
    content = [new for change in changes if change.bundle.start != last.start for new in change.replacements]
    content += made[last.start].placed(file.section.offset + last.start) if last.start in made else ()
    written = max([file.section.offset + last.start + size, *(new.stop for new in content)])
    padding = [Replacement(written, file.stop - gain)] if written < file.stop - gain else []
    edits = patch_of_writes(_tables(file, moved, used), len(data) - gain, name=name)
    return FilePatch(len(data) - gain, (*content, *padding, *moved.iter_moved(len(data)))).then(edits)


def read_trimmable_object(data: Data, fat: FatBinary) -> _ObjectFile:
    """Read the object file ``data``; raise the same errors as `plan_object_trim` if free space can't be removed."""
    source = ElfBytes(data, fat.name)
    header = read_header(source)
    sections = read_section_table(source, header)
    section = elf_code_section(sections)
    assert section is not None, "the code was found in this section"
    file = _ObjectFile(data, fat, header, sections, section)
    tables = (header.sections_offset, header.section_count * SECTION_LAYOUT.size)
    places = [tables, *((s.offset, s.size) for s in sections if s.has_bytes and s != section)]
    if any(size and start < file.stop and start + size > section.offset for start, size in places):
        place = CodePlace(fat.name, section.offset)
        raise NotTrimmableError(place, "other data in .hip_fatbin", expected="only device code")
    if header.segment_count or header.section_count >= _MOST_SECTIONS:
        found = "program headers" if header.segment_count else count(header.section_count, "section")
        raise NotTrimmableError(CodePlace(fat.name), found, expected="an object file from a compiler")
    return file


def _tables(file: _ObjectFile, moved: OffsetMoves, size: int) -> Iterator[Replacement]:
    """Yield the section headers, their offset in the ELF header, and the sizes of symbols that span the section."""
    for number, table in enumerate(file.sections):
        if table.type == SHT_SYMTAB:
            yield from _symbol_sizes(file, number, moved, size)
    start = moved.offset(file.header.sections_offset)
    rows = (
        msgspec.structs.replace(section, size=size)
        if section == file.section
        else msgspec.structs.replace(section, offset=moved.offset(section.offset))
        for section in file.sections
    )
    yield Replacement.of(E_SHOFF, _OFFSET.pack(start))
    yield Replacement.of(start, b"".join(section.pack() for section in rows))


def _symbol_sizes(file: _ObjectFile, number: int, moved: OffsetMoves, size: int) -> Iterator[Replacement]:
    table = file.sections[number]
    inside: dict[int, int] = {}
    content = bytes(file.data[table.offset : table.offset + table.size])
    rows = SYMBOL_LAYOUT.iter_unpack(content[: len(content) // SYMBOL_LAYOUT.size * SYMBOL_LAYOUT.size])
    for row, (name, info, other, section, value, length) in enumerate(rows):
        if section != file.index:
            continue
        inside[row] = value
        _require_kept(file, value, size)
        if value + length > size:
            at = moved.offset(table.offset) + row * SYMBOL_LAYOUT.size
            yield Replacement.of(at, SYMBOL_LAYOUT.pack(name, info, other, section, value, size - value))
    for relocations in file.sections:
        if relocations.type == SHT_RELA and relocations.link == number:
            _check_relocations(file, relocations, inside, size)


def _check_relocations(file: _ObjectFile, table: ElfSection, inside: Mapping[int, int], size: int) -> None:
    content = bytes(file.data[table.offset : table.offset + table.size])
    for _, info, addend in _RELA.iter_unpack(content[: len(content) // _RELA.size * _RELA.size]):
        if info >> 32 in inside:
            _require_kept(file, inside[info >> 32] + addend, size)


def _require_kept(file: _ObjectFile, value: int, size: int) -> None:
    if value > size:
        place = CodePlace(file.fat.name, file.section.offset + value)
        raise NotTrimmableError(
            place,
            "a symbol or relocation for a location after the code",
            expected="symbols and relocations inside the code",
        )


def plan_archive_trim(data: Data, patches: Mapping[int, FilePatch], *, name: str) -> FilePatch:
    """Return the patch for the static library ``data`` with ``patches`` for its members, keyed by offset.

    Members keep their order, their names, and all other header fields.
    """
    parts = tuple(iter_ar_parts(data, name=name))
    pieces: list[Replacement] = []
    places = {0: 0}
    position = len(AR_MAGIC)
    for part in parts:
        places[part.start] = position
        patch = patches.get(part.offset, FilePatch(part.size))
        pieces.append(Replacement.of(position, _header(data, part, patch.size)))
        for buffer in patch.apply(data[part.offset :][: part.size]):
            pieces.append(Replacement.of(pieces[-1].stop, buffer))
        if (pieces[-1].stop - position) % 2:
            pieces.append(Replacement.of(pieces[-1].stop, b"\n"))
        position = pieces[-1].stop
    edits = tuple(
        Replacement.of(places[part.start] + AR_HEADER_SIZE, _new_index(data, part, places))
        for part in parts
        if part.index_width
    )
    return FilePatch(position, tuple(pieces)).then(FilePatch(position, edits))


def _header(data: Data, part: ArPart, size: int) -> bytes:
    """Return the header for a part of ``size`` bytes, including any name after it that counts as part of the header."""
    old = bytes(data[part.start : part.offset])
    total = size + len(old) - AR_HEADER_SIZE
    return old if size == part.size else b"%b%-10d%b" % (old[:_SIZE_START], total, old[_SIZE_STOP:])


def _indexed(data: Data, part: ArPart) -> tuple[int, ...]:
    """Return the offset of a member's header for each symbol in an index, or an empty tuple for other parts."""
    width = part.index_width
    if width is None or part.size < width:
        return ()
    number = int.from_bytes(bytes(data[part.offset :][:width]), "big")
    numbers = bytes(data[part.offset + width :][: min(number * width, part.size - width)])
    return tuple(int.from_bytes(numbers[at : at + width], "big") for at in range(0, len(numbers), width))


def _new_index(data: Data, part: ArPart, places: Mapping[int, int]) -> bytes:
    """Return the new content of a symbol index, with each member's new offset."""
    width = part.index_width or 0
    offsets = b"".join(places[old].to_bytes(width, "big") for old in _indexed(data, part))
    return bytes(data[part.offset :][:width]) + offsets
