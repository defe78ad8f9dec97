"""Files that tell loaders one thing and those who read offsets or sections another: the run path is that of loaders.

Each was loaded by glibc 2.36, which followed the run path of the untouched file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.runpath import plan_runpath
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = struct.Struct("<IIQQQQQQ")
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_TYPE, _OFFSET, _ADDRESS, _FILE_SIZE, _MEMORY_SIZE = 0, 2, 3, 5, 6


def _library() -> bytearray:
    return bytearray((ROOT / "tests/fixtures/elf/libplain.so").read_bytes())


def _headers(data: bytearray) -> list[list[int]]:
    (number,) = struct.unpack_from("<H", data, 56)
    return [list(_HEADER.unpack_from(data, 64 + 56 * index)) for index in range(number)]


def _with_headers(data: bytearray, headers: list[list[int]]) -> bytes:
    data[64 : 64 + 56 * len(headers)] = b"".join(_HEADER.pack(*header) for header in headers)
    return bytes(data)


def _harmless_section(data: bytearray, header: list[int]) -> bytes:
    """Return the dynamic section without its run path."""
    rows = struct.iter_unpack("<QQ", data[header[_OFFSET] : header[_OFFSET] + header[_FILE_SIZE]])
    kept = b"".join(struct.pack("<QQ", *row) for row in rows if row[0] not in (15, 29))
    return kept.ljust(header[_FILE_SIZE], b"\0")


def _elsewhere_in_the_file() -> bytes:
    data = _library()
    headers = _headers(data)
    dynamic = next(header for header in headers if header[_TYPE] == _DYNAMIC)
    harmless = _harmless_section(data, dynamic)
    dynamic[_OFFSET] = len(data)
    return _with_headers(data, headers) + harmless


def _a_second_one() -> bytes:
    data = _library()
    headers = _headers(data)
    dynamic = next(header for header in headers if header[_TYPE] == _DYNAMIC)
    harmless = _harmless_section(data, dynamic)
    note = next(header for header in headers if header[_TYPE] == _NOTE and headers.index(header))
    note[:] = dynamic
    first = min((note, dynamic), key=headers.index)
    first[_OFFSET] = len(data)
    return _with_headers(data, headers) + harmless


def _mapped_over() -> bytes:
    data = _library()
    headers = _headers(data)
    dynamic = next(header for header in headers if header[_TYPE] == _DYNAMIC)
    writable = next(header for header in headers if header[_TYPE] == _LOAD and header[1] & 2)
    start = writable[_OFFSET] - writable[_ADDRESS] % 4096
    content = bytearray(data[start : writable[_OFFSET] + writable[_FILE_SIZE]])
    content[dynamic[_OFFSET] - start :][: dynamic[_FILE_SIZE]] = _harmless_section(data, dynamic)
    data += bytes(-len(data) % 4096)
    moved = len(data) - start
    below = list(writable)
    below[_OFFSET] += moved
    dynamic[_OFFSET] += moved
    headers.insert(headers.index(writable), below)
    headers.remove(next(header for header in headers if header[_TYPE] == _NOTE))
    return _with_headers(data, headers) + bytes(content)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (_elsewhere_in_the_file, "a dynamic section that claims to be at both"),
        (_a_second_one, "2 dynamic sections; expected one, as in every linked file"),
        (_mapped_over, "that is loaded over the segment at"),
    ],
)
def test_a_file_with_conflicting_dynamic_sections_is_refused(make: Callable[[], bytes], found: str) -> None:
    with pytest.raises(ElfError, match=found):
        read_elf(make(), name="file")
    with pytest.raises(ElfError, match=found):
        plan_runpath(make(), "$ORIGIN", RunpathTag.RUNPATH, name="file")


def _sections_of_debug_information(data: bytearray) -> bytearray:
    """Return a file whose sections say that it has debug information alone."""
    (start,) = struct.unpack_from("<Q", data, 40)
    (number,) = struct.unpack_from("<H", data, 60)
    for at in range(start, start + 64 * number, 64):
        kind, flags = struct.unpack_from("<IQ", data, at + 4)
        if flags & 2 and kind:
            struct.pack_into("<I", data, at + 4, 8)
    return data


def test_a_library_with_section_types_like_debug_information_is_a_library() -> None:
    data = bytes(_sections_of_debug_information(_library()))
    assert read_elf(data, name="file") == read_elf(bytes(_library()), name="file")
    assert plan_runpath(data, "$ORIGIN", RunpathTag.RUNPATH, name="file").size > len(data)


@pytest.mark.parametrize("absent", [5, 6], ids=["DT_STRTAB", "DT_SYMTAB"])
def test_a_file_without_a_table_that_loaders_need_is_classified_by_its_sections(absent: int) -> None:
    data = _sections_of_debug_information(_library())
    dynamic = next(header for header in _headers(data) if header[_TYPE] == _DYNAMIC)
    for at in range(dynamic[_OFFSET], dynamic[_OFFSET] + dynamic[_FILE_SIZE], 16):
        if struct.unpack_from("<Q", data, at) == (absent,):
            struct.pack_into("<Q", data, at, 21)
    assert read_elf(bytes(data), name="file").kind is ElfKind.OTHER


def test_a_file_with_several_dynamic_sections_is_not_debug_information() -> None:
    # Given two that name no tables, whatever loaders make of them
    data = bytearray(_a_second_one())
    for dynamic in (header for header in _headers(data) if header[_TYPE] == _DYNAMIC):
        data[dynamic[_OFFSET] : dynamic[_OFFSET] + dynamic[_FILE_SIZE]] = bytes(dynamic[_FILE_SIZE])
    with pytest.raises(ElfError, match="2 dynamic sections"):
        read_elf(bytes(_sections_of_debug_information(data)), name="file")


def _below_another_segment() -> bytes:
    """Return a library with zeros from elsewhere in the file, over which its writable segment is mapped."""
    data = _library()
    headers = _headers(data)
    writable = next(header for header in headers if header[_TYPE] == _LOAD and header[1] & 2)
    below = list(writable)
    below[_OFFSET] = len(data) + -len(data) % 4096 + writable[_ADDRESS] % 4096
    headers.insert(headers.index(writable), below)
    headers.remove(next(header for header in headers if header[_TYPE] == _NOTE))
    made = _with_headers(_sections_of_debug_information(data), headers)
    return made + bytes(-len(made) % 4096 + 8192)


def _in_two_segments() -> bytes:
    """Return a library whose dynamic section begins at the end of a segment, and goes on in the next."""
    data = _library()
    headers = _headers(data)
    dynamic = next(header for header in headers if header[_TYPE] == _DYNAMIC)
    first = next(header for header in headers if header[_TYPE] == _LOAD and header[1] & 2)
    size = dynamic[_OFFSET] + 16 - first[_OFFSET]
    rest = [*first[:2], *(field + size for field in first[2:5]), *(field - size for field in first[5:7]), first[7]]
    first[_FILE_SIZE] = first[_MEMORY_SIZE] = size
    headers.insert(headers.index(first) + 1, rest)
    headers.remove(next(header for header in headers if header[_TYPE] == _NOTE))
    return _with_headers(_sections_of_debug_information(data), headers)


def test_a_library_loaded_over_another_segment_is_not_debug_information() -> None:
    with pytest.raises(ElfError, match="that is loaded over the segment at"):
        read_elf(_below_another_segment(), name="file")


def test_a_library_with_a_dynamic_section_in_two_segments_is_a_library() -> None:
    elf, plain = read_elf(_in_two_segments(), name="file"), read_elf(bytes(_library()), name="file")
    assert (elf.kind, elf.needed, elf.run_path) == (ElfKind.SHARED_OBJECT, plain.needed, plain.run_path)


def test_real_debug_information_is_recognized() -> None:
    data = (ROOT / "tests/fixtures/elf/libanswer.debug").read_bytes()
    assert read_elf(data, name="file").kind is ElfKind.OTHER


def test_segments_from_the_same_part_of_the_file_may_share_a_page() -> None:
    data = _library()
    headers = _headers(data)
    first = next(header for header in headers if header[_TYPE] == _LOAD)
    part = list(first)
    for field in (_OFFSET, _ADDRESS, 4):
        part[field] += 8
    part[_FILE_SIZE] = part[_MEMORY_SIZE] = first[_FILE_SIZE] - 8
    headers.insert(headers.index(first) + 1, part)
    headers.remove(next(header for header in headers if header[_TYPE] == _NOTE))
    assert read_elf(_with_headers(data, headers), name="file").is_dynamic


def test_a_segment_over_the_zero_bytes_of_another_segment_is_refused() -> None:
    data = _library()
    headers = _headers(data)
    first = next(header for header in headers if header[_TYPE] == _LOAD)
    first[_MEMORY_SIZE] = 1 << 16
    with pytest.raises(ElfError, match="that is loaded over the segment at 0x0"):
        read_elf(_with_headers(data, headers), name="file")
