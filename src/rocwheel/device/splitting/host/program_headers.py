"""The table of program headers where another tool has moved it to the end of a program."""

from __future__ import annotations

import msgspec

from rocwheel.binary.code_objects import Place
from rocwheel.binary.elf.header import PT_PHDR, Segment, load_segments
from rocwheel.device.splitting.host.errors import NotJoinableError

__all__ = ["follow_headers"]


def follow_headers(segments: tuple[Segment, ...], at: int, inserted: int, *, name: str) -> tuple[Segment, ...]:
    """Return ``segments`` as they are once ``inserted`` bytes come in before what was at the file offset ``at``.

    File offsets stay the old ones. In programs, AMD's tool moves the table to an address that is its file offset: older
    kernels, such as 4.18, tell programs that it is there. It stays so, with the segment that loads it.
    Raises `NotJoinableError` where that segment can't be given another address.
    """
    headers = next((segment for segment in segments if segment.type == PT_PHDR), None)
    if not inserted or headers is None or headers.offset < at or headers.address != headers.offset:
        return segments
    loaded = load_segments(segments)
    holder = max(loaded, key=lambda segment: segment.address)
    if (holder.offset, holder.address, holder.file_size) != (headers.offset, headers.address, headers.file_size):
        found = f"program headers at {headers.offset:#x} that are not loaded by a last segment of their own"
        remedy = "Join the file that was there before it was split."
        raise NotJoinableError(Place(name, headers.offset), found, expected="them where they can move", remedy=remedy)
    return tuple(_moved(segment, inserted) if segment in {headers, holder} else segment for segment in segments)


def _moved(segment: Segment, by: int) -> Segment:
    address, physical = segment.address + by, segment.physical_address + by
    return msgspec.structs.replace(segment, address=address, physical_address=physical)
