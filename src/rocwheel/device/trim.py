"""Makes libraries, DLLs, and programs smaller by removing the free space between bundles of device code.

Bundles are packed at the start of the section, the space after them is removed from the file, and no other addresses
change. In ELF files:

* the section and its segment end with the bundles, and later data in the segment moves closer to them in the file
  (`rocwheel.device.trim_space`)
* wrappers, and other pointers to bundles, get the new addresses through relocations and symbols
* later data in the file moves up by whole pages

As a result, all loaded data is in sections, and the program headers follow the ELF header. Therefore, patchelf works
with the result in the same way as with the original, and so do strip and objcopy from binutils, LLVM, and elfutils.

In Windows DLLs and programs, the space after the bundles is removed from the file, but not from memory. The loader
fills the section with zeros up to its old size.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bounded_bytes import OffsetMoves
from rocwheel.binary.bundles.wrappers import BUNDLE_NAMES, FatBinary, elf_code_section, pe_code_section, read_fat_binary
from rocwheel.binary.code_objects import CodePlace, NotTrimmableError
from rocwheel.binary.elf.dynamic import is_program_only, read_dynamic
from rocwheel.binary.elf.header import (
    E_PHOFF,
    ET_DYN,
    ET_EXEC,
    PT_INTERP,
    SECTION_LAYOUT,
    SEGMENT_LAYOUT,
    ElfBytes,
    ElfSection,
    Header,
    Segment,
    load_segments,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.elf.mapping import realigned, require_loadable
from rocwheel.binary.elf.patch import patch_of_writes
from rocwheel.binary.elf.relocations import Pointer, iter_addresses
from rocwheel.binary.kind import is_ar_archive, is_bundle, is_coff_object, is_thin_archive
from rocwheel.binary.pe.header import Image, PeBytes, PeDirectory, PeSection, is_pe64, open_image
from rocwheel.binary.pe.linkage import iter_pointers, read_export_addresses
from rocwheel.binary.pe.rewrite import (
    FixedFileError,
    PeRewrite,
    SignedFileError,
    edited_image,
    require_movable,
    rewrite_image,
)
from rocwheel.core.errors import InputError
from rocwheel.core.patch import FilePatch, Replacement, fill_gaps
from rocwheel.device.trim_space import PAGE, BundleMove, cut_segment, pack_bundles, page_end
from rocwheel.device.trim_static import (
    is_object_file,
    plan_object_trim,
    read_trimmable_object,
    require_trimmable_archive,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.binary.bundles.wrappers import Wrapper
    from rocwheel.core.reading import Data


class FatLibrary(msgspec.Struct, frozen=True):
    """A shared library or a program with device code, before the change."""

    fat: FatBinary
    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[ElfSection, ...]
    section: ElfSection
    """``.hip_fatbin``."""
    holder: Segment
    """The segment that contains the section."""
    addresses: tuple[Pointer, ...]
    """The addresses in that section that symbols and relocations store."""

    @property
    def start(self) -> int:
        """The file offset of the section."""
        return self.section.offset

    @property
    def stop(self) -> int:
        """The file offset after the section."""
        return self.start + self.section.size

    @property
    def unit(self) -> int:
        """The unit for changes to file offsets, which keeps pages in memory aligned with pages in the file."""
        return max([PAGE, *(segment.alignment for segment in load_segments(self.segments))])


def require_trimmable(data: Data, *, name: str) -> None:
    """Check whether the file itself can be trimmed, before any work on the bundles.

    Raises the same errors as `read_fat_library`, and `NotTrimmableError` if no program header is available for the data
    after the device code. For object files and static libraries, raises the same errors as `plan_object_trim`.
    """
    fat = read_fat_binary(data, name=name)
    if is_pe64(data) and fat is not None and not fat.is_kpacked:
        read_fat_image(data, fat)
        return
    if is_ar_archive(data):
        require_trimmable_archive(data, name=name)
        return
    if fat is not None and is_object_file(data, name=name):
        read_trimmable_object(data, fat)
        return
    library = read_fat_library(data, name=name)
    cut_segment((library.segments, library.sections), library.holder, (library.start, library.stop), name=name)


def read_fat_library(data: Data, *, name: str) -> FatLibrary:
    """Read the shared library ``data``.

    Raises `NotTrimmableError` for programs, including static programs, for object files, and if other data shares the
    device code's section. Raises a different `InputError` for a file that isn't a library with device code, and for
    damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or fat.is_kpacked:
        expected = (
            "a library, an object file, or a static library with bundles to trim, or a folder or wheel of such files"
        )
        raise InputError(name, _kind(data), expected=expected)
    if is_coff_object(data):
        raise NotTrimmableError(CodePlace(name), "an object file", expected="a linked file")
    source = ElfBytes(data, name)
    header = read_header(source)
    if header.type != ET_DYN or is_program(source, header):
        raise NotTrimmableError(CodePlace(name), "a program or an object file", expected="a shared library")
    return read_linked_file(data, fat)


def read_linked_file(data: Data, fat: FatBinary) -> FatLibrary:
    """Read the structures around the device code ``fat`` in the shared library or program ``data``.

    Raises `NotTrimmableError` if other data shares the device code's section, and `ElfError` for damaged files.
    """
    name = fat.name
    source = ElfBytes(data, name)
    header = read_header(source)
    segments = read_segments(source, header)
    require_loadable(source, header, segments)
    is_only_program = is_program_only(header.type, segments, read_dynamic(source, segments))
    segments = realigned(segments, is_program=is_only_program)
    start, stop = fat.section.offset, fat.section.offset + fat.section.size
    holder = next((s for s in load_segments(segments) if s.offset <= start and stop <= s.end), None)
    if holder is None:
        raise NotTrimmableError(
            CodePlace(name), ".hip_fatbin outside every loaded segment", expected="the section inside a segment"
        )
    sections = read_section_table(source, header)
    section = elf_code_section(sections)
    assert section is not None, "the code was found in this section"
    addresses = tuple(iter_addresses(source, header, segments, sections, section))
    library = FatLibrary(fat, header, segments, sections, section, holder, addresses)
    # Other data in ``.hip_fatbin`` would be lost.
    places = [
        (header.segments_offset, header.segment_count * SEGMENT_LAYOUT.size),
        (header.sections_offset, header.section_count * SECTION_LAYOUT.size),
        *((s.offset, s.file_size) for s in segments if s != holder),
        *((s.offset, s.size) for s in sections if s.has_bytes and s != section),
    ]
    if any(size and start < library.stop and start + size > library.start for start, size in places):
        place = CodePlace(fat.name, library.start)
        raise NotTrimmableError(place, "other data in .hip_fatbin", expected="only device code")
    return library


def _kind(data: Data) -> str:
    if is_ar_archive(data):
        return "a static library"
    if is_thin_archive(data):
        return "a thin archive"
    return "a bundle file" if is_bundle(data) else "not a fat binary"


def is_program(source: ElfBytes, header: Header) -> bool:
    """Return whether a file is a program. Static programs may be position-independent and have no interpreter."""
    segments = read_segments(source, header)
    dynamic = read_dynamic(source, segments)
    is_pie = dynamic is not None and dynamic.is_pie
    return header.type == ET_EXEC or is_pie or any(segment.type == PT_INTERP for segment in segments)


_ADDRESS = struct.Struct("<Q")
_TABLES = struct.Struct("<QQ")
"""The offsets of program headers and sections, which are adjacent in the ELF header."""


class _Layout(msgspec.Struct, frozen=True):
    """The new layout of the library: the positions of the bundles, and how other data moves.

    ``moved`` contains the other moves, and ``segments`` contains the program headers, still with old offsets.
    """

    moves: tuple[BundleMove, ...]
    section_stop: int
    moved: OffsetMoves
    segments: tuple[Segment, ...]

    def offset(self, old: int) -> int:
        """Return the new file offset of the data at ``old``."""
        return self.moved.offset(old)


def plan_trim(data: Data, *, name: str, changes: Sequence[BundleChange] = ()) -> FilePatch:
    """Return the patch that applies ``changes`` to the bundles of the shared library ``data`` and trims the library.

    If trimming wouldn't save a page, the patch only applies the changes, if there are any.

    Raises `NotTrimmableError` for ELF programs, and the same errors as `plan_object_trim` for object files. Also raises
    `NotTrimmableError` if a symbol determines the bundle of a wrapper, or if a symbol or relocation stores an address
    inside a bundle. Also raises it if no program header is available for the data after the bundles. Raises a different
    `InputError` for damaged files.
    """
    if is_pe64(data):
        return plan_image_trim(data, name=name, changes=changes)
    if is_object_file(data, name=name):
        return plan_object_trim(data, name=name, changes=changes)
    library = read_fat_library(data, name=name)
    moves = pack_bundles(library.start, tuple(library.fat.iter_bundles(data)), changes)
    layout = _lay_out(library, moves) if moves else None
    if layout is None or layout.offset(len(data)) >= len(data):
        return FilePatch(len(data), tuple(new for change in changes for new in change.replacements))
    size = layout.offset(len(data))
    edits = patch_of_writes([*_pointers(library, layout), *_headers(library, layout)], size, name=name)
    bundles = (piece for move in layout.moves for piece in move.content)
    pieces = fill_gaps((*bundles, *layout.moved.iter_moved(len(data))), library.start)
    return FilePatch(size, tuple(pieces)).then(edits)


def _lay_out(library: FatLibrary, moves: tuple[BundleMove, ...]) -> _Layout | None:
    """Choose the new position of each part, or return `None` if trimming wouldn't save a page.

    The section still fills its last page, because the runtime reads 4096 bytes of a plain bundle.
    """
    used = page_end(moves[-1].content[-1].stop - library.start)
    section_stop = min(library.start + used, library.stop)
    gain = (library.stop - section_stop) // library.unit * library.unit
    if gain == 0:
        return None
    cut = cut_segment(
        (library.segments, library.sections), library.holder, (section_stop, library.stop), name=library.fat.name
    )
    padded = ((cut.padded_at, cut.padding - gain),) if cut.padding else ()
    return _Layout(moves, section_stop, OffsetMoves(((library.stop, -gain), *padded)), cut.segments)


def _pointers(library: FatLibrary, layout: _Layout) -> Iterator[Replacement]:
    """Yield the new addresses of bundles, wherever wrappers, relocations, or symbols store them."""
    by = library.section.address - library.start
    moves = {move.old + by: move.new + by for move in layout.moves}
    moves.setdefault(library.stop + by, layout.section_stop + by)
    stays = min([layout.section_stop + by, *(old for old, new in moves.items() if old != new)])
    moved = _Addresses(library.fat.name, moves, stays, -by)
    edits = {
        pointer.stored_at: new
        for pointer in library.addresses
        if pointer.stored_at is not None and (new := moved.new(pointer.target)) != pointer.target
    }
    for wrapper in library.fat.wrappers:
        if (new := moved.new(wrapper.pointer.target)) != wrapper.pointer.target:
            edits[_stored_at(library.fat.name, wrapper)] = new
    for place, new in edits.items():
        yield Replacement.of(layout.offset(place), _ADDRESS.pack(new))


class _Addresses(msgspec.Struct, frozen=True):
    """The old and new addresses of bundles, and the address at or after which any other address would be lost.

    The addresses include the section's end: linkers put ``_end`` and ``_edata`` there if no loaded data follows.
    """

    name: str
    moves: dict[int, int]
    stays: int
    to_offset: int

    def new(self, old: int) -> int:
        """Return the new address for ``old``; raise `NotTrimmableError` if there is no new address."""
        if old not in self.moves and old >= self.stays:
            raise NotTrimmableError(
                CodePlace(self.name, old + self.to_offset),
                "a symbol or relocation with an address inside the device code",
                expected="only addresses of bundles",
            )
        return self.moves.get(old, old)


def _stored_at(name: str, wrapper: Wrapper) -> int:
    """Return the file offset of the value that determines a wrapper's pointer."""
    if wrapper.pointer.stored_at is None:
        raise NotTrimmableError(
            CodePlace(name, wrapper.offset),
            "a wrapper whose relocation refers to its bundle by symbol",
            expected="a relocation by address, which linkers create for shared libraries",
        )
    return wrapper.pointer.stored_at


def _headers(library: FatLibrary, layout: _Layout) -> Iterator[Replacement]:
    """Yield the tables of program headers and sections, and their offsets in the ELF header."""
    tables = layout.offset(library.header.segments_offset), layout.offset(library.header.sections_offset)
    segments = (msgspec.structs.replace(s, offset=layout.offset(s.offset)) for s in layout.segments)
    sections = (
        msgspec.structs.replace(section, size=layout.section_stop - library.start)
        if section == library.section
        else msgspec.structs.replace(section, offset=layout.offset(section.offset))
        for section in library.sections
    )
    yield Replacement.of(E_PHOFF, _TABLES.pack(*tables))
    yield Replacement.of(tables[0], b"".join(segment.pack(library.fat.name) for segment in segments))
    yield Replacement.of(tables[1], b"".join(section.pack() for section in sections))


class FatImage(msgspec.Struct, frozen=True):
    """A DLL or program with device code, before the change."""

    fat: FatBinary
    image: Image
    section: PeSection
    """``.hip_fat``."""
    pointers: tuple[tuple[int, int], ...]
    """The file offsets of the pointers into that section that the loader corrects, with the pointers' addresses."""

    @property
    def start(self) -> int:
        """The file offset of the section."""
        return self.section.offset

    @property
    def name(self) -> str:
        """The file's name in errors."""
        return self.fat.name


def read_fat_image(data: Data, fat: FatBinary) -> FatImage:
    """Read the structures around the device code ``fat`` in the DLL or program ``data``.

    Raises `NotTrimmableError` if parts of the file can't be moved, other data shares the section, or something in the
    section is exported. Raises `SignedFileError` for a signed file, and a different `PeError` for damaged files.
    """
    image = open_image(PeBytes(data, fat.name))
    try:
        require_movable(image)
    except SignedFileError:
        raise
    except FixedFileError as e:
        raise NotTrimmableError(CodePlace(fat.name), e.found, expected=e.expected) from e
    section = pe_code_section(image.sections)
    assert section is not None, "the code was found in this section"
    for found, expected in _obstacles(image, section):
        raise NotTrimmableError(CodePlace(fat.name, section.offset), found, expected=expected)
    return FatImage(fat, image, section, tuple(_pointers_into(image, section)))


def _obstacles(image: Image, section: PeSection) -> Iterator[tuple[str, str]]:
    name, start, stop = section.name, section.address, section.memory_end
    if sum(one.name in BUNDLE_NAMES for one in image.sections) > 1:
        yield f"several {name} sections", "only one"
    for which in PeDirectory:
        entry = image.header.directory(which)
        is_loaded = entry is not None and which is not PeDirectory.CERTIFICATES
        if entry and is_loaded and entry.address < stop and entry.address + entry.size > start:
            yield f"the {which.name.lower().replace('_', ' ')} table in {name}", "only device code"
    if any(start <= address < stop for address in read_export_addresses(image)):
        yield f"an exported address in {name}", "addresses of bundles only in wrappers"


def _pointers_into(image: Image, section: PeSection) -> Iterator[tuple[int, int]]:
    for at, target in iter_pointers(image):
        if section.offset <= at < section.end:
            found = f"a pointer in {section.name}, at {at:#x}"
            raise NotTrimmableError(CodePlace(image.source.name, at), found, expected="only device code")
        if section.address <= target < section.memory_end:
            yield at, target


def plan_image_trim(data: Data, *, name: str, changes: Sequence[BundleChange]) -> FilePatch:
    """Return the patch that applies ``changes`` to the bundles of the DLL or program ``data`` and trims the file.

    If trimming wouldn't save any space, the patch only applies the changes. Raises the same errors as `read_fat_image`,
    `NotTrimmableError` for a pointer into a bundle, and a different `InputError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    assert isinstance(fat, FatBinary), "require_trimmable found its code"
    library = read_fat_image(data, fat)
    moves = pack_bundles(library.start, tuple(fat.iter_bundles(data)), changes)
    # The bytes that the section needs in the file: up to the last bundle, rounded up to the file alignment.
    used = moves[-1].content[-1].stop - library.start if moves else library.section.file_size
    alignment = max(library.image.header.file_alignment, 1)
    size = -(-used // alignment) * alignment
    if size >= library.section.file_size:
        patch = FilePatch(len(data), tuple(new for change in changes for new in change.replacements))
        return edited_image(data, patch, name=name)
    section = msgspec.structs.replace(
        library.section, memory_size=library.section.memory_size or library.section.file_size, file_size=size
    )
    rewrite = PeRewrite(
        sections=tuple(section if one == library.section else one for one in library.image.sections),
        changes=((library.section.end, size - library.section.file_size),),
        content=tuple(fill_gaps((new for move in moves for new in move.content), library.start, library.start + size)),
        writes=tuple(_image_pointers(library, moves)),
    )
    return rewrite_image(data, library.image, rewrite)


def _image_pointers(library: FatImage, moves: Sequence[BundleMove]) -> Iterator[Replacement]:
    """Yield the new addresses of bundles, wherever wrappers and other pointers store them."""
    by = library.section.address - library.start
    places = {move.old + by: move.new + by for move in moves}
    holders = dict(library.pointers)
    holders |= {wrapper.pointer.stored_at or 0: wrapper.pointer.target for wrapper in library.fat.wrappers}
    for at, target in sorted(holders.items()):
        if target not in places:
            found = f"a pointer to address {target:#x}, inside the device code"
            raise NotTrimmableError(CodePlace(library.name, at), found, expected="only addresses of bundles")
        if places[target] != target:
            yield Replacement.of(at, _ADDRESS.pack(places[target] + library.image.header.image_base))
