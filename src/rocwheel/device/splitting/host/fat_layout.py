"""Where device code goes that comes back to a host file: into the addresses that it had.

The room is what nothing else lies in, from the start of ``.hip_fatbin`` on. Segments that were parted there become one
again, and what `rocwheel.device.trimming.segment_cut` has loaded with data goes back to where it was.
"""

from __future__ import annotations

import msgspec

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.elf.header import PF_W, PT_GNU_RELRO, PT_NULL, Segment, load_segments
from rocwheel.binary.elf.sections import SHF_ALLOC, SHF_TLS, SHF_WRITE, SHT_NOBITS, Section
from rocwheel.device.splitting.host.errors import NotJoinableError
from rocwheel.device.splitting.host.rewrite import ElfTables

__all__ = ["FatLayout", "HostTables", "lay_out_code"]

_SPARE = Segment(PT_NULL, 0, 0, 0, 0, 0, 0, 0)


class HostTables(msgspec.Struct, frozen=True):
    """The tables of a host file, and two of its sections: that of device code, without any, and the marker's."""

    name: str
    tables: ElfTables
    fat: Section
    marker: Section | None

    def room(self, end: int) -> int:
        """Return how many bytes of memory are free from the section's start on, in a segment up to address ``end``."""
        behind = (s.address for s in self.tables.sections if self._is_other(s) and s.address >= self.fat.address)
        return min([end, *behind]) - self.fat.address

    def _is_other(self, section: Section) -> bool:
        is_loaded = section.flags & SHF_ALLOC and not section.flags & SHF_TLS
        return bool(is_loaded and section.size) and section not in (self.fat, self.marker)


class FatLayout(msgspec.Struct, frozen=True):
    """The program headers as they become, with old file offsets, and what is put in where.

    ``start`` is the file offset of the code, ``room`` what it may take; ``inserted`` bytes come in before what was at
    the file offset ``at``.
    """

    segments: tuple[Segment, ...]
    start: int
    room: int
    at: int = 0
    inserted: int = 0


def lay_out_code(host: HostTables, size: int) -> FatLayout:
    """Return the layout of ``host`` with ``size`` bytes of device code where its section begins.

    Raises `NotJoinableError` where they don't fit, or no segment loads that part of memory.
    """
    layout = _lay_out(host, _with_own_segment(host))
    if size > layout.room:
        found = f"{size} bytes of device code for a room of {layout.room}"
        remedy = "Join fewer targets, or compress the bundles."
        raise NotJoinableError(Place(host.name, layout.start), found, expected="code that fits", remedy=remedy)
    return layout


def _lay_out(host: HostTables, segments: tuple[Segment, ...]) -> FatLayout:
    fat = host.fat
    loaded = sorted(load_segments(segments), key=lambda segment: segment.address)
    index = next((i for i, s in enumerate(loaded) if s.address <= fat.address < s.memory_end), None)
    if index is None:
        raise NotJoinableError(Place(host.name, fat.offset), ".hip_fatbin outside of every loaded segment")
    first = loaded[index]
    if fat.type != SHT_NOBITS:
        room = host.room(first.address + first.file_size)
        return FatLayout(segments, first.offset + fat.address - first.address, room)
    # Others give what has no bytes in the file a segment of its own.
    is_own = first.file_size == 0 and index and loaded[index - 1].memory_end == first.address
    return _joined(host, segments, loaded[index - 1 if is_own else index : index + 2])


def _with_own_segment(host: HostTables) -> tuple[Segment, ...]:
    """Return the program headers in which read-only sections are not loaded with data that begins with the marker."""
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
    before = next(s for s in load_segments(segments) if s.address <= host.fat.address < s.memory_end)
    size = end - holder.address
    own = msgspec.structs.replace(holder, flags=before.flags, file_size=size, memory_size=size)
    behind = data - holder.address
    parted = {holder: holder.behind(holder.offset + behind), relro: relro.behind(relro.offset + behind)}
    kept = [parted.get(segment, segment) for segment in segments]
    at = kept.index(parted[holder])
    return (*kept[:at], own, *kept[at:])


def _joined(host: HostTables, segments: tuple[Segment, ...], parts: list[Segment]) -> FatLayout:
    """Make one of the segments around the place of the code: its bytes come in before those of the last one."""
    first, last = parts[0], parts[-1]
    are_alike = len(parts) > 1 and {part.flags for part in parts} == {first.flags}
    if not are_alike or last.memory_size != last.file_size or not first.offset < first.end <= last.offset:
        found = "no segments around the place of the device code that could become one"
        raise NotJoinableError(Place(host.name, host.fat.offset), found)
    size = last.address + last.file_size - first.address
    inserted = first.offset + last.address - first.address - last.offset
    whole = msgspec.structs.replace(first, file_size=size, memory_size=size)
    kept = tuple(whole if segment is first else segment for segment in segments if segment not in parts[1:])
    missing = len(host.tables.segments) - len(kept)
    start = first.offset + host.fat.address - first.address
    room = host.room(whole.memory_end)
    return FatLayout((*kept, *[_SPARE] * missing), start, room, last.offset, inserted)
