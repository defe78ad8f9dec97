"""Split libraries and programs laid out as AMD's tool does it: what it adds stands at the end of the file.

The marker section and a moved table of program headers are loaded there by segments of their own, ``.hip_fatbin`` has
no bytes in the file any more, and what stood behind it comes closer to the start. In programs, the moved table has the
address that is its file offset, as old kernels want it, and PT_PHDR says so.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from elftools.elf.elffile import ELFFile

from rocwheel.binary.kpack.markers import Marker, encode_markers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["split_with_moved_headers"]

_PAGE = 0x1000
_PT_PHDR = 6
_PT_LOAD, _READ, _ALLOC, _NOBITS, _PROGBITS, _RELATIVE = 1, 4, 2, 8, 1, 8
_HIPK = 0x4B504948


class _Fat(NamedTuple):
    """A fat library: its bytes and tables, and the pages of device code that leave the file, by offset."""

    data: bytearray
    sections: dict[str, Any]
    segments: list[Any]
    relocated: list[int]
    start: int
    stop: int

    @property
    def is_program(self) -> bool:
        """Whether the kernel starts the file."""
        return any(segment["p_type"] == "PT_INTERP" for segment in self.segments)

    def moved(self, offset: int) -> int:
        """Return where in the new file is what was at ``offset``."""
        return offset - (self.stop - self.start) if offset >= self.stop else offset

    @property
    def free_address(self) -> int:
        """The first page behind everything that is loaded."""
        return _pages(max(s["p_vaddr"] + s["p_memsz"] for s in self.segments if s["p_type"] == "PT_LOAD"))


def split_with_moved_headers(path: Path, made: Path, marker: Marker, indices: Sequence[int]) -> Path:
    """Write the split form of the library or position-independent program ``path`` to ``made``.

    ``indices`` are those of its wrappers.
    """
    fat = _read(path)
    packed, _ = encode_markers([marker])
    _redirect(fat, indices)
    content = fat.data[: fat.start] + fat.data[fat.stop :]
    marker_at = _append(content, packed, _PAGE)
    address = fat.free_address
    headers_at, headers_address = _append(content, b"", _PAGE), address + _pages(len(packed))
    size = 56 * (len(list(_parts(fat, b""))) + 2)
    if fat.is_program:
        headers_at = headers_address = max(headers_at, headers_address)
        content += bytes(headers_at - len(content))
    loads = [_load(marker_at, address, len(packed)), _load(headers_at, headers_address, size)]
    content += b"".join([*_parts(fat, _load(headers_at, headers_address, size, _PT_PHDR)), *loads])
    names = fat.sections[".shstrtab"]
    old_names = fat.data[names["sh_offset"] : names["sh_offset"] + names["sh_size"]]
    names_at = _append(content, old_names + b".rocm_kpack_ref\0", 8)
    table = [_section(fat, name, header, names_at) for name, header in fat.sections.items()]
    fields = (names["sh_size"], _PROGBITS, _ALLOC, address, marker_at, len(packed), 0, 0, 1, 0)
    sections_at = _append(content, b"".join([*table, struct.pack("<IIQQQQIIQQ", *fields)]), 8)
    struct.pack_into("<QQ", content, 32, headers_at, sections_at)
    struct.pack_into("<H", content, 56, size // 56)
    struct.pack_into("<H", content, 60, len(table) + 1)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(content)
    made.chmod(0o755)
    return made


def _read(path: Path) -> _Fat:
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        sections = {section.name: section.header for section in elf.iter_sections()}
        relocations = elf.get_section_by_name(".rela.dyn").iter_relocations()
        relocated = [relocation["r_offset"] for relocation in relocations]
        segments = [segment.header for segment in elf.iter_segments()]
    code = sections[".hip_fatbin"]
    assert code["sh_offset"] % _PAGE == 0
    stop = code["sh_offset"] + code["sh_size"] // _PAGE * _PAGE
    return _Fat(bytearray(path.read_bytes()), sections, segments, relocated, code["sh_offset"], stop)


def _redirect(fat: _Fat, indices: Sequence[int]) -> None:
    wrappers, table = fat.sections[".hipFatBinSegment"], fat.sections[".rela.dyn"]
    for number, index in enumerate(indices):
        at = wrappers["sh_offset"] + 24 * number
        struct.pack_into("<I", fat.data, at, _HIPK)
        struct.pack_into("<I", fat.data, at + 16, index)
        entry = table["sh_offset"] + 24 * fat.relocated.index(wrappers["sh_addr"] + 24 * number + 8)
        struct.pack_into("<QQ", fat.data, entry + 8, _RELATIVE, fat.free_address)


def _parts(fat: _Fat, headers: bytes) -> Iterator[bytes]:
    """Yield the program headers; the segment of the device code ends with it, and what follows gets another.

    ``headers`` is what becomes of PT_PHDR.
    """
    for head in fat.segments:
        kind, offset, address = _type(head), head["p_offset"], head["p_vaddr"]
        if kind == _PT_PHDR:
            yield headers
        elif kind == _PT_LOAD and offset <= fat.start < offset + head["p_filesz"]:
            yield _pack(head, offset, address, fat.start - offset, fat.stop - offset)
            left = head["p_filesz"] - (fat.stop - offset)
            if left:
                yield _pack(head, fat.start, address + fat.stop - offset, left, left)
        else:
            yield _pack(head, fat.moved(offset), address, head["p_filesz"], head["p_memsz"])


def _type(head: Any) -> int:
    known = {
        "PT_LOAD": 1,
        "PT_DYNAMIC": 2,
        "PT_INTERP": 3,
        "PT_NOTE": 4,
        "PT_PHDR": 6,
        "PT_TLS": 7,
        "PT_GNU_EH_FRAME": 0x6474E550,
    }
    known |= {"PT_GNU_STACK": 0x6474E551, "PT_GNU_RELRO": 0x6474E552, "PT_GNU_PROPERTY": 0x6474E553}
    return known[head["p_type"]]


def _pack(head: Any, offset: int, address: int, size: int, memory: int) -> bytes:
    places = (offset, address, address, size, memory, head["p_align"])
    return struct.pack("<IIQQQQQQ", _type(head), head["p_flags"], *places)


def _load(offset: int, address: int, size: int, kind: int = _PT_LOAD) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, _READ, offset, address, address, size, size, _PAGE)


def _section(fat: _Fat, name: str, head: Any, names_at: int) -> bytes:
    row = bytearray(_old_row(fat, list(fat.sections).index(name)))
    struct.pack_into("<Q", row, 24, fat.moved(head["sh_offset"]))
    if name == ".hip_fatbin":
        struct.pack_into("<I", row, 4, _NOBITS)
        struct.pack_into("<Q", row, 24, head["sh_offset"])
    if name == ".shstrtab":
        struct.pack_into("<QQ", row, 24, names_at, head["sh_size"] + len(b".rocm_kpack_ref\0"))
    return bytes(row)


def _old_row(fat: _Fat, number: int) -> bytes:
    start = int(struct.unpack_from("<Q", fat.data, 40)[0]) + 64 * number
    return bytes(fat.data[start : start + 64])


def _append(content: bytearray, more: bytes | bytearray, alignment: int) -> int:
    content += bytes(-len(content) % alignment)
    start = len(content)
    content += more
    return start


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE
