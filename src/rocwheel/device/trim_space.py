"""Removes free space from a segment: moves bundles, and removes bytes from the middle of the segment.

The data after these bytes, called the rest, stays in place in memory, so it needs a separate program header:

* the header of ``PT_PHDR``, which only programs need but lld also writes into shared libraries
* otherwise, as after GNU ld, the next segment, if its first data becomes read-only after relocation (``PT_GNU_RELRO``).
  Then the rest is loaded with this segment and also becomes read-only
* otherwise, as in programs from lld, the header of the second of two data segments, which are merged

The table of program headers keeps its position and length. In binutils, strip and objcopy always write the table after
the ELF header, over any data that would follow a shorter table.
"""

from __future__ import annotations

import mmap
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.code_objects import CodePlace, NotTrimmableError
from rocwheel.binary.elf.header import (
    PF_W,
    PF_X,
    PT_GNU_RELRO,
    PT_NULL,
    PT_PHDR,
    SHF_ALLOC,
    SHF_EXECINSTR,
    ElfSection,
    Segment,
    load_segments,
)
from rocwheel.core.patch import Replacement
from rocwheel.core.reading import iter_pieces
from rocwheel.core.scratch import open_temporary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.core.reading import Data


PAGE: Final = 4096
"""The alignment of bundles, and the smallest page of memory, in bytes."""


class BundleMove(msgspec.Struct, frozen=True):
    """The old and new file offsets of a bundle, and the bundle's new content, in ascending order."""

    old: int
    new: int
    content: tuple[Replacement, ...]


def pack_bundles(start: int, bundles: Sequence[Bundle], changes: Sequence[BundleChange]) -> tuple[BundleMove, ...]:
    """Put each bundle on the next page of a section that begins at the file offset ``start``.

    Pages are relative to ``start``. A bundle stays in place if its new position would be after its old position.
    """
    changed = {change.bundle.start: change for change in changes}
    moves = []
    position = 0
    for bundle in bundles:
        old, new = start + bundle.start, start + min(page_end(position), bundle.start)
        change = changed.get(bundle.start)
        content = change.placed(new) if change else (Replacement(new, new + bundle.size, source=old),)
        moves.append(BundleMove(old, new, content))
        position = content[-1].stop - start
    return tuple(moves)


def page_end(size: int) -> int:
    """Return a size rounded up to a multiple of the page size."""
    return -(-size // PAGE) * PAGE


def spool_changes(changes: Iterable[BundleChange], folder: Path | None) -> tuple[BundleChange, ...]:
    """Return all ``changes``, with compressed bundles stored in an unnamed file in ``folder``.

    Plain bundles stay in place, usually in the edited file. Raises `OSError` if writing fails.
    """
    kept: list[tuple[BundleChange, int | None]] = []
    with open_temporary(folder, buffering=-1) as file:
        for change in changes:
            if change.version is None:
                kept.append((change, None))
                continue
            kept.append((_with_data(change, b""), file.tell()))
            for piece in iter_pieces(change.replacements[0].content(memoryview(b""))):
                file.write(piece)
        size = file.tell()
        file.flush()
        data = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
    return tuple(
        change if start is None else _with_data(change, data[start : start + change.size]) for change, start in kept
    )


def _with_data(change: BundleChange, data: bytes | Data) -> BundleChange:
    """Return the change with other content for the bundle; the zeros after the bundle stay."""
    bundle, *rest = change.replacements
    return msgspec.structs.replace(change, replacements=(msgspec.structs.replace(bundle, data=data), *rest))


SPARES_OF_LIBRARY = frozenset({PT_PHDR, PT_NULL})
"""The kinds of program headers that a shared library doesn't need."""
SPARES_OF_PROGRAM = frozenset({PT_NULL})
_MOST_PADDING = 1 << 16
"""The maximum file space, in bytes, that merging two segments may cost."""


class SegmentCut(msgspec.Struct, frozen=True):
    """Program headers after the cut, with the file offsets from before the cut.

    ``padding`` is the number of bytes to insert before the data at the file offset ``padded_at``.
    """

    segments: tuple[Segment, ...]
    padded_at: int = 0
    padding: int = 0


def cut_segment(
    layout: tuple[Sequence[Segment], Sequence[ElfSection]],
    holder: Segment,
    cut: tuple[int, int],
    *,
    name: str,
    spares: Collection[int] = SPARES_OF_LIBRARY,
) -> SegmentCut:
    """Remove ``cut``, a range of file offsets of at least one page, from the segment ``holder``.

    ``layout`` contains the file's program headers and sections, and ``name`` identifies the file in errors. ``spares``
    are the kinds of program headers that the file doesn't need. Raises `NotTrimmableError` if nothing can load the data
    after the cut.
    """
    (segments, sections), (start, stop) = layout, cut
    size = start - holder.offset
    if holder.end <= stop:
        has_bss = holder.memory_size > holder.file_size
        ended = msgspec.structs.replace(holder, file_size=size, memory_size=holder.memory_size if has_bss else size)
        return SegmentCut(_replaced(segments, {holder: ended}))
    ended = msgspec.structs.replace(holder, file_size=size, memory_size=size)
    # The bytes before the first section after the cut are padding.
    offsets = (section.offset for section in sections if section.flags & SHF_ALLOC)
    rest = holder.behind(min((offset for offset in offsets if stop <= offset < holder.end), default=stop))
    spare = next((segment for segment in segments if segment.type in spares), None)
    if spare is not None:
        return SegmentCut(_with_rest([segment for segment in segments if segment is not spare], holder, (ended, rest)))
    found = _join(segments, sections, holder, rest) or _merge(segments, holder, (ended, rest))
    if found is None:
        raise NotTrimmableError(
            CodePlace(name),
            "no spare program header for the data after its device code",
            expected="PT_PHDR (which lld creates), PT_GNU_RELRO in the next segment, or two data segments",
        )
    return msgspec.structs.replace(found, segments=_replaced(found.segments, {holder: ended}))


def _with_rest(kept: Sequence[Segment], holder: Segment, parts: tuple[Segment, Segment]) -> tuple[Segment, ...]:
    index = kept.index(holder)
    return (*kept[:index], *parts, *kept[index + 1 :])


def _replaced(segments: Sequence[Segment], new: dict[Segment, Segment]) -> tuple[Segment, ...]:
    return tuple(new.get(segment, segment) for segment in segments)


def _join(
    segments: Sequence[Segment], sections: Sequence[ElfSection], holder: Segment, rest: Segment
) -> SegmentCut | None:
    """Load ``rest`` with the segment after ``holder``."""
    follower = next((segment for segment in load_segments(segments) if segment.address > holder.address), None)
    relro = next((segment for segment in segments if segment.type == PT_GNU_RELRO), None)
    if follower is None or relro is None or not _may_join(sections, rest, follower, relro):
        return None
    distance = follower.address - rest.address
    joined = _replaced(segments, {segment: _grown(segment, rest, distance) for segment in (follower, relro)})
    return SegmentCut(joined, holder.end, distance - (follower.offset - rest.offset))


def _merge(segments: Sequence[Segment], holder: Segment, parts: tuple[Segment, Segment]) -> SegmentCut | None:
    """Merge two data segments; lld separates data that is read-only after relocation from other data."""
    for first, second in pairwise(load_segments(segments)):
        distance = second.address - first.address
        padding = distance - (second.offset - first.offset)
        is_data = first.flags == second.flags and first.flags & (PF_W | PF_X) == PF_W and holder not in (first, second)
        if is_data and first.end <= second.offset and 0 <= padding <= _MOST_PADDING:
            merged = msgspec.structs.replace(
                first,
                file_size=distance + second.file_size,
                memory_size=distance + second.memory_size,
                alignment=max(first.alignment, second.alignment),
            )
            kept = [merged if segment is first else segment for segment in segments if segment is not second]
            return SegmentCut(_with_rest(kept, holder, parts), second.offset, padding)
    return None


def _may_join(sections: Sequence[ElfSection], rest: Segment, follower: Segment, relro: Segment) -> bool:
    is_code = any(section.flags & SHF_EXECINSTR and rest.offset <= section.offset < rest.end for section in sections)
    is_data = follower.flags & (PF_W | PF_X) == PF_W and not is_code
    starts_read_only = relro.address == follower.address and relro.offset == follower.offset
    is_apart = rest.file_size == rest.memory_size and rest.end <= follower.offset
    return (
        is_data and starts_read_only and is_apart and follower.address - rest.address >= follower.offset - rest.offset
    )


def _grown(segment: Segment, rest: Segment, size: int) -> Segment:
    """Return ``segment`` with ``size`` more bytes at its start, beginning with ``rest``."""
    return msgspec.structs.replace(
        segment,
        offset=rest.offset,
        address=rest.address,
        physical_address=rest.physical_address,
        file_size=segment.file_size + size,
        memory_size=segment.memory_size + size,
    )
