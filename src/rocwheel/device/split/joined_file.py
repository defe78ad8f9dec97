"""Puts device code back into host files at its old addresses, so that the files are fat files again.

The available room is the unused space that begins at the start of ``.hip_fatbin``. If there is less code than before,
it replaces zeros at the end of a segment. If all of the code is restored, the segments that were split there are merged
again. Data that `rocwheel.device.trim_space` moved into a data segment returns to its old position. A segment that ends
with the section or its marker grows up to the next segment in memory. The marker may have its own segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES, elf_code_section, pe_code_section, read_fat_binary
from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.elf.dynamic import is_program_only, read_dynamic
from rocwheel.binary.elf.header import (
    PF_W,
    PT_GNU_RELRO,
    PT_LOAD,
    PT_NULL,
    SHF_ALLOC,
    SHF_TLS,
    SHF_WRITE,
    SHT_NOBITS,
    SHT_PROGBITS,
    ElfBytes,
    ElfSection,
    Segment,
    load_segments,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.elf.mapping import realigned, require_loadable
from rocwheel.binary.kpack.markers import MARKER_SECTION
from rocwheel.binary.pe.header import Image, PeBytes, PeSection, is_pe64, open_image
from rocwheel.binary.pe.rewrite import PeRewrite, require_movable, rewrite_image
from rocwheel.core.patch import FilePatch, Replacement, fill_gaps
from rocwheel.device.split.host_layout import (
    ElfTables,
    NoRoomForCodeError,
    NotJoinableError,
    Rewrite,
    WrapperContent,
    follow_headers,
    require_known_machine,
    rewrite_file,
    write_image_wrappers,
    write_wrapper,
)
from rocwheel.device.trim_space import PAGE, page_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.core.reading import Data


_LARGEST_UNIT = 1 << 26
"""The largest segment alignment, in bytes, that is worth the file space it takes up."""
_LARGEST_PAGE = 1 << 16
"""The largest page size, in bytes, of any machine that runs such files."""
_SPARE = Segment(PT_NULL, 0, 0, 0, 0, 0, 0, 0)


class HostTables(msgspec.Struct, frozen=True):
    """The tables of a host file, with its (empty) device code section and its marker section."""

    name: str
    tables: ElfTables
    fat: ElfSection
    marker: ElfSection | None

    def room(self, end: int) -> int:
        """Return the number of free bytes in memory from the section's start, in a segment up to address ``end``."""
        behind = (s.address for s in self.tables.sections if self.is_other(s) and s.address >= self.fat.address)
        return min([end, *behind]) - self.fat.address

    def used_end(self, segment: Segment) -> int:
        """Return the address after the last section in a segment, not counting the code and marker sections."""
        inside = (s for s in self.tables.sections if self.is_other(s) and s.address < segment.memory_end)
        return max((s.address + s.size for s in inside), default=0)

    def next_content(self, offset: int) -> int:
        """Return the file offset of the first segment, section, or table at or after ``offset``."""
        header = self.tables.header
        places = [header.segments_offset, header.sections_offset]
        places += [segment.offset for segment in self.tables.segments if segment.file_size]
        places += [section.offset for section in self.tables.sections if section.has_bytes and section.size]
        return min((place for place in places if place >= offset), default=offset)

    def is_other(self, section: ElfSection) -> bool:
        """Return whether a section takes up space in memory and isn't the code section or marker section."""
        is_loaded = section.flags & SHF_ALLOC and not section.flags & SHF_TLS
        return bool(is_loaded and section.size) and section not in (self.fat, self.marker)


class FatLayout(msgspec.Struct, frozen=True):
    """The new program headers, with old file offsets, and the inserted bytes.

    ``start`` is the file offset of the code, and ``room`` is its maximum size. The ``inserted`` bytes are placed before
    the data at the file offset ``at``. These bytes belong to the segment ``holder``, even if ``holder`` begins there.
    """

    segments: tuple[Segment, ...]
    start: int
    room: int
    at: int = 0
    inserted: int = 0
    holder: Segment | None = None


def lay_out_code(host: HostTables, size: int) -> FatLayout:
    """Return the layout of ``host`` with ``size`` bytes of device code at the start of its section.

    Raises `NoRoomForCodeError` if the code doesn't fit, and `NotJoinableError` if no segment loads that part of memory.
    """
    fat, segments = host.fat, host.tables.segments
    first, parts = _find_parts(host, segments)
    if fat.type != SHT_NOBITS:
        room = host.room(first.address + first.file_size)
        kept = FatLayout(segments, first.offset + fat.address - first.address, room)
        layout = kept if size <= room else _ended(host, first, size) or kept
    elif fat.address + size <= first.memory_end:
        layout = _grown(host, parts, first, size)
    else:
        parted = _with_own_segment(host, first)
        joined = _joined(host, parted, _find_parts(host, parted)[1])
        layout = joined if size <= joined.room else _extended(host, parts, first, size) or joined
    if size > layout.room:
        raise NoRoomForCodeError(CodePlace(host.name, layout.start), size, layout.room)
    # Reject a file in which the code would overwrite the bytes of another program header.
    address, stop = host.fat.address, layout.start + size
    stop = min(stop, layout.at) if layout.inserted else stop
    others = (segment for segment in layout.segments if not segment.address <= address < segment.memory_end)
    if any(other.file_size and other.offset < stop and layout.start < other.end for other in others):
        raise _unusual(host)
    segments = follow_headers(layout.segments, layout.at, layout.inserted, name=host.name)
    return msgspec.structs.replace(layout, segments=segments)


def _find_parts(host: HostTables, segments: tuple[Segment, ...]) -> tuple[Segment, list[Segment]]:
    """Return the segment with the space for the code, and all segments around it that can merge, in order."""
    loaded = sorted(load_segments(segments), key=lambda segment: segment.address)
    address = host.fat.address
    index = next((i for i, s in enumerate(loaded) if s.address <= address < s.memory_end), None)
    if index is None:
        raise NotJoinableError(CodePlace(host.name, host.fat.offset), ".hip_fatbin outside every loaded segment")
    # Other tools put a section without bytes in the file into a separate segment.
    first, before = loaded[index], loaded[max(index - 1, 0)]
    is_own = first.file_size == 0 and before.memory_end == first.address and before.flags == first.flags
    return first, loaded[index - 1 if is_own else index : index + 2]


def _grown(host: HostTables, parts: list[Segment], first: Segment, size: int) -> FatLayout:
    """Replace zeros at the end of a segment with the code."""
    segments, holder, address = host.tables.segments, parts[0], host.fat.address
    at = parts[-1].offset if parts[-1] is not first else holder.end
    start = holder.offset + address - holder.address
    unit = max([PAGE, *(segment.alignment for segment in load_segments(segments))])
    if not (holder.end <= at and start <= at) or unit > _LARGEST_UNIT:
        raise _unusual(host)
    # Don't keep unused memory, because only a segment that ends with its bytes can be split again.
    memory_end = max(address + size, host.used_end(first))
    whole = msgspec.structs.replace(
        holder, file_size=address + size - holder.address, memory_size=memory_end - holder.address
    )
    gone = [part for part in parts if part is first and part is not holder]
    inserted = -(-size // unit) * unit
    room = min(host.room(first.memory_end), at + inserted - start)
    new = {holder: whole, **_without_marker(host)}
    return FatLayout(_replaced(host, segments, new, gone), start, room, at, inserted, whole)


def _ended(host: HostTables, first: Segment, size: int) -> FatLayout | None:
    """Add bytes to the segment that ends with the section and its marker; return `None` if other data follows in it."""
    fat, segments = host.fat, host.tables.segments
    start = first.offset + fat.address - first.address
    inside = (s for s in host.tables.sections if s.has_bytes and host.is_other(s))
    loaded = load_segments(segments)
    unit = max([PAGE, *(segment.alignment for segment in loaded)])
    if any(start <= section.offset < first.end for section in inside) or unit > _LARGEST_UNIT:
        return None
    at = host.next_content(first.end)
    inserted = -(-max(start + size - at, 0) // unit) * unit
    file_size = start + size - first.offset
    whole = msgspec.structs.replace(first, file_size=file_size, memory_size=max(first.memory_size, file_size))
    room = min(host.room(_end_of_room(loaded, first, unit)), at + inserted - start)
    return FatLayout(_replaced(host, segments, {first: whole}, []), start, room, at, inserted)


def _extended(host: HostTables, parts: list[Segment], first: Segment, size: int) -> FatLayout | None:
    """Extend the segment around the code, in the file and in memory, by more than was split from the segment.

    Returns `None` if anything except the marker follows, in that segment or in the segment that begins with the marker.
    """
    segments, holder, last, address = host.tables.segments, parts[0], parts[-1], host.fat.address
    start = holder.offset + address - holder.address
    loaded = load_segments(segments)
    unit = max([PAGE, *(segment.alignment for segment in loaded)])
    is_for_marker = host.marker is not None and last.address == host.marker.address and last is not first
    are_last = host.room(last.memory_end) == last.memory_end - address
    is_free = holder.end <= start <= last.offset and host.next_content(start) == last.offset
    if not (is_for_marker and are_last and is_free and last.flags == first.flags) or unit > _LARGEST_UNIT:
        return None
    at = host.next_content(last.end)
    inserted = -(-max(start + size - at, 0) // unit) * unit
    reach = address + size - holder.address
    whole = msgspec.structs.replace(holder, file_size=reach, memory_size=reach)
    room = min(host.room(_end_of_room(loaded, last, unit)), at + inserted - start)
    gone = [part for part in parts if part is not holder]
    return FatLayout(_replaced(host, segments, {holder: whole}, gone), start, room, at, inserted)


def _end_of_room(loaded: list[Segment], before: Segment, unit: int) -> int:
    """Return the address up to which a segment may grow, which is the first page of the next segment."""
    page = min(unit, _LARGEST_PAGE)
    return min((s.address // page * page for s in loaded if s.address > before.address), default=1 << 63)


def _without_marker(host: HostTables) -> dict[Segment, Segment]:
    """Return replacements for segments that begin with the marker. strip and objcopy may produce such segments."""
    marker, segments = host.marker, host.tables.segments
    if marker is None:
        return {}
    new = {}
    for segment in segments:
        if segment.type in {PT_LOAD, PT_GNU_RELRO} and segment.address == marker.address:
            behind = (s.address for s in host.tables.sections if host.is_other(s) and s.address > marker.address)
            skipped = min(behind, default=segment.memory_end) - segment.address
            is_left = skipped < segment.file_size
            new[segment] = segment.behind(segment.offset + skipped) if is_left else _SPARE
    return new


def _with_own_segment(host: HostTables, before: Segment) -> tuple[Segment, ...]:
    """Return the program headers with a separate segment for read-only sections in a data segment at the marker.

    The new segment has the properties of the segment ``before``.
    """
    segments, marker = host.tables.segments, host.marker
    relro = next((segment for segment in segments if segment.type == PT_GNU_RELRO), None)
    if marker is None or relro is None or relro.address != marker.address:
        return segments
    holder = next((s for s in load_segments(segments) if s.address == relro.address and s.flags & PF_W), None)
    if holder is None:
        return segments
    inside = [s for s in host.tables.sections if s.flags & SHF_ALLOC and holder.address <= s.address < relro.memory_end]
    data = min((s.address for s in inside if s.flags & SHF_WRITE), default=holder.address)
    end = max((s.address + s.size for s in inside if s.address < data), default=holder.address)
    size = end - holder.address
    own = msgspec.structs.replace(holder, flags=before.flags, file_size=size, memory_size=size)
    behind = data - holder.address
    parted = {holder: holder.behind(holder.offset + behind), relro: relro.behind(relro.offset + behind)}
    kept = [parted.get(segment, segment) for segment in segments]
    at = kept.index(parted[holder])
    return (*kept[:at], own, *kept[at:])


def _joined(host: HostTables, segments: tuple[Segment, ...], parts: list[Segment]) -> FatLayout:
    """Merge the segments around the code; the code's bytes are placed before the last segment's bytes."""
    first, last = parts[0], parts[-1]
    are_alike = len(parts) > 1 and {part.flags for part in parts} == {first.flags}
    inserted = first.offset + last.address - first.address - last.offset
    if not are_alike or last.memory_size != last.file_size or last.offset < first.end or inserted < 0:
        raise _unusual(host)
    size = last.address + last.file_size - first.address
    whole = msgspec.structs.replace(first, file_size=size, memory_size=size)
    start = first.offset + host.fat.address - first.address
    room = host.room(whole.memory_end)
    kept = _replaced(host, segments, {first: whole}, parts[1:])
    return FatLayout(kept, start, room, last.offset, inserted, whole)


def _replaced(
    host: HostTables, segments: tuple[Segment, ...], new: dict[Segment, Segment], gone: list[Segment]
) -> tuple[Segment, ...]:
    """Return the program headers with ``new`` headers and without ``gone`` headers, padded with spare headers."""
    kept = tuple(new.get(segment, segment) for segment in segments if segment not in gone)
    if len(kept) > len(host.tables.segments):
        raise _unusual(host)
    return (*kept, *[_SPARE] * (len(host.tables.segments) - len(kept)))


def _unusual(host: HostTables) -> NotJoinableError:
    found = "no segments around the device code section that could contain the code"
    return NotJoinableError(CodePlace(host.name, host.fat.offset), found)


_LARGEST_IMAGE = 1 << 31
"""The limit on the memory that Windows loads for one file, in bytes."""


def plan_fat_image(data: Data, fat: FatBinary, bundles: Sequence[Data], units: Sequence[int]) -> FilePatch:
    """Return the patch that puts ``bundles`` into the host file ``data``.

    ``units`` contains the bundle number for each wrapper. The section of markers is removed, and the code gets its
    addresses from before the split. Raises `NotJoinableError` if bundles don't fit or something follows the markers,
    and `PeError` for damaged and signed files.
    """
    image = open_image(PeBytes(data, fat.name))
    require_movable(image)
    section, marker = _find_sections(image)
    starts, size = _place_bundles(section.address, bundles, origin=section.address)
    behind = (one.address for one in image.sections if one.address > section.address and one != marker)
    room = min(behind, default=_LARGEST_IMAGE) - section.address
    if size > room:
        raise NoRoomForCodeError(CodePlace(fat.name, section.offset), size, room)
    alignment = max(image.header.file_alignment, 1)
    file_size = -(-size // alignment) * alignment
    filled = msgspec.structs.replace(section, memory_size=max(section.memory_size, size), file_size=file_size)
    # A section without bytes gets its bytes after the earlier sections' bytes.
    before = (one.end for one in image.sections[: image.sections.index(section)] if one.file_size)
    at = section.offset if section.file_size else max([image.header.headers_size, *before])
    code = (Replacement.of(start - section.address + at, one) for start, one in zip(starts, bundles, strict=True))
    rewrite = PeRewrite(
        sections=tuple(filled if one == section else one for one in image.sections if one != marker),
        changes=((at + section.file_size, file_size - section.file_size), (marker.end, -marker.file_size)),
        content=tuple(fill_gaps(code, at, at + file_size)),
        writes=write_image_wrappers(fat, (WrapperContent(image.header.image_base + starts[unit]) for unit in units)),
        placed=((section.name, at),),
    )
    return rewrite_image(data, image, rewrite)


def _find_sections(image: Image) -> tuple[PeSection, PeSection]:
    """Return the sections of device code and of markers; raise `NotJoinableError` if the markers can't be removed."""
    section = pe_code_section(image.sections)
    last = max(image.sections, key=lambda one: one.address)
    assert section is not None, "the wrappers were found in this section"
    if last.name not in PE_MARKER_NAMES or last != image.sections[-1]:
        raise NotJoinableError(
            CodePlace(image.source.name),
            f"{last.name} after all other sections",
            expected="the marker section .kpackrf, which the join removes",
            remedy="Join the split file from before the later change.",
        )
    return section, last


def _place_bundles(address: int, bundles: Sequence[Data], *, origin: int = 0) -> tuple[list[int], int]:
    """Return the address of each bundle, the first at ``address``, and the total size in bytes.

    Other bundles are on page boundaries, relative to ``origin``.
    """
    starts: list[int] = []
    position = address
    for bundle in bundles:
        starts.append(origin + page_end(position - origin) if starts else position)
        position = starts[-1] + len(bundle)
    return starts, position - address


def plan_fat_file(data: Data, bundles: Sequence[Data], units: Sequence[int], *, name: str) -> FilePatch:
    """Return the patch that puts ``bundles`` into the host file ``data``.

    ``units`` contains the bundle number for each wrapper. The bundles keep their order, and each starts on a new page,
    at the addresses that the device code had. A file that was split and joined can be split again with the same result.

    Raises `NotJoinableError` for a file that contains its code, and for bundles that don't fit. Raises `ElfError` and
    `DeviceCodeError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or not fat.wrappers or not all(wrapper.is_kpack for wrapper in fat.wrappers):
        raise NotJoinableError(CodePlace(name), "no wrappers for archives", expected="a file whose code is in archives")
    if is_pe64(data):
        return plan_fat_image(data, fat, bundles, units)
    source = ElfBytes(data, name)
    host = _read(source)
    starts, size = _place_bundles(fat.section.address, bundles)
    layout = lay_out_code(host, size)
    writes = [
        write
        for wrapper, unit in zip(fat.wrappers, units, strict=True)
        for write in write_wrapper(source, host.tables.header.machine, wrapper, WrapperContent(starts[unit]))
    ]
    section = msgspec.structs.replace(host.fat, type=SHT_PROGBITS, offset=layout.start, size=size)
    rewrite = Rewrite(
        segments=layout.segments,
        sections=((host.fat, section), *([(host.marker, None)] if host.marker else [])),
        added=(),
        changes=((layout.at, layout.inserted),),
        content=(Replacement(layout.at, layout.at + layout.inserted),) if layout.inserted else (),
        writes=tuple(writes),
        holder=layout.holder,
    )
    by = layout.start - host.fat.address
    code = (Replacement.of(start + by, bundle) for start, bundle in zip(starts, bundles, strict=True))
    fat_file = rewrite_file(source, host.tables, rewrite)
    return fat_file.then(FilePatch(fat_file.size, tuple(fill_gaps(code, layout.start, layout.start + layout.room))))


def _read(source: ElfBytes) -> HostTables:
    header = read_header(source)
    segments, sections = read_segments(source, header), read_section_table(source, header)
    require_loadable(source, header, segments)
    is_program = is_program_only(header.type, segments, read_dynamic(source, segments))
    segments = realigned(segments, is_program=is_program)
    require_known_machine(source.name, header.machine)
    section = elf_code_section(sections)
    assert section is not None, "the wrappers were found in this section"
    marker = next((one for one in sections if one.name == MARKER_SECTION), None)
    return HostTables(source.name, ElfTables(header, segments, sections), section, marker)
