"""Changes Windows DLLs and programs in place, and changes the sizes of their sections.

Nothing moves in memory. File offsets occur in the section headers, the COFF header (for symbols), the entries of the
debug directory, and the data directory for certificates. A file with certificates is rejected: any change makes the
certificates invalid, and only the signer can sign the file again.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import IO, TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import OffsetMoves
from rocwheel.binary.pe.facts import CHECKSUM, OFFSET_AT, RunningChecksum, iter_debug_entries, with_checksum
from rocwheel.binary.pe.header import SECTION_LAYOUT, PeBytes, PeDirectory, PeError, PeSection, read_header
from rocwheel.binary.pe.layout import find_loader_faults
from rocwheel.core.patch import FilePatch, Replacement, write_patched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.pe.facts import DebugEntry
    from rocwheel.binary.pe.header import Image, PeHeader
    from rocwheel.core.reading import Data


_SHORT: Final = Struct("<H")
_NUMBER: Final = Struct("<I")
_COFF_SIZE, _SECTION_COUNT_AT, _SYMBOLS_AT = 20, 2, 8
_INITIALIZED_AT, _IMAGE_SIZE_AT = 8, 56
"""The offsets of ``SizeOfInitializedData`` and ``SizeOfImage`` in the optional header."""
_IS_INITIALIZED = 0x40
_LARGEST_NUMBER = (1 << 32) - 1
_HIGHEST_BASE = (1 << 64) - (1 << 33)
"""The highest image base. Above it, there is room for any image with 32-bit addresses, and for a section after it."""
_RELOCATIONS_AT = 24
"""The position, in a section header, of the four fields for relocations and line numbers, which images don't use."""
_RELOCATIONS_SIZE = 12
_STEP = 1 << 20


class FixedFileError(PeError):
    """An error for a valid file whose parts can't be moved without a risk of damage."""


class SignedFileError(FixedFileError):
    """An error for a file with certificates, which become invalid with any edit."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            "is signed, and any change makes the signature invalid",
            expected="a file without certificates",
            remedy="Remove the signature first, and then sign the result.",
        )


class PeRewrite(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to an image; unless stated otherwise, file offsets refer to the old file."""

    sections: tuple[PeSection, ...]
    """All new sections, in header order, still with their old offsets."""
    changes: tuple[tuple[int, int], ...] = ()
    """Pairs of an offset and the number of bytes that are inserted there (or removed, if negative).

    The numbers are multiples of the file alignment.
    """
    content: tuple[Replacement, ...] = ()
    """The content of all inserted bytes, at new offsets."""
    writes: tuple[Replacement, ...] = ()
    placed: tuple[tuple[str, int], ...] = ()
    """New offsets of sections, keyed by name, if they don't follow from the old offsets."""


def require_unsigned(name: str, header: PeHeader) -> None:
    """Raise `SignedFileError` for a file with certificates."""
    if header.directory(PeDirectory.CERTIFICATES) is not None:
        raise SignedFileError(name)


def has_room_for_section(image: Image) -> bool:
    """Return whether one more section header fits between the last section header and the first section.

    Some linkers put a table of bound imports there.
    """
    start = image.header.sections_offset + image.header.section_count * SECTION_LAYOUT.size
    begins = (section.offset for section in image.sections if section.file_size)
    stop = min([image.header.headers_size, image.source.size, *begins])
    if start + SECTION_LAYOUT.size > stop:
        return False
    return not any(image.source.read(start, SECTION_LAYOUT.size, "the location of a section header"))


def require_movable(image: Image) -> None:
    """Raise `FixedFileError` for a file whose parts can't be moved because something might depend on their positions.

    Such files may be signed, have headers that the loader would reject, or use fields that images don't normally use.
    They may also begin at the end of the address space, or have debug information outside the file. They may also have
    bytes after the last section that no header mentions, such as an archive. Raises `PeError` for damaged files.
    """
    name, header = image.source.name, image.header
    require_unsigned(name, header)
    for fault in find_loader_faults(image):
        raise FixedFileError(name, fault, expected="a file that Windows loads")
    if header.image_base > _HIGHEST_BASE:
        found = f"an image base of {header.image_base:#x}"
        raise FixedFileError(name, found, expected=f"at most {_HIGHEST_BASE:#x}, so that each address fits in 64 bits")
    for number, section in enumerate(image.sections):
        row = header.sections_offset + number * SECTION_LAYOUT.size
        if any(image.source.read(row + _RELOCATIONS_AT, _RELOCATIONS_SIZE, "a section header")):
            found = f"relocations or line numbers for the section {section.name}"
            raise FixedFileError(name, found, expected="an image without relocations or line numbers")
    for entry in iter_debug_entries(image):
        _require_in_file(image, entry)
    _require_known_end(image)


def _require_in_file(image: Image, entry: DebugEntry) -> None:
    """Raise `FixedFileError` for debug information outside the file, because other bytes might move to its address."""
    try:
        image.source.require(entry.offset, entry.size, "debug information")
        if entry.address:
            image.offset_of(entry.address, "debug information")
    except PeError as e:
        raise FixedFileError(image.source.name, e.found, expected=e.expected, remedy=e.remedy) from e


def _require_known_end(image: Image) -> None:
    source, end = image.source, sections_end(image)
    if image.header.strings_offset:
        symbols_at, end_of_strings = _symbol_tables(image)
        if symbols_at < end:
            found = f"symbols at {symbols_at:#x}, inside sections"
            raise FixedFileError(source.name, found, expected="symbols after the last section")
        end = end_of_strings
    steps = range(end, source.size, _STEP)
    if any(any(source.read(at, min(_STEP, source.size - at), "the end")) for at in steps):
        raise FixedFileError(
            source.name,
            f"{source.size - end} bytes at {end:#x}, after the data that its headers describe",
            expected="only sections and symbols",
            remedy="Remove the appended data, such as an archive.",
        )


def sections_end(image: Image) -> int:
    """Return the file offset after the last bytes of any section."""
    return max([image.header.headers_size, *(section.end for section in image.sections if section.file_size)])


def _symbol_tables(image: Image) -> tuple[int, int]:
    """Return the start of the symbols, and the end of the string table that follows them.

    The first four bytes of the string table are its size.
    """
    source, strings_at = image.source, image.header.strings_offset
    (symbols_at,) = source.unpack(_NUMBER, image.header.optional_offset - _COFF_SIZE + _SYMBOLS_AT, "the COFF header")
    if strings_at == source.size:
        return symbols_at, strings_at
    (size,) = source.unpack(_NUMBER, strings_at, "the size of the string table")
    source.require(strings_at, max(size, _NUMBER.size), "the string table")
    return symbols_at, strings_at + max(size, _NUMBER.size)


def rewrite_image(data: Data, image: Image, rewrite: PeRewrite) -> FilePatch:
    """Return the patch that applies ``rewrite`` to ``image``, whose bytes are ``data``, and corrects the checksum.

    Callers must first call `require_movable`, and `has_room_for_section` for each added section. Raises `PeError` for a
    damaged debug directory, and for tables that overlap.
    """
    moves = OffsetMoves.of(rewrite.changes)
    moved = sorted([*rewrite.content, *moves.iter_moved(image.source.size)], key=lambda piece: piece.start)
    new_size = moves.offset(image.source.size)
    writes = (
        msgspec.structs.replace(one, start=moves.offset(one.start), stop=moves.offset(one.start) + one.stop - one.start)
        for one in rewrite.writes
    )
    edits = sorted([*writes, *_iter_edits(image, rewrite, moves)], key=lambda one: one.start)
    if any(one.stop > other.start for one, other in pairwise(edits)):
        raise PeError(image.source.name, "tables that overlap", expected="tables that don't overlap")
    patch = FilePatch(new_size, tuple(moved)).then(FilePatch(new_size, tuple(edits)))
    return with_checksum(data, image.header, patch)


def _iter_edits(image: Image, rewrite: PeRewrite, moves: OffsetMoves) -> Iterator[Replacement]:
    """Yield the changes to the headers, which don't move, and to the debug directory."""
    header, sections = image.header, rewrite.sections
    coff = header.optional_offset - _COFF_SIZE
    yield Replacement.of(coff + _SECTION_COUNT_AT, _SHORT.pack(len(sections)))
    if header.strings_offset:
        symbols_at, _ = _symbol_tables(image)
        yield Replacement.of(coff + _SYMBOLS_AT, _NUMBER.pack(moves.offset(symbols_at)))
    by = _initialized(sections) - _initialized(image.sections)
    (old,) = image.source.unpack(_NUMBER, header.optional_offset + _INITIALIZED_AT, "the optional header")
    initialized = min(max(old + by, 0), _LARGEST_NUMBER)
    yield Replacement.of(header.optional_offset + _INITIALIZED_AT, _NUMBER.pack(initialized))
    yield Replacement.of(header.optional_offset + _IMAGE_SIZE_AT, _NUMBER.pack(_image_size(header, sections)))
    yield Replacement.of(header.sections_offset, _table(image, rewrite, moves))
    yield from _debug_offsets(image, moves)


def _initialized(sections: Sequence[PeSection]) -> int:
    return sum(section.file_size for section in sections if section.traits & _IS_INITIALIZED)


def _image_size(header: PeHeader, sections: Sequence[PeSection]) -> int:
    end = max((section.memory_end for section in sections), default=header.headers_size)
    return -(-end // max(header.section_alignment, 1)) * max(header.section_alignment, 1)


def _table(image: Image, rewrite: PeRewrite, moves: OffsetMoves) -> bytes:
    """Return all section headers, followed by zeros for removed headers."""
    placed = dict(rewrite.placed)
    old = image.source.read(
        image.header.sections_offset, len(image.sections) * SECTION_LAYOUT.size, "the section table"
    )
    names = {section: old[at * SECTION_LAYOUT.size :][:8] for at, section in enumerate(image.sections)}
    by_place = {(section.name, section.address): name for section, name in names.items()}
    rows = []
    for section in rewrite.sections:
        at = placed.get(section.name, moves.offset(section.offset)) if section.file_size else section.offset
        name = by_place.get((section.name, section.address), section.name.encode())
        rows.append(
            SECTION_LAYOUT.pack(
                name, section.memory_size, section.address, section.file_size, at, 0, 0, 0, 0, section.traits
            )
        )
    return b"".join(rows).ljust(len(old), b"\0")


def _debug_offsets(image: Image, moves: OffsetMoves) -> Iterator[Replacement]:
    """Yield the new positions of debug information, which the debug directory stores as file offsets."""
    for entry in iter_debug_entries(image):
        at, _ = image.offset_of(entry.place, "an entry of the debug directory")
        if entry.offset and moves.offset(entry.offset) != entry.offset:
            yield Replacement.of(moves.offset(at) + OFFSET_AT, _NUMBER.pack(moves.offset(entry.offset)))


def edited_image(data: Data, patch: FilePatch, *, name: str) -> FilePatch:
    """Return ``patch``, which changes the file ``data`` in place, with the correct checksum.

    Raises `SignedFileError` if a signature would become invalid.
    """
    header = read_header(PeBytes(data, name))
    if not patch.is_identity:
        require_unsigned(name, header)
    return with_checksum(data, header, patch)


def write_edited_image(file: IO[bytes], data: Data, replacements: Iterable[Replacement], *, name: str) -> None:
    """Write the image ``data`` with ``replacements``, which don't change its size, to the start of ``file``.

    Each replacement is released after it is written; the checksum is written last. Raises the same errors as
    `edited_image`.
    """
    header = read_header(PeBytes(data, name))
    checksum = RunningChecksum(data, header.checksum_offset) if header.checksum else None
    changes = _Changes(header, name, checksum)
    write_patched(file, data, changes.noted(replacements))
    if checksum is not None and changes.number:
        end = file.tell()
        file.seek(header.checksum_offset)
        file.write(CHECKSUM.pack(checksum.value(len(data))))
        file.seek(end)


class _Changes:
    """Counts changes while yielding them, and updates the checksum for each change."""

    def __init__(self, header: PeHeader, name: str, checksum: RunningChecksum | None) -> None:
        self._header, self._name, self._checksum = header, name, checksum
        self.number = 0

    def noted(self, replacements: Iterable[Replacement]) -> Iterator[Replacement]:
        for replacement in replacements:
            require_unsigned(self._name, self._header)
            self.number += 1
            if self._checksum is not None:
                self._checksum.change(replacement)
            yield replacement
