"""Models how loaders map segments in whole pages (gABI, "Program Loading"), and converts addresses to file offsets.

The rules for segments that glibc refuses to map are from ``elf/dl-load.c``, tested with 2.31, 2.36, 2.41, and 2.43.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.header import (
    EM_AARCH64,
    EM_AMDGPU,
    EM_PPC64,
    EM_X86_64,
    ET_DYN,
    PT_LOAD,
    PT_PHDR,
    ElfError,
    load_segments,
)
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.header import ElfBytes, Header, Segment

ANY_ALIGNMENT: Final = (2, 35)
"""The first glibc that loads libraries regardless of their segments' alignment (glibc bugs 28676 and 28688)."""

PAGES: Final = {EM_AARCH64: 1 << 16, EM_PPC64: 1 << 16}
"""The largest kernel page size of each machine that doesn't always use 4 KiB; linkers align for it by default."""

_UNRESERVABLE: Final = {EM_X86_64: 1 << 46}
_UNRESERVABLE_ELSEWHERE: Final = 1 << 47
"""The smallest alignment that is too large for the address space, except on x86-64.

Processes have 2**47 bytes of address space on x86-64 and 2**48 on other machines.
"""

_PAGE: Final = 1 << 12
"""The smallest page size of any machine. Segments that map with it also map with larger pages."""
_ADDRESSES: Final = 1 << 64
_STRIP = "Rebuild the file. Strip it before you use patchelf, because llvm-strip up to LLVM 16 breaks it afterward."


def require_loadable(source: ElfBytes, header: Header, segments: Sequence[Segment]) -> None:
    """Raise `ElfError` for segments that host loaders can't map as specified, or that `require_contents` rejects.

    The loader for AMD GPUs copies segments instead, and accepts any address and offset.
    """
    require_contents(source, segments)
    if header.machine == EM_AMDGPU:
        return
    loaded = load_segments(segments)
    for segment in loaded:
        if (segment.address - segment.offset) % _PAGE:
            raise ElfError(
                source.name,
                f"a segment at {segment.offset:#x} in the file and at {segment.address:#x} in memory",
                expected="the same position in a page, because loaders map whole pages",
                remedy=_STRIP,
            )
    if header.type == ET_DYN and loaded:
        _require_order(source, loaded)
        # glibc 2.36 and later read the program headers from the address in ``PT_PHDR``.
        headers = next((segment for segment in reversed(segments) if segment.type == PT_PHDR), None)
        if headers is not None:
            find_offset(source, segments, headers.address, "the program header table (PT_PHDR)")


def _require_order(source: ElfBytes, loaded: Sequence[Segment]) -> None:
    """Reject segments out of order, because loaders reserve memory from the first segment in the table to the last."""
    first = min(loaded, key=lambda segment: segment.address)
    last = max(loaded, key=lambda segment: segment.memory_end)
    if loaded[0].address > first.address or loaded[-1].memory_end < last.memory_end:
        found = (
            f"segments from {loaded[0].address:#x} to {loaded[-1].memory_end:#x}, and other segments outside this range"
        )
        raise ElfError(source.name, found, expected="loaded segments in the order of their addresses")


def find_misaligned(segments: Iterable[Segment], *, is_program: bool) -> Segment | None:
    """Return the first loaded segment that glibc before `ANY_ALIGNMENT` refuses to map, or `None` if glibc can map all.

    Patchelf 0.18 creates such segments.

    Those glibc releases require an alignment that is a multiple of the page size and that divides the difference
    between the address and the offset. For later releases, it is sufficient if the page size divides this difference.
    Kernels, which load programs, and musl never check the alignment. A library that a kernel can also start, such as
    ``libc.so.6``, isn't a program here, because glibc also loads it.
    """
    if is_program:
        return None
    return next((segment for segment in load_segments(segments) if _is_misaligned(segment)), None)


def _is_misaligned(segment: Segment) -> bool:
    distance = (segment.address - segment.offset) % _ADDRESSES
    return bool(segment.alignment % _PAGE or distance & ((segment.alignment - 1) % _ADDRESSES))


def find_unreservable(segments: Iterable[Segment], machine: int) -> Segment | None:
    """Return a library's first loaded segment whose alignment is too large for a process in glibc 2.35 and later.

    To align a segment, glibc reserves as many extra bytes as the alignment. It ignores an alignment that isn't a power
    of two.
    """
    least = _UNRESERVABLE.get(machine, _UNRESERVABLE_ELSEWHERE)
    found = (one for one in load_segments(segments) if one.alignment.bit_count() == 1 and one.alignment >= least)
    return next(found, None)


def find_small_pages(segments: Iterable[Segment], machine: int) -> Segment | None:
    """Return a library's first loaded segment that isn't aligned for the machine's largest page size (`PAGES`)."""
    pages = PAGES.get(machine, _PAGE)
    return next((one for one in load_segments(segments) if pages > _PAGE and one.alignment < pages), None)


def realigned(segments: tuple[Segment, ...], *, is_program: bool) -> tuple[Segment, ...]:
    """Return the segments with an alignment that every glibc accepts: the largest that the file offset allows.

    Segments of a program stay unchanged, as in `find_misaligned`. Segments of a library also stay unchanged if the file
    as a whole would lose alignment. Later glibc releases load the file at a multiple of the largest alignment, which
    the file's data might need.
    """
    if is_program:
        return segments
    found = tuple(_realigned(segment) if segment.type == PT_LOAD else segment for segment in segments)
    return found if _alignment(found) >= _alignment(segments) else segments


def _realigned(segment: Segment) -> Segment:
    if not _is_misaligned(segment):
        return segment
    alignment, distance = _PAGE, segment.address - segment.offset
    while alignment * 2 <= segment.alignment and distance % (alignment * 2) == 0:
        alignment *= 2
    return msgspec.structs.replace(segment, alignment=alignment)


def _alignment(segments: Iterable[Segment]) -> int:
    """Return the alignment of the file's load address; glibc ignores values that aren't powers of two."""
    found = (segment.alignment for segment in load_segments(segments))
    return max((one for one in found if one.bit_count() == 1), default=_PAGE)


def require_contents(source: ElfBytes, segments: Iterable[Segment]) -> None:
    """Raise `ElfError` if a loaded segment extends beyond the end of the file, or replaces pages of another segment.

    Loaders map each segment over earlier segments. So at an address in both segments, the bytes in memory differ from
    the first segment's bytes in the file.
    """
    loaded = load_segments(segments)
    for segment in loaded:
        source.require(segment.offset, segment.file_size, "a loaded segment")
        if segment.file_size > segment.memory_size:
            raise ElfError(
                source.name,
                f"a segment of {count(segment.file_size, 'byte')} in {count(segment.memory_size, 'byte')} of memory",
            )
    before: Segment | None = None
    for segment in sorted(loaded, key=lambda segment: segment.address):
        if before is not None and _takes_pages(before, segment):
            found = f"a segment at {segment.address:#x} that is loaded over the segment at {before.address:#x}"
            raise ElfError(source.name, found, expected="separate pages for each segment")
        if before is None or segment.memory_end >= before.memory_end:
            before = segment


def _takes_pages(before: Segment, segment: Segment) -> bool:
    """Return whether a segment replaces pages of a lower segment that have different contents or are zeros (bss)."""
    has_zeros = any(one.memory_size > one.file_size for one in (before, segment))
    if segment.address < before.memory_end and has_zeros:
        return segment.memory_size > 0
    is_one_piece = segment.address - segment.offset == before.address - before.offset
    return not is_one_piece and segment.memory_size > 0 and _first_page(segment) < _behind_last_page(before)


def find_offset(source: ElfBytes, segments: Iterable[Segment], address: int, what: str) -> tuple[int, int]:
    """Return the file offset of ``address``, and the file offset of the end of its segment.

    An address may be outside all segments, but on a page that a segment maps. In that case, the returned end is the end
    of the contiguous mapping. In files that patchelf 0.15 to 0.18 changed twice, tables extend that far. Raises
    `ElfError` if no segment maps data from the file at the address.
    """
    loaded = load_segments(segments)
    for segment in loaded:
        if segment.address <= address < segment.address + segment.file_size:
            return segment.offset + address - segment.address, segment.end
    offset = _find_on_page(loaded, address)
    end = 0 if offset is None else _mapped_end(source, loaded, offset, address)
    if offset is None or end <= offset:
        raise ElfError(
            source.name, f"{what} claims to be at address {address:#x}, but no segment of the file is loaded there"
        )
    return offset, end


def find_table(source: ElfBytes, segments: Iterable[Segment], address: int, size: int, what: str) -> tuple[int, int]:
    """Return the file offset of a table, and how many bytes from that offset are identical in memory and in the file.

    The identical bytes end with the segment, unless ``size`` bytes don't fit into it and more bytes follow without a
    gap. Those bytes are the rest of a page, or a segment that continues where this one ends. Patchelf 0.14 creates such
    segments.
    """
    loaded = load_segments(segments)
    offset, end = find_offset(source, loaded, address, what)
    if offset + size > end:
        end = max(end, _mapped_end(source, loaded, offset, address))
    return offset, end - offset


def read_memory(source: ElfBytes, segments: Iterable[Segment], address: int, size: int) -> bytes:
    """Return up to ``size`` bytes at ``address`` as loaders see them, until the first page that no segment maps.

    Use this function for files whose segments may overlap. Each segment is mapped over the segments that precede it in
    the program header table, and its bytes beyond the file are zeros.
    """
    start = address // _PAGE * _PAGE
    near = [one for one in load_segments(segments) if _first_page(one) < address + size and _pages_end(one) > start]
    pages: list[bytes] = []
    for page in range(start, address + size, _PAGE):
        last = next((one for one in reversed(near) if _first_page(one) <= page < _pages_end(one)), None)
        if last is None:
            break
        pages.append(_read_page(source, last, page))
    return b"".join(pages)[address - start :][:size]


def _read_page(source: ElfBytes, segment: Segment, page: int) -> bytes:
    """Return a page as a segment maps it: bytes from the file, and zeros for bytes that are only in memory (bss)."""
    offset = max(segment.offset + page - segment.address, 0)
    size = min(_PAGE, source.size - offset) if page < _behind_last_page(segment) else 0
    data = bytearray(source.read(offset, size, "a page") if size > 0 else b"").ljust(_PAGE, b"\0")
    begin, end = (min(max(at - page, 0), _PAGE) for at in (segment.address + segment.file_size, segment.memory_end))
    if begin < end:
        data[begin:end] = bytes(end - begin)
    return bytes(data)


def _find_on_page(loaded: Sequence[Segment], address: int) -> int | None:
    """Return the file offset of an address on a segment's page; the last such segment is mapped over the others."""
    holders = [segment for segment in loaded if _first_page(segment) <= address < _behind_last_page(segment)]
    last = max(holders, key=lambda segment: segment.address, default=None)
    return None if last is None else max(last.offset + address - last.address, 0)


def _mapped_end(source: ElfBytes, loaded: Sequence[Segment], offset: int, address: int) -> int:
    """Return the file offset where the range that starts at ``offset``, and is mapped at ``address``, ends in memory.

    The range ends where zeros (bss), or a segment from another part of the file, replace the page.
    """
    bias = address - offset
    end, limit = address, source.size + bias
    for segment in sorted(loaded, key=lambda segment: segment.address):
        file_end = segment.address + segment.file_size
        if segment.address - segment.offset == bias:
            end = max(end, _behind_last_page(segment)) if _first_page(segment) <= end else end
        elif segment.address > address:
            limit = min(limit, max(_first_page(segment), address))
        if segment.memory_size > segment.file_size and _behind_last_page(segment) > address:
            limit = min(limit, max(file_end, address))
    return min(end, limit) - bias


def _first_page(segment: Segment) -> int:
    return segment.address // _PAGE * _PAGE


def _pages_end(segment: Segment) -> int:
    return max(segment.memory_end, _behind_last_page(segment))


def _behind_last_page(segment: Segment) -> int:
    return -(-(segment.address + segment.file_size) // _PAGE) * _PAGE
