"""Tests of `rocwheel.device.split.host_layout`."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import PF_X, PT_GNU_RELRO, PT_LOAD, PT_NOTE, PT_PHDR, read_sections
from rocwheel.binary.kpack.markers import Marker, encode_markers, read_split_library
from rocwheel.core.reading import join_data
from rocwheel.device.split.host_file import UnitLink, plan_host_file
from rocwheel.device.split.host_layout import NotJoinableError, NotSplittableError
from tests.support.host_files import MARKERS, bundles_of, join, link_library, split, units_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool


LINKS = [UnitLink(0, 0), UnitLink(1, 1)]
_SECTION = len(encode_markers(MARKERS)[0])


def check(content: bytes, run_tool: RunTool, path: Path, *, last: int = 1) -> None:
    """Let readers look at the file, for which ``path`` is free, and find its markers."""
    path.write_bytes(content)
    for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"]):
        run_tool([*tool, str(path)], is_silent=True)
    library = read_split_library(memoryview(content), name="x")
    assert library is not None
    assert [(unit.index, unit.marker) for unit in library.units] == [(0, MARKERS[0]), (last, MARKERS[last])]


def fat_section(content: bytes) -> tuple[int, int]:
    """Return the type and size of the section of device code."""
    [section] = [section for section in read_sections(content, name="x") if section.name == ".hip_fatbin"]
    return section.type, section.size


@pytest.mark.parametrize("over", [0, 1, _SECTION - 1, _SECTION, _SECTION + 1, 4095])
def test_all_full_pages_of_code_are_removed_from_the_file(run_tool: RunTool, tmp_path: Path, over: int) -> None:
    library = link_library(run_tool, tmp_path, behind=f" .balign 4096\n .skip {over}").read_bytes()
    _, size = fat_section(library)
    assert size % 4096 == over
    host = split(library)
    kept = over if over >= _SECTION else over + 4096
    assert fat_section(host) == (8, size - kept)
    assert len(library) - len(host) >= size - kept - 512
    check(host, run_tool, tmp_path / "host.so")


def test_code_smaller_than_a_page_is_replaced_by_zeros(run_tool: RunTool, tmp_path: Path) -> None:
    bundle = FIXTURES / "v22/saxpy.ccob.hipfb"
    library = link_library(run_tool, tmp_path, bundle="v22/saxpy.ccob.hipfb").read_bytes()
    host = split(library)
    kind, size = fat_section(host)
    [section] = [section for section in read_sections(host, name="x") if section.name == ".hip_fatbin"]
    assert kind == 1
    assert size == (bundle.stat().st_size - _SECTION) // 16 * 16
    assert host[section.offset : section.offset + size] == bytes(size)
    check(host, run_tool, tmp_path / "host.so", last=0)
    assert split(join(host, bundles_of(memoryview(library)), units_of(memoryview(library)))) == host


def test_a_file_without_a_spare_program_header_keeps_zeros(run_tool: RunTool, tmp_path: Path) -> None:
    library = bytearray(link_library(run_tool, tmp_path).read_bytes())
    segments = read_elf(library, name="x").segments
    last = max(number for number, segment in enumerate(segments) if segment.type == PT_LOAD)
    library[68 + last * 56] |= PF_X
    for number, segment in enumerate(segments):
        if segment.type in {PT_PHDR, PT_GNU_RELRO}:
            library[64 + number * 56 : 68 + number * 56] = PT_NOTE.to_bytes(4, "little")
    host = split(bytes(library))
    assert fat_section(host)[0] == 1
    assert bundles_of(memoryview(library))[0] not in host
    found = read_split_library(memoryview(host), name="x")
    assert found is not None
    assert [unit.index for unit in found.units] == [0, 1]


BEHIND_BSS = "SECTIONS { .hip_fatbin : { *(.hip_fatbin) } } INSERT AFTER .bss;\n"


@pytest.mark.parametrize("linker", ["bfd", "lld"])
def test_a_segment_that_ends_with_the_code_shrinks_and_grows_back(
    run_tool: RunTool, tmp_path: Path, linker: str
) -> None:
    (tmp_path / "script.ld").write_text(BEHIND_BSS)
    options = [f"-fuse-ld={linker}", f"-Wl,-T,{tmp_path / 'script.ld'}"]
    library = link_library(run_tool, tmp_path, options, more=" .bss\n .skip 100\n").read_bytes()
    host = split(library)
    kind, size = fat_section(host)
    # GNU ld loads the code with data, and leaves no program header to spare; lld gives it a segment.
    assert (kind, size) == ((1, 16) if linker == "bfd" else (8, fat_section(library)[1] // 4096 * 4096))
    assert len(host) < len(library) - fat_section(library)[1] + 2 * 4096
    check(host, run_tool, tmp_path / "host.so")
    bundles, units = bundles_of(memoryview(library)), units_of(memoryview(library))
    joined = join(host, bundles, units)
    assert bundles_of(memoryview(joined)) == bundles
    assert split(joined) == host


@pytest.mark.parametrize("linker", ["bfd", "lld"])
def test_a_segment_that_ends_with_the_code_can_grow(run_tool: RunTool, tmp_path: Path, linker: str) -> None:
    (tmp_path / "script.ld").write_text(BEHIND_BSS)
    options = [f"-fuse-ld={linker}", f"-Wl,-T,{tmp_path / 'script.ld'}"]
    library = link_library(run_tool, tmp_path, options).read_bytes()
    larger = [bundle.ljust(100_000, b"\0") for bundle in bundles_of(memoryview(library))]
    joined = join(split(library), larger, units_of(memoryview(library)))
    [section] = [section for section in read_sections(joined, name="x") if section.name == ".hip_fatbin"]
    assert section.size == 102_400 + 100_000
    assert joined[section.offset : section.offset + section.size] == larger[0].ljust(102_400, b"\0") + larger[1]
    (tmp_path / "joined.so").write_bytes(joined)
    ctypes.CDLL(str(tmp_path / "joined.so"))
    assert join(split(joined), larger, units_of(memoryview(library))) == joined


@pytest.mark.parametrize("target", ["aarch64", "powerpc64le"])
def test_libraries_for_machines_with_larger_pages_are_split(run_tool: RunTool, tmp_path: Path, target: str) -> None:
    library = link_library(run_tool, tmp_path, [f"--target={target}-linux-gnu"]).read_bytes()
    host = split(library)
    assert len(library) - len(host) > 65000
    check(host, run_tool, tmp_path / "host.so")
    for segment in read_elf(host, name="x").segments:
        if segment.type == PT_LOAD:
            assert (segment.alignment, (segment.address - segment.offset) % 65536) == (65536, 0)
    assert split(join(host, bundles_of(memoryview(library)), units_of(memoryview(library)))) == host


def test_a_library_for_an_unknown_machine_is_refused(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path, ["--target=riscv64-linux-gnu"]).read_bytes()
    message = "x: offset 0x0: a file for machine 243; expected x86-64 (62), AArch64 (183), or 64-bit POWER (21)"
    with pytest.raises(NotSplittableError, match=f"^{re.escape(message)}"):
        plan_host_file(memoryview(library), MARKERS, LINKS, name="x")


def test_markers_larger_than_the_code_are_refused(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path, bundle="v22/saxpy.ccob.hipfb").read_bytes()
    large = Marker("x" * 1000, tuple(f"../{number}/{'x' * 1000}" for number in range(20)))
    with pytest.raises(NotSplittableError, match="for the marker"):
        plan_host_file(memoryview(library), [large, large], LINKS, name="x")


def test_another_pointer_to_the_code_is_refused(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path, more=" .data\n .p2align 3\n .quad bundle_1\n").read_bytes()
    message = (
        ", inside the device code; expected pointers to device code only in wrappers. Leave the device code in the file"
    )
    with pytest.raises(NotSplittableError, match=re.escape(message)) as caught:
        plan_host_file(memoryview(library), MARKERS, LINKS, name="x")
    assert caught.value.place == CodePlace("x", caught.value.place.offset)


def test_packed_relative_relocations_are_supported(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path, ["-Wl,--pack-dyn-relocs=relr"])
    assert ".relr.dyn" in run_tool(["readelf", "-SW", str(library)])
    check(split(library.read_bytes()), run_tool, tmp_path / "host.so")


def test_data_appended_to_the_file_stays_at_its_end(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path).read_bytes() + b"something appended, such as a signature"
    assert split(library).endswith(b"something appended, such as a signature")


def test_the_same_file_produces_the_same_bytes(run_tool: RunTool, tmp_path: Path) -> None:
    library = memoryview(link_library(run_tool, tmp_path).read_bytes())
    patches = [plan_host_file(library, MARKERS, LINKS, name="x") for _ in range(2)]
    assert join_data(patches[0].apply(library)) == join_data(patches[1].apply(library))


def test_joining_less_code_takes_only_the_space_it_needs(run_tool: RunTool, tmp_path: Path) -> None:
    library = memoryview(link_library(run_tool, tmp_path).read_bytes())
    host = split(library)
    small = (FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes()
    fat = join(host, [small, small], (0, 1))
    assert len(fat) < len(host) + 3 * 4096
    assert bundles_of(memoryview(fat)) == [small, small]
    (tmp_path / "fat.so").write_bytes(fat)
    for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"]):
        run_tool([*tool, str(tmp_path / "fat.so")], is_silent=True)
    check(split(fat), run_tool, tmp_path / "host.so")


def test_joining_more_code_than_the_library_had_is_refused(run_tool: RunTool, tmp_path: Path) -> None:
    library = memoryview(link_library(run_tool, tmp_path).read_bytes())
    message = r"x: offset 0x1000: \d+ bytes of device code, but only \d+ fit; expected code that fits. Join"
    with pytest.raises(NotJoinableError, match=message):
        join(split(library), [*bundles_of(library), *bundles_of(library)], (0, 1))


@pytest.mark.parametrize("linker", ["lld", "bfd"])
@pytest.mark.parametrize("more", [1, 2048, 4097, 65536])
def test_code_larger_than_its_segment_is_refused_if_only_an_empty_section_follows(
    run_tool: RunTool, tmp_path: Path, linker: str, more: int
) -> None:
    empty = ' .section .eh_frame,"a",@progbits\n'
    packed = "v22/saxpy.ccob.hipfb"
    library = link_library(run_tool, tmp_path, [f"-fuse-ld={linker}"], bundle=packed, more=empty).read_bytes()
    end = next(s.offset + s.file_size for s in read_elf(library, name="x").segments if s.type == PT_LOAD)
    [section] = [section for section in read_sections(library, name="x") if section.name == ".hip_fatbin"]
    [bundle] = bundles_of(memoryview(library))
    assert section.offset + section.size <= end
    with pytest.raises(NotJoinableError, match="expected code that fits"):
        join(split(library), [bundle + bytes(max(end - section.offset, 4096) - len(bundle) + more)], (0, 0))


def test_a_file_that_still_has_its_code_cannot_be_joined(run_tool: RunTool, tmp_path: Path) -> None:
    library = link_library(run_tool, tmp_path).read_bytes()
    with pytest.raises(NotJoinableError, match="x: offset 0x0: no wrappers for archives; expected a file"):
        join(library, [b""], (0, 0))
