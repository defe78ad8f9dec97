"""Tests of taking free space out of object files and static libraries; linkers and binutils read the result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import iter_ar_parts, iter_code_sources
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import DeviceCodeError, NotTrimmableError, TargetId
from rocwheel.binary.elf.header import read_sections
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import Prune, device_patch
from rocwheel.device.edit_file import rewrite_device_code
from tests.support.hip_runtime import build_runtime, registered, runtime_source
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.tools import RunTool

pytestmark = pytest.mark.slow

KEEP = Prune((TargetId("gfx1030"),))
EDITS = {"prune": (KEEP, Storage()), "compress": (None, Storage(compress=True))}
UNIT = """
.section .hip_fatbin,"a",@progbits
.p2align 12
code: .incbin "{bundle}"
.size code, . - code
{behind}
.section .hipFatBinSegment,"aw",@progbits
.p2align 3
wrapper: .long 0x48495046, 1
.quad code, 0
.text
.globl run_saxpy
run_saxpy: ret
register: lea wrapper(%rip), %rdi
jmp __hipRegisterFatBinary@PLT
.section .init_array,"aw"
.p2align 3
.quad register
.section .note.GNU-stack,"",@progbits
"""
"""What an object file says of a bundle that its constructor registers."""
RUNTIME = runtime_source("", "64")


@pytest.fixture(scope="module")
def runtime(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a stand-in for libamdhip64 that prints the head of every bundle that it is given."""
    return build_runtime(run_tool, tmp_path_factory.mktemp("runtime"), RUNTIME)


@pytest.fixture(scope="module")
def assemble(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that makes an object file of a bundle."""

    def run(behind: str = "") -> Path:
        folder = tmp_path_factory.mktemp("unit")
        (folder / "saxpy.s").write_text(UNIT.format(bundle=FIXTURES / "v22/saxpy.hipfb", behind=behind))
        run_tool(["gcc", "-c", folder / "saxpy.s", "-o", folder / "saxpy.o"])
        return folder / "saxpy.o"

    return run


@pytest.fixture(scope="module")
def library(run_tool: RunTool, assemble: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a static library of two object files, and between them a text with a long name and an odd size."""
    folder = tmp_path_factory.mktemp("library")
    text = folder / "a-text-whose-name-is-long.txt"
    text.write_text("odd")
    run_tool(["ar", "rcs", folder / "libx.a", assemble(), text, FIXTURES / "v19/vadd.plain.o"])
    return folder / "libx.a"


def trimmed(source: Path, output: Path, kind: str) -> memoryview:
    edit, storage = EDITS[kind]
    report = rewrite_device_code(source, output, edit, storage, trim=True)
    assert report.trimmed == source.stat().st_size - output.stat().st_size
    return memoryview(output.read_bytes())


def bundles(data: memoryview) -> list[bytes]:
    return [bytes(one.view[one.bundle.start : one.bundle.stop]) for one in iter_code_sources(data, name="x")]


@pytest.mark.parametrize(("kind", "saved"), [("prune", 37456), ("compress", 45648)])
def test_a_static_library_shrinks_by_the_savings_of_its_members(
    library: Path, tmp_path: Path, kind: str, saved: int
) -> None:
    data = trimmed(library, tmp_path / "y.a", kind)
    edit, storage = EDITS[kind]
    rewrite_device_code(library, tmp_path / "in-place.a", edit, storage)
    assert library.stat().st_size - len(data) == saved
    assert bundles(data) == bundles(memoryview((tmp_path / "in-place.a").read_bytes()))


@pytest.mark.parametrize("kind", EDITS)
def test_binutils_and_llvm_read_the_same_members_and_symbols(
    run_tool: RunTool, library: Path, tmp_path: Path, kind: str
) -> None:
    small = tmp_path / "libx.a"
    trimmed(library, small, kind)
    for tool in (["ar", "t"], ["nm", "--print-armap"], ["llvm-ar-22", "t"], ["llvm-nm-22", "--print-armap"]):
        assert run_tool([*tool, small]) == run_tool([*tool, library])
    names = re.findall(r"Name: (\S+) ", run_tool(["llvm-readobj-22", "--sections", small]))
    assert names == re.findall(r"Name: (\S+) ", run_tool(["llvm-readobj-22", "--sections", library]))
    again = tmp_path / "again.a"
    again.write_bytes(small.read_bytes())
    run_tool(["ranlib", "-D", again])
    assert again.read_bytes()[:400] == small.read_bytes()[:400].replace(small.read_bytes()[24:36], b"0           ", 1)


@pytest.mark.parametrize("kind", EDITS)
def test_long_bsd_names_stay_in_front_of_their_members(
    run_tool: RunTool, assemble: Callable[..., Path], tmp_path: Path, kind: str
) -> None:
    big, small, text = tmp_path / "libx.a", tmp_path / "liby.a", tmp_path / "text with a long name.txt"
    text.write_text("odd")
    member = tmp_path / "an object with a long name.o"
    member.write_bytes(assemble().read_bytes())
    # Without an index (S): those of BSD are refused.
    run_tool(["llvm-ar-22", "--format=bsd", "rcS", big, text, member, text])
    data = trimmed(big, small, kind)
    assert len(data) < big.stat().st_size
    assert run_tool(["llvm-ar-22", "t", small]) == run_tool(["llvm-ar-22", "t", big])
    assert run_tool(["llvm-ar-22", "p", small, text.name]) == "odd"
    (tmp_path / "alone").mkdir()
    trimmed(member, tmp_path / "alone/x.o", kind)
    run_tool(["llvm-ar-22", "x", "--output", tmp_path / "alone", small, member.name])
    assert (tmp_path / "alone" / member.name).read_bytes() == (tmp_path / "alone/x.o").read_bytes()


@pytest.mark.parametrize("linker", [["ld.bfd"], ["ld.lld-16"], ["ld.gold"]], ids=" ".join)
@pytest.mark.parametrize("kind", EDITS)
def test_a_library_linked_with_a_trimmed_archive_registers_the_new_bundles(
    run_tool: RunTool, runtime: Path, library: Path, tmp_path: Path, kind: str, linker: list[str]
) -> None:
    data = trimmed(library, tmp_path / "y.a", kind)
    linked = tmp_path / "libx.so"
    run_tool([*linker, "-shared", "-o", linked, "-u", "run_saxpy", "-u", "run_vadd", tmp_path / "y.a"])
    loaded = [bytes.fromhex(line) for line in registered(runtime, linked).split()]
    assert sorted(loaded) == sorted(bundle[:64] for bundle in bundles(data))


@pytest.mark.parametrize("kind", EDITS)
def test_trimming_removes_the_free_space_in_an_object_file(run_tool: RunTool, tmp_path: Path, kind: str) -> None:
    source, small = FIXTURES / "v19/vadd.plain.o", tmp_path / "x.o"
    data = trimmed(source, small, kind)
    [section] = [section for section in read_sections(data, name="x.o") if section.name == ".hip_fatbin"]
    assert section.size == {"prune": 8192, "compress": 4096}[kind]
    for option in ("-r", "-s"):
        before, after = (run_tool(["readelf", "-W", option, path]) for path in (source, small))
        assert re.sub(r"at offset \w+", "", after) == re.sub(r"at offset \w+", "", before)
    run_tool(["strip", "--strip-unneeded", small], is_silent=True)


def test_an_object_file_with_nothing_to_trim_is_unchanged(tmp_path: Path) -> None:
    trimmed(FIXTURES / "v19/vadd.plain.o", tmp_path / "x.o", "compress")
    trimmed(tmp_path / "x.o", tmp_path / "y.o", "compress")
    assert (tmp_path / "y.o").read_bytes() == (tmp_path / "x.o").read_bytes()


def test_an_object_file_whose_section_has_no_bundle_is_unchanged(run_tool: RunTool, tmp_path: Path) -> None:
    (tmp_path / "x.s").write_text('.section .hip_fatbin,"a",@progbits\n.zero 8192\n')
    run_tool(["as", "-o", tmp_path / "x.o", tmp_path / "x.s"])
    data = (tmp_path / "x.o").read_bytes()
    patch = device_patch(memoryview(data), name="x.o", storage=Storage(compress=True), trim=True)
    assert patch is None or join_data(patch.apply(memoryview(data))) == data


def test_an_object_file_with_a_symbol_after_the_code_is_refused(assemble: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(NotTrimmableError, match="a symbol or relocation for a location after the code"):
        rewrite_device_code(assemble(".globl end\nend:\n"), tmp_path / "y.o", KEEP, Storage(), trim=True)
    assert not (tmp_path / "y.o").exists()


def test_a_symbol_that_spans_the_code_gets_the_new_size(
    run_tool: RunTool, assemble: Callable[..., Path], tmp_path: Path
) -> None:
    trimmed(assemble(), tmp_path / "y.o", "compress")
    assert re.findall(r"(\d+) NOTYPE .* code", run_tool(["readelf", "-sW", tmp_path / "y.o"])) == ["4096"]


def test_a_symbol_index_that_refers_to_missing_members_is_refused(library: Path, tmp_path: Path) -> None:
    data = bytearray(library.read_bytes())
    [index] = [part for part in iter_ar_parts(memoryview(data), name="x.a") if part.index_width]
    data[index.offset + 7] += 2
    (tmp_path / "x.a").write_bytes(data)
    with pytest.raises(DeviceCodeError, match=r"a symbol index with offset 0x\w+, but no member begins there"):
        rewrite_device_code(tmp_path / "x.a", tmp_path / "y.a", KEEP, Storage(), trim=True)
    assert not (tmp_path / "y.a").exists()


def test_a_64_bit_symbol_index_gets_the_new_offsets(run_tool: RunTool, library: Path, tmp_path: Path) -> None:
    source, small = tmp_path / "x.a", tmp_path / "y.a"
    source.write_bytes(with_wide_index(library.read_bytes()))
    trimmed(source, small, "prune")
    for tool in ("nm", "llvm-nm-22"):
        assert run_tool([tool, "--print-armap", small]) == run_tool([tool, "--print-armap", source])


def with_wide_index(data: bytes) -> bytes:
    """Return a static library with the index that ``ar`` writes from 4 GiB on."""
    index = next(iter_ar_parts(memoryview(data), name="x.a"))
    assert index.index_width == 4
    count, rest = int.from_bytes(data[68:72], "big"), index.offset + index.size + index.size % 2
    numbers = [int.from_bytes(data[at : at + 4], "big") for at in range(72, 72 + 4 * count, 4)]
    names = data[72 + 4 * count : index.offset + index.size]
    size = 8 + 8 * count + len(names)
    by = size + size % 2 - (rest - index.offset)
    header = f"{'/SYM64/':<16}{0:<12}{0:<6}{0:<6}{0:<8}{size:<10}`\n".encode()
    table = b"".join(number.to_bytes(8, "big") for number in [count, *(number + by for number in numbers)])
    return data[:8] + header + table + names + b"\n" * (size % 2) + data[rest:]
