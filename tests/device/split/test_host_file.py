"""Tests of `rocwheel.device.split.host_file`."""

from __future__ import annotations

import io
import re
import struct
from typing import TYPE_CHECKING

import lief
import msgspec
import pefile
import pytest
from hypothesis import given

from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kpack.markers import Marker, read_split_library
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import PeBytes, open_image
from rocwheel.binary.pe.layout import find_layout_faults, find_loader_faults
from rocwheel.binary.pe.rewrite import FixedFileError, SignedFileError
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.patch import FilePatch, write_patch
from rocwheel.core.reading import join_data
from rocwheel.device.split.host_file import UnitLink, has_code_to_split, plan_host_file
from rocwheel.device.split.host_layout import NotJoinableError, NotSplittableError
from rocwheel.device.split.joined_file import plan_fat_file
from tests.support.damage import damaged, unless_refused
from tests.support.host_files import MARKERS, units_of
from tests.support.host_files import bundles_of as bundles_in
from tests.support.host_files import split as split_file
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool


PE_FIXTURES = FIXTURES / "pe"
TWO, GNU = ((PE_FIXTURES / name).read_bytes() for name in ("two.dll", "two-gnu.dll"))
LIBRARIES = pytest.mark.parametrize("data", [pytest.param(TWO, id="lld"), pytest.param(GNU, id="GNU")])
MARKER = Marker("bin/a.dll", ("../.kpack/a.dll_@GFXARCH@.kpack",))
OPTIONAL = 0x78 + 24
SECTIONS = OPTIONAL + 240


def faults_of(data: bytes) -> tuple[str, ...]:
    """Return what the loader has against a file, and what is wrong with its checksum."""
    return tuple(fault.found for fault in find_layout_faults(data, read_pe(data, name="a.dll"), name="a.dll"))


def refusals(data: bytes) -> set[str]:
    return set(find_loader_faults(open_image(PeBytes(memoryview(data), "a.dll"))))


def applied(data: bytes, patch: FilePatch) -> bytes:
    """Return the new file, streamed and as one range of bytes, which have to be the same."""
    stream = io.BytesIO()
    write_patch(stream, memoryview(data), patch)
    written = stream.getvalue().ljust(patch.size, b"\0")
    assert b"".join(map(bytes, patch.apply(memoryview(data)))) == written
    return written


def split(data: bytes, *, markers: tuple[Marker, ...] = (MARKER,), indices: tuple[int, int] = (0, 1)) -> bytes:
    links = [UnitLink(index, 0) for index in indices]
    return applied(data, plan_host_file(memoryview(data), markers, links, name="a.dll"))


def fat_of(data: bytes) -> FatBinary:
    fat = read_fat_binary(memoryview(data), name="a.dll")
    assert fat is not None
    return fat


def bundles_of(data: bytes) -> list[memoryview]:
    fat = fat_of(data)
    view = memoryview(data)[fat.section.offset :][: fat.section.size]
    return [view[bundle.start : bundle.stop] for bundle in fat.iter_bundles(memoryview(data))]


def joined(host: bytes, bundles: list[memoryview], units: tuple[int, ...] = (0, 1)) -> bytes:
    return applied(host, plan_fat_file(memoryview(host), bundles, units, name="a.dll"))


@LIBRARIES
def test_the_wrappers_point_to_the_marker(data: bytes) -> None:
    library = read_split_library(memoryview(split(data)), name="a.dll")
    assert library is not None
    assert [(unit.offset, unit.index, unit.marker) for unit in library.units] == [
        (0x800, 0, MARKER),
        (0x818, 1, MARKER),
    ]


@LIBRARIES
def test_each_wrapper_can_have_its_own_marker(data: bytes) -> None:
    other = Marker("bin/a.dll", ("../.kpack/a.dll-part2_@GFXARCH@.kpack",))
    host = applied(data, plan_host_file(memoryview(data), (MARKER, other), [UnitLink(7, 1), UnitLink(3, 0)], name="x"))
    library = read_split_library(memoryview(host), name="a.dll")
    assert library is not None
    assert [(unit.index, unit.marker) for unit in library.units] == [(7, other), (3, MARKER)]


@LIBRARIES
def test_the_device_code_is_removed_from_the_file_but_not_from_memory(data: bytes) -> None:
    host = split(data)
    old, new = pefile.PE(data=data), pefile.PE(data=host)
    code = next(section for section in old.sections if section.Name == b".hip_fat")
    assert len(host) == len(data) - code.SizeOfRawData + 512
    assert new.OPTIONAL_HEADER.SizeOfImage == old.OPTIONAL_HEADER.SizeOfImage + 4096
    for before, after in zip(old.sections, new.sections, strict=False):
        assert (before.Name, before.VirtualAddress, before.Misc_VirtualSize, before.Characteristics) == (
            after.Name, after.VirtualAddress, after.Misc_VirtualSize, after.Characteristics,
        )  # fmt: skip
        if before.Name not in {b".hip_fat", b".hipFatB"}:
            assert before.get_data() == after.get_data()
    assert [section.SizeOfRawData for section in new.sections if section.Name == b".hip_fat"] == [0]
    marker = new.sections[-1]
    assert (marker.Name, marker.Characteristics, marker.SizeOfRawData) == (b".kpackrf", 0x40000040, 512)
    content = marker.get_data()[: marker.Misc_VirtualSize]
    assert msgspec.msgpack.decode(content) == {
        "kernel_name": "bin/a.dll",
        "kpack_search_paths": ["../.kpack/a.dll_@GFXARCH@.kpack"],
    }


@LIBRARIES
def test_only_the_wrapper_pointers_differ_in_memory(data: bytes) -> None:
    fat = fat_of(data)
    old, new = (pefile.PE(data=one).get_memory_mapped_image() for one in (data, split(data)))
    mine = bytearray(old.ljust(len(new), b"\0"))
    mine[:0x1000] = new[:0x1000]
    start, stop = fat.section.address, fat.section.address + len(fat.view(memoryview(data)))
    mine[start:stop] = bytes(stop - start)
    mine[0x3000:0x3030] = new[0x3000:0x3030]
    marker_at = pefile.PE(data=split(data)).sections[-1].VirtualAddress
    assert mine[:marker_at] == new[:marker_at]


@LIBRARIES
def test_the_file_has_no_loader_faults_before_and_after_splitting(data: bytes) -> None:
    host = split(data)
    again = joined(host, bundles_of(data))
    for image in (data, host, again):
        assert faults_of(image) == ()
        layout = lief.PE.parse(list(image))
        assert layout is not None
        assert lief.PE.check_layout(layout) == (True, "")


@LIBRARIES
def test_llvm_readobj_shows_the_same_imports_and_exports(data: bytes, run_tool: RunTool, tmp_path: Path) -> None:
    texts = []
    for number, image in enumerate((data, split(data))):
        path = tmp_path / f"{number}.dll"
        path.write_bytes(image)
        options = ["--coff-exports", "--coff-imports", "--coff-basereloc", "--coff-load-config", "--symbols"]
        done = run_tool(["llvm-readobj-16", *options, str(path)])
        texts.append(str(done).replace(str(path), ""))
    assert texts[0] == texts[1]
    assert "Name: bundle_head" in texts[0]


def test_symbols_after_the_sections_move_with_them() -> None:
    old, new = pefile.PE(data=GNU), pefile.PE(data=split(GNU))
    by = len(GNU) - len(split(GNU))
    assert by > 0
    assert new.FILE_HEADER.PointerToSymbolTable == old.FILE_HEADER.PointerToSymbolTable - by
    assert GNU[old.FILE_HEADER.PointerToSymbolTable :] == split(GNU)[new.FILE_HEADER.PointerToSymbolTable :]


def test_an_existing_checksum_is_updated_and_a_zero_checksum_stays_zero() -> None:
    assert pefile.PE(data=split(GNU)).verify_checksum()
    assert pefile.PE(data=split(TWO)).OPTIONAL_HEADER.CheckSum == 0


def test_splitting_and_joining_a_file_restores_its_bytes() -> None:
    assert joined(split(TWO), bundles_of(TWO)) == TWO


@LIBRARIES
def test_joining_and_splitting_again_gives_the_same_bytes(data: bytes) -> None:
    host = split(data)
    assert split(joined(host, bundles_of(data))) == host


@LIBRARIES
def test_fewer_bundles_can_be_joined_into_the_original_section(data: bytes) -> None:
    first = bundles_of(data)[0]
    back = joined(split(data), [first], (0, 0))
    assert [bytes(bundle) for bundle in bundles_of(back)] == [bytes(first)]
    assert fat_of(back).starts == (0,)
    assert faults_of(back) == ()


def test_joining_more_code_than_was_removed_is_refused() -> None:
    with pytest.raises(
        NotJoinableError, match=r"45056 bytes of device code, but only 40960 fit; expected code that fits"
    ):
        joined(split(TWO), [memoryview(bytes(45056))], (0, 0))


def test_a_file_split_by_amds_tool_can_be_joined() -> None:
    """It leaves what doesn't fill a page in the file."""
    rest = 0x200
    host = bytearray(split(TWO))
    row = SECTIONS + 3 * 40
    struct.pack_into("<II", host, row + 16, rest, 0xA00)
    for number in (4, 5, 6):
        (at,) = struct.unpack_from("<I", host, SECTIONS + number * 40 + 20)
        struct.pack_into("<I", host, SECTIONS + number * 40 + 20, at + rest)
    host[0xA00:0xA00] = bytes(rest)
    assert faults_of(bytes(host)) == ()
    assert joined(bytes(host), bundles_of(TWO))[0x400:] == TWO[0x400:]


def changed(data: bytes, at: int, layout: str, *values: int) -> bytes:
    image = bytearray(data)
    struct.pack_into(layout, image, at, *values)
    return bytes(image)


def full_headers() -> bytes:
    """Return a library whose headers end with the last section header."""
    return changed(TWO, SECTIONS + 6 * 40, "<I", 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            full_headers(),
            "a.dll: offset 0x270: no room for another section header after the 6 headers that end at 0x270; expected "
            "40 free bytes before 0x400, where the headers end. Leave the device code in the file, and include the "
            "file in the host.",
            id="no room for a header",
        ),
        pytest.param(
            TWO + b"PK\3\4 an archive",
            (
                "a.dll: offset 0x0: 15 bytes at 0xa000, after the data that its headers describe; expected only "
                "sections and symbols"
            ),
            id="bytes behind",
        ),
        pytest.param(
            changed(TWO, OPTIONAL + 112 + 32, "<II", len(TWO) - 0x10, 0x10),
            "a.dll: offset 0x0: is signed, and any change makes the signature invalid",
            id="signed",
        ),
        pytest.param(
            changed(TWO, 0x9C10, "<Q", 0x180004000),
            "a.dll: offset 0x9c10: a pointer to address 0x4000, inside the device code",
            id="pointer beside wrappers",
        ),
        pytest.param(
            changed(TWO, OPTIONAL + 112 + 72, "<II", 0x4000, 0x28),
            "a.dll: offset 0xa00: the tls table in .hip_fat",
            id="table in the code",
        ),
        pytest.param(
            changed(TWO, SECTIONS + 4 * 40 + 20, "<I", 0x9A00),
            "a.dll: offset 0x0: has the section .late at 0x9a00 in the file, inside the section .hip_fat",
            id="shared bytes",
        ),
        pytest.param(
            changed(TWO, SECTIONS + 4 * 40, "<Q", int.from_bytes(b".hip_fat", "little")),
            "a.dll: offset 0x0: several .hip_fat sections; expected only one",
            id="two sections",
        ),
        pytest.param(
            changed(TWO, OPTIONAL + 24, "<Q", 0xFFFFFFFFFFFF0000),
            "a.dll: offset 0x0: an image base of 0xffffffffffff0000; expected at most 0xfffffffe00000000",
            id="at the end of memory",
        ),
    ],
)
def test_an_unsplittable_file_is_refused_with_the_reason(data: bytes, message: str) -> None:
    with pytest.raises(NotSplittableError, match=f"^{re.escape(message)}"):
        split(data)


def test_a_library_that_exports_a_bundle_is_not_split() -> None:
    exports = struct.unpack_from("<I", TWO, OPTIONAL + 112)[0]
    table = exports - 0x2000 + 0x600
    functions = struct.unpack_from("<I", TWO, table + 28)[0] - 0x2000 + 0x600
    with pytest.raises(NotSplittableError, match=r"an exported address in \.hip_fat"):
        split(changed(TWO, functions, "<I", 0x4000))


def test_a_split_file_has_no_code_left_to_split() -> None:
    assert has_code_to_split(memoryview(TWO), name="a.dll")
    assert not has_code_to_split(memoryview(split(TWO)), name="a.dll")
    assert not has_code_to_split(memoryview((FIXTURES / "pe/api7.dll").read_bytes()), name="a.dll")


def test_a_section_after_the_marker_is_refused() -> None:
    """Another tool may have added one."""
    host = split(TWO)
    row = host[SECTIONS + 6 * 40 : SECTIONS + 7 * 40]
    name, size, _, file_size, offset = struct.unpack_from("<8sIIII", row)
    newer = struct.pack("<8sIIII", b".newer", size, 0x11000, file_size, offset + file_size) + row[24:]
    image = bytearray(host[: offset + file_size] + bytes(file_size))
    image[SECTIONS + 7 * 40 : SECTIONS + 8 * 40] = newer
    struct.pack_into("<H", image, 0x78 + 6, 8)
    struct.pack_into("<I", image, OPTIONAL + 56, 0x12000)
    assert (name, faults_of(bytes(image))) == (b".kpackrf", ())
    with pytest.raises(NotJoinableError, match=r"\.newer after all other sections; expected the marker section"):
        joined(bytes(image), bundles_of(TWO))


def test_a_signed_host_file_is_refused() -> None:
    host = split(TWO)
    signed = changed(host, OPTIONAL + 112 + 32, "<II", len(host), 16) + struct.pack("<IHH", 16, 0x200, 2) + bytes(8)
    with pytest.raises(SignedFileError, match=r"^a\.dll: is signed, and any change makes the signature invalid"):
        joined(signed, bundles_of(TWO))


@pytest.mark.parametrize(
    ("address", "offset", "place"),
    [
        pytest.param(0x4000, 0, "the address 0x4000, where no section has bytes in the file", id="in memory"),
        pytest.param(0, 0xFFFFFFFF, "0xffffffff to 0x10000003f, but the file ends at 0x1000", id="behind the end"),
    ],
)
def test_debug_information_outside_the_file_prevents_joining(address: int, offset: int, place: str) -> None:
    """Code would come to its address; found by fuzzing."""
    host = changed(split(TWO), OPTIONAL + 112 + 48, "<II", 0x2000, 28)
    astray = changed(host, 0x600, "<IIHHIIII", 0, 0, 0, 0, 2, 64, address, offset)
    with pytest.raises(FixedFileError, match=f"^a\\.dll: debug information would (span|be at) {place}"):
        joined(astray, bundles_of(TWO))


@given(damaged([TWO, GNU]))
def test_splitting_a_damaged_file_produces_a_valid_file_or_is_refused(data: bytes) -> None:
    def sizes() -> int:
        fat = read_fat_binary(memoryview(data), name="a.dll")
        if fat is None or not has_code_to_split(memoryview(data), name="a.dll"):
            return 0
        links = [UnitLink(0, 0) for _ in fat.wrappers]
        host = applied(data, plan_host_file(memoryview(data), [MARKER], links, name="a.dll"))
        assert refusals(host) <= refusals(data)
        return len(host)

    unless_refused(sizes, "a.dll")


HOST = split(TWO)


@given(damaged([HOST]))
def test_joining_a_damaged_host_file_succeeds_or_is_refused(data: bytes) -> None:
    def sizes() -> int:
        fat = read_fat_binary(memoryview(data), name="a.dll")
        if fat is None or len(fat.wrappers) != 2:
            return 0
        return len(joined(data, bundles_of(TWO)))

    unless_refused(sizes, "a.dll")


FAT = [(FIXTURES / name).read_bytes() for name in ("v19/libtwo.plain.so", "v22/libtwo.rdc.so", "hip/realcompress")]
HOSTS = [split_file(content) for content in FAT]
BUNDLES = [memoryview(bundle) for bundle in bundles_in(memoryview(FAT[0]))]
MOST = 1 << 20
"""How much larger than a file all that is made of it may be, in bytes."""


def host_of(data: memoryview) -> memoryview | str:
    """Return the host file, or the error."""
    try:
        fat = read_fat_binary(data, name="libx.so")
        links = [UnitLink(number, 0) for number in range(len(fat.wrappers) if fat else 0)]
        patch = plan_host_file(data, MARKERS, links, name="libx.so")
        assert patch.size < len(data) + MOST
        return memoryview(join_data(patch.apply(data)))
    except (InputError, ProblemsError) as e:
        return str(e)


@given(damaged(FAT))
def test_a_damaged_elf_file_is_split_completely_or_refused_by_name(content: bytes) -> None:
    data = memoryview(content)
    result = host_of(data)
    if isinstance(result, str):
        assert result.startswith("libx.so")
        return
    if result == data:
        return
    library = read_split_library(result, name="x")
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    assert (len(library.units) if library else 0) == len(fat.wrappers)
    assert not has_code_to_split(result, name="x")


def joined_or_error(data: memoryview) -> memoryview | str:
    """Return the joined file, or the error."""
    try:
        fat = read_fat_binary(data, name="libx.so")
        units = [number % len(BUNDLES) for number in range(len(fat.wrappers) if fat else 0)]
        patch = plan_fat_file(data, BUNDLES, units, name="libx.so")
        assert patch.size < len(data) + MOST
        return memoryview(join_data(patch.apply(data)))
    except (InputError, ProblemsError) as e:
        return str(e)


@given(damaged(HOSTS))
def test_a_damaged_elf_host_file_is_joined_or_refused_by_name(content: bytes) -> None:
    result = joined_or_error(memoryview(content))
    if isinstance(result, str):
        assert result.startswith("libx.so")
        return
    assert {bytes(bundle) for bundle in BUNDLES} >= set(bundles_in(result))
    assert units_of(result)


def test_a_segment_whose_physical_address_would_wrap_is_refused() -> None:
    data = bytearray(FAT[0])
    number = next(n for n in range(10) if data[64 + n * 56] == 1)
    data[88 + number * 56 : 96 + number * 56] = b"\xff" * 8
    assert str(host_of(memoryview(data))).startswith("libx.so: a program header for offset ")


def test_code_is_not_placed_over_a_segment_loaded_elsewhere() -> None:
    data = bytearray(HOSTS[0])
    second = [at for at in range(64, 64 + 10 * 56, 56) if data[at] == 1][1]
    data[second + 18] += 16  # p_vaddr, a MiB further: its memory is free now, but its bytes in the file are not
    # No loader takes such a file either: it reserves memory up to the end of the last segment.
    message = (
        "^libx.so: segments from 0x0 to 0xd979, and other segments outside this range; expected loaded "
        "segments in the order"
    )
    with pytest.raises(ElfError, match=message):
        plan_fat_file(memoryview(data), BUNDLES[:1], [0, 0], name="libx.so")
